//! Batches whose lengths and counts lie, in the header and in the records, uncompressed and under each codec.
//!
//! - All but the one field that lies is as a client would write it, checksum included.
//! - Records are written here and not by the builder, which could not write a lie.

use bytes::Bytes;
use model::record_batch::{Attributes, BatchHeader, Compression, compress};

use crate::lies;

const CODECS: [Compression; 5] = [
    Compression::None,
    Compression::Gzip,
    Compression::Snappy,
    Compression::Lz4,
    Compression::Zstd,
];
const RECORDS: i32 = 2;
const TIMESTAMP: i64 = 1_700_000_000_000;

/// Where the batch length stands; the checksum does not cover it.
const BATCH_LENGTH_AT: usize = 8;
/// What the batch length does not count.
const PREFIX_BYTES: i32 = 12;

/// Records as they are written, and where their lengths and counts are.
#[derive(Default)]
struct Written {
    bytes: Vec<u8>,
    fields: Vec<(&'static str, usize)>,
}

/// What each batch is, and its bytes.
pub(crate) fn honest_and_hostile() -> Vec<(String, Bytes)> {
    let mut found = Vec::new();
    for codec in CODECS {
        let honest = records(None);
        found.push((format!("{codec:?}:honest"), sealed(codec, &honest.bytes, |_| {})));
        for (field, (name, position)) in honest.fields.iter().enumerate() {
            for (lie_name, lie) in lies(honest.bytes.len() - position) {
                let hostile = records(Some((field, lie)));
                let what = format!("{codec:?}:{name}@{position}={lie_name}");
                found.push((what, sealed(codec, &hostile.bytes, |_| {})));
            }
        }
        header_lies(codec, &honest.bytes, &mut found);
    }
    found
}

fn header_lies(codec: Compression, records: &[u8], found: &mut Vec<(String, Bytes)>) {
    let honest = sealed(codec, records, |_| {});
    for (lie_name, lie) in lies(records.len()) {
        let count = sealed(codec, records, |header| header.record_count = lie);
        found.push((format!("{codec:?}:record_count={lie_name}"), count));
        let delta = sealed(codec, records, |header| header.last_offset_delta = lie);
        found.push((format!("{codec:?}:last_offset_delta={lie_name}"), delta));
        let both = sealed(codec, records, |header| {
            header.record_count = lie;
            header.last_offset_delta = lie.saturating_sub(1);
        });
        found.push((format!("{codec:?}:record_count_and_delta={lie_name}"), both));
    }
    for (lie_name, lie) in lies(honest.len() - BATCH_LENGTH_AT - 4) {
        let mut bytes = honest.to_vec();
        bytes[BATCH_LENGTH_AT..BATCH_LENGTH_AT + 4].copy_from_slice(&lie.to_be_bytes());
        found.push((format!("{codec:?}:batch_length={lie_name}"), bytes.into()));
    }
}

/// A whole batch around the records, its header changed by `lie` before the checksum is taken.
fn sealed(codec: Compression, records: &[u8], lie: impl FnOnce(&mut BatchHeader)) -> Bytes {
    let payload = match codec {
        Compression::None => records.to_vec(),
        codec => compress(codec, None, records).expect("the default level"),
    };
    let after_prefix = model::record_batch::HEADER_BYTES + payload.len();
    let mut header = BatchHeader {
        base_offset: 0,
        batch_length: i32::try_from(after_prefix).expect("a small batch") - PREFIX_BYTES,
        partition_leader_epoch: -1,
        crc: 0,
        attributes: Attributes::from_bits(codec.code().into()),
        last_offset_delta: RECORDS - 1,
        base_timestamp: TIMESTAMP,
        max_timestamp: TIMESTAMP,
        producer_id: -1,
        producer_epoch: -1,
        base_sequence: -1,
        record_count: RECORDS,
    };
    lie(&mut header);
    header.seal(&payload);
    [&header.to_bytes()[..], &payload].concat().into()
}

/// The records, with the length of index `lie.0` saying `lie.1`. A record's own length is right for what it holds then,
/// unless it is the one that lies.
fn records(lie: Option<(usize, i32)>) -> Written {
    let mut written = Written::default();
    for offset_delta in 0..RECORDS {
        let own = written.fields.len();
        let mut body = Written::default();
        body.bytes.push(0);
        put_varint(&mut body.bytes, 0);
        put_varint(&mut body.bytes, offset_delta);
        let length = |body: &mut Written, name, honest| {
            let field = own + 1 + body.fields.len();
            body.fields.push((name, body.bytes.len()));
            put_varint(&mut body.bytes, told(lie, field, honest));
        };
        length(&mut body, "key", 3);
        body.bytes.extend(b"key");
        length(&mut body, "value", 5);
        body.bytes.extend(b"value");
        length(&mut body, "headers", 1);
        length(&mut body, "header_key", 1);
        body.bytes.extend(b"h");
        length(&mut body, "header_value", 2);
        body.bytes.extend(b"hv");
        written.fields.push(("record", written.bytes.len()));
        let honest = i32::try_from(body.bytes.len()).expect("a small record");
        put_varint(&mut written.bytes, told(lie, own, honest));
        let start = written.bytes.len();
        written
            .fields
            .extend(body.fields.iter().map(|(name, at)| (*name, start + at)));
        written.bytes.extend(body.bytes);
    }
    written
}

fn told(lie: Option<(usize, i32)>, field: usize, honest: i32) -> i32 {
    match lie {
        Some((lying, lie)) if lying == field => lie,
        _ => honest,
    }
}

/// Zigzag, seven bits a byte, as in records.
fn put_varint(bytes: &mut Vec<u8>, value: i32) {
    let mut rest = ((value << 1) ^ (value >> 31)).cast_unsigned();
    while rest >= 0x80 {
        bytes.push(rest.to_le_bytes()[0] | 0x80);
        rest >>= 7;
    }
    bytes.push(rest.to_le_bytes()[0]);
}
