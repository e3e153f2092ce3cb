//! OffsetCommit, OffsetFetch and OffsetDelete.

use coordinator::group::{GroupConfig, GroupResponse};
use model::{ErrorCode, Uuid};
use protocol::messages::join_group_request::JoinGroupRequest;
use protocol::messages::offset_commit_request::OffsetCommitRequest;
use protocol::messages::offset_delete_request::{
    OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};
use protocol::messages::offset_delete_response::OffsetDeleteResponse;
use protocol::messages::offset_fetch_request::{OffsetFetchRequest, OffsetFetchRequestTopic};
use protocol::messages::offset_fetch_response::OffsetFetchResponse;

use crate::world::{Member, World, error, fetch, join, member_commit, simple_commit, topic_id};

fn fetched(world: &mut World, version: i16, request: OffsetFetchRequest) -> OffsetFetchResponse {
    match world.call(version, request) {
        GroupResponse::OffsetFetch(response) => response,
        other => panic!("{other:?} is no answer to a fetch of offsets"),
    }
}

#[test]
fn a_simple_consumer_commits_to_a_group_that_was_not_there() {
    for version in 2..=10 {
        let mut world = World::new();
        assert_eq!(world.commit(version, simple_commit("g", 2, 42)), ErrorCode::None);
        assert_eq!(world.offset("g", 2), 42);
        assert_eq!(world.state("g"), "Empty");
        assert_eq!(
            world.commit(version, simple_commit("", 2, 42)),
            ErrorCode::None,
            "an empty group id is accepted"
        );
        assert_eq!(world.offset("", 2), 42);
    }
}

#[test]
fn offset_epoch_and_metadata_come_back() {
    let mut world = World::new();
    world.commit(9, simple_commit("g", 2, 42));
    let response = fetched(&mut world, 9, fetch("g", "orders", &[2, 0]));
    let partitions = &response.groups[0].topics[0].partitions;
    assert_eq!(
        (partitions[0].committed_offset, partitions[0].committed_leader_epoch),
        (42, 3)
    );
    assert_eq!(partitions[0].metadata.as_deref(), Some("note"));
    assert_eq!(
        (partitions[1].committed_offset, partitions[1].committed_leader_epoch),
        (-1, -1)
    );
    assert_eq!(partitions[1].metadata.as_deref(), Some(""));
    assert!(partitions.iter().all(|partition| partition.error_code == 0));
}

#[test]
fn a_commit_must_come_from_the_current_generation() {
    let mut world = World::new();
    let member = world.stable_group("g", 1).remove(0);
    let good = member_commit(&member, 0, 5);
    let with = |change: fn(&mut OffsetCommitRequest)| {
        let mut request = good.clone();
        change(&mut request);
        request
    };
    assert_eq!(world.commit(9, good.clone()), ErrorCode::None);
    let request = with(|request| request.generation_id_or_member_epoch = 0);
    assert_eq!(world.commit(9, request), ErrorCode::IllegalGeneration);
    let request = with(|request| request.member_id = "who".into());
    assert_eq!(world.commit(9, request), ErrorCode::UnknownMemberId);
    let request = with(|request| request.group_instance_id = Some("i".into()));
    assert_eq!(world.commit(9, request), ErrorCode::UnknownMemberId);
    let request = with(|request| request.group_id = "none".into());
    assert_eq!(world.commit(8, request.clone()), ErrorCode::IllegalGeneration);
    assert_eq!(world.commit(9, request), ErrorCode::GroupIdNotFound);
    assert_eq!(world.commit(9, simple_commit("g", 0, 5)), ErrorCode::UnknownMemberId);
    assert_eq!(world.offset("g", 0), 5);
}

#[test]
fn commits_are_taken_while_members_join_and_not_while_they_wait_to_sync() {
    let mut world = World::new();
    let members = world.stable_group("g", 2);
    let first = world.send(9, join("g", &members[0].id));
    assert_eq!(world.commit(9, member_commit(&members[1], 0, 7)), ErrorCode::None);
    let second = world.send(9, join("g", &members[1].id));
    assert_eq!(
        world.commit(9, member_commit(&members[1], 0, 8)),
        ErrorCode::IllegalGeneration
    );
    let members = [first, second].map(|token| Member::of("g", &world.joined(token)));
    assert_eq!(
        world.commit(9, member_commit(&members[1], 0, 8)),
        ErrorCode::RebalanceInProgress
    );
    assert_eq!(world.offset("g", 0), 7);
}

#[test]
fn what_is_not_a_topic_is_refused_alone() {
    let mut world = World::new();
    let mut request = simple_commit("g", 0, 1);
    request.topics.push(request.topics[0].clone());
    request.topics[1].name = "nothing".into();
    request.topics[1].topic_id = topic_id(9);
    for (version, unknown) in [(9, ErrorCode::UnknownTopicOrPartition), (10, ErrorCode::UnknownTopicId)] {
        let GroupResponse::OffsetCommit(response) = world.call(version, request.clone()) else {
            panic!("no answer to a commit");
        };
        let errors: Vec<_> = response
            .topics
            .iter()
            .map(|topic| error(topic.partitions[0].error_code))
            .collect();
        assert_eq!(errors, [ErrorCode::None, unknown]);
        assert_eq!(response.topics[1].topic_id, topic_id(9));
    }
}

#[test]
fn a_partition_that_the_topic_does_not_have_takes_no_offset() {
    let mut world = World::new();
    for version in [2, 9, 10] {
        for partition in [-1, 4, 99] {
            let expected = ErrorCode::UnknownTopicOrPartition;
            assert_eq!(world.commit(version, simple_commit("g", partition, 1)), expected);
        }
    }
    assert!(world.log.is_empty());
}

#[test]
fn any_number_is_an_offset_as_kafka_has_it() {
    let mut world = World::new();
    for offset in [-7, -1, i64::MAX] {
        assert_eq!(world.commit(9, simple_commit("g", 0, offset)), ErrorCode::None);
        assert_eq!(world.offset("g", 0), offset);
    }
}

#[test]
fn metadata_is_limited_by_the_length_that_the_jvm_counts() {
    let mut world = World::with(GroupConfig {
        offset_metadata_units_max: 4,
        ..GroupConfig::default()
    });
    for (metadata, expected) in [
        ("äöüß", ErrorCode::None),
        ("😀😀", ErrorCode::None),
        ("😀😀x", ErrorCode::OffsetMetadataTooLarge),
    ] {
        let mut request = simple_commit("g", 0, 1);
        request.topics[0].partitions[0].committed_metadata = Some(metadata.into());
        assert_eq!(world.commit(9, request), expected, "{metadata}");
    }
}

#[test]
fn what_was_never_committed_is_no_error_in_any_version() {
    let mut world = World::new();
    for version in 1..8 {
        let request = OffsetFetchRequest {
            group_id: "g".into(),
            topics: Some(vec![OffsetFetchRequestTopic {
                name: "orders".into(),
                partition_indexes: vec![0],
                ..OffsetFetchRequestTopic::default()
            }]),
            ..OffsetFetchRequest::default()
        };
        let response = fetched(&mut world, version, request);
        let partition = &response.topics[0].partitions[0];
        assert_eq!(
            (response.error_code, partition.error_code, partition.committed_offset),
            (0, 0, -1)
        );
    }
}

#[test]
fn a_refused_fetch_says_so_where_its_version_can() {
    let request = fetch("g", "orders", &[0]);
    let old = OffsetFetchRequest {
        group_id: "g".into(),
        topics: Some(vec![OffsetFetchRequestTopic {
            name: "orders".into(),
            partition_indexes: vec![0],
            ..OffsetFetchRequestTopic::default()
        }]),
        ..OffsetFetchRequest::default()
    };
    let refuse = |request: &OffsetFetchRequest, version| {
        let response =
            coordinator::group::request::refusal(&request.clone().into(), version, ErrorCode::NotCoordinator);
        let GroupResponse::OffsetFetch(response) = response else {
            panic!("no answer to a fetch of offsets");
        };
        response
    };
    let code = ErrorCode::NotCoordinator.code();
    assert_eq!(refuse(&old, 1).topics[0].partitions[0].error_code, code);
    assert_eq!(refuse(&old, 2).error_code, code);
    assert_eq!(refuse(&request, 8).groups[0].error_code, code);
}

#[test]
fn all_offsets_of_several_groups_come_in_one_answer() {
    let mut world = World::new();
    world.commit(9, simple_commit("g", 1, 10));
    world.commit(9, simple_commit("g", 0, 20));
    world.commit(9, simple_commit("h", 0, 30));
    let mut request = fetch("g", "orders", &[]);
    request.groups[0].topics = None;
    let mut other = request.groups[0].clone();
    other.group_id = "h".into();
    let mut missing = other.clone();
    missing.group_id = "none".into();
    request.groups.extend([other, missing]);
    for version in [8, 10] {
        let response = fetched(&mut world, version, request.clone());
        let told: Vec<Vec<_>> = response
            .groups
            .iter()
            .map(|group| {
                let partitions = group.topics.iter().flat_map(|topic| &topic.partitions);
                partitions
                    .map(|partition| (partition.partition_index, partition.committed_offset))
                    .collect()
            })
            .collect();
        assert_eq!(told, [vec![(0, 20), (1, 10)], vec![(0, 30)], vec![]]);
        let topic = &response.groups[0].topics[0];
        match version {
            8 => assert_eq!((&*topic.name, topic.topic_id), ("orders", Uuid::ZERO)),
            _ => assert_eq!((&*topic.name, topic.topic_id), ("", topic_id(1))),
        }
    }
}

#[test]
fn an_offset_of_a_topic_that_was_created_anew_is_none() {
    let mut world = World::new();
    world.commit(9, simple_commit("g", 0, 10));
    world.topics.0.insert("orders".into(), topic_id(7));
    assert_eq!(world.offset("g", 0), -1);
    let mut request = fetch("g", "", &[0]);
    request.groups[0].topics.as_mut().unwrap()[0].topic_id = topic_id(7);
    let response = fetched(&mut world, 10, request.clone());
    assert_eq!(response.groups[0].topics[0].partitions[0].committed_offset, -1);
    request.groups[0].topics.as_mut().unwrap()[0].topic_id = topic_id(1);
    let response = fetched(&mut world, 10, request);
    assert_eq!(
        error(response.groups[0].topics[0].partitions[0].error_code),
        ErrorCode::UnknownTopicId
    );
}

fn delete(world: &mut World, group: &str, topics: &[&str]) -> OffsetDeleteResponse {
    let topics = topics.iter().map(|topic| OffsetDeleteRequestTopic {
        name: (*topic).into(),
        partitions: vec![OffsetDeleteRequestPartition { partition_index: 0 }],
    });
    let request = OffsetDeleteRequest {
        group_id: group.into(),
        topics: topics.collect(),
    };
    match world.call(0, request) {
        GroupResponse::OffsetDelete(response) => response,
        other => panic!("{other:?} is no answer to a delete of offsets"),
    }
}

#[test]
fn offsets_are_deleted_but_for_topics_that_members_read() {
    let mut world = World::new();
    let member = world.stable_group("g", 1).remove(0);
    let mut request = member_commit(&member, 0, 5);
    request.topics.push(request.topics[0].clone());
    request.topics[1].name = "other".into();
    world.commit(9, request);
    let response = delete(&mut world, "g", &["orders", "other", "nothing"]);
    assert_eq!(error(response.error_code), ErrorCode::None);
    let errors: Vec<_> = response
        .topics
        .iter()
        .map(|topic| error(topic.partitions[0].error_code))
        .collect();
    let expected = [
        ErrorCode::GroupSubscribedToTopic,
        ErrorCode::None,
        ErrorCode::UnknownTopicOrPartition,
    ];
    assert_eq!(errors, expected);
    assert_eq!(world.offset("g", 0), 5);
    let response = fetched(&mut world, 9, fetch("g", "other", &[0]));
    assert_eq!(response.groups[0].topics[0].partitions[0].committed_offset, -1);
}

#[test]
fn offsets_of_other_groups_with_members_cannot_be_deleted() {
    let mut world = World::new();
    assert_eq!(
        error(delete(&mut world, "", &["orders"]).error_code),
        ErrorCode::InvalidGroupId
    );
    assert_eq!(
        error(delete(&mut world, "g", &["orders"]).error_code),
        ErrorCode::GroupIdNotFound
    );
    world.send(
        3,
        JoinGroupRequest {
            protocol_type: "connect".into(),
            ..join("g", "")
        },
    );
    assert_eq!(
        error(delete(&mut world, "g", &["orders"]).error_code),
        ErrorCode::NonEmptyGroup
    );
}

#[test]
fn a_deleted_topic_takes_its_offsets_along() {
    let mut world = World::new();
    world.commit(9, simple_commit("g", 0, 5));
    world.commit(9, simple_commit("h", 3, 5));
    let mut effects = Vec::new();
    world.shard.topics_deleted(["orders", "nothing"], &mut effects);
    world.take(effects);
    assert_eq!((world.offset("g", 0), world.offset("h", 3)), (-1, -1));
    world.fail_over();
    assert_eq!((world.offset("g", 0), world.offset("h", 3)), (-1, -1));
}
