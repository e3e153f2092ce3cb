//! Offsets and groups that nobody needs any more go.

use model::ErrorCode;
use protocol::messages::leave_group_request::{LeaveGroupRequest, MemberIdentity};

use crate::world::{World, join, member_commit, simple_commit};

const DAY: u64 = 24 * 60 * 60 * 1_000;
const CHECK: u64 = 10 * 60 * 1_000;

#[test]
fn a_simple_groups_offsets_go_seven_days_after_their_commit_and_the_group_with_the_last() {
    let mut world = World::new();
    world.commit(9, simple_commit("g", 0, 1));
    world.pass(DAY);
    world.commit(9, simple_commit("g", 1, 2));
    world.pass(6 * DAY - CHECK);
    assert_eq!(world.offset("g", 0), 1);
    world.pass(CHECK);
    assert_eq!((world.offset("g", 0), world.offset("g", 1)), (-1, 2));
    assert_eq!(world.state("g"), "Empty");
    world.pass(DAY);
    assert_eq!(world.offset("g", 1), -1);
    assert_eq!(world.state("g"), "Dead");
    world.fail_over();
    assert_eq!(world.state("g"), "Dead");
}

#[test]
fn the_time_of_a_group_that_had_members_begins_when_the_last_one_left() {
    let mut world = World::new();
    let member = world.stable_group("g", 1).remove(0);
    world.commit(9, member_commit(&member, 0, 1));
    for _ in 0..8 * DAY / 9_000 {
        world.pass(9_000);
        assert_eq!(world.heartbeat(&member), ErrorCode::None);
    }
    assert_eq!(world.offset("g", 0), 1, "the topic is read");
    let leaving = MemberIdentity {
        member_id: (&*member.id).into(),
        ..MemberIdentity::default()
    };
    world.call(
        5,
        LeaveGroupRequest {
            group_id: "g".into(),
            members: vec![leaving],
            ..Default::default()
        },
    );
    world.pass(7 * DAY - CHECK);
    assert_eq!(world.offset("g", 0), 1);
    world.pass(2 * CHECK);
    assert_eq!(world.offset("g", 0), -1);
    assert_eq!(world.state("g"), "Dead");
}

#[test]
fn a_retention_time_of_the_clients_own_is_kept() {
    let mut world = World::new();
    let mut request = simple_commit("g", 0, 1);
    request.retention_time_ms = 60_000;
    world.commit(4, request);
    assert_eq!(
        &world.log[0].value.as_ref().unwrap()[..2],
        [0, 1],
        "version 1 holds the time of expiry"
    );
    world.fail_over();
    assert_eq!(world.offset("g", 0), 1);
    world.pass(CHECK);
    assert_eq!(world.offset("g", 0), -1);
}

#[test]
fn an_offset_that_is_just_being_committed_anew_does_not_expire() {
    let mut world = World::new();
    world.commit(9, simple_commit("g", 0, 1));
    world.pass(7 * DAY - CHECK);
    world.commits = false;
    world.set_clock(7 * DAY - 1);
    let token = world.send(9, simple_commit("g", 0, 2));
    world.append_all();
    world.pass(CHECK + 1);
    world.commits = true;
    world.commit_written();
    assert_eq!(world.committed(token), ErrorCode::None);
    assert_eq!(world.offset("g", 0), 2);
}

#[test]
fn a_group_that_an_id_was_given_out_for_stays_until_that_is_used_or_over() {
    let mut world = World::new();
    world.pass(CHECK - 1);
    let id = world.member_id("g");
    world.pass(1);
    let token = world.send(9, join("g", &id));
    world.pass(3_000);
    assert_eq!(world.joined(token).generation_id, 1);
}
