//! What the quorum itself writes into the log and into snapshots (KIP-595, KIP-630, KIP-853).

use model::{BrokerId, Offset, Timestamp};
use protocol::internal_records::control::{
    ControlRecord, KRaftVersionRecord, LeaderChangeMessage, SnapshotFooterRecord, SnapshotHeaderRecord, VotersRecord,
};
use protocol::messages::{leader_change_message, voters_record};

use crate::{KRaftVersion, ReplicaKey, Voter, VoterEndpoint, VoterSet};

/// A control record whose values cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ControlRecordError {
    #[error("voter id {0} is negative")]
    VoterId(i32),
    #[error("voter {0} stands in the voter set twice")]
    RepeatedVoter(BrokerId),
    #[error("kraft.version {0} is not known")]
    KRaftVersion(i16),
}

/// The first records of an epoch. The voters follow the leader change where the log does not hold them yet.
#[must_use]
pub fn epoch_start(leader: BrokerId, voters: &VoterSet, bootstrap: Option<KRaftVersion>) -> Vec<ControlRecord> {
    let id_of = |voter_id: i32| leader_change_message::Voter {
        voter_id,
        ..Default::default()
    };
    let mut records = vec![ControlRecord::LeaderChange(LeaderChangeMessage {
        leader_id: leader.get(),
        voters: voters.iter().map(|voter| id_of(voter.key.id.get())).collect(),
        granting_voters: vec![id_of(leader.get())],
        ..Default::default()
    })];
    if let Some(version) = bootstrap {
        records.extend([kraft_version_record(version), voters_record(voters)]);
    }
    records
}

/// The control records that a snapshot begins with. Voters are left out where the configuration names them.
#[must_use]
pub fn snapshot_header(
    last_contained_log_time: Timestamp,
    version: KRaftVersion,
    voters: &VoterSet,
) -> Vec<ControlRecord> {
    let mut records = vec![ControlRecord::SnapshotHeader(SnapshotHeaderRecord {
        last_contained_log_timestamp: last_contained_log_time.millis(),
        ..Default::default()
    })];
    if version != KRaftVersion::Static {
        records.push(kraft_version_record(version));
        if !voters.is_empty() {
            records.push(voters_record(voters));
        }
    }
    records
}

/// The record that ends a snapshot.
#[must_use]
pub fn snapshot_footer() -> ControlRecord {
    ControlRecord::SnapshotFooter(SnapshotFooterRecord::default())
}

fn kraft_version_record(version: KRaftVersion) -> ControlRecord {
    ControlRecord::KRaftVersion(KRaftVersionRecord {
        kraft_version: version.level(),
        ..Default::default()
    })
}

fn voters_record(voters: &VoterSet) -> ControlRecord {
    let voters = voters.iter().map(|voter| voters_record::Voter {
        voter_id: voter.key.id.get(),
        voter_directory_id: voter.key.directory,
        endpoints: voter
            .endpoints
            .iter()
            .map(|endpoint| voters_record::Endpoint {
                name: endpoint.name.clone(),
                host: endpoint.host.clone(),
                port: endpoint.port,
                ..Default::default()
            })
            .collect(),
        kraft_version_feature: voters_record::KRaftVersionFeature {
            min_supported_version: voter.kraft_versions.0,
            max_supported_version: voter.kraft_versions.1,
            ..Default::default()
        },
        ..Default::default()
    });
    ControlRecord::KRaftVoters(VotersRecord {
        voters: voters.collect(),
        ..Default::default()
    })
}

/// What the control records seen so far say of the quorum: the last of each kind is in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuorumRecords {
    pub kraft_version: Option<KRaftVersion>,
    pub voters: Option<(VoterSet, Option<Offset>)>,
}

impl QuorumRecords {
    /// Takes in a control record; `offset` is its place in the log, `None` in a snapshot.
    ///
    /// # Errors
    /// If the record names a version or voters that cannot be.
    pub fn see(&mut self, offset: Option<Offset>, record: &ControlRecord) -> Result<(), ControlRecordError> {
        match record {
            ControlRecord::KRaftVersion(record) => {
                let level = record.kraft_version;
                let version = KRaftVersion::from_level(level).ok_or(ControlRecordError::KRaftVersion(level))?;
                self.kraft_version = Some(version);
            }
            ControlRecord::KRaftVoters(record) => self.voters = Some((voter_set(record)?, offset)),
            _ => {}
        }
        Ok(())
    }
}

fn voter_set(record: &VotersRecord) -> Result<VoterSet, ControlRecordError> {
    let voter = |voter: &voters_record::Voter| {
        let id = BrokerId::from_wire(voter.voter_id).ok_or(ControlRecordError::VoterId(voter.voter_id))?;
        let range = &voter.kraft_version_feature;
        Ok(Voter {
            key: ReplicaKey {
                id,
                directory: voter.voter_directory_id,
            },
            endpoints: voter
                .endpoints
                .iter()
                .map(|endpoint| VoterEndpoint {
                    name: endpoint.name.clone(),
                    host: endpoint.host.clone(),
                    port: endpoint.port,
                })
                .collect(),
            kraft_versions: (range.min_supported_version, range.max_supported_version),
        })
    };
    let voters: Vec<Voter> = record
        .voters
        .iter()
        .map(voter)
        .collect::<Result<_, ControlRecordError>>()?;
    let set = VoterSet::new(voters.iter().cloned());
    match voters.iter().find(|voter| set.get(voter.key.id) != Some(*voter)) {
        Some(repeated) => Err(ControlRecordError::RepeatedVoter(repeated.key.id)),
        None => Ok(set),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Uuid;

    fn set() -> VoterSet {
        VoterSet::new([Voter {
            key: ReplicaKey {
                id: BrokerId::new(1),
                directory: Uuid::from_bytes([7; 16]),
            },
            endpoints: vec![VoterEndpoint {
                name: "CONTROLLER".into(),
                host: "127.0.0.1".into(),
                port: 9093,
            }],
            kraft_versions: (0, 1),
        }])
    }

    #[test]
    fn voters_written_at_the_start_of_an_epoch_are_read_back() {
        let mut seen = QuorumRecords::default();
        for (at, record) in epoch_start(BrokerId::new(1), &set(), Some(KRaftVersion::Dynamic))
            .iter()
            .enumerate()
        {
            let bytes = (record.key_bytes().unwrap(), record.value_bytes().unwrap());
            let read = ControlRecord::from_bytes(bytes.0, bytes.1).unwrap();
            seen.see(Offset::from_wire(at.try_into().unwrap()), &read).unwrap();
        }
        assert_eq!(seen.kraft_version, Some(KRaftVersion::Dynamic));
        assert_eq!(seen.voters, Some((set(), Some(Offset::new(2)))));
    }

    #[test]
    fn a_log_that_holds_the_voters_gets_only_a_leader_change() {
        let records = epoch_start(BrokerId::new(1), &set(), None);
        assert!(matches!(records.as_slice(), [ControlRecord::LeaderChange(_)]));
    }

    #[test]
    fn a_voter_named_twice_is_refused() {
        let ControlRecord::KRaftVoters(mut record) = voters_record(&set()) else {
            panic!("the voters' record")
        };
        record.voters.push(voters_record::Voter {
            voter_id: 1,
            ..Default::default()
        });
        let error = QuorumRecords::default().see(None, &ControlRecord::KRaftVoters(record));
        assert_eq!(error, Err(ControlRecordError::RepeatedVoter(BrokerId::new(1))));
    }
}
