//! The topics that deployments are kept in and those that a processor needs, created where they are lacking.
//!
//! Who creates the same topic at the same time is no matter: that it is there is all that is wanted.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::http::StatusCode;
use client::admin::{ConfigResource, NewTopic};
use client::{FetchLimits, Isolation, Start, Topic};
use model::{ErrorCode, TopicName, TopicPartition};
use plugin::{Deployment, ProcessorName};

use super::Writer;
use crate::problem::Problem;

/// What a batch of a topic of modules or deployments may have: a piece of a module, and what is around it.
const KEPT_MESSAGE_BYTES_MAX: usize = (1 << 20) + (64 << 10);
/// What a batch of a changelog may have: a task's largest commit is below 1 MiB, and there is what is around it.
const CHANGELOG_MESSAGE_BYTES_MAX: usize = (1 << 20) + (64 << 10);
/// A few records tell whose a changelog is.
const FIRST_RECORDS: FetchLimits = FetchLimits {
    records_max: 10,
    bytes_max: CHANGELOG_MESSAGE_BYTES_MAX,
    wait: Duration::ZERO,
    isolation: Isolation::ReadUncommitted,
};
const CLEANUP_KEY: &str = "cleanup.policy";
const COMPACTED: &str = "compact";
/// How many copies the cluster wants of topics that it keeps for itself.
const REPLICATION_KEY: &str = "offsets.topic.replication.factor";

/// Creates a topic of modules or deployments unless it is there.
pub(super) async fn ensure_kept(writer: &Writer<'_>, name: &TopicName) -> Result<(), Problem> {
    let known = writer.gateway.client.topic(writer.context, name).await;
    match known {
        Err(error) if error.code() == ErrorCode::UnknownTopicOrPartition => {}
        known => return known.map(drop).map_err(Problem::from),
    }
    let mut topic = NewTopic::named(name.clone());
    topic.partitions = Some(1);
    topic.replication_factor = Some(internal_replication(writer).await);
    topic.configs = compacted(KEPT_MESSAGE_BYTES_MAX);
    create(writer, &topic).await
}

/// The brokers' own answer; 1 where none is to be had.
async fn internal_replication(writer: &Writer<'_>) -> u16 {
    let client = &writer.gateway.client;
    let cluster = client.describe_cluster(writer.context).await;
    let Some(broker) = cluster.ok().and_then(|cluster| Some(cluster.brokers.first()?.id)) else {
        return 1;
    };
    let keys = [REPLICATION_KEY.to_owned()];
    let resource = ConfigResource::Broker(broker);
    let described = client.describe_configs(writer.context, &resource, Some(&keys)).await;
    let factor = described.unwrap_or_default().into_iter();
    let mut factor = factor.filter(|entry| entry.name == REPLICATION_KEY);
    factor.next().and_then(|entry| entry.value?.parse().ok()).unwrap_or(1)
}

/// Sees to it that a processor has the topics it needs.
///
/// `is_first`: nothing is deployed under the name so far, so a topic of the changelog's name may be anybody's.
///
/// # Errors
/// If its input does not exist, or one of the others cannot be had or is not what it should be.
pub(crate) async fn prepare_topics(
    writer: &Writer<'_>,
    name: &ProcessorName,
    deployment: &Deployment,
    is_first: bool,
) -> Result<(), Problem> {
    let input = find(writer, &deployment.input).await?.ok_or_else(|| {
        let detail = format!("`input`: there is no topic {}", deployment.input);
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "unknown_topic", detail).of_field("input")
    })?;
    let new = |name: TopicName, configs| NewTopic {
        partitions: u32::try_from(input.partitions.len()).ok(),
        replication_factor: input
            .partitions
            .first()
            .and_then(|first| u16::try_from(first.replicas.len()).ok()),
        configs,
        ..NewTopic::named(name)
    };
    let changelog = new(name.changelog_topic(), compacted(CHANGELOG_MESSAGE_BYTES_MAX));
    if let Some(there) = find(writer, &changelog.name).await? {
        check_changelog(writer, name, &there, is_first).await?;
    }
    ensure_partitions(writer, &changelog).await?;
    ensure_partitions(writer, &new(name.dead_letter_topic(), kept())).await?;
    if find(writer, &deployment.output).await?.is_none() {
        create(writer, &new(deployment.output.clone(), kept())).await?;
    }
    Ok(())
}

/// A topic of this name that is there can take the state only if it is compacted, and before the first deployment only if
/// what it holds is a state that was kept: anything else is somebody's records, which would go with the processor.
async fn check_changelog(
    writer: &Writer<'_>,
    name: &ProcessorName,
    there: &Topic,
    is_first: bool,
) -> Result<(), Problem> {
    let client = &writer.gateway.client;
    let resource = ConfigResource::Topic(there.name.clone());
    let keys = [CLEANUP_KEY.to_owned()];
    let described = client.describe_configs(writer.context, &resource, Some(&keys)).await?;
    let policy = described.into_iter().find(|entry| entry.name == CLEANUP_KEY);
    let policy = policy.and_then(|entry| entry.value).unwrap_or_default();
    if policy != COMPACTED {
        let detail = format!(
            "topic {} is there with {CLEANUP_KEY}={policy}: the state of {name} can be kept in it only with \
             {CLEANUP_KEY}={COMPACTED}",
            there.name
        );
        return Err(Problem::new(StatusCode::CONFLICT, "changelog_exists", detail));
    }
    if !is_first {
        return Ok(());
    }
    for partition in &there.partitions {
        let partition = TopicPartition {
            topic: there.name.clone(),
            partition: partition.index,
        };
        let found = client
            .fetch(writer.context, &partition, Start::Earliest, &FIRST_RECORDS)
            .await?;
        let is_state = |key: Option<&[u8]>| key.is_some_and(|key| writer.gateway.plugins.is_changelog_key(key));
        if found.records.iter().any(|record| !is_state(record.key.as_deref())) {
            let detail = format!(
                "topic {} is there and holds records that are no processor's state: deploy under another name, or delete \
                 the topic first",
                there.name
            );
            return Err(Problem::new(StatusCode::CONFLICT, "changelog_exists", detail));
        }
    }
    Ok(())
}

/// A task of each partition of the input has a partition of this topic.
async fn ensure_partitions(writer: &Writer<'_>, topic: &NewTopic) -> Result<(), Problem> {
    let Some(there) = find(writer, &topic.name).await? else {
        return create(writer, topic).await;
    };
    let wanted = topic.partitions.unwrap_or_default();
    if there.partitions.len() >= usize::try_from(wanted).unwrap_or(usize::MAX) {
        return Ok(());
    }
    let client = &writer.gateway.client;
    let grown = client
        .create_partitions(writer.context, &topic.name, wanted, false)
        .await;
    match grown {
        // Somebody else has given it as many.
        Err(error) if error.code() == ErrorCode::InvalidPartitions => Ok(()),
        grown => grown.map_err(Problem::from),
    }
}

async fn find(writer: &Writer<'_>, name: &TopicName) -> Result<Option<Topic>, Problem> {
    match writer.gateway.client.describe_topic(writer.context, name).await {
        Ok(topic) => Ok(Some(topic)),
        Err(error) if error.code() == ErrorCode::UnknownTopicOrPartition => Ok(None),
        Err(error) => Err(error.into()),
    }
}

async fn create(writer: &Writer<'_>, topic: &NewTopic) -> Result<(), Problem> {
    match writer.gateway.client.create_topic(writer.context, topic, false).await {
        Err(error) if error.code() != ErrorCode::TopicAlreadyExists => Err(error.into()),
        _ => Ok(()),
    }
}

/// Takes a processor's state away.
pub(crate) async fn delete_changelog(writer: &Writer<'_>, name: &ProcessorName) -> Result<(), Problem> {
    let deleted = writer
        .gateway
        .client
        .delete_topic(writer.context, &name.changelog_topic())
        .await;
    match deleted {
        Err(error) if error.code() != ErrorCode::UnknownTopicOrPartition => Err(error.into()),
        _ => Ok(()),
    }
}

/// Results carry the time of their windows and dead letters that of their rows, which may lie far back: the time until
/// they are deleted is not the default one, it is for whoever deploys to set.
fn kept() -> BTreeMap<String, String> {
    [("retention.ms".to_owned(), "-1".to_owned())].into()
}

fn compacted(message_bytes_max: usize) -> BTreeMap<String, String> {
    [
        (CLEANUP_KEY.to_owned(), COMPACTED.to_owned()),
        ("max.message.bytes".to_owned(), message_bytes_max.to_string()),
    ]
    .into()
}
