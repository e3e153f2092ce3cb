//! One Fetch request, for partitions that one broker leads, and what it says of each.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use model::{ErrorCode, Offset, TopicName, TopicPartition};
use protocol::messages::fetch_request::{FetchPartition, FetchRequest, FetchTopic};
use protocol::messages::fetch_response::{AbortedTransaction, FetchResponse, FetchableTopicResponse, PartitionData};
use protocol::{ApiKey, Request, Response, Text};

use super::Isolation;
use crate::routing::unexpected;
use crate::{CallContext, Client, Error, Target, Topic};

/// A consumer, not a replica.
const NO_REPLICA: i32 = -1;
/// A fetch outside any session (KIP-227).
const NO_SESSION_ID: i32 = 0;
const NO_SESSION_EPOCH: i32 = -1;

/// What is asked of a partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Wanted {
    pub(super) partition: TopicPartition,
    pub(super) position: Offset,
    pub(super) bytes_max: usize,
}

/// What its leader says.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct PartitionAnswer {
    pub(super) records: Bytes,
    /// The end of what a reader of the asked isolation can see.
    pub(super) end: Offset,
    pub(super) log_start: Option<Offset>,
    pub(super) aborted: Vec<AbortedTransaction>,
}

pub(super) fn lacking(partition: &TopicPartition) -> Error {
    Error::MalformedAnswer {
        api_key: ApiKey::Fetch,
        lacking: format!("partition {partition}"),
    }
}

impl Client {
    /// Asks `target` for what is wanted. The answers stand in no particular order, and each has its own outcome.
    pub(super) async fn fetch_from(
        &self,
        context: &CallContext,
        target: Target,
        wanted: Vec<Wanted>,
        wait: Duration,
        bytes_max: usize,
        isolation: Isolation,
    ) -> Result<Vec<(TopicPartition, Result<PartitionAnswer, Error>)>, Error> {
        let mut topics = Vec::new();
        for name in names(&wanted) {
            topics.push(self.topic(context, &name).await?);
        }
        let request = FetchRequest {
            replica_id: NO_REPLICA,
            max_wait_ms: wire_i32(usize::try_from(wait.as_millis()).unwrap_or(usize::MAX)),
            min_bytes: 1,
            max_bytes: wire_i32(bytes_max),
            isolation_level: isolation.wire(),
            session_id: NO_SESSION_ID,
            session_epoch: NO_SESSION_EPOCH,
            topics: topics.iter().map(|topic| fetch_topic(topic, &wanted)).collect(),
            ..Default::default()
        };
        let response = self.call(context, target, Request::from(request)).await?;
        let Response::Fetch(response) = response else {
            return Err(unexpected(ApiKey::Fetch));
        };
        Error::check(response.error_code, None, || "fetching".to_owned())?;
        Ok(answers(response, &topics, isolation))
    }
}

/// In the order in which they are wanted: who answers may be full before the last.
fn names(wanted: &[Wanted]) -> Vec<TopicName> {
    let mut seen = BTreeSet::new();
    let names = wanted.iter().map(|wanted| &wanted.partition.topic);
    names.filter(|name| seen.insert(*name)).cloned().collect()
}

fn fetch_topic(topic: &Topic, wanted: &[Wanted]) -> FetchTopic {
    let partitions = wanted.iter().filter(|wanted| wanted.partition.topic == topic.name);
    FetchTopic {
        topic: Text::from(topic.name.as_str()),
        topic_id: topic.id,
        partitions: partitions
            .map(|wanted| FetchPartition {
                partition: wanted.partition.partition.get(),
                fetch_offset: wanted.position.get(),
                partition_max_bytes: wire_i32(wanted.bytes_max),
                ..Default::default()
            })
            .collect(),
        ..Default::default()
    }
}

fn answers(
    response: FetchResponse,
    topics: &[std::sync::Arc<Topic>],
    isolation: Isolation,
) -> Vec<(TopicPartition, Result<PartitionAnswer, Error>)> {
    let mut answers = Vec::new();
    for row in response.responses {
        let Some(topic) = topics.iter().find(|topic| is_of(&row, topic)) else {
            continue;
        };
        for partition in row.partitions {
            let Some(index) = model::PartitionIndex::from_wire(partition.partition_index) else {
                continue;
            };
            let of = TopicPartition {
                topic: topic.name.clone(),
                partition: index,
            };
            let answer = partition_answer(&of, partition, isolation);
            answers.push((of, answer));
        }
    }
    answers
}

/// From version 13 on an answer names topics by id alone.
fn is_of(row: &FetchableTopicResponse, topic: &Topic) -> bool {
    if row.topic_id.is_zero() {
        row.topic == topic.name.as_str()
    } else {
        row.topic_id == topic.id
    }
}

fn partition_answer(of: &TopicPartition, row: PartitionData, isolation: Isolation) -> Result<PartitionAnswer, Error> {
    if row.error_code != ErrorCode::None.code() {
        return Err(Error::refused(row.error_code, None, format!("fetching from {of}")));
    }
    let end = match isolation {
        Isolation::ReadUncommitted => row.high_watermark,
        Isolation::ReadCommitted => row.last_stable_offset,
    };
    Ok(PartitionAnswer {
        records: row.records.unwrap_or_default(),
        end: Offset::from_wire(end).unwrap_or_default(),
        log_start: Offset::from_wire(row.log_start_offset),
        aborted: row.aborted_transactions.unwrap_or_default(),
    })
}

fn wire_i32(value: usize) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}
