//! What a leader checks and changes of a produced batch before it goes to the log.
//!
//! The payload is not touched unless the topic wants another compression: base offset, leader epoch and (where it
//! differs) the greatest timestamp change in the header alone.

use std::borrow::Cow;

use model::record_batch::{
    Attributes, Batch, BatchBuilder, BatchError, BatchHeader, BatchOptions, BatchProducer, Compression, HEADER_BYTES,
    RecordReader, TimestampType, Walk, keyless_records, walk,
};
use model::{ErrorCode, Timestamp};

use super::Origin;
use crate::disk;
use crate::options::{CompressionPolicy, LogOptions};
use crate::producer_state::ProducerError;

/// How many records an error names at most.
const RECORDS_NAMED_MAX: usize = 1000;

/// Why a batch is not appended.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    #[error("the batch is damaged")]
    Corrupt(#[source] BatchError),
    #[error("batch of {size_bytes} bytes is larger than the {size_bytes_max} allowed")]
    TooLarge { size_bytes: usize, size_bytes_max: usize },
    #[error("{0}")]
    InvalidBatch(&'static str),
    #[error("{} of the records are invalid: {what}", .records.len())]
    InvalidRecords { what: &'static str, records: Vec<i32> },
    #[error("{} of the records have a timestamp outside of the allowed range", .records.len())]
    InvalidTimestamp { records: Vec<i32> },
    #[error("the producer's batch is refused")]
    Producer(#[from] ProducerError),
    #[error("offset {first} does not follow the log's end {log_end}")]
    OffsetsGoBack {
        first: model::Offset,
        log_end: model::Offset,
    },
    #[error("the offsets are used up")]
    OffsetsExhausted,
    #[error("the log's disk has failed")]
    Offline,
    #[error("the disk is full")]
    DiskFull,
    #[error("writing the log")]
    Io(#[source] std::io::Error),
}

impl AppendError {
    /// What a client is told.
    #[must_use]
    pub fn error_code(&self) -> ErrorCode {
        match self {
            AppendError::Corrupt(BatchError::Magic(_) | BatchError::BaseOffset(_)) => ErrorCode::InvalidRecord,
            AppendError::Corrupt(BatchError::LastOffsetDelta(_) | BatchError::RecordCount(_)) => {
                ErrorCode::InvalidRecord
            }
            AppendError::Corrupt(BatchError::OffsetOverflow) => ErrorCode::InvalidRecord,
            AppendError::Corrupt(BatchError::Record { .. } | BatchError::TrailingBytes(_)) => ErrorCode::InvalidRecord,
            AppendError::Corrupt(BatchError::DecompressedTooLarge { .. }) => ErrorCode::InvalidRecord,
            AppendError::Corrupt(_) => ErrorCode::CorruptMessage,
            AppendError::TooLarge { .. } => ErrorCode::MessageTooLarge,
            AppendError::InvalidBatch(_) | AppendError::InvalidRecords { .. } => ErrorCode::InvalidRecord,
            AppendError::InvalidTimestamp { .. } => ErrorCode::InvalidTimestamp,
            AppendError::Producer(ProducerError::Fenced { .. }) => ErrorCode::InvalidProducerEpoch,
            AppendError::Producer(ProducerError::OutOfOrder { .. }) => ErrorCode::OutOfOrderSequenceNumber,
            AppendError::OffsetsGoBack { .. } | AppendError::OffsetsExhausted => ErrorCode::UnknownServerError,
            AppendError::Offline | AppendError::DiskFull | AppendError::Io(_) => ErrorCode::KafkaStorageError,
        }
    }

    pub(super) fn from_write(error: std::io::Error) -> Self {
        if disk::is_full(&error) {
            AppendError::DiskFull
        } else {
            AppendError::Io(error)
        }
    }
}

impl From<BatchError> for AppendError {
    fn from(error: BatchError) -> Self {
        AppendError::Corrupt(error)
    }
}

/// A batch ready to be written but for its offset and epoch.
pub(super) struct Prepared<'a> {
    pub(super) header: BatchHeader,
    pub(super) payload: Cow<'a, [u8]>,
}

/// The one batch in `records`, its header and checksum checked: what every later step relies on.
pub(super) fn sound_batch<'a>(
    records: &'a [u8],
    options: &LogOptions,
    origin: Origin,
) -> Result<Batch<'a>, AppendError> {
    let (batch, rest) = Batch::split_first(records)?;
    let header = &batch.header;
    if !rest.is_empty() {
        return Err(AppendError::InvalidBatch("more than one batch for a partition"));
    }
    if origin == Origin::Client && header.base_offset != 0 {
        return Err(AppendError::InvalidBatch(
            "the base offset of a produced batch is not 0",
        ));
    }
    let size_bytes = batch.bytes().len();
    if size_bytes > options.max_message_bytes && origin != Origin::Quorum {
        return Err(AppendError::TooLarge {
            size_bytes,
            size_bytes_max: options.max_message_bytes,
        });
    }
    batch.check_crc()?;
    if header.record_count == 0 {
        return Err(AppendError::InvalidBatch("a produced batch has no records"));
    }
    if header.last_offset_delta != header.record_count - 1 {
        return Err(AppendError::InvalidBatch(
            "the record count is not the last offset delta plus 1",
        ));
    }
    if origin == Origin::Client {
        if header.attributes.is_control() {
            return Err(AppendError::InvalidBatch("clients do not write control batches"));
        }
        if header.producer_id().is_some() && (header.base_sequence().is_none() || header.producer_epoch().is_none()) {
            return Err(AppendError::InvalidBatch("a producer's batch has no sequence or epoch"));
        }
        if header.attributes.is_transactional() && header.producer_id().is_none() {
            return Err(AppendError::InvalidBatch("a transactional batch has no producer"));
        }
    }
    Ok(batch)
}

/// Applies the topic's rules to a sound batch.
pub(super) fn prepare<'a>(
    batch: &Batch<'a>,
    options: &LogOptions,
    origin: Origin,
    now: Timestamp,
) -> Result<Prepared<'a>, AppendError> {
    let header = batch.header;
    let compression = header.attributes.compression()?;
    if origin == Origin::Quorum {
        return Ok(Prepared {
            header,
            payload: Cow::Borrowed(batch.payload()),
        });
    }
    let target = match options.compression {
        CompressionPolicy::Fixed {
            compression: wanted,
            level,
        } if wanted != compression => Some((wanted, level)),
        _ => None,
    };
    // Some clients send no greatest timestamp; then only the records know it.
    let unstamped = header.max_timestamp < header.base_timestamp;
    let is_opened = compression == Compression::None
        || options.validate_records
        || options.compact
        || options.timestamp_before_max_ms != i64::MAX
        || target.is_some()
        || unstamped;
    let found = if is_opened {
        Some(walk(batch, options.decompression_limit)?)
    } else {
        None
    };
    if options.compact && !header.attributes.is_control() && found.is_some_and(|found| found.keyless_count > 0) {
        let records = keyless_records(batch, options.decompression_limit)?;
        return Err(AppendError::InvalidRecords {
            what: "a record of a compacted topic has no key",
            records,
        });
    }
    let header = match options.timestamp_type {
        TimestampType::LogAppendTime => header.with_max_timestamp(TimestampType::LogAppendTime, now.millis()),
        TimestampType::CreateTime => {
            check_timestamps(batch, found.as_ref(), options, now)?;
            let create_time = header.attributes.timestamp_type() == TimestampType::CreateTime;
            let max_timestamp = match &found {
                Some(found) if create_time => found.max_timestamp,
                _ => header.max_timestamp,
            };
            header.with_max_timestamp(TimestampType::CreateTime, max_timestamp)
        }
    };
    match target {
        Some((compression, level)) => recompress(batch, &header, compression, level, options),
        None => {
            let mut sealed = header;
            if header != batch.header {
                sealed.seal(batch.payload());
            }
            Ok(Prepared {
                header: sealed,
                payload: Cow::Borrowed(batch.payload()),
            })
        }
    }
}

/// `message.timestamp.before.max.ms` and `.after.max.ms`: how far from the broker's clock a producer's times may lie.
/// Records without a timestamp pass.
fn check_timestamps(
    batch: &Batch<'_>,
    found: Option<&Walk>,
    options: &LogOptions,
    now: Timestamp,
) -> Result<(), AppendError> {
    let earliest = now.millis().saturating_sub(options.timestamp_before_max_ms);
    let latest = now.millis().saturating_add(options.timestamp_after_max_ms);
    let (min, max) = match found {
        Some(found) => (found.min_timestamp, found.max_timestamp),
        None => (batch.header.base_timestamp, batch.header.max_timestamp),
    };
    let is_outside = |timestamp: i64| timestamp != -1 && (timestamp < earliest || timestamp > latest);
    if !is_outside(max) && (min >= earliest || options.timestamp_before_max_ms == i64::MAX) {
        return Ok(());
    }
    let mut records = Vec::new();
    let mut reader = RecordReader::new(*batch, options.decompression_limit)?;
    let mut index = 0;
    while let Some(record) = reader.next_record()? {
        if is_outside(record.timestamp.millis()) && records.len() < RECORDS_NAMED_MAX {
            records.push(index);
        }
        index += 1;
    }
    if records.is_empty() {
        Ok(())
    } else {
        Err(AppendError::InvalidTimestamp { records })
    }
}

fn recompress<'a>(
    batch: &Batch<'_>,
    header: &BatchHeader,
    compression: Compression,
    level: Option<i32>,
    options: &LogOptions,
) -> Result<Prepared<'a>, AppendError> {
    let attributes: Attributes = header.attributes;
    let log_append_time = match attributes.timestamp_type() {
        TimestampType::CreateTime => None,
        TimestampType::LogAppendTime => Some(Timestamp::from_millis(header.max_timestamp)),
    };
    let producer = header.producer_id().zip(header.producer_epoch());
    let mut builder = BatchBuilder::new(BatchOptions {
        compression,
        compression_level: level,
        log_append_time,
        producer: producer.map(|(id, epoch)| BatchProducer {
            id,
            epoch,
            base_sequence: header.base_sequence(),
        }),
        transactional: attributes.is_transactional(),
        control: attributes.is_control(),
        ..BatchOptions::default()
    });
    let mut reader = RecordReader::new(*batch, options.decompression_limit)?;
    let mut offset_delta = 0;
    while let Some(record) = reader.next_record()? {
        let headers: Vec<_> = record.headers.map(|header| (header.key, header.value)).collect();
        builder.append_at(
            offset_delta,
            record.timestamp,
            record.key,
            record.value,
            headers.into_iter(),
        )?;
        offset_delta += 1;
    }
    let bytes = builder.build()?;
    if bytes.len() > options.max_message_bytes {
        return Err(AppendError::TooLarge {
            size_bytes: bytes.len(),
            size_bytes_max: options.max_message_bytes,
        });
    }
    let header = BatchHeader::parse(&bytes)?;
    Ok(Prepared {
        header,
        payload: Cow::Owned(bytes[HEADER_BYTES..].to_vec()),
    })
}
