//! AlterReplicaLogDirs, versions 1–2: partitions of this broker are to lie in another of its log directories (KIP-113).
//!
//! What is asked for is begun, not done, when the answer leaves; DescribeLogDirs shows how far it is. A partition that is
//! named with the directory that it lies in stays there: a move that is under way is given up. One that is not there yet is
//! made in the directory, if it is made while this node runs.
//!
//! | error | of what |
//! |---|---|
//! | LOG_DIR_NOT_FOUND | a path that is none of the node's directories, as DescribeLogDirs spells them |
//! | KAFKA_STORAGE_ERROR | that directory, or the partition's own, is offline or takes nothing |
//! | UNKNOWN_TOPIC_OR_PARTITION | the cluster has no such partition |
//! | REPLICA_NOT_AVAILABLE | this broker has none of it |
//! | INVALID_TOPIC_EXCEPTION | the topic's name leaves no room for that of the copy's folder |

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use model::{ErrorCode, PartitionIndex, TopicName, TopicPartition};
use network::Answer;
use protocol::messages::alter_replica_log_dirs_request::AlterReplicaLogDirsRequest;
use protocol::messages::alter_replica_log_dirs_response::{
    AlterReplicaLogDirPartitionResult, AlterReplicaLogDirTopicResult, AlterReplicaLogDirsResponse,
};
use tracing::{info, warn};

use crate::errors::describe;
use crate::node::Broker;
use crate::partitions::LogDirectories;

pub(crate) const VERSIONS: RangeInclusive<i16> = 1..=2;

/// Makes the folders of the copies, so it runs on the pool of threads that may wait for the disk.
pub(crate) async fn handle(broker: &Arc<Broker>, request: AlterReplicaLogDirsRequest) -> Answer {
    let broker = broker.clone();
    let done = tokio::task::spawn_blocking(move || answer(&broker, &request)).await;
    // The pool is going down with the node.
    done.map_or(Answer::Close, Answer::now)
}

fn answer(broker: &Arc<Broker>, request: &AlterReplicaLogDirsRequest) -> AlterReplicaLogDirsResponse {
    // Where a partition is named twice, the last directory counts.
    let mut wanted: BTreeMap<(&str, i32), &str> = BTreeMap::new();
    for directory in &request.dirs {
        for topic in &directory.topics {
            for partition in &topic.partitions {
                wanted.insert((&topic.name, *partition), &directory.path);
            }
        }
    }
    let mut topics: BTreeMap<&str, Vec<AlterReplicaLogDirPartitionResult>> = BTreeMap::new();
    for ((topic, partition), path) in wanted {
        let code = alter(broker, topic, partition, path).err().unwrap_or(ErrorCode::None);
        let results = topics.entry(topic).or_default();
        results.push(AlterReplicaLogDirPartitionResult {
            partition_index: partition,
            error_code: code.code(),
            ..AlterReplicaLogDirPartitionResult::default()
        });
    }
    broker.mover().wake();
    let results = topics
        .into_iter()
        .map(|(name, partitions)| AlterReplicaLogDirTopicResult {
            topic_name: name.into(),
            partitions,
            ..AlterReplicaLogDirTopicResult::default()
        });
    AlterReplicaLogDirsResponse {
        results: results.collect(),
        ..AlterReplicaLogDirsResponse::default()
    }
}

fn alter(broker: &Arc<Broker>, topic: &str, partition: i32, path: &str) -> Result<(), ErrorCode> {
    let named = TopicName::new(topic).ok().zip(PartitionIndex::from_wire(partition));
    let place = named.map(|(topic, partition)| TopicPartition { topic, partition });
    if place.as_ref().is_some_and(LogDirectories::is_name_too_long) {
        return Err(ErrorCode::InvalidTopicException);
    }
    let to = broker.directories().target(path)?;
    let place = place.ok_or(ErrorCode::UnknownTopicOrPartition)?;
    let running = match broker.partitions().by_name(topic, partition) {
        Ok(running) => running,
        Err(refusal) if refusal.code == ErrorCode::UnknownTopicOrPartition => {
            let image = broker.view().image;
            let known = image.topics.by_name(topic);
            let is_elsewhere = known.is_some_and(|topic| topic.partitions.contains_key(&place.partition));
            broker.directories().prefer(place, to);
            return Err(match is_elsewhere {
                true => ErrorCode::ReplicaNotAvailable,
                false => ErrorCode::UnknownTopicOrPartition,
            });
        }
        Err(refusal) => return Err(refusal.code),
    };
    if running.is_offline() {
        return Err(ErrorCode::KafkaStorageError);
    }
    match broker.directories().want_move(&place, running.topic_id(), to) {
        Ok(true) => {
            info!(
                topic,
                partition,
                directory = path,
                "the log is to lie in this directory"
            );
            Ok(())
        }
        Ok(false) => Ok(()),
        Err(error) => {
            let error = describe(&error);
            warn!(topic, partition, directory = path, error, "the log cannot be moved");
            Err(ErrorCode::KafkaStorageError)
        }
    }
}
