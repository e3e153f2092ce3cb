//! The 61 bytes before the records: read, checked, and patched in place.

use super::{BatchError, Compression};
use crate::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, Timestamp};

/// The size of a batch without records.
pub const HEADER_BYTES: usize = 61;
/// Base offset and batch length: what stands before the bytes that the batch length counts.
pub const LENGTH_PREFIX_BYTES: usize = 12;
/// The only format version that Kafka 4 takes.
pub const MAGIC: i8 = 2;
/// Where the base offset stands, from the batch's start.
pub const BASE_OFFSET_AT: usize = 0;
/// The first byte that the checksum covers.
pub const CHECKSUMMED_FROM: usize = 21;

const LEADER_EPOCH_AT: usize = 12;
const CRC_AT: usize = 17;
const ATTRIBUTES_AT: usize = 21;
const BASE_TIMESTAMP_AT: usize = 27;
const MAX_TIMESTAMP_AT: usize = 35;

/// Who set the timestamps of a batch's records.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TimestampType {
    /// The producer; each record has its own.
    #[default]
    CreateTime,
    /// The leader at append; the batch's max timestamp counts for every record.
    LogAppendTime,
}

/// The flags of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Attributes(i16);

impl Attributes {
    const COMPRESSION_MASK: i16 = 0x07;
    const LOG_APPEND_TIME: i16 = 0x08;
    const TRANSACTIONAL: i16 = 0x10;
    const CONTROL: i16 = 0x20;
    const DELETE_HORIZON: i16 = 0x40;

    #[must_use]
    pub const fn from_bits(bits: i16) -> Self {
        Attributes(bits)
    }

    #[must_use]
    pub const fn bits(self) -> i16 {
        self.0
    }

    /// # Errors
    /// [`BatchError::UnknownCompression`] for codes 5 to 7.
    pub fn compression(self) -> Result<Compression, BatchError> {
        Compression::from_code((self.0 & Self::COMPRESSION_MASK).to_le_bytes()[0])
    }

    #[must_use]
    pub const fn timestamp_type(self) -> TimestampType {
        if self.0 & Self::LOG_APPEND_TIME == 0 {
            TimestampType::CreateTime
        } else {
            TimestampType::LogAppendTime
        }
    }

    #[must_use]
    pub const fn is_transactional(self) -> bool {
        self.0 & Self::TRANSACTIONAL != 0
    }

    #[must_use]
    pub const fn is_control(self) -> bool {
        self.0 & Self::CONTROL != 0
    }

    /// Whether the base timestamp is the time from which the cleaner may drop tombstones (KIP-534).
    #[must_use]
    pub const fn has_delete_horizon(self) -> bool {
        self.0 & Self::DELETE_HORIZON != 0
    }

    const fn of_empty_batch(self) -> Self {
        Attributes(self.0 & !(Self::COMPRESSION_MASK | Self::DELETE_HORIZON))
    }

    #[must_use]
    pub(super) const fn with_compression(self, compression: Compression) -> Self {
        Attributes(self.0 & !Self::COMPRESSION_MASK | compression.code() as i16)
    }

    #[must_use]
    pub(super) const fn with_timestamp_type(self, timestamp_type: TimestampType) -> Self {
        match timestamp_type {
            TimestampType::CreateTime => Attributes(self.0 & !Self::LOG_APPEND_TIME),
            TimestampType::LogAppendTime => Attributes(self.0 | Self::LOG_APPEND_TIME),
        }
    }

    #[must_use]
    pub(super) const fn with_flags(self, transactional: bool, control: bool, delete_horizon: bool) -> Self {
        let mut bits = self.0;
        if transactional {
            bits |= Self::TRANSACTIONAL;
        }
        if control {
            bits |= Self::CONTROL;
        }
        if delete_horizon {
            bits |= Self::DELETE_HORIZON;
        }
        Attributes(bits)
    }
}

/// The header's fields as they stand. [`BatchHeader::parse`] has checked that offsets and counts are in range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BatchHeader {
    pub base_offset: i64,
    /// Bytes from the partition leader epoch on; [`BatchHeader::size_bytes`] is the whole batch.
    pub batch_length: i32,
    /// -1 where no leader has stamped it.
    pub partition_leader_epoch: i32,
    pub crc: u32,
    pub attributes: Attributes,
    pub last_offset_delta: i32,
    pub base_timestamp: i64,
    pub max_timestamp: i64,
    /// -1 without idempotence, and then epoch and sequence are -1 too.
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub base_sequence: i32,
    pub record_count: i32,
}

impl BatchHeader {
    /// Reads the header at the front of `bytes`; the records need not be there.
    ///
    /// # Errors
    /// If fewer than [`HEADER_BYTES`] are there, the format is not 2, or length, offsets or count are out of range.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<BatchHeader, BatchError> {
        let Some(bytes) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Err(BatchError::Truncated {
                needed: HEADER_BYTES,
                available: bytes.len(),
            });
        };
        let magic = bytes[16].cast_signed();
        if magic != MAGIC {
            return Err(BatchError::Magic(magic));
        }
        let header = BatchHeader {
            base_offset: i64::from_be_bytes(part(bytes, BASE_OFFSET_AT)),
            batch_length: i32::from_be_bytes(part(bytes, 8)),
            partition_leader_epoch: i32::from_be_bytes(part(bytes, LEADER_EPOCH_AT)),
            crc: u32::from_be_bytes(part(bytes, CRC_AT)),
            attributes: Attributes(i16::from_be_bytes(part(bytes, ATTRIBUTES_AT))),
            last_offset_delta: i32::from_be_bytes(part(bytes, 23)),
            base_timestamp: i64::from_be_bytes(part(bytes, BASE_TIMESTAMP_AT)),
            max_timestamp: i64::from_be_bytes(part(bytes, MAX_TIMESTAMP_AT)),
            producer_id: i64::from_be_bytes(part(bytes, 43)),
            producer_epoch: i16::from_be_bytes(part(bytes, 51)),
            base_sequence: i32::from_be_bytes(part(bytes, 53)),
            record_count: i32::from_be_bytes(part(bytes, 57)),
        };
        header.check_ranges()?;
        Ok(header)
    }

    #[inline]
    fn check_ranges(&self) -> Result<(), BatchError> {
        if usize::try_from(self.batch_length).map_or(true, |length| length < HEADER_BYTES - LENGTH_PREFIX_BYTES) {
            return Err(BatchError::Length(self.batch_length));
        }
        if self.base_offset < 0 {
            return Err(BatchError::BaseOffset(self.base_offset));
        }
        if self.last_offset_delta < 0 {
            return Err(BatchError::LastOffsetDelta(self.last_offset_delta));
        }
        // One more than the last offset must be an offset too: it is the log's end.
        if self
            .base_offset
            .checked_add(i64::from(self.last_offset_delta) + 1)
            .is_none()
        {
            return Err(BatchError::OffsetOverflow);
        }
        if self.record_count < 0 {
            return Err(BatchError::RecordCount(self.record_count));
        }
        Ok(())
    }

    /// The header as it stands in a batch.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let mut at = 0;
        let mut put = |value: &[u8]| {
            bytes[at..at + value.len()].copy_from_slice(value);
            at += value.len();
        };
        put(&self.base_offset.to_be_bytes());
        put(&self.batch_length.to_be_bytes());
        put(&self.partition_leader_epoch.to_be_bytes());
        put(&MAGIC.to_be_bytes());
        put(&self.crc.to_be_bytes());
        put(&self.attributes.bits().to_be_bytes());
        put(&self.last_offset_delta.to_be_bytes());
        put(&self.base_timestamp.to_be_bytes());
        put(&self.max_timestamp.to_be_bytes());
        put(&self.producer_id.to_be_bytes());
        put(&self.producer_epoch.to_be_bytes());
        put(&self.base_sequence.to_be_bytes());
        put(&self.record_count.to_be_bytes());
        bytes
    }

    /// Computes the checksum anew, over this header's fields and the `payload` that follows it.
    pub fn seal(&mut self, payload: &[u8]) {
        let bytes = self.to_bytes();
        self.crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[CHECKSUMMED_FROM..]), payload);
    }

    /// This header with its records stamped by `timestamp_type`, the greatest stamp being `max_timestamp`. Its checksum is
    /// stale if that is a change: [`BatchHeader::seal`] it.
    #[must_use]
    pub fn with_max_timestamp(self, timestamp_type: TimestampType, max_timestamp: i64) -> Self {
        BatchHeader {
            attributes: self.attributes.with_timestamp_type(timestamp_type),
            max_timestamp,
            ..self
        }
    }

    /// This batch without its records, sealed: what the cleaner leaves where the offsets or the producer's last sequence
    /// are still needed. Compression and delete horizon go with the records.
    #[must_use]
    pub fn emptied(self) -> Self {
        let mut emptied = BatchHeader {
            batch_length: (HEADER_BYTES - LENGTH_PREFIX_BYTES) as i32,
            attributes: self.attributes.of_empty_batch(),
            base_timestamp: -1,
            record_count: 0,
            ..self
        };
        emptied.seal(&[]);
        emptied
    }

    /// The whole batch, header included.
    #[must_use]
    #[inline]
    pub fn size_bytes(&self) -> usize {
        LENGTH_PREFIX_BYTES + usize::try_from(self.batch_length).expect("parse refuses negative lengths")
    }

    #[must_use]
    #[inline]
    pub fn first_offset(&self) -> Offset {
        Offset::new(self.base_offset)
    }

    #[must_use]
    #[inline]
    pub fn last_offset(&self) -> Offset {
        self.first_offset().plus(i64::from(self.last_offset_delta))
    }

    /// The offset after the last.
    #[must_use]
    #[inline]
    pub fn next_offset(&self) -> Offset {
        self.last_offset().plus(1)
    }

    #[must_use]
    #[inline]
    pub fn leader_epoch(&self) -> Option<LeaderEpoch> {
        LeaderEpoch::from_wire(self.partition_leader_epoch)
    }

    #[must_use]
    #[inline]
    pub fn producer_id(&self) -> Option<ProducerId> {
        ProducerId::from_wire(self.producer_id)
    }

    #[must_use]
    #[inline]
    pub fn producer_epoch(&self) -> Option<ProducerEpoch> {
        ProducerEpoch::from_wire(self.producer_epoch)
    }

    #[must_use]
    #[inline]
    pub fn base_sequence(&self) -> Option<Sequence> {
        Sequence::from_wire(self.base_sequence)
    }

    /// The sequence of the last record, wrapped past 2³¹−1.
    #[must_use]
    #[inline]
    pub fn last_sequence(&self) -> Option<Sequence> {
        self.base_sequence().map(|first| first.plus(self.last_offset_delta))
    }

    /// `None` where no record has a timestamp.
    #[must_use]
    pub fn max_timestamp(&self) -> Option<Timestamp> {
        Timestamp::from_wire(self.max_timestamp)
    }

    /// From when on the cleaner may drop this batch's tombstones and markers (KIP-534).
    #[must_use]
    pub fn delete_horizon(&self) -> Option<Timestamp> {
        self.attributes
            .has_delete_horizon()
            .then(|| Timestamp::from_millis(self.base_timestamp))
    }
}

#[inline]
fn part<const N: usize>(bytes: &[u8; HEADER_BYTES], at: usize) -> [u8; N] {
    let mut part = [0; N];
    part.copy_from_slice(&bytes[at..at + N]);
    part
}

/// One whole batch within bytes, its header parsed. The checksum is looked at by [`Batch::check_crc`] only.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    pub header: BatchHeader,
    bytes: &'a [u8],
}

impl<'a> Batch<'a> {
    /// The batch at the front of `bytes`, and what follows it.
    ///
    /// # Errors
    /// Those of [`BatchHeader::parse`], and [`BatchError::Truncated`] if the batch is longer than `bytes`.
    pub fn split_first(bytes: &'a [u8]) -> Result<(Batch<'a>, &'a [u8]), BatchError> {
        let header = BatchHeader::parse(bytes)?;
        let needed = header.size_bytes();
        match bytes.split_at_checked(needed) {
            Some((batch, rest)) => Ok((Batch { header, bytes: batch }, rest)),
            None => Err(BatchError::Truncated {
                needed,
                available: bytes.len(),
            }),
        }
    }

    /// Header and records.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The records as they are stored, compressed or not.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[HEADER_BYTES..]
    }

    /// # Errors
    /// [`BatchError::Checksum`] if the bytes are not those that were sealed.
    pub fn check_crc(&self) -> Result<(), BatchError> {
        let computed = crc32c::crc32c(&self.bytes[CHECKSUMMED_FROM..]);
        if computed == self.header.crc {
            Ok(())
        } else {
            Err(BatchError::Checksum {
                stored: self.header.crc,
                computed,
            })
        }
    }
}

/// The batches that stand one behind the other in some bytes; ends after the first error.
#[derive(Clone, Debug)]
pub struct Batches<'a> {
    rest: &'a [u8],
}

impl<'a> Batches<'a> {
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Batches { rest: bytes }
    }

    /// What has not been handed out yet.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Batches<'a> {
    type Item = Result<Batch<'a>, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        match Batch::split_first(self.rest) {
            Ok((batch, rest)) => {
                self.rest = rest;
                Some(Ok(batch))
            }
            Err(error) => {
                self.rest = &[];
                Some(Err(error))
            }
        }
    }
}

/// One whole batch whose header a leader is about to patch. Base offset and leader epoch lie outside of the checksum; a
/// change of the timestamps recomputes it.
#[derive(Debug)]
pub struct BatchMut<'a> {
    header: BatchHeader,
    bytes: &'a mut [u8],
}

impl<'a> BatchMut<'a> {
    /// # Errors
    /// Those of [`Batch::split_first`].
    pub fn first(bytes: &'a mut [u8]) -> Result<BatchMut<'a>, BatchError> {
        let (batch, _) = Batch::split_first(bytes)?;
        let (header, size) = (batch.header, batch.bytes.len());
        Ok(BatchMut {
            header,
            bytes: &mut bytes[..size],
        })
    }

    #[must_use]
    pub fn header(&self) -> &BatchHeader {
        &self.header
    }

    #[must_use]
    pub fn as_batch(&self) -> Batch<'_> {
        Batch {
            header: self.header,
            bytes: self.bytes,
        }
    }

    /// # Errors
    /// [`BatchError::OffsetOverflow`] if the batch would pass the greatest offset.
    pub fn set_base_offset(&mut self, offset: Offset) -> Result<(), BatchError> {
        let header = BatchHeader {
            base_offset: offset.get(),
            ..self.header
        };
        header.check_ranges()?;
        self.header = header;
        self.put(BASE_OFFSET_AT, &offset.get().to_be_bytes());
        Ok(())
    }

    pub fn set_leader_epoch(&mut self, epoch: LeaderEpoch) {
        self.header.partition_leader_epoch = epoch.get();
        self.put(LEADER_EPOCH_AT, &epoch.get().to_be_bytes());
    }

    /// Sets who stamped the records and the greatest stamp, and seals the checksum again if that changed anything.
    pub fn set_max_timestamp(&mut self, timestamp_type: TimestampType, max_timestamp: i64) {
        let attributes = self.header.attributes.with_timestamp_type(timestamp_type);
        if attributes == self.header.attributes && max_timestamp == self.header.max_timestamp {
            return;
        }
        self.header.attributes = attributes;
        self.header.max_timestamp = max_timestamp;
        self.put(ATTRIBUTES_AT, &attributes.bits().to_be_bytes());
        self.put(MAX_TIMESTAMP_AT, &max_timestamp.to_be_bytes());
        self.header.crc = crc32c::crc32c(&self.bytes[CHECKSUMMED_FROM..]);
        let crc = self.header.crc.to_be_bytes();
        self.put(CRC_AT, &crc);
    }

    fn put(&mut self, at: usize, value: &[u8]) {
        self.bytes[at..at + value.len()].copy_from_slice(value);
    }
}

/// Writes `header` into the first [`HEADER_BYTES`] of `bytes`, a whole batch, with length and checksum computed.
pub(super) fn seal(mut header: BatchHeader, bytes: &mut [u8]) -> Result<(), BatchError> {
    header.batch_length = i32::try_from(bytes.len() - LENGTH_PREFIX_BYTES)
        .map_err(|_| BatchError::Unbuildable("the batch would pass 2 GiB"))?;
    header.seal(&bytes[HEADER_BYTES..]);
    bytes[..HEADER_BYTES].copy_from_slice(&header.to_bytes());
    Ok(())
}
