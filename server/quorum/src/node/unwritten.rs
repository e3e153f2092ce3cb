//! Decisions that wait for the sync before them: they are replayed already, and will be one batch.
//!
//! The log never holds more than one batch that is not synced. A power loss can keep a later write and lose an earlier
//! one; with one batch at stake what it leaves is a torn tail, which is cut, and never a hole with sound batches behind
//! it, which could as well be rot in what was acknowledged.

use std::collections::VecDeque;

use metadata::controller::RECORDS_PER_OPERATION_MAX;
use metadata::{Replay, SealedRecord};
use model::Timestamp;

/// A batch to be.
pub(super) struct Batch {
    pub(super) records: Vec<SealedRecord>,
    /// When the last of its decisions was made: the time that all its records will bear.
    pub(super) at: Timestamp,
    /// The state without it, to go back to if it cannot be written.
    pub(super) before: Replay,
}

/// Batches in the order in which they will be written. The driver bounds them by the answers that wait for them.
#[derive(Default)]
pub(super) struct Unwritten(VecDeque<Batch>);

impl Unwritten {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn record_count(&self) -> usize {
        self.0.iter().map(|batch| batch.records.len()).sum()
    }

    /// Adds the records of one decision, which stay together.
    pub(super) fn push(&mut self, records: Vec<SealedRecord>, at: Timestamp, before: Replay) {
        match self.0.back_mut() {
            Some(last) if last.records.len() + records.len() <= RECORDS_PER_OPERATION_MAX => {
                last.records.extend(records);
                last.at = at;
            }
            _ => self.0.push_back(Batch { records, at, before }),
        }
    }

    pub(super) fn pop(&mut self) -> Option<Batch> {
        self.0.pop_front()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
