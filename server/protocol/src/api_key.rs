//! The APIs: their codes, names, versions and listeners, from the schemas.

use std::ops::RangeInclusive;

include!(concat!(env!("OUT_DIR"), "/api_keys.rs"));

/// What the schemas say of an API.
struct Facts {
    name: &'static str,
    first: i16,
    last: i16,
    last_is_stable: bool,
    /// `i16::MAX` if none is.
    request_first_flexible: i16,
    /// `i16::MAX` if none is.
    response_first_flexible: i16,
    broker: bool,
    controller: bool,
}

/// Who answers on a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenerKind {
    Broker,
    Controller,
}

impl ApiKey {
    /// `None` for a code that no API has, or none any more (4 to 7).
    #[must_use]
    pub fn from_code(code: i16) -> Option<ApiKey> {
        let at = ApiKey::ALL.binary_search_by_key(&code, |api_key| api_key.code()).ok()?;
        Some(ApiKey::ALL[at])
    }

    #[must_use]
    pub const fn code(self) -> i16 {
        self as i16
    }

    /// Kafka's name, as `Produce`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.facts().name
    }

    /// All versions that can be read and written, an unstable last one included.
    #[must_use]
    pub const fn versions(self) -> RangeInclusive<i16> {
        let facts = self.facts();
        facts.first..=facts.last
    }

    /// The versions that are meant to be used: without the last one where that is not final yet.
    #[must_use]
    pub const fn stable_versions(self) -> RangeInclusive<i16> {
        let facts = self.facts();
        if facts.last_is_stable {
            facts.first..=facts.last
        } else {
            facts.first..=facts.last - 1
        }
    }

    /// Whether requests of this version have compact lengths and tagged fields (KIP-482).
    #[must_use]
    pub const fn is_flexible(self, version: i16) -> bool {
        version >= self.facts().request_first_flexible
    }

    /// The version of the header before a request. It is also right for versions that do not exist yet, so that the
    /// header of an ApiVersions request from the future can be read.
    #[must_use]
    pub const fn request_header_version(self, version: i16) -> i16 {
        if self.is_flexible(version) { 2 } else { 1 }
    }

    /// The version of the header before a response. ApiVersions always has 0, because its reader does not yet know what
    /// the other side speaks (KIP-511).
    #[must_use]
    pub const fn response_header_version(self, version: i16) -> i16 {
        if matches!(self, ApiKey::ApiVersions) || version < self.facts().response_first_flexible {
            0
        } else {
            1
        }
    }

    /// Whether Kafka serves the API on listeners of that kind.
    #[must_use]
    pub const fn is_served_by(self, listener: ListenerKind) -> bool {
        match listener {
            ListenerKind::Broker => self.facts().broker,
            ListenerKind::Controller => self.facts().controller,
        }
    }
}

impl std::fmt::Display for ApiKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removed_and_unknown_codes_have_no_api() {
        for code in [-1, 4, 5, 6, 7, 95, i16::MAX] {
            assert_eq!(ApiKey::from_code(code), None);
        }
    }

    #[test]
    fn each_api_is_found_by_its_code() {
        for api_key in ApiKey::ALL {
            assert_eq!(ApiKey::from_code(api_key.code()), Some(api_key));
        }
    }

    #[test]
    fn versions_are_those_of_kafka_4_4() {
        assert_eq!(ApiKey::Produce.versions(), 3..=13);
        assert_eq!(ApiKey::Fetch.versions(), 4..=18);
        assert_eq!(ApiKey::InitProducerId.versions(), 0..=6);
        assert_eq!(ApiKey::InitProducerId.stable_versions(), 0..=5);
        assert_eq!(ApiKey::ApiVersions.stable_versions(), 0..=5);
    }

    #[test]
    fn header_versions_follow_flexibility_except_for_api_versions_responses() {
        assert_eq!(ApiKey::Produce.request_header_version(8), 1);
        assert_eq!(ApiKey::Produce.request_header_version(9), 2);
        assert_eq!(ApiKey::Produce.response_header_version(9), 1);
        assert_eq!(ApiKey::ApiVersions.request_header_version(99), 2);
        assert_eq!(ApiKey::ApiVersions.response_header_version(5), 0);
        assert_eq!(ApiKey::SaslHandshake.request_header_version(1), 1);
    }

    #[test]
    fn raft_is_spoken_on_controller_listeners_only() {
        assert!(ApiKey::Vote.is_served_by(ListenerKind::Controller));
        assert!(!ApiKey::Vote.is_served_by(ListenerKind::Broker));
        assert!(ApiKey::Fetch.is_served_by(ListenerKind::Broker));
    }
}
