//! LeaveGroup: one member or many, by themselves or removed by an operator.

use coordinator::group::GroupResponse;
use model::ErrorCode;
use protocol::messages::join_group_request::JoinGroupRequest;
use protocol::messages::leave_group_request::{LeaveGroupRequest, MemberIdentity};
use protocol::messages::leave_group_response::LeaveGroupResponse;

use crate::world::{World, error, join};

fn identity(member_id: &str, instance: Option<&str>) -> MemberIdentity {
    MemberIdentity {
        member_id: member_id.into(),
        group_instance_id: instance.map(Into::into),
        ..MemberIdentity::default()
    }
}

fn leave(world: &mut World, version: i16, group: &str, members: Vec<MemberIdentity>) -> LeaveGroupResponse {
    let request = LeaveGroupRequest {
        group_id: group.into(),
        member_id: members[0].member_id.clone(),
        members,
        ..LeaveGroupRequest::default()
    };
    match world.call(version, request) {
        GroupResponse::LeaveGroup(response) => response,
        other => panic!("{other:?} is no answer to a leave"),
    }
}

#[test]
fn a_member_that_leaves_makes_the_others_rebalance_at_once() {
    for version in [0, 2, 3, 5] {
        let mut world = World::new();
        let members = world.stable_group("g", 2);
        let response = leave(&mut world, version, "g", vec![identity(&members[1].id, None)]);
        assert_eq!(error(response.error_code), ErrorCode::None);
        assert_eq!(response.members.len(), usize::from(version >= 3));
        assert_eq!(world.heartbeat(&members[0]), ErrorCode::RebalanceInProgress);
        let token = world.send(9, join("g", &members[0].id));
        assert_eq!(world.joined(token).generation_id, 2);
    }
}

#[test]
fn the_group_is_empty_when_the_last_member_has_left() {
    let mut world = World::new();
    let members = world.stable_group("g", 1);
    leave(&mut world, 5, "g", vec![identity(&members[0].id, None)]);
    let group = world.described("g");
    assert_eq!((&*group.group_state, &*group.protocol_type), ("Empty", "consumer"));
    world.fail_over();
    assert_eq!(world.described("g"), group);
}

#[test]
fn a_wrong_member_is_told_in_the_place_of_its_version() {
    let mut world = World::new();
    world.stable_group("g", 1);
    for group in ["g", "none"] {
        for version in 0..=5 {
            let response = leave(&mut world, version, group, vec![identity("who", None)]);
            let (own, members) = (error(response.error_code), response.members);
            match version {
                ..3 => assert_eq!((own, members.len()), (ErrorCode::UnknownMemberId, 0)),
                _ => {
                    assert_eq!(own, ErrorCode::None);
                    assert_eq!(error(members[0].error_code), ErrorCode::UnknownMemberId);
                    assert_eq!(members[0].member_id, "who");
                }
            }
        }
    }
    let response = leave(&mut world, 5, "", vec![identity("who", None)]);
    assert_eq!(error(response.error_code), ErrorCode::InvalidGroupId);
}

#[test]
fn an_operator_removes_static_members_by_their_instance() {
    let mut world = World::new();
    let token = world.send(
        9,
        JoinGroupRequest {
            group_instance_id: Some("i".into()),
            ..join("g", "")
        },
    );
    world.pass(3_000);
    let id = world.joined(token).member_id.to_string();
    let many = vec![
        identity("", Some("j")),
        identity("wrong", Some("i")),
        identity("", Some("i")),
        identity("", None),
    ];
    let response = leave(&mut world, 5, "g", many);
    let errors: Vec<_> = response.members.iter().map(|member| error(member.error_code)).collect();
    let expected = [
        ErrorCode::UnknownMemberId,
        ErrorCode::FencedInstanceId,
        ErrorCode::None,
        ErrorCode::UnknownMemberId,
    ];
    assert_eq!(errors, expected);
    assert_eq!(world.state("g"), "Empty");
    assert!(
        id.starts_with("i-"),
        "a static member's id begins with its instance: {id}"
    );
}

#[test]
fn an_id_that_was_never_used_can_leave() {
    let mut world = World::new();
    let id = world.member_id("g");
    let response = leave(&mut world, 5, "g", vec![identity(&id, None)]);
    assert_eq!(error(response.members[0].error_code), ErrorCode::None);
    let token = world.send(9, join("g", &id));
    assert_eq!(error(world.joined(token).error_code), ErrorCode::UnknownMemberId);
}

#[test]
fn a_member_that_is_removed_while_it_waits_is_told() {
    let mut world = World::new();
    let members = world.stable_group("g", 2);
    let waiting = world.send(9, join("g", &members[0].id));
    assert!(world.waits(waiting));
    leave(&mut world, 5, "g", vec![identity(&members[0].id, None)]);
    assert_eq!(error(world.joined(waiting).error_code), ErrorCode::UnknownMemberId);
}
