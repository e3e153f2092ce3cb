//! The partitions that this node stores: by topic name and by topic id.
//!
//! Nothing here sees a request. Look-ups are many and changes few, so the map is behind a read-write lock that is never
//! held across anything slow.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock};

use model::{ErrorCode, PartitionIndex, TopicName, Uuid};

use crate::errors::Refusal;

mod fetch_wait;
mod flusher;
mod loading;
mod partition;

pub(crate) use fetch_wait::FetchWait;
pub(crate) use flusher::Flusher;
pub use loading::{DirectoryFigures, LogDirectories, LogDirectoriesError};
pub(crate) use loading::{DirectoryState, FailedDirectory, FutureState, MoveEnd, Placement, WantedMove, shown};
pub(crate) use partition::{Committed, FoundOffset, Partition, PartitionParts, Slice};

/// What a log directory's disk is to the broker.
pub type LogDisk = storage::GuardedDisk<storage::RealDisk>;

/// The partitions of one topic.
struct Topic {
    id: Uuid,
    partitions: BTreeMap<PartitionIndex, Arc<Partition>>,
}

#[derive(Default)]
struct Topics {
    by_name: BTreeMap<TopicName, Topic>,
    names: BTreeMap<Uuid, TopicName>,
    /// Led by this node, but the disk did not let it open their logs: on a full one, say. Tried again now and then. And those
    /// that nobody leads because their directory is offline.
    unopened: BTreeSet<(Uuid, PartitionIndex)>,
}

impl Topics {
    fn topic(&mut self, name: TopicName, id: Uuid) -> &mut Topic {
        self.names.insert(id, name.clone());
        self.by_name.entry(name).or_insert_with(|| Topic {
            id,
            partitions: BTreeMap::new(),
        })
    }

    fn find(&self, topic: Option<&Topic>, partition: i32) -> Result<Arc<Partition>, Refusal> {
        let index = PartitionIndex::from_wire(partition);
        let (Some(topic), Some(index)) = (topic, index) else {
            return Err(ErrorCode::UnknownTopicOrPartition.into());
        };
        match topic.partitions.get(&index) {
            Some(found) => Ok(found.clone()),
            None if self.unopened.contains(&(topic.id, index)) => Err(ErrorCode::KafkaStorageError.into()),
            None => Err(ErrorCode::UnknownTopicOrPartition.into()),
        }
    }
}

/// All partitions of this node.
#[derive(Default)]
pub(crate) struct Partitions {
    topics: RwLock<Topics>,
}

impl Partitions {
    /// # Errors
    /// UNKNOWN_TOPIC_OR_PARTITION where this node has no such partition, KAFKA_STORAGE_ERROR where it could not open it.
    pub(crate) fn by_name(&self, topic: &str, partition: i32) -> Result<Arc<Partition>, Refusal> {
        let topics = self.topics.read().unwrap_or_else(PoisonError::into_inner);
        topics.find(topics.by_name.get(topic), partition)
    }

    /// # Errors
    /// As [`Partitions::by_name`]; UNKNOWN_TOPIC_ID where no topic has the id.
    pub(crate) fn by_id(&self, topic: Uuid, partition: i32) -> Result<Arc<Partition>, Refusal> {
        let topics = self.topics.read().unwrap_or_else(PoisonError::into_inner);
        let name = topics.names.get(&topic).ok_or(ErrorCode::UnknownTopicId)?;
        topics.find(topics.by_name.get(name), partition)
    }

    pub(crate) fn add(&self, partition: Arc<Partition>) {
        let mut topics = self.topics.write().unwrap_or_else(PoisonError::into_inner);
        let (name, id) = (partition.topic().clone(), partition.topic_id());
        topics.unopened.remove(&(id, partition.index()));
        topics.topic(name, id).partitions.insert(partition.index(), partition);
    }

    /// The log of a partition that this node leads could not be opened.
    pub(crate) fn note_unopened(&self, topic: &TopicName, id: Uuid, index: PartitionIndex) {
        let mut topics = self.topics.write().unwrap_or_else(PoisonError::into_inner);
        topics.topic(topic.clone(), id);
        topics.unopened.insert((id, index));
    }

    /// It is not this node's to open any more.
    pub(crate) fn forget_unopened(&self, id: Uuid, index: PartitionIndex) {
        let mut topics = self.topics.write().unwrap_or_else(PoisonError::into_inner);
        topics.unopened.remove(&(id, index));
    }

    pub(crate) fn unopened(&self) -> Vec<(Uuid, PartitionIndex)> {
        let topics = self.topics.read().unwrap_or_else(PoisonError::into_inner);
        topics.unopened.iter().copied().collect()
    }

    pub(crate) fn has_unopened(&self) -> bool {
        let topics = self.topics.read().unwrap_or_else(PoisonError::into_inner);
        !topics.unopened.is_empty()
    }

    /// Takes a topic out; its partitions live on for as long as somebody holds them.
    pub(crate) fn remove_topic(&self, id: Uuid) -> Vec<Arc<Partition>> {
        let mut topics = self.topics.write().unwrap_or_else(PoisonError::into_inner);
        topics.unopened.retain(|(topic, _)| *topic != id);
        let Some(name) = topics.names.remove(&id) else {
            return Vec::new();
        };
        // A topic of the same name with another id may have been added already.
        match topics.by_name.get(&name) {
            Some(topic) if topic.id == id => {}
            _ => return Vec::new(),
        }
        let topic = topics.by_name.remove(&name);
        topic
            .map(|topic| topic.partitions.into_values().collect())
            .unwrap_or_default()
    }

    pub(crate) fn get(&self, id: Uuid, index: PartitionIndex) -> Option<Arc<Partition>> {
        let topics = self.topics.read().unwrap_or_else(PoisonError::into_inner);
        let topic = topics.names.get(&id).and_then(|name| topics.by_name.get(name));
        topic.and_then(|topic| topic.partitions.get(&index)).cloned()
    }

    pub(crate) fn topic(&self, name: &TopicName) -> Vec<Arc<Partition>> {
        let topics = self.topics.read().unwrap_or_else(PoisonError::into_inner);
        topics
            .by_name
            .get(name)
            .map(|topic| topic.partitions.values().cloned().collect())
            .unwrap_or_default()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Partition>> {
        let topics = self.topics.read().unwrap_or_else(PoisonError::into_inner);
        topics
            .by_name
            .values()
            .flat_map(|topic| topic.partitions.values().cloned())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_that_could_not_be_opened_is_a_storage_error_until_its_topic_is_gone() {
        let partitions = Partitions::default();
        let (topic, id) = (TopicName::new("t").unwrap(), Uuid::from_bytes([7; 16]));
        let code = |partition| partitions.by_name("t", partition).err().map(|refusal| refusal.code);
        assert_eq!(code(0), Some(ErrorCode::UnknownTopicOrPartition));
        partitions.note_unopened(&topic, id, PartitionIndex::new(0));
        assert_eq!(code(0), Some(ErrorCode::KafkaStorageError));
        assert_eq!(code(1), Some(ErrorCode::UnknownTopicOrPartition));
        let by_id = partitions.by_id(id, 0).err().map(|refusal| refusal.code);
        assert_eq!(by_id, Some(ErrorCode::KafkaStorageError));
        assert_eq!(partitions.unopened(), [(id, PartitionIndex::new(0))]);
        assert!(partitions.remove_topic(id).is_empty());
        assert_eq!(code(0), Some(ErrorCode::UnknownTopicOrPartition));
        assert!(!partitions.has_unopened());
    }
}
