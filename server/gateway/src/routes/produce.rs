//! Writing to a topic, and cutting records off its beginning.
//!
//! A JSON value goes to the log as the bytes that the request had: it is sliced out of the body, not rendered.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use bytes::Bytes;
use client::{CallContext, Client, Outcome, ProduceRecord};
use model::record_batch::RecordHeader;
use model::{Offset, PartitionIndex, Timestamp, TopicName, TopicPartition};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};

use super::outgoing::Outgoing;
use super::parameters::{Caller, NamedTopic, Parameters};
use crate::bodies::{RecordsBody, SmallBody, at_most};
use crate::format::Format;
use crate::gateway::Gateway;
use crate::problem::{Document, Problem, RecordProblem};

/// How many records one request may bring.
const RECORDS_MAX: usize = 20_000;
/// How many headers a record may have.
const HEADERS_MAX: usize = 1000;
/// How many headers all records of a request may have.
const REQUEST_HEADERS_MAX: usize = 100_000;
/// How many partitions one request may truncate.
const PARTITIONS_MAX: usize = 10_000;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ProduceParameters {
    /// How keys are written; `text` if nothing is said. A key serde of the topic encodes what is `json`, and what has no
    /// format, which then is JSON, too.
    pub(super) key_format: Option<Format>,
    /// How values are written; `json` if nothing is said, which a value serde of the topic encodes.
    pub(super) value_format: Option<Format>,
}

/// Records to be written.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Produce<'a> {
    // Each is read by itself, so that what they become in memory is bounded.
    #[serde(borrow, deserialize_with = "at_most::<_, _, RECORDS_MAX>")]
    #[schema(value_type = Vec<NewRecord<'_>>, max_items = 20_000)]
    records: Vec<&'a RawValue>,
}

/// A record to be written.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewRecord<'a> {
    /// In the key format. Records with the same key go to the same partition.
    #[serde(borrow, default)]
    #[schema(value_type = Option<serde_json::Value>)]
    key: Option<&'a RawValue>,
    /// In the value format. A JSON value is stored as its text exactly as it was sent; null is a tombstone.
    #[serde(borrow)]
    #[schema(value_type = serde_json::Value)]
    value: &'a RawValue,
    #[serde(default, deserialize_with = "at_most::<_, _, HEADERS_MAX>")]
    #[schema(max_items = 1000)]
    headers: Vec<Header>,
    /// Without it, chosen by the topic's partitioner, else by the key as Kafka's Java client does, or spread where there is
    /// no key.
    #[schema(minimum = 0)]
    partition: Option<i32>,
    /// Milliseconds since 1970; without it, now.
    #[schema(minimum = 0)]
    timestamp: Option<i64>,
}

/// A header of a record.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Header {
    pub(crate) name: String,
    /// As text; null if it has no value, or `value_base64` is there in its place.
    #[serde(default)]
    pub(crate) value: Option<String>,
    /// The value's bytes, where they are not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) value_base64: Option<String>,
}

/// What became of each record, in their order.
#[derive(Serialize, ToSchema)]
pub(crate) struct Produced {
    offsets: Vec<ProducedRecord>,
}

/// Where a record is, or why it is not.
#[derive(Serialize, ToSchema)]
pub(crate) struct ProducedRecord {
    #[serde(skip_serializing_if = "Option::is_none")]
    partition: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<i64>,
    /// Only there if the record failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<RecordProblem>,
}

/// Which records to delete.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Truncate {
    #[serde(deserialize_with = "at_most::<_, _, PARTITIONS_MAX>")]
    #[schema(max_items = 10_000)]
    partitions: Vec<TruncatePartition>,
}

/// Deletes the first records of a partition.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TruncatePartition {
    #[schema(minimum = 0)]
    partition: i32,
    /// The first offset that stays; without it, all records there are go.
    #[schema(minimum = 0)]
    before: Option<i64>,
}

/// Where the partitions begin now.
#[derive(Serialize, ToSchema)]
pub(crate) struct Truncated {
    partitions: Vec<TruncatedPartition>,
}

/// Where a partition begins now.
#[derive(Serialize, ToSchema)]
pub(crate) struct TruncatedPartition {
    partition: i32,
    start: i64,
}

/// Write records
///
/// The answer comes when every in-sync replica has them.
#[utoipa::path(
    post,
    path = "/api/v1/topics/{topic}/records",
    tag = "records",
    operation_id = "produce",
    params(("topic" = String, Path, description = "The topic's name"), ProduceParameters),
    request_body = Produce<'_>,
    responses(
        (status = 200, description = "All records are written", body = Produced),
        (status = 207, description = "Some records are written, the others have an `error`", body = Produced),
        (status = "default", description = "No record is written, or not known to be", body = Document,
            content_type = "application/problem+json"),
    )
)]
pub(crate) async fn produce(
    State(gateway): State<Gateway>,
    Caller(context): Caller,
    NamedTopic(topic): NamedTopic,
    Parameters(formats): Parameters<ProduceParameters>,
    body: RecordsBody,
) -> Result<(StatusCode, Json<Produced>), Problem> {
    let outgoing = Outgoing::new(&gateway, &context, &topic, &formats);
    let mut read = read_records(&body, outgoing.key_format, outgoing.value_format)?;
    outgoing.finish(&mut read).await?;
    let mut sent = Vec::with_capacity(read.len());
    let mut outcomes: Vec<Option<Result<client::Acknowledged, RecordProblem>>> = Vec::with_capacity(read.len());
    for record in read {
        match record {
            Ok(record) => {
                sent.push(record);
                outcomes.push(None);
            }
            Err(problem) => outcomes.push(Some(Err(problem))),
        }
    }
    let mut sent = if sent.is_empty() {
        Vec::new().into_iter()
    } else {
        gateway.producer.send(&topic, sent).await?.into_iter()
    };
    let outcomes = outcomes
        .into_iter()
        .map(|outcome| outcome.unwrap_or_else(|| settled(sent.next())));
    answer(outcomes.collect())
}

/// The records of a body, or what is wrong with each.
fn read_records(
    body: &RecordsBody,
    key_format: Format,
    value_format: Format,
) -> Result<Vec<Result<ProduceRecord, RecordProblem>>, Problem> {
    let wanted: Produce<'_> = body.parse()?;
    if wanted.records.is_empty() {
        return Err(Problem::invalid("`records` has at least one record"));
    }
    let mut read = Vec::with_capacity(wanted.records.len());
    let mut headers = 0;
    for (index, text) in wanted.records.into_iter().enumerate() {
        let record: NewRecord<'_> = serde_json::from_str(text.get())
            .map_err(|error| Problem::invalid(format!("record {index} cannot be read: {error}")))?;
        headers += record.headers.len();
        if headers > REQUEST_HEADERS_MAX {
            let detail = format!("the records of a request have {REQUEST_HEADERS_MAX} headers at most in all");
            return Err(Problem::invalid(detail));
        }
        let record = record.read(&body.bytes, key_format, value_format);
        read.push(record.map_err(RecordProblem::invalid));
    }
    Ok(read)
}

fn settled(outcome: Option<Outcome>) -> Result<client::Acknowledged, RecordProblem> {
    let outcome = outcome.expect("the producer tells the fate of every record");
    outcome.map_err(RecordProblem::from)
}

fn answer(outcomes: Vec<Result<client::Acknowledged, RecordProblem>>) -> Result<(StatusCode, Json<Produced>), Problem> {
    let failed = outcomes.iter().filter(|outcome| outcome.is_err()).count();
    if failed == outcomes.len() {
        let errors = outcomes.into_iter().enumerate();
        let errors = errors.filter_map(|(index, outcome)| Some((index, outcome.err()?)));
        return Err(Problem::none_written(errors.collect()));
    }
    let status = if failed == 0 {
        StatusCode::OK
    } else {
        StatusCode::MULTI_STATUS
    };
    let offsets = outcomes.into_iter().map(|outcome| match outcome {
        Ok(acknowledged) => ProducedRecord {
            partition: Some(acknowledged.partition.get()),
            offset: Some(acknowledged.offset.get()),
            timestamp: Some(acknowledged.timestamp.millis()),
            error: None,
        },
        Err(error) => ProducedRecord {
            partition: None,
            offset: None,
            timestamp: None,
            error: Some(error),
        },
    });
    let offsets = offsets.collect();
    Ok((status, Json(Produced { offsets })))
}

impl NewRecord<'_> {
    /// The record as the producer takes it, or what is wrong with it.
    fn read(self, body: &Bytes, key_format: Format, value_format: Format) -> Result<ProduceRecord, String> {
        let key = match self.key {
            Some(key) => key_format
                .bytes(key, body)
                .map_err(|error| format!("the key {error}"))?,
            None => None,
        };
        let value = value_format
            .bytes(self.value, body)
            .map_err(|error| format!("the value {error}"))?;
        let partition = match self.partition {
            Some(index) => Some(PartitionIndex::from_wire(index).ok_or("`partition` is from 0 on")?),
            None => None,
        };
        let timestamp = match self.timestamp {
            Some(millis) => Some(Timestamp::from_wire(millis).ok_or("`timestamp` is from 0 on")?),
            None => None,
        };
        let headers = self.headers.into_iter().map(Header::read);
        Ok(ProduceRecord {
            partition,
            timestamp,
            key,
            value,
            headers: headers.collect::<Result<_, _>>()?,
        })
    }
}

impl Header {
    fn read(self) -> Result<RecordHeader, String> {
        let value = match (self.value, self.value_base64) {
            (Some(_), Some(_)) => return Err(format!("header {} has two values", self.name)),
            (Some(text), None) => Some(Bytes::from(text)),
            (None, Some(base64)) => {
                let raw = serde_json::value::to_raw_value(&base64).map_err(|error| error.to_string())?;
                let bytes = Format::Base64.bytes(&raw, &Bytes::new());
                bytes.map_err(|error| format!("header {} {error}", self.name))?
            }
            (None, None) => None,
        };
        Ok(RecordHeader {
            key: Bytes::from(self.name),
            value,
        })
    }

    pub(super) fn show(header: &RecordHeader) -> Self {
        let name = String::from_utf8_lossy(&header.key).into_owned();
        let text = header.value.as_deref().map(std::str::from_utf8);
        match text {
            None => Header {
                name,
                value: None,
                value_base64: None,
            },
            Some(Ok(text)) => Header {
                name,
                value: Some(text.to_owned()),
                value_base64: None,
            },
            Some(Err(_)) => Header {
                name,
                value: None,
                value_base64: Format::Text.show(header.value.as_deref()).base64,
            },
        }
    }
}

/// Delete the first records of partitions
#[utoipa::path(
    delete,
    path = "/api/v1/topics/{topic}/records",
    tag = "records",
    operation_id = "delete_records",
    params(("topic" = String, Path, description = "The topic's name")),
    request_body = Truncate,
    responses(
        (status = 200, description = "The records are deleted", body = Truncated),
        (status = "default", description = "What went wrong; partitions that come earlier in the request may be done",
            body = Document, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn truncate(
    State(gateway): State<Gateway>,
    Caller(context): Caller,
    NamedTopic(topic): NamedTopic,
    body: SmallBody,
) -> Result<Json<Truncated>, Problem> {
    let wanted: Truncate = body.parse()?;
    let mut checked = Vec::new();
    for row in wanted.partitions {
        let partition = PartitionIndex::from_wire(row.partition);
        let before = row
            .before
            .map(|before| Offset::from_wire(before).ok_or(before))
            .transpose();
        match (partition, before) {
            (Some(partition), Ok(before)) => checked.push((partition, before)),
            _ => return Err(Problem::invalid("`partition` and `before` are from 0 on")),
        }
    }
    let mut partitions = Vec::new();
    for (partition, before) in checked {
        let start = truncate_one(&gateway.client, &context, &topic, partition, before).await?;
        partitions.push(TruncatedPartition {
            partition: partition.get(),
            start: start.get(),
        });
    }
    Ok(Json(Truncated { partitions }))
}

async fn truncate_one(
    client: &Client,
    context: &CallContext,
    topic: &TopicName,
    partition: PartitionIndex,
    before: Option<Offset>,
) -> Result<Offset, client::Error> {
    let partition = TopicPartition {
        topic: topic.clone(),
        partition,
    };
    client.delete_records(context, &partition, before).await
}
