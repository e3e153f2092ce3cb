//! Static members (KIP-345): a restart keeps the place in the group.

use model::ErrorCode;
use protocol::messages::join_group_request::JoinGroupRequest;
use protocol::messages::join_group_response::JoinGroupResponse;

use crate::world::{Member, World, error, heartbeat, join, member_commit, offer, subscription, sync};

fn join_static(instance: &str, member_id: &str) -> JoinGroupRequest {
    JoinGroupRequest {
        group_instance_id: Some(instance.into()),
        ..join("g", member_id)
    }
}

fn member(instance: &str, joined: &JoinGroupResponse) -> Member {
    Member {
        instance: Some(instance.into()),
        ..Member::of("g", joined)
    }
}

/// A stable group of the static members `a`, who leads, and `b`.
fn stable_pair(world: &mut World) -> [Member; 2] {
    let tokens = ["a", "b"].map(|instance| (instance, world.send(9, join_static(instance, ""))));
    world.pass(6_000);
    let pair = tokens.map(|(instance, token)| member(instance, &world.joined(token)));
    assert!(pair[0].leads);
    world.sync_all(&pair);
    pair
}

#[test]
fn a_static_member_joins_without_asking_for_an_id_first() {
    let mut world = World::new();
    let [a, _] = stable_pair(&mut world);
    assert!(a.id.starts_with("a-"));
}

#[test]
fn a_restarted_follower_gets_a_new_id_and_nobody_rebalances() {
    for version in [5, 8, 9] {
        let mut world = World::new();
        let [a, b] = stable_pair(&mut world);
        let token = world.send(version, join_static("b", ""));
        let joined = world.joined(token);
        let new = member("b", &joined);
        assert_ne!(new.id, b.id);
        assert_eq!((new.generation, new.leads, joined.skip_assignment), (1, false, false));
        assert_eq!(world.heartbeat(&a), ErrorCode::None);
        let token = world.send(5, sync(&new, &[]));
        assert_eq!(
            world.synced(token).assignment,
            b.id.as_bytes(),
            "the assignment of the one before"
        );
    }
}

#[test]
fn a_restarted_leader_is_told_from_version_9_on_that_the_assignment_stands() {
    let mut world = World::new();
    let [a, _] = stable_pair(&mut world);
    let token = world.send(9, join_static("a", ""));
    let joined = world.joined(token);
    assert!(joined.skip_assignment && joined.leader == joined.member_id);
    assert_eq!(joined.members.len(), 2);
    let again = joined.member_id.to_string();
    let token = world.send(8, join_static("a", ""));
    let joined = world.joined(token);
    assert!(!joined.skip_assignment && joined.members.is_empty());
    assert_eq!(
        joined.leader, *again,
        "below version 9 it must not take itself for the leader"
    );
    assert_ne!(again, a.id);
}

#[test]
fn the_old_id_of_a_restarted_member_is_fenced() {
    let mut world = World::new();
    let [_, b] = stable_pair(&mut world);
    let token = world.send(9, join_static("b", ""));
    let new = member("b", &world.joined(token));
    assert_eq!(world.heartbeat(&b), ErrorCode::FencedInstanceId);
    let token = world.send(5, sync(&b, &[]));
    assert_eq!(error(world.synced(token).error_code), ErrorCode::FencedInstanceId);
    let token = world.send(9, join_static("b", &b.id));
    assert_eq!(error(world.joined(token).error_code), ErrorCode::FencedInstanceId);
    assert_eq!(world.commit(9, member_commit(&b, 0, 1)), ErrorCode::FencedInstanceId);
    assert_eq!(world.commit(9, member_commit(&new, 0, 1)), ErrorCode::None);
}

#[test]
fn two_processes_of_one_instance_fence_each_other_while_they_wait() {
    let mut world = World::new();
    let first = world.send(9, join_static("a", ""));
    let second = world.send(9, join_static("a", ""));
    assert_eq!(error(world.joined(first).error_code), ErrorCode::FencedInstanceId);
    world.pass(3_000);
    assert_eq!(world.joined(second).generation_id, 1);
}

#[test]
fn a_restart_that_changes_the_protocol_rebalances() {
    let mut world = World::new();
    stable_pair(&mut world);
    let offers = vec![offer("sticky", b""), offer("range", b"")];
    let token = world.send(
        9,
        JoinGroupRequest {
            protocols: offers.clone(),
            ..join_static("a", "")
        },
    );
    assert!(!world.waits(token), "range is still what all offer");
    let token = world.send(
        9,
        JoinGroupRequest {
            protocols: offers,
            ..join_static("b", "")
        },
    );
    assert!(world.waits(token), "now both prefer sticky");
    assert_eq!(world.state("g"), "PreparingRebalance");
}

#[test]
fn a_restart_between_join_and_sync_rebalances() {
    let mut world = World::new();
    let [a, b] = ["a", "b"].map(|instance| world.send(9, join_static(instance, "")));
    world.pass(6_000);
    let a = member("a", &world.joined(a));
    let b = member("b", &world.joined(b));
    let waiting = world.send(5, sync(&b, &[]));
    let again = world.send(9, join_static("b", ""));
    assert_eq!(error(world.synced(waiting).error_code), ErrorCode::FencedInstanceId);
    assert!(world.waits(again));
    assert_eq!(world.heartbeat(&a), ErrorCode::RebalanceInProgress);
}

#[test]
fn a_static_member_that_does_not_join_again_keeps_its_place_until_its_session_is_over() {
    let mut world = World::new();
    let [a, b] = stable_pair(&mut world);
    let request = JoinGroupRequest {
        rebalance_timeout_ms: 2_000,
        protocols: vec![offer("range", &subscription(&["orders", "other"]))],
        ..join_static("a", &a.id)
    };
    let token = world.send(9, request);
    world.pass(9_000);
    assert!(world.waits(token), "the others' rebalance timeout counts");
    for _ in 0..51 {
        world.call(4, heartbeat(&b));
        world.pass(1_000);
    }
    let joined = world.joined(token);
    assert_eq!(
        (joined.generation_id, joined.members.len()),
        (2, 2),
        "b is still a member"
    );
}

#[test]
fn an_unknown_instance_with_an_id_is_an_unknown_member() {
    let mut world = World::new();
    let [a, _] = stable_pair(&mut world);
    let token = world.send(9, join_static("c", &a.id));
    assert_eq!(error(world.joined(token).error_code), ErrorCode::UnknownMemberId);
    let pending = world.member_id("g");
    let token = world.send(9, join_static("c", &pending));
    assert_eq!(error(world.joined(token).error_code), ErrorCode::UnknownMemberId);
}

#[test]
fn a_new_id_that_cannot_be_stored_is_taken_back() {
    let mut world = World::new();
    let [_, b] = stable_pair(&mut world);
    world.commits = false;
    let token = world.send(9, join_static("b", ""));
    assert!(world.waits(token), "the new id is told when it is stored");
    world.fail_all(ErrorCode::NotEnoughReplicas);
    let joined = world.joined(token);
    assert_eq!(error(joined.error_code), ErrorCode::CoordinatorNotAvailable);
    assert_eq!(joined.member_id, "");
    assert_eq!(world.heartbeat(&b), ErrorCode::None, "the old id is good again");
}
