//! Records out of batches: a walk that copies nothing, a streaming reader, and an iterator of owned records.
//!
//! A record is `length, attributes, timestamp delta, offset delta, key, value, headers`; every number but the attributes
//! byte is a zigzag varint, every text or blob has its length before it, -1 meaning null (not allowed for header keys).

use std::borrow::Cow;

use bytes::Bytes;

use super::varint::{VARINT_BYTES_MAX, take_varint, take_varlong};
use super::{Batch, BatchError, BatchHeader, Compression, DecompressionLimit, Decompressor, TimestampType, decompress};
use crate::{Offset, Timestamp};

/// The least a record can take: its length, attributes, two deltas, two null lengths, no headers.
const RECORD_BYTES_MIN: usize = 7;
/// What the streaming reader asks of a codec at a time.
const FILL_BYTES: usize = 16 << 10;

/// One record, borrowed from the bytes of its batch (or from the buffer of a [`RecordReader`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordView<'a> {
    pub offset: Offset,
    /// Negative only where the producer gave none (-1).
    pub timestamp: Timestamp,
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
    pub headers: Headers<'a>,
}

/// The headers of one record, already checked, parsed again while iterating.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Headers<'a> {
    count: i32,
    bytes: &'a [u8],
}

/// One header of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeaderView<'a> {
    /// UTF-8 by agreement; nobody on the way checks it.
    pub key: &'a [u8],
    pub value: Option<&'a [u8]>,
}

impl HeaderView<'_> {
    #[must_use]
    pub fn key_text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.key)
    }
}

impl Headers<'_> {
    pub const EMPTY: Headers<'static> = Headers { count: 0, bytes: &[] };

    #[must_use]
    pub fn len(&self) -> usize {
        usize::try_from(self.count).unwrap_or(0)
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl<'a> Iterator for Headers<'a> {
    type Item = HeaderView<'a>;

    fn next(&mut self) -> Option<HeaderView<'a>> {
        if self.count == 0 {
            return None;
        }
        self.count -= 1;
        take_header(&mut self.bytes).ok()
    }
}

/// One record that owns (shares) its bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    pub offset: Offset,
    /// Negative only where the producer gave none (-1).
    pub timestamp: Timestamp,
    pub key: Option<Bytes>,
    pub value: Option<Bytes>,
    pub headers: Vec<RecordHeader>,
}

/// One header of a [`Record`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordHeader {
    pub key: Bytes,
    pub value: Option<Bytes>,
}

/// A record as it stands, before the batch's offset and timestamp are added.
struct RawRecord<'a> {
    timestamp_delta: i64,
    offset_delta: i32,
    key: Option<&'a [u8]>,
    value: Option<&'a [u8]>,
    headers: Headers<'a>,
}

impl<'a> RawRecord<'a> {
    /// Parses the body of one record: everything after its length, and nothing but it.
    #[inline]
    fn parse(mut body: &'a [u8]) -> Result<RawRecord<'a>, &'static str> {
        let (_attributes, rest) = body.split_first().ok_or("no attributes")?;
        body = rest;
        let timestamp_delta = take_varlong(&mut body).ok_or("bad timestamp delta")?;
        let offset_delta = take_varint(&mut body).ok_or("bad offset delta")?;
        let key = take_nullable(&mut body).ok_or("bad key length")?;
        let value = take_nullable(&mut body).ok_or("bad value length")?;
        let count = take_varint(&mut body).ok_or("bad header count")?;
        if count < 0 {
            return Err("negative header count");
        }
        let headers = Headers { count, bytes: body };
        for _ in 0..count {
            take_header(&mut body)?;
        }
        if !body.is_empty() {
            return Err("bytes follow its last field");
        }
        Ok(RawRecord {
            timestamp_delta,
            offset_delta,
            key,
            value,
            headers,
        })
    }

    fn timestamp(&self, header: &BatchHeader) -> i64 {
        match header.attributes.timestamp_type() {
            TimestampType::CreateTime => header.base_timestamp.wrapping_add(self.timestamp_delta),
            TimestampType::LogAppendTime => header.max_timestamp,
        }
    }

    fn view(&self, header: &BatchHeader, index: i32) -> Result<RecordView<'a>, BatchError> {
        if self.offset_delta < 0 || self.offset_delta > header.last_offset_delta {
            return Err(BatchError::Record {
                index,
                what: "offset delta outside of the batch",
            });
        }
        Ok(RecordView {
            offset: header.first_offset().plus(i64::from(self.offset_delta)),
            timestamp: Timestamp::from_millis(self.timestamp(header)),
            key: self.key,
            value: self.value,
            headers: self.headers,
        })
    }
}

#[inline]
fn take_nullable<'a>(input: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    let length = take_varint(input)?;
    if length < 0 {
        return (length == -1).then_some(None);
    }
    let (field, rest) = input.split_at_checked(usize::try_from(length).ok()?)?;
    *input = rest;
    Some(Some(field))
}

fn take_header<'a>(input: &mut &'a [u8]) -> Result<HeaderView<'a>, &'static str> {
    let key = take_nullable(input).flatten().ok_or("bad header key")?;
    let value = take_nullable(input).ok_or("bad header value")?;
    Ok(HeaderView { key, value })
}

/// Takes one record off uncompressed `input`.
#[inline]
fn take_record<'a>(input: &mut &'a [u8], index: i32) -> Result<RawRecord<'a>, BatchError> {
    let malformed = |what| BatchError::Record { index, what };
    let length = take_varint(input).ok_or(malformed("bad length"))?;
    let length = usize::try_from(length).map_err(|_| malformed("negative length"))?;
    let (body, rest) = input
        .split_at_checked(length)
        .ok_or(malformed("longer than its batch"))?;
    *input = rest;
    RawRecord::parse(body).map_err(malformed)
}

/// What a walk over a batch found. The greatest timestamp is that of the records, or of the batch if the log stamped it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Walk {
    /// -1 if no record has a timestamp.
    pub max_timestamp: i64,
    /// -1 if no record has a timestamp.
    pub min_timestamp: i64,
    /// Offset delta of the first record with the greatest timestamp.
    pub max_timestamp_delta: i32,
    pub keyless_count: i32,
}

impl Walk {
    const EMPTY: Walk = Walk {
        max_timestamp: -1,
        min_timestamp: -1,
        max_timestamp_delta: 0,
        keyless_count: 0,
    };

    #[inline]
    fn note(&mut self, index: i32, timestamp: i64, keyless: bool) {
        if timestamp > self.max_timestamp {
            self.max_timestamp = timestamp;
            self.max_timestamp_delta = index;
        }
        if index == 0 || timestamp < self.min_timestamp {
            self.min_timestamp = timestamp;
        }
        self.keyless_count += i32::from(keyless);
    }
}

/// Checks that a producer's batch is whole: as many records as the header says, their lengths adding up to its size and
/// their offset deltas running 0, 1, … n-1. Compressed batches are decompressed piecewise, at most one record at a time
/// in memory.
///
/// # Errors
/// The first fault found.
pub fn walk(batch: &Batch<'_>, limit: DecompressionLimit) -> Result<Walk, BatchError> {
    let header = &batch.header;
    let compression = header.attributes.compression()?;
    let mut walk = Walk::EMPTY;
    let mut check = |raw: &RawRecord<'_>, index: i32| {
        if raw.offset_delta != index {
            return Err(BatchError::Record {
                index,
                what: "offset delta is not its index",
            });
        }
        walk.note(index, raw.timestamp(header), raw.key.is_none());
        Ok(())
    };
    if compression == Compression::None {
        let mut rest = batch.payload();
        for index in 0..header.record_count {
            check(&take_record(&mut rest, index)?, index)?;
        }
        if !rest.is_empty() {
            return Err(BatchError::TrailingBytes(header.record_count));
        }
    } else {
        let mut reader = RecordReader::new(*batch, limit)?;
        while let Some((raw, index)) = reader.next_raw()? {
            check(&raw, index)?;
        }
    }
    if header.last_offset_delta != header.record_count - 1 {
        return Err(BatchError::Record {
            index: header.record_count,
            what: "record count is not last offset delta + 1",
        });
    }
    Ok(walk)
}

/// How many indexes [`keyless_records`] lists at most: an answer with more would help nobody.
pub const KEYLESS_LISTED_MAX: usize = 1000;

/// The indexes of the records without a key, for the answer to one who sent them to a compacted topic (KIP-467).
///
/// # Errors
/// As [`walk`].
pub fn keyless_records(batch: &Batch<'_>, limit: DecompressionLimit) -> Result<Vec<i32>, BatchError> {
    let mut keyless = Vec::new();
    let mut reader = RecordReader::new(*batch, limit)?;
    while let Some((raw, index)) = reader.next_raw()? {
        if raw.key.is_none() && keyless.len() < KEYLESS_LISTED_MAX {
            keyless.push(index);
        }
    }
    Ok(keyless)
}

/// Reads one batch record by record, holding one record (and one codec window) in memory.
pub struct RecordReader<'a> {
    header: BatchHeader,
    next_index: i32,
    source: Source<'a>,
}

enum Source<'a> {
    Plain(&'a [u8]),
    Compressed {
        decompressor: Box<Decompressor<'a>>,
        buffer: Vec<u8>,
        start: usize,
        limit: usize,
    },
}

impl<'a> RecordReader<'a> {
    /// # Errors
    /// If the compression is not known or cannot be set up.
    pub fn new(batch: Batch<'a>, limit: DecompressionLimit) -> Result<Self, BatchError> {
        let header = batch.header;
        let source = match header.attributes.compression()? {
            Compression::None => Source::Plain(batch.payload()),
            // A batch that the cleaner emptied has no compressed stream at all.
            _ if header.record_count == 0 && batch.payload().is_empty() => Source::Plain(&[]),
            compression => Source::Compressed {
                decompressor: Box::new(Decompressor::new(compression, batch.payload(), limit)?),
                buffer: Vec::new(),
                start: 0,
                limit: limit.get(),
            },
        };
        Ok(RecordReader {
            header,
            next_index: 0,
            source,
        })
    }

    /// The next record; `None` after the last, when also nothing else follows.
    ///
    /// # Errors
    /// The first fault found. The reader is of no use after it.
    pub fn next_record(&mut self) -> Result<Option<RecordView<'_>>, BatchError> {
        let header = self.header;
        match self.next_raw()? {
            Some((raw, index)) => raw.view(&header, index).map(Some),
            None => Ok(None),
        }
    }

    fn next_raw(&mut self) -> Result<Option<(RawRecord<'_>, i32)>, BatchError> {
        let index = self.next_index;
        let at_end = index >= self.header.record_count;
        match &mut self.source {
            Source::Plain(rest) if at_end => {
                if rest.is_empty() {
                    Ok(None)
                } else {
                    Err(BatchError::TrailingBytes(self.header.record_count))
                }
            }
            Source::Plain(rest) => {
                self.next_index += 1;
                Ok(Some((take_record(rest, index)?, index)))
            }
            Source::Compressed {
                decompressor,
                buffer,
                start,
                ..
            } if at_end => {
                if *start == buffer.len() && fill(decompressor, buffer, start)? == 0 {
                    Ok(None)
                } else {
                    Err(BatchError::TrailingBytes(self.header.record_count))
                }
            }
            Source::Compressed {
                decompressor,
                buffer,
                start,
                limit,
            } => {
                self.next_index += 1;
                let length = fill_record(decompressor, buffer, start, *limit, index)?;
                let body = &buffer[*start..*start + length];
                *start += length;
                let raw = RawRecord::parse(body).map_err(|what| BatchError::Record { index, what })?;
                Ok(Some((raw, index)))
            }
        }
    }
}

/// Makes sure that a whole record stands at `start`, moves `start` past its length and returns that.
fn fill_record(
    decompressor: &mut Decompressor<'_>,
    buffer: &mut Vec<u8>,
    start: &mut usize,
    limit: usize,
    index: i32,
) -> Result<usize, BatchError> {
    let malformed = |what| BatchError::Record { index, what };
    let length = loop {
        let mut input = &buffer[*start..];
        let available = input.len();
        if let Some(length) = take_varint(&mut input) {
            *start += available - input.len();
            break length;
        }
        if available >= VARINT_BYTES_MAX || fill(decompressor, buffer, start)? == 0 {
            return Err(malformed("bad length"));
        }
    };
    let length = usize::try_from(length).map_err(|_| malformed("negative length"))?;
    if length > limit {
        return Err(BatchError::DecompressedTooLarge { limit });
    }
    while buffer.len() - *start < length {
        if fill(decompressor, buffer, start)? == 0 {
            return Err(malformed("longer than its batch"));
        }
    }
    Ok(length)
}

/// Drops what lies before `start` and reads some more behind the rest.
fn fill(decompressor: &mut Decompressor<'_>, buffer: &mut Vec<u8>, start: &mut usize) -> Result<usize, BatchError> {
    buffer.drain(..*start);
    *start = 0;
    let filled = buffer.len();
    buffer.resize(filled + FILL_BYTES, 0);
    let read = decompressor.read_some(&mut buffer[filled..]);
    buffer.truncate(filled + *read.as_ref().unwrap_or(&0));
    read
}

/// The records of `batch`, which holds exactly one batch or more (only the first is read). Uncompressed records share the
/// batch's bytes; compressed ones are decompressed at once, at most `limit` bytes, and share that.
///
/// # Errors
/// If the header is none, the batch is cut short, or its records cannot be decompressed. The checksum is not looked at.
pub fn records(batch: &Bytes, limit: DecompressionLimit) -> Result<Records, BatchError> {
    let (first, _) = Batch::split_first(batch)?;
    let header = first.header;
    let payload = batch.slice_ref(first.payload());
    let payload = match header.attributes.compression()? {
        Compression::None => payload,
        _ if header.record_count == 0 && payload.is_empty() => payload,
        compression => Bytes::from(decompress(compression, &payload, limit)?),
    };
    Ok(Records {
        header,
        payload,
        at: 0,
        next_index: 0,
    })
}

/// The iterator behind [`records`]; it ends after the first error.
#[derive(Clone, Debug)]
pub struct Records {
    header: BatchHeader,
    payload: Bytes,
    at: usize,
    next_index: i32,
}

impl Records {
    /// How many records can still come at most.
    #[must_use]
    pub fn remaining(&self) -> usize {
        let count = usize::try_from(self.header.record_count - self.next_index).unwrap_or(0);
        count.min((self.payload.len() - self.at) / RECORD_BYTES_MIN)
    }

    fn step(&mut self, index: i32) -> Result<Record, BatchError> {
        let mut rest = &self.payload[self.at..];
        let before = rest.len();
        let raw = take_record(&mut rest, index)?;
        self.at += before - rest.len();
        let view = raw.view(&self.header, index)?;
        let share = |part: &[u8]| self.payload.slice_ref(part);
        Ok(Record {
            offset: view.offset,
            timestamp: view.timestamp,
            key: view.key.map(share),
            value: view.value.map(share),
            headers: view
                .headers
                .map(|header| RecordHeader {
                    key: share(header.key),
                    value: header.value.map(share),
                })
                .collect(),
        })
    }
}

impl Iterator for Records {
    type Item = Result<Record, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        let count = self.header.record_count;
        if self.next_index > count {
            return None;
        }
        let index = self.next_index;
        self.next_index += 1;
        if index == count {
            return (self.at < self.payload.len()).then_some(Err(BatchError::TrailingBytes(count)));
        }
        let record = self.step(index);
        if record.is_err() {
            self.next_index = count.saturating_add(1);
            self.header.record_count = count.min(i32::MAX - 1);
        }
        Some(record)
    }
}

/// What a record of a control batch says; its key is a version and this number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(i16)]
pub enum ControlType {
    Abort = 0,
    Commit = 1,
    LeaderChange = 2,
    SnapshotHeader = 3,
    SnapshotFooter = 4,
    KRaftVersion = 5,
    KRaftVoters = 6,
}

impl ControlType {
    const ALL: [ControlType; 7] = [
        ControlType::Abort,
        ControlType::Commit,
        ControlType::LeaderChange,
        ControlType::SnapshotHeader,
        ControlType::SnapshotFooter,
        ControlType::KRaftVersion,
        ControlType::KRaftVoters,
    ];

    /// The key of a control record of this type: version 0, then the type.
    #[must_use]
    pub fn key(self) -> [u8; 4] {
        let [high, low] = (self as i16).to_be_bytes();
        [0, 0, high, low]
    }

    /// `None` for types of the future and for keys that are none.
    #[must_use]
    pub fn from_key(key: &[u8]) -> Option<Self> {
        let (version, rest) = key.split_first_chunk::<2>()?;
        let number = i16::from_be_bytes(*rest.first_chunk::<2>()?);
        if i16::from_be_bytes(*version) < 0 {
            return None;
        }
        Self::ALL.into_iter().find(|known| *known as i16 == number)
    }
}
