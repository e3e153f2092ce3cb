//! Requests that name many groups concern many partitions: they are split on the way in, and the answers joined.

use std::collections::BTreeMap;

use model::{ErrorCode, PartitionIndex};
use protocol::Text;
use protocol::messages::delete_groups_request::DeleteGroupsRequest;
use protocol::messages::describe_groups_request::DescribeGroupsRequest;
use protocol::messages::offset_fetch_request::{OffsetFetchRequest, OffsetFetchRequestGroup};

use super::request::{GroupRequest, GroupResponse};
use crate::routing::partition_for;

/// From here on OffsetFetch names several groups.
const OFFSET_FETCH_GROUPS_VERSION: i16 = 8;

/// Which partitions of `__consumer_offsets` a request has to reach.
#[derive(Debug, PartialEq)]
pub enum Targets {
    /// Each of these, with its part of the request. None if the request names no group.
    Some(BTreeMap<PartitionIndex, GroupRequest>),
    /// Every partition that this broker coordinates.
    AllLocal(GroupRequest),
}

/// # Panics
/// If `partitions` is not positive.
#[must_use]
pub fn split(request: GroupRequest, version: i16, partitions: i32) -> Targets {
    let one = |group_id: &Text, request: GroupRequest| {
        Targets::Some(BTreeMap::from([(partition_for(group_id, partitions), request)]))
    };
    match request {
        GroupRequest::JoinGroup(request) => one(&request.group_id.clone(), request.into()),
        GroupRequest::SyncGroup(request) => one(&request.group_id.clone(), request.into()),
        GroupRequest::Heartbeat(request) => one(&request.group_id.clone(), request.into()),
        GroupRequest::LeaveGroup(request) => one(&request.group_id.clone(), request.into()),
        GroupRequest::OffsetCommit(request) => one(&request.group_id.clone(), request.into()),
        GroupRequest::OffsetDelete(request) => one(&request.group_id.clone(), request.into()),
        GroupRequest::OffsetFetch(request) if version < OFFSET_FETCH_GROUPS_VERSION => {
            one(&request.group_id.clone(), request.into())
        }
        GroupRequest::OffsetFetch(mut request) => {
            let groups = std::mem::take(&mut request.groups);
            let id = |group: &OffsetFetchRequestGroup| group.group_id.clone();
            by_partition(groups, id, partitions, |groups| OffsetFetchRequest {
                groups,
                ..request.clone()
            })
        }
        GroupRequest::DescribeGroups(mut request) => {
            let groups = std::mem::take(&mut request.groups);
            by_partition(groups, Text::clone, partitions, |groups| DescribeGroupsRequest {
                groups,
                ..request.clone()
            })
        }
        GroupRequest::DeleteGroups(mut request) => {
            let names = std::mem::take(&mut request.groups_names);
            by_partition(names, Text::clone, partitions, |groups_names| DeleteGroupsRequest {
                groups_names,
                ..request.clone()
            })
        }
        request @ GroupRequest::ListGroups(_) => Targets::AllLocal(request),
    }
}

fn by_partition<Group, Request: Into<GroupRequest>>(
    groups: Vec<Group>,
    id: impl Fn(&Group) -> Text,
    partitions: i32,
    request: impl Fn(Vec<Group>) -> Request,
) -> Targets {
    let mut parts: BTreeMap<PartitionIndex, Vec<Group>> = BTreeMap::new();
    for group in groups {
        parts
            .entry(partition_for(&id(&group), partitions))
            .or_default()
            .push(group);
    }
    let parts = parts
        .into_iter()
        .map(|(partition, groups)| (partition, request(groups).into()));
    Targets::Some(parts.collect())
}

/// The answers to the parts of one request as one. Of a list that could not be had whole, the first error is told.
#[must_use]
pub fn merge(answers: impl IntoIterator<Item = GroupResponse>) -> Option<GroupResponse> {
    answers.into_iter().reduce(|whole, part| match (whole, part) {
        (GroupResponse::OffsetFetch(mut whole), GroupResponse::OffsetFetch(part)) => {
            whole.groups.extend(part.groups);
            whole.into()
        }
        (GroupResponse::DescribeGroups(mut whole), GroupResponse::DescribeGroups(part)) => {
            whole.groups.extend(part.groups);
            whole.into()
        }
        (GroupResponse::DeleteGroups(mut whole), GroupResponse::DeleteGroups(part)) => {
            whole.results.extend(part.results);
            whole.into()
        }
        (GroupResponse::ListGroups(mut whole), GroupResponse::ListGroups(part)) => {
            if whole.error_code == ErrorCode::None.code() {
                whole.error_code = part.error_code;
            }
            whole.groups.extend(part.groups);
            whole.into()
        }
        (whole, _) => whole,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::messages::describe_groups_response::{DescribeGroupsResponse, DescribedGroup};

    #[test]
    fn each_group_is_asked_for_at_its_partition_and_told_once() {
        let groups: Vec<Text> = (0..20).map(|at| format!("group-{at}").into()).collect();
        let request = DescribeGroupsRequest {
            groups: groups.clone(),
            ..DescribeGroupsRequest::default()
        };
        let Targets::Some(parts) = split(request.into(), 6, 5) else {
            panic!("groups have partitions");
        };
        let answers = parts.into_iter().map(|(partition, request)| {
            let GroupRequest::DescribeGroups(request) = request else {
                panic!("{request:?} is another request");
            };
            assert!(
                request
                    .groups
                    .iter()
                    .all(|group_id| partition_for(group_id, 5) == partition)
            );
            let groups = request.groups.into_iter().map(|group_id| DescribedGroup {
                group_id,
                ..DescribedGroup::default()
            });
            DescribeGroupsResponse {
                groups: groups.collect(),
                ..DescribeGroupsResponse::default()
            }
            .into()
        });
        let Some(GroupResponse::DescribeGroups(joined)) = merge(answers.collect::<Vec<_>>()) else {
            panic!("there is an answer");
        };
        let mut told: Vec<Text> = joined.groups.into_iter().map(|group| group.group_id).collect();
        told.sort();
        let mut groups = groups;
        groups.sort();
        assert_eq!(told, groups);
    }
}
