//! The changelog of a task as records of a topic: one batch a commit.
//!
//! The progress record names in a header the input topic that its position belongs to, by the topic's id: a topic that was
//! deleted and made anew has other records at the same offsets.

use bytes::Bytes;
use client::{CallContext, Client, Error, Target};
use model::record_batch::{BatchBuilder, BatchOptions, Record};
use model::{ErrorCode, Offset, Timestamp, TopicId, TopicPartition};
use protocol::messages::produce_request::{PartitionProduceData, ProduceRequest, TopicProduceData};
use protocol::{Request, Response, Text};
use streams::ChangelogRecord;
use streams::changelog::{ChangelogError, ChangelogKey};

const INPUT_TOPIC_ID: &str = "input.topic.id";
/// Every in-sync replica has the batch before it counts.
const ACKS_ALL: i16 = -1;
const APPEND_WAIT_MS: i32 = 15_000;

/// Which topics a task is about: topics of the same names that are made later are others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ids {
    pub(super) changelog: TopicId,
    pub(super) input: TopicId,
}

/// A batch that is not in the changelog, or not known to be.
#[derive(Debug, thiserror::Error)]
pub(super) enum AppendError {
    #[error("appending to {0}")]
    Call(TopicPartition, #[source] Error),
    #[error("appending to {partition}: {code}{}", message.as_deref().map(|message| format!(" ({message})")).unwrap_or_default())]
    Refused {
        partition: TopicPartition,
        code: ErrorCode,
        message: Option<String>,
    },
    #[error("a commit of {0} makes no batch")]
    Batch(TopicPartition, #[source] model::record_batch::BatchError),
    #[error("the answer about {0} cannot be understood")]
    Answer(TopicPartition),
}

/// Appends records as one batch, and returns the changelog's end. One attempt: whether it worked where that stays open is
/// for a restore to find out.
pub(super) async fn append(
    client: &Client,
    context: &CallContext,
    partition: &TopicPartition,
    ids: Ids,
    now: Timestamp,
    records: &[ChangelogRecord],
) -> Result<Offset, AppendError> {
    let batch = batch(ids.input, now, records).map_err(|error| AppendError::Batch(partition.clone(), error))?;
    let data = PartitionProduceData {
        index: partition.partition.get(),
        records: Some(batch),
        ..PartitionProduceData::default()
    };
    let request = ProduceRequest {
        acks: ACKS_ALL,
        timeout_ms: APPEND_WAIT_MS,
        topic_data: vec![TopicProduceData {
            name: Text::from(partition.topic.as_str()),
            topic_id: ids.changelog,
            partition_data: vec![data],
            ..TopicProduceData::default()
        }],
        ..ProduceRequest::default()
    };
    let target = Target::LeaderOf(partition.clone());
    let response = client.call(context, target, Request::from(request)).await;
    let response = response.map_err(|error| AppendError::Call(partition.clone(), error))?;
    let lacking = || AppendError::Answer(partition.clone());
    let Response::Produce(response) = response else {
        return Err(lacking());
    };
    let mut rows = response.responses.iter().flat_map(|topic| &topic.partition_responses);
    let row = rows.next().ok_or_else(lacking)?;
    if row.error_code != ErrorCode::None.code() {
        return Err(AppendError::Refused {
            partition: partition.clone(),
            code: ErrorCode::from_code(row.error_code).unwrap_or(ErrorCode::UnknownServerError),
            message: row.error_message.as_ref().map(ToString::to_string),
        });
    }
    let base = Offset::from_wire(row.base_offset).ok_or_else(lacking)?;
    let count = i64::try_from(records.len()).expect("a batch's records are bounded");
    Ok(base.plus(count))
}

fn batch(
    input: TopicId,
    now: Timestamp,
    records: &[ChangelogRecord],
) -> Result<Bytes, model::record_batch::BatchError> {
    let progress = ChangelogKey::Progress.encode();
    let id = input.to_string();
    let mut builder = BatchBuilder::new(BatchOptions::default());
    for record in records {
        let header = [(INPUT_TOPIC_ID, Some(id.as_bytes()))];
        let headers: &[_] = if record.key == progress { &header } else { &[] };
        builder.append(now, Some(&record.key), record.value.as_deref(), headers)?;
    }
    builder.build()
}

/// A record of the topic as one of the changelog, and the input topic that it names.
pub(super) fn read(record: Record) -> Result<(ChangelogRecord, Option<Bytes>), ChangelogError> {
    let named = record
        .headers
        .into_iter()
        .find(|header| header.key == INPUT_TOPIC_ID.as_bytes());
    let key = record.key.ok_or(ChangelogError::NoKey)?;
    let value = record.value;
    Ok((ChangelogRecord { key, value }, named.and_then(|header| header.value)))
}

/// Whether what a progress record names is this topic.
pub(super) fn is_of(named: &[u8], input: TopicId) -> bool {
    named == input.to_string().as_bytes()
}
