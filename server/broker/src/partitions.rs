//! The partitions that this node stores: by topic name and by topic id.
//!
//! Nothing here sees a request. Look-ups are many and changes few, so the map is behind a read-write lock that is never
//! held across anything slow.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use model::{ErrorCode, PartitionIndex, TopicName, Uuid};

use crate::errors::Refusal;

mod fetch_wait;
mod flusher;
mod loading;
mod partition;

pub(crate) use fetch_wait::FetchWait;
pub(crate) use flusher::Flusher;
pub use loading::{LogDirectories, LogDirectoriesError};
pub(crate) use partition::{Committed, FoundOffset, Partition, PartitionParts, Slice};

/// The partitions of one topic.
struct Topic {
    id: Uuid,
    partitions: BTreeMap<PartitionIndex, Arc<Partition>>,
}

#[derive(Default)]
struct Topics {
    by_name: BTreeMap<TopicName, Topic>,
    names: BTreeMap<Uuid, TopicName>,
}

/// All partitions of this node.
#[derive(Default)]
pub(crate) struct Partitions {
    topics: RwLock<Topics>,
}

impl Partitions {
    /// # Errors
    /// UNKNOWN_TOPIC_OR_PARTITION where this node has no such partition.
    pub(crate) fn by_name(&self, topic: &str, partition: i32) -> Result<Arc<Partition>, Refusal> {
        let topics = self.topics.read().unwrap_or_else(PoisonError::into_inner);
        let index = PartitionIndex::from_wire(partition).ok_or(ErrorCode::UnknownTopicOrPartition)?;
        let found = topics.by_name.get(topic).and_then(|topic| topic.partitions.get(&index));
        found.cloned().ok_or_else(|| ErrorCode::UnknownTopicOrPartition.into())
    }

    /// # Errors
    /// UNKNOWN_TOPIC_ID where no topic has the id, UNKNOWN_TOPIC_OR_PARTITION where it has no such partition.
    pub(crate) fn by_id(&self, topic: Uuid, partition: i32) -> Result<Arc<Partition>, Refusal> {
        let topics = self.topics.read().unwrap_or_else(PoisonError::into_inner);
        let name = topics.names.get(&topic).ok_or(ErrorCode::UnknownTopicId)?;
        let index = PartitionIndex::from_wire(partition).ok_or(ErrorCode::UnknownTopicOrPartition)?;
        let found = topics.by_name.get(name).and_then(|topic| topic.partitions.get(&index));
        found.cloned().ok_or_else(|| ErrorCode::UnknownTopicOrPartition.into())
    }

    pub(crate) fn add(&self, partition: Arc<Partition>) {
        let mut topics = self.topics.write().unwrap_or_else(PoisonError::into_inner);
        let (name, id) = (partition.topic().clone(), partition.topic_id());
        topics.names.insert(id, name.clone());
        let topic = topics.by_name.entry(name).or_insert_with(|| Topic {
            id,
            partitions: BTreeMap::new(),
        });
        topic.partitions.insert(partition.index(), partition);
    }

    /// Takes a topic out; its partitions live on for as long as somebody holds them.
    pub(crate) fn remove_topic(&self, id: Uuid) -> Vec<Arc<Partition>> {
        let mut topics = self.topics.write().unwrap_or_else(PoisonError::into_inner);
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
