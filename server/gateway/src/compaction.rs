//! How far compacted topics are compacted, as a topic's description shows it.
//!
//! The door does not know the logs: whoever opens it hands it a [`Compaction`] to ask.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{PartitionIndex, TopicName};
use serde::Serialize;
use utoipa::ToSchema;

/// Tells how far each compacted partition that this node leads is compacted. May wait for the disk.
pub type Compaction = Arc<dyn Fn(&TopicName) -> BTreeMap<PartitionIndex, PartitionCompaction> + Send + Sync>;

/// How far a partition is compacted; only there if its topic is compacted and the node that is asked leads it.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct PartitionCompaction {
    pub state: CompactionState,
    /// Why a round failed, or why it cannot be compacted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How much is dirty; null if nobody can say.
    #[schema(required)]
    pub backlog: Option<CompactionBacklog>,
    /// The last round that came to its end since the node started.
    #[schema(required)]
    pub last_round: Option<CompactionRound>,
}

/// `idle`: too little is dirty; `due`: it waits for its turn; `failed`: a round has failed and will be tried again;
/// `uncleanable`: it is left alone until the node starts anew; `disabled`: the node does not compact at all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum CompactionState {
    Idle,
    Due,
    Cleaning,
    Failed,
    Uncleanable,
    Disabled,
}

/// How much of a partition is dirty.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, ToSchema)]
pub struct CompactionBacklog {
    /// Below this offset it is clean.
    pub first_dirty: i64,
    /// Below this offset it can be cleaned now.
    pub cleanable_end: i64,
    pub clean_bytes: u64,
    /// The bytes of the dirty part that can be cleaned now.
    pub dirty_bytes: u64,
    /// The dirty share of these two, from 0 to 1; above `min.cleanable.dirty.ratio` it is due.
    pub dirty_ratio: f64,
    /// The bytes that cannot be cleaned yet: the active segment, what is younger than `min.compaction.lag.ms`, not
    /// committed, or of an open transaction.
    pub held_back_bytes: u64,
}

/// A round over a partition that came to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct CompactionRound {
    /// When it ended, in milliseconds since 1970.
    pub ended: i64,
    pub duration_ms: u64,
    /// The bytes of the segments that it looked at.
    pub bytes_before: u64,
    /// What is left of them.
    pub bytes_after: u64,
    pub records_removed: u64,
}
