//! Candidate: has raised the epoch and votes for itself.
//!
//! Its own vote counts once it is on disk. Left for leader at a majority of votes, which in a set of one voter is that
//! vote.

use model::ControllerEpoch;

use crate::leader::Leader;
use crate::{QuorumState, ReplicaKey};

#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) epoch: ControllerEpoch,
}

impl Candidate {
    /// What must be on disk before the vote counts.
    pub(crate) fn vote(&self, node: ReplicaKey) -> QuorumState {
        QuorumState {
            epoch: self.epoch,
            leader: None,
            voted: Some((node.id, Some(node.directory))),
        }
    }

    /// All votes of the set are in.
    pub(crate) fn win(&self) -> Leader {
        Leader::new(self.epoch)
    }
}
