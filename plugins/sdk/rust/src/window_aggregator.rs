//! Folds rows into windows.
//!
//! The host owns windows, time and accumulators. The plugin says what of a row counts, how it is folded in, and what the
//! result looks like; how an accumulator is written down is its own business.

use crate::bindings::exports::millstream::plugin::aggregation;
use crate::bindings::millstream::plugin::output;
use crate::bindings::millstream::plugin::types::{Batch, Failure, Rejection};
use crate::plugin::{Adapter, Plugin, with};
use crate::rows::{Row, Rows, append};

/// A span of event time in milliseconds since 1970: start inclusive, end exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub start: i64,
    pub end: i64,
}

/// Why a window gives a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The window closed: this is its only and final result.
    OnTime,
    /// The window may still change, and its end has not come.
    Early,
    /// The window may still change, though its end has come.
    Late,
}

/// One result that is due.
#[derive(Clone, Copy, Debug)]
pub struct Firing<'a> {
    pub window: Window,
    pub key: &'a [u8],
    /// The greatest event time in the window, which is the result's timestamp.
    pub timestamp: i64,
    pub reason: Reason,
}

pub trait WindowAggregator: Plugin {
    /// What of a row counts.
    type Input;
    type Accumulator;

    /// # Errors
    /// Why the row is refused; it goes to the dead-letter topic with this text.
    fn read(&self, row: &Row<'_>) -> Result<Self::Input, String>;

    /// The accumulator of a window that has seen nothing.
    fn begin(&self) -> Self::Accumulator;

    fn fold(&self, accumulator: &mut Self::Accumulator, input: &Self::Input);

    /// What both together have seen.
    fn merge(&self, left: Self::Accumulator, right: Self::Accumulator) -> Self::Accumulator;

    fn encode(&self, accumulator: &Self::Accumulator) -> Vec<u8>;

    /// What [`WindowAggregator::encode`] wrote. May panic at anything else.
    fn decode(&self, bytes: &[u8]) -> Self::Accumulator;

    /// Gives out what the window has to say.
    fn fire(&self, firing: &Firing<'_>, accumulator: &Self::Accumulator, output: &mut Output);
}

/// Takes the results of one call.
#[derive(Default)]
pub struct Output {
    firing: u32,
    origins: Vec<u32>,
    spans: Vec<u32>,
    arena: Vec<u8>,
}

impl Output {
    /// One row; its timestamp is the firing's.
    pub fn row(&mut self, key: Option<&[u8]>, value: Option<&[u8]>) {
        self.origins.push(self.firing);
        for part in [key, value] {
            let span = append(&mut self.arena, part);
            self.spans.extend(span);
        }
    }
}

/// Which rows are in some pane: only those are read.
fn wanted(rows: &Rows, panes: impl Iterator<Item = impl Iterator<Item = u32>>) -> Vec<bool> {
    let mut wanted = vec![false; rows.len()];
    for row in panes.flatten() {
        wanted[row as usize] = true;
    }
    wanted
}

fn read<P: WindowAggregator>(
    plugin: &P,
    rows: &Rows,
    wanted: &[bool],
    rejections: &mut Vec<Rejection>,
) -> Vec<Option<P::Input>> {
    let mut inputs = Vec::with_capacity(rows.len());
    for (index, row) in (0u32..).zip(rows.iter()) {
        let input = wanted[row.index()].then(|| plugin.read(&row)).transpose();
        inputs.push(input.unwrap_or_else(|reason| {
            rejections.push(Rejection { row: index, reason });
            None
        }));
    }
    inputs
}

impl<P: WindowAggregator> aggregation::Guest for Adapter<P> {
    fn accumulate(rows: Batch, panes: Vec<aggregation::Pane>) -> Result<aggregation::Accumulated, Failure> {
        let rows = Rows::new(rows);
        let mut answer = aggregation::Accumulated {
            accs: Vec::with_capacity(panes.len()),
            rejections: Vec::new(),
        };
        with(|plugin: &mut P| {
            let wanted = wanted(&rows, panes.iter().map(|pane| pane.rows.iter().copied()));
            let inputs = read(plugin, &rows, &wanted, &mut answer.rejections);
            for pane in &panes {
                let before = pane.acc.as_deref();
                let mut accumulator = before.map_or_else(|| plugin.begin(), |acc| plugin.decode(acc));
                for row in &pane.rows {
                    if let Some(input) = &inputs[*row as usize] {
                        plugin.fold(&mut accumulator, input);
                    }
                    if pane.each {
                        answer.accs.push(plugin.encode(&accumulator));
                    }
                }
                if !pane.each {
                    answer.accs.push(plugin.encode(&accumulator));
                }
            }
        });
        Ok(answer)
    }

    fn merge(pairs: Vec<(Vec<u8>, Vec<u8>)>) -> Vec<Vec<u8>> {
        with(|plugin: &mut P| {
            let merged = |(left, right): (Vec<u8>, Vec<u8>)| {
                let both = plugin.merge(plugin.decode(&left), plugin.decode(&right));
                plugin.encode(&both)
            };
            pairs.into_iter().map(merged).collect()
        })
    }

    fn fire(firings: Vec<aggregation::Firing>) -> Result<(), Failure> {
        let mut results = Output::default();
        with(|plugin: &mut P| {
            for (index, firing) in (0u32..).zip(&firings) {
                results.firing = index;
                let accumulator = plugin.decode(&firing.acc);
                let reason = match firing.reason {
                    aggregation::Reason::OnTime => Reason::OnTime,
                    aggregation::Reason::Early => Reason::Early,
                    aggregation::Reason::Late => Reason::Late,
                };
                let firing = Firing {
                    window: Window {
                        start: firing.window.start,
                        end: firing.window.end,
                    },
                    key: &firing.key,
                    timestamp: firing.timestamp,
                    reason,
                };
                plugin.fire(&firing, &accumulator, &mut results);
            }
        });
        output::emit(&output::Rows {
            outputs: Vec::new(),
            partitions: Vec::new(),
            timestamps: Vec::new(),
            origins: results.origins,
            spans: results.spans,
            header_index: Vec::new(),
            header_spans: Vec::new(),
            arena: results.arena,
        });
        Ok(())
    }
}

/// Makes the library a component of the world `window-aggregator`.
#[macro_export]
macro_rules! window_aggregator {
    ($plugin:ty) => {
        type MillstreamPlugin = $crate::glue::Adapter<$plugin>;
        $crate::__world!(MillstreamPlugin, WINDOW_AGGREGATOR,
            lifecycle __export_millstream_plugin_lifecycle_0_1_0_cabi
            aggregation __export_millstream_plugin_aggregation_0_1_0_cabi
        );
    };
}

/// Makes the library a component of the world `keyed-aggregator`.
#[macro_export]
macro_rules! keyed_aggregator {
    ($plugin:ty) => {
        type MillstreamPlugin = $crate::glue::Adapter<$plugin>;
        $crate::__world!(MillstreamPlugin, KEYED_AGGREGATOR,
            lifecycle __export_millstream_plugin_lifecycle_0_1_0_cabi
            aggregation __export_millstream_plugin_aggregation_0_1_0_cabi
            keying __export_millstream_plugin_keying_0_1_0_cabi
        );
    };
}
