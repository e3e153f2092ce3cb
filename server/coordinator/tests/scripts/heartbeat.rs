//! Heartbeat, and what comes of its absence.

use model::ErrorCode;

use crate::world::{Member, World, join, member_commit};

#[test]
fn heartbeats_that_cannot_be_are_refused() {
    let mut world = World::new();
    let member = world.stable_group("g", 1).remove(0);
    let with = |change: fn(&mut Member)| {
        let mut member = member.clone();
        change(&mut member);
        member
    };
    assert_eq!(world.heartbeat(&member), ErrorCode::None);
    assert_eq!(world.heartbeat(&with(|m| m.group.clear())), ErrorCode::InvalidGroupId);
    assert_eq!(
        world.heartbeat(&with(|m| m.group = "none".into())),
        ErrorCode::UnknownMemberId
    );
    assert_eq!(
        world.heartbeat(&with(|m| m.id = "who".into())),
        ErrorCode::UnknownMemberId
    );
    assert_eq!(
        world.heartbeat(&with(|m| m.instance = Some("i".into()))),
        ErrorCode::UnknownMemberId
    );
    assert_eq!(
        world.heartbeat(&with(|m| m.generation = 0)),
        ErrorCode::IllegalGeneration
    );
}

#[test]
fn a_member_that_is_silent_for_its_session_is_out_and_the_others_rebalance() {
    let mut world = World::new();
    let members = world.stable_group("g", 2);
    world.pass(9_999);
    assert_eq!(
        world.heartbeat(&members[0]),
        ErrorCode::None,
        "until the session is over nothing happens"
    );
    world.pass(1);
    assert_eq!(world.heartbeat(&members[0]), ErrorCode::RebalanceInProgress);
    assert_eq!(world.heartbeat(&members[1]), ErrorCode::UnknownMemberId);
}

#[test]
fn a_group_whose_members_are_all_silent_is_empty_in_the_log_too() {
    let mut world = World::new();
    world.stable_group("g", 2);
    world.pass(70_000);
    assert_eq!(world.state("g"), "Empty");
    world.fail_over();
    assert_eq!(world.state("g"), "Empty");
}

#[test]
fn a_commit_is_a_sign_of_life() {
    let mut world = World::new();
    let member = world.stable_group("g", 1).remove(0);
    for offset in 0..5 {
        world.pass(9_000);
        assert_eq!(world.commit(9, member_commit(&member, 0, offset)), ErrorCode::None);
    }
    assert_eq!(world.heartbeat(&member), ErrorCode::None);
}

#[test]
fn a_member_may_send_heartbeats_before_it_has_synced() {
    let mut world = World::new();
    let id = world.member_id("g");
    let token = world.send(9, join("g", &id));
    world.pass(3_000);
    let member = Member::of("g", &world.joined(token));
    assert_eq!(world.state("g"), "CompletingRebalance");
    assert_eq!(world.heartbeat(&member), ErrorCode::None);
}

#[test]
fn an_id_that_is_not_used_within_its_session_is_forgotten() {
    let mut world = World::new();
    let id = world.member_id("g");
    world.pass(10_000);
    let token = world.send(9, join("g", &id));
    let joined = world.joined(token);
    assert_eq!(crate::world::error(joined.error_code), ErrorCode::UnknownMemberId);
}
