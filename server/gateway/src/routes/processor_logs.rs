//! `GET /api/v1/processors/{name}/logs`: what a processor's module has logged on this node, as one answer or as events.
//!
//! ```text
//!   id: 42                   what is read on from after this event
//!   event: log               or ping (nothing came for a while), or error (with a problem; the last one)
//!   data: {"sequence":41,…}
//! ```
//! Entries are counted anew when the program starts, so one who asks from beyond the newest is taken to have come from
//! before, and is given all there are.

use std::convert::Infallible;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream::unfold;
use plugin::ProcessorName;
use plugin::logs::{KEPT_ENTRIES_MAX, LogEntry, Logs};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use utoipa::{IntoParams, ToSchema};

use super::consume::{LAST_EVENT_ID, wants_stream};
use super::parameters::{NamedProcessor, Parameters};
use super::processors::unknown;
use super::stream::{Open, event_headers, write_event};
use crate::gateway::Gateway;
use crate::problem::{Document, Problem};
use crate::server::stopped;

const LIMIT_DEFAULT: usize = 200;
const LIMIT_MAX: usize = KEPT_ENTRIES_MAX;
/// How often it is looked for new entries.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How long nothing may come before a ping says that the stream lives.
const PING_AFTER: Duration = Duration::from_secs(15);

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct LogParameters {
    /// The sequence to begin with, as `next` of an answer; without it, one answer has the newest entries and a stream all.
    #[param(minimum = 0)]
    from: Option<u64>,
    /// How many entries to bring at most. Not for streams.
    #[param(minimum = 1, maximum = 2000, default = 200)]
    limit: Option<usize>,
}

/// Entries, the oldest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct LogEntries {
    entries: Vec<ProcessorLogEntry>,
    /// How many entries were never kept because too much was logged at once.
    left_out: u64,
    /// `from` of the entries that follow.
    next: u64,
}

/// An entry of a processor's log.
#[derive(Serialize, ToSchema)]
pub(crate) struct ProcessorLogEntry {
    /// Counts the processor's entries on this node, those that were left out too.
    sequence: u64,
    /// Milliseconds since 1970.
    time: i64,
    /// Of the task that logged it.
    partition: i32,
    level: LogLevel,
    message: String,
    fields: Vec<LogField>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogLevel {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
}

/// What is said beside the message.
#[derive(Serialize, ToSchema)]
pub(crate) struct LogField {
    name: String,
    value: String,
}

impl ProcessorLogEntry {
    fn show(entry: LogEntry) -> Self {
        let fields = entry.fields.into_iter();
        ProcessorLogEntry {
            sequence: entry.sequence,
            time: entry.time.millis(),
            partition: entry.partition.get(),
            level: match entry.level {
                plugin::logs::Level::Trace => LogLevel::Trace,
                plugin::logs::Level::Debug => LogLevel::Debug,
                plugin::logs::Level::Info => LogLevel::Info,
                plugin::logs::Level::Warn => LogLevel::Warn,
                plugin::logs::Level::Error => LogLevel::Error,
            },
            message: entry.message,
            fields: fields.map(|(name, value)| LogField { name, value }).collect(),
        }
    }
}

/// What a processor's module has logged
///
/// On the node that is asked, which keeps the newest entries in memory. With `accept: text/event-stream`, entries come as
/// events named `log` for as long as the reader stays, each with an id that a reader who comes again sends as
/// `Last-Event-ID`.
#[utoipa::path(
    get,
    path = "/api/v1/processors/{name}/logs",
    tag = "processors",
    operation_id = "processor_logs",
    params(
        ("name" = String, Path, description = "The processor's name"),
        LogParameters,
        ("last-event-id" = Option<String>, Header, description = "The id of the last event that was seen; for streams"),
    ),
    responses(
        (status = 200, description = "Entries", content(
            (LogEntries = "application/json"),
            (String = "text/event-stream"),
        )),
        (status = "default", description = "What went wrong", body = Document, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn logs(
    State(gateway): State<Gateway>,
    NamedProcessor(name): NamedProcessor,
    Parameters(wanted): Parameters<LogParameters>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let logs = gateway.plugins.logs(&name).ok_or_else(|| unknown(&name))?;
    if wants_stream(&headers) {
        if wanted.limit.is_some() {
            return Err(Problem::invalid("`limit` does not go with a stream"));
        }
        let next = match headers.get(LAST_EVENT_ID) {
            Some(id) => last_event(id.to_str().ok())?,
            None => wanted.from.unwrap_or(0),
        };
        return open(gateway, name, next);
    }
    let limit = wanted.limit.unwrap_or(LIMIT_DEFAULT);
    if !(1..=LIMIT_MAX).contains(&limit) {
        return Err(Problem::invalid(format!("`limit` is from 1 to {LIMIT_MAX}")));
    }
    let entries = match wanted.from {
        None => logs.entries(0, limit),
        Some(from) => {
            let mut entries = logs.entries(beginning(&logs, from), KEPT_ENTRIES_MAX);
            entries.truncate(limit);
            entries
        }
    };
    let next = entries
        .last()
        .map_or_else(|| beginning(&logs, wanted.from.unwrap_or(0)), |last| last.sequence + 1);
    let answer = LogEntries {
        entries: entries.into_iter().map(ProcessorLogEntry::show).collect(),
        left_out: logs.left_out(),
        next,
    };
    Ok(Json(answer).into_response())
}

/// Where `from` is now: at the beginning if it lies past the newest entry.
fn beginning(logs: &Logs, from: u64) -> u64 {
    let newest = logs.entries(0, 1).pop();
    let end = newest.map_or(0, |newest| newest.sequence + 1);
    if from > end { 0 } else { from }
}

fn last_event(id: Option<&str>) -> Result<u64, Problem> {
    id.and_then(|id| id.parse().ok())
        .ok_or_else(|| Problem::invalid("`Last-Event-ID` is not the id of an event of this stream"))
}

fn open(gateway: Gateway, name: ProcessorName, next: u64) -> Result<Response, Problem> {
    let stream = Stream {
        _open: Open::new(gateway.clone())?,
        stop: gateway.stop.clone(),
        gateway,
        name,
        next,
        next_ping: Instant::now(),
        is_over: false,
    };
    let pieces = unfold(stream, async |mut stream| {
        let piece = stream.next_piece().await?;
        Some((Ok::<_, Infallible>(piece), stream))
    });
    Ok(event_headers(Body::from_stream(pieces).into_response()))
}

struct Stream {
    _open: Open,
    stop: watch::Receiver<bool>,
    gateway: Gateway,
    name: ProcessorName,
    next: u64,
    next_ping: Instant,
    is_over: bool,
}

impl Stream {
    /// Some whole events; `None` when the stream is over.
    async fn next_piece(&mut self) -> Option<Bytes> {
        if self.is_over {
            return None;
        }
        let mut text = String::new();
        loop {
            let Some(logs) = self.gateway.plugins.logs(&self.name) else {
                self.is_over = true;
                write_event(&mut text, None, "error", &unknown(&self.name).text());
                break;
            };
            self.next = beginning(&logs, self.next);
            for entry in logs.entries(self.next, KEPT_ENTRIES_MAX) {
                self.next = entry.sequence + 1;
                let shown = ProcessorLogEntry::show(entry);
                let data = serde_json::to_string(&shown).expect("an entry is plain data");
                write_event(&mut text, Some(&self.next.to_string()), "log", &data);
            }
            if !text.is_empty() {
                break;
            }
            if Instant::now() >= self.next_ping {
                write_event(&mut text, Some(&self.next.to_string()), "ping", "{}");
                break;
            }
            tokio::select! {
                biased;
                () = stopped(&mut self.stop) => return None,
                () = sleep(LOOK_EVERY) => {}
            }
        }
        self.next_ping = Instant::now() + PING_AFTER;
        Some(Bytes::from(text))
    }
}
