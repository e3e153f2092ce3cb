//! Looks offsets up by time (ListOffsets): batches by their header, the record within the one that matters.

use std::sync::Arc;

use bytes::BytesMut;
use model::record_batch::{Batch, DecompressionLimit, RecordReader};
use model::{LeaderEpoch, Offset, Timestamp};

use super::{LogReader, ReadError, Trouble, fill, sound};
use crate::disk::Disk;
use crate::segment::{Found, Segment, Wait};

/// A record found by its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimestampOffset {
    pub offset: Offset,
    pub timestamp: Timestamp,
    /// The epoch that wrote it; `None` where no leader stamped the batch.
    pub leader_epoch: Option<LeaderEpoch>,
}

impl<D: Disk> LogReader<D> {
    /// The first record at or above the log's start whose timestamp is at least `timestamp`, looked for in the first batch
    /// that has such a record. Producers' times need not ascend, so later records may be older.
    ///
    /// # Errors
    /// As [`LogReader::read`].
    pub fn offset_for_timestamp(
        &self,
        timestamp: Timestamp,
        limit: DecompressionLimit,
        wait: Wait,
    ) -> Result<Option<TimestampOffset>, ReadError> {
        self.looking(self.log_start_offset(), wait, || self.find_time(timestamp, limit, wait))
    }

    fn find_time(
        &self,
        timestamp: Timestamp,
        limit: DecompressionLimit,
        wait: Wait,
    ) -> Result<Option<TimestampOffset>, Trouble<D::File>> {
        let log_start = self.log_start_offset();
        let mut from = log_start;
        for segment in self.shared.segments.load_full().iter() {
            if self.ends_below(segment, from, wait)? || self.is_older(segment, timestamp, wait)? {
                continue;
            }
            // A batch may have its late records below the log's start: then the next one is asked.
            while let Some(found) = sound(segment, segment.find_timestamp(timestamp.millis(), from, wait))? {
                let hit = self.record_in(segment, found, limit, wait, |record_offset, record_timestamp| {
                    record_timestamp >= timestamp && record_offset >= log_start
                })?;
                if hit.is_some() {
                    return Ok(hit);
                }
                from = found.header.next_offset();
            }
        }
        Ok(None)
    }

    /// The record with the greatest timestamp, the earliest of them if there are several (KIP-734). It may lie below the
    /// log's start where a batch reaches over it.
    ///
    /// # Errors
    /// As [`LogReader::read`].
    pub fn offset_of_max_timestamp(
        &self,
        limit: DecompressionLimit,
        wait: Wait,
    ) -> Result<Option<TimestampOffset>, ReadError> {
        self.looking(self.log_start_offset(), wait, || self.find_greatest(limit, wait))
    }

    fn find_greatest(
        &self,
        limit: DecompressionLimit,
        wait: Wait,
    ) -> Result<Option<TimestampOffset>, Trouble<D::File>> {
        let segments = self.shared.segments.load_full();
        let mut best: Option<(Timestamp, &Arc<Segment<D::File>>)> = None;
        for segment in segments.iter() {
            let Some(largest) = largest(segment, wait)? else {
                continue;
            };
            if best.is_none_or(|(timestamp, _)| largest > timestamp) {
                best = Some((largest, segment));
            }
        }
        let Some((timestamp, segment)) = best else {
            return Ok(None);
        };
        let base = segment.base_offset;
        let Some(found) = sound(segment, segment.find_timestamp(timestamp.millis(), base, wait))? else {
            // The batch that had it is damaged.
            return self.greatest_left(limit, wait);
        };
        let hit = self.record_in(segment, found, limit, wait, |_, record_timestamp| {
            record_timestamp >= timestamp
        })?;
        match hit {
            // The cleaner has emptied the batch that has it: batch by batch, then.
            None if found.header.record_count == 0 => self.greatest_left(limit, wait),
            hit => Ok(hit),
        }
    }

    /// As [`LogReader::offset_of_max_timestamp`], by the headers of all batches that have records.
    fn greatest_left(
        &self,
        limit: DecompressionLimit,
        wait: Wait,
    ) -> Result<Option<TimestampOffset>, Trouble<D::File>> {
        let segments = self.shared.segments.load_full();
        let mut best: Option<(Found, &Arc<Segment<D::File>>)> = None;
        for segment in segments.iter() {
            let base = segment.base_offset;
            let visited = segment.visit_from(base, wait, |found| {
                let greater = best.is_none_or(|(best, _)| found.header.max_timestamp > best.header.max_timestamp);
                if found.header.record_count > 0 && found.header.max_timestamp >= 0 && greater {
                    best = Some((*found, segment));
                }
                false
            });
            sound(segment, visited)?;
        }
        let Some((found, segment)) = best else {
            return Ok(None);
        };
        let timestamp = Timestamp::from_millis(found.header.max_timestamp);
        self.record_in(segment, found, limit, wait, |_, record_timestamp| {
            record_timestamp >= timestamp
        })
    }

    fn ends_below(&self, segment: &Arc<Segment<D::File>>, from: Offset, wait: Wait) -> Result<bool, Trouble<D::File>> {
        Ok(segment.base_offset < from && sound(segment, segment.find(from, wait))?.is_none())
    }

    fn is_older(
        &self,
        segment: &Arc<Segment<D::File>>,
        timestamp: Timestamp,
        wait: Wait,
    ) -> Result<bool, Trouble<D::File>> {
        Ok(largest(segment, wait)?.is_none_or(|largest| largest < timestamp))
    }

    fn record_in(
        &self,
        segment: &Arc<Segment<D::File>>,
        found: Found,
        limit: DecompressionLimit,
        wait: Wait,
        is_wanted: impl Fn(Offset, Timestamp) -> bool,
    ) -> Result<Option<TimestampOffset>, Trouble<D::File>> {
        let suspect = || Trouble::Suspect(segment.clone());
        // Sound on the disk, but nothing that can be opened.
        let corrupt = || ReadError::Corrupt(found.header.first_offset());
        let mut buffer = BytesMut::zeroed(found.header.size_bytes());
        fill(&segment.log, &mut buffer, found.position, wait).map_err(ReadError::from)?;
        let (batch, _) = Batch::split_first(&buffer).map_err(|_| suspect())?;
        batch.check_crc().map_err(|_| suspect())?;
        let mut span = self.span(found.header.last_offset());
        if !self.is_of(&mut span, &found.header) {
            return Err(suspect());
        }
        let mut reader = RecordReader::new(batch, limit).map_err(|_| corrupt())?;
        while let Some(record) = reader.next_record().map_err(|_| corrupt())? {
            if is_wanted(record.offset, record.timestamp) {
                return Ok(Some(TimestampOffset {
                    offset: record.offset,
                    timestamp: record.timestamp,
                    leader_epoch: found.header.leader_epoch(),
                }));
            }
        }
        Ok(None)
    }
}

fn largest<F: crate::disk::File>(segment: &Arc<Segment<F>>, wait: Wait) -> Result<Option<Timestamp>, Trouble<F>> {
    sound(segment, segment.largest_timestamp(wait))
}
