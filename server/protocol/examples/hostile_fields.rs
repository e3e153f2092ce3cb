//! Prints requests whose length and count fields lie, for a test that sends them to a node.
//!
//!     hostile_fields TOPIC=ID...
//!
//! A line a request: code of the API, version, what it is, and the frame (without its own length) in hex. For each request
//! of each version that the golden bytes hold, and for Produce requests with whole batches for the topics named, each
//! field is replaced in turn by -1, 2³¹ - 1 and one more than what is left of its frame, batch or record. The rest stays
//! as it is; a batch's checksum is that of its hostile bytes, so that they are looked at.
//!
//! - Which fields there are is what [`Reader::trace`] and `batch` say: nothing is guessed from bytes.
//! - Lines whose last word before the frame is `honest` hold a batch without a lie, which a node must take.
#![expect(clippy::unwrap_used, reason = "a program of tests, with trusted input")]

use bytes::Bytes;
use model::Uuid;
use protocol::messages::produce_request::{PartitionProduceData, ProduceRequest, TopicProduceData};
use protocol::schema::{LengthEncoding, LengthField};
use protocol::{ApiKey, Reader, Request, Writer, header};

#[path = "hostile_fields/batch.rs"]
mod batch;

const GOLDEN: &str = include_str!("../golden/messages.txt");
/// The golden requests that have something in their arrays.
const VARIANTS: [&str; 2] = ["full", "null"];
const CORRELATION_ID: i32 = 1;

fn main() {
    let topics: Vec<(String, Uuid)> = std::env::args().skip(1).map(|argument| topic(&argument)).collect();
    let mut lines = std::io::stdout().lock();
    for (api_key, version, variant, body) in golden_requests() {
        let Some(frame) = framed(api_key, version, &tamed(api_key, version, body)) else {
            continue;
        };
        for (what, hostile) in lies_in_frame(&frame) {
            print(&mut lines, api_key, version, &format!("{variant}:{what}"), &hostile);
        }
    }
    for version in ApiKey::Produce.versions() {
        for (topic, id) in &topics {
            for (what, records) in batch::honest_and_hostile() {
                let request = produce(topic, *id, version, records);
                let frame = framed(ApiKey::Produce, version, &request).unwrap();
                print(&mut lines, ApiKey::Produce, version, &format!("{topic}:{what}"), &frame);
            }
        }
    }
}

fn topic(argument: &str) -> (String, Uuid) {
    let (name, id) = argument.split_once('=').expect("TOPIC=ID");
    (name.to_owned(), id.parse().expect("an id as Kafka writes it"))
}

fn print(lines: &mut impl std::io::Write, api_key: ApiKey, version: i16, what: &str, frame: &[u8]) {
    let hex: String = frame.iter().map(|byte| format!("{byte:02x}")).collect();
    writeln!(lines, "{} {version} {what} {hex}", api_key.code()).unwrap();
}

fn golden_requests() -> impl Iterator<Item = (ApiKey, i16, &'static str, Bytes)> {
    GOLDEN.lines().filter_map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let name = words[1].strip_suffix("Request")?;
        let api_key = *ApiKey::ALL.iter().find(|api_key| api_key.name() == name)?;
        let variant = *VARIANTS.iter().find(|variant| **variant == words[3])?;
        Some((api_key, words[2].parse().unwrap(), variant, unhex(words[4])?))
    })
}

/// `None` where Kafka refuses to write the message. A dash is a message of no bytes.
fn unhex(text: &str) -> Option<Bytes> {
    let text = if text == "-" { "" } else { text };
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}

/// The golden request with nothing in it that makes a node wait before it answers.
fn tamed(api_key: ApiKey, version: i16, body: Bytes) -> Request {
    let mut request = Request::decode(api_key, version, &mut Reader::new(body)).unwrap();
    match &mut request {
        Request::Fetch(fetch) => fetch.max_wait_ms = 0,
        Request::ShareFetch(fetch) => fetch.max_wait_ms = 0,
        _ => {}
    }
    request
}

/// The request with its header; `None` where this version cannot be written.
fn framed(api_key: ApiKey, version: i16, request: &Request) -> Option<Bytes> {
    let mut writer = Writer::new();
    header::encode_request_header(api_key, version, CORRELATION_ID, Some("hostile"), &mut writer).unwrap();
    request.encode(&mut writer, version).ok()?;
    Some(writer.into_bytes())
}

/// A request for partition 0 that wants an answer.
fn produce(topic: &str, id: Uuid, version: i16, records: Bytes) -> Request {
    let by_name = version < 13;
    let partition = PartitionProduceData {
        index: 0,
        records: Some(records),
        ..PartitionProduceData::default()
    };
    let data = TopicProduceData {
        name: if by_name { topic.into() } else { Default::default() },
        topic_id: if by_name { Uuid::default() } else { id },
        partition_data: vec![partition],
        ..TopicProduceData::default()
    };
    Request::from(ProduceRequest {
        acks: -1,
        timeout_ms: 30_000,
        topic_data: vec![data],
        ..ProduceRequest::default()
    })
}

/// Each length of header and body, replaced by each lie.
fn lies_in_frame(frame: &Bytes) -> Vec<(String, Vec<u8>)> {
    let mut reader = Reader::traced(frame.clone());
    let (api_key, header) = header::decode_request_header(&mut reader).unwrap();
    Request::decode(api_key, header.request_api_version, &mut reader).unwrap();
    let mut found = Vec::new();
    for field in reader.trace() {
        let remaining = frame.len() - field.position - field.width;
        for (name, lie) in lies(remaining) {
            let hostile = [
                &frame[..field.position],
                &written(field, lie),
                &frame[field.position + field.width..],
            ];
            let what = format!("{}@{}={name}", field.field.replace(' ', "_"), field.position);
            found.push((what, hostile.concat()));
        }
    }
    found
}

/// What a length says instead of the truth, where `remaining` bytes follow it.
pub(crate) fn lies(remaining: usize) -> [(&'static str, i32); 3] {
    let beyond = i32::try_from(remaining).unwrap() + 1;
    [("-1", -1), ("2^31-1", i32::MAX), ("remaining+1", beyond)]
}

/// An int16 says the most that it can, and a varint without a sign has 2³² - 1 for -1.
fn written(field: &LengthField, lie: i32) -> Bytes {
    let mut writer = Writer::new();
    match field.encoding {
        LengthEncoding::Int16 => writer.i16(i16::try_from(lie).unwrap_or(i16::MAX)),
        LengthEncoding::Int32 => writer.i32(lie),
        LengthEncoding::CompactVarint => writer.unsigned_varint(lie.cast_unsigned().wrapping_add(1)),
        LengthEncoding::Varint => writer.unsigned_varint(lie.cast_unsigned()),
    }
    writer.into_bytes()
}
