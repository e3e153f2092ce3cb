//! Windows whose time is over: with final emission each gives its result, with updates it only leaves the store.
//!
//! As all windows are equally long, panes come out of the store in the order in which they close. A great jump of stream
//! time may close very many: they are closed a slice at a time, and a commit may end between two slices, since what is
//! still in the store is still due.

use std::ops::Range;

use bytes::Bytes;
use model::{Offset, Timestamp};
use plugin::{CallError, Firing, FiringReason, Output, OutputBounds, Trap, TrapKind};

use super::commit::{OpenCommit, result_size_bytes};
use super::work::{Halt, TrapBudget};
use super::{DeadLetter, DeadLetterSource, Effect, StoredPane, Task};
use crate::changelog::{ChangelogRecord, pane_bound, pane_key};
use crate::emit::Emit;
use crate::store::{ScanLimit, StoreError};
use crate::task::ResultRow;

/// A row that moved stream time, and to where.
#[derive(Clone, Copy, Debug)]
pub(super) struct Advance {
    pub offset: Offset,
    pub stream_time: Timestamp,
}

impl Task {
    /// Closes every pane that stream time has left behind. `advances` are the latest moves of stream time, in order.
    pub(super) fn close_due(
        &mut self,
        advances: &[Advance],
        budget: &mut TrapBudget,
        open: &mut OpenCommit,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Halt> {
        let Some(bound) = self.watermark.closed_below(self.options.windows().size_ms()) else {
            return Ok(());
        };
        if bound <= self.done_below {
            return Ok(());
        }
        // What lies before has left the store. To begin there would be right as well, but a store that keeps what was
        // removed in mind for a while would look at all of it, each time.
        let mut from = pane_bound(self.done_below);
        let to = pane_bound(bound);
        loop {
            let due = self.next_due(&from, &to)?;
            let Some(last) = due.last() else {
                break;
            };
            let behind = [&pane_key(last.window.start, &last.key)[..], &[0]].concat();
            match self.options.emit {
                Emit::Update => self.tombstone(&due, open, effects)?,
                Emit::Final => self.fire_finals(&due, advances, budget, open, effects)?,
            }
            from = Bytes::from(behind);
        }
        self.done_below = bound;
        Ok(())
    }

    /// As many panes as one call may fire and the tombstones of which fit into one commit.
    fn next_due(&self, from: &[u8], to: &[u8]) -> Result<Vec<StoredPane>, StoreError> {
        let limits = &self.options.limits;
        let slice = ScanLimit {
            entries: limits.firings_per_call.max(1),
            bytes: limits.commit_bytes,
        };
        let mut due = self.stored(from, to, slice)?;
        let mut size_bytes = 0;
        let fitting = due.iter().take_while(|pane| {
            size_bytes += tombstone(pane).size_bytes();
            size_bytes <= limits.commit_bytes
        });
        let fitting = fitting.count().max(1);
        due.truncate(fitting);
        Ok(due)
    }

    /// The panes leave the store and, in this commit, the changelog.
    fn tombstone(
        &mut self,
        panes: &[StoredPane],
        open: &mut OpenCommit,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Halt> {
        let tombstones: Vec<_> = panes.iter().map(tombstone).collect();
        if open.would_exceed(self.options.limits.commit_bytes, &tombstones) {
            self.flush(open, effects);
        }
        self.store.apply(&tombstones)?;
        open.take_changes(tombstones);
        Ok(())
    }

    /// Asks for the final results; a pane at which the plugin traps alone goes to the dead-letter topic.
    fn fire_finals(
        &mut self,
        due: &[StoredPane],
        advances: &[Advance],
        budget: &mut TrapBudget,
        open: &mut OpenCommit,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Halt> {
        let mut ranges: Vec<Range<usize>> = std::iter::once(0..due.len()).collect();
        let mut interrupted = None;
        while let Some(range) = ranges.pop() {
            let panes = &due[range.clone()];
            let firings: Vec<_> = panes.iter().map(final_firing).collect();
            let trap = match self.fire(&firings, |task, pane| task.cause(&panes[pane], advances)) {
                Ok(results) => {
                    budget.gone_well = true;
                    self.tombstone(panes, open, effects)?;
                    self.take_finals(panes, results, open, effects);
                    continue;
                }
                Err(CallError::Failure(failure)) => return Err(failure.into()),
                Err(CallError::Trap(trap)) => trap,
            };
            self.calls.traps += 1;
            budget.spend(&trap)?;
            if range.len() > 1 {
                let middle = range.start + range.len() / 2;
                ranges.extend([middle..range.end, range.start..middle]);
            } else if trap.kind == TrapKind::Interrupted && interrupted.replace(range.start) != Some(range.start) {
                ranges.push(range);
            } else {
                self.tombstone(panes, open, effects)?;
                self.counters.rejected += 1;
                open.dead_letters.push(dead_window(&panes[0], trap.reason));
            }
        }
        Ok(())
    }

    /// Results that are too large for a record become dead letters.
    fn take_finals(
        &mut self,
        panes: &[StoredPane],
        results: Vec<(usize, ResultRow)>,
        open: &mut OpenCommit,
        effects: &mut Vec<Effect>,
    ) {
        let limit = self.options.limits.result_bytes;
        let mut taken = Vec::with_capacity(results.len());
        for (pane, result) in results {
            let size = result_size_bytes(&result);
            if size <= limit {
                taken.push(result);
            } else {
                let reason = format!("the window's result takes {size} bytes, the limit is {limit}");
                self.counters.rejected += 1;
                open.dead_letters.push(dead_window(&panes[pane], reason));
            }
        }
        open.take_results(taken);
        if open.has_results_beyond(self.options.limits.results_bytes) {
            self.flush(open, effects);
        }
    }

    /// The first row after which the pane was closed.
    fn cause(&self, pane: &StoredPane, advances: &[Advance]) -> Option<Offset> {
        let closes_at = pane.window.end.millis() + self.options.grace_ms();
        let at = advances.partition_point(|advance| advance.stream_time.millis() < closes_at);
        advances.get(at).map(|advance| advance.offset)
    }

    /// One call of the plugin's `fire`: the results, each with the index of its firing, in the plugin's order.
    pub(super) fn fire(
        &mut self,
        firings: &[Firing],
        cause: impl Fn(&Task, usize) -> Option<Offset>,
    ) -> Result<Vec<(usize, ResultRow)>, CallError> {
        let origins = u32::try_from(firings.len()).expect("firings are bounded by the limits");
        let mut output = Output::new(OutputBounds {
            outputs: self.options.outputs,
            origins,
        });
        self.calls.guest_calls += 1;
        self.aggregator.fire(firings, &mut output)?;
        let rows = output.into_rows();
        let one_each = rows.len() == firings.len() && rows.iter().all(|row| row.origin.is_none());
        let mut results = Vec::with_capacity(rows.len());
        for (index, row) in rows.into_iter().enumerate() {
            let origin = match row.origin {
                Some(origin) => origin as usize,
                None if one_each => index,
                None => {
                    let reason = "a result does not say which firing it belongs to";
                    return Err(Trap::new(TrapKind::BadReply, reason).into());
                }
            };
            let firing = firings.get(origin).expect("origins are checked when rows are taken");
            let window = crate::emit::window_headers(firing.window, self.options.emit);
            results.push((
                origin,
                ResultRow {
                    output: row.output,
                    partition: row.partition,
                    timestamp: row.timestamp.unwrap_or(firing.timestamp),
                    key: row.key,
                    value: row.value,
                    headers: window.into_iter().chain(row.headers).collect(),
                    cause: cause(self, origin),
                },
            ));
        }
        Ok(results)
    }
}

fn tombstone(pane: &StoredPane) -> ChangelogRecord {
    ChangelogRecord {
        key: pane_key(pane.window.start, &pane.key),
        value: None,
    }
}

fn final_firing(pane: &StoredPane) -> Firing {
    Firing {
        window: pane.window,
        key: pane.key.clone(),
        accumulator: pane.accumulator.clone(),
        timestamp: pane.timestamp,
        reason: FiringReason::OnTime,
    }
}

fn dead_window(pane: &StoredPane, reason: String) -> DeadLetter {
    DeadLetter {
        source: DeadLetterSource::Window(pane.window),
        key: Some(pane.key.clone()),
        value: Some(pane.accumulator.clone()),
        headers: Vec::new(),
        timestamp: pane.timestamp,
        reason,
    }
}
