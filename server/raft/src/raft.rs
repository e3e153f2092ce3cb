//! The node's part in the quorum: which role it has, and how inputs reach that role.

use model::{BrokerId, ControllerEpoch, Offset};

use crate::candidate::Candidate;
use crate::control_records::epoch_start;
use crate::leader::{Advance, Leader};
use crate::resigned::Resigned;
use crate::unattached::Unattached;
use crate::{Effect, KRaftVersion, QuorumDescription, QuorumState, ReplicaKey, VoterSet, VoterSetSource};

/// What a node finds on its disk when it starts.
#[derive(Clone, Debug)]
pub struct Start {
    pub node: ReplicaKey,
    /// The file; the default where there is none.
    pub quorum_state: QuorumState,
    pub kraft_version: KRaftVersion,
    pub voters: VoterSet,
    pub voters_source: VoterSetSource,
    /// Where the log ends and what epoch its last batch has, all of it synced.
    pub log_end: Offset,
    pub last_epoch: ControllerEpoch,
}

/// Why a node does not take part.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    #[error("the voter set is empty: format the metadata directory first")]
    NoVoters,
    #[error("node {node} is not in the voter set, which is {voters}")]
    NotAVoter { node: ReplicaKey, voters: String },
    #[error("the voter set is {voters}: a quorum of more than the one voter {node} is not supported")]
    OtherVoters { node: ReplicaKey, voters: String },
    #[error("the log's last epoch is {log}, above the epoch {state} of quorum-state")]
    EpochBehindLog {
        log: ControllerEpoch,
        state: ControllerEpoch,
    },
    #[error("epochs are used up")]
    EpochsUsedUp,
}

/// An append that came to a node which does not lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this node does not lead the quorum")]
pub struct NotLeader;

/// The role, for logs and metrics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RoleName {
    Unattached,
    Candidate,
    Leader,
    Resigned,
}

#[derive(Clone, Debug)]
enum Role {
    Unattached(Unattached),
    Candidate(Candidate),
    Leader(Leader),
    Resigned(Resigned),
}

/// One node of the quorum.
#[derive(Clone, Debug)]
pub struct Raft {
    node: ReplicaKey,
    kraft_version: KRaftVersion,
    voters: VoterSet,
    voters_source: VoterSetSource,
    role: Role,
    log_end: Offset,
    synced: Offset,
}

impl Raft {
    /// Starts in the epoch of the file, and stands for election in the next one.
    ///
    /// # Errors
    /// If the node is not the one voter, or its file is older than its log.
    pub fn start(start: Start, effects: &mut Vec<Effect>) -> Result<Self, StartError> {
        check_voters(start.node, &start.voters)?;
        let epoch = start.quorum_state.epoch;
        if start.last_epoch > epoch {
            return Err(StartError::EpochBehindLog {
                log: start.last_epoch,
                state: epoch,
            });
        }
        let unattached = Unattached { epoch };
        let candidate = unattached.stand().ok_or(StartError::EpochsUsedUp)?;
        let mut raft = Raft {
            node: start.node,
            kraft_version: start.kraft_version,
            voters: start.voters,
            voters_source: start.voters_source,
            role: Role::Unattached(unattached),
            log_end: start.log_end,
            synced: start.log_end,
        };
        effects.push(Effect::SaveQuorumState(candidate.vote(raft.node)));
        raft.role = Role::Candidate(candidate);
        Ok(raft)
    }

    #[must_use]
    pub fn role(&self) -> RoleName {
        match self.role {
            Role::Unattached(_) => RoleName::Unattached,
            Role::Candidate(_) => RoleName::Candidate,
            Role::Leader(_) => RoleName::Leader,
            Role::Resigned(_) => RoleName::Resigned,
        }
    }

    #[must_use]
    pub fn epoch(&self) -> ControllerEpoch {
        match &self.role {
            Role::Unattached(role) => role.epoch,
            Role::Candidate(role) => role.epoch,
            Role::Leader(role) => role.epoch,
            Role::Resigned(role) => role.epoch,
        }
    }

    #[must_use]
    pub fn node(&self) -> ReplicaKey {
        self.node
    }

    #[must_use]
    pub fn kraft_version(&self) -> KRaftVersion {
        self.kraft_version
    }

    #[must_use]
    pub fn voters(&self) -> &VoterSet {
        &self.voters
    }

    /// The leader of the epoch, as far as known here.
    #[must_use]
    pub fn leader(&self) -> Option<BrokerId> {
        matches!(self.role, Role::Leader(_)).then_some(self.node.id)
    }

    #[must_use]
    pub fn high_watermark(&self) -> Option<Offset> {
        match &self.role {
            Role::Leader(leader) => leader.high_watermark(),
            _ => None,
        }
    }

    /// The epoch to stamp on a batch that is about to be appended.
    ///
    /// # Errors
    /// If this node does not lead.
    pub fn append_epoch(&self) -> Result<ControllerEpoch, NotLeader> {
        match &self.role {
            Role::Leader(leader) => Ok(leader.epoch),
            _ => Err(NotLeader),
        }
    }

    /// # Errors
    /// If this node does not lead.
    pub fn describe(&self) -> Result<QuorumDescription, NotLeader> {
        match &self.role {
            Role::Leader(leader) => Ok(QuorumDescription {
                leader: self.node.id,
                epoch: leader.epoch,
                high_watermark: leader.high_watermark(),
                voters: self.voters.clone(),
                log_end: self.log_end,
            }),
            _ => Err(NotLeader),
        }
    }

    /// The file of `epoch` is on disk. For a candidate that is its own vote, and with one voter the election.
    pub fn on_quorum_state_saved(&mut self, epoch: ControllerEpoch, effects: &mut Vec<Effect>) {
        if epoch != self.epoch() {
            return;
        }
        let Role::Candidate(candidate) = &self.role else { return };
        let leader = candidate.win();
        effects.push(Effect::SaveQuorumState(leader.state(self.node)));
        let bootstrap = (self.voters_source == VoterSetSource::Bootstrap).then_some(self.kraft_version);
        effects.push(Effect::AppendControl {
            epoch: leader.epoch,
            records: epoch_start(self.node.id, &self.voters, bootstrap),
        });
        self.role = Role::Leader(leader);
    }

    /// A batch of this node's epoch is in the log, which now ends at `end`.
    ///
    /// # Panics
    /// If the log would shrink: a leader never truncates.
    pub fn on_appended(&mut self, end: Offset, effects: &mut Vec<Effect>) {
        assert!(end > self.log_end, "an append moves the log's end forward");
        let start = self.log_end;
        self.log_end = end;
        if let Role::Leader(leader) = &mut self.role {
            if self.voters_source == VoterSetSource::Bootstrap {
                // LeaderChange, KRaftVersion, KRaftVoters: a voter set counts from its append on.
                self.voters_source = VoterSetSource::Log(start.plus(2));
            }
            leader.on_appended(end);
            effects.push(Effect::Sync);
        }
    }

    /// Everything below `synced` is on this node's disk.
    pub fn on_synced(&mut self, synced: Offset, effects: &mut Vec<Effect>) {
        assert!(synced <= self.log_end, "no more is synced than was appended");
        self.synced = self.synced.max(synced);
        let Role::Leader(leader) = &mut self.role else { return };
        let epoch = leader.epoch;
        match leader.on_synced(self.synced) {
            Advance::None => {}
            Advance::First(offset) => effects.extend([Effect::AdvanceHighWatermark(offset), Effect::Lead { epoch }]),
            Advance::Further(offset) => effects.push(Effect::AdvanceHighWatermark(offset)),
        }
    }

    /// The node is about to stop.
    pub fn on_shutdown(&mut self, effects: &mut Vec<Effect>) {
        let epoch = self.epoch();
        if matches!(self.role, Role::Leader(_)) {
            effects.push(Effect::Resign { epoch });
        }
        self.role = Role::Resigned(Resigned { epoch });
    }
}

fn check_voters(node: ReplicaKey, voters: &VoterSet) -> Result<(), StartError> {
    let text = || {
        let keys: Vec<String> = voters.iter().map(|voter| voter.key.to_string()).collect();
        keys.join(", ")
    };
    if voters.is_empty() {
        Err(StartError::NoVoters)
    } else if !voters.is_voter(node) {
        Err(StartError::NotAVoter { node, voters: text() })
    } else if voters.len() > 1 {
        Err(StartError::OtherVoters { node, voters: text() })
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
