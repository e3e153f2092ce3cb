//! What the core asks of its shell.

use model::{ControllerEpoch, Offset};
use protocol::internal_records::control::ControlRecord;

use crate::QuorumState;

/// A thing to do. The shell does them in the order given, and reports back where the variant says so.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Write the file, sync and rename it, then call [`crate::Raft::on_quorum_state_saved`] with its epoch. A failure
    /// ends the node: its vote may or may not be on disk.
    SaveQuorumState(QuorumState),
    /// Append the records as one control batch of this epoch, then call [`crate::Raft::on_appended`].
    AppendControl {
        epoch: ControllerEpoch,
        records: Vec<ControlRecord>,
    },
    /// Sync the log as far as it goes, then call [`crate::Raft::on_synced`]. One sync may serve several of these.
    Sync,
    /// Everything below this offset is committed.
    AdvanceHighWatermark(Offset),
    /// The start of this node's epoch is committed: the controller takes over.
    Lead { epoch: ControllerEpoch },
    /// The controller stops: nothing more may be appended in this epoch.
    Resign { epoch: ControllerEpoch },
}
