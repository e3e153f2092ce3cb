//! `GET /api/v1/topics/{topic}/records`: one answer with some records, or a stream of events.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::header::ACCEPT;
use axum::http::{HeaderMap, HeaderName};
use axum::response::{IntoResponse, Response};
use model::record_batch::Record;
use model::{PartitionIndex, TopicName};
use plugin::serde::Part;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};

use super::parameters::{Caller, NamedTopic, Parameters};
use super::produce::Header;
use super::stream;
use crate::decoded::show_part;
use crate::format::{Format, Shown};
use crate::gateway::Gateway;
use crate::problem::{Document, Problem};
use crate::read::{Cursor, From, Reader};

const LIMIT_DEFAULT: usize = 100;
const LIMIT_MAX: usize = 10_000;
const WAIT_MAX: Duration = Duration::from_secs(30);
const EVENT_STREAM: &str = "text/event-stream";
pub(super) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ConsumeParameters {
    /// The partition to read; without it, all, merged by time.
    #[param(minimum = 0)]
    partition: Option<i32>,
    /// Where to begin: `earliest` (if nothing is said), `latest`, `offset:N` or `time:MS`.
    #[param(pattern = "^(earliest|latest|offset:[0-9]+|time:[0-9]+)$")]
    from: Option<String>,
    /// How many records to bring at most. Not for streams.
    #[param(minimum = 1, maximum = 10_000, default = 100)]
    limit: Option<usize>,
    /// How many milliseconds to wait for a first record if there is none. Not for streams.
    #[param(minimum = 0, maximum = 30_000, default = 0)]
    wait: Option<u64>,
    /// `next` of an answer, or the id of an event: reads on from there, in place of `from`.
    cursor: Option<String>,
    /// How to write keys; `text` if nothing is said. A key serde of the topic decodes what is read as `json` or with
    /// nothing said.
    key_format: Option<Format>,
    /// How to write values; `json` if nothing is said. A value serde of the topic decodes what is read so.
    value_format: Option<Format>,
}

/// Some records, and where to read on.
#[derive(Serialize, ToSchema)]
pub(crate) struct Records {
    records: Vec<ReadRecord>,
    /// The cursor to read on with, also if there were no records.
    next: String,
}

/// A record as it is stored.
#[derive(Serialize, ToSchema)]
pub(crate) struct ReadRecord {
    partition: i32,
    offset: i64,
    /// Milliseconds since 1970.
    timestamp: i64,
    /// In the key format.
    #[schema(value_type = serde_json::Value, required)]
    key: Option<Box<RawValue>>,
    /// Why the key cannot be shown in its format; `key` is then null.
    #[serde(skip_serializing_if = "Option::is_none")]
    key_error: Option<String>,
    /// The key's bytes, if it cannot be shown in its format: as they are stored, or as a serde gives them.
    #[serde(skip_serializing_if = "Option::is_none")]
    key_base64: Option<String>,
    /// In the value format. JSON is the text as it is stored, every digit of it. Null is a tombstone, unless
    /// `value_error` is there.
    #[schema(value_type = serde_json::Value, required)]
    value: Option<Box<RawValue>>,
    /// Why the value cannot be shown in its format; `value` is then null.
    #[serde(skip_serializing_if = "Option::is_none")]
    value_error: Option<String>,
    /// The value's bytes, if it cannot be shown in its format: as they are stored, or as a serde gives them.
    #[serde(skip_serializing_if = "Option::is_none")]
    value_base64: Option<String>,
    headers: Vec<Header>,
}

/// How a reader wants keys and values, where it says so.
#[derive(Clone, Copy, Debug)]
pub(super) struct Formats {
    key: Option<Format>,
    value: Option<Format>,
}

impl Formats {
    /// Records of a topic as its readers see them; all of them go through the topic's plugins at once.
    pub(super) async fn show(
        self,
        gateway: &Gateway,
        topic: &TopicName,
        records: &[(PartitionIndex, Record)],
    ) -> Vec<ReadRecord> {
        let keys = records.iter().map(|(_, record)| record.key.clone()).collect();
        let values = records.iter().map(|(_, record)| record.value.clone()).collect();
        let keys = show_part(&gateway.coders, topic, Part::Key, self.key, keys).await;
        let values = show_part(&gateway.coders, topic, Part::Value, self.value, values).await;
        let parts = keys.into_iter().zip(values);
        let rows = records.iter().zip(parts);
        rows.map(|((partition, record), (key, value))| ReadRecord::new(*partition, record, key, value))
            .collect()
    }
}

impl ReadRecord {
    fn new(partition: PartitionIndex, record: &Record, key: Shown, value: Shown) -> Self {
        ReadRecord {
            partition: partition.get(),
            offset: record.offset.get(),
            timestamp: record.timestamp.millis(),
            key: key.value,
            key_error: key.error,
            key_base64: key.base64,
            value: value.value,
            value_error: value.error,
            value_base64: value.base64,
            headers: record.headers.iter().map(Header::show).collect(),
        }
    }
}

/// Read records
///
/// With `accept: text/event-stream`, records come as events named `record` for as long as the reader stays, each with an
/// id that a reader who comes again sends as `Last-Event-ID`. Events named `ping` say that there is nothing new, and an
/// event named `error`, whose data is a problem, is the last.
#[utoipa::path(
    get,
    path = "/api/v1/topics/{topic}/records",
    tag = "records",
    operation_id = "consume",
    params(
        ("topic" = String, Path, description = "The topic's name"),
        ConsumeParameters,
        ("last-event-id" = Option<String>, Header, description = "The id of the last event that was seen; for streams"),
    ),
    responses(
        (status = 200, description = "Records", content(
            (Records = "application/json"),
            (String = "text/event-stream"),
        )),
        (status = 410, description = "The offset lies below the log, which begins at `log_start`", body = Document,
            content_type = "application/problem+json"),
        (status = 416, description = "The offset lies past the log, which ends at `log_end`", body = Document,
            content_type = "application/problem+json"),
        (status = "default", description = "What went wrong", body = Document, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn consume(
    State(gateway): State<Gateway>,
    Caller(context): Caller,
    NamedTopic(topic): NamedTopic,
    Parameters(wanted): Parameters<ConsumeParameters>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let formats = Formats {
        key: wanted.key_format,
        value: wanted.value_format,
    };
    let partition = match wanted
        .partition
        .map(|index| PartitionIndex::from_wire(index).ok_or(index))
    {
        Some(Ok(partition)) => Some(partition),
        Some(Err(_)) => return Err(Problem::invalid("`partition` is from 0 on")),
        None => None,
    };
    let reader = Reader {
        gateway: &gateway,
        context: &context,
        topic: &topic,
    };
    if wants_stream(&headers) {
        if wanted.limit.is_some() || wanted.wait.is_some() {
            return Err(Problem::invalid("`limit` and `wait` do not go with a stream"));
        }
        let from = match headers.get(LAST_EVENT_ID) {
            Some(id) => last_event(id.to_str().ok())?,
            None => wanted.from()?,
        };
        let start = reader.resolve(partition, &from).await?;
        return stream::open(&reader, start, formats).await;
    }
    let (limit, wait) = wanted.bounds()?;
    let start = reader.resolve(partition, &wanted.from()?).await?;
    let gathered = reader.gather(start, limit, wait).await?;
    let answer = Records {
        records: formats.show(&gateway, &topic, &gathered.records).await,
        next: gathered.next.text(),
    };
    Ok(Json(answer).into_response())
}

pub(super) fn wants_stream(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|kind| {
        kind.split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .eq_ignore_ascii_case(EVENT_STREAM)
    })
}

fn last_event(id: Option<&str>) -> Result<From, Problem> {
    let cursor = id.and_then(Cursor::parse);
    cursor
        .map(From::Cursor)
        .ok_or_else(|| Problem::invalid("`Last-Event-ID` is not the id of an event of this stream"))
}

impl ConsumeParameters {
    fn from(&self) -> Result<From, Problem> {
        match (&self.from, &self.cursor) {
            (Some(_), Some(_)) => Err(Problem::invalid("`from` and `cursor` do not go together")),
            (None, None) => Ok(From::Earliest),
            (Some(from), None) => {
                From::parse(from).ok_or_else(|| Problem::invalid("`from` is earliest, latest, offset:N or time:MS"))
            }
            (None, Some(cursor)) => Cursor::parse(cursor)
                .map(From::Cursor)
                .ok_or_else(|| Problem::invalid("`cursor` is not the `next` of an answer")),
        }
    }

    fn bounds(&self) -> Result<(usize, Duration), Problem> {
        let limit = self.limit.unwrap_or(LIMIT_DEFAULT);
        if !(1..=LIMIT_MAX).contains(&limit) {
            return Err(Problem::invalid(format!("`limit` is from 1 to {LIMIT_MAX}")));
        }
        let wait = Duration::from_millis(self.wait.unwrap_or(0));
        if wait > WAIT_MAX {
            let max = WAIT_MAX.as_millis();
            return Err(Problem::invalid(format!("`wait` is {max} milliseconds at most")));
        }
        Ok((limit, wait))
    }
}
