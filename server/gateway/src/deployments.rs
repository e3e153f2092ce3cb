//! The write side of what is deployed: records of the two topics, in turn, each followed by this node before the answer.
//!
//! Changes of one node are made one after the other. Each begins with what the topics held at that time and ends when the
//! node's own plugins have seen it, so that a change never builds on a state that another of this node's had replaced.
//! Who needs both turns takes that of modules first.

mod topics;

use std::time::Duration;

use axum::http::StatusCode;
use bytes::Bytes;
use client::admin::OffsetSpec;
use client::{CallContext, Isolation, ProduceRecord};
use model::{ErrorCode, Offset, PartitionIndex, TopicName, TopicPartition};
use plugin::deployment::{DEPLOYMENTS_TOPIC, DeploymentsKey, PLUGINS_TOPIC, encode_value};
use plugin::{Deployment, ProcessorName, TopicPlugins};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use crate::gateway::Gateway;
use crate::problem::{Problem, RecordProblem};

pub(crate) use topics::{delete_changelog, prepare_topics};

/// How long this node may take to see a record that was written.
const FOLLOW_WAIT_MAX: Duration = Duration::from_secs(15);
/// How often it is looked whether it has.
const FOLLOW_LOOK_EVERY: Duration = Duration::from_millis(5);
/// How many records are under way at a time: pieces of modules are large, and records of others wait behind them.
const RECORDS_AT_ONCE: usize = 8;
/// Both topics have one partition.
const PARTITION: PartitionIndex = PartitionIndex::new(0);

/// Whose turn it is.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) modules: Mutex<()>,
    pub(crate) deployments: Mutex<()>,
}

/// One of the two topics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kept {
    Modules,
    Deployments,
}

impl Kept {
    fn topic(self) -> TopicName {
        let name = match self {
            Kept::Modules => PLUGINS_TOPIC,
            Kept::Deployments => DEPLOYMENTS_TOPIC,
        };
        TopicName::new(name).expect("our own names are names")
    }

    fn followed(self, gateway: &Gateway) -> Offset {
        let followed = gateway.plugins.followed();
        match self {
            Kept::Modules => followed.plugins,
            Kept::Deployments => followed.deployments,
        }
    }
}

/// Writes what is deployed for one who asks.
pub(crate) struct Writer<'a> {
    pub(crate) gateway: &'a Gateway,
    context: &'a CallContext,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(gateway: &'a Gateway, context: &'a CallContext) -> Self {
        Writer { gateway, context }
    }

    /// Comes back when this node has seen all that the topic holds now.
    pub(crate) async fn catch_up(&self, kept: Kept) -> Result<(), Problem> {
        let partition = TopicPartition {
            topic: kept.topic(),
            partition: PARTITION,
        };
        let specs = [(partition, OffsetSpec::Latest)].into();
        let client = &self.gateway.client;
        let listed = client.list_offsets(self.context, &specs, Isolation::default()).await;
        match listed.into_values().next() {
            Some(Ok(Some(end))) => self.await_followed(kept, end.offset).await,
            Some(Err(error)) if error.code() != ErrorCode::UnknownTopicOrPartition => Err(error.into()),
            // Without the topic there is nothing to see.
            _ => Ok(()),
        }
    }

    /// Writes records, and comes back when this node has seen them.
    pub(crate) async fn write(&self, kept: Kept, records: Vec<(Bytes, Option<Bytes>)>) -> Result<(), Problem> {
        topics::ensure_kept(self, &kept.topic()).await?;
        let mut end = Offset::default();
        let mut records = records.into_iter().peekable();
        while records.peek().is_some() {
            let some = records.by_ref().take(RECORDS_AT_ONCE);
            end = end.max(self.append(kept, some).await?);
        }
        self.await_followed(kept, end).await
    }

    /// Where the log goes on behind the records, once every in-sync replica has them.
    async fn append(
        &self,
        kept: Kept,
        records: impl Iterator<Item = (Bytes, Option<Bytes>)>,
    ) -> Result<Offset, Problem> {
        let records = records.map(|(key, value)| ProduceRecord {
            partition: Some(PARTITION),
            key: Some(key),
            value,
            ..ProduceRecord::default()
        });
        let outcomes = self.gateway.producer.send(&kept.topic(), records.collect()).await?;
        let mut end = Offset::default();
        for outcome in outcomes {
            let written = outcome.map_err(|error| Problem::none_written(vec![(0, RecordProblem::from(error))]))?;
            end = end.max(written.offset.plus(1));
        }
        Ok(end)
    }

    pub(crate) async fn write_processor(
        &self,
        name: &ProcessorName,
        deployment: Option<&Deployment>,
    ) -> Result<(), Problem> {
        let key = DeploymentsKey::Processor(name.clone()).encode();
        self.write(Kept::Deployments, vec![(key, deployment.map(encode_value))])
            .await
    }

    pub(crate) async fn write_topic_plugins(
        &self,
        topic: &TopicName,
        plugins: Option<&TopicPlugins>,
    ) -> Result<(), Problem> {
        let key = DeploymentsKey::Topic(topic.clone()).encode();
        self.write(Kept::Deployments, vec![(key, plugins.map(encode_value))])
            .await
    }

    async fn await_followed(&self, kept: Kept, end: Offset) -> Result<(), Problem> {
        let until = Instant::now() + FOLLOW_WAIT_MAX;
        while kept.followed(self.gateway) < end {
            if Instant::now() >= until {
                let detail = format!(
                    "this node has not seen offset {end} of {} yet; what was asked for may be done later",
                    kept.topic()
                );
                return Err(Problem::new(StatusCode::GATEWAY_TIMEOUT, "not_followed", detail).retryable());
            }
            sleep(FOLLOW_LOOK_EVERY).await;
        }
        Ok(())
    }
}

/// Runs what waits for the disk or computes, on a thread that may.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Problem> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        let detail = format!("the work broke off: {error}");
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", detail)
    })
}
