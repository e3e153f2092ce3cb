//! Nothing is promised before it is committed, and what cannot be stored is taken back.

use coordinator::Shard;
use coordinator::group::GroupConfig;
use model::ErrorCode;
use protocol::messages::delete_groups_request::DeleteGroupsRequest;

use crate::world::{Member, World, error, join, simple_commit, sync};

#[test]
fn an_offset_is_acknowledged_and_visible_when_it_is_committed() {
    let mut world = World::new();
    world.commit(9, simple_commit("g", 0, 1));
    world.commits = false;
    let token = world.send(9, simple_commit("g", 0, 2));
    world.append_all();
    assert!(world.waits(token));
    assert_eq!(world.offset("g", 0), 1);
    world.commit_written();
    assert_eq!(world.committed(token), ErrorCode::None);
    assert_eq!(world.offset("g", 0), 2);
}

#[test]
fn an_offset_that_cannot_be_stored_was_never_committed() {
    let mut world = World::new();
    world.commit(9, simple_commit("g", 0, 1));
    world.commits = false;
    for (append, told) in [
        (ErrorCode::NotEnoughReplicas, ErrorCode::CoordinatorNotAvailable),
        (
            ErrorCode::NotEnoughReplicasAfterAppend,
            ErrorCode::CoordinatorNotAvailable,
        ),
        (ErrorCode::RequestTimedOut, ErrorCode::CoordinatorNotAvailable),
        (ErrorCode::NotLeaderOrFollower, ErrorCode::NotCoordinator),
        (ErrorCode::KafkaStorageError, ErrorCode::NotCoordinator),
        (ErrorCode::MessageTooLarge, ErrorCode::UnknownServerError),
    ] {
        let token = world.send(9, simple_commit("g", 0, 2));
        world.fail_all(append);
        assert_eq!(world.committed(token), told);
    }
    assert_eq!(world.offset("g", 0), 1);
}

#[test]
fn a_group_is_not_told_of_before_its_first_record_is_committed() {
    let mut world = World::new();
    world.commits = false;
    let id = world.member_id("g");
    assert_eq!(world.state("g"), "Dead");
    world.append_all();
    world.commit_written();
    assert_eq!(world.state("g"), "Empty");
    let token = world.send(9, join("g", &id));
    assert!(world.waits(token));
}

#[test]
fn a_group_that_cannot_be_stored_is_gone_with_those_who_wait_in_it() {
    let mut world = World::new();
    world.commits = false;
    let token = world.send(3, join("g", ""));
    world.fail_all(ErrorCode::NotEnoughReplicas);
    assert_eq!(
        error(world.joined(token).error_code),
        ErrorCode::CoordinatorNotAvailable
    );
    world.commits = true;
    assert_eq!(world.state("g"), "Dead");
    world.stable_group("g", 1);
}

#[test]
fn assignments_are_told_when_they_are_committed() {
    let mut world = World::new();
    let id = world.member_id("g");
    let token = world.send(9, join("g", &id));
    world.pass(3_000);
    let leader = Member::of("g", &world.joined(token));
    world.commits = false;
    let waiting = world.send(5, sync(&leader, &[&id]));
    world.append_all();
    assert!(world.waits(waiting));
    assert_eq!(world.state("g"), "CompletingRebalance");
    world.commit_written();
    assert_eq!(world.synced(waiting).assignment, id.as_bytes());
}

#[test]
fn assignments_that_cannot_be_stored_make_the_members_join_again() {
    let mut world = World::new();
    let id = world.member_id("g");
    let token = world.send(9, join("g", &id));
    world.pass(3_000);
    let leader = Member::of("g", &world.joined(token));
    world.commits = false;
    let waiting = world.send(5, sync(&leader, &[&id]));
    world.fail_all(ErrorCode::NotEnoughReplicas);
    assert_eq!(
        error(world.synced(waiting).error_code),
        ErrorCode::CoordinatorNotAvailable
    );
    assert_eq!(world.state("g"), "PreparingRebalance");
    world.commits = true;
    let token = world.send(9, join("g", &id));
    assert_eq!(world.joined(token).generation_id, 2);
}

#[test]
fn assignments_of_a_generation_that_is_over_are_not_told() {
    let mut world = World::new();
    let ids = [world.member_id("g"), world.member_id("g")];
    let joins = ids.clone().map(|id| world.send(9, join("g", &id)));
    world.pass(6_000);
    let members = joins.map(|token| Member::of("g", &world.joined(token)));
    let leader = members.iter().find(|member| member.leads).unwrap();
    world.commits = false;
    let waiting = world.send(5, sync(leader, &[&ids[0], &ids[1]]));
    world.append_all();
    let newcomer = world.send(3, join("g", ""));
    assert_eq!(error(world.synced(waiting).error_code), ErrorCode::RebalanceInProgress);
    world.commit_written();
    assert_eq!(world.state("g"), "PreparingRebalance");
    assert!(world.waits(newcomer));
}

#[test]
fn a_group_that_could_not_be_deleted_is_back() {
    let mut world = World::new();
    world.commit(9, simple_commit("g", 0, 1));
    world.commits = false;
    let token = world.send(
        3,
        DeleteGroupsRequest {
            groups_names: vec!["g".into()],
            ..Default::default()
        },
    );
    assert!(world.waits(token));
    world.fail_all(ErrorCode::NotLeaderOrFollower);
    assert!(
        format!("{:?}", world.answer(token)).contains(&format!("error_code: {}", ErrorCode::NotCoordinator.code()))
    );
    assert_eq!((world.state("g"), world.offset("g", 0)), ("Empty".into(), 1));
}

#[test]
fn a_member_that_joins_while_its_group_is_being_deleted_founds_a_new_one() {
    let mut world = World::new();
    world.commit(9, simple_commit("g", 0, 1));
    world.commits = false;
    let deleted = world.send(
        3,
        DeleteGroupsRequest {
            groups_names: vec!["g".into()],
            ..Default::default()
        },
    );
    let joined = world.send(3, join("g", ""));
    world.commits = true;
    world.commit_all();
    assert!(!world.waits(deleted));
    world.pass(3_000);
    assert_eq!(world.joined(joined).generation_id, 1);
    assert_eq!(world.offset("g", 0), -1);
}

#[test]
fn an_offset_on_its_way_goes_with_its_group() {
    let mut world = World::new();
    world.commit(9, simple_commit("g", 0, 1));
    world.commits = false;
    let committed = world.send(9, simple_commit("g", 1, 2));
    let deleted = world.send(
        3,
        DeleteGroupsRequest {
            groups_names: vec!["g".into()],
            ..Default::default()
        },
    );
    world.commits = true;
    world.commit_all();
    assert_eq!(world.committed(committed), ErrorCode::None);
    assert!(!world.waits(deleted));
    for _ in 0..2 {
        assert_eq!((world.offset("g", 0), world.offset("g", 1)), (-1, -1));
        assert_eq!(world.state("g"), "Dead");
        world.fail_over();
    }
}

#[test]
fn a_commit_on_its_way_survives_a_group_that_cannot_be_stored() {
    let mut world = World::new();
    world.commits = false;
    let committed = world.send(9, simple_commit("g", 0, 1));
    world.append_all();
    world.send(3, join("g", ""));
    world.commit_written();
    assert_eq!(world.committed(committed), ErrorCode::None);
    world.fail_all(ErrorCode::NotEnoughReplicas);
    assert_eq!((world.state("g"), world.offset("g", 0)), ("Empty".into(), 1));
}

#[test]
fn a_shard_that_resigns_answers_all_who_wait() {
    let mut world = World::new();
    let members = world.stable_group("g", 2);
    world.commits = false;
    let joined = world.send(9, join("g", &members[0].id));
    let committed = world.send(9, simple_commit("h", 0, 1));
    let other = world.send(3, join("i", ""));
    let mut effects = Vec::new();
    world.shard.resign(ErrorCode::NotCoordinator, &mut effects);
    world.take(effects);
    assert_eq!(error(world.joined(joined).error_code), ErrorCode::NotCoordinator);
    assert_eq!(error(world.joined(other).error_code), ErrorCode::NotCoordinator);
    assert_eq!(world.committed(committed), ErrorCode::NotCoordinator);
    assert!(world.waiting.is_empty());
    assert_eq!(world.shard.next_deadline(), None);
}

#[test]
fn too_many_writes_in_flight_turn_callers_away_for_a_while() {
    let mut world = World::with(GroupConfig::default());
    world.commits = false;
    for _ in 0..10_000 {
        world.send(9, simple_commit("g", 0, 1));
    }
    assert_eq!(
        world.commit(9, simple_commit("g", 0, 1)),
        ErrorCode::CoordinatorLoadInProgress
    );
    world.commit_all();
    world.commits = true;
    assert_eq!(world.commit(9, simple_commit("g", 0, 1)), ErrorCode::None);
}

#[test]
fn a_group_that_is_founded_while_the_last_record_of_the_one_before_is_on_its_way_is_not_deleted_with_it() {
    use protocol::messages::leave_group_request::{LeaveGroupRequest, MemberIdentity};
    let mut world = World::new();
    let members = world.stable_group("g", 1);
    world.commits = false;
    let leaving = MemberIdentity {
        member_id: (&*members[0].id).into(),
        ..MemberIdentity::default()
    };
    world.send(
        5,
        LeaveGroupRequest {
            group_id: "g".into(),
            members: vec![leaving],
            ..Default::default()
        },
    );
    world.send(
        3,
        DeleteGroupsRequest {
            groups_names: vec!["g".into()],
            ..Default::default()
        },
    );
    let joined = world.send(3, join("g", ""));
    let writes: Vec<_> = world.appends.drain(..).collect();
    assert_eq!(writes.len(), 3);
    for write in writes {
        world.appends.push_back(write);
        world.append_all();
        world.commit_written();
        assert!(world.waits(joined));
    }
    world.pass(3_000);
    assert_eq!(world.joined(joined).generation_id, 1);
}

#[test]
fn a_group_that_is_not_stored_yet_cannot_be_deleted() {
    let mut world = World::new();
    world.commits = false;
    world.member_id("g");
    let token = world.send(
        3,
        DeleteGroupsRequest {
            groups_names: vec!["g".into()],
            ..Default::default()
        },
    );
    assert!(!world.waits(token));
}

#[test]
fn a_client_id_too_long_for_a_member_id_is_refused() {
    let mut world = World::new();
    for (length, expected) in [
        (32_730, ErrorCode::MemberIdRequired),
        (32_731, ErrorCode::InvalidRequest),
    ] {
        world.client_id = "x".repeat(length);
        let token = world.send(9, join("g", ""));
        assert_eq!(error(world.joined(token).error_code), expected);
    }
}

#[test]
fn who_joins_between_a_commit_and_the_deletion_behind_it_founds_a_group_that_stays() {
    let mut world = World::new();
    world.commit(9, simple_commit("g", 0, 1));
    world.commits = false;
    world.send(9, simple_commit("g", 1, 1));
    let groups_names = vec!["g".into()];
    world.send(
        3,
        DeleteGroupsRequest {
            groups_names,
            ..Default::default()
        },
    );
    let deletion = world.appends.pop_back().unwrap();
    world.append_all();
    world.commit_written();
    let joined = world.send(3, join("g", ""));
    let creation = world.appends.pop_back().unwrap();
    world.appends.extend([deletion, creation]);
    world.commits = true;
    world.commit_all();
    assert!(world.waits(joined));
    world.pass(3_000);
    assert_eq!(world.joined(joined).generation_id, 1);
    assert_eq!(world.offset("g", 1), -1);
}
