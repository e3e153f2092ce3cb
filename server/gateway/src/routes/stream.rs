//! Records as server-sent events.
//!
//! ```text
//!   id: *5,7                 where every partition is read on after this event
//!   event: record            or ping (with the ends of the partitions), or error (with a problem; the last one)
//!   data: {"partition":0,…}
//! ```
//! A reader that takes nothing stops the reading: events are made when the connection has room for them, and the tail
//! behind them holds a bounded number of bytes.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Write;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use client::{Chunk, Tail};
use futures_util::stream::unfold;
use model::record_batch::Record;
use model::{Offset, PartitionIndex, TopicName};
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, timeout_at};

use super::consume::Formats;
use crate::gateway::Gateway;
use crate::problem::Problem;
use crate::read::{Cursor, Reader, size_bytes};
use crate::server::stopped;

/// How long nothing may come before a ping says that the stream lives.
const PING_AFTER: Duration = Duration::from_secs(15);
/// How much of a chunk is written at a time, as it is stored.
const PIECE_BYTES: usize = 64 * 1024;
/// What an event has beside the record's own bytes, about.
const RECORD_BYTES_MIN: usize = 128;
/// How long the leader holds a poll.
const POLL_WAIT: Duration = Duration::from_secs(5);
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// A stream of what is in the topic from `start` on, and of what comes.
pub(super) async fn open(reader: &Reader<'_>, start: Cursor, formats: Formats) -> Result<Response, Problem> {
    let open = Open::new(reader.gateway.clone())?;
    let tail = reader.long_tail(&start, POLL_WAIT).await?;
    let stream = Stream {
        open,
        stop: reader.gateway.stop.clone(),
        topic: reader.topic.clone(),
        tail,
        formats,
        ends: BTreeMap::new(),
        cursor: start,
        waiting: None,
        next_ping: Instant::now(),
        is_over: false,
    };
    let pieces = unfold(stream, async |mut stream| {
        let piece = stream.next_piece().await?;
        Some((Ok::<_, Infallible>(piece), stream))
    });
    Ok(event_headers(Body::from_stream(pieces).into_response()))
}

/// Says that the answer is a stream of events, and that nobody on its way is to hold it back.
pub(super) fn event_headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
    response
}

/// The stream's place among those that may be open; counted while it is.
pub(super) struct Open {
    gateway: Gateway,
    _place: OwnedSemaphorePermit,
}

impl Open {
    pub(super) fn new(gateway: Gateway) -> Result<Self, Problem> {
        let place = gateway.streams.clone().try_acquire_owned().map_err(|_| {
            let detail = "as many event streams are open as may be";
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", detail).retryable()
        })?;
        gateway.metrics.stream_opened();
        Ok(Open { gateway, _place: place })
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.gateway.metrics.stream_closed();
    }
}

struct Stream {
    open: Open,
    stop: watch::Receiver<bool>,
    topic: TopicName,
    tail: Tail,
    formats: Formats,
    /// The end of each partition, as far as it was told.
    ends: BTreeMap<PartitionIndex, Offset>,
    /// Where the reader stands after what was written.
    cursor: Cursor,
    /// Records of a chunk that are still to be written, and where their partition is read on after them.
    waiting: Option<(PartitionIndex, std::vec::IntoIter<Record>, Offset)>,
    next_ping: Instant,
    is_over: bool,
}

#[derive(Serialize)]
struct Ping<'a> {
    /// The offset of the next record of each partition.
    tail: &'a BTreeMap<i32, i64>,
}

impl Stream {
    /// Some whole events; `None` when the stream is over.
    async fn next_piece(&mut self) -> Option<Bytes> {
        loop {
            if let Some(piece) = self.write_waiting().await {
                self.next_ping = Instant::now() + PING_AFTER;
                return Some(piece);
            }
            if self.is_over {
                return None;
            }
            let chunk = tokio::select! {
                biased;
                () = stopped(&mut self.stop) => return None,
                chunk = timeout_at(self.next_ping, self.tail.next()) => chunk,
            };
            match chunk {
                // Also at the very beginning, so that a reader knows at once where it stands.
                Err(_) => return Some(self.ping()),
                Ok(Some(Ok(chunk))) => self.take(chunk),
                Ok(Some(Err(error))) => return Some(self.error(error)),
                Ok(None) => return None,
            }
        }
    }

    fn take(&mut self, chunk: Chunk) {
        let index = chunk.partition.partition;
        self.ends.insert(index, chunk.end);
        if chunk.records.is_empty() {
            self.cursor.positions.insert(index, chunk.next);
        } else {
            self.waiting = Some((index, chunk.records.into_iter(), chunk.next));
        }
    }

    async fn write_waiting(&mut self) -> Option<Bytes> {
        let (index, mut records, after) = self.waiting.take()?;
        let mut piece = Vec::new();
        let mut bytes = 0;
        while bytes < PIECE_BYTES {
            let Some(record) = records.next() else { break };
            bytes += RECORD_BYTES_MIN + size_bytes(&record);
            piece.push((index, record));
        }
        let after_piece = records.as_slice().first().map_or(after, |record| record.offset);
        let shown = self.formats.show(&self.open.gateway, &self.topic, &piece).await;
        let mut text = String::new();
        for (place, shown) in shown.iter().enumerate() {
            let next = piece
                .get(place + 1)
                .map_or(after_piece, |_| piece[place].1.offset.plus(1));
            self.cursor.positions.insert(index, next);
            let data = serde_json::to_string(shown).expect("a record that was read is plain data");
            write_event(&mut text, Some(&self.cursor.text()), "record", &data);
        }
        if !records.as_slice().is_empty() {
            self.waiting = Some((index, records, after));
        }
        Some(Bytes::from(text))
    }

    fn ping(&mut self) -> Bytes {
        self.next_ping = Instant::now() + PING_AFTER;
        let ends = self.ends.iter().map(|(index, end)| (index.get(), end.get()));
        let tail = ends.collect();
        let data = serde_json::to_string(&Ping { tail: &tail }).expect("numbers are plain data");
        let mut text = String::new();
        write_event(&mut text, Some(&self.cursor.text()), "ping", &data);
        Bytes::from(text)
    }

    fn error(&mut self, error: client::Error) -> Bytes {
        self.is_over = true;
        let mut text = String::new();
        write_event(&mut text, None, "error", &Problem::from(error).text());
        Bytes::from(text)
    }
}

/// Stored JSON may have line breaks between its tokens; an event has a line of data for each.
pub(super) fn write_event(text: &mut String, id: Option<&str>, event: &str, data: &str) {
    if let Some(id) = id {
        let _ = writeln!(text, "id: {id}");
    }
    let _ = writeln!(text, "event: {event}");
    for line in data.split('\n').flat_map(|line| line.split('\r')) {
        let _ = writeln!(text, "data: {line}");
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_in_stored_json_stay_inside_their_event() {
        let mut text = String::new();
        write_event(&mut text, Some("*1"), "record", "[1,\n2,\r\n3,\r4]");
        let expected = "id: *1\nevent: record\ndata: [1,\ndata: 2,\ndata: \ndata: 3,\ndata: 4]\n\n";
        assert_eq!(text, expected);
    }
}
