//! SyncGroup: every member gets its assignment, once.

use model::ErrorCode;
use protocol::messages::sync_group_request::SyncGroupRequest;

use crate::world::{Member, World, error, join, sync};

fn refused(world: &mut World, version: i16, request: SyncGroupRequest) -> ErrorCode {
    let token = world.send(version, request);
    error(world.synced(token).error_code)
}

/// Two members that have joined and not synced; the leader first.
fn joined_pair(world: &mut World) -> [Member; 2] {
    let ids = [world.member_id("g"), world.member_id("g")];
    let tokens = ids.map(|id| world.send(9, join("g", &id)));
    world.pass(6_000);
    let mut pair = tokens.map(|token| Member::of("g", &world.joined(token)));
    pair.sort_by_key(|member| !member.leads);
    pair
}

#[test]
fn followers_wait_until_the_leader_has_assigned() {
    let mut world = World::new();
    let [leader, follower] = joined_pair(&mut world);
    let waiting = world.send(5, sync(&follower, &[]));
    assert!(world.waits(waiting));
    assert_eq!(world.state("g"), "CompletingRebalance");
    let token = world.send(5, sync(&leader, &[&leader.id, &follower.id]));
    assert_eq!(world.synced(token).assignment, leader.id.as_bytes());
    let synced = world.synced(waiting);
    assert_eq!(synced.assignment, follower.id.as_bytes());
    assert_eq!(synced.protocol_type.as_deref(), Some("consumer"));
    assert_eq!(synced.protocol_name.as_deref(), Some("range"));
    assert_eq!(world.state("g"), "Stable");
}

#[test]
fn a_member_that_the_leader_forgot_is_assigned_nothing() {
    let mut world = World::new();
    let [leader, follower] = joined_pair(&mut world);
    let token = world.send(5, sync(&leader, &[&leader.id, "a-stranger"]));
    assert_eq!(error(world.synced(token).error_code), ErrorCode::None);
    let token = world.send(5, sync(&follower, &[]));
    let synced = world.synced(token);
    assert_eq!(
        (error(synced.error_code), synced.assignment.len()),
        (ErrorCode::None, 0)
    );
}

#[test]
fn syncs_that_cannot_be_are_refused() {
    let mut world = World::new();
    let [leader, _] = joined_pair(&mut world);
    let good = sync(&leader, &[]);
    let request = SyncGroupRequest {
        group_id: "".into(),
        ..good.clone()
    };
    assert_eq!(refused(&mut world, 5, request), ErrorCode::InvalidGroupId);
    let request = SyncGroupRequest {
        group_id: "none".into(),
        ..good.clone()
    };
    assert_eq!(refused(&mut world, 5, request), ErrorCode::UnknownMemberId);
    let request = SyncGroupRequest {
        member_id: "who".into(),
        ..good.clone()
    };
    assert_eq!(refused(&mut world, 5, request), ErrorCode::UnknownMemberId);
    let request = SyncGroupRequest {
        generation_id: 2,
        ..good.clone()
    };
    assert_eq!(refused(&mut world, 5, request), ErrorCode::IllegalGeneration);
    let request = SyncGroupRequest {
        protocol_type: Some("connect".into()),
        ..good.clone()
    };
    assert_eq!(refused(&mut world, 5, request), ErrorCode::InconsistentGroupProtocol);
    let request = SyncGroupRequest {
        protocol_name: Some("sticky".into()),
        ..good.clone()
    };
    assert_eq!(refused(&mut world, 5, request), ErrorCode::InconsistentGroupProtocol);
    let request = SyncGroupRequest {
        protocol_name: None,
        ..good.clone()
    };
    assert_eq!(
        refused(&mut world, 5, request.clone()),
        ErrorCode::InconsistentGroupProtocol
    );
    assert_eq!(
        refused(&mut world, 4, request),
        ErrorCode::None,
        "before version 5 no names are given"
    );
}

#[test]
fn a_rebalance_sends_back_those_who_wait_for_assignments() {
    let mut world = World::new();
    let [leader, follower] = joined_pair(&mut world);
    let waiting = world.send(5, sync(&follower, &[]));
    let changed = protocol::messages::join_group_request::JoinGroupRequest {
        protocols: vec![crate::world::offer("range", b"other")],
        ..join("g", &leader.id)
    };
    let rejoined = world.send(9, changed);
    assert_eq!(error(world.synced(waiting).error_code), ErrorCode::RebalanceInProgress);
    assert!(world.waits(rejoined));
    assert_eq!(
        refused(&mut world, 5, sync(&follower, &[])),
        ErrorCode::RebalanceInProgress
    );
}

#[test]
fn members_that_do_not_sync_within_the_rebalance_timeout_are_out() {
    let mut world = World::new();
    let [leader, follower] = joined_pair(&mut world);
    let waiting = world.send(5, sync(&follower, &[]));
    for _ in 0..59 {
        world.pass(1_000);
        assert_eq!(
            world.heartbeat(&leader),
            ErrorCode::None,
            "heartbeats are fine before the sync"
        );
    }
    assert!(world.waits(waiting), "59 s are more than five sessions");
    world.pass(1_000);
    assert_eq!(error(world.synced(waiting).error_code), ErrorCode::RebalanceInProgress);
    assert_eq!(world.heartbeat(&leader), ErrorCode::UnknownMemberId);
    let token = world.send(9, join("g", &follower.id));
    let joined = world.joined(token);
    assert_eq!((joined.generation_id, &*joined.leader), (2, &*follower.id));
}

#[test]
fn a_stable_group_tells_the_assignment_again() {
    let mut world = World::new();
    let members = world.stable_group("g", 2);
    for member in &members {
        let token = world.send(5, sync(member, &[]));
        assert_eq!(world.synced(token).assignment, member.id.as_bytes());
    }
}

#[test]
fn a_sync_repeated_while_the_first_waits_takes_its_place() {
    let mut world = World::new();
    let [leader, follower] = joined_pair(&mut world);
    let first = world.send(5, sync(&follower, &[]));
    let second = world.send(5, sync(&follower, &[]));
    assert_eq!(error(world.synced(first).error_code), ErrorCode::RebalanceInProgress);
    world.send(5, sync(&leader, &[&leader.id, &follower.id]));
    assert_eq!(world.synced(second).assignment, follower.id.as_bytes());
}
