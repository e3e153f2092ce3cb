//! The records of one partition on their way, and where their outcomes are gathered.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use model::{Sequence, Timestamp, TopicPartition};
use tokio::sync::{Notify, OwnedSemaphorePermit};

use super::delivery::Identity;
use super::{Outcome, ProduceRecord};

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
}

/// Gathers the outcomes of one call.
pub(super) struct Collector {
    state: Mutex<Collected>,
    complete: Notify,
}

struct Collected {
    outcomes: Vec<Option<Outcome>>,
    open: usize,
}

impl Collector {
    pub(super) fn new(count: usize) -> Self {
        let state = Collected {
            outcomes: vec![None; count],
            open: count,
        };
        Collector {
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
