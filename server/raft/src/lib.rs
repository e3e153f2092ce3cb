//! Elects one controller and agrees with it on the metadata log: KRaft (KIP-595, KIP-630, KIP-853) without any IO.
//!
//! [`Raft`] takes inputs (`on_…`) and hands out [`Effect`]s, which its shell executes in order. One file a role says what
//! a node in that role may do and when it leaves it:
//!
//! ```text
//!              no votes from elsewhere needed            vote on disk
//!  unattached ─────────────────────────────▶ candidate ───────────────▶ leader ──shutdown──▶ resigned
//! ```
//!
//! What is here is what a quorum of one voter needs; a voter set with other voters is refused at the start
//! ([`StartError::OtherVoters`]), so no election can ever be won that others did not grant.
//!
//! Invariants:
//! - A start raises the epoch, and the epoch and its vote are on disk before this node counts the vote.
//! - The high watermark covers synced records only, and only once a record of the leader's own epoch is among them.
//! - The first records of an epoch are its LeaderChange, and the voter set where the log does not hold it yet.

mod candidate;
mod control_records;
mod effect;
mod leader;
mod quorum_state;
mod raft;
mod resigned;
mod snapshot;
mod unattached;
mod voter_set;

pub use control_records::{ControlRecordError, QuorumRecords, epoch_start, snapshot_footer, snapshot_header};
pub use effect::Effect;
pub use leader::QuorumDescription;
pub use quorum_state::{QuorumState, QuorumStateError};
pub use raft::{NotLeader, Raft, RoleName, Start, StartError};
pub use snapshot::{SnapshotId, SnapshotIdError};
pub use voter_set::{KRaftVersion, ReplicaKey, Voter, VoterEndpoint, VoterSet, VoterSetSource};
