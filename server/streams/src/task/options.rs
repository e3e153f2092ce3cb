//! What a deployment says about its windows, and the limits that keep one task from hurting the rest.

use std::time::Duration;

use model::Offset;

use crate::changelog::TaskEpoch;
use crate::emit::Emit;
use crate::window::{WindowError, Windows, check_grace};

/// What becomes of a row whose event time is negative or absurdly late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidTimestamps {
    DeadLetter,
    /// The task stops at the row.
    Stop,
}

/// Bounds of one call and one commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most rows in one call into the plugin.
    pub rows_per_call: usize,
    /// Most folds (a row into a window) in one call.
    pub folds_per_call: usize,
    /// Most results that one call is asked for when windows close.
    pub firings_per_call: usize,
    /// Most bytes of accumulators that the panes of one call hold, unless they are those of a single row.
    pub call_bytes: usize,
    /// Most bytes of changelog records in one commit: a batch must fit into a message of the changelog topic. A row
    /// whose panes alone are larger goes to the dead-letter topic.
    pub commit_bytes: usize,
    /// Most bytes of one result; a greater one goes to the dead-letter topic.
    pub result_bytes: usize,
    /// Results in one commit, in bytes, after which it ends.
    pub results_bytes: usize,
    /// Most traps in one step, that is, in the search for bad rows; then the task backs off, or stops if no row at all
    /// got through.
    pub traps_per_step: u32,
    /// How often a task backs off without progress before it stops.
    pub retries: u32,
    pub back_off_min: Duration,
    pub back_off_max: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            rows_per_call: 1_000,
            folds_per_call: 16_384,
            firings_per_call: 4_096,
            call_bytes: 8 << 20,
            commit_bytes: 900 << 10,
            result_bytes: 900 << 10,
            results_bytes: 4 << 20,
            traps_per_step: 128,
            retries: 5,
            back_off_min: Duration::from_millis(100),
            back_off_max: Duration::from_secs(30),
        }
    }
}

impl Limits {
    /// The wait before retry `attempt`, from 1: it doubles each time.
    pub(super) fn back_off(&self, attempt: u32) -> Duration {
        let factor = 1u32.checked_shl(attempt.saturating_sub(1)).unwrap_or(u32::MAX);
        self.back_off_min.saturating_mul(factor).min(self.back_off_max)
    }
}

/// What a task is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskOptions {
    windows: Windows,
    grace_ms: i64,
    pub emit: Emit,
    /// How many outputs the processor has.
    pub outputs: u32,
    pub invalid_timestamps: InvalidTimestamps,
    /// Where to begin if the changelog does not say.
    pub start: Offset,
    pub epoch: TaskEpoch,
    pub limits: Limits,
}

impl TaskOptions {
    /// From the first row, with the default limits.
    ///
    /// # Errors
    /// If the grace period is out of range.
    pub fn new(windows: Windows, grace_ms: i64, emit: Emit) -> Result<Self, WindowError> {
        Ok(TaskOptions {
            windows,
            grace_ms: check_grace(grace_ms)?,
            emit,
            outputs: 1,
            invalid_timestamps: InvalidTimestamps::DeadLetter,
            start: Offset::ZERO,
            epoch: TaskEpoch::default(),
            limits: Limits::default(),
        })
    }

    #[must_use]
    pub fn windows(&self) -> Windows {
        self.windows
    }

    #[must_use]
    pub fn grace_ms(&self) -> i64 {
        self.grace_ms
    }

    /// Rows per call, so that neither rows nor folds exceed their limit.
    pub(super) fn rows_per_call(&self) -> usize {
        (self.limits.folds_per_call / self.windows.per_row_max()).clamp(1, self.limits.rows_per_call.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_up_to_its_greatest() {
        let limits = Limits::default();
        let waits: Vec<_> = [1, 2, 3, 9, 10, 40]
            .map(|attempt| limits.back_off(attempt).as_millis())
            .to_vec();
        assert_eq!(waits, [100, 200, 400, 25_600, 30_000, 30_000]);
    }
}
