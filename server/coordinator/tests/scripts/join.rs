//! JoinGroup: who is let in, and when the answer comes.

use coordinator::group::GroupConfig;
use model::ErrorCode;
use protocol::messages::join_group_request::JoinGroupRequest;

use crate::world::{Member, World, error, join, offer, subscription};

fn refused(world: &mut World, version: i16, request: JoinGroupRequest) -> ErrorCode {
    let token = world.send(version, request);
    error(world.joined(token).error_code)
}

#[test]
fn a_member_without_an_id_is_given_one_and_has_to_come_back_with_it() {
    let mut world = World::new();
    let id = world.member_id("g");
    assert!(id.starts_with("client-") && id.len() == "client-".len() + 36, "{id}");
    let token = world.send(4, join("g", &id));
    assert!(world.waits(token));
    world.pass(3_000);
    let member = Member::of("g", &world.joined(token));
    assert_eq!((member.id, member.generation, member.leads), (id, 1, true));
}

#[test]
fn before_version_4_a_member_is_in_with_its_first_join() {
    for version in 0..4 {
        let mut world = World::new();
        let token = world.send(version, join("g", ""));
        world.pass(3_000);
        let joined = world.joined(token);
        assert!(joined.member_id.starts_with("client-"));
        assert_eq!((joined.generation_id, joined.members.len()), (1, 1));
        assert_eq!(joined.protocol_name.as_deref(), Some("range"));
    }
}

#[test]
fn joins_that_cannot_be_are_refused() {
    let mut world = World::new();
    assert_eq!(refused(&mut world, 9, join("", "")), ErrorCode::InvalidGroupId);
    for session_timeout_ms in [-1, 0, 5_999, 1_800_001] {
        let request = JoinGroupRequest {
            session_timeout_ms,
            ..join("g", "")
        };
        assert_eq!(refused(&mut world, 9, request), ErrorCode::InvalidSessionTimeout);
    }
    assert_eq!(refused(&mut world, 9, join("g", "who")), ErrorCode::UnknownMemberId);
    let request = JoinGroupRequest {
        protocols: Vec::new(),
        ..join("g", "")
    };
    assert_eq!(refused(&mut world, 9, request), ErrorCode::InconsistentGroupProtocol);
    let request = JoinGroupRequest {
        protocol_type: "".into(),
        ..join("g", "")
    };
    assert_eq!(refused(&mut world, 9, request), ErrorCode::InconsistentGroupProtocol);
    let request = JoinGroupRequest {
        protocols: vec![offer("range", &vec![0; 1 << 20])],
        ..join("g", "")
    };
    assert_eq!(refused(&mut world, 9, request), ErrorCode::InvalidRequest);
    assert!(world.log.is_empty(), "a refused join founds no group");
}

#[test]
fn a_refused_join_below_version_7_has_a_protocol_name() {
    let mut world = World::new();
    for version in 0..=9 {
        let token = world.send(version, join("g", "who"));
        assert_eq!(world.joined(token).protocol_name.is_some(), version < 7);
    }
}

#[test]
fn the_first_rebalance_waits_longer_with_each_new_member_up_to_the_rebalance_timeout() {
    let mut world = World::new();
    let request = JoinGroupRequest {
        rebalance_timeout_ms: 8_000,
        ..join("g", "")
    };
    let first = world.send(3, request.clone());
    world.pass(2_999);
    let second = world.send(3, request.clone());
    world.pass(2_999);
    let third = world.send(3, request.clone());
    world.pass(2_001);
    assert!(world.waits(first), "8 s are not over");
    let fourth = world.send(3, request);
    world.pass(1);
    for token in [first, second, third, fourth] {
        assert_eq!(world.joined(token).generation_id, 1);
    }
}

#[test]
fn the_first_rebalance_ends_after_the_delay_if_nobody_else_comes() {
    let mut world = World::new();
    let token = world.send(3, join("g", ""));
    world.pass(2_999);
    assert!(world.waits(token));
    world.pass(1);
    assert_eq!(world.joined(token).generation_id, 1);
}

#[test]
fn later_rebalances_end_when_all_have_joined() {
    let mut world = World::new();
    let members = world.stable_group("g", 2);
    let newcomer = world.member_id("g");
    let third = world.send(9, join("g", &newcomer));
    assert_eq!(world.heartbeat(&members[0]), ErrorCode::RebalanceInProgress);
    let first = world.send(9, join("g", &members[0].id));
    assert!(world.waits(third) && world.waits(first));
    let second = world.send(9, join("g", &members[1].id));
    let joined = world.joined(first);
    assert_eq!(joined.leader, *members[0].id, "the leader stays");
    assert_eq!((joined.generation_id, joined.members.len()), (2, 3));
    for token in [second, third] {
        let joined = world.joined(token);
        assert_eq!((joined.generation_id, joined.members.len()), (2, 0));
        assert_eq!(joined.leader, *members[0].id);
    }
}

#[test]
fn a_member_id_that_is_out_holds_up_the_rebalance_until_its_session_is_over() {
    let mut world = World::new();
    let members = world.stable_group("g", 1);
    world.member_id("g");
    assert_eq!(
        world.heartbeat(&members[0]),
        ErrorCode::None,
        "an id that is out is no reason to rebalance"
    );
    let token = world.send(9, join("g", &members[0].id));
    assert!(world.waits(token));
    world.pass(10_000);
    assert_eq!(world.joined(token).generation_id, 2);
}

#[test]
fn members_that_do_not_join_again_in_time_are_out() {
    let mut world = World::new();
    let mut members = world.stable_group("g", 2);
    let leader = members.remove(0);
    let token = world.send(9, join("g", &members[0].id));
    assert_eq!(
        world.state("g"),
        "Stable",
        "a follower without changes does not disturb"
    );
    assert_eq!(world.joined(token).generation_id, 1);
    let changed = JoinGroupRequest {
        protocols: vec![offer("range", &subscription(&["other"]))],
        ..join("g", &members[0].id)
    };
    let token = world.send(9, changed);
    for _ in 0..59 {
        world.pass(1_000);
        assert_eq!(world.heartbeat(&leader), ErrorCode::RebalanceInProgress);
    }
    assert!(world.waits(token));
    world.pass(1_000);
    let joined = world.joined(token);
    assert_eq!((joined.generation_id, joined.members.len()), (2, 1));
    assert_eq!(joined.leader, joined.member_id);
    assert_eq!(world.heartbeat(&leader), ErrorCode::UnknownMemberId);
}

#[test]
fn in_version_0_the_session_timeout_is_the_time_to_join() {
    let mut world = World::new();
    let request = JoinGroupRequest {
        rebalance_timeout_ms: -1,
        ..join("g", "")
    };
    let first = world.send(0, request.clone());
    world.pass(3_000);
    let first = world.joined(first).member_id;
    let _second = world.send(0, request.clone());
    let leader = Member {
        group: "g".into(),
        id: first.to_string(),
        instance: None,
        generation: 1,
        leads: true,
    };
    world.pass(9_000);
    assert_eq!(world.heartbeat(&leader), ErrorCode::RebalanceInProgress);
    world.pass(1_000);
    assert_eq!(world.heartbeat(&leader), ErrorCode::UnknownMemberId);
}

#[test]
fn the_leader_that_joins_again_forces_a_rebalance() {
    let mut world = World::new();
    let members = world.stable_group("g", 1);
    let token = world.send(9, join("g", &members[0].id));
    assert_eq!(world.joined(token).generation_id, 2);
}

#[test]
fn a_join_repeated_before_the_sync_gets_the_same_answer_again() {
    let mut world = World::new();
    let id = world.member_id("g");
    let token = world.send(9, join("g", &id));
    world.pass(3_000);
    let first = world.joined(token);
    let token = world.send(9, join("g", &id));
    assert_eq!(world.joined(token), first);
}

#[test]
fn a_join_repeated_while_the_first_waits_takes_its_place() {
    let mut world = World::new();
    let id = world.member_id("g");
    let first = world.send(9, join("g", &id));
    let second = world.send(9, join("g", &id));
    assert_eq!(error(world.joined(first).error_code), ErrorCode::RebalanceInProgress);
    world.pass(3_000);
    assert_eq!(world.joined(second).generation_id, 1);
}

#[test]
fn a_member_must_share_type_and_protocol_with_the_group() {
    let mut world = World::new();
    world.stable_group("g", 1);
    let request = JoinGroupRequest {
        protocol_type: "connect".into(),
        ..join("g", "")
    };
    assert_eq!(refused(&mut world, 9, request), ErrorCode::InconsistentGroupProtocol);
    let request = JoinGroupRequest {
        protocols: vec![offer("sticky", b"")],
        ..join("g", "")
    };
    assert_eq!(refused(&mut world, 9, request), ErrorCode::InconsistentGroupProtocol);
}

#[test]
fn the_protocol_with_the_most_votes_among_those_that_all_offer_is_chosen() {
    let mut world = World::new();
    let offers = [["a", "b", "only-1"], ["only-2", "b", "a"], ["b", "a", "only-3"]];
    let tokens: Vec<_> = offers
        .iter()
        .map(|names| {
            let protocols = names.iter().map(|name| offer(name, name.as_bytes())).collect();
            world.send(
                3,
                JoinGroupRequest {
                    protocols,
                    ..join("g", "")
                },
            )
        })
        .collect();
    world.pass(6_000);
    let joined: Vec<_> = tokens.into_iter().map(|token| world.joined(token)).collect();
    assert!(joined.iter().all(|joined| joined.protocol_name.as_deref() == Some("b")));
    let leader = joined.iter().find(|joined| joined.leader == joined.member_id).unwrap();
    assert_eq!(leader.members.len(), 3);
    assert!(leader.members.iter().all(|member| member.metadata == b"b"[..]));
}

#[test]
fn a_full_group_takes_nobody_but_its_members() {
    let mut world = World::with(GroupConfig {
        group_size_max: 2,
        ..GroupConfig::default()
    });
    let members = world.stable_group("g", 2);
    assert_eq!(refused(&mut world, 9, join("g", "")), ErrorCode::GroupMaxSizeReached);
    let first = world.send(9, join("g", &members[0].id));
    let second = world.send(9, join("g", &members[1].id));
    assert_eq!(world.joined(first).generation_id, 2);
    assert_eq!(error(world.joined(second).error_code), ErrorCode::None);
}

#[test]
fn a_new_member_that_waits_too_long_is_given_up() {
    let mut world = World::new();
    let request = JoinGroupRequest {
        rebalance_timeout_ms: 1_000_000,
        ..join("g", "")
    };
    let token = world.send(3, request.clone());
    world.pass(3_000);
    let leader = Member::of("g", &world.joined(token));
    let token = world.send(3, request);
    for _ in 0..299 {
        world.pass(1_000);
        assert_eq!(world.heartbeat(&leader), ErrorCode::RebalanceInProgress);
    }
    assert!(world.waits(token));
    world.pass(1_000);
    assert_eq!(error(world.joined(token).error_code), ErrorCode::UnknownMemberId);
}

#[test]
fn a_member_that_waits_for_the_rebalance_does_not_expire() {
    let mut world = World::new();
    let members = world.stable_group("g", 2);
    let waiting = world.send(9, join("g", &members[0].id));
    for _ in 0..50 {
        world.pass(1_000);
        assert_eq!(world.heartbeat(&members[1]), ErrorCode::RebalanceInProgress);
    }
    assert!(world.waits(waiting), "50 s are five sessions");
    let second = world.send(9, join("g", &members[1].id));
    assert_eq!(error(world.joined(waiting).error_code), ErrorCode::None);
    assert_eq!(error(world.joined(second).error_code), ErrorCode::None);
}
