//! Topics: list, create, describe, delete, give more partitions.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{HeaderName, StatusCode};
use client::admin::{ConfigResource, NewTopic, OffsetSpec};
use client::{CallContext, Client, Isolation, Topic};
use model::{Offset, PartitionIndex, TopicName, TopicPartition};
use plugin::deployment::{DEPLOYMENTS_TOPIC, PLUGINS_TOPIC};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};

use super::configs::{Config, config_text, shown};
use super::parameters::{Caller, NamedTopic, Parameters, topic_name};
use crate::bodies::SmallBody;
use crate::compaction::PartitionCompaction;
use crate::gateway::Gateway;
use crate::problem::{Document, Problem};

const LIST_LIMIT_DEFAULT: usize = 1000;
const LIST_LIMIT_MAX: usize = 10_000;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListParameters {
    /// Only topics whose names begin with this.
    prefix: Option<String>,
    /// `next` of the answer before: goes on after it.
    cursor: Option<String>,
    /// How many topics to list at most.
    #[param(minimum = 1, maximum = 10_000, default = 1000)]
    limit: Option<usize>,
}

/// Some topics, by name.
#[derive(Serialize, ToSchema)]
pub(crate) struct Topics {
    topics: Vec<TopicSummary>,
    /// The cursor of the topics that follow; null if there are none.
    #[schema(required)]
    next: Option<String>,
}

/// A topic in a list.
#[derive(Serialize, ToSchema)]
pub(crate) struct TopicSummary {
    name: String,
    /// 22 characters of URL-safe base64, as Kafka writes them.
    id: String,
    /// Whether the cluster keeps its own records there.
    internal: bool,
    partitions: usize,
    replication_factor: usize,
}

/// A topic to be created.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateTopic<'a> {
    #[schema(value_type = String, max_length = 249)]
    name: String,
    /// Without it, as many as the cluster's default says.
    #[schema(minimum = 1)]
    partitions: Option<u32>,
    /// Without it, the cluster's default.
    #[schema(minimum = 1)]
    replication_factor: Option<u16>,
    /// Kafka's configuration of topics, as in `{"retention.ms": 3600000}`.
    #[serde(borrow, default)]
    #[schema(value_type = BTreeMap<String, serde_json::Value>)]
    configs: BTreeMap<String, &'a RawValue>,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ChangeParameters {
    /// Only say whether it could be done.
    #[serde(default)]
    validate_only: bool,
}

/// A topic that was created.
#[derive(Serialize, ToSchema)]
pub(crate) struct TopicCreated {
    name: String,
    id: String,
    #[schema(required)]
    partitions: Option<u32>,
    #[schema(required)]
    replication_factor: Option<u16>,
}

/// A topic with its partitions and configuration.
#[derive(Serialize, ToSchema)]
pub(crate) struct TopicDetail {
    name: String,
    id: String,
    internal: bool,
    partitions: Vec<PartitionDetail>,
    configs: Vec<Config>,
}

/// A partition and where its log begins and ends.
#[derive(Serialize, ToSchema)]
pub(crate) struct PartitionDetail {
    partition: i32,
    /// Null while there is none.
    #[schema(required)]
    leader: Option<i32>,
    #[schema(required)]
    leader_epoch: Option<i32>,
    replicas: Vec<i32>,
    /// The in-sync replicas.
    isr: Vec<i32>,
    /// The offset of the first record that is still there; null if no leader says.
    #[schema(required)]
    start: Option<i64>,
    /// The offset of the next record.
    #[schema(required)]
    end: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compaction: Option<PartitionCompaction>,
}

/// How many partitions a topic is to have.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AddPartitions {
    /// In all, with those that there are.
    #[schema(minimum = 1)]
    count: u32,
}

/// List topics
#[utoipa::path(
    get,
    path = "/api/v1/topics",
    tag = "topics",
    operation_id = "list_topics",
    params(ListParameters),
    responses(
        (status = 200, description = "Topics by name", body = Topics),
        (status = "default", description = "What went wrong", body = Document, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn list(
    State(gateway): State<Gateway>,
    Caller(context): Caller,
    Parameters(wanted): Parameters<ListParameters>,
) -> Result<Json<Topics>, Problem> {
    let limit = wanted.limit.unwrap_or(LIST_LIMIT_DEFAULT);
    if !(1..=LIST_LIMIT_MAX).contains(&limit) {
        return Err(Problem::invalid(format!("`limit` is from 1 to {LIST_LIMIT_MAX}")));
    }
    let prefix = wanted.prefix.unwrap_or_default();
    let after = wanted.cursor.unwrap_or_default();
    let topics = gateway.client.list_topics(&context).await?;
    let mut rest = topics
        .iter()
        .filter(|topic| topic.name.as_str().starts_with(&prefix) && topic.name.as_str() > after.as_str());
    let page: Vec<TopicSummary> = rest.by_ref().take(limit).map(summary).collect();
    let next = rest.next().and_then(|_| page.last().map(|last| last.name.clone()));
    Ok(Json(Topics { topics: page, next }))
}

fn summary(topic: &Topic) -> TopicSummary {
    TopicSummary {
        name: topic.name.to_string(),
        id: topic.id.to_string(),
        internal: topic.internal || is_of_deployments(&topic.name),
        partitions: topic.partitions.len(),
        replication_factor: topic.partitions.first().map_or(0, |first| first.replicas.len()),
    }
}

/// Create a topic
///
/// It can be used as soon as the answer is there.
#[utoipa::path(
    post,
    path = "/api/v1/topics",
    tag = "topics",
    operation_id = "create_topic",
    params(ChangeParameters),
    request_body = CreateTopic<'_>,
    responses(
        (status = 201, description = "The topic is there, or with `validate_only` could be", body = TopicCreated),
        (status = "default", description = "What went wrong", body = Document, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn create(
    State(gateway): State<Gateway>,
    Caller(context): Caller,
    Parameters(how): Parameters<ChangeParameters>,
    body: SmallBody,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<TopicCreated>), Problem> {
    let wanted: CreateTopic<'_> = body.parse()?;
    let mut topic = NewTopic::named(topic_name(&wanted.name)?);
    topic.partitions = wanted.partitions;
    topic.replication_factor = wanted.replication_factor;
    for (name, value) in wanted.configs {
        let text = config_text(&name, value)?;
        let text = text.ok_or_else(|| Problem::invalid(format!("the value of {name} is null; leave it out")))?;
        topic.configs.insert(name, text);
    }
    let created = gateway.client.create_topic(&context, &topic, how.validate_only).await?;
    let location = format!("/api/v1/topics/{}", created.name);
    let created = TopicCreated {
        name: created.name.to_string(),
        id: created.id.to_string(),
        partitions: created.partitions,
        replication_factor: created.replication_factor,
    };
    Ok((StatusCode::CREATED, [(LOCATION, location)], Json(created)))
}

/// A topic's partitions and configuration
#[utoipa::path(
    get,
    path = "/api/v1/topics/{topic}",
    tag = "topics",
    operation_id = "describe_topic",
    params(("topic" = String, Path, description = "The topic's name")),
    responses(
        (status = 200, description = "The topic", body = TopicDetail),
        (status = "default", description = "What went wrong", body = Document, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn describe(
    State(gateway): State<Gateway>,
    Caller(context): Caller,
    NamedTopic(name): NamedTopic,
) -> Result<Json<TopicDetail>, Problem> {
    let topic = gateway.client.describe_topic(&context, &name).await?;
    let resource = ConfigResource::Topic(name.clone());
    let (starts, ends, configs, mut compaction) = tokio::join!(
        bounds(&gateway.client, &context, &topic, OffsetSpec::Earliest),
        bounds(&gateway.client, &context, &topic, OffsetSpec::Latest),
        gateway.client.describe_configs(&context, &resource, None),
        compaction(&gateway, &name),
    );
    let at = |bounds: &BTreeMap<PartitionIndex, Offset>, index| bounds.get(&index).map(|offset| offset.get());
    let partitions = topic.partitions.iter().map(|partition| PartitionDetail {
        partition: partition.index.get(),
        leader: partition.leader.map(|id| id.get()),
        leader_epoch: partition.leader_epoch.map(|epoch| epoch.get()),
        replicas: partition.replicas.iter().map(|id| id.get()).collect(),
        isr: partition.in_sync_replicas.iter().map(|id| id.get()).collect(),
        start: at(&starts, partition.index),
        end: at(&ends, partition.index),
        compaction: compaction.remove(&partition.index),
    });
    Ok(Json(TopicDetail {
        name: name.to_string(),
        id: topic.id.to_string(),
        internal: topic.internal || is_of_deployments(&topic.name),
        partitions: partitions.collect(),
        configs: configs?.into_iter().map(shown).collect(),
    }))
}

/// How far the topic is compacted, asked on a thread that may wait.
async fn compaction(gateway: &Gateway, name: &TopicName) -> BTreeMap<PartitionIndex, PartitionCompaction> {
    let (ask, name) = (gateway.compaction.clone(), name.clone());
    let asked = tokio::task::spawn_blocking(move || ask(&name)).await;
    asked.unwrap_or_default()
}

/// The offsets of the partitions that have a leader; where one cannot say, its offset is left out.
async fn bounds(
    client: &Client,
    context: &CallContext,
    topic: &Topic,
    spec: OffsetSpec,
) -> BTreeMap<PartitionIndex, Offset> {
    let led = topic.partitions.iter().filter(|partition| partition.leader.is_some());
    let specs = led.map(|partition| (of(&topic.name, partition.index), spec)).collect();
    let listed = client.list_offsets(context, &specs, Isolation::default()).await;
    let found = listed
        .into_iter()
        .filter_map(|(partition, found)| Some((partition.partition, found.ok().flatten()?.offset)));
    found.collect()
}

fn of(topic: &TopicName, partition: PartitionIndex) -> TopicPartition {
    TopicPartition {
        topic: topic.clone(),
        partition,
    }
}

/// Delete a topic with all its records
#[utoipa::path(
    delete,
    path = "/api/v1/topics/{topic}",
    tag = "topics",
    operation_id = "delete_topic",
    params(("topic" = String, Path, description = "The topic's name")),
    responses(
        (status = 204, description = "The topic is deleted"),
        (status = "default", description = "What went wrong", body = Document, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn delete(
    State(gateway): State<Gateway>,
    Caller(context): Caller,
    NamedTopic(name): NamedTopic,
) -> Result<StatusCode, Problem> {
    if is_of_deployments(&name) {
        let detail =
            format!("{name} holds what is deployed on all nodes: modules and processors are deleted one by one");
        return Err(Problem::new(StatusCode::CONFLICT, "internal_topic", detail));
    }
    gateway.client.delete_topic(&context, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Whether the cluster keeps in this topic what users have deployed. To clients of Kafka it is a topic like any other.
fn is_of_deployments(name: &TopicName) -> bool {
    [PLUGINS_TOPIC, DEPLOYMENTS_TOPIC].contains(&name.as_str())
}

/// Give a topic more partitions
///
/// Keys then go to other partitions than before.
#[utoipa::path(
    post,
    path = "/api/v1/topics/{topic}/partitions",
    tag = "topics",
    operation_id = "add_partitions",
    params(("topic" = String, Path, description = "The topic's name"), ChangeParameters),
    request_body = AddPartitions,
    responses(
        (status = 204, description = "The topic has as many partitions, or with `validate_only` could have"),
        (status = "default", description = "What went wrong", body = Document, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn add_partitions(
    State(gateway): State<Gateway>,
    Caller(context): Caller,
    NamedTopic(name): NamedTopic,
    Parameters(how): Parameters<ChangeParameters>,
    body: SmallBody,
) -> Result<StatusCode, Problem> {
    let wanted: AddPartitions = body.parse()?;
    gateway
        .client
        .create_partitions(&context, &name, wanted.count, how.validate_only)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}
