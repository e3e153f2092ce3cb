//! Administration against a node that may refuse.

use std::collections::BTreeMap;

use model::{GroupId, Offset, Timestamp, TopicPartition};
use protocol::ApiKey;

use super::*;
use crate::Isolation;
use crate::fake_node::{FakeNode, Fault, partition, topic};

fn context() -> CallContext {
    CallContext::anonymous()
}

#[tokio::test(start_paused = true)]
async fn a_topic_is_there_when_its_creation_comes_back() {
    let node = FakeNode::with_partitions(1);
    let client = node.client();
    let unknown = Fault::Refuse(ErrorCode::UnknownTopicOrPartition);
    node.fail_next(ApiKey::Metadata, [unknown.clone(), unknown]);
    let new = NewTopic {
        partitions: Some(3),
        ..NewTopic::named(topic("second"))
    };
    assert_eq!(
        client.create_topic(&context(), &new, false).await.unwrap().partitions,
        Some(3)
    );
    assert_eq!(
        client
            .topic(&context(), &topic("second"))
            .await
            .unwrap()
            .partitions
            .len(),
        3
    );
    assert_eq!(node.asked(ApiKey::Metadata), 3);
}

#[tokio::test(start_paused = true)]
async fn a_creation_is_tried_again_only_while_that_may_help() {
    let node = FakeNode::with_partitions(1);
    let client = node.client();
    node.fail_next(ApiKey::CreateTopics, [Fault::Refuse(ErrorCode::NotController)]);
    client
        .create_topic(&context(), &NewTopic::named(topic("second")), false)
        .await
        .unwrap();
    assert_eq!(node.asked(ApiKey::CreateTopics), 2);
    node.fail_next(ApiKey::CreateTopics, [Fault::Refuse(ErrorCode::TopicAlreadyExists)]);
    let error = client
        .create_topic(&context(), &NewTopic::named(topic("second")), false)
        .await
        .unwrap_err();
    assert_eq!(error.code(), ErrorCode::TopicAlreadyExists);
    assert_eq!(node.asked(ApiKey::CreateTopics), 3);
}

#[tokio::test]
async fn topics_are_listed_by_name() {
    let node = FakeNode::with_partitions(1);
    node.add_topic("another", 2);
    let topics = node.client().list_topics(&context()).await.unwrap();
    let shown: Vec<_> = topics
        .iter()
        .map(|topic| (topic.name.as_str(), topic.partitions.len()))
        .collect();
    assert_eq!(shown, [("another", 2), ("first", 1)]);
}

#[tokio::test(start_paused = true)]
async fn each_partition_has_its_own_offset_or_error() {
    let node = FakeNode::with_partitions(2);
    node.fail_next(ApiKey::ListOffsets, [Fault::Refuse(ErrorCode::NotLeaderOrFollower)]);
    let specs = BTreeMap::from([
        (partition("first", 0), OffsetSpec::Latest),
        (partition("first", 1), OffsetSpec::Time(Timestamp::from_millis(5))),
        (partition("first", 2), OffsetSpec::Earliest),
    ]);
    let listed = node
        .client()
        .list_offsets(&context(), &specs, Isolation::ReadUncommitted)
        .await;
    let offset = |partition: &TopicPartition| listed[partition].as_ref().unwrap().map(|listed| listed.offset);
    assert_eq!(offset(&partition("first", 0)), Some(Offset::ZERO));
    assert_eq!(offset(&partition("first", 1)), None);
    let error = listed[&partition("first", 2)].as_ref().unwrap_err();
    assert_eq!(error.code(), ErrorCode::UnknownTopicOrPartition);
}

#[tokio::test]
async fn offsets_that_were_set_from_outside_are_found_again() {
    let node = FakeNode::with_partitions(1);
    let client = node.client();
    let group = GroupId::new("g").unwrap();
    assert_eq!(
        client.group_offsets(&context(), &group, None, false).await.unwrap(),
        BTreeMap::new()
    );
    let offsets = BTreeMap::from([(partition("first", 0), Offset::new(7))]);
    let outcomes = client.alter_group_offsets(&context(), &group, &offsets).await.unwrap();
    assert!(outcomes[&partition("first", 0)].is_ok());
    let found = client.group_offsets(&context(), &group, None, false).await.unwrap();
    assert_eq!(found[&partition("first", 0)].offset, Offset::new(7));
    node.fail_next(ApiKey::OffsetCommit, [Fault::Refuse(ErrorCode::UnknownMemberId)]);
    let outcomes = client.alter_group_offsets(&context(), &group, &offsets).await.unwrap();
    assert_eq!(
        outcomes[&partition("first", 0)].as_ref().unwrap_err().code(),
        ErrorCode::UnknownMemberId
    );
}
