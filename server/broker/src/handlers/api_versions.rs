//! ApiVersions, versions 0–5: what this listener serves, and the features of the cluster (KIP-35, KIP-584).
//!
//! The response header stays at version 0, so that a client that does not know the broker yet can read it; a version
//! that is too new is answered by the connection, before a handler is asked. From version 5 on a request names the
//! cluster and node that it believes to speak to (KIP-1242).

use std::ops::RangeInclusive;
use std::sync::Arc;

use model::ErrorCode;
use network::{Answer, ApiVersionRange, RequestContext};
use protocol::Text;
use protocol::messages::api_versions_request::ApiVersionsRequest;
use protocol::messages::api_versions_response::{
    ApiVersion, ApiVersionsResponse, FinalizedFeatureKey, SupportedFeatureKey,
};

use crate::node::Broker;

pub(crate) const VERSIONS: RangeInclusive<i16> = 0..=5;
const FIRST_WITH_SOFTWARE_NAME: i16 = 3;
const FIRST_WITH_FEATURES_FROM_ZERO: i16 = 4;
const SOFTWARE_NAME_LENGTH_MAX: usize = 255;

pub(crate) fn handle(
    broker: &Arc<Broker>,
    context: &RequestContext,
    request: &ApiVersionsRequest,
    ranges: &[ApiVersionRange],
) -> Answer {
    if context.api_version >= FIRST_WITH_SOFTWARE_NAME
        && !(is_software_name(&request.client_software_name) && is_software_name(&request.client_software_version))
    {
        return Answer::now(ApiVersionsResponse {
            error_code: ErrorCode::InvalidRequest.code(),
            ..ApiVersionsResponse::default()
        });
    }
    let view = broker.view();
    Answer::now(ApiVersionsResponse {
        api_keys: ranges
            .iter()
            .map(|range| ApiVersion {
                api_key: range.api_key.code(),
                min_version: *range.advertised.start(),
                max_version: *range.advertised.end(),
                ..ApiVersion::default()
            })
            .collect(),
        supported_features: broker
            .supported_features()
            .iter()
            // Up to version 3 a range that begins at 0 cannot be told apart from "not supported" (KAFKA-17011).
            .filter(|(_, min, _)| context.api_version >= FIRST_WITH_FEATURES_FROM_ZERO || *min > 0)
            .map(|(name, min_version, max_version)| SupportedFeatureKey {
                name: Text::from(*name),
                min_version: *min_version,
                max_version: *max_version,
                ..SupportedFeatureKey::default()
            })
            .collect(),
        finalized_features_epoch: view.image.end_offset.get() - 1,
        finalized_features: view
            .image
            .features
            .iter()
            .map(|(name, level)| FinalizedFeatureKey {
                name: name.clone(),
                max_version_level: level,
                min_version_level: level,
                ..FinalizedFeatureKey::default()
            })
            .collect(),
        ..ApiVersionsResponse::default()
    })
}

/// What KIP-511 allows: letters, digits, `-` and `.`, with a letter or digit at both ends.
fn is_software_name(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    edge(bytes.first())
        && edge(bytes.last())
        && bytes.len() <= SOFTWARE_NAME_LENGTH_MAX
        && bytes.iter().all(|byte| inner(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn software_names_follow_kip_511() {
        for good in ["librdkafka", "2.12.1", "a", "kafka-python"] {
            assert!(is_software_name(good), "{good}");
        }
        for bad in ["", "-x", "x-", "a b", "a/b", "ä"] {
            assert!(!is_software_name(bad), "{bad}");
        }
    }
}
