//! OffsetCommit, versions 2–10: how far the members have read.
//!
//! A member commits with its id and generation. A consumer outside group management and the admin client commit with
//! generation −1 and no member id, to a group without members, which need not exist before. In version 10 topics go by
//! id. Up to version 4 the client can ask for a retention time of its own.

use std::time::Duration;

use model::{ErrorCode, LeaderEpoch, Timestamp, Uuid};
use protocol::Text;
use protocol::messages::offset_commit_request::{OffsetCommitRequest, OffsetCommitRequestPartition};
use protocol::messages::offset_commit_response::{
    OffsetCommitResponse, OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};

use super::classic::group::{ClassicGroup, GroupState};
use super::classic::member::MemberId;
use super::config::GROUPS_MAX;
use super::records::{CommittedOffset, GroupRecord};
use super::request::GroupCall;
use super::shard::{Effects, GroupShard, respond};
use super::writes::Then;
use crate::shard::{Now, Token};

/// From here on topics have ids and no names.
const TOPIC_ID_VERSION: i16 = 10;
/// From here on a group that does not exist is told apart from a wrong generation.
const GROUP_ID_NOT_FOUND_VERSION: i16 = 9;

/// The answer that gives every partition the same error.
pub(super) fn refusal(request: &OffsetCommitRequest, error: ErrorCode) -> OffsetCommitResponse {
    let topics = request.topics.iter().map(|topic| OffsetCommitResponseTopic {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        partitions: topic
            .partitions
            .iter()
            .map(|partition| outcome(partition, error))
            .collect(),
        ..OffsetCommitResponseTopic::default()
    });
    OffsetCommitResponse {
        topics: topics.collect(),
        ..OffsetCommitResponse::default()
    }
}

fn outcome(partition: &OffsetCommitRequestPartition, error: ErrorCode) -> OffsetCommitResponsePartition {
    OffsetCommitResponsePartition {
        partition_index: partition.partition_index,
        error_code: error.code(),
        ..OffsetCommitResponsePartition::default()
    }
}

impl GroupShard {
    /// The answer waits until the offsets are committed.
    pub(super) fn offset_commit(
        &mut self,
        request: &OffsetCommitRequest,
        call: &GroupCall<'_>,
        token: Token,
        now: Now,
        effects: &mut Effects,
    ) {
        if let Err(error) = self.check_commit(request, call.version) {
            respond(effects, token, refusal(request, error));
            return;
        }
        self.renew_committing_member(request, now, effects);
        let (records, response) = self.commit_records(request, call, now.wall);
        self.answer_when_committed(token, response.into(), records, Then::Nothing, effects);
    }

    fn check_commit(&self, request: &OffsetCommitRequest, version: i16) -> Result<(), ErrorCode> {
        match self.groups.get(&request.group_id) {
            Some(group) => check_committer(group, request),
            None if request.generation_id_or_member_epoch >= 0 => match version {
                ..GROUP_ID_NOT_FOUND_VERSION => Err(ErrorCode::IllegalGeneration),
                _ => Err(ErrorCode::GroupIdNotFound),
            },
            None if self.groups.len() >= GROUPS_MAX => Err(ErrorCode::CoordinatorNotAvailable),
            None => Ok(()),
        }
    }

    /// To commit is a sign of life, unless the member has yet to fetch its assignment.
    fn renew_committing_member(&mut self, request: &OffsetCommitRequest, now: Now, effects: &mut Effects) {
        if let Some(mut group) = self.classic(&request.group_id, now, effects)
            && matches!(group.group.state(), GroupState::Stable | GroupState::PreparingRebalance)
        {
            group.renew_session(&MemberId::from(request.member_id.clone()));
        }
    }

    fn commit_records(
        &self,
        request: &OffsetCommitRequest,
        call: &GroupCall<'_>,
        now: Timestamp,
    ) -> (Vec<GroupRecord>, OffsetCommitResponse) {
        let expire_timestamp = u64::try_from(request.retention_time_ms)
            .ok()
            .map(|retention| plus(now, Duration::from_millis(retention)));
        let mut records = Vec::new();
        let mut response = OffsetCommitResponse::default();
        for topic in &request.topics {
            let known = self.resolve(&topic.name, topic.topic_id, call);
            let partitions = topic.partitions.iter().map(|partition| {
                let error = match &known {
                    Err(error) => *error,
                    Ok((name, _)) if !call.topics.has_partition(name, partition.partition_index) => {
                        ErrorCode::UnknownTopicOrPartition
                    }
                    Ok(_) if self.is_too_long(partition) => ErrorCode::OffsetMetadataTooLarge,
                    Ok((name, topic_id)) => {
                        records.push(GroupRecord::Offset {
                            group_id: request.group_id.clone(),
                            topic: name.clone(),
                            partition: partition.partition_index,
                            value: Some(CommittedOffset {
                                offset: partition.committed_offset,
                                leader_epoch: LeaderEpoch::from_wire(partition.committed_leader_epoch),
                                metadata: partition.committed_metadata.clone().unwrap_or_default(),
                                commit_timestamp: now,
                                expire_timestamp,
                                topic_id: *topic_id,
                            }),
                        });
                        ErrorCode::None
                    }
                };
                outcome(partition, error)
            });
            response.topics.push(OffsetCommitResponseTopic {
                partitions: partitions.collect(),
                name: topic.name.clone(),
                topic_id: topic.topic_id,
                ..OffsetCommitResponseTopic::default()
            });
        }
        (records, response)
    }

    fn resolve(&self, name: &Text, topic_id: Uuid, call: &GroupCall<'_>) -> Result<(Text, Uuid), ErrorCode> {
        if call.version >= TOPIC_ID_VERSION {
            let name = call.topics.name(topic_id).ok_or(ErrorCode::UnknownTopicId)?;
            return Ok((name.into(), topic_id));
        }
        let topic_id = call.topics.id(name).ok_or(ErrorCode::UnknownTopicOrPartition)?;
        Ok((name.clone(), topic_id))
    }

    fn is_too_long(&self, partition: &OffsetCommitRequestPartition) -> bool {
        let metadata = partition.committed_metadata.as_deref().unwrap_or_default();
        metadata.encode_utf16().count() > self.config.offset_metadata_units_max
    }
}

/// Whether the request may commit to the group as it is.
fn check_committer(group: &ClassicGroup, request: &OffsetCommitRequest) -> Result<(), ErrorCode> {
    let generation = request.generation_id_or_member_epoch;
    if generation < 0 && group.state() == GroupState::Empty {
        return Ok(());
    }
    if generation < 0 && request.member_id.is_empty() && request.group_instance_id.is_none() {
        return Err(ErrorCode::UnknownMemberId);
    }
    group.check_member(&request.member_id, request.group_instance_id.as_ref())?;
    if generation != group.generation {
        return Err(ErrorCode::IllegalGeneration);
    }
    match group.state() {
        // The member knows the generation, and will learn in a moment whether the partition is still its own.
        GroupState::CompletingRebalance => Err(ErrorCode::RebalanceInProgress),
        _ => Ok(()),
    }
}

pub(super) fn plus(at: Timestamp, wait: Duration) -> Timestamp {
    let millis = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(at.millis().saturating_add(millis))
}
