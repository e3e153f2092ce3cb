//! Consumer groups: who belongs to them, and how far they have come.

use std::collections::{BTreeMap, BTreeSet};

use model::{BrokerId, ErrorCode, GroupId, LeaderEpoch, Offset, PartitionIndex, TopicName, TopicPartition};
use protocol::messages::consumer_group_describe_request::ConsumerGroupDescribeRequest;
use protocol::messages::consumer_group_describe_response::{Assignment, DescribedGroup as ConsumerGroup};
use protocol::messages::delete_groups_request::DeleteGroupsRequest;
use protocol::messages::describe_groups_request::DescribeGroupsRequest;
use protocol::messages::describe_groups_response::{DescribedGroup, DescribedGroupMember};
use protocol::messages::leave_group_request::{LeaveGroupRequest, MemberIdentity};
use protocol::messages::list_groups_request::ListGroupsRequest;
use protocol::messages::offset_commit_request::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use protocol::messages::offset_fetch_request::{OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use protocol::messages::offset_fetch_response::OffsetFetchResponseGroup;
use protocol::{ApiKey, Text};

use super::answer_of;
use crate::group_member::assigned_partitions;
use crate::{CallContext, Client, Error, Target};

/// The state that brokers before Kafka 4.0 tell of a group that does not exist.
const STATE_DEAD: &str = "Dead";

/// A group as a list shows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupListing {
    pub id: GroupId,
    /// `consumer` for consumers; empty if the group only has offsets.
    pub protocol_type: String,
    /// As in `Stable`, `Empty`.
    pub state: String,
    /// As in `classic`, `consumer`, `share`; empty where the broker does not say.
    pub kind: String,
    pub coordinator: BrokerId,
}

/// A group and its members.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupDescription {
    pub id: GroupId,
    pub state: String,
    pub protocol_type: String,
    /// As in `range`.
    pub assignor: String,
    pub coordinator: Option<BrokerId>,
    pub members: Vec<GroupMemberDescription>,
}

/// A member and what it reads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupMemberDescription {
    pub id: String,
    /// `group.instance.id` of a static member.
    pub instance_id: Option<String>,
    pub client_id: String,
    pub client_host: String,
    pub assignment: BTreeSet<TopicPartition>,
}

/// How far a group has come in a partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommittedOffset {
    /// That of the next record to be read.
    pub offset: Offset,
    pub leader_epoch: Option<LeaderEpoch>,
    pub metadata: String,
}

impl Client {
    /// All groups that the principal may see, by name.
    ///
    /// # Errors
    /// Those of [`Client::call`], if any broker cannot be asked.
    pub async fn list_groups(&self, context: &CallContext) -> Result<Vec<GroupListing>, Error> {
        let mut groups = BTreeMap::new();
        for node in self.nodes(context).await? {
            let target = Target::Broker(node.id);
            let listed = self.administer(context, target, ListGroupsRequest::default(), |response| {
                let response = answer_of!(response, ListGroups);
                Error::check(response.error_code, None, || {
                    format!("listing the groups of broker {}", node.id)
                })?;
                Ok(response.groups)
            });
            for row in listed.await? {
                let Some(id) = GroupId::new(&row.group_id) else {
                    continue;
                };
                let listing = GroupListing {
                    id: id.clone(),
                    protocol_type: row.protocol_type.to_string(),
                    state: row.group_state.to_string(),
                    kind: row.group_type.to_string(),
                    coordinator: node.id,
                };
                groups.insert(id, listing);
            }
        }
        Ok(groups.into_values().collect())
    }

    /// A group and its members, of the classic protocol or the newer one (KIP-848).
    ///
    /// # Errors
    /// GROUP_ID_NOT_FOUND if there is none, and those of [`Client::call`].
    pub async fn describe_group(&self, context: &CallContext, id: &GroupId) -> Result<GroupDescription, Error> {
        let described = match self.describe_consumer_group(context, id).await {
            Err(error) if is_no_consumer_group(&error) => self.describe_classic_group(context, id).await,
            described => described,
        };
        let mut described = described?;
        described.coordinator = self.coordinator(context, id).await.ok();
        Ok(described)
    }

    async fn describe_consumer_group(&self, context: &CallContext, id: &GroupId) -> Result<GroupDescription, Error> {
        let request = ConsumerGroupDescribeRequest {
            group_ids: vec![Text::from(id.as_str())],
            ..Default::default()
        };
        self.administer(context, Target::CoordinatorOf(id.clone()), request, |response| {
            let response = answer_of!(response, ConsumerGroupDescribe);
            let row = response
                .groups
                .first()
                .ok_or_else(|| lacking(ApiKey::ConsumerGroupDescribe, id))?;
            Error::check(row.error_code, row.error_message.as_deref(), || {
                format!("describing group {id}")
            })?;
            Ok(consumer_group(id, row))
        })
        .await
    }

    async fn describe_classic_group(&self, context: &CallContext, id: &GroupId) -> Result<GroupDescription, Error> {
        let request = DescribeGroupsRequest {
            groups: vec![Text::from(id.as_str())],
            ..Default::default()
        };
        self.administer(context, Target::CoordinatorOf(id.clone()), request, |response| {
            let response = answer_of!(response, DescribeGroups);
            let row = response
                .groups
                .first()
                .ok_or_else(|| lacking(ApiKey::DescribeGroups, id))?;
            let what = || format!("describing group {id}");
            Error::check(row.error_code, row.error_message.as_deref(), what)?;
            if row.group_state == STATE_DEAD {
                return Err(Error::refused(ErrorCode::GroupIdNotFound.code(), None, what()));
            }
            Ok(classic_group(id, row))
        })
        .await
    }

    /// Deletes a group that has no members, with its offsets.
    ///
    /// # Errors
    /// NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND and so on, and those of [`Client::call`].
    pub async fn delete_group(&self, context: &CallContext, id: &GroupId) -> Result<(), Error> {
        let request = DeleteGroupsRequest {
            groups_names: vec![Text::from(id.as_str())],
            ..Default::default()
        };
        self.administer(context, Target::CoordinatorOf(id.clone()), request, |response| {
            let response = answer_of!(response, DeleteGroups);
            let row = response
                .results
                .first()
                .ok_or_else(|| lacking(ApiKey::DeleteGroups, id))?;
            Error::check(row.error_code, row.error_message.as_deref(), || {
                format!("deleting group {id}")
            })
        })
        .await
    }

    /// Takes a member out of its group, which then rebalances.
    ///
    /// # Errors
    /// UNKNOWN_MEMBER_ID and so on, and those of [`Client::call`].
    pub async fn remove_group_member(&self, context: &CallContext, id: &GroupId, member_id: &str) -> Result<(), Error> {
        let member = MemberIdentity {
            member_id: Text::from(member_id),
            ..Default::default()
        };
        let request = LeaveGroupRequest {
            group_id: Text::from(id.as_str()),
            members: vec![member],
            ..Default::default()
        };
        self.administer(context, Target::CoordinatorOf(id.clone()), request, |response| {
            let response = answer_of!(response, LeaveGroup);
            let what = || format!("taking member {member_id} out of group {id}");
            Error::check(response.error_code, None, what)?;
            response
                .members
                .iter()
                .try_for_each(|row| Error::check(row.error_code, None, what))
        })
        .await
    }

    /// How far a group has come in the given partitions, or in all that it has offsets for. Partitions without an offset
    /// are left out; a group that does not exist has none.
    ///
    /// # Errors
    /// UNSTABLE_OFFSET_COMMIT with `require_stable` while a transaction that moves an offset is open, and those of
    /// [`Client::call`].
    pub async fn group_offsets(
        &self,
        context: &CallContext,
        id: &GroupId,
        partitions: Option<&BTreeSet<TopicPartition>>,
        require_stable: bool,
    ) -> Result<BTreeMap<TopicPartition, CommittedOffset>, Error> {
        let group = OffsetFetchRequestGroup {
            group_id: Text::from(id.as_str()),
            topics: partitions.map(offset_fetch_topics),
            ..Default::default()
        };
        let request = OffsetFetchRequest {
            groups: vec![group],
            require_stable,
            ..Default::default()
        };
        self.administer(context, Target::CoordinatorOf(id.clone()), request, |response| {
            let response = answer_of!(response, OffsetFetch);
            let row = response
                .groups
                .first()
                .ok_or_else(|| lacking(ApiKey::OffsetFetch, id))?;
            Error::check(row.error_code, None, || format!("asking for the offsets of group {id}"))?;
            committed(id, row)
        })
        .await
    }

    /// Sets the offsets of a group that has no members at present; each partition has its own outcome.
    ///
    /// # Errors
    /// Those of [`Client::call`]. UNKNOWN_MEMBER_ID, for each partition, if the group has members.
    pub async fn alter_group_offsets(
        &self,
        context: &CallContext,
        id: &GroupId,
        offsets: &BTreeMap<TopicPartition, Offset>,
    ) -> Result<BTreeMap<TopicPartition, Result<(), Error>>, Error> {
        let request = commit_request(id, offsets);
        let target = Target::CoordinatorOf(id.clone());
        self.administer(context, target, request, |response| {
            let response = answer_of!(response, OffsetCommit);
            let mut outcomes = BTreeMap::new();
            for topic in &response.topics {
                let Ok(name) = TopicName::new(&topic.name) else {
                    continue;
                };
                for row in &topic.partitions {
                    let Some(partition) = PartitionIndex::from_wire(row.partition_index) else {
                        continue;
                    };
                    let partition = TopicPartition {
                        topic: name.clone(),
                        partition,
                    };
                    let outcome = Error::check(row.error_code, None, || {
                        format!("setting the offset of group {id} in {partition}")
                    });
                    // The coordinator says of each partition what holds for all of them.
                    if let Err(error) = &outcome
                        && super::may_pass(error)
                    {
                        return Err(outcome.expect_err("it was looked at"));
                    }
                    outcomes.insert(partition, outcome);
                }
            }
            Ok(outcomes)
        })
        .await
    }
}

/// OffsetCommit from outside the group: no member, no generation.
pub(crate) fn commit_request(id: &GroupId, offsets: &BTreeMap<TopicPartition, Offset>) -> OffsetCommitRequest {
    let mut topics: BTreeMap<&TopicName, Vec<OffsetCommitRequestPartition>> = BTreeMap::new();
    for (partition, offset) in offsets {
        topics
            .entry(&partition.topic)
            .or_default()
            .push(OffsetCommitRequestPartition {
                partition_index: partition.partition.get(),
                committed_offset: offset.get(),
                committed_metadata: Some(Text::default()),
                ..Default::default()
            });
    }
    OffsetCommitRequest {
        group_id: Text::from(id.as_str()),
        topics: topics
            .into_iter()
            .map(|(name, partitions)| OffsetCommitRequestTopic {
                name: Text::from(name.as_str()),
                partitions,
                ..Default::default()
            })
            .collect(),
        ..Default::default()
    }
}

fn is_no_consumer_group(error: &Error) -> bool {
    match error {
        Error::Unsupported(_) => true,
        error => matches!(
            error.code(),
            ErrorCode::GroupIdNotFound | ErrorCode::UnsupportedVersion | ErrorCode::InvalidGroupId
        ),
    }
}

fn lacking(api_key: ApiKey, id: &GroupId) -> Error {
    Error::MalformedAnswer {
        api_key,
        lacking: format!("group {id}"),
    }
}

fn offset_fetch_topics(partitions: &BTreeSet<TopicPartition>) -> Vec<OffsetFetchRequestTopics> {
    let mut topics: BTreeMap<&TopicName, Vec<i32>> = BTreeMap::new();
    for partition in partitions {
        topics
            .entry(&partition.topic)
            .or_default()
            .push(partition.partition.get());
    }
    topics
        .into_iter()
        .map(|(name, partition_indexes)| OffsetFetchRequestTopics {
            name: Text::from(name.as_str()),
            partition_indexes,
            ..Default::default()
        })
        .collect()
}

fn committed(id: &GroupId, row: &OffsetFetchResponseGroup) -> Result<BTreeMap<TopicPartition, CommittedOffset>, Error> {
    let mut offsets = BTreeMap::new();
    for topic in &row.topics {
        let Ok(name) = TopicName::new(&topic.name) else {
            continue;
        };
        for row in &topic.partitions {
            let Some(partition) = PartitionIndex::from_wire(row.partition_index) else {
                continue;
            };
            let partition = TopicPartition {
                topic: name.clone(),
                partition,
            };
            Error::check(row.error_code, None, || {
                format!("asking for the offset of group {id} in {partition}")
            })?;
            let Some(offset) = Offset::from_wire(row.committed_offset) else {
                continue;
            };
            let committed = CommittedOffset {
                offset,
                leader_epoch: LeaderEpoch::from_wire(row.committed_leader_epoch),
                metadata: row.metadata.as_deref().unwrap_or_default().to_owned(),
            };
            offsets.insert(partition, committed);
        }
    }
    Ok(offsets)
}

fn classic_group(id: &GroupId, row: &DescribedGroup) -> GroupDescription {
    GroupDescription {
        id: id.clone(),
        state: row.group_state.to_string(),
        protocol_type: row.protocol_type.to_string(),
        assignor: row.protocol_data.to_string(),
        coordinator: None,
        members: row.members.iter().map(classic_member).collect(),
    }
}

fn classic_member(row: &DescribedGroupMember) -> GroupMemberDescription {
    GroupMemberDescription {
        id: row.member_id.to_string(),
        instance_id: row.group_instance_id.as_ref().map(ToString::to_string),
        client_id: row.client_id.to_string(),
        client_host: row.client_host.to_string(),
        // Other protocols than the consumers' put other bytes there.
        assignment: assigned_partitions(&row.member_assignment).unwrap_or_default(),
    }
}

fn consumer_group(id: &GroupId, row: &ConsumerGroup) -> GroupDescription {
    let members = row.members.iter().map(|member| GroupMemberDescription {
        id: member.member_id.to_string(),
        instance_id: member.instance_id.as_ref().map(ToString::to_string),
        client_id: member.client_id.to_string(),
        client_host: member.client_host.to_string(),
        assignment: consumer_assignment(&member.assignment),
    });
    GroupDescription {
        id: id.clone(),
        state: row.group_state.to_string(),
        protocol_type: "consumer".to_owned(),
        assignor: row.assignor_name.to_string(),
        coordinator: None,
        members: members.collect(),
    }
}

fn consumer_assignment(assignment: &Assignment) -> BTreeSet<TopicPartition> {
    let topics = assignment.topic_partitions.iter().filter_map(|topic| {
        let name = TopicName::new(&topic.topic_name).ok()?;
        Some(topic.partitions.iter().filter_map(move |index| {
            Some(TopicPartition {
                topic: name.clone(),
                partition: PartitionIndex::from_wire(*index)?,
            })
        }))
    });
    topics.flatten().collect()
}
