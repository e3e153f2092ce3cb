//! DescribeGroups, versions 0–6: groups with their members.
//!
//! What members subscribe to and were assigned is told only of a stable group. A group that does not exist is in state
//! Dead; from version 6 on it is an error as well (KIP-1043).

use model::ErrorCode;
use protocol::messages::describe_groups_request::DescribeGroupsRequest;
use protocol::messages::describe_groups_response::{DescribeGroupsResponse, DescribedGroup, DescribedGroupMember};

use super::classic::group::{ClassicGroup, GroupState};
use super::shard::GroupShard;

/// From here on a group that does not exist is an error.
const GROUP_ID_NOT_FOUND_VERSION: i16 = 6;

impl GroupShard {
    pub(super) fn describe_groups(&self, request: &DescribeGroupsRequest, version: i16) -> DescribeGroupsResponse {
        let groups = request.groups.iter().map(|group_id| {
            let group = self.groups.get(group_id).filter(|group| group.is_stored());
            DescribedGroup {
                group_id: group_id.clone(),
                ..group.map_or_else(|| unknown(group_id, version), describe)
            }
        });
        DescribeGroupsResponse {
            groups: groups.collect(),
            ..DescribeGroupsResponse::default()
        }
    }
}

fn describe(group: &ClassicGroup) -> DescribedGroup {
    let stable = group.state() == GroupState::Stable;
    let protocol = group.protocol_name.clone().filter(|_| stable).unwrap_or_default();
    let members = group.members.iter().map(|(id, member)| DescribedGroupMember {
        member_id: id.clone().into(),
        group_instance_id: member.group_instance_id.clone(),
        client_id: member.client_id.clone(),
        client_host: member.client_host.clone(),
        member_metadata: if stable {
            member.metadata(&protocol)
        } else {
            bytes::Bytes::new()
        },
        member_assignment: if stable {
            member.assignment.clone()
        } else {
            bytes::Bytes::new()
        },
        ..DescribedGroupMember::default()
    });
    DescribedGroup {
        group_state: group.state().name().into(),
        protocol_type: group.protocol_type.clone().unwrap_or_default(),
        members: members.collect(),
        protocol_data: protocol,
        ..DescribedGroup::default()
    }
}

fn unknown(group_id: &str, version: i16) -> DescribedGroup {
    let mut group = DescribedGroup {
        group_state: GroupState::DEAD.into(),
        ..DescribedGroup::default()
    };
    if version >= GROUP_ID_NOT_FOUND_VERSION {
        group.error_code = ErrorCode::GroupIdNotFound.code();
        group.error_message = Some(format!("Group {group_id} not found.").into());
    }
    group
}
