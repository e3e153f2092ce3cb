//! A member's life: joining, committing, making room, leaving.

use std::sync::Arc;

use bytes::Bytes;
use model::PartitionIndex;
use protocol::ApiKey;

use super::*;
use crate::fake_node::{FakeNode, Fault, partition, topic};
use crate::{ProduceRecord, Producer, ProducerOptions};

fn options() -> GroupMemberOptions {
    let mut options = GroupMemberOptions::new(GroupId::new("g").unwrap(), BTreeSet::from([topic("first")]));
    options.reset = Reset::Earliest;
    options.heartbeat_interval = Duration::from_millis(100);
    options
}

fn member(node: &Arc<FakeNode>, options: GroupMemberOptions) -> GroupMember {
    GroupMember::new(node.client(), CallContext::anonymous(), options)
}

async fn write(node: &Arc<FakeNode>, values: &[&str]) {
    let producer = Producer::new(node.client(), CallContext::anonymous(), ProducerOptions::default());
    let records = values.iter().map(|value| ProduceRecord {
        partition: Some(PartitionIndex::new(0)),
        value: Some(Bytes::copy_from_slice(value.as_bytes())),
        ..ProduceRecord::default()
    });
    producer.send(&topic("first"), records.collect()).await.unwrap();
}

async fn assigned(member: &mut GroupMember) -> Vec<String> {
    match member.next().await.unwrap() {
        GroupEvent::Assigned(partitions) => partitions.iter().map(ToString::to_string).collect(),
        event => panic!("{event:?}"),
    }
}

/// The offsets of the next records, past any word of an end.
async fn read(member: &mut GroupMember) -> Vec<i64> {
    loop {
        match member.next().await.unwrap() {
            GroupEvent::Records { records, .. } if records.is_empty() => {}
            GroupEvent::Records { records, .. } => return records.iter().map(|record| record.offset.get()).collect(),
            event @ GroupEvent::Assigned(_) => panic!("{event:?}"),
        }
    }
}

fn committed(node: &FakeNode) -> Option<i64> {
    node.state().groups["g"].offsets.get(&("first".to_owned(), 0)).copied()
}

#[tokio::test(start_paused = true)]
async fn a_member_reads_from_the_committed_offset_and_commits_when_it_leaves() {
    let node = FakeNode::with_partitions(2);
    write(&node, &["a", "b"]).await;
    let mut first = member(&node, options());
    assert_eq!(assigned(&mut first).await, ["first-0", "first-1"]);
    assert_eq!(first.id(), "member-1");
    assert_eq!(read(&mut first).await, [0, 1]);
    first.leave().await.unwrap();
    assert_eq!(committed(&node), Some(2));
    assert_eq!(node.state().groups["g"].member, None);
    write(&node, &["c"]).await;
    let mut second = member(&node, options());
    assigned(&mut second).await;
    assert_eq!(read(&mut second).await, [2]);
}

#[tokio::test(start_paused = true)]
async fn what_was_taken_back_is_not_committed() {
    let node = FakeNode::with_partitions(1);
    write(&node, &["a", "b", "c"]).await;
    let mut member = member(&node, options());
    assigned(&mut member).await;
    assert_eq!(read(&mut member).await, [0, 1, 2]);
    member.take_back(&partition("first", 0), Offset::new(1));
    member.leave().await.unwrap();
    assert_eq!(committed(&node), Some(1));
}

#[tokio::test(start_paused = true)]
async fn a_rebalance_commits_and_joins_again_under_the_same_id() {
    let node = FakeNode::with_partitions(1);
    write(&node, &["a"]).await;
    let mut member = member(&node, options());
    assigned(&mut member).await;
    assert_eq!(read(&mut member).await, [0]);
    node.fail_next(ApiKey::Heartbeat, [Fault::Refuse(ErrorCode::RebalanceInProgress)]);
    assert_eq!(assigned(&mut member).await, ["first-0"]);
    assert_eq!(committed(&node), Some(1));
    assert_eq!((member.id(), node.state().groups["g"].generation), ("member-1", 2));
}

#[tokio::test(start_paused = true)]
async fn a_member_that_was_expelled_joins_as_a_new_one_and_reads_again_what_it_did_not_commit() {
    let node = FakeNode::with_partitions(1);
    write(&node, &["a"]).await;
    let mut member = member(&node, options());
    assigned(&mut member).await;
    assert_eq!(read(&mut member).await, [0]);
    node.fail_next(ApiKey::Heartbeat, [Fault::Refuse(ErrorCode::UnknownMemberId)]);
    assigned(&mut member).await;
    assert_eq!(member.id(), "member-2");
    assert_eq!(read(&mut member).await, [0]);
}

#[tokio::test(start_paused = true)]
async fn offsets_are_committed_from_time_to_time() {
    let node = FakeNode::with_partitions(1);
    write(&node, &["a"]).await;
    let mut member = member(&node, options());
    assigned(&mut member).await;
    assert_eq!(read(&mut member).await, [0]);
    let idle = tokio::time::timeout(Duration::from_secs(20), read(&mut member)).await;
    assert!(idle.is_err());
    assert_eq!(committed(&node), Some(1));
    assert_eq!(node.asked(ApiKey::OffsetCommit), 1);
}

#[tokio::test(start_paused = true)]
async fn a_member_that_nobody_asks_for_records_leaves() {
    let node = FakeNode::with_partitions(1);
    let mut member = member(
        &node,
        GroupMemberOptions {
            rebalance_timeout: Duration::from_secs(5),
            ..options()
        },
    );
    assigned(&mut member).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(node.state().groups["g"].member, None);
    assigned(&mut member).await;
    assert_eq!(member.id(), "member-2");
}

#[tokio::test(start_paused = true)]
async fn a_group_that_may_not_be_joined_is_an_error() {
    let node = FakeNode::with_partitions(1);
    node.fail_next(ApiKey::JoinGroup, [Fault::Refuse(ErrorCode::GroupAuthorizationFailed)]);
    let error = member(&node, options()).next().await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::GroupAuthorizationFailed);
}

#[tokio::test(start_paused = true)]
async fn a_coordinator_that_is_still_loading_is_waited_for() {
    let node = FakeNode::with_partitions(1);
    let loading = Fault::Refuse(ErrorCode::CoordinatorLoadInProgress);
    node.fail_next(
        ApiKey::JoinGroup,
        [loading.clone(), Fault::Refuse(ErrorCode::NotCoordinator)],
    );
    node.fail_next(ApiKey::OffsetFetch, [loading]);
    assert_eq!(assigned(&mut member(&node, options())).await, ["first-0"]);
    assert_eq!(node.asked(ApiKey::FindCoordinator), 2);
}
