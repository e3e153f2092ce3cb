//! A member of a classic group.

use std::borrow::Borrow;
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use protocol::Text;
use protocol::messages::join_group_request::JoinGroupRequestProtocol;

use crate::shard::Token;

/// The name under which the coordinator knows a member; it gives a new one to each that joins without.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId(Text);

impl MemberId {
    /// Kafka's form: the client's id (of a static member, its instance id) and a random UUID of version 4.
    pub(crate) fn generate(prefix: &str, entropy: [u8; 16]) -> Self {
        let mut bits = u128::from_be_bytes(entropy);
        bits = bits & !(0xf << 76) | 0x4 << 76;
        bits = bits & !(0x3 << 62) | 0x2 << 62;
        let hex = format!("{bits:032x}");
        let (a, b, c, d, e) = (&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]);
        MemberId(format!("{prefix}-{a}-{b}-{c}-{d}-{e}").into())
    }
}

impl From<Text> for MemberId {
    fn from(text: Text) -> Self {
        MemberId(text)
    }
}

impl From<MemberId> for Text {
    fn from(id: MemberId) -> Self {
        id.0
    }
}

impl Borrow<str> for MemberId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A way to assign that a member offers, with what it has to tell the leader if that way is chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OfferedProtocol {
    pub(crate) name: Text,
    pub(crate) metadata: Bytes,
}

impl OfferedProtocol {
    /// The metadata is copied: a slice of the request would keep the whole request.
    pub(crate) fn from_wire(wire: &[JoinGroupRequestProtocol]) -> Vec<Self> {
        wire.iter()
            .map(|protocol| OfferedProtocol {
                name: protocol.name.clone(),
                metadata: Bytes::copy_from_slice(&protocol.metadata),
            })
            .collect()
    }

    pub(crate) fn are(own: &[Self], wire: &[JoinGroupRequestProtocol]) -> bool {
        let same =
            |(own, wire): (&Self, &JoinGroupRequestProtocol)| own.name == wire.name && own.metadata == wire.metadata;
        own.len() == wire.len() && own.iter().zip(wire).all(same)
    }
}

/// A join that is answered when the rebalance ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WaitingJoin {
    pub(crate) token: Token,
    pub(crate) version: i16,
}

/// What a member says of itself in each join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) rebalance_timeout_ms: i32,
    pub(crate) session_timeout_ms: i32,
    /// In the member's order of preference.
    pub(crate) protocols: Vec<OfferedProtocol>,
}

#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) group_instance_id: Option<Text>,
    pub(crate) client_id: Text,
    pub(crate) client_host: Text,
    pub(crate) terms: Terms,
    /// Empty while a new one is being worked out.
    pub(crate) assignment: Bytes,
    pub(crate) awaiting_join: Option<WaitingJoin>,
    pub(crate) awaiting_sync: Option<Token>,
    /// Since it joined, no rebalance has ended: it does not know its member id and cannot send heartbeats.
    pub(crate) is_new: bool,
}

impl Member {
    pub(crate) fn session_timeout(&self) -> Duration {
        millis(self.terms.session_timeout_ms)
    }

    pub(crate) fn rebalance_timeout(&self) -> Duration {
        millis(self.terms.rebalance_timeout_ms)
    }

    pub(crate) fn metadata(&self, protocol: &str) -> Bytes {
        let offered = self.terms.protocols.iter().find(|offered| *offered.name == *protocol);
        offered.map(|offered| offered.metadata.clone()).unwrap_or_default()
    }

    /// The coordinator keeps it waiting, so it cannot be blamed for sending no heartbeat. A member that is new is: its
    /// client may have given up and joined again under another id.
    pub(crate) fn is_excused(&self) -> bool {
        !self.is_new && (self.awaiting_join.is_some() || self.awaiting_sync.is_some())
    }
}

fn millis(millis: i32) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}

/// An address as the JVM prints it, which is what tools expect in a member's host: `/10.0.0.1`, `/0:0:0:0:0:0:0:1`.
pub(crate) fn client_host(address: IpAddr) -> Text {
    match address.to_canonical() {
        IpAddr::V4(address) => format!("/{address}").into(),
        IpAddr::V6(address) => {
            let groups = address.segments().map(|group| format!("{group:x}"));
            format!("/{}", groups.join(":")).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn member_ids_end_in_a_random_uuid_of_version_4() {
        let id = MemberId::generate("client", [0xff; 16]);
        assert_eq!(id.to_string(), "client-ffffffff-ffff-4fff-bfff-ffffffffffff");
        let id = MemberId::generate("", [0; 16]);
        assert_eq!(id.to_string(), "-00000000-0000-4000-8000-000000000000");
    }

    #[test]
    fn hosts_are_printed_as_the_jvm_does() {
        for (address, host) in [
            ("10.0.0.1", "/10.0.0.1"),
            ("::ffff:10.0.0.1", "/10.0.0.1"),
            ("::1", "/0:0:0:0:0:0:0:1"),
            ("2001:db8::ff00:42", "/2001:db8:0:0:0:0:ff00:42"),
        ] {
            assert_eq!(*client_host(address.parse().unwrap()), *host);
        }
    }
}
