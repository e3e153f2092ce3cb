//! What is told to the controller, and what becomes of its answer.

use metadata::Replay;
use model::Uuid;
use protocol::internal_records::metadata::{MetadataRecord, PartitionRecord, TopicRecord};
use protocol::messages::alter_partition_response::{self as response};

use super::*;

const BROKER: BrokerId = BrokerId::new(1);
const ID: TopicId = Uuid::from_bytes([5; 16]);

/// A topic whose partitions have these leaders and recovery states.
fn image(partitions: &[(i32, i8)]) -> Image {
    let mut replay = Replay::default();
    let topic = TopicRecord {
        name: "t".into(),
        topic_id: ID,
        ..Default::default()
    };
    replay.record(&MetadataRecord::from(topic)).unwrap();
    for (index, (leader, state)) in (0..).zip(partitions) {
        let partition = PartitionRecord {
            partition_id: index,
            topic_id: ID,
            replicas: vec![1, 2],
            isr: vec![1],
            leader: *leader,
            leader_recovery_state: *state,
            leader_epoch: 7,
            partition_epoch: 9,
            directories: vec![Uuid::from_bytes([3; 16]), Uuid::from_bytes([4; 16])],
            ..Default::default()
        };
        replay.record(&MetadataRecord::from(partition)).unwrap();
    }
    replay.take().unwrap().1
}

fn places(indexes: &[i32]) -> Vec<Place> {
    indexes.iter().map(|index| (ID, PartitionIndex::new(*index))).collect()
}

fn answer(error_code: ErrorCode, partitions: &[(i32, ErrorCode)]) -> AlterPartitionResponse {
    let partitions = partitions.iter().map(|(index, code)| response::PartitionData {
        partition_index: *index,
        error_code: code.code(),
        ..Default::default()
    });
    AlterPartitionResponse {
        error_code: error_code.code(),
        topics: vec![response::TopicData {
            topic_id: ID,
            partitions: partitions.collect(),
            ..Default::default()
        }],
        ..Default::default()
    }
}

#[test]
fn what_this_broker_leads_and_is_still_recovering_is_told_with_the_epochs_of_the_image() {
    let image = image(&[(1, 1), (2, 1), (1, 0), (1, 1)]);
    let request = request(BROKER, 40, &image, &places(&[0, 1, 2, 3, 8])).unwrap();
    assert_eq!((request.broker_id, request.broker_epoch), (1, 40));
    let [topic] = &request.topics[..] else {
        panic!("one topic")
    };
    let indexes: Vec<i32> = topic
        .partitions
        .iter()
        .map(|partition| partition.partition_index)
        .collect();
    assert_eq!((topic.topic_id, &indexes[..]), (ID, &[0, 3][..]));
    let wanted = PartitionData {
        partition_index: 0,
        leader_epoch: 7,
        new_isr_with_epochs: vec![BrokerState {
            broker_id: 1,
            broker_epoch: 40,
            ..Default::default()
        }],
        leader_recovery_state: 0,
        partition_epoch: 9,
        ..Default::default()
    };
    assert_eq!(topic.partitions[0], wanted);
}

#[test]
fn nothing_is_told_where_nothing_recovers() {
    assert_eq!(request(BROKER, 40, &image(&[(1, 0), (2, 1)]), &places(&[0, 1])), None);
}

#[test]
fn only_what_may_be_taken_later_is_told_again() {
    let all = places(&[0, 1, 2, 3]);
    let whole = answer(ErrorCode::StaleBrokerEpoch, &[]);
    assert_eq!(refused_for_now(&whole, &all), all);
    let parts = answer(
        ErrorCode::None,
        &[
            (0, ErrorCode::None),
            (1, ErrorCode::IneligibleReplica),
            (2, ErrorCode::InvalidUpdateVersion),
            (3, ErrorCode::NotController),
        ],
    );
    assert_eq!(refused_for_now(&parts, &all), places(&[1, 3]));
}

#[test]
fn many_partitions_are_told_in_several_requests() {
    let recovered = Recovered::default();
    let many: Vec<i32> = (0..1500).collect();
    recovered.add(places(&many));
    assert_eq!(recovered.take(), places(&many[..PARTITIONS_MAX]));
    assert_eq!(recovered.take(), places(&many[PARTITIONS_MAX..]));
    assert!(recovered.take().is_empty());
}
