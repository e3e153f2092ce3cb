//! What becomes of one batch: which records stay, and the batch written anew without the others.

use std::collections::BTreeMap;

use bytes::Bytes;
use model::record_batch::{
    Batch, BatchBuilder, BatchError, BatchOptions, BatchProducer, DecompressionLimit, RecordReader, TimestampType,
};
use model::{Offset, Timestamp};

use super::key_map::KeyMap;
use crate::producer_state::LastOfProducer;

/// What holds for all batches of a round.
pub(super) struct BatchFilter {
    pub(super) map: KeyMap,
    /// The map knows the dirty part up to here.
    pub(super) mapped_to: Offset,
    pub(super) now: Timestamp,
    pub(super) delete_retention_ms: i64,
    pub(super) producers: BTreeMap<i64, LastOfProducer>,
    pub(super) limit: DecompressionLimit,
}

/// What is known of one batch besides its bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Circumstances {
    /// Of an aborted transaction.
    pub(super) aborted: bool,
    /// A marker whose transaction has no batches left.
    pub(super) bare_marker: bool,
    /// The last one of a group of segments.
    pub(super) last: bool,
}

/// What becomes of a batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    Drop,
    KeepWhole,
    /// Some records went, all of them, or a delete horizon was set.
    Write(Bytes),
}

/// What the records of a batch come to.
struct Kept {
    /// One a record.
    records: Vec<bool>,
    count: usize,
    needs_horizon: bool,
}

impl BatchFilter {
    /// # Errors
    /// If the records cannot be read.
    pub(super) fn judge(&self, batch: &Batch<'_>, circumstances: Circumstances) -> Result<Verdict, BatchError> {
        let kept = self.kept(batch, circumstances)?;
        let is_whole = kept.count == kept.records.len();
        if kept.count == 0 {
            if !circumstances.last && !self.is_last_of_producer(batch) {
                return Ok(Verdict::Drop);
            }
            let emptied = batch.header.emptied();
            return Ok(if emptied == batch.header {
                Verdict::KeepWhole
            } else {
                Verdict::Write(Bytes::copy_from_slice(&emptied.to_bytes()))
            });
        }
        let needs_horizon = kept.needs_horizon && !batch.header.attributes.has_delete_horizon();
        if is_whole && !needs_horizon {
            return Ok(Verdict::KeepWhole);
        }
        self.rewrite(batch, &kept).map(Verdict::Write)
    }

    fn kept(&self, batch: &Batch<'_>, circumstances: Circumstances) -> Result<Kept, BatchError> {
        let header = &batch.header;
        let count = usize::try_from(header.record_count).unwrap_or(0);
        let all = |keep: bool| Kept {
            records: vec![keep; count],
            count: if keep { count } else { 0 },
            needs_horizon: false,
        };
        if circumstances.aborted {
            return Ok(all(false));
        }
        // The horizon is a promise to those who read: tombstones and markers are there until then.
        let is_over = header.delete_horizon().is_some_and(|horizon| horizon <= self.now);
        if header.attributes.is_control() {
            return Ok(Kept {
                needs_horizon: circumstances.bare_marker,
                ..all(!(circumstances.bare_marker && is_over))
            });
        }
        let mut kept = Kept {
            records: Vec::with_capacity(count.min(batch.bytes().len())),
            count: 0,
            needs_horizon: false,
        };
        let mut reader = RecordReader::new(*batch, self.limit)?;
        while let Some(record) = reader.next_record()? {
            let keep = if record.offset >= self.mapped_to {
                true
            } else {
                // What has no key is of the time before the topic was compacted.
                let is_last = record
                    .key
                    .is_some_and(|key| self.map.get(key).is_none_or(|last| record.offset >= last));
                is_last && (record.value.is_some() || !is_over)
            };
            kept.records.push(keep);
            kept.count += usize::from(keep);
            // Not before the key's older values go in the same round: else they and it could go at once in the next.
            kept.needs_horizon |= keep && record.value.is_none() && record.offset < self.mapped_to;
        }
        Ok(kept)
    }

    fn is_last_of_producer(&self, batch: &Batch<'_>) -> bool {
        let header = &batch.header;
        self.producers
            .get(&header.producer_id)
            .is_some_and(|last| match last.data_offset {
                Some(offset) => offset == header.last_offset(),
                None => header.attributes.is_control() && header.producer_epoch == last.epoch.get(),
            })
    }

    fn rewrite(&self, batch: &Batch<'_>, kept: &Kept) -> Result<Bytes, BatchError> {
        let header = &batch.header;
        let horizon = if kept.needs_horizon {
            let from_now = self.now.millis().saturating_add(self.delete_retention_ms);
            header.delete_horizon().or(Some(Timestamp::from_millis(from_now)))
        } else {
            header.delete_horizon()
        };
        let stamped = header.attributes.timestamp_type() == TimestampType::LogAppendTime;
        let producer = header
            .producer_id()
            .zip(header.producer_epoch())
            .map(|(id, epoch)| BatchProducer {
                id,
                epoch,
                base_sequence: header.base_sequence(),
            });
        let mut builder = BatchBuilder::new(BatchOptions {
            base_offset: header.first_offset(),
            partition_leader_epoch: header.leader_epoch(),
            compression: header.attributes.compression()?,
            compression_level: None,
            log_append_time: stamped.then(|| Timestamp::from_millis(header.max_timestamp)),
            producer,
            transactional: header.attributes.is_transactional(),
            control: header.attributes.is_control(),
            delete_horizon: horizon,
        });
        // The last sequence is the first one and this.
        builder.cover(header.last_offset_delta);
        let mut reader = RecordReader::new(*batch, self.limit)?;
        let mut keep = kept.records.iter();
        while let Some(record) = reader.next_record()? {
            if keep.next() != Some(&true) {
                continue;
            }
            let delta = i32::try_from(record.offset.since(header.first_offset()))
                .map_err(|_| BatchError::Unbuildable("offset delta is too great"))?;
            let headers: Vec<_> = record.headers.map(|header| (header.key, header.value)).collect();
            builder.append_at(delta, record.timestamp, record.key, record.value, headers.into_iter())?;
        }
        builder.build()
    }
}
