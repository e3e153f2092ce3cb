//! One task: the rows of one partition in, effects out.
//!
//! The caller executes the effects of a call in order. Each [`Commit`] is all or nothing: its results and dead letters
//! are produced first and acknowledged, then its changelog records are appended as one batch, which is the commit point:
//! from then on the rows below its position are never read again. If any of that cannot be done, the task is thrown
//! away and restored from the changelog; rows whose results left but whose commit did not are then seen again
//! (at least once).
//!
//! How the rows were cut into calls does not show in the results. Invariants:
//! - stream time and position only grow, and stand in every commit;
//! - a pane that has closed is a tombstone in the commit that holds its final result, and never comes back;
//! - a call into the plugin that failed leaves nothing behind.

mod close;
mod commit;
mod effect;
mod fold;
mod options;
mod panes;
mod restore;
mod work;

pub use effect::{Commit, DeadLetter, DeadLetterSource, Effect, Refusal, Refused, ResultRow};
pub use options::{InvalidTimestamps, Limits, TaskOptions};
pub use restore::{Restoration, RestoreError};

use bytes::Bytes;
use model::{Offset, Timestamp};
use plugin::{Batch, Window, WindowAggregator};

use crate::changelog::{ChangelogKey, ChangelogRecord, PaneState, Progress, pane_bound, pane_key};
use crate::store::{ScanLimit, Store, StoreError};
use crate::watermark::Watermark;
use crate::window::TIME_MS_MAX;
use commit::OpenCommit;

/// What became of the rows so far. These counts are part of each commit, so a row is counted once however often it is
/// read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counters {
    /// Rows that are behind the position, whatever became of them.
    pub processed: u64,
    /// How often a window refused a row because it had closed: a row may be late for several.
    pub late: u64,
    /// Rows that were late for all of their windows.
    pub late_rows: u64,
    /// Rows without a key.
    pub null_keys: u64,
    /// Rows and results that went to the dead-letter topic.
    pub rejected: u64,
}

impl Counters {
    fn add(&mut self, other: &Counters) {
        self.processed += other.processed;
        self.late += other.late;
        self.late_rows += other.late_rows;
        self.null_keys += other.null_keys;
        self.rejected += other.rejected;
    }
}

/// What the plugin has cost since the task started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Calls {
    pub guest_calls: u64,
    pub traps: u64,
}

/// Whether rows may be given to the task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskState {
    Running,
    /// Until [`Task::resume`] is called, or rows come.
    BackingOff {
        reason: String,
    },
    /// For good: a task that is to go on is restored anew.
    Stopped {
        reason: String,
    },
}

/// A pane as the store holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredPane {
    pub window: Window,
    pub key: Bytes,
    pub accumulator: Bytes,
    /// The greatest event time among the rows in the pane.
    pub timestamp: Timestamp,
}

/// One partition of one windowed processor.
pub struct Task {
    options: TaskOptions,
    aggregator: Box<dyn WindowAggregator>,
    store: Box<dyn Store>,
    watermark: Watermark,
    position: Offset,
    counters: Counters,
    calls: Calls,
    /// How often in a row the task has backed off.
    attempt: u32,
    state: TaskState,
    /// All panes that start below this have been fired or dropped.
    done_below: Timestamp,
}

impl Task {
    /// A task as the changelog left it; a new one if the changelog is empty. `store` is empty, or holds what an earlier
    /// part of the same changelog says.
    ///
    /// # Errors
    /// If a record cannot be read, or belongs to other windows or to a later owner.
    pub fn restore(
        options: TaskOptions,
        aggregator: Box<dyn WindowAggregator>,
        store: Box<dyn Store>,
        changelog: impl IntoIterator<Item = ChangelogRecord>,
    ) -> Result<Task, RestoreError> {
        let mut restoration = Restoration::new(options, store)?;
        for record in changelog {
            restoration.apply(record)?;
        }
        restoration.finish(aggregator)
    }

    /// Takes the rows that were read; `next` is the position after them, which may lie beyond the last row. Rows below
    /// the task's position are passed over.
    ///
    /// # Panics
    /// If `next` is not greater than the last row's offset.
    pub fn on_rows(&mut self, batch: &Batch, next: Offset, effects: &mut Vec<Effect>) {
        let last = batch.len().checked_sub(1).map(|last| batch.row(last).offset());
        assert!(
            last.is_none_or(|last| last < next),
            "the next position lies behind every row"
        );
        self.advance(effects, |task, open, effects| task.work(batch, next, open, effects));
    }

    /// Gives the results that are due without new rows: to be called once after a restore, and after a back-off.
    pub fn resume(&mut self, effects: &mut Vec<Effect>) {
        self.advance(effects, |task, open, effects| {
            task.close_due(&[], &mut work::TrapBudget::new(&task.options.limits), open, effects)
        });
    }

    /// All commits so far are in the changelog, which ends at `changelog_end`. The store is told of the last one's progress,
    /// so that it is a whole beginning of the changelog.
    ///
    /// # Errors
    /// If the local store cannot write; the task is then to be restored.
    pub fn on_committed(&mut self, changelog_end: Offset) -> Result<(), StoreError> {
        self.store.apply(&[self.progress_record()])?;
        self.store.committed(changelog_end)
    }

    /// The next row to read.
    #[must_use]
    pub fn position(&self) -> Offset {
        self.position
    }

    #[must_use]
    pub fn stream_time(&self) -> Option<Timestamp> {
        self.watermark.stream_time()
    }

    #[must_use]
    pub fn watermark(&self) -> Watermark {
        self.watermark
    }

    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    #[must_use]
    pub fn calls(&self) -> Calls {
        self.calls
    }

    #[must_use]
    pub fn state(&self) -> &TaskState {
        &self.state
    }

    #[must_use]
    pub fn options(&self) -> &TaskOptions {
        &self.options
    }

    /// Up to `limit` panes that are still in the store, by window start, then key; from `after` (exclusive) on. There may
    /// be fewer though more follow, if they are large: the end is where none comes.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn panes(&self, after: Option<(Timestamp, &[u8])>, limit: usize) -> Result<Vec<StoredPane>, StoreError> {
        let from = match after {
            None => pane_bound(Timestamp::from_millis(0)),
            // The least key above another is that one and a zero byte.
            Some((start, key)) => pane_key(start, &[key, &[0]].concat()),
        };
        let to = pane_bound(Timestamp::from_millis(TIME_MS_MAX + 1));
        self.stored(
            &from,
            &to,
            ScanLimit {
                entries: limit,
                bytes: self.options.limits.call_bytes,
            },
        )
    }

    fn stored(&self, from: &[u8], to: &[u8], limit: ScanLimit) -> Result<Vec<StoredPane>, StoreError> {
        let entries = self.store.scan(from, to, limit)?;
        entries
            .into_iter()
            .map(|(key, value)| {
                let state = PaneState::decode(value).map_err(|error| StoreError(error.into()))?;
                match ChangelogKey::decode(key).map_err(|error| StoreError(error.into()))? {
                    ChangelogKey::Pane { start, key } => Ok(StoredPane {
                        window: self.options.windows().starting_at(start),
                        key,
                        accumulator: state.accumulator,
                        timestamp: state.timestamp,
                    }),
                    ChangelogKey::Progress => Err(StoreError("a scan of panes met the progress record".into())),
                }
            })
            .collect()
    }

    /// Runs one step, ends its last commit, and says how it ended.
    fn advance(
        &mut self,
        effects: &mut Vec<Effect>,
        step: impl FnOnce(&mut Task, &mut OpenCommit, &mut Vec<Effect>) -> Result<(), work::Halt>,
    ) {
        if matches!(self.state, TaskState::Stopped { .. }) {
            return;
        }
        let before = self.position;
        let mut open = OpenCommit::default();
        let outcome = step(self, &mut open, effects);
        self.flush(&mut open, effects);
        match outcome {
            Ok(()) => {
                self.attempt = 0;
                self.state = TaskState::Running;
            }
            Err(work::Halt::BackOff(reason)) => self.back_off(self.position > before, reason, effects),
            Err(work::Halt::Stop(reason)) => self.stop(reason, effects),
            Err(work::Halt::Store(reason)) => {
                self.state = TaskState::Stopped { reason: reason.clone() };
                effects.push(Effect::StoreFailed { reason });
            }
        }
    }

    fn back_off(&mut self, progressed: bool, reason: String, effects: &mut Vec<Effect>) {
        self.attempt = if progressed { 1 } else { self.attempt + 1 };
        let limits = &self.options.limits;
        if self.attempt > limits.retries {
            let reason = format!("given up after {} retries: {reason}", limits.retries);
            return self.stop(reason, effects);
        }
        let wait = limits.back_off(self.attempt);
        self.state = TaskState::BackingOff { reason: reason.clone() };
        effects.push(Effect::BackOff {
            wait,
            attempt: self.attempt,
            reason,
        });
    }

    fn stop(&mut self, reason: String, effects: &mut Vec<Effect>) {
        self.state = TaskState::Stopped { reason: reason.clone() };
        effects.push(Effect::Stop { reason });
    }

    fn progress_record(&self) -> ChangelogRecord {
        ChangelogRecord {
            key: ChangelogKey::Progress.encode(),
            value: Some(self.progress().encode()),
        }
    }

    fn progress(&self) -> Progress {
        Progress {
            epoch: self.options.epoch,
            position: self.position,
            stream_time: self.watermark.stream_time(),
            windows: self.options.windows(),
            grace_ms: self.options.grace_ms(),
            emit: self.options.emit,
            counters: self.counters,
        }
    }
}
