//! A coordinator for one member at a time.

use std::collections::BTreeMap;

use bytes::Bytes;
use model::ErrorCode;
use protocol::messages::heartbeat_response::HeartbeatResponse;
use protocol::messages::join_group_request::JoinGroupRequest;
use protocol::messages::join_group_response::{JoinGroupResponse, JoinGroupResponseMember};
use protocol::messages::leave_group_response::LeaveGroupResponse;
use protocol::messages::offset_commit_request::OffsetCommitRequest;
use protocol::messages::offset_commit_response::{
    OffsetCommitResponse, OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};
use protocol::messages::offset_fetch_request::OffsetFetchRequest;
use protocol::messages::offset_fetch_response::{
    OffsetFetchResponse, OffsetFetchResponseGroup, OffsetFetchResponsePartitions, OffsetFetchResponseTopics,
};
use protocol::messages::sync_group_response::SyncGroupResponse;
use protocol::{Request, Response, Text};

use super::{State, code};

#[derive(Default)]
pub(crate) struct Group {
    pub(crate) generation: i32,
    pub(crate) member: Option<Text>,
    members_ever: usize,
    pub(crate) offsets: BTreeMap<(String, i32), i64>,
}

impl State {
    pub(super) fn group_request(&mut self, request: Request, refusal: Option<ErrorCode>) -> Response {
        match request {
            Request::JoinGroup(request) => self.join(&request, refusal).into(),
            Request::SyncGroup(request) => {
                let group = &self.groups[&*request.group_id];
                assert_eq!(
                    (Some(&request.member_id), request.generation_id),
                    (group.member.as_ref(), group.generation)
                );
                let assignment = request
                    .assignments
                    .first()
                    .map_or_else(Bytes::new, |row| row.assignment.clone());
                SyncGroupResponse {
                    error_code: code(refusal),
                    assignment,
                    ..Default::default()
                }
                .into()
            }
            Request::Heartbeat(request) => {
                let is_member = self.groups[&*request.group_id].member.as_ref() == Some(&request.member_id);
                let refusal = refusal.or((!is_member).then_some(ErrorCode::UnknownMemberId));
                HeartbeatResponse {
                    error_code: code(refusal),
                    ..Default::default()
                }
                .into()
            }
            Request::LeaveGroup(request) => {
                self.groups.get_mut(&*request.group_id).unwrap().member = None;
                LeaveGroupResponse {
                    error_code: code(refusal),
                    ..Default::default()
                }
                .into()
            }
            Request::OffsetCommit(request) => self.commit(&request, refusal).into(),
            Request::OffsetFetch(request) => self.committed(&request, refusal).into(),
            other => panic!("the test's node does not answer {}", other.name()),
        }
    }

    /// A new member is given an id first and has to come again with it (KIP-394).
    fn join(&mut self, request: &JoinGroupRequest, refusal: Option<ErrorCode>) -> JoinGroupResponse {
        let group = self.groups.entry(request.group_id.to_string()).or_default();
        let refused = |error: ErrorCode, member_id: &Text| JoinGroupResponse {
            error_code: error.code(),
            member_id: member_id.clone(),
            ..Default::default()
        };
        if let Some(error) = refusal {
            return refused(error, &request.member_id);
        }
        if request.member_id.is_empty() {
            group.members_ever += 1;
            let given = Text::from(format!("member-{}", group.members_ever));
            group.member = Some(given.clone());
            return refused(ErrorCode::MemberIdRequired, &given);
        }
        if group.member.as_ref() != Some(&request.member_id) {
            return refused(ErrorCode::UnknownMemberId, &request.member_id);
        }
        group.generation += 1;
        let protocol = &request.protocols[0];
        JoinGroupResponse {
            generation_id: group.generation,
            protocol_name: Some(protocol.name.clone()),
            leader: request.member_id.clone(),
            member_id: request.member_id.clone(),
            members: vec![JoinGroupResponseMember {
                member_id: request.member_id.clone(),
                metadata: protocol.metadata.clone(),
                ..Default::default()
            }],
            ..Default::default()
        }
    }

    fn commit(&mut self, request: &OffsetCommitRequest, refusal: Option<ErrorCode>) -> OffsetCommitResponse {
        let group = self.groups.entry(request.group_id.to_string()).or_default();
        let mut topics = Vec::new();
        for topic in &request.topics {
            let mut partitions = Vec::new();
            for row in &topic.partitions {
                if refusal.is_none() {
                    group
                        .offsets
                        .insert((topic.name.to_string(), row.partition_index), row.committed_offset);
                }
                partitions.push(OffsetCommitResponsePartition {
                    partition_index: row.partition_index,
                    error_code: code(refusal),
                    ..Default::default()
                });
            }
            topics.push(OffsetCommitResponseTopic {
                name: topic.name.clone(),
                partitions,
                ..Default::default()
            });
        }
        OffsetCommitResponse {
            topics,
            ..Default::default()
        }
    }

    fn committed(&self, request: &OffsetFetchRequest, refusal: Option<ErrorCode>) -> OffsetFetchResponse {
        let wanted = &request.groups[0];
        let offsets = self
            .groups
            .get(&*wanted.group_id)
            .map(|group| group.offsets.clone())
            .unwrap_or_default();
        let topics =
            offsets.into_iter().map(
                |((topic, partition_index), committed_offset)| OffsetFetchResponseTopics {
                    name: Text::from(topic),
                    partitions: vec![OffsetFetchResponsePartitions {
                        partition_index,
                        committed_offset,
                        ..Default::default()
                    }],
                    ..Default::default()
                },
            );
        let group = OffsetFetchResponseGroup {
            group_id: wanted.group_id.clone(),
            topics: topics.collect(),
            error_code: code(refusal),
            ..Default::default()
        };
        OffsetFetchResponse {
            groups: vec![group],
            ..Default::default()
        }
    }
}
