//! OffsetFetch, versions 1–10: how far groups have read.
//!
//! Only committed offsets are told. What was never committed is offset −1 without an error, also of a group that does
//! not exist. Version notes: up to 7 one group, named at the top; from 8 on many. A missing list of topics asks for all
//! (from 2 on). In 10 topics go by id, and an offset that was committed under another id is none: the topic has been
//! deleted and created again. Version 1 has no error of the group, so each partition carries it.

use model::{ErrorCode, LeaderEpoch, Uuid};
use protocol::Text;
use protocol::messages::offset_fetch_request::{OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use protocol::messages::offset_fetch_response::{
    OffsetFetchResponse, OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic, OffsetFetchResponseTopics,
};

use super::records::CommittedOffset;
use super::request::GroupCall;
use super::shard::GroupShard;

/// From here on a request can name several groups.
const GROUPS_VERSION: i16 = 8;
/// From here on topics have ids and no names.
const TOPIC_ID_VERSION: i16 = 10;
/// From here on the answer has an error of its own.
const GROUP_ERROR_VERSION: i16 = 2;

/// The answer that refuses all groups of the request.
pub(super) fn refusal(request: &OffsetFetchRequest, version: i16, error: ErrorCode) -> OffsetFetchResponse {
    let groups = groups(request, version).into_iter().map(|group| {
        let in_partitions = version < GROUP_ERROR_VERSION;
        let topics = group.topics.filter(|_| in_partitions).unwrap_or_default();
        let topics = topics.into_iter().map(|topic| OffsetFetchResponseTopics {
            partitions: topic
                .partition_indexes
                .iter()
                .map(|index| told(*index, None, error))
                .collect(),
            name: topic.name,
            ..OffsetFetchResponseTopics::default()
        });
        OffsetFetchResponseGroup {
            group_id: group.group_id,
            topics: topics.collect(),
            error_code: error.code(),
            ..OffsetFetchResponseGroup::default()
        }
    });
    response(groups.collect(), version)
}

/// The request's groups, whatever the version.
fn groups(request: &OffsetFetchRequest, version: i16) -> Vec<OffsetFetchRequestGroup> {
    if version >= GROUPS_VERSION {
        return request.groups.clone();
    }
    let topics = request.topics.as_ref().map(|topics| {
        let topics = topics.iter().map(|topic| OffsetFetchRequestTopics {
            name: topic.name.clone(),
            partition_indexes: topic.partition_indexes.clone(),
            ..OffsetFetchRequestTopics::default()
        });
        topics.collect()
    });
    vec![OffsetFetchRequestGroup {
        group_id: request.group_id.clone(),
        topics,
        ..OffsetFetchRequestGroup::default()
    }]
}

/// The answer in the form of the version.
fn response(groups: Vec<OffsetFetchResponseGroup>, version: i16) -> OffsetFetchResponse {
    if version >= GROUPS_VERSION {
        return OffsetFetchResponse {
            groups,
            ..OffsetFetchResponse::default()
        };
    }
    let group = groups.into_iter().next().unwrap_or_default();
    let topics = group.topics.into_iter().map(|topic| OffsetFetchResponseTopic {
        name: topic.name,
        partitions: topic.partitions.into_iter().map(in_one_group).collect(),
        ..OffsetFetchResponseTopic::default()
    });
    OffsetFetchResponse {
        topics: topics.collect(),
        error_code: group.error_code,
        ..OffsetFetchResponse::default()
    }
}

fn in_one_group(partition: OffsetFetchResponsePartitions) -> OffsetFetchResponsePartition {
    OffsetFetchResponsePartition {
        partition_index: partition.partition_index,
        committed_offset: partition.committed_offset,
        committed_leader_epoch: partition.committed_leader_epoch,
        metadata: partition.metadata,
        error_code: partition.error_code,
        ..OffsetFetchResponsePartition::default()
    }
}

/// What a group is told of a partition.
fn told(partition_index: i32, offset: Option<&CommittedOffset>, error: ErrorCode) -> OffsetFetchResponsePartitions {
    OffsetFetchResponsePartitions {
        partition_index,
        committed_offset: offset.map_or(-1, |offset| offset.offset),
        committed_leader_epoch: offset
            .and_then(|offset| offset.leader_epoch)
            .map_or(-1, LeaderEpoch::get),
        metadata: Some(offset.map(|offset| offset.metadata.clone()).unwrap_or_default()),
        error_code: error.code(),
        ..OffsetFetchResponsePartitions::default()
    }
}

/// Both ids are known, and they are not the same.
fn are_other_topics(one: Uuid, other: Uuid) -> bool {
    !one.is_zero() && !other.is_zero() && one != other
}

impl GroupShard {
    pub(super) fn offset_fetch(&self, request: &OffsetFetchRequest, call: &GroupCall<'_>) -> OffsetFetchResponse {
        let groups = groups(request, call.version).into_iter().map(|group| {
            let topics = match group.topics {
                Some(topics) => topics
                    .iter()
                    .map(|topic| self.fetch_topic(&group.group_id, topic, call))
                    .collect(),
                None => self.fetch_all(&group.group_id, call),
            };
            OffsetFetchResponseGroup {
                group_id: group.group_id,
                topics,
                ..OffsetFetchResponseGroup::default()
            }
        });
        response(groups.collect(), call.version)
    }

    fn fetch_topic(
        &self,
        group_id: &Text,
        topic: &OffsetFetchRequestTopics,
        call: &GroupCall<'_>,
    ) -> OffsetFetchResponseTopics {
        let by_id = call.version >= TOPIC_ID_VERSION;
        let name = match by_id {
            true => call.topics.name(topic.topic_id).map(Text::from),
            false => Some(topic.name.clone()),
        };
        let topic_id = match by_id {
            true => Some(topic.topic_id),
            false => call.topics.id(&topic.name),
        };
        let partitions = topic.partition_indexes.iter().map(|index| {
            let Some(name) = &name else {
                return told(*index, None, ErrorCode::UnknownTopicId);
            };
            let offset = self.offsets.get(group_id, name, *index);
            let valid = |offset: &&CommittedOffset| !are_other_topics(offset.topic_id, topic_id.unwrap_or_default());
            told(*index, offset.filter(valid), ErrorCode::None)
        });
        OffsetFetchResponseTopics {
            partitions: partitions.collect(),
            name: topic.name.clone(),
            topic_id: topic.topic_id,
            ..OffsetFetchResponseTopics::default()
        }
    }

    /// All that the group has committed, but for topics that are gone.
    fn fetch_all(&self, group_id: &Text, call: &GroupCall<'_>) -> Vec<OffsetFetchResponseTopics> {
        let by_id = call.version >= TOPIC_ID_VERSION;
        let topics = self.offsets.topics(group_id).filter_map(|(name, partitions)| {
            let topic_id = call.topics.id(name);
            if by_id && topic_id.is_none() {
                return None;
            }
            let valid = |offset: &CommittedOffset| !are_other_topics(offset.topic_id, topic_id.unwrap_or_default());
            let partitions = partitions.iter().filter(|(_, offset)| valid(offset));
            Some(OffsetFetchResponseTopics {
                partitions: partitions
                    .map(|(index, offset)| told(*index, Some(offset), ErrorCode::None))
                    .collect(),
                name: if by_id { Text::new() } else { name.clone() },
                topic_id: topic_id.filter(|_| by_id).unwrap_or_default(),
                ..OffsetFetchResponseTopics::default()
            })
        });
        topics.filter(|topic| !topic.partitions.is_empty()).collect()
    }
}
