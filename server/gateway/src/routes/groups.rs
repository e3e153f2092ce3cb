//! Consumer groups: list, describe with offsets and lag, delete.

use std::collections::{BTreeMap, BTreeSet};

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use client::Isolation;
use client::admin::{GroupDescription, OffsetSpec};
use model::{TopicName, TopicPartition};
use serde::Serialize;
use utoipa::ToSchema;

use super::parameters::{Caller, NamedGroup};
use crate::gateway::Gateway;
use crate::problem::{Document, Problem};

/// All groups, by name.
#[derive(Serialize, ToSchema)]
pub(crate) struct Groups {
    groups: Vec<GroupSummary>,
}

/// A group in a list.
#[derive(Serialize, ToSchema)]
pub(crate) struct GroupSummary {
    group: String,
    /// As in `Stable`, `Empty`.
    state: String,
    /// As in `classic`, `consumer`; empty where the broker does not say.
    kind: String,
    /// `consumer` for consumers; empty if the group only has offsets.
    protocol_type: String,
    coordinator: i32,
}

/// A group, its members, and how far it has come.
#[derive(Serialize, ToSchema)]
pub(crate) struct Group {
    group: String,
    state: String,
    protocol_type: String,
    /// As in `range`.
    assignor: String,
    #[schema(required)]
    coordinator: Option<i32>,
    members: Vec<Member>,
    /// The partitions that the group has offsets for, or is reading.
    offsets: Vec<GroupOffset>,
    /// The sum over all partitions whose lag is known.
    lag: i64,
}

/// A member and what it reads.
#[derive(Serialize, ToSchema)]
pub(crate) struct Member {
    id: String,
    /// `group.instance.id` of a static member.
    #[schema(required)]
    instance_id: Option<String>,
    client_id: String,
    client_host: String,
    assignments: Vec<Assignment>,
}

/// The partitions of one topic that a member reads.
#[derive(Serialize, ToSchema)]
pub(crate) struct Assignment {
    topic: String,
    partitions: Vec<i32>,
}

/// How far a group has come in a partition.
#[derive(Serialize, ToSchema)]
pub(crate) struct GroupOffset {
    topic: String,
    partition: i32,
    /// The offset of the next record to be read; null if none is committed.
    #[schema(required)]
    committed: Option<i64>,
    /// The end of the partition; null if it cannot be found out.
    #[schema(required)]
    end: Option<i64>,
    /// How many offsets lie between the two.
    #[schema(required)]
    lag: Option<i64>,
    /// The member that reads it.
    #[schema(required)]
    member: Option<String>,
    metadata: String,
}

/// List consumer groups
#[utoipa::path(
    get,
    path = "/api/v1/groups",
    tag = "groups",
    operation_id = "list_groups",
    responses(
        (status = 200, description = "Groups by name", body = Groups),
        (status = "default", description = "What went wrong", body = Document, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn list(State(gateway): State<Gateway>, Caller(context): Caller) -> Result<Json<Groups>, Problem> {
    let groups = gateway.client.list_groups(&context).await?;
    let groups = groups.into_iter().map(|group| GroupSummary {
        group: group.id.to_string(),
        state: group.state,
        kind: group.kind,
        protocol_type: group.protocol_type,
        coordinator: group.coordinator.get(),
    });
    Ok(Json(Groups {
        groups: groups.collect(),
    }))
}

/// A group's members, offsets and lag
#[utoipa::path(
    get,
    path = "/api/v1/groups/{group}",
    tag = "groups",
    operation_id = "describe_group",
    params(("group" = String, Path, description = "The group's name")),
    responses(
        (status = 200, description = "The group", body = Group),
        (status = "default", description = "What went wrong", body = Document, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn describe(
    State(gateway): State<Gateway>,
    Caller(context): Caller,
    NamedGroup(id): NamedGroup,
) -> Result<Json<Group>, Problem> {
    let client = &gateway.client;
    let description = client.describe_group(&context, &id).await?;
    let committed = client.group_offsets(&context, &id, None, false).await?;
    let readers = readers(&description);
    let partitions: BTreeSet<&TopicPartition> = committed.keys().chain(readers.keys().copied()).collect();
    let specs = partitions
        .iter()
        .map(|partition| ((*partition).clone(), OffsetSpec::Latest));
    let ends = client
        .list_offsets(&context, &specs.collect(), Isolation::default())
        .await;
    let offsets: Vec<GroupOffset> = partitions
        .into_iter()
        .map(|partition| {
            let end = ends.get(partition).and_then(|end| end.as_ref().ok()?.as_ref());
            let end = end.map(|end| end.offset);
            let committed = committed.get(partition);
            GroupOffset {
                topic: partition.topic.to_string(),
                partition: partition.partition.get(),
                committed: committed.map(|committed| committed.offset.get()),
                end: end.map(|end| end.get()),
                lag: committed
                    .zip(end)
                    .map(|(committed, end)| end.since(committed.offset).max(0)),
                member: readers.get(partition).map(|member| (*member).to_owned()),
                metadata: committed
                    .map(|committed| committed.metadata.clone())
                    .unwrap_or_default(),
            }
        })
        .collect();
    Ok(Json(Group {
        group: id.to_string(),
        lag: offsets.iter().filter_map(|row| row.lag).sum(),
        offsets,
        members: members(&description),
        state: description.state,
        protocol_type: description.protocol_type,
        assignor: description.assignor,
        coordinator: description.coordinator.map(|id| id.get()),
    }))
}

/// Which member reads a partition.
fn readers(group: &GroupDescription) -> BTreeMap<&TopicPartition, &str> {
    let members = group.members.iter();
    members
        .flat_map(|member| {
            member
                .assignment
                .iter()
                .map(|partition| (partition, member.id.as_str()))
        })
        .collect()
}

fn members(group: &GroupDescription) -> Vec<Member> {
    let members = group.members.iter().map(|member| {
        let mut topics: BTreeMap<&TopicName, Vec<i32>> = BTreeMap::new();
        for partition in &member.assignment {
            topics
                .entry(&partition.topic)
                .or_default()
                .push(partition.partition.get());
        }
        let assignments = topics.into_iter().map(|(topic, partitions)| Assignment {
            topic: topic.to_string(),
            partitions,
        });
        Member {
            id: member.id.clone(),
            instance_id: member.instance_id.clone(),
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            assignments: assignments.collect(),
        }
    });
    members.collect()
}

/// Delete a group that has no members, with its offsets
#[utoipa::path(
    delete,
    path = "/api/v1/groups/{group}",
    tag = "groups",
    operation_id = "delete_group",
    params(("group" = String, Path, description = "The group's name")),
    responses(
        (status = 204, description = "The group is deleted"),
        (status = "default", description = "What went wrong", body = Document, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn delete(
    State(gateway): State<Gateway>,
    Caller(context): Caller,
    NamedGroup(id): NamedGroup,
) -> Result<StatusCode, Problem> {
    gateway.client.delete_group(&context, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}
