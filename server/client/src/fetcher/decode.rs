//! From the bytes of a fetch to records.

use std::collections::BTreeSet;

use bytes::Bytes;
use model::record_batch::{BatchError, Batches, ControlType, Record, records};
use model::{Offset, TopicPartition};
use protocol::messages::fetch_response::AbortedTransaction;

use super::fetch::PartitionAnswer;
use super::{BATCH_DECOMPRESSED, FetchLimits, Isolation};
use crate::Error;

/// How many bytes of keys and values one answer may become; a batch that begins below that is still read whole.
const DECODED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// What was read, and where to go on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Decoded {
    pub(super) records: Vec<Record>,
    pub(super) next: Offset,
}

impl PartitionAnswer {
    /// The records from `position` on, at most as many as the limits say.
    pub(super) fn decode(
        &self,
        partition: &TopicPartition,
        position: Offset,
        limits: &FetchLimits,
    ) -> Result<Decoded, Error> {
        let aborted: &[AbortedTransaction] = match limits.isolation {
            Isolation::ReadCommitted => &self.aborted,
            Isolation::ReadUncommitted => &[],
        };
        decode(&self.records, position, limits.records_max, aborted).map_err(|(offset, source)| Error::Batch {
            partition: partition.clone(),
            offset,
            source,
        })
    }
}

/// Reads batches until the bytes end, also where they end inside a batch: that one comes again with the next fetch.
/// Damage ends the reading too, and is an error if nothing could be read before it.
fn decode(
    bytes: &Bytes,
    position: Offset,
    records_max: usize,
    aborted: &[AbortedTransaction],
) -> Result<Decoded, (Offset, BatchError)> {
    let mut decoded = Decoded {
        records: Vec::new(),
        next: position,
    };
    let mut decoded_bytes = 0;
    let mut filter = AbortFilter::new(aborted);
    for batch in Batches::new(bytes) {
        let read = batch.and_then(|batch| batch.check_crc().map(|()| batch));
        let batch = match read {
            Ok(batch) => batch,
            Err(BatchError::Truncated { .. }) => break,
            Err(error) if decoded.next == position => return Err((position, error)),
            Err(_) => break,
        };
        let header = batch.header;
        if header.last_offset() < position {
            continue;
        }
        let whole = bytes.slice_ref(batch.bytes());
        if filter.hides(&header, &whole) || header.attributes.is_control() {
            decoded.next = header.next_offset();
            continue;
        }
        let from = decoded.next;
        match take_records(whole, position, records_max, &mut decoded, &mut decoded_bytes) {
            Ok(true) => decoded.next = header.next_offset(),
            Ok(false) => break,
            Err(error) if from == position && decoded.records.is_empty() => return Err((position, error)),
            Err(_) => break,
        }
        if decoded.records.len() >= records_max || decoded_bytes >= DECODED_BYTES_MAX {
            break;
        }
    }
    Ok(decoded)
}

/// Adds the records of a batch; false if the limit was reached before its end.
fn take_records(
    batch: Bytes,
    position: Offset,
    records_max: usize,
    decoded: &mut Decoded,
    decoded_bytes: &mut usize,
) -> Result<bool, BatchError> {
    for record in records(&batch, BATCH_DECOMPRESSED)? {
        let record = record?;
        if record.offset < position {
            continue;
        }
        if decoded.records.len() >= records_max {
            return Ok(false);
        }
        *decoded_bytes += record.key.as_ref().map_or(0, Bytes::len) + record.value.as_ref().map_or(0, Bytes::len);
        decoded.next = record.offset.plus(1);
        decoded.records.push(record);
    }
    Ok(true)
}

/// Which batches belong to aborted transactions: from a transaction's first offset to its marker (KIP-98).
struct AbortFilter<'a> {
    /// By ascending first offset.
    coming: Vec<&'a AbortedTransaction>,
    next: usize,
    open: BTreeSet<i64>,
}

impl<'a> AbortFilter<'a> {
    fn new(aborted: &'a [AbortedTransaction]) -> Self {
        let mut coming: Vec<_> = aborted.iter().collect();
        coming.sort_by_key(|transaction| transaction.first_offset);
        AbortFilter {
            coming,
            next: 0,
            open: BTreeSet::new(),
        }
    }

    fn hides(&mut self, header: &model::record_batch::BatchHeader, batch: &Bytes) -> bool {
        while let Some(transaction) = self.coming.get(self.next)
            && transaction.first_offset <= header.last_offset().get()
        {
            self.open.insert(transaction.producer_id);
            self.next += 1;
        }
        if header.attributes.is_control() {
            if control_type(batch) == Some(ControlType::Abort) {
                self.open.remove(&header.producer_id);
            }
            return true;
        }
        header.attributes.is_transactional() && self.open.contains(&header.producer_id)
    }
}

fn control_type(batch: &Bytes) -> Option<ControlType> {
    let first = records(batch, BATCH_DECOMPRESSED).ok()?.next()?.ok()?;
    ControlType::from_key(first.key.as_deref()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record_batch::{BatchBuilder, BatchOptions, BatchProducer, Compression};
    use model::{ProducerEpoch, ProducerId, Timestamp};

    const ALL: usize = usize::MAX;

    fn options(base_offset: i64) -> BatchOptions {
        BatchOptions {
            base_offset: Offset::new(base_offset),
            ..BatchOptions::default()
        }
    }

    fn transactional(base_offset: i64, producer: i64) -> BatchOptions {
        BatchOptions {
            producer: Some(BatchProducer {
                id: ProducerId::new(producer),
                epoch: ProducerEpoch::ZERO,
                base_sequence: model::Sequence::from_wire(0),
            }),
            transactional: true,
            ..options(base_offset)
        }
    }

    fn batch(options: BatchOptions, values: &[&str]) -> Bytes {
        let mut builder = BatchBuilder::new(options);
        for value in values {
            builder
                .append(Timestamp::from_millis(5), None, Some(value.as_bytes()), &[])
                .unwrap();
        }
        builder.build().unwrap()
    }

    fn marker(base_offset: i64, producer: i64, kind: ControlType) -> Bytes {
        let mut builder = BatchBuilder::new(BatchOptions {
            control: true,
            ..transactional(base_offset, producer)
        });
        builder
            .append_control(kind, Timestamp::from_millis(5), &[0; 6])
            .unwrap();
        builder.build().unwrap()
    }

    fn values(decoded: &Decoded) -> Vec<(i64, &str)> {
        decoded
            .records
            .iter()
            .map(|record| {
                (
                    record.offset.get(),
                    std::str::from_utf8(record.value.as_deref().unwrap()).unwrap(),
                )
            })
            .collect()
    }

    #[test]
    fn every_compression_is_read() {
        for compression in Compression::ALL {
            let bytes = batch(
                BatchOptions {
                    compression,
                    ..options(7)
                },
                &["a", "b"],
            );
            let decoded = decode(&bytes, Offset::new(7), ALL, &[]).unwrap();
            assert_eq!(values(&decoded), [(7, "a"), (8, "b")]);
            assert_eq!(decoded.next, Offset::new(9));
        }
    }

    #[test]
    fn records_before_the_position_are_left_out_of_a_batch() {
        let bytes = [batch(options(0), &["a", "b"]), batch(options(2), &["c"])]
            .concat()
            .into();
        let decoded = decode(&bytes, Offset::new(1), ALL, &[]).unwrap();
        assert_eq!(values(&decoded), [(1, "b"), (2, "c")]);
    }

    #[test]
    fn a_limit_inside_a_batch_leaves_the_rest_for_the_next_read() {
        let bytes = batch(options(0), &["a", "b", "c"]);
        let decoded = decode(&bytes, Offset::ZERO, 2, &[]).unwrap();
        assert_eq!(values(&decoded), [(0, "a"), (1, "b")]);
        assert_eq!(decoded.next, Offset::new(2));
    }

    #[test]
    fn the_position_passes_gaps_and_control_batches() {
        let bytes = [batch(options(3), &["a"]), marker(4, 1, ControlType::Commit)]
            .concat()
            .into();
        let decoded = decode(&bytes, Offset::new(1), ALL, &[]).unwrap();
        assert_eq!(values(&decoded), [(3, "a")]);
        assert_eq!(decoded.next, Offset::new(5));
    }

    #[test]
    fn a_batch_that_was_cut_off_comes_with_the_next_read() {
        let whole: Vec<u8> = [batch(options(0), &["a"]), batch(options(1), &["b"])].concat();
        let bytes = Bytes::from(whole).slice(..100);
        let decoded = decode(&bytes, Offset::ZERO, ALL, &[]).unwrap();
        assert_eq!(values(&decoded), [(0, "a")]);
        assert_eq!(decoded.next, Offset::new(1));
    }

    #[test]
    fn damage_is_an_error_only_when_the_position_has_come_to_it() {
        let good = batch(options(0), &["a"]);
        let mut bad = batch(options(1), &["b"]).to_vec();
        *bad.last_mut().unwrap() ^= 1;
        let bytes = Bytes::from([good.to_vec(), bad].concat());
        let decoded = decode(&bytes, Offset::ZERO, ALL, &[]).unwrap();
        assert_eq!(decoded.next, Offset::new(1));
        let (offset, error) = decode(&bytes.slice(good.len()..), decoded.next, ALL, &[]).unwrap_err();
        assert_eq!(offset, Offset::new(1));
        assert!(matches!(error, BatchError::Checksum { .. }), "{error:?}");
    }

    #[test]
    fn an_aborted_transaction_is_hidden_and_the_next_of_its_producer_is_not() {
        let bytes: Bytes = [
            batch(transactional(0, 7), &["aborted"]),
            batch(transactional(1, 8), &["other"]),
            marker(2, 7, ControlType::Abort),
            batch(transactional(3, 7), &["kept"]),
            marker(4, 7, ControlType::Commit),
        ]
        .concat()
        .into();
        let aborted = [AbortedTransaction {
            producer_id: 7,
            first_offset: 0,
            ..Default::default()
        }];
        let decoded = decode(&bytes, Offset::ZERO, ALL, &aborted).unwrap();
        assert_eq!(values(&decoded), [(1, "other"), (3, "kept")]);
        assert_eq!(decoded.next, Offset::new(5));
    }
}
