//! The panes that the rows of one call fall into, and what becomes of them when the plugin has answered.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use model::Timestamp;
use plugin::{Firing, Pane, Window};

use crate::changelog::{ChangelogRecord, PaneState};
use crate::emit::{Emit, update_reason};

/// One row in one pane.
struct Fold {
    row: usize,
    pane: usize,
    event_time: Timestamp,
    /// Stream time after the row.
    stream_time: Timestamp,
}

#[derive(Default)]
pub(super) struct Panes {
    panes: Vec<Pane>,
    /// The key of each pane in the store.
    keys: Vec<Bytes>,
    /// The greatest event time in each pane before these rows.
    timestamps: Vec<Option<Timestamp>>,
    places: BTreeMap<Bytes, usize>,
    /// Row by row, and within a row by window start.
    folds: Vec<Fold>,
    size_bytes: usize,
}

impl Panes {
    pub(super) fn is_empty(&self) -> bool {
        self.panes.is_empty()
    }

    pub(super) fn as_slice(&self) -> &[Pane] {
        &self.panes
    }

    /// Bytes of the accumulators that were in the store.
    pub(super) fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    /// The pane that the store keeps under `key`, if a row has opened it.
    pub(super) fn find(&self, key: &Bytes) -> Option<usize> {
        self.places.get(key).copied()
    }

    /// Adds the pane that the store keeps under `stored_key`, with what it keeps.
    pub(super) fn open(
        &mut self,
        stored_key: Bytes,
        window: Window,
        key: Bytes,
        state: Option<PaneState>,
        emit: Emit,
    ) -> usize {
        let (timestamp, accumulator) = match state {
            Some(state) => (Some(state.timestamp), Some(state.accumulator)),
            None => (None, None),
        };
        self.size_bytes += accumulator.as_ref().map_or(0, Bytes::len);
        let (rows, each) = (Vec::new(), emit == Emit::Update);
        self.panes.push(Pane {
            window,
            key,
            accumulator,
            rows,
            each,
        });
        self.timestamps.push(timestamp);
        self.keys.push(stored_key.clone());
        self.places.insert(stored_key, self.panes.len() - 1);
        self.panes.len() - 1
    }

    /// Puts the next row into a pane.
    pub(super) fn put(&mut self, pane: usize, row: usize, event_time: Timestamp, stream_time: Timestamp) {
        let index = u32::try_from(row).expect("a batch's rows are bounded");
        self.panes[pane].rows.push(index);
        self.folds.push(Fold {
            row,
            pane,
            event_time,
            stream_time,
        });
    }

    /// The rows that are in a pane.
    pub(super) fn rows(&self) -> BTreeSet<usize> {
        self.folds.iter().map(|fold| fold.row).collect()
    }

    /// What the accumulators of an answer, whose number has been checked, make of the panes: the changed ones, and for
    /// panes with an accumulator a row the firings, each with its row, in the order of the rows.
    pub(super) fn settle(
        self,
        accumulators: &[Bytes],
        is_rejected: impl Fn(usize) -> bool,
    ) -> (Vec<ChangelogRecord>, Vec<(Firing, usize)>) {
        let Panes {
            panes,
            keys,
            mut timestamps,
            folds,
            ..
        } = self;
        // Where the next accumulator of each pane stands in the answer.
        let mut places: Vec<usize> = Vec::with_capacity(panes.len());
        let mut place = 0;
        for pane in &panes {
            places.push(place);
            place += pane.accumulators();
        }
        let mut states: Vec<Option<Bytes>> = vec![None; panes.len()];
        let mut firings = Vec::new();
        for fold in folds {
            let pane = &panes[fold.pane];
            let accumulator = &accumulators[places[fold.pane]];
            places[fold.pane] += usize::from(pane.each);
            if is_rejected(fold.row) {
                continue;
            }
            let timestamp = timestamps[fold.pane].map_or(fold.event_time, |before| before.max(fold.event_time));
            timestamps[fold.pane] = Some(timestamp);
            states[fold.pane] = Some(accumulator.clone());
            if pane.each {
                let reason = update_reason(pane.window, fold.stream_time);
                let (window, key, accumulator) = (pane.window, pane.key.clone(), accumulator.clone());
                firings.push((
                    Firing {
                        window,
                        key,
                        accumulator,
                        timestamp,
                        reason,
                    },
                    fold.row,
                ));
            }
        }
        let changes = keys.into_iter().zip(states.into_iter().zip(timestamps));
        let changes = changes.filter_map(|(key, state)| match state {
            (Some(accumulator), Some(timestamp)) => {
                let value = Some(PaneState { timestamp, accumulator }.encode());
                Some(ChangelogRecord { key, value })
            }
            _ => None,
        });
        (changes.collect(), firings)
    }
}
