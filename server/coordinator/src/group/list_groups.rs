//! ListGroups, versions 0–5: all groups of the partition, or those in some states (from 4 on) or of some types (from 5
//! on). Filters do not tell upper from lower case.

use protocol::Text;
use protocol::messages::list_groups_request::ListGroupsRequest;
use protocol::messages::list_groups_response::{ListGroupsResponse, ListedGroup};

use super::shard::GroupShard;

const CLASSIC: &str = "classic";

impl GroupShard {
    pub(super) fn list_groups(&self, request: &ListGroupsRequest) -> ListGroupsResponse {
        let of_type = passes(&request.types_filter, CLASSIC);
        let groups = self
            .groups
            .iter()
            .filter(|(_, group)| of_type && group.is_stored() && passes(&request.states_filter, group.state().name()));
        let groups = groups.map(|(group_id, group)| ListedGroup {
            group_id: group_id.clone(),
            protocol_type: group.protocol_type.clone().unwrap_or_default(),
            group_state: group.state().name().into(),
            group_type: CLASSIC.into(),
            ..ListedGroup::default()
        });
        ListGroupsResponse {
            groups: groups.collect(),
            ..ListGroupsResponse::default()
        }
    }
}

fn passes(filter: &[Text], value: &str) -> bool {
    filter.is_empty() || filter.iter().any(|wanted| wanted.trim().eq_ignore_ascii_case(value))
}
