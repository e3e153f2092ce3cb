//! What members tell each other through the coordinator: subscriptions and assignments, behind a version of their own.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use model::{PartitionIndex, TopicName, TopicPartition};
use protocol::messages::consumer_protocol_assignment::{self, ConsumerProtocolAssignment};
use protocol::messages::consumer_protocol_subscription::ConsumerProtocolSubscription;
use protocol::{EncodeError, Message, Reader, Text, Writer};

/// What this member writes: topics alone. What others write may be newer.
const VERSION_WRITTEN: i16 = 0;

pub(super) fn encode_subscription(topics: &BTreeSet<TopicName>) -> Result<Bytes, EncodeError> {
    let subscription = ConsumerProtocolSubscription {
        topics: topics.iter().map(|name| Text::from(name.as_str())).collect(),
        ..Default::default()
    };
    encode(&subscription)
}

/// The topics of a subscription; `None` if the bytes are none.
pub(super) fn subscribed_topics(bytes: &Bytes) -> Option<BTreeSet<TopicName>> {
    let subscription: ConsumerProtocolSubscription = decode(bytes)?;
    Some(
        subscription
            .topics
            .iter()
            .filter_map(|name| TopicName::new(name).ok())
            .collect(),
    )
}

pub(super) fn encode_assignment(partitions: &BTreeSet<TopicPartition>) -> Result<Bytes, EncodeError> {
    let mut topics: BTreeMap<&TopicName, Vec<i32>> = BTreeMap::new();
    for partition in partitions {
        topics
            .entry(&partition.topic)
            .or_default()
            .push(partition.partition.get());
    }
    let assignment = ConsumerProtocolAssignment {
        assigned_partitions: topics
            .into_iter()
            .map(|(name, partitions)| consumer_protocol_assignment::TopicPartition {
                topic: Text::from(name.as_str()),
                partitions,
            })
            .collect(),
        ..Default::default()
    };
    encode(&assignment)
}

/// The partitions of an assignment; no bytes are no partitions, `None` if the bytes are no assignment.
pub(crate) fn assigned_partitions(bytes: &Bytes) -> Option<BTreeSet<TopicPartition>> {
    if bytes.is_empty() {
        return Some(BTreeSet::new());
    }
    let assignment: ConsumerProtocolAssignment = decode(bytes)?;
    let topics = assignment.assigned_partitions.iter().filter_map(|topic| {
        let name = TopicName::new(&topic.topic).ok()?;
        Some(topic.partitions.iter().filter_map(move |index| {
            Some(TopicPartition {
                topic: name.clone(),
                partition: PartitionIndex::from_wire(*index)?,
            })
        }))
    });
    Some(topics.flatten().collect())
}

fn encode<M: Message>(message: &M) -> Result<Bytes, EncodeError> {
    let mut writer = Writer::new();
    writer.i16(VERSION_WRITTEN);
    message.encode(&mut writer, VERSION_WRITTEN)?;
    Ok(writer.into_bytes())
}

/// Reads a newer version than is known as the newest known one: later versions only add at the end.
fn decode<M: Message>(bytes: &Bytes) -> Option<M> {
    let (version, body) = bytes.split_first_chunk::<2>()?;
    let version = i16::from_be_bytes(*version);
    if version < 0 {
        return None;
    }
    M::decode(&mut Reader::new(bytes.slice_ref(body)), version.min(M::LAST_VERSION)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partition(topic: &str, index: i32) -> TopicPartition {
        TopicPartition {
            topic: TopicName::new(topic).unwrap(),
            partition: PartitionIndex::new(index),
        }
    }

    #[test]
    fn an_assignment_survives_its_bytes() {
        let partitions = BTreeSet::from([partition("a", 0), partition("a", 3), partition("b", 1)]);
        let bytes = encode_assignment(&partitions).unwrap();
        assert_eq!(assigned_partitions(&bytes), Some(partitions));
    }

    #[test]
    fn a_subscription_has_the_bytes_that_other_clients_read() {
        let topics = BTreeSet::from([TopicName::new("ab").unwrap()]);
        let bytes = encode_subscription(&topics).unwrap();
        assert_eq!(&bytes[..], b"\0\0\0\0\0\x01\0\x02ab\xff\xff\xff\xff");
        assert_eq!(subscribed_topics(&bytes), Some(topics));
    }

    #[test]
    fn a_newer_subscription_is_read_as_far_as_it_is_known() {
        let mut bytes = b"\0\x09\0\0\0\x01\0\x02ab\xff\xff\xff\xff".to_vec();
        bytes.extend_from_slice(b"\0\0\0\0\0\0\0\x05\xff\xff and more");
        let topics = subscribed_topics(&Bytes::from(bytes)).unwrap();
        assert_eq!(topics.len(), 1);
    }

    #[test]
    fn other_bytes_are_no_assignment() {
        assert_eq!(assigned_partitions(&Bytes::from_static(b"\0")), None);
        assert_eq!(assigned_partitions(&Bytes::from_static(b"\xff\xff\0\0\0\0")), None);
        assert_eq!(assigned_partitions(&Bytes::from_static(b"\0\0\x7f\xff\xff\xff")), None);
        assert_eq!(assigned_partitions(&Bytes::new()), Some(BTreeSet::new()));
    }
}
