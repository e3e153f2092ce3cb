//! What a coordinator that takes over knows, also when Kafka wrote the log.

use coordinator::group::records::GroupRecord;
use coordinator::group::{GroupConfig, GroupResponse};
use coordinator::shard::Replayed;
use coordinator::{GroupShard, Record, Shard};
use model::{ErrorCode, Timestamp};
use protocol::messages::join_group_request::JoinGroupRequest;
use protocol::messages::leave_group_request::{LeaveGroupRequest, MemberIdentity};
use protocol::messages::offset_commit_request::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use protocol::messages::sync_group_request::{SyncGroupRequest, SyncGroupRequestAssignment};

use crate::golden;
use crate::world::{EPOCH, Member, World, error, fetch, join, member_commit, simple_commit, sync};

#[test]
fn records_of_kafka_are_the_same_bytes_when_written_again() {
    let mut written = 0;
    for record in golden::log() {
        match GroupRecord::decode(&record).unwrap() {
            Ok(decoded) => {
                assert_eq!(decoded.encode().unwrap(), record);
                written += 1;
            }
            Err(record_type) => assert!((3..=8).contains(&record_type), "those of the consumer group protocol"),
        }
    }
    assert_eq!(written, 17);
}

#[test]
fn a_log_of_kafka_gives_the_groups_and_offsets_that_kafka_told() {
    let mut world = World::new();
    world.topics.0.insert("orders".into(), golden::orders_id());
    world.log = golden::log();
    world.fail_over();
    let GroupResponse::OffsetFetch(response) = world.call(9, fetch("dynamic", "orders", &[0, 1])) else {
        panic!("no answer to a fetch of offsets");
    };
    let partitions = &response.groups[0].topics[0].partitions;
    assert_eq!(
        (partitions[0].committed_offset, partitions[0].committed_leader_epoch),
        (7, 3)
    );
    assert_eq!(partitions[0].metadata.as_deref(), Some("o\u{f9}"));
    assert_eq!(
        (partitions[1].committed_offset, partitions[1].committed_leader_epoch),
        (0, -1)
    );
    assert_eq!(
        (
            world.offset("simple", 2),
            world.offset("admin", 3),
            world.offset("deleted", 2)
        ),
        (42, -1, -1)
    );
    let states = ["dynamic", "static", "simple", "deleted"].map(|group| world.state(group));
    assert_eq!(states, ["Empty", "Stable", "Empty", "Dead"]);
    let group = world.described("static");
    assert_eq!((&*group.protocol_type, &*group.protocol_data), ("consumer", "range"));
    assert_eq!(group.members[0].group_instance_id.as_deref(), Some("i-1"));
    assert_eq!(
        (&*group.members[0].client_id, &*group.members[0].client_host),
        ("golden", "/127.0.0.1")
    );
}

/// Join, sync, two commits and a leave, at the times and with the random bytes that Kafka had.
#[test]
fn the_life_of_a_group_is_written_in_kafkas_bytes() {
    let log = golden::log();
    let stable = golden::snapshot(&log[1]);
    let member = &stable.members[0];
    let mut world = World::with(GroupConfig {
        initial_rebalance_delay: std::time::Duration::from_millis(500),
        ..GroupConfig::default()
    });
    world.topics.0.insert("orders".into(), golden::orders_id());
    world.client_id = "golden".into();
    let hex = member.member_id.to_string().replace("golden", "").replace('-', "");
    world.entropy = Some(u128::from_str_radix(&hex, 16).unwrap().to_be_bytes());
    let clock = |at: Timestamp| u64::try_from(at.millis() - EPOCH).unwrap();

    world.set_clock(clock(golden::snapshot(&log[0]).state_since.unwrap()));
    let mut request = JoinGroupRequest {
        session_timeout_ms: member.session_timeout_ms,
        rebalance_timeout_ms: member.rebalance_timeout_ms,
        ..join("dynamic", "")
    };
    request.protocols[0].metadata = member.subscription.clone();
    let token = world.send(9, request.clone());
    request.member_id = world.joined(token).member_id;
    let token = world.send(9, request);
    world.set_clock(clock(stable.state_since.unwrap()));
    world.tick();
    let joined = Member::of("dynamic", &world.joined(token));
    assert_eq!(joined.id, member.member_id.to_string());
    let assignments = vec![SyncGroupRequestAssignment {
        member_id: (&*joined.id).into(),
        assignment: member.assignment.clone(),
        ..SyncGroupRequestAssignment::default()
    }];
    world.send(
        5,
        SyncGroupRequest {
            assignments,
            ..sync(&joined, &[])
        },
    );

    let offsets = [golden::offset(&log[2]), golden::offset(&log[3])];
    world.set_clock(clock(offsets[0].commit_timestamp));
    let partitions = offsets
        .iter()
        .zip(0..)
        .map(|(offset, partition_index)| OffsetCommitRequestPartition {
            partition_index,
            committed_offset: offset.offset,
            committed_leader_epoch: offset.leader_epoch.map_or(-1, |epoch| epoch.get()),
            committed_metadata: Some(offset.metadata.clone()),
            ..OffsetCommitRequestPartition::default()
        });
    let topics = vec![OffsetCommitRequestTopic {
        topic_id: golden::orders_id(),
        partitions: partitions.collect(),
        ..OffsetCommitRequestTopic::default()
    }];
    assert_eq!(
        world.commit(
            10,
            OffsetCommitRequest {
                topics,
                ..member_commit(&joined, 0, 0)
            }
        ),
        ErrorCode::None
    );

    world.set_clock(clock(golden::snapshot(&log[4]).state_since.unwrap()));
    let leaving = MemberIdentity {
        member_id: (&*joined.id).into(),
        ..MemberIdentity::default()
    };
    world.call(
        5,
        LeaveGroupRequest {
            group_id: "dynamic".into(),
            members: vec![leaving],
            ..Default::default()
        },
    );
    assert_eq!(world.log, log[..5]);
}

#[test]
fn members_go_on_after_a_fail_over_and_their_sessions_begin_anew() {
    let mut world = World::new();
    let members = world.stable_group("g", 2);
    world.commit(9, member_commit(&members[0], 0, 5));
    world.pass(9_999);
    world.fail_over();
    world.pass(9_999);
    for member in &members {
        assert_eq!(world.heartbeat(member), ErrorCode::None);
        let token = world.send(5, sync(member, &[]));
        assert_eq!(world.synced(token).assignment, member.id.as_bytes());
    }
    assert_eq!(world.commit(9, member_commit(&members[0], 0, 6)), ErrorCode::None);
    world.pass(9_999);
    assert_eq!(world.state("g"), "Stable");
    world.pass(1);
    assert_eq!(world.state("g"), "Empty");
}

#[test]
fn a_rebalance_that_was_under_way_begins_again_with_the_generation_that_was_stored() {
    let mut world = World::new();
    let members = world.stable_group("g", 2);
    let rejoined = world.send(9, join("g", &members[0].id));
    let newcomer = world.send(3, join("g", ""));
    world.fail_over();
    assert!(!world.waits(rejoined) && !world.waits(newcomer));
    assert_eq!(world.state("g"), "Stable");
    let tokens = [0, 1].map(|at| world.send(9, join("g", &members[at].id)));
    let joined = tokens.map(|token| world.joined(token));
    assert!(joined.iter().all(|joined| joined.generation_id == 2));
}

#[test]
fn a_static_member_keeps_its_fence_after_a_fail_over() {
    let mut world = World::new();
    let request = JoinGroupRequest {
        group_instance_id: Some("i".into()),
        ..join("g", "")
    };
    let token = world.send(9, request.clone());
    world.pass(3_000);
    let mut old = Member::of("g", &world.joined(token));
    old.instance = Some("i".into());
    world.sync_all(std::slice::from_ref(&old));
    let token = world.send(9, request);
    assert_eq!(error(world.joined(token).error_code), ErrorCode::None);
    world.fail_over();
    assert_eq!(world.heartbeat(&old), ErrorCode::FencedInstanceId);
}

#[test]
fn a_group_that_has_grown_too_great_for_the_settings_joins_again() {
    let mut world = World::new();
    world.stable_group("g", 3);
    world.config.group_size_max = 2;
    world.fail_over();
    assert_eq!(world.state("g"), "PreparingRebalance");
}

#[test]
fn a_log_that_was_compacted_gives_the_same_state() {
    let mut world = World::new();
    world.stable_group("g", 2);
    for offset in 0..5 {
        world.commit(9, simple_commit("h", 0, offset));
    }
    let before = (world.described("g"), world.offset("h", 0));
    let log = std::mem::take(&mut world.log);
    for (at, record) in log.iter().enumerate() {
        if log[at + 1..].iter().all(|later| later.key != record.key) {
            world.log.push(record.clone());
        }
    }
    assert!(world.log.len() < log.len());
    world.fail_over();
    assert_eq!((world.described("g"), world.offset("h", 0)), before);
}

#[test]
fn records_of_other_kinds_of_groups_are_passed_over_and_damaged_ones_are_not() {
    let mut shard = GroupShard::new(GroupConfig::default());
    let record = |key: &[u8], value: &[u8]| Record {
        key: bytes::Bytes::copy_from_slice(key),
        value: Some(bytes::Bytes::copy_from_slice(value)),
    };
    let unknown = shard.replay(&record(b"\0\x03\0\x01g", b"\0\0\0\0\0\x01")).unwrap();
    assert_eq!(unknown, Replayed::Unknown { record_type: 3 });
    for (key, value) in [
        (&b"\0"[..], &b""[..]),
        (b"\0\x01\0\x01g", b""),
        (b"\0\x02\0\x01g", b""),
        (b"\0\x02\0\x01g", b"\0\x63"),
        (b"\0\x02\0\x01g", b"\0\x03\0"),
    ] {
        assert!(shard.replay(&record(key, value)).is_err(), "{key:?} {value:?}");
    }
}
