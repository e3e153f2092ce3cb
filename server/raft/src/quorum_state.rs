//! The file `quorum-state`: the epoch a node is in and the vote it gave, so that no restart lets it vote twice.
//!
//! One line of JSON as Apache Kafka 4.4.0 writes it. `data_version` 1 belongs to kraft.version 1; version 0 has a cluster
//! id that is always empty, an applied offset that is always 0, and the voters' ids in place of the voted directory.

use model::{BrokerId, ControllerEpoch, DirectoryId, Uuid};
use serde::Deserialize;

use crate::{KRaftVersion, ReplicaKey};

/// What the file holds.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct QuorumState {
    pub epoch: ControllerEpoch,
    /// The leader of that epoch, once known.
    pub leader: Option<BrokerId>,
    /// Whom this node voted for in that epoch; the directory is unknown at kraft.version 0.
    pub voted: Option<(BrokerId, Option<DirectoryId>)>,
}

/// A file that is not the state of a quorum.
#[derive(Debug, thiserror::Error)]
pub enum QuorumStateError {
    #[error("quorum-state is no JSON of the expected fields")]
    Json(#[source] serde_json::Error),
    #[error("quorum-state has data_version {0}, 0 and 1 are known")]
    Version(i64),
    #[error("quorum-state has leaderEpoch {0}, which is negative")]
    Epoch(i32),
    #[error("quorum-state has a votedDirectoryId that is no UUID")]
    Directory(#[source] model::ids::UuidError),
}

/// The greatest file that is read: real ones have about a hundred bytes.
const FILE_BYTES_MAX: usize = 64 << 10;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    leader_id: i32,
    leader_epoch: i32,
    voted_id: i32,
    voted_directory_id: Option<String>,
    current_voters: Option<Vec<FileVoter>>,
    #[serde(rename = "data_version")]
    data_version: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FileVoter {
    voter_id: i32,
}

impl QuorumState {
    /// Reads either version.
    ///
    /// # Errors
    /// If the text is not such a line, or a number in it cannot be.
    pub fn parse(text: &str) -> Result<Self, QuorumStateError> {
        let text = text.get(..text.len().min(FILE_BYTES_MAX)).unwrap_or_default();
        let file: File = serde_json::from_str(text).map_err(QuorumStateError::Json)?;
        if !(0..=1).contains(&file.data_version) {
            return Err(QuorumStateError::Version(file.data_version));
        }
        let directory = match file.voted_directory_id.as_deref() {
            None => None,
            Some(text) => Some(text.parse::<Uuid>().map_err(QuorumStateError::Directory)?),
        };
        let directory = directory.filter(|directory| !directory.is_zero());
        Ok(QuorumState {
            epoch: ControllerEpoch::from_wire(file.leader_epoch).ok_or(QuorumStateError::Epoch(file.leader_epoch))?,
            leader: BrokerId::from_wire(file.leader_id),
            voted: BrokerId::from_wire(file.voted_id).map(|id| (id, directory)),
        })
    }

    /// The voters that stand in the file at kraft.version 0, where the configuration names them and no log does; empty in a
    /// file of version 1.
    ///
    /// # Errors
    /// If the text is not such a line.
    pub fn static_voters(text: &str) -> Result<Vec<BrokerId>, QuorumStateError> {
        let text = text.get(..text.len().min(FILE_BYTES_MAX)).unwrap_or_default();
        let file: File = serde_json::from_str(text).map_err(QuorumStateError::Json)?;
        let voters = file.current_voters.unwrap_or_default();
        Ok(voters
            .iter()
            .filter_map(|voter| BrokerId::from_wire(voter.voter_id))
            .collect())
    }

    /// The line for a node that knows `version`; `voters` stand in it at version 0.
    #[must_use]
    pub fn render(&self, version: KRaftVersion, voters: &[ReplicaKey]) -> String {
        let leader = self.leader.map_or(-1, BrokerId::get);
        let (voted, directory) = match self.voted {
            None => (-1, Uuid::ZERO),
            Some((id, directory)) => (id.get(), directory.unwrap_or_default()),
        };
        let epoch = self.epoch;
        match version {
            KRaftVersion::Static => {
                let voters: Vec<String> = voters
                    .iter()
                    .map(|voter| format!("{{\"voterId\":{}}}", voter.id))
                    .collect();
                let voters = voters.join(",");
                format!(
                    "{{\"clusterId\":\"\",\"leaderId\":{leader},\"leaderEpoch\":{epoch},\"votedId\":{voted},\
                     \"appliedOffset\":0,\"currentVoters\":[{voters}],\"data_version\":0}}"
                )
            }
            KRaftVersion::Dynamic => format!(
                "{{\"leaderId\":{leader},\"leaderEpoch\":{epoch},\"votedId\":{voted},\
                 \"votedDirectoryId\":\"{directory}\",\"data_version\":1}}"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OF_A_LEADER: &str =
        r#"{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}"#;
    const OF_VERSION_0: &str = r#"{"clusterId":"","leaderId":3,"leaderEpoch":7,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":3}],"data_version":0}"#;

    #[test]
    fn the_files_that_kafka_writes_are_written_byte_for_byte() {
        let state = QuorumState::parse(OF_A_LEADER).unwrap();
        assert_eq!(state.leader, Some(BrokerId::new(1)));
        assert_eq!(state.render(KRaftVersion::Dynamic, &[]), OF_A_LEADER);
        let state = QuorumState::parse(OF_VERSION_0).unwrap();
        let voter = ReplicaKey {
            id: BrokerId::new(3),
            directory: Uuid::ZERO,
        };
        assert_eq!(state.render(KRaftVersion::Static, &[voter]), OF_VERSION_0);
        assert_eq!(QuorumState::static_voters(OF_VERSION_0).unwrap(), [BrokerId::new(3)]);
        assert!(QuorumState::static_voters(OF_A_LEADER).unwrap().is_empty());
    }

    #[test]
    fn a_file_of_another_version_or_with_a_negative_epoch_is_refused() {
        let newer = OF_A_LEADER.replace("version\":1", "version\":2");
        assert!(matches!(QuorumState::parse(&newer), Err(QuorumStateError::Version(2))));
        let negative = OF_A_LEADER.replace("leaderEpoch\":1", "leaderEpoch\":-1");
        assert!(matches!(
            QuorumState::parse(&negative),
            Err(QuorumStateError::Epoch(-1))
        ));
        assert!(matches!(QuorumState::parse("{"), Err(QuorumStateError::Json(_))));
    }

    proptest! {
        #[test]
        fn a_state_survives_its_file(
            epoch in 0..i32::MAX, leader in -1..5i32, voted in -1..5i32, directory in 100u8..
        ) {
            let voted = BrokerId::from_wire(voted).map(|id| (id, Some(Uuid::from_bytes([directory; 16]))));
            let state = QuorumState { epoch: ControllerEpoch::new(epoch), leader: BrokerId::from_wire(leader), voted };
            let text = state.render(KRaftVersion::Dynamic, &[]);
            prop_assert_eq!(QuorumState::parse(&text).unwrap(), state);
        }
    }
}
