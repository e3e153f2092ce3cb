//! The records of one partition on their way, and where their outcomes are gathered.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use model::{PartitionIndex, Sequence, Timestamp, TopicPartition};
use tokio::sync::{Notify, OwnedSemaphorePermit};
use tokio::time::Instant;

use super::delivery::Identity;
use super::{Outcome, ProduceRecord, RecordError};

/// How many records one batch may have.
const BATCH_RECORDS_MAX: usize = 100_000;

/// A record that waits, and who waits for it. Its room in the buffer is free again when it is dropped.
pub(super) struct Pending {
    pub(super) record: ProduceRecord,
    pub(super) timestamp: Timestamp,
    pub(super) size_bytes: usize,
    pub(super) collector: Arc<Collector>,
    pub(super) index: usize,
    pub(super) _room: OwnedSemaphorePermit,
}

impl Pending {
    pub(super) fn settle(self, outcome: Outcome) {
        self.collector.settle(self.index, outcome);
    }
}

/// The queue of one partition. Whoever finds it idle drives it until it is empty.
pub(super) struct Lane {
    pub(super) partition: TopicPartition,
    queue: Mutex<Queue>,
    /// Where the sequence stands under which identity; only the driver looks at it.
    pub(super) place: tokio::sync::Mutex<Option<Place>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place {
    pub(super) identity: Identity,
    pub(super) next: Sequence,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Pending>,
    is_driven: bool,
}

impl Lane {
    pub(super) fn new(partition: TopicPartition) -> Self {
        Lane {
            partition,
            queue: Mutex::default(),
            place: tokio::sync::Mutex::default(),
        }
    }

    /// Adds a record; true if the caller has to see to it that the lane is driven.
    pub(super) fn push(&self, pending: Pending) -> bool {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.waiting.push_back(pending);
        !std::mem::replace(&mut queue.is_driven, true)
    }

    /// What makes the next batch; `None`, and the lane is idle, if nothing waits.
    pub(super) fn take_batch(&self, bytes_max: usize) -> Option<Vec<Pending>> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = 0;
        let mut count = 0;
        for pending in queue.waiting.iter().take(BATCH_RECORDS_MAX) {
            bytes += pending.size_bytes;
            if count > 0 && bytes > bytes_max {
                break;
            }
            count += 1;
        }
        if count == 0 {
            queue.is_driven = false;
            return None;
        }
        Some(queue.waiting.drain(..count).collect())
    }

    /// Takes what waits and is meant out of the queue; the lane stays driven.
    pub(super) fn take_waiting(&self, is_meant: impl Fn(&Pending) -> bool) -> Vec<Pending> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = std::mem::take(&mut queue.waiting);
        let (meant, others): (Vec<_>, Vec<_>) = waiting.into_iter().partition(is_meant);
        queue.waiting = others.into();
        meant
    }
}

/// Gathers the outcomes of one call.
pub(super) struct Collector {
    /// When the last attempt for any of its records ends.
    pub(super) deadline: Instant,
    state: Mutex<Collected>,
    complete: Notify,
}

struct Collected {
    outcomes: Vec<Option<Outcome>>,
    open: usize,
    /// Partitions that were given up: what the call still has for them would come without what stands before it.
    given_up: BTreeMap<PartitionIndex, RecordError>,
}

impl Collector {
    pub(super) fn new(count: usize, deadline: Instant) -> Self {
        let state = Collected {
            outcomes: vec![None; count],
            open: count,
            given_up: BTreeMap::new(),
        };
        Collector {
            deadline,
            state: Mutex::new(state),
            complete: Notify::new(),
        }
    }

    pub(super) fn settle(&self, index: usize, outcome: Outcome) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        debug_assert!(state.outcomes[index].is_none(), "an outcome is settled once");
        state.outcomes[index] = Some(outcome);
        state.open -= 1;
        if state.open == 0 {
            self.complete.notify_one();
        }
    }

    /// From now on the call's records for a partition are not sent, and have this error.
    pub(super) fn give_up(&self, partition: PartitionIndex, error: &RecordError) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.given_up.entry(partition).or_insert_with(|| error.clone());
    }

    /// Why a record for a partition that is not sent yet need not be.
    pub(super) fn hopeless(&self, partition: PartitionIndex) -> Option<RecordError> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let given_up = state.given_up.get(&partition).cloned();
        given_up.or_else(|| (self.deadline <= Instant::now()).then(|| RecordError::not_sent_in_time(partition)))
    }

    /// All outcomes; there is one waiter, the call itself.
    pub(super) async fn outcomes(&self) -> Vec<Outcome> {
        loop {
            {
                let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                if state.open == 0 {
                    return std::mem::take(&mut state.outcomes).into_iter().flatten().collect();
                }
            }
            self.complete.notified().await;
        }
    }
}
