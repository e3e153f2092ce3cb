//! Joining: JoinGroup until there is a generation, then SyncGroup for what this member reads in it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::{ErrorCode, Offset, TopicName, TopicPartition};
use protocol::messages::join_group_request::{JoinGroupRequest, JoinGroupRequestProtocol};
use protocol::messages::join_group_response::JoinGroupResponse;
use protocol::messages::offset_commit_request::OffsetCommitRequest;
use protocol::messages::sync_group_request::{SyncGroupRequest, SyncGroupRequestAssignment};
use protocol::{ApiKey, Response, Text};

use super::assignor::{Assignor, Subscription};
use super::{GroupMemberOptions, wire};
use crate::retry::retrying;
use crate::routing::unexpected;
use crate::{CallContext, Client, Error, Target};

/// What all members that speak this protocol call it.
const PROTOCOL_TYPE: &str = "consumer";
/// How much longer than the others may take an answer may be on its way.
const ANSWER_SLACK: Duration = Duration::from_secs(10);

/// A member's place in one generation of its group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Membership {
    pub(super) generation: i32,
    pub(super) member_id: String,
    pub(super) assigned: BTreeSet<TopicPartition>,
}

impl Membership {
    pub(super) fn commit_request(
        &self,
        options: &GroupMemberOptions,
        offsets: &BTreeMap<TopicPartition, Offset>,
    ) -> OffsetCommitRequest {
        OffsetCommitRequest {
            generation_id_or_member_epoch: self.generation,
            member_id: Text::from(&self.member_id),
            group_instance_id: options.instance_id.as_ref().map(Text::from),
            ..crate::admin::commit_request(&options.group, offsets)
        }
    }
}

/// Joins the group as `member_id`, or with an empty one as a new member, whose id is put there.
pub(super) async fn join(
    client: &Client,
    context: &CallContext,
    options: &GroupMemberOptions,
    member_id: &mut String,
) -> Result<Membership, Error> {
    let wait = client.options().call_wait_max;
    let mut joined = retrying(wait, || join_group(client, context, options, member_id.clone())).await?;
    if joined.error_code == ErrorCode::MemberIdRequired.code() {
        *member_id = joined.member_id.to_string();
        joined = retrying(wait, || join_group(client, context, options, member_id.clone())).await?;
    }
    Error::check(joined.error_code, None, || format!("joining group {}", options.group))?;
    *member_id = joined.member_id.to_string();
    let assignments = if joined.leader == joined.member_id && !joined.skip_assignment {
        assign(client, context, options, &joined).await?
    } else {
        Vec::new()
    };
    let sync = || sync_group(client, context, options, &joined, assignments.clone());
    let assigned = retrying(wait, sync).await?;
    Ok(Membership {
        generation: joined.generation_id,
        member_id: member_id.clone(),
        assigned,
    })
}

/// One JoinGroup. MEMBER_ID_REQUIRED is an answer; other errors are errors.
async fn join_group(
    client: &Client,
    context: &CallContext,
    options: &GroupMemberOptions,
    member_id: String,
) -> Result<JoinGroupResponse, Error> {
    let metadata = wire::encode_subscription(&options.topics)
        .map_err(|_| Error::Invalid("the subscription is too long to be encoded".to_owned()))?;
    let protocols = options.assignors.iter().map(|assignor| JoinGroupRequestProtocol {
        name: Text::from(assignor.name()),
        metadata: metadata.clone(),
        ..Default::default()
    });
    let request = JoinGroupRequest {
        group_id: Text::from(options.group.as_str()),
        session_timeout_ms: wire_millis(options.session_timeout),
        rebalance_timeout_ms: wire_millis(options.rebalance_timeout),
        member_id: Text::from(member_id),
        group_instance_id: options.instance_id.as_ref().map(Text::from),
        protocol_type: Text::from(PROTOCOL_TYPE),
        protocols: protocols.collect(),
        ..Default::default()
    };
    let target = Target::CoordinatorOf(options.group.clone());
    let wait = options.rebalance_timeout.max(options.session_timeout) + ANSWER_SLACK;
    let response = client
        .call_within(context, target.clone(), request.into(), wait)
        .await?;
    let Response::JoinGroup(response) = response else {
        return Err(unexpected(ApiKey::JoinGroup));
    };
    if response.error_code != ErrorCode::MemberIdRequired.code() {
        Error::check(response.error_code, None, || format!("joining group {}", options.group))
            .inspect_err(|error| client.doubt(&target, error))?;
    }
    Ok(response)
}

/// As the leader of the group: who reads what.
async fn assign(
    client: &Client,
    context: &CallContext,
    options: &GroupMemberOptions,
    joined: &JoinGroupResponse,
) -> Result<Vec<SyncGroupRequestAssignment>, Error> {
    let chosen = joined.protocol_name.as_deref().unwrap_or_default();
    let assignor = Assignor::from_name(chosen).ok_or_else(|| {
        Error::Invalid(format!(
            "group {} has agreed on the assignor {chosen:?}, which is not known here",
            options.group
        ))
    })?;
    let members: Vec<Subscription> = joined
        .members
        .iter()
        .map(|member| Subscription {
            member_id: member.member_id.to_string(),
            instance_id: member.group_instance_id.as_ref().map(ToString::to_string),
            topics: wire::subscribed_topics(&member.metadata).unwrap_or_default(),
        })
        .collect();
    let mut partitions = BTreeMap::new();
    let wanted: BTreeSet<&TopicName> = members.iter().flat_map(|member| &member.topics).collect();
    for name in wanted {
        match client.describe_topic(context, name).await {
            Ok(topic) => {
                partitions.insert(name.clone(), i32::try_from(topic.partitions.len()).unwrap_or(i32::MAX));
            }
            // A topic that does not exist yet has nothing to be shared out.
            Err(error) if error.code() == ErrorCode::UnknownTopicOrPartition => {}
            Err(error) => return Err(error),
        }
    }
    let assignment = assignor.assign(&members, &partitions);
    assignment
        .into_iter()
        .map(|(member_id, partitions)| {
            let assignment = wire::encode_assignment(&partitions)
                .map_err(|_| Error::Invalid(format!("the assignment of {member_id} is too long to be encoded")))?;
            Ok(SyncGroupRequestAssignment {
                member_id: Text::from(member_id),
                assignment,
                ..Default::default()
            })
        })
        .collect()
}

async fn sync_group(
    client: &Client,
    context: &CallContext,
    options: &GroupMemberOptions,
    joined: &JoinGroupResponse,
    assignments: Vec<SyncGroupRequestAssignment>,
) -> Result<BTreeSet<TopicPartition>, Error> {
    let request = SyncGroupRequest {
        group_id: Text::from(options.group.as_str()),
        generation_id: joined.generation_id,
        member_id: joined.member_id.clone(),
        group_instance_id: options.instance_id.as_ref().map(Text::from),
        protocol_type: Some(Text::from(PROTOCOL_TYPE)),
        protocol_name: joined.protocol_name.clone(),
        assignments,
        ..Default::default()
    };
    let target = Target::CoordinatorOf(options.group.clone());
    let wait = options.rebalance_timeout + ANSWER_SLACK;
    let response = client
        .call_within(context, target.clone(), request.into(), wait)
        .await?;
    let Response::SyncGroup(response) = response else {
        return Err(unexpected(ApiKey::SyncGroup));
    };
    Error::check(response.error_code, None, || format!("joining group {}", options.group))
        .inspect_err(|error| client.doubt(&target, error))?;
    wire::assigned_partitions(&response.assignment).ok_or_else(|| Error::MalformedAnswer {
        api_key: ApiKey::SyncGroup,
        lacking: "an assignment that can be read".to_owned(),
    })
}

fn wire_millis(duration: Duration) -> i32 {
    i32::try_from(duration.as_millis()).unwrap_or(i32::MAX)
}
