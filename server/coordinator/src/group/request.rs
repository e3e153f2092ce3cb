//! The requests that a shard answers, as Kafka's messages, and what it must know beside them.

use std::net::IpAddr;

use model::{ErrorCode, Uuid};
use protocol::messages::{
    delete_groups_request::DeleteGroupsRequest,
    delete_groups_response::{DeletableGroupResult, DeleteGroupsResponse},
    describe_groups_request::DescribeGroupsRequest,
    describe_groups_response::{DescribeGroupsResponse, DescribedGroup},
    heartbeat_request::HeartbeatRequest,
    heartbeat_response::HeartbeatResponse,
    join_group_request::JoinGroupRequest,
    join_group_response::JoinGroupResponse,
    leave_group_request::LeaveGroupRequest,
    leave_group_response::LeaveGroupResponse,
    list_groups_request::ListGroupsRequest,
    list_groups_response::ListGroupsResponse,
    offset_commit_request::OffsetCommitRequest,
    offset_commit_response::OffsetCommitResponse,
    offset_delete_request::OffsetDeleteRequest,
    offset_delete_response::OffsetDeleteResponse,
    offset_fetch_request::OffsetFetchRequest,
    offset_fetch_response::OffsetFetchResponse,
    sync_group_request::SyncGroupRequest,
    sync_group_response::SyncGroupResponse,
};
use protocol::{Request, Response};

use super::{offset_commit, offset_fetch};

macro_rules! group_requests {
    ($($name:ident($request:ident, $response:ident)),* $(,)?) => {
        /// A request to the group coordinator.
        #[derive(Clone, Debug, PartialEq)]
        pub enum GroupRequest { $($name($request)),* }

        /// The answer to the request of the same name.
        #[derive(Clone, Debug, PartialEq)]
        pub enum GroupResponse { $($name($response)),* }

        impl From<GroupResponse> for Response {
            fn from(response: GroupResponse) -> Self {
                match response { $(GroupResponse::$name(response) => Response::$name(response)),* }
            }
        }

        impl GroupRequest {
            /// `None` if the request is not for a group coordinator.
            #[must_use]
            pub fn from_request(request: Request) -> Option<Self> {
                match request {
                    $(Request::$name(request) => Some(GroupRequest::$name(request)),)*
                    _ => None,
                }
            }
        }

        $(
            impl From<$request> for GroupRequest {
                fn from(request: $request) -> Self {
                    GroupRequest::$name(request)
                }
            }

            impl From<$response> for GroupResponse {
                fn from(response: $response) -> Self {
                    GroupResponse::$name(response)
                }
            }
        )*
    };
}

group_requests! {
    JoinGroup(JoinGroupRequest, JoinGroupResponse),
    SyncGroup(SyncGroupRequest, SyncGroupResponse),
    Heartbeat(HeartbeatRequest, HeartbeatResponse),
    LeaveGroup(LeaveGroupRequest, LeaveGroupResponse),
    OffsetCommit(OffsetCommitRequest, OffsetCommitResponse),
    OffsetFetch(OffsetFetchRequest, OffsetFetchResponse),
    OffsetDelete(OffsetDeleteRequest, OffsetDeleteResponse),
    DescribeGroups(DescribeGroupsRequest, DescribeGroupsResponse),
    ListGroups(ListGroupsRequest, ListGroupsResponse),
    DeleteGroups(DeleteGroupsRequest, DeleteGroupsResponse),
}

/// The cluster's topics at the moment of a call. Topics that the caller may not see are the shell's to hide: it takes
/// them out of the request before.
pub trait TopicLookup {
    /// `None` if there is no topic of that name.
    fn id(&self, name: &str) -> Option<Uuid>;
    /// `None` if there is no topic of that id.
    fn name(&self, id: Uuid) -> Option<String>;
    /// Whether the topic has the partition; false for a topic that is not there, and for any number that none can have.
    fn has_partition(&self, name: &str, partition: i32) -> bool;
}

/// A request with what the decision on it needs.
#[derive(Clone, Copy)]
pub struct GroupCall<'a> {
    pub request: &'a GroupRequest,
    /// The version of the request's API, one of those in the API's `VERSIONS`.
    pub version: i16,
    /// Empty if the client gave none.
    pub client_id: &'a str,
    pub client_address: IpAddr,
    /// Random bytes, new ones for each call.
    pub entropy: [u8; 16],
    pub topics: &'a dyn TopicLookup,
}

impl GroupCall<'_> {
    /// Whether the answer may need records, so that the call is refused when too many writes wait.
    pub(super) fn may_write(&self) -> bool {
        match self.request {
            GroupRequest::JoinGroup(_)
            | GroupRequest::SyncGroup(_)
            | GroupRequest::LeaveGroup(_)
            | GroupRequest::OffsetCommit(_)
            | GroupRequest::OffsetDelete(_)
            | GroupRequest::DeleteGroups(_) => true,
            GroupRequest::Heartbeat(_)
            | GroupRequest::OffsetFetch(_)
            | GroupRequest::DescribeGroups(_)
            | GroupRequest::ListGroups(_) => false,
        }
    }
}

/// The answer that refuses the whole request: what a shell sends while a partition is loading or led elsewhere. While it
/// is loading nobody knows better than the member that it is one, so its heartbeat is taken.
#[must_use]
pub fn refusal(request: &GroupRequest, version: i16, error: ErrorCode) -> GroupResponse {
    let error_code = error.code();
    match request {
        GroupRequest::JoinGroup(request) => JoinGroupResponse {
            error_code,
            member_id: request.member_id.clone(),
            protocol_name: (version < 7).then(|| "".into()),
            ..JoinGroupResponse::default()
        }
        .into(),
        GroupRequest::SyncGroup(_) => SyncGroupResponse {
            error_code,
            ..SyncGroupResponse::default()
        }
        .into(),
        GroupRequest::Heartbeat(_) => HeartbeatResponse {
            error_code: match error {
                ErrorCode::CoordinatorLoadInProgress => ErrorCode::None.code(),
                _ => error_code,
            },
            ..HeartbeatResponse::default()
        }
        .into(),
        GroupRequest::LeaveGroup(_) => LeaveGroupResponse {
            error_code,
            ..LeaveGroupResponse::default()
        }
        .into(),
        GroupRequest::OffsetCommit(request) => offset_commit::refusal(request, error).into(),
        GroupRequest::OffsetFetch(request) => offset_fetch::refusal(request, version, error).into(),
        GroupRequest::OffsetDelete(_) => OffsetDeleteResponse {
            error_code,
            ..OffsetDeleteResponse::default()
        }
        .into(),
        GroupRequest::DescribeGroups(request) => DescribeGroupsResponse {
            groups: request
                .groups
                .iter()
                .map(|group_id| DescribedGroup {
                    error_code,
                    group_id: group_id.clone(),
                    ..DescribedGroup::default()
                })
                .collect(),
            ..DescribeGroupsResponse::default()
        }
        .into(),
        GroupRequest::ListGroups(_) => ListGroupsResponse {
            error_code,
            ..ListGroupsResponse::default()
        }
        .into(),
        GroupRequest::DeleteGroups(request) => DeleteGroupsResponse {
            results: request
                .groups_names
                .iter()
                .map(|group_id| DeletableGroupResult {
                    error_code,
                    group_id: group_id.clone(),
                    ..DeletableGroupResult::default()
                })
                .collect(),
            ..DeleteGroupsResponse::default()
        }
        .into(),
    }
}

/// Turns the answer that a write was to give into the answer that its failure gives.
pub(super) fn fail(response: GroupResponse, error: ErrorCode) -> GroupResponse {
    let error_code = error.code();
    match response {
        GroupResponse::LeaveGroup(_) => LeaveGroupResponse {
            error_code,
            ..LeaveGroupResponse::default()
        }
        .into(),
        GroupResponse::OffsetCommit(mut response) => {
            for partition in response.topics.iter_mut().flat_map(|topic| &mut topic.partitions) {
                partition.error_code = error_code;
            }
            response.into()
        }
        GroupResponse::OffsetDelete(_) => OffsetDeleteResponse {
            error_code,
            ..OffsetDeleteResponse::default()
        }
        .into(),
        GroupResponse::DeleteGroups(mut response) => {
            for result in &mut response.results {
                result.error_code = error_code;
            }
            response.into()
        }
        other => other,
    }
}
