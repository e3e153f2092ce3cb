//! Which of a broker's directories its replicas lie in, as the broker tells it, and what becomes of those in a directory
//! that fails (KIP-858).

use std::collections::BTreeSet;

use model::{BrokerId, DirectoryId, ErrorCode, PartitionIndex, TopicId};
use protocol::internal_records::metadata::{MetadataRecord, PartitionChangeRecord};
use protocol::messages::assign_replicas_to_dirs_request::AssignReplicasToDirsRequest;
use protocol::messages::assign_replicas_to_dirs_response::{
    AssignReplicasToDirsResponse, DirectoryData, PartitionData, TopicData,
};

use super::{Controller, Outcome, Refusal, check_batch};
use crate::image::PartitionImage;

impl Controller {
    /// # Errors
    /// If the broker is not registered under that epoch, or the request names too much. What is wrong with single
    /// partitions is in the response.
    pub fn assign_replicas_to_directories(
        &self,
        request: &AssignReplicasToDirsRequest,
    ) -> Result<Outcome<AssignReplicasToDirsResponse>, Refusal> {
        let broker = self.registered(request.broker_id, request.broker_epoch)?;
        let mut outcome = Outcome::of(AssignReplicasToDirsResponse::default());
        let mut in_failed = BTreeSet::new();
        for directory in &request.directories {
            let failed = !broker.has_online_directory(directory.id);
            let mut answer = DirectoryData {
                id: directory.id,
                ..DirectoryData::default()
            };
            for topic in &directory.topics {
                let mut partitions = Vec::with_capacity(topic.partitions.len());
                for partition in &topic.partitions {
                    let assigned = self.assign(broker.id, directory.id, topic.topic_id, partition.partition_index);
                    let code = match assigned {
                        Ok((index, change)) => {
                            outcome.records.extend(change);
                            if failed {
                                in_failed.insert((topic.topic_id, index));
                            }
                            ErrorCode::None
                        }
                        Err(code) => code,
                    };
                    partitions.push(PartitionData {
                        partition_index: partition.partition_index,
                        error_code: code.code(),
                        ..PartitionData::default()
                    });
                }
                answer.topics.push(TopicData {
                    topic_id: topic.topic_id,
                    partitions,
                    ..TopicData::default()
                });
            }
            outcome.response.directories.push(answer);
        }
        if !in_failed.is_empty() {
            let changes = self.partition_changes_at(
                &|topic_id, index, _| in_failed.contains(&(topic_id, index)),
                Some(broker.id),
                None,
                &BTreeSet::new(),
            );
            outcome.records.extend(changes.into_iter().map(MetadataRecord::from));
        }
        check_batch(&outcome.records)?;
        Ok(outcome)
    }

    fn assign(
        &self,
        broker: BrokerId,
        directory: DirectoryId,
        topic_id: TopicId,
        index: i32,
    ) -> Result<(PartitionIndex, Option<MetadataRecord>), ErrorCode> {
        let topic = self.image().topics.by_id(topic_id).ok_or(ErrorCode::UnknownTopicId)?;
        let index = PartitionIndex::from_wire(index).ok_or(ErrorCode::UnknownTopicOrPartition)?;
        let partition = topic.partitions.get(&index).ok_or(ErrorCode::UnknownTopicOrPartition)?;
        if !partition.replicas.contains(&broker) {
            return Err(ErrorCode::NotLeaderOrFollower);
        }
        if partition.directory_of(broker) == directory {
            return Ok((index, None));
        }
        let replicas = partition.replicas.iter();
        let directories = replicas.map(|replica| match *replica == broker {
            true => directory,
            false => partition.directory_of(*replica),
        });
        let mut moved = PartitionImage::clone(partition);
        moved.directories = directories.collect();
        // What was found again in another directory can be led from there.
        let election = moved.leader.is_none().then(|| self.election(topic, index, &moved));
        let change = PartitionChangeRecord {
            partition_id: index.get(),
            topic_id,
            directories: Some(moved.directories),
            ..election.flatten().unwrap_or_default()
        };
        Ok((index, Some(change.into())))
    }

    /// What lies in these directories of a broker goes on without it.
    pub(super) fn directory_failure_records(
        &self,
        broker: BrokerId,
        failed: &BTreeSet<DirectoryId>,
    ) -> Vec<MetadataRecord> {
        let changes = self.partition_changes(
            &|partition| partition.replicas.contains(&broker) && failed.contains(&partition.directory_of(broker)),
            Some(broker),
            None,
            &BTreeSet::new(),
        );
        changes.into_iter().map(MetadataRecord::from).collect()
    }
}
