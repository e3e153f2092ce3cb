//! DescribeLogDirs, versions 1–5: this broker's log directories, with the sizes of the logs in them (KIP-113) and from
//! version 4 on the room of their disks (KIP-827).
//!
//! A directory that is offline is listed with KAFKA_STORAGE_ERROR and nothing in it. One that became read-only is not
//! offline: what lies there is read. A partition that is on its way to another directory is listed in both.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use model::{ErrorCode, TopicPartition};
use network::Answer;
use protocol::Text;
use protocol::messages::describe_log_dirs_request::{DescribableLogDirTopic, DescribeLogDirsRequest};
use protocol::messages::describe_log_dirs_response::{
    DescribeLogDirsPartition, DescribeLogDirsResponse, DescribeLogDirsResult, DescribeLogDirsTopic,
};

use crate::node::Broker;
use crate::partitions::{DirectoryState, FutureState, Partition, shown};

pub(crate) const VERSIONS: RangeInclusive<i16> = 1..=5;

/// Asks the file systems, so it runs on the pool of threads that may wait for the disk.
pub(crate) async fn handle(broker: &Arc<Broker>, request: DescribeLogDirsRequest) -> Answer {
    let broker = broker.clone();
    let done = tokio::task::spawn_blocking(move || answer(&broker, &request)).await;
    // The pool is going down with the node.
    done.map_or(Answer::Close, Answer::now)
}

fn answer(broker: &Broker, request: &DescribeLogDirsRequest) -> DescribeLogDirsResponse {
    let partitions = broker.partitions().all();
    let results = broker.directories().states().into_iter().map(|directory| {
        let within = partitions.iter().filter(|it| it.log_directory() == directory.path);
        let asked = within.filter(|it| is_asked(request.topics.as_deref(), &it.place()));
        let mut result = render(&directory, asked);
        if !directory.is_offline {
            for future in broker.directories().futures(&directory.path) {
                if is_asked(request.topics.as_deref(), &future.place) {
                    add_future(&mut result, &partitions, &future);
                }
            }
        }
        result
    });
    DescribeLogDirsResponse {
        results: results.collect(),
        ..Default::default()
    }
}

fn is_asked(topics: Option<&[DescribableLogDirTopic]>, place: &TopicPartition) -> bool {
    let Some(topics) = topics else { return true };
    topics
        .iter()
        .any(|topic| *topic.topic == *place.topic.as_str() && topic.partitions.contains(&place.partition.get()))
}

fn render<'a>(
    directory: &DirectoryState,
    partitions: impl Iterator<Item = &'a Arc<Partition>>,
) -> DescribeLogDirsResult {
    let mut result = DescribeLogDirsResult {
        log_dir: shown(&directory.path).as_str().into(),
        ..Default::default()
    };
    if directory.is_offline {
        result.error_code = ErrorCode::KafkaStorageError.code();
        return result;
    }
    if let Some(room) = directory.room {
        result.total_bytes = wire(room.capacity_bytes);
        result.usable_bytes = wire(room.available_bytes);
    }
    let mut topics: BTreeMap<&str, Vec<DescribeLogDirsPartition>> = BTreeMap::new();
    for partition in partitions {
        let topic = topics.entry(partition.topic().as_str()).or_default();
        topic.push(DescribeLogDirsPartition {
            partition_index: partition.index().get(),
            partition_size: wire(partition.size_bytes()),
            offset_lag: 0,
            is_future_key: false,
            ..Default::default()
        });
    }
    let topics = topics.into_iter().map(|(name, partitions)| DescribeLogDirsTopic {
        name: Text::from(name),
        partitions,
        ..Default::default()
    });
    result.topics = topics.collect();
    result
}

/// A copy that grows: how large it is, and how many records it is behind.
fn add_future(result: &mut DescribeLogDirsResult, partitions: &[Arc<Partition>], future: &FutureState) {
    let log = partitions.iter().find(|it| it.place() == future.place);
    let log_end = log.map_or(future.end, |log| log.log_end_offset());
    let partition = DescribeLogDirsPartition {
        partition_index: future.place.partition.get(),
        partition_size: wire(future.size_bytes),
        offset_lag: log_end.since(future.end).max(0),
        is_future_key: true,
        ..Default::default()
    };
    let name = future.place.topic.as_str();
    match result.topics.iter_mut().find(|topic| *topic.name == *name) {
        Some(topic) => topic.partitions.push(partition),
        None => result.topics.push(DescribeLogDirsTopic {
            name: name.into(),
            partitions: vec![partition],
            ..Default::default()
        }),
    }
}

fn wire(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
