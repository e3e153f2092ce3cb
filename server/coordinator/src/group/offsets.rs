//! Committed offsets by group, topic and partition. Only replay changes them.

use std::collections::BTreeMap;

use protocol::Text;

use super::records::CommittedOffset;

type ByPartition = BTreeMap<i32, CommittedOffset>;
type ByTopic = BTreeMap<Text, ByPartition>;

/// No map in it is empty: a group or topic is there if and only if an offset is.
#[derive(Debug, Default)]
pub(super) struct Offsets {
    groups: BTreeMap<Text, ByTopic>,
}

impl Offsets {
    pub(super) fn get(&self, group_id: &str, topic: &str, partition: i32) -> Option<&CommittedOffset> {
        self.groups.get(group_id)?.get(topic)?.get(&partition)
    }

    pub(super) fn put(&mut self, group_id: Text, topic: Text, partition: i32, offset: CommittedOffset) {
        let topics = self.groups.entry(group_id).or_default();
        topics.entry(topic).or_default().insert(partition, offset);
    }

    pub(super) fn remove(&mut self, group_id: &str, topic: &str, partition: i32) {
        let Some(topics) = self.groups.get_mut(group_id) else {
            return;
        };
        if let Some(partitions) = topics.get_mut(topic) {
            partitions.remove(&partition);
            if partitions.is_empty() {
                topics.remove(topic);
            }
        }
        if topics.is_empty() {
            self.groups.remove(group_id);
        }
    }

    /// A group's topics with their offsets, in order.
    pub(super) fn topics(&self, group_id: &str) -> impl Iterator<Item = (&Text, &ByPartition)> {
        self.groups.get(group_id).into_iter().flatten()
    }

    /// All offsets of one topic, whatever the group.
    pub(super) fn of_topic(&self, topic: &str) -> impl Iterator<Item = (&Text, i32)> {
        self.groups.iter().flat_map(move |(group_id, topics)| {
            let partitions = topics.get(topic).into_iter().flat_map(BTreeMap::keys);
            partitions.map(move |partition| (group_id, *partition))
        })
    }

    pub(super) fn has_group(&self, group_id: &str) -> bool {
        self.groups.contains_key(group_id)
    }
}
