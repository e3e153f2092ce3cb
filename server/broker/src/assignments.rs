//! Tells the controller which directory each log lies in, where it knows of another or of none (KIP-858): by that it
//! finds the partitions of a directory that fails.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use metadata::image::Image;
use model::{BrokerId, DirectoryId, ErrorCode, PartitionIndex, TopicId};
use protocol::messages::assign_replicas_to_dirs_request::{
    AssignReplicasToDirsRequest, DirectoryData, PartitionData, TopicData,
};
use protocol::messages::assign_replicas_to_dirs_response::AssignReplicasToDirsResponse;
use protocol::{Request, Response};
use tokio::sync::Notify;
use tokio::time::sleep;
use tracing::{debug, info, warn};

use crate::node::Broker;

/// How long to wait before the controller is asked again.
const RETRY_WAIT: Duration = Duration::from_secs(1);
/// Partitions of one request, as Kafka's.
const PARTITIONS_MAX: usize = 2250;

type Place = (TopicId, PartitionIndex);

/// What is still to be told; no more than this broker has partitions.
#[derive(Default)]
pub(crate) struct Assignments {
    /// Known, but this broker does not show the image yet that the partitions are in.
    staged: Mutex<BTreeMap<Place, DirectoryId>>,
    pending: Mutex<BTreeMap<Place, DirectoryId>>,
    something: Notify,
}

impl Assignments {
    /// Notes where a log lies; it is told after the next [`Assignments::release`].
    pub(crate) fn add(&self, topic_id: TopicId, index: PartitionIndex, directory: DirectoryId) {
        let mut staged = self.staged.lock().unwrap_or_else(PoisonError::into_inner);
        staged.insert((topic_id, index), directory);
    }

    /// Notes where the log of a partition has moved that this broker's image has: it is told at once.
    pub(crate) fn tell(&self, topic_id: TopicId, index: PartitionIndex, directory: DirectoryId) {
        self.put([((topic_id, index), directory)], true);
    }

    /// This broker shows the image that all of it is in.
    pub(crate) fn release(&self) {
        let staged = std::mem::take(&mut *self.staged.lock().unwrap_or_else(PoisonError::into_inner));
        if !staged.is_empty() {
            self.put(staged, true);
        }
    }

    /// Where the same partition waits already, the newer word counts.
    fn put(&self, assigned: impl IntoIterator<Item = (Place, DirectoryId)>, is_newer: bool) {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        for (place, directory) in assigned {
            if is_newer {
                pending.insert(place, directory);
            } else {
                pending.entry(place).or_insert(directory);
            }
        }
        self.something.notify_one();
    }

    fn take(&self) -> BTreeMap<Place, DirectoryId> {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let next = pending.keys().nth(PARTITIONS_MAX).copied();
        let rest = next.map(|next| pending.split_off(&next)).unwrap_or_default();
        std::mem::replace(&mut *pending, rest)
    }
}

/// Tells the controller for as long as the task lives. One request is under way at a time.
pub(crate) async fn keep_telling(broker: Arc<Broker>) {
    loop {
        let assigned = broker.assignments().take();
        if assigned.is_empty() {
            broker.assignments().something.notified().await;
            continue;
        }
        let image = broker.view().image;
        let Some(request) = request(broker.id(), broker.epoch(), &image, &assigned) else {
            continue;
        };
        let done = match broker.controller().call(Request::from(request)).await {
            Ok(Response::AssignReplicasToDirs(response)) => is_taken(&response),
            Ok(_) => false,
            Err(error) => {
                warn!(%error, partitions = assigned.len(), "the controller was not told where logs lie");
                false
            }
        };
        if !done {
            broker.assignments().put(assigned, false);
            sleep(RETRY_WAIT).await;
        }
    }
}

/// `None` where nothing of it has to be told any more.
fn request(
    broker: BrokerId,
    broker_epoch: i64,
    image: &Image,
    assigned: &BTreeMap<Place, DirectoryId>,
) -> Option<AssignReplicasToDirsRequest> {
    let mut directories: BTreeMap<DirectoryId, BTreeMap<TopicId, Vec<PartitionData>>> = BTreeMap::new();
    for ((topic_id, index), directory) in assigned {
        let topic = image.topics.by_id(*topic_id);
        let partition = topic.and_then(|topic| topic.partitions.get(index));
        let to_tell = partition.is_some_and(|partition| {
            partition.replicas.contains(&broker)
                && (partition.directory_of(broker) != *directory || partition.leader.is_none())
        });
        if to_tell {
            let topics = directories.entry(*directory).or_default();
            topics.entry(*topic_id).or_default().push(PartitionData {
                partition_index: index.get(),
                ..PartitionData::default()
            });
        }
    }
    let directories = directories.into_iter().map(|(id, topics)| DirectoryData {
        id,
        topics: topics
            .into_iter()
            .map(|(topic_id, partitions)| TopicData {
                topic_id,
                partitions,
                ..TopicData::default()
            })
            .collect(),
        ..DirectoryData::default()
    });
    let directories: Vec<DirectoryData> = directories.collect();
    (!directories.is_empty()).then(|| AssignReplicasToDirsRequest {
        broker_id: broker.get(),
        broker_epoch,
        directories,
        ..AssignReplicasToDirsRequest::default()
    })
}

/// Whether the controller has decided on all of it. What it refuses for a single partition has been overtaken: the topic
/// is gone, or the replica another broker's.
fn is_taken(response: &AssignReplicasToDirsResponse) -> bool {
    if response.error_code != ErrorCode::None.code() {
        warn!(
            code = response.error_code,
            "the controller does not take where logs lie"
        );
        return false;
    }
    for directory in &response.directories {
        for topic in &directory.topics {
            for partition in &topic.partitions {
                let (index, code) = (partition.partition_index, partition.error_code);
                if code == ErrorCode::None.code() {
                    debug!(topic_id = %topic.topic_id, partition = index, directory = %directory.id, "assigned");
                } else {
                    info!(topic_id = %topic.topic_id, partition = index, code, "where it lies is not taken");
                }
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use model::TopicName;

    use super::*;

    #[test]
    fn only_what_the_controller_does_not_know_is_told_and_the_newest_word_counts() {
        let assignments = Assignments::default();
        let (topic_id, one, two) = (
            TopicId::from_bytes([1; 16]),
            DirectoryId::from_bytes([2; 16]),
            DirectoryId::from_bytes([3; 16]),
        );
        assignments.add(topic_id, PartitionIndex::new(0), one);
        assert!(assignments.take().is_empty(), "not before it is released");
        assignments.release();
        let taken = assignments.take();
        assignments.add(topic_id, PartitionIndex::new(0), two);
        assignments.release();
        assignments.put(taken, false);
        let taken = assignments.take();
        assert_eq!(taken.values().collect::<Vec<_>>(), [&two]);
        assert!(assignments.take().is_empty());

        let mut replay = metadata::Replay::default();
        let broker = BrokerId::new(1);
        let records: [protocol::internal_records::metadata::MetadataRecord; 2] = [
            protocol::internal_records::metadata::TopicRecord {
                name: TopicName::new("t").unwrap().as_str().into(),
                topic_id,
                ..Default::default()
            }
            .into(),
            protocol::internal_records::metadata::PartitionRecord {
                topic_id,
                replicas: vec![1],
                isr: vec![1],
                leader: 1,
                partition_id: 0,
                leader_epoch: 0,
                partition_epoch: 0,
                directories: vec![one],
                ..Default::default()
            }
            .into(),
        ];
        for record in &records {
            replay.record(record).unwrap();
        }
        let asked = |directory| {
            let assigned = BTreeMap::from([((topic_id, PartitionIndex::new(0)), directory)]);
            request(broker, 5, replay.image(), &assigned)
        };
        assert_eq!(asked(one), None);
        let request = asked(two).unwrap();
        assert_eq!((request.broker_epoch, request.directories[0].id), (5, two));
        assert_eq!(request.directories[0].topics[0].partitions.len(), 1);
    }
}
