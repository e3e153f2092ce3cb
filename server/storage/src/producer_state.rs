//! What a partition remembers of its idempotent producers, to answer a repeated batch with its first offset and to refuse
//! one out of order (KIP-98, KIP-360), and its form on disk: Kafka's `.snapshot` files.
//!
//! A producer id is known while its last batch is younger than `producer.id.expiration.ms` or a transaction of its is
//! open. The first batch of an unknown producer may begin with any sequence: what came before may have been deleted.

mod snapshot;

use std::collections::{BTreeMap, VecDeque};

use model::record_batch::{BatchHeader, ControlType};
use model::{Offset, ProducerEpoch, ProducerId, Sequence, Timestamp};

pub(crate) use snapshot::SNAPSHOT_BYTES_MAX;

/// How many batches of each producer are remembered; the protocol's clients keep at most five in flight.
const BATCHES_REMEMBERED: usize = 5;

/// Why a producer's batch is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProducerError {
    #[error("producer {id} has begun epoch {current}, a batch of epoch {epoch} comes too late")]
    Fenced {
        id: ProducerId,
        epoch: ProducerEpoch,
        current: ProducerEpoch,
    },
    #[error("producer {id} sent sequence {first} where {expected} was to follow")]
    OutOfOrder {
        id: ProducerId,
        first: Sequence,
        expected: Sequence,
    },
}

/// A batch that is in the log already: what its first append answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DuplicateBatch {
    pub first_offset: Offset,
    pub last_offset: Offset,
    pub timestamp: Timestamp,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BatchRange {
    last_sequence: i32,
    last_offset: i64,
    offset_delta: i32,
    timestamp: i64,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Producer {
    epoch: i16,
    batches: VecDeque<BatchRange>,
    last_timestamp: i64,
    coordinator_epoch: i32,
    transaction_first_offset: Option<i64>,
}

/// The producers of one partition.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ProducerStates {
    producers: BTreeMap<i64, Producer>,
}

/// A producer as DescribeProducers shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ActiveProducer {
    pub id: ProducerId,
    pub epoch: ProducerEpoch,
    /// `None` where only a marker is known.
    pub last_sequence: Option<Sequence>,
    pub last_timestamp: Timestamp,
    /// `None` where no marker has been seen.
    pub coordinator_epoch: Option<i32>,
    pub transaction_start_offset: Option<Offset>,
}

/// The last that a producer wrote.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LastOfProducer {
    pub(crate) epoch: ProducerEpoch,
    /// The last offset of its last batch; `None` if only a marker is known.
    pub(crate) data_offset: Option<Offset>,
}

impl ProducerStates {
    /// Whether the batch may be appended: `Ok(None)`; or has been: its offsets then.
    ///
    /// # Errors
    /// If the producer is fenced or a batch is missing before this one.
    pub fn check(&self, header: &BatchHeader) -> Result<Option<DuplicateBatch>, ProducerError> {
        let (Some(id), Some(epoch)) = (header.producer_id(), header.producer_epoch()) else {
            return Ok(None);
        };
        let Some(producer) = self.producers.get(&id.get()) else {
            return Ok(None);
        };
        let current = ProducerEpoch::from_wire(producer.epoch).unwrap_or_default();
        if epoch < current {
            return Err(ProducerError::Fenced { id, epoch, current });
        }
        // Markers stand outside of the sequence.
        let Some(first) = header.base_sequence().filter(|_| !header.attributes.is_control()) else {
            return Ok(None);
        };
        if epoch > current {
            return if first == Sequence::ZERO {
                Ok(None)
            } else {
                Err(ProducerError::OutOfOrder {
                    id,
                    first,
                    expected: Sequence::ZERO,
                })
            };
        }
        let last = header.last_sequence();
        let found = producer.batches.iter().find(|batch| {
            Sequence::from_wire(batch.last_sequence) == last && batch.offset_delta == header.last_offset_delta
        });
        if let Some(batch) = found {
            return Ok(Some(DuplicateBatch {
                first_offset: Offset::new((batch.last_offset - i64::from(batch.offset_delta)).max(0)),
                last_offset: Offset::new(batch.last_offset.max(0)),
                timestamp: Timestamp::from_millis(batch.timestamp),
            }));
        }
        let expected = producer
            .batches
            .back()
            .and_then(|batch| Sequence::from_wire(batch.last_sequence))
            .map_or(Sequence::ZERO, |last| last.plus(1));
        if first == expected {
            Ok(None)
        } else {
            Err(ProducerError::OutOfOrder { id, first, expected })
        }
    }

    /// Notes a batch that is in the log now. `marker`: what a control batch says about the producer's transaction, and the
    /// coordinator's epoch. Nothing is checked: a log that is read again is as it is.
    #[inline]
    pub fn note(&mut self, header: &BatchHeader, marker: Option<(ControlType, i32)>) {
        if let (Some(id), Some(epoch)) = (header.producer_id(), header.producer_epoch()) {
            self.note_producer(id, epoch, header, marker);
        }
    }

    fn note_producer(
        &mut self,
        id: ProducerId,
        epoch: ProducerEpoch,
        header: &BatchHeader,
        marker: Option<(ControlType, i32)>,
    ) {
        let producer = self.producers.entry(id.get()).or_insert_with(|| Producer {
            epoch: epoch.get(),
            batches: VecDeque::new(),
            last_timestamp: header.max_timestamp,
            coordinator_epoch: -1,
            transaction_first_offset: None,
        });
        if epoch.get() != producer.epoch {
            producer.epoch = epoch.get();
            producer.batches.clear();
        }
        producer.last_timestamp = header.max_timestamp;
        if header.attributes.is_control() {
            if let Some((_, coordinator_epoch)) = marker {
                producer.coordinator_epoch = coordinator_epoch;
                producer.transaction_first_offset = None;
            }
            return;
        }
        if header.attributes.is_transactional() {
            producer.transaction_first_offset.get_or_insert(header.base_offset);
        }
        let Some(last_sequence) = header.last_sequence() else {
            return;
        };
        if producer.batches.len() == BATCHES_REMEMBERED {
            producer.batches.pop_front();
        }
        producer.batches.push_back(BatchRange {
            last_sequence: last_sequence.get(),
            last_offset: header.last_offset().get(),
            offset_delta: header.last_offset_delta,
            timestamp: header.max_timestamp,
        });
    }

    /// The first offset of the oldest open transaction: nothing from there on is stable.
    #[must_use]
    pub fn first_unstable_offset(&self) -> Option<Offset> {
        let open = self
            .producers
            .values()
            .filter_map(|producer| producer.transaction_first_offset);
        open.min().and_then(Offset::from_wire)
    }

    /// The producers by id.
    pub fn active(&self) -> impl Iterator<Item = ActiveProducer> + '_ {
        self.producers.iter().filter_map(|(id, producer)| {
            Some(ActiveProducer {
                id: ProducerId::from_wire(*id)?,
                epoch: ProducerEpoch::from_wire(producer.epoch)?,
                last_sequence: producer
                    .batches
                    .back()
                    .and_then(|batch| Sequence::from_wire(batch.last_sequence)),
                last_timestamp: Timestamp::from_millis(producer.last_timestamp),
                coordinator_epoch: (producer.coordinator_epoch >= 0).then_some(producer.coordinator_epoch),
                transaction_start_offset: producer.transaction_first_offset.and_then(Offset::from_wire),
            })
        })
    }

    /// What the cleaner must leave of each producer.
    pub(crate) fn last_of_each(&self) -> impl Iterator<Item = (i64, LastOfProducer)> + '_ {
        self.producers.iter().map(|(id, producer)| {
            let last = producer.batches.back();
            let last = LastOfProducer {
                epoch: ProducerEpoch::from_wire(producer.epoch).unwrap_or_default(),
                data_offset: last.and_then(|batch| Offset::from_wire(batch.last_offset)),
            };
            (*id, last)
        })
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.producers.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.producers.is_empty()
    }

    /// Forgets producers that were silent for `expiration_ms` and have no open transaction.
    pub fn remove_expired(&mut self, now: Timestamp, expiration_ms: i64) {
        self.producers.retain(|_, producer| {
            producer.transaction_first_offset.is_some()
                || now.millis().saturating_sub(producer.last_timestamp) < expiration_ms
        });
    }
}

#[cfg(test)]
mod tests;
