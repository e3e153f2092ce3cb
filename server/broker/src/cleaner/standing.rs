//! How compaction stands with one partition: what the cleaner keeps of it, and what operators are shown.
//!
//! - The partition itself keeps its [`Standing`], so it goes with it: nothing is left of a deleted topic.
//! - Nothing of it is on the disk but how far the log is clean; after a restart a log is tried again.

use std::time::{Duration, Instant};

use model::{Offset, Timestamp};
use storage::compaction::Backlog;

/// What the cleaner keeps of a partition.
#[derive(Default)]
pub(crate) struct Standing {
    /// A thread has it.
    pub(crate) busy: bool,
    /// Its log is on its way to another directory: a thread that has it gives it back soon, and none takes it.
    pub(crate) moving: bool,
    /// Why it is left alone until the node starts anew.
    pub(super) uncleanable: Option<String>,
    /// Until when it is left alone, and why.
    pub(super) resting: Option<(Instant, String)>,
    pub(super) last_round: Option<CompactionRound>,
    /// Up to where it is clean, once the checkpoint was asked.
    pub(super) cleaned_to: Option<Option<Offset>>,
}

impl Standing {
    /// Whether a thread may take it.
    pub(super) fn is_free(&self, now: Instant) -> bool {
        !self.busy && !self.moving && self.uncleanable.is_none() && !self.is_resting(now)
    }

    fn is_resting(&self, now: Instant) -> bool {
        self.resting.as_ref().is_some_and(|(until, _)| *until > now)
    }
}

/// What compaction is doing with a partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CompactionState {
    /// Too little of it is dirty.
    Idle,
    /// It waits for its turn.
    Due,
    Cleaning,
    /// A round has failed for a reason that may pass; it will be tried again.
    Failed(String),
    /// It is left alone until the node starts anew.
    Uncleanable(String),
    /// The cleaner is switched off on this node.
    Disabled,
}

/// How far a compacted partition is compacted.
#[derive(Clone, PartialEq, Debug)]
pub struct CompactionProgress {
    pub state: CompactionState,
    /// How much is dirty; `None` if the log is of no use to the cleaner.
    pub backlog: Option<Backlog>,
    /// The last round that came to its end since the node started.
    pub last_round: Option<CompactionRound>,
}

/// A round over a partition that came to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CompactionRound {
    pub ended: Timestamp,
    pub duration: Duration,
    /// Bytes of the segments that were looked at, and of what is in their place now.
    pub bytes_before: u64,
    pub bytes_after: u64,
    pub records_removed: u64,
}
