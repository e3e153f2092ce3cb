//! One call's worth of rows: key them, find their windows, fold them, and with update emission fire them.
//!
//! Nothing here changes the task: the outcome is a [`Unit`], which the caller makes part of the task or throws away.

use std::collections::BTreeMap;

use bytes::Bytes;
use model::Timestamp;
use plugin::{Accumulated, Batch, CallError, Firing, Header, Keys, Row, Trap};

use super::close::Advance;
use super::commit::{result_size_bytes, size_bytes};
use super::panes::Panes;
use super::work::{Halt, Setback};
use super::{Counters, DeadLetter, DeadLetterSource, InvalidTimestamps, Refusal, Refused, ResultRow, Task};
use crate::changelog::{ChangelogError, ChangelogRecord, PaneState, pane_key};
use crate::emit::Emit;
use crate::late::admit;
use crate::store::StoreError;
use crate::watermark::Watermark;
use crate::window::TIME_MS_MAX;

/// What came of some rows.
#[derive(Clone)]
pub(super) struct Unit {
    pub watermark: Watermark,
    pub advances: Vec<Advance>,
    pub changes: Vec<ChangelogRecord>,
    pub results: Vec<ResultRow>,
    pub dead_letters: Vec<DeadLetter>,
    pub refusals: Vec<Refusal>,
    pub counters: Counters,
}

impl Unit {
    fn new(watermark: Watermark, rows: usize) -> Self {
        Unit {
            watermark,
            advances: Vec::new(),
            changes: Vec::new(),
            results: Vec::new(),
            dead_letters: Vec::new(),
            refusals: Vec::new(),
            counters: Counters {
                processed: rows as u64,
                ..Counters::default()
            },
        }
    }

    /// The row goes to the dead-letter topic.
    pub(super) fn give_up(&mut self, row: &Row<'_>, mut reason: String) {
        plugin::error::shorten(&mut reason);
        self.counters.rejected += 1;
        let text = |name| plugin::error::lossy(name).into_owned().into();
        let share = |value: Option<&[u8]>| value.map(Bytes::copy_from_slice);
        self.dead_letters.push(DeadLetter {
            source: DeadLetterSource::Row(row.offset()),
            key: row.shared_key(),
            value: row.shared_value(),
            headers: row
                .headers()
                .map(|(name, value)| Header {
                    name: text(name),
                    value: share(value),
                })
                .collect(),
            timestamp: row.timestamp(),
            reason,
        });
    }
}

impl Task {
    pub(super) fn fold(&mut self, batch: &Batch) -> Result<Unit, Setback> {
        let mut unit = Unit::new(self.watermark, batch.len());
        let keys = self.assign_keys(batch).map_err(|trap| Setback::Trap {
            trap,
            given_up: Box::new(unit.clone()),
        })?;
        let mut panes = Panes::default();
        self.admit_rows(batch, keys.as_ref(), &mut unit, &mut panes)?;
        if panes.is_empty() {
            return Ok(unit);
        }
        // A row that is given up after this has moved stream time and been late where it was late.
        let blame = |trap, unit: &Unit| Setback::Trap {
            trap,
            given_up: Box::new(unit.clone()),
        };
        let given_up = unit.clone();
        self.calls.guest_calls += 1;
        let accumulated = self
            .aggregator
            .accumulate(batch, panes.as_slice())
            .and_then(|accumulated| {
                accumulated.check(panes.as_slice(), batch.len())?;
                Ok(accumulated)
            })
            .map_err(|error| match error {
                CallError::Failure(failure) => Setback::Halt(failure.into()),
                CallError::Trap(trap) => blame(trap, &given_up),
            })?;
        let firings = self.take_accumulated(batch, &accumulated, panes, &mut unit);
        if self.options.emit == Emit::Update && !firings.is_empty() {
            let (firings, rows): (Vec<_>, Vec<_>) = firings.into_iter().unzip();
            let results = self.fire(&firings, |_, firing| Some(batch.row(rows[firing]).offset()));
            let results = results.map_err(|error| match error {
                CallError::Failure(failure) => Setback::Halt(failure.into()),
                CallError::Trap(trap) => blame(trap, &given_up),
            })?;
            unit.results = results.into_iter().map(|(_, result)| result).collect();
        }
        self.check_sizes(unit, given_up)
    }

    fn assign_keys(&mut self, batch: &Batch) -> Result<Option<Keys>, Trap> {
        let Some(keying) = self.aggregator.keying() else {
            return Ok(None);
        };
        self.calls.guest_calls += 1;
        keying.assign(batch).map(Some)
    }

    /// Moves stream time row by row, and puts each row into those of its windows that are open when it comes.
    fn admit_rows(
        &self,
        batch: &Batch,
        keys: Option<&Keys>,
        unit: &mut Unit,
        panes: &mut Panes,
    ) -> Result<(), Setback> {
        let rejected = rejections(keys.map_or(&[], Keys::rejections));
        for row in batch.rows() {
            if let Some(reason) = rejected.get(&row.index()) {
                unit.give_up(&row, (*reason).to_owned());
                continue;
            }
            let event_time = keys
                .and_then(|keys| keys.timestamp(row.index()))
                .unwrap_or(row.timestamp());
            if !(0..=TIME_MS_MAX).contains(&event_time.millis()) {
                let reason = format!("the event time {event_time} is not between 0 and {TIME_MS_MAX}");
                if self.options.invalid_timestamps == InvalidTimestamps::Stop {
                    return Err(Setback::Invalid(format!("offset {}: {reason}", row.offset())));
                }
                unit.give_up(&row, reason);
                continue;
            }
            let key = keys
                .and_then(|keys| keys.key(row.index()))
                .unwrap_or_else(|| row.shared_key());
            let Some(key) = key else {
                unit.counters.null_keys += 1;
                unit.refusals.push(Refusal {
                    offset: row.offset(),
                    why: Refused::NullKey,
                });
                continue;
            };
            if unit.watermark.observe(event_time) {
                unit.advances.push(Advance {
                    offset: row.offset(),
                    stream_time: event_time,
                });
            }
            self.admit_row(&row, key, event_time, unit, panes)?;
            if panes.size_bytes() > self.options.limits.call_bytes && batch.len() > 1 {
                let reason = "the windows of these rows are too large for one call".to_owned();
                return Err(Setback::TooLarge {
                    reason,
                    given_up: Box::new(unit.clone()),
                });
            }
        }
        Ok(())
    }

    fn admit_row(
        &self,
        row: &Row<'_>,
        key: Bytes,
        event_time: Timestamp,
        unit: &mut Unit,
        panes: &mut Panes,
    ) -> Result<(), Setback> {
        let admission = admit(event_time, &self.options.windows(), &unit.watermark);
        if admission.late > 0 {
            let open = u32::try_from(admission.open.len()).expect("bounded by WINDOWS_PER_ROW_MAX");
            let why = Refused::Late {
                windows: admission.late,
                of: admission.late + open,
            };
            unit.refusals.push(Refusal {
                offset: row.offset(),
                why,
            });
            unit.counters.late += u64::from(admission.late);
            unit.counters.late_rows += u64::from(open == 0);
        }
        let stream_time = unit.watermark.stream_time().unwrap_or(event_time);
        for window in admission.open {
            let place = pane_key(window.start, &key);
            let pane = match panes.find(&place) {
                Some(pane) => pane,
                None => {
                    let stored = self.store.get(&place)?;
                    let state = stored.map(PaneState::decode).transpose().map_err(unreadable)?;
                    panes.open(place, window, key.clone(), state, self.options.emit)
                }
            };
            panes.put(pane, row.index(), event_time, stream_time);
        }
        Ok(())
    }

    /// Takes the plugin's answer: the rejected rows, the panes' new states, and with update emission the firings, each with
    /// its row.
    fn take_accumulated(
        &self,
        batch: &Batch,
        accumulated: &Accumulated,
        panes: Panes,
        unit: &mut Unit,
    ) -> Vec<(Firing, usize)> {
        // A verdict on a row that is in no pane does not count: whether the plugin saw that row at all is a matter of how
        // the input was cut.
        let folded = panes.rows();
        let mut rejected = rejections(&accumulated.rejections);
        rejected.retain(|row, _| folded.contains(row));
        for (row, reason) in &rejected {
            unit.give_up(&batch.row(*row), (*reason).to_owned());
        }
        unit.dead_letters.sort_by_key(|letter| match letter.source {
            DeadLetterSource::Row(offset) => Some(offset),
            DeadLetterSource::Window(_) => None,
        });
        let (changes, firings) = panes.settle(&accumulated.accumulators, |row| rejected.contains_key(&row));
        unit.changes = changes;
        firings
    }

    /// State must fit into a commit and each result into a record.
    fn check_sizes(&self, unit: Unit, given_up: Unit) -> Result<Unit, Setback> {
        let limits = &self.options.limits;
        let state = size_bytes(&unit.changes);
        let result = unit.results.iter().map(result_size_bytes).max().unwrap_or(0);
        let reason = if state > limits.commit_bytes {
            format!(
                "the windows of the row take {state} bytes, the limit is {}",
                limits.commit_bytes
            )
        } else if result > limits.result_bytes {
            format!(
                "a result of the row takes {result} bytes, the limit is {}",
                limits.result_bytes
            )
        } else {
            return Ok(unit);
        };
        Err(Setback::TooLarge {
            reason,
            given_up: Box::new(given_up),
        })
    }
}

/// Row and reason; of a row rejected twice the first reason.
fn rejections(rejections: &[plugin::Rejection]) -> BTreeMap<usize, &str> {
    let mut reasons = BTreeMap::new();
    for rejection in rejections {
        reasons
            .entry(rejection.row as usize)
            .or_insert(rejection.reason.as_str());
    }
    reasons
}

fn unreadable(error: ChangelogError) -> Setback {
    Setback::Halt(Halt::from(StoreError(error.into())))
}
