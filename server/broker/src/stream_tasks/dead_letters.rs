//! What a record of a dead-letter topic looks like: the original's key, value, headers and timestamp, and headers of our
//! own behind them that say where it came from and why it is here. Their names are part of docs/processors.md.

use bytes::Bytes;
use client::ProduceRecord;
use model::record_batch::RecordHeader;
use model::{ErrorCode, Offset, PartitionIndex, TopicName};
use plugin::{Digest, Header, ProcessorName};
use streams::{DeadLetter, DeadLetterSource, ResultRow};

const PREFIX: &[u8] = b"dead-letter.";
const TOPIC: &str = "dead-letter.topic";
const PARTITION: &str = "dead-letter.partition";
const OFFSET: &str = "dead-letter.offset";
const WINDOW_START: &str = "dead-letter.window.start";
const WINDOW_END: &str = "dead-letter.window.end";
const OUTPUT: &str = "dead-letter.output";
const MODULE: &str = "dead-letter.module";
const PROCESSOR: &str = "dead-letter.processor";
const VERSION: &str = "dead-letter.version";
const REASON: &str = "dead-letter.reason";
/// The original's timestamp, where its topic does not take that.
const TIMESTAMP: &str = "dead-letter.timestamp";
/// What of the original is missing, because its topic does not take it.
const OMITTED: &str = "dead-letter.omitted";
/// Longest key that a letter without its value keeps.
const KEY_BYTES_MAX: usize = 16 << 10;

/// What all dead letters of a task have in common.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    pub(super) processor: ProcessorName,
    pub(super) version: u64,
    pub(super) module: Digest,
    pub(super) input: TopicName,
    pub(super) output: TopicName,
    pub(super) partition: PartitionIndex,
}

impl Sender {
    /// Something that the plugin refused or broke at.
    pub(super) fn letter(&self, letter: &DeadLetter) -> ProduceRecord {
        let mut headers = own_headers(&letter.headers);
        match letter.source {
            DeadLetterSource::Row(offset) => self.source(Some(offset), &mut headers),
            DeadLetterSource::Window(window) => {
                self.source(None, &mut headers);
                headers.push(header(WINDOW_START, window.start.millis()));
                headers.push(header(WINDOW_END, window.end.millis()));
            }
        }
        self.sign(&letter.reason, &mut headers);
        ProduceRecord {
            partition: None,
            timestamp: Some(letter.timestamp),
            key: letter.key.clone(),
            value: letter.value.clone(),
            headers,
        }
    }

    /// A result that its topic does not take.
    pub(super) fn refused_result(&self, result: &ResultRow, reason: &str) -> ProduceRecord {
        let mut headers = own_headers(&result.headers);
        self.source(result.cause, &mut headers);
        headers.push(header(OUTPUT, &self.output));
        self.sign(reason, &mut headers);
        ProduceRecord {
            partition: None,
            timestamp: Some(result.timestamp),
            key: result.key.clone(),
            value: result.value.clone(),
            headers,
        }
    }

    fn source(&self, offset: Option<Offset>, headers: &mut Vec<RecordHeader>) {
        headers.push(header(TOPIC, &self.input));
        headers.push(header(PARTITION, self.partition));
        if let Some(offset) = offset {
            headers.push(header(OFFSET, offset));
        }
    }

    fn sign(&self, reason: &str, headers: &mut Vec<RecordHeader>) {
        headers.push(header(MODULE, self.module));
        headers.push(header(PROCESSOR, &self.processor));
        headers.push(header(VERSION, self.version));
        headers.push(header(REASON, reason));
    }
}

/// The same letter without what its topic does not take.
pub(super) fn reduced(mut letter: ProduceRecord, refused: ErrorCode) -> ProduceRecord {
    if let Some(timestamp) = letter.timestamp.take() {
        letter.headers.push(header(TIMESTAMP, timestamp.millis()));
    }
    if refused != ErrorCode::InvalidTimestamp {
        letter.value = None;
        letter.key = letter.key.filter(|key| key.len() <= KEY_BYTES_MAX);
        letter.headers.retain(|header| header.key.starts_with(PREFIX));
        letter
            .headers
            .push(header(OMITTED, "value and headers: the topic does not take them"));
    }
    letter
}

/// Our own headers as the fields of a log entry.
pub(super) fn fields(letter: &ProduceRecord) -> Vec<(String, String)> {
    let own = letter.headers.iter().filter(|header| header.key.starts_with(PREFIX));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    own.map(|header| (text(&header.key), text(header.value.as_deref().unwrap_or_default())))
        .collect()
}

fn header(name: &'static str, value: impl std::fmt::Display) -> RecordHeader {
    RecordHeader {
        key: Bytes::from_static(name.as_bytes()),
        value: Some(Bytes::from(value.to_string())),
    }
}

pub(super) fn own_headers(headers: &[Header]) -> Vec<RecordHeader> {
    let headers = headers.iter().map(|header| RecordHeader {
        key: Bytes::copy_from_slice(header.name.as_bytes()),
        value: header.value.clone(),
    });
    headers.collect()
}
