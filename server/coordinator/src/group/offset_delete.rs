//! OffsetDelete, version 0: an operator takes back a group's offsets in topics that it no longer reads (KIP-496).

use model::ErrorCode;
use protocol::messages::offset_delete_request::OffsetDeleteRequest;
use protocol::messages::offset_delete_response::{
    OffsetDeleteResponse, OffsetDeleteResponsePartition, OffsetDeleteResponseTopic,
};

use super::classic::group::GroupState;
use super::records::GroupRecord;
use super::request::GroupCall;
use super::shard::{Effects, GroupShard, respond};
use super::writes::Then;
use crate::shard::Token;

impl GroupShard {
    pub(super) fn offset_delete(
        &mut self,
        request: &OffsetDeleteRequest,
        call: &GroupCall<'_>,
        token: Token,
        effects: &mut Effects,
    ) {
        if let Err(error) = self.check_offset_delete(&request.group_id) {
            let error_code = error.code();
            respond(
                effects,
                token,
                OffsetDeleteResponse {
                    error_code,
                    ..OffsetDeleteResponse::default()
                },
            );
            return;
        }
        let (records, response) = self.offset_tombstones(request, call);
        self.answer_when_committed(token, response.into(), records, Then::Nothing, effects);
    }

    /// Of a group with members only consumers' topics are known, so of any other no offset can be given up.
    fn check_offset_delete(&self, group_id: &str) -> Result<(), ErrorCode> {
        if group_id.is_empty() {
            return Err(ErrorCode::InvalidGroupId);
        }
        let group = self.groups.get(group_id).ok_or(ErrorCode::GroupIdNotFound)?;
        if group.state() != GroupState::Empty && !group.is_consumer_group() {
            return Err(ErrorCode::NonEmptyGroup);
        }
        Ok(())
    }

    fn offset_tombstones(
        &self,
        request: &OffsetDeleteRequest,
        call: &GroupCall<'_>,
    ) -> (Vec<GroupRecord>, OffsetDeleteResponse) {
        let pending = self
            .writes
            .pending_offsets()
            .remove(&request.group_id)
            .unwrap_or_default();
        let mut records = Vec::new();
        let mut response = OffsetDeleteResponse::default();
        for topic in &request.topics {
            let subscribed = self
                .groups
                .get(&request.group_id)
                .is_some_and(|group| group.is_subscribed_to(&topic.name));
            let partitions = topic.partitions.iter().map(|partition| {
                let index = partition.partition_index;
                let error = match call.topics.has_partition(&topic.name, index) {
                    false => ErrorCode::UnknownTopicOrPartition,
                    true if subscribed => ErrorCode::GroupSubscribedToTopic,
                    true => ErrorCode::None,
                };
                let committed = self.offsets.get(&request.group_id, &topic.name, index).is_some();
                if error == ErrorCode::None && (committed || pending.contains(&(topic.name.clone(), index))) {
                    records.push(GroupRecord::Offset {
                        group_id: request.group_id.clone(),
                        topic: topic.name.clone(),
                        partition: index,
                        value: None,
                    });
                }
                OffsetDeleteResponsePartition {
                    partition_index: index,
                    error_code: error.code(),
                }
            });
            response.topics.push(OffsetDeleteResponseTopic {
                partitions: partitions.collect(),
                name: topic.name.clone(),
            });
        }
        (records, response)
    }
}
