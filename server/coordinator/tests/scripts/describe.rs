//! DescribeGroups, ListGroups and DeleteGroups.

use coordinator::group::GroupResponse;
use model::ErrorCode;
use protocol::messages::delete_groups_request::DeleteGroupsRequest;
use protocol::messages::describe_groups_request::DescribeGroupsRequest;
use protocol::messages::list_groups_request::ListGroupsRequest;

use crate::world::{World, error, join, simple_commit, subscription};

fn list(world: &mut World, states: &[&str], types: &[&str]) -> Vec<String> {
    let request = ListGroupsRequest {
        states_filter: states.iter().map(|state| (*state).into()).collect(),
        types_filter: types.iter().map(|name| (*name).into()).collect(),
        ..ListGroupsRequest::default()
    };
    match world.call(5, request) {
        GroupResponse::ListGroups(response) => response
            .groups
            .iter()
            .map(|group| format!("{} {} {}", group.group_id, group.group_state, group.group_type))
            .collect(),
        other => panic!("{other:?} is no list"),
    }
}

fn delete(world: &mut World, groups: &[&str]) -> Vec<ErrorCode> {
    let request = DeleteGroupsRequest {
        groups_names: groups.iter().map(|group| (*group).into()).collect(),
        ..DeleteGroupsRequest::default()
    };
    match world.call(3, request) {
        GroupResponse::DeleteGroups(response) => {
            response.results.iter().map(|result| error(result.error_code)).collect()
        }
        other => panic!("{other:?} is no answer to a delete"),
    }
}

#[test]
fn a_stable_group_tells_what_its_members_read_and_were_assigned() {
    let mut world = World::new();
    let members = world.stable_group("g", 2);
    let group = world.described("g");
    assert_eq!(
        (&*group.group_state, &*group.protocol_type, &*group.protocol_data),
        ("Stable", "consumer", "range")
    );
    assert_eq!(group.members.len(), 2);
    for member in &group.members {
        assert!(members.iter().any(|own| own.id == *member.member_id));
        assert_eq!(member.member_assignment, member.member_id.as_bytes());
        assert_eq!(member.member_metadata, subscription(&["orders"]));
        assert_eq!((&*member.client_id, &*member.client_host), ("client", "/127.0.0.1"));
    }
}

#[test]
fn a_group_that_rebalances_tells_only_who_is_in_it() {
    let mut world = World::new();
    let members = world.stable_group("g", 2);
    world.send(9, join("g", &members[0].id));
    let group = world.described("g");
    assert_eq!((&*group.group_state, &*group.protocol_data), ("PreparingRebalance", ""));
    assert_eq!(group.members.len(), 2);
    assert!(
        group
            .members
            .iter()
            .all(|member| member.member_metadata.is_empty() && member.member_assignment.is_empty())
    );
}

#[test]
fn a_group_that_is_not_there_is_dead_and_from_version_6_on_an_error() {
    let mut world = World::new();
    for version in 0..=6 {
        let request = DescribeGroupsRequest {
            groups: vec!["none".into()],
            ..Default::default()
        };
        let GroupResponse::DescribeGroups(response) = world.call(version, request) else {
            panic!("no description");
        };
        let group = &response.groups[0];
        assert_eq!(&*group.group_state, "Dead");
        let (code, message) = match version {
            6 => (ErrorCode::GroupIdNotFound, Some("Group none not found.")),
            _ => (ErrorCode::None, None),
        };
        assert_eq!(
            (error(group.error_code), group.error_message.as_deref()),
            (code, message)
        );
    }
}

#[test]
fn groups_are_listed_by_state_and_type() {
    let mut world = World::new();
    world.stable_group("a", 1);
    world.commit(9, simple_commit("b", 0, 1));
    assert_eq!(list(&mut world, &[], &[]), ["a Stable classic", "b Empty classic"]);
    assert_eq!(list(&mut world, &["stable"], &[]), ["a Stable classic"]);
    assert_eq!(list(&mut world, &["Dead", "EMPTY"], &["Classic"]), ["b Empty classic"]);
    assert!(list(&mut world, &[], &["consumer"]).is_empty());
}

#[test]
fn a_group_goes_with_its_offsets_if_nobody_is_in_it() {
    let mut world = World::new();
    world.stable_group("busy", 1);
    world.commit(9, simple_commit("idle", 0, 1));
    let errors = delete(&mut world, &["busy", "idle", "none", "idle"]);
    assert_eq!(
        errors,
        [ErrorCode::NonEmptyGroup, ErrorCode::None, ErrorCode::GroupIdNotFound]
    );
    for _ in 0..2 {
        assert_eq!(world.state("busy"), "Stable");
        assert_eq!(world.state("idle"), "Dead");
        assert_eq!(world.offset("idle", 0), -1);
        world.fail_over();
    }
}
