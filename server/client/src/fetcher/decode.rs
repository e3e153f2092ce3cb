//! From the bytes of a fetch to records.

use std::collections::BTreeSet;

use bytes::Bytes;
use model::record_batch::{BatchError, Batches, ControlType, Record, RecordHeader, records};
use model::{Offset, TopicPartition};
use protocol::messages::fetch_response::AbortedTransaction;

use super::fetch::PartitionAnswer;
use super::{BATCH_DECOMPRESSED, FetchLimits, Isolation};
use crate::Error;

/// What one read may become; a batch that begins below that is still read whole.
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
        let mut decoding = self.decoding(position, limits.isolation);
        let read = decoding.part(limits.records_max, DECODED_BYTES_MAX);
        read.map_err(|damage| damage.of(partition))
    }

    /// Reads the records from `position` on part by part.
    pub(super) fn decoding(&self, position: Offset, isolation: Isolation) -> Decoding<'_> {
        let aborted: &[AbortedTransaction] = match isolation {
            Isolation::ReadCommitted => &self.aborted,
            Isolation::ReadUncommitted => &[],
        };
        Decoding::new(&self.records, position, aborted)
    }
}

/// A batch that cannot be read, at this offset or after it.
#[derive(Debug)]
pub(super) struct Damage {
    offset: Offset,
    source: BatchError,
}

impl Damage {
    pub(super) fn of(self, partition: &TopicPartition) -> Error {
        Error::Batch {
            partition: partition.clone(),
            offset: self.offset,
            source: self.source,
        }
    }
}

/// What a record takes in memory: its bytes, and what holds them.
pub(super) fn record_bytes(record: &Record) -> usize {
    let length = |field: &Option<Bytes>| field.as_ref().map_or(0, Bytes::len);
    let headers = record.headers.iter();
    let headers = headers.map(|header| size_of::<RecordHeader>() + header.key.len() + length(&header.value));
    size_of::<Record>() + length(&record.key) + length(&record.value) + headers.sum::<usize>()
}

/// Reads batches until the bytes end, also where they end inside a batch: that one comes again with the next fetch.
/// Damage ends the reading too, and is an error if nothing could be read before it.
pub(super) struct Decoding<'a> {
    bytes: &'a Bytes,
    batches: Batches<'a>,
    filter: AbortFilter<'a>,
    position: Offset,
    is_over: bool,
}

impl<'a> Decoding<'a> {
    fn new(bytes: &'a Bytes, position: Offset, aborted: &'a [AbortedTransaction]) -> Self {
        Decoding {
            bytes,
            batches: Batches::new(bytes),
            filter: AbortFilter::new(aborted),
            position,
            is_over: false,
        }
    }

    /// Whether there is no further part.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Where reading goes on after the parts so far.
    pub(super) fn position(&self) -> Offset {
        self.position
    }

    /// The next batches, until they have become so much. A part that ends at `records_max` is the last.
    pub(super) fn part(&mut self, records_max: usize, bytes_max: usize) -> Result<Decoded, Damage> {
        let position = self.position;
        let mut decoded = Decoded {
            records: Vec::new(),
            next: position,
        };
        let mut decoded_bytes = 0;
        while decoded.records.len() < records_max && decoded_bytes < bytes_max {
            match self.batch(position, records_max, &mut decoded, &mut decoded_bytes) {
                Ok(true) => {}
                Ok(false) => {
                    self.is_over = true;
                    break;
                }
                Err(source) => {
                    self.is_over = true;
                    if decoded.next == position {
                        let offset = position;
                        return Err(Damage { offset, source });
                    }
                    break;
                }
            }
        }
        self.is_over |= decoded.records.len() >= records_max;
        self.position = decoded.next;
        Ok(decoded)
    }

    /// One batch; false if it is not whole or not wanted whole, and where there is none.
    fn batch(
        &mut self,
        position: Offset,
        records_max: usize,
        decoded: &mut Decoded,
        decoded_bytes: &mut usize,
    ) -> Result<bool, BatchError> {
        let Some(batch) = self.batches.next() else {
            return Ok(false);
        };
        let batch = match batch.and_then(|batch| batch.check_crc().map(|()| batch)) {
            Err(BatchError::Truncated { .. }) => return Ok(false),
            read => read?,
        };
        let header = batch.header;
        if header.last_offset() < position {
            return Ok(true);
        }
        let whole = self.bytes.slice_ref(batch.bytes());
        let is_hidden = self.filter.hides(&header, &whole) || header.attributes.is_control();
        let is_whole = is_hidden || take_records(whole, position, records_max, decoded, decoded_bytes)?;
        if is_whole {
            decoded.next = header.next_offset();
        }
        Ok(is_whole)
    }
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
        *decoded_bytes += record_bytes(&record);
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

    fn decode(
        bytes: &Bytes,
        position: Offset,
        records_max: usize,
        aborted: &[AbortedTransaction],
    ) -> Result<Decoded, Damage> {
        Decoding::new(bytes, position, aborted).part(records_max, DECODED_BYTES_MAX)
    }

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
        let damage = decode(&bytes.slice(good.len()..), decoded.next, ALL, &[]).unwrap_err();
        assert_eq!(damage.offset, Offset::new(1));
        assert!(matches!(damage.source, BatchError::Checksum { .. }), "{damage:?}");
        let mut decoding = Decoding::new(&bytes, Offset::ZERO, &[]);
        assert_eq!(decoding.part(ALL, 1).unwrap().next, Offset::new(1));
        assert!(!decoding.is_over());
        assert_eq!(decoding.part(ALL, 1).unwrap_err().offset, Offset::new(1));
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
        let mut decoding = Decoding::new(&bytes, Offset::ZERO, &aborted);
        let parts = [decoding.part(ALL, 1).unwrap(), decoding.part(ALL, 1).unwrap()];
        assert_eq!(parts.each_ref().map(values), [vec![(1, "other")], vec![(3, "kept")]]);
    }
}
