//! Deltas, transactions and records that do not fit.

use model::Uuid;
use protocol::internal_records::metadata::{
    AbortTransactionRecord, BeginTransactionRecord, ConfigRecord, EndTransactionRecord, PartitionRecord,
    RemoveTopicRecord, TopicRecord,
};

use super::*;

fn topic(name: &str, id: u8) -> MetadataRecord {
    TopicRecord {
        name: name.into(),
        topic_id: Uuid::from_bytes([id; 16]),
        ..TopicRecord::default()
    }
    .into()
}

fn partition(id: u8, index: i32) -> MetadataRecord {
    PartitionRecord {
        topic_id: Uuid::from_bytes([id; 16]),
        partition_id: index,
        replicas: vec![1],
        isr: vec![1],
        leader: 1,
        leader_epoch: 0,
        partition_epoch: 0,
        directories: vec![Uuid::ONE],
        ..PartitionRecord::default()
    }
    .into()
}

fn replayed(records: &[MetadataRecord]) -> Replay {
    let mut replay = Replay::default();
    records.iter().for_each(|record| replay.record(record).unwrap());
    replay
}

#[test]
fn a_delta_tells_what_changed_since_the_last() {
    let mut replay = replayed(&[topic("a", 9), partition(9, 0)]);
    let (delta, before) = replay.take().unwrap();
    let created = &delta.topics[&Uuid::from_bytes([9; 16])];
    assert!(created.created && created.partitions.len() == 1);
    let config = ConfigRecord {
        resource_type: 2,
        resource_name: "a".into(),
        name: "retention.ms".into(),
        value: Some("5".into()),
        ..ConfigRecord::default()
    };
    replay.record(&config.into()).unwrap();
    let (delta, image) = replay.take().unwrap();
    assert!(delta.topics.is_empty());
    assert!(delta.configs.contains(&ConfigResource::topic("a")));
    // What did not change is shared, not copied.
    assert!(std::sync::Arc::ptr_eq(&before.topics, &image.topics));
    let remove = RemoveTopicRecord {
        topic_id: Uuid::from_bytes([9; 16]),
        ..Default::default()
    };
    replay.record(&remove.into()).unwrap();
    let (delta, image) = replay.take().unwrap();
    assert!(delta.topics[&Uuid::from_bytes([9; 16])].removed);
    assert!(delta.configs.contains(&ConfigResource::topic("a")));
    assert!(image.topics.is_empty());
    assert_eq!(before.topics.len(), 1);
}

#[test]
fn an_open_transaction_is_not_shown_and_an_aborted_one_never_was() {
    let mut replay = replayed(&[topic("a", 1)]);
    replay.take().unwrap();
    replay.record(&BeginTransactionRecord::default().into()).unwrap();
    replay.record(&topic("b", 2)).unwrap();
    assert!(replay.take().is_none());
    let settled = replay.settled();
    assert_eq!((settled.topics.len(), replay.image().topics.len()), (1, 2));
    assert_eq!(settled.end_offset, replay.image().end_offset);
    assert_eq!(
        replay.record(&BeginTransactionRecord::default().into()),
        Err(ReplayError::NestedTransaction)
    );
    replay.record(&AbortTransactionRecord::default().into()).unwrap();
    let (delta, image) = replay.take().unwrap();
    assert!(delta.is_empty());
    assert_eq!(image.topics.len(), 1);
    assert_eq!(
        replay.record(&EndTransactionRecord::default().into()),
        Err(ReplayError::NoTransaction)
    );
}

#[test]
fn records_about_unknown_things_are_errors() {
    let mut replay = Replay::default();
    assert!(matches!(
        replay.record(&partition(1, 0)),
        Err(ReplayError::UnknownTopicId(_))
    ));
    let mut replay = replayed(&[topic("a", 1)]);
    assert!(matches!(
        replay.record(&topic("a", 2)),
        Err(ReplayError::TopicExists { .. })
    ));
    assert!(matches!(
        replay.record(&topic("b", 1)),
        Err(ReplayError::TopicExists { .. })
    ));
    assert!(matches!(
        replay.record(&topic("a/b", 3)),
        Err(ReplayError::TopicName(_))
    ));
}

#[test]
fn everything_in_an_image_is_the_delta_from_nothing() {
    let replay = replayed(&[topic("a", 1), partition(1, 0)]);
    let image = replay.image().clone();
    let (delta, _) = Replay::from_image(image).take().unwrap();
    assert!(delta.topics[&Uuid::from_bytes([1; 16])].created);
}

#[test]
fn two_deltas_in_one_tell_of_both() {
    let mut replay = replayed(&[topic("a", 1), partition(1, 0), topic("b", 2)]);
    let (mut first, _) = replay.take().unwrap();
    let remove = RemoveTopicRecord {
        topic_id: Uuid::from_bytes([1; 16]),
        ..RemoveTopicRecord::default()
    };
    replay.record(&remove.into()).unwrap();
    replay.record(&partition(2, 0)).unwrap();
    let (later, _) = replay.take().unwrap();
    first.absorb(later);
    let (a, b) = (
        &first.topics[&Uuid::from_bytes([1; 16])],
        &first.topics[&Uuid::from_bytes([2; 16])],
    );
    assert!(a.created && a.removed && a.partitions.is_empty());
    assert!(b.created && !b.removed && b.partitions.len() == 1);
}
