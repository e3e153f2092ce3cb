//! Writes batches as Kafka's clients and broker do.

use bytes::Bytes;

use super::header::{HEADER_BYTES, seal};
use super::varint::{put_varint, put_varlong, varlong_bytes};
use super::{Attributes, BatchError, BatchHeader, Compression, ControlType, TimestampType, compress};
use crate::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, Timestamp};

/// The idempotent or transactional producer of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BatchProducer {
    pub id: ProducerId,
    pub epoch: ProducerEpoch,
    /// `None` for transaction markers, which have no place in the producer's sequence.
    pub base_sequence: Option<Sequence>,
}

/// Everything of a batch but its records.
#[derive(Clone, Debug, Default)]
pub struct BatchOptions {
    pub base_offset: Offset,
    pub partition_leader_epoch: Option<LeaderEpoch>,
    pub compression: Compression,
    /// The codec's own scale; `None` for its default.
    pub compression_level: Option<i32>,
    /// Set: all records count as of this time, and their own timestamps are not looked at by readers.
    pub log_append_time: Option<Timestamp>,
    pub producer: Option<BatchProducer>,
    pub transactional: bool,
    pub control: bool,
    pub delete_horizon: Option<Timestamp>,
}

/// Collects records, then becomes the bytes of one batch.
#[derive(Clone, Debug)]
pub struct BatchBuilder {
    options: BatchOptions,
    /// Room for the header, and behind it the records uncompressed.
    bytes: Vec<u8>,
    base_timestamp: Option<i64>,
    max_timestamp: i64,
    record_count: i32,
    last_offset_delta: Option<i32>,
    /// Offsets that the batch covers at least, for those records behind its last that were taken out.
    covered_offset_delta: i32,
}

impl BatchBuilder {
    #[must_use]
    pub fn new(options: BatchOptions) -> Self {
        let base_timestamp = options.delete_horizon.map(Timestamp::millis);
        BatchBuilder {
            options,
            bytes: vec![0; HEADER_BYTES],
            base_timestamp,
            max_timestamp: -1,
            record_count: 0,
            last_offset_delta: None,
            covered_offset_delta: 0,
        }
    }

    /// Lets the batch reach to this distance from its base offset whatever its last record is: so the cleaner keeps a
    /// producer's last sequence.
    pub fn cover(&mut self, last_offset_delta: i32) {
        self.covered_offset_delta = self.covered_offset_delta.max(last_offset_delta);
    }

    /// Adds a record at the offset after the last one's.
    ///
    /// # Errors
    /// [`BatchError::Unbuildable`] if the record or the batch passes 2 GiB.
    pub fn append(
        &mut self,
        timestamp: Timestamp,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[(&str, Option<&[u8]>)],
    ) -> Result<(), BatchError> {
        let offset_delta = self.last_offset_delta.map_or(Some(0), |last| last.checked_add(1));
        let offset_delta = offset_delta.ok_or(BatchError::Unbuildable("too many records"))?;
        self.append_at(
            offset_delta,
            timestamp,
            key,
            value,
            headers.iter().map(|(key, value)| (key.as_bytes(), *value)),
        )
    }

    /// Adds a record at a given distance from the base offset, so that gaps can stay where the cleaner took records out.
    ///
    /// # Errors
    /// As [`BatchBuilder::append`], and if `offset_delta` is not above the last one.
    pub fn append_at<'h>(
        &mut self,
        offset_delta: i32,
        timestamp: Timestamp,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: impl ExactSizeIterator<Item = (&'h [u8], Option<&'h [u8]>)> + Clone,
    ) -> Result<(), BatchError> {
        if offset_delta < 0 || self.last_offset_delta.is_some_and(|last| offset_delta <= last) {
            return Err(BatchError::Unbuildable("offset delta is not above the last"));
        }
        let timestamp = timestamp.millis();
        let base = *self.base_timestamp.get_or_insert(timestamp);
        let timestamp_delta = timestamp.wrapping_sub(base);
        let header_count = i32::try_from(headers.len()).map_err(|_| BatchError::Unbuildable("too many headers"))?;
        let body_bytes = 1
            + varlong_bytes(timestamp_delta)
            + varlong_bytes(i64::from(offset_delta))
            + field_bytes(key)?
            + field_bytes(value)?
            + varlong_bytes(i64::from(header_count))
            + headers
                .clone()
                .map(|(key, value)| Ok(field_bytes(Some(key))? + field_bytes(value)?))
                .sum::<Result<usize, BatchError>>()?;
        let length = i32::try_from(body_bytes).map_err(|_| TOO_LARGE)?;
        if self.bytes.len() + body_bytes > BATCH_BYTES_MAX {
            return Err(TOO_LARGE);
        }
        put_varint(&mut self.bytes, length);
        self.bytes.push(0);
        put_varlong(&mut self.bytes, timestamp_delta);
        put_varint(&mut self.bytes, offset_delta);
        put_field(&mut self.bytes, key);
        put_field(&mut self.bytes, value);
        put_varint(&mut self.bytes, header_count);
        for (key, value) in headers {
            put_field(&mut self.bytes, Some(key));
            put_field(&mut self.bytes, value);
        }
        self.max_timestamp = self.max_timestamp.max(timestamp);
        self.record_count += 1;
        self.last_offset_delta = Some(offset_delta);
        Ok(())
    }

    /// Adds a control record; the batch must have been begun with `control`.
    ///
    /// # Errors
    /// As [`BatchBuilder::append`].
    pub fn append_control(
        &mut self,
        control: ControlType,
        timestamp: Timestamp,
        value: &[u8],
    ) -> Result<(), BatchError> {
        debug_assert!(self.options.control, "control records belong in control batches");
        self.append(timestamp, Some(&control.key()), Some(value), &[])
    }

    #[must_use]
    pub fn record_count(&self) -> i32 {
        self.record_count
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.record_count == 0
    }

    /// The size the batch would have now without compression.
    #[must_use]
    pub fn uncompressed_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The sealed batch. Without records it is an empty batch, as the cleaner leaves them to keep a producer's sequence.
    ///
    /// # Errors
    /// If the batch passes 2 GiB or 2^63 - 1 offsets, or its compression level is out of range.
    pub fn build(self) -> Result<Bytes, BatchError> {
        let options = &self.options;
        let mut bytes = self.bytes;
        if options.compression != Compression::None && self.record_count > 0 {
            let compressed = compress(options.compression, options.compression_level, &bytes[HEADER_BYTES..])?;
            bytes.truncate(HEADER_BYTES);
            bytes.extend_from_slice(&compressed);
        }
        let timestamp_type = match options.log_append_time {
            Some(_) => TimestampType::LogAppendTime,
            None => TimestampType::CreateTime,
        };
        let header = BatchHeader {
            base_offset: options.base_offset.get(),
            batch_length: 0,
            partition_leader_epoch: options.partition_leader_epoch.map_or(-1, LeaderEpoch::get),
            crc: 0,
            attributes: Attributes::default()
                .with_compression(options.compression)
                .with_timestamp_type(timestamp_type)
                .with_flags(options.transactional, options.control, options.delete_horizon.is_some()),
            last_offset_delta: self.last_offset_delta.unwrap_or(0).max(self.covered_offset_delta),
            base_timestamp: self.base_timestamp.unwrap_or(-1),
            max_timestamp: options.log_append_time.map_or(self.max_timestamp, Timestamp::millis),
            producer_id: options.producer.map_or(-1, |producer| producer.id.get()),
            producer_epoch: options.producer.map_or(-1, |producer| producer.epoch.get()),
            base_sequence: options
                .producer
                .and_then(|producer| producer.base_sequence)
                .map_or(-1, Sequence::get),
            record_count: self.record_count,
        };
        seal(header, &mut bytes)?;
        BatchHeader::parse(&bytes)?;
        Ok(Bytes::from(bytes))
    }
}

const TOO_LARGE: BatchError = BatchError::Unbuildable("the batch would pass 2 GiB");
const BATCH_BYTES_MAX: usize = i32::MAX as usize - 16;

fn field_bytes(field: Option<&[u8]>) -> Result<usize, BatchError> {
    match field {
        None => Ok(1),
        Some(field) => {
            let length = i32::try_from(field.len()).map_err(|_| TOO_LARGE)?;
            Ok(varlong_bytes(i64::from(length)) + field.len())
        }
    }
}

fn put_field(output: &mut Vec<u8>, field: Option<&[u8]>) {
    match field {
        None => put_varint(output, -1),
        Some(field) => {
            put_varint(output, i32::try_from(field.len()).expect("its size was taken before"));
            output.extend_from_slice(field);
        }
    }
}
