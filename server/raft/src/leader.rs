//! Leader: appends, and knows what is committed.
//!
//! The high watermark is the offset that a majority of voters has synced, this node among them only with what its own
//! disk has; it moves once it passes the start of the epoch (Raft, section 5.4.2). Left for resigned at shutdown.

use model::{BrokerId, ControllerEpoch, Offset};

use crate::{QuorumState, ReplicaKey, VoterSet};

#[derive(Clone, Debug)]
pub(crate) struct Leader {
    pub(crate) epoch: ControllerEpoch,
    /// The end of the first batch of the epoch, once that is appended.
    epoch_start_end: Option<Offset>,
    high_watermark: Option<Offset>,
}

/// What a synced offset did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Advance {
    None,
    /// The first of the epoch.
    First(Offset),
    Further(Offset),
}

impl Leader {
    pub(crate) fn new(epoch: ControllerEpoch) -> Self {
        Leader {
            epoch,
            epoch_start_end: None,
            high_watermark: None,
        }
    }

    /// What the file says once this node leads. No vote is noted: whoever leads an epoch cannot vote in it.
    pub(crate) fn state(&self, node: ReplicaKey) -> QuorumState {
        QuorumState {
            epoch: self.epoch,
            leader: Some(node.id),
            voted: None,
        }
    }

    pub(crate) fn high_watermark(&self) -> Option<Offset> {
        self.high_watermark
    }

    pub(crate) fn on_appended(&mut self, end: Offset) {
        self.epoch_start_end.get_or_insert(end);
    }

    pub(crate) fn on_synced(&mut self, synced: Offset) -> Advance {
        let Some(start_end) = self.epoch_start_end else {
            return Advance::None;
        };
        if synced < start_end || self.high_watermark.is_some_and(|current| synced <= current) {
            return Advance::None;
        }
        match self.high_watermark.replace(synced) {
            None => Advance::First(synced),
            Some(_) => Advance::Further(synced),
        }
    }
}

/// What DescribeQuorum tells (KIP-836, KIP-853). The leader counts as having fetched just now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QuorumDescription {
    pub leader: BrokerId,
    pub epoch: ControllerEpoch,
    /// `None` until the start of the epoch is committed.
    pub high_watermark: Option<Offset>,
    pub voters: VoterSet,
    /// Where the leader's log ends.
    pub log_end: Offset,
}
