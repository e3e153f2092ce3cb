//! A step over rows: cut them into calls, settle what each gives, and find the bad row where a call fails.
//!
//! A call that traps is rolled back and made again with each half of its rows, until a single row is left that traps
//! alone: that row goes to the dead-letter topic and the others go on. A call whose state would not fit into one commit is
//! halved the same way.

use std::ops::Range;

use model::Offset;
use plugin::{Batch, Failure, Trap, TrapKind};

use super::commit::OpenCommit;
use super::fold::Unit;
use super::{Effect, Limits, Task};
use crate::store::StoreError;

/// Why a step ends before its rows do. What was settled before stays.
pub(super) enum Halt {
    BackOff(String),
    Stop(String),
    /// The local store cannot be read.
    Store(String),
}

impl From<StoreError> for Halt {
    fn from(error: StoreError) -> Self {
        Halt::Store(describe(&error))
    }
}

fn describe(error: &dyn std::error::Error) -> String {
    match error.source() {
        None => error.to_string(),
        Some(source) => format!("{error}: {source}"),
    }
}

/// Why a call gave nothing.
pub(super) enum Setback {
    /// One of the rows is to blame, or the instance was unlucky. `given_up` is what stands if its only row is given up.
    Trap {
        trap: Trap,
        given_up: Box<Unit>,
    },
    /// The state or the results of these rows are too large for one commit.
    TooLarge {
        reason: String,
        given_up: Box<Unit>,
    },
    /// A row has no valid event time, and the task is to stop there.
    Invalid(String),
    Halt(Halt),
}

impl From<StoreError> for Setback {
    fn from(error: StoreError) -> Self {
        Setback::Halt(error.into())
    }
}

impl From<Failure> for Halt {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Retry(reason) => Halt::BackOff(reason),
            Failure::Fatal(reason) => Halt::Stop(reason),
        }
    }
}

/// How many traps a step may still cost.
pub(super) struct TrapBudget {
    left: u32,
    /// Whether a call has gone well since the step began.
    pub gone_well: bool,
}

impl TrapBudget {
    pub(super) fn new(limits: &Limits) -> Self {
        TrapBudget {
            left: limits.traps_per_step,
            gone_well: false,
        }
    }

    pub(super) fn spend(&mut self, trap: &Trap) -> Result<(), Halt> {
        self.left = self.left.saturating_sub(1);
        match (self.left, self.gone_well) {
            (1.., _) => Ok(()),
            (0, true) => Err(Halt::BackOff(format!("too many traps, the last: {trap}"))),
            (0, false) => Err(Halt::Stop(format!("the plugin traps at every call, the last: {trap}"))),
        }
    }
}

impl Task {
    pub(super) fn work(
        &mut self,
        batch: &Batch,
        next: Offset,
        open: &mut OpenCommit,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Halt> {
        let mut budget = TrapBudget::new(&self.options.limits);
        self.close_due(&[], &mut budget, open, effects)?;
        let first = batch
            .rows()
            .position(|row| row.offset() >= self.position)
            .unwrap_or(batch.len());
        let mut ranges = cut(first..batch.len(), self.options.rows_per_call());
        // A range that was interrupted alone is tried once more: on a busy machine a deadline says little of a row.
        let mut interrupted = None;
        while let Some(range) = ranges.pop() {
            let end = ranges
                .last()
                .map_or(next, |following| batch.row(following.start).offset());
            let setback = match self.fold(&batch.slice(range.clone())) {
                Ok(unit) => {
                    budget.gone_well = true;
                    self.settle(unit, end, &mut budget, open, effects)?;
                    continue;
                }
                Err(setback) => setback,
            };
            if let Setback::Trap { trap, .. } = &setback {
                self.calls.traps += 1;
                budget.spend(trap)?;
                let alone = range.len() == 1 && trap.kind == TrapKind::Interrupted;
                if alone && interrupted.replace(range.start) != Some(range.start) {
                    ranges.push(range);
                    continue;
                }
            }
            match setback {
                Setback::Halt(halt) => return Err(halt),
                _ if range.len() > 1 => ranges.extend(cut(range.clone(), range.len().div_ceil(2))),
                Setback::Invalid(reason) => return Err(Halt::Stop(reason)),
                Setback::Trap {
                    trap: Trap { reason, .. },
                    given_up,
                }
                | Setback::TooLarge { reason, given_up } => {
                    let mut unit = *given_up;
                    unit.give_up(&batch.row(range.start), reason);
                    self.settle(unit, end, &mut budget, open, effects)?;
                }
            }
        }
        if self.position < next {
            self.position = next;
            open.touch();
        }
        Ok(())
    }

    /// Makes a call's outcome part of the task and of the open commit, and closes what it made due.
    fn settle(
        &mut self,
        unit: Unit,
        end: Offset,
        budget: &mut TrapBudget,
        open: &mut OpenCommit,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Halt> {
        if open.would_exceed(self.options.limits.commit_bytes, &unit.changes) {
            self.flush(open, effects);
        }
        self.store.apply(&unit.changes)?;
        self.watermark = unit.watermark;
        self.counters.add(&unit.counters);
        self.position = end;
        open.take_changes(unit.changes);
        open.take_results(unit.results);
        open.dead_letters.extend(unit.dead_letters);
        open.refusals.extend(unit.refusals);
        if open.has_results_beyond(self.options.limits.results_bytes) {
            self.flush(open, effects);
        }
        self.close_due(&unit.advances, budget, open, effects)
    }
}

/// `range` in pieces of at most `length`, the first last.
fn cut(range: Range<usize>, length: usize) -> Vec<Range<usize>> {
    let end = range.end;
    let mut pieces: Vec<_> = range
        .step_by(length)
        .map(|start| start..end.min(start + length))
        .collect();
    pieces.reverse();
    pieces
}
