//! What an operator can set, and the bounds that nobody can.

use std::time::Duration;

/// The settings of the group coordinator; each names the key of Kafka that it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupConfig {
    /// `group.min.session.timeout.ms`
    pub session_timeout_min: Duration,
    /// `group.max.session.timeout.ms`
    pub session_timeout_max: Duration,
    /// `group.initial.rebalance.delay.ms`
    pub initial_rebalance_delay: Duration,
    /// `group.max.size`
    pub group_size_max: usize,
    /// `offset.metadata.max.bytes`; Kafka counts UTF-16 units.
    pub offset_metadata_units_max: usize,
    /// `offsets.retention.minutes`
    pub offsets_retention: Duration,
    /// `offsets.retention.check.interval.ms`
    pub offsets_retention_check_interval: Duration,
}

impl Default for GroupConfig {
    fn default() -> Self {
        GroupConfig {
            session_timeout_min: Duration::from_secs(6),
            session_timeout_max: Duration::from_secs(30 * 60),
            initial_rebalance_delay: Duration::from_secs(3),
            group_size_max: i32::MAX as usize,
            offset_metadata_units_max: 4096,
            offsets_retention: Duration::from_secs(7 * 24 * 60 * 60),
            offsets_retention_check_interval: Duration::from_secs(10 * 60),
        }
    }
}

/// How long a member that has just joined may wait for the rebalance to end before it is taken for lost. It has no member
/// id yet to send heartbeats with, so its session timeout cannot be asked of it.
pub(crate) const NEW_MEMBER_JOIN_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// The least wait before a rebalance in which nobody has joined is tried again.
pub(crate) const REBALANCE_RETRY_WAIT_MIN: Duration = Duration::from_secs(1);

/// Names and metadata that a member may bring for all its protocols together. A group's record must fit a batch, so
/// anything greater could not be stored.
pub(crate) const MEMBER_PROTOCOLS_BYTES_MAX: usize = 1024 * 1024;

/// How many protocols a member may offer.
pub(crate) const MEMBER_PROTOCOLS_MAX: usize = 100;

/// How many member ids of a group may be handed out and not yet used.
pub(crate) const PENDING_MEMBERS_MAX: usize = 10_000;

/// How many groups a partition holds; a join or commit that needs one more is refused.
pub(crate) const GROUPS_MAX: usize = 1_000_000;

/// How many writes may wait for their commit before requests that would write are refused.
pub(crate) const WRITES_IN_FLIGHT_MAX: usize = 10_000;

/// How many tombstones a write of the coordinator's own accord (expired offsets, deleted topics) holds.
pub(crate) const TOMBSTONES_PER_WRITE_MAX: usize = 1_000;

/// The longest client or instance id that a member id can be made of: with the UUID it must fit a text of the wire.
pub(crate) const MEMBER_ID_PREFIX_BYTES_MAX: usize = i16::MAX as usize - 37;
