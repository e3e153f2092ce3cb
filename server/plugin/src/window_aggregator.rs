//! Folds rows into windows (`aggregation`, with `keying` where the plugin has it).
//!
//! The plugin is pure: the caller owns windows, accumulators and time, and calls [`WindowAggregator::accumulate`] with
//! the rows of each pane (one window of one key) and the accumulator so far. What an accumulator's bytes mean is the
//! plugin's business. [`WindowAggregator::fire`] turns accumulators into output rows.

use bytes::Bytes;
use model::Timestamp;

use crate::batch::Batch;
use crate::columns::{self, ColumnsError};
use crate::error::{CallError, Rejection, Trap};
use crate::keying::{Keying, check_rejections};
use crate::output::Output;

/// A span of event time: start inclusive, end exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Window {
    pub start: Timestamp,
    pub end: Timestamp,
}

/// One window of one key, and the rows that fall into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pane {
    pub window: Window,
    pub key: Bytes,
    /// `None`: the pane is new.
    pub accumulator: Option<Bytes>,
    /// Indices into the batch, growing.
    pub rows: Vec<u32>,
    /// Answer with one accumulator a row of this pane, as it stands after that row, not with one for all of them.
    pub each: bool,
}

impl Pane {
    /// How many accumulators the answer has for this pane.
    #[must_use]
    pub fn accumulators(&self) -> usize {
        if self.each { self.rows.len() } else { 1 }
    }
}

/// What came of [`WindowAggregator::accumulate`].
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Accumulated {
    /// The accumulators of each pane, in the order of the panes. At a rejected row of an `each` pane stands the
    /// accumulator without it; its bytes are not looked at.
    pub accumulators: Vec<Bytes>,
    /// Rows that are left out of every accumulator.
    pub rejections: Vec<Rejection>,
}

impl Accumulated {
    /// # Errors
    /// If there are not as many accumulators as the panes ask for, or a rejection names no row of the batch.
    pub fn check(&self, panes: &[Pane], rows: usize) -> Result<(), ColumnsError> {
        let expected = panes.iter().map(Pane::accumulators).sum();
        columns::check_length("accs", self.accumulators.len(), expected)?;
        check_rejections(&self.rejections, rows)
    }
}

/// Why a window gives a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FiringReason {
    /// The window closed: this is its only and final result.
    OnTime,
    /// The window may still change, and stream time has not passed its end.
    Early,
    /// The window may still change, though stream time has passed its end.
    Late,
}

/// One result that is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Firing {
    pub window: Window,
    pub key: Bytes,
    pub accumulator: Bytes,
    /// The greatest event time among the rows in the window: the result's timestamp unless the plugin gives another.
    pub timestamp: Timestamp,
    pub reason: FiringReason,
}

/// A windowed processor. Nothing of a call that fails is kept, so each may be made again with the same or fewer rows.
pub trait WindowAggregator: Send {
    /// The other door, for plugins that choose keys or event times themselves.
    fn keying(&mut self) -> Option<&mut dyn Keying> {
        None
    }

    /// # Errors
    /// If the plugin asks for a retry, gives up, or ends without a sound answer.
    fn accumulate(&mut self, rows: &Batch, panes: &[Pane]) -> Result<Accumulated, CallError>;

    /// One accumulator a pair: what both together have seen.
    ///
    /// # Errors
    /// If the plugin ends without a sound answer.
    fn merge(&mut self, pairs: &[(Bytes, Bytes)]) -> Result<Vec<Bytes>, Trap>;

    /// Gives out the results. A row's `origin` is the index of the firing it is the result of; a plugin that gives no
    /// origins at all gives exactly one row a firing, in their order.
    ///
    /// # Errors
    /// If the plugin asks for a retry, gives up, or ends without a sound answer.
    fn fire(&mut self, firings: &[Firing], output: &mut Output) -> Result<(), CallError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_each_pane_wants_an_accumulator_a_row() {
        let window = Window {
            start: Timestamp::from_millis(0),
            end: Timestamp::from_millis(5),
        };
        let pane = |each| Pane {
            window,
            key: Bytes::new(),
            accumulator: None,
            rows: vec![0, 1],
            each,
        };
        let panes = [pane(true), pane(false)];
        let answer = |count| Accumulated {
            accumulators: vec![Bytes::new(); count],
            rejections: vec![],
        };
        assert_eq!(answer(3).check(&panes, 2), Ok(()));
        assert!(answer(2).check(&panes, 2).is_err());
        let mut rejecting = answer(3);
        rejecting.rejections.push(Rejection {
            row: 2,
            reason: String::new(),
        });
        assert!(rejecting.check(&panes, 2).is_err());
    }
}
