//! Count, minimum and average of a number field: the native twin of the delay example among the plugins.
//!
//! The accumulator is 24 bytes, little-endian: count (u64), minimum (f64), sum (f64).

use bytes::Bytes;
use serde_json::{Number, Value, json};

use crate::batch::{Batch, Row};
use crate::builtin::FieldKey;
use crate::error::{CallError, Rejection, Trap, TrapKind};
use crate::keying::Keying;
use crate::output::{Output, OutputRow};
use crate::window_aggregator::{Accumulated, Firing, Pane, WindowAggregator};

/// Gives `{"count", "minimum", "average"}` a window; rows whose field is no number are rejected.
#[derive(Clone, Debug)]
pub struct DelayStatistics {
    pub value_field: String,
    pub keying: Option<FieldKey>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Statistics {
    count: u64,
    minimum: f64,
    sum: f64,
}

impl Statistics {
    const NONE: Statistics = Statistics {
        count: 0,
        minimum: f64::INFINITY,
        sum: 0.0,
    };

    fn with(self, other: Statistics) -> Statistics {
        Statistics {
            count: self.count.saturating_add(other.count),
            minimum: self.minimum.min(other.minimum),
            sum: self.sum + other.sum,
        }
    }

    fn decode(bytes: &[u8]) -> Result<Self, Trap> {
        let bytes: &[u8; 24] = bytes
            .try_into()
            .map_err(|_| Trap::new(TrapKind::Fault, format!("an accumulator of {} bytes", bytes.len())))?;
        let part = |at: usize| <[u8; 8]>::try_from(&bytes[at..at + 8]).expect("eight of 24 bytes");
        Ok(Statistics {
            count: u64::from_le_bytes(part(0)),
            minimum: f64::from_le_bytes(part(8)),
            sum: f64::from_le_bytes(part(16)),
        })
    }

    fn encode(self) -> Bytes {
        let parts = [
            self.count.to_le_bytes(),
            self.minimum.to_le_bytes(),
            self.sum.to_le_bytes(),
        ];
        Bytes::from(parts.concat())
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "an average over more than 2^53 rows may be rounded"
    )]
    fn render(self) -> Bytes {
        let average = self.sum / self.count as f64;
        let value = json!({ "count": self.count, "minimum": shown(self.minimum), "average": shown(average) });
        Bytes::from(value.to_string())
    }
}

/// JSON has no infinities: they are shown as null.
fn shown(number: f64) -> Value {
    Number::from_f64(number).map_or(Value::Null, Value::Number)
}

impl WindowAggregator for DelayStatistics {
    fn keying(&mut self) -> Option<&mut dyn Keying> {
        self.keying.as_mut().map(|keying| keying as &mut dyn Keying)
    }

    fn accumulate(&mut self, rows: &Batch, panes: &[Pane]) -> Result<Accumulated, CallError> {
        let mut answer = Accumulated::default();
        let mut delays = Vec::with_capacity(rows.len());
        for row in rows.rows() {
            let delay = self.delay(&row);
            if let Err(reason) = &delay {
                let row = u32::try_from(row.index()).expect("a batch's rows are bounded");
                answer.rejections.push(Rejection {
                    row,
                    reason: reason.clone(),
                });
            }
            delays.push(delay.ok());
        }
        for pane in panes {
            let mut state = pane
                .accumulator
                .as_deref()
                .map_or(Ok(Statistics::NONE), Statistics::decode)?;
            for row in &pane.rows {
                if let Some(delay) = delays.get(*row as usize).copied().flatten() {
                    state = state.with(Statistics {
                        count: 1,
                        minimum: delay,
                        sum: delay,
                    });
                }
                if pane.each {
                    answer.accumulators.push(state.encode());
                }
            }
            if !pane.each {
                answer.accumulators.push(state.encode());
            }
        }
        Ok(answer)
    }

    fn merge(&mut self, pairs: &[(Bytes, Bytes)]) -> Result<Vec<Bytes>, Trap> {
        pairs
            .iter()
            .map(|(left, right)| Ok(Statistics::decode(left)?.with(Statistics::decode(right)?).encode()))
            .collect()
    }

    fn fire(&mut self, firings: &[Firing], output: &mut Output) -> Result<(), CallError> {
        for (index, firing) in (0u32..).zip(firings) {
            output.send(OutputRow {
                origin: Some(index),
                key: Some(firing.key.clone()),
                value: Some(Statistics::decode(&firing.accumulator)?.render()),
                ..OutputRow::default()
            })?;
        }
        Ok(())
    }
}

impl DelayStatistics {
    fn delay(&self, row: &Row<'_>) -> Result<f64, String> {
        let value = row.value().ok_or("the value is null")?;
        let value: Value = serde_json::from_slice(value).map_err(|error| format!("the value is no JSON: {error}"))?;
        let field = value.get(&self.value_field).and_then(Value::as_f64);
        field
            .filter(|number| number.is_finite())
            .ok_or_else(|| format!("field {:?} is no number", self.value_field))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BatchBuilder, FiringReason, OutputBounds, Window};
    use model::{Offset, PartitionIndex, Timestamp};

    fn batch(values: &[&str]) -> Batch {
        let mut builder = BatchBuilder::new(0, PartitionIndex::new(0), Offset::ZERO);
        for (offset, value) in (0..).zip(values) {
            let value = Some(value.as_bytes());
            builder
                .push(
                    Offset::new(offset),
                    Timestamp::from_millis(1),
                    Some(b"k"),
                    value,
                    std::iter::empty(),
                )
                .unwrap();
        }
        builder.finish()
    }

    #[test]
    fn delays_are_counted_and_bad_rows_left_out_of_them() {
        let mut plugin = DelayStatistics {
            value_field: "delay".into(),
            keying: None,
        };
        let rows = batch(&[r#"{"delay":7}"#, r#"{"delay":"7"}"#, "oops", r#"{"delay":-2.5}"#, "{}"]);
        let window = Window {
            start: Timestamp::from_millis(0),
            end: Timestamp::from_millis(10),
        };
        let pane = Pane {
            window,
            key: Bytes::new(),
            accumulator: None,
            rows: vec![0, 1, 2, 3, 4],
            each: false,
        };
        let answer = plugin.accumulate(&rows, std::slice::from_ref(&pane)).unwrap();
        assert_eq!(answer.check(&[pane], 5), Ok(()));
        assert_eq!(
            answer
                .rejections
                .iter()
                .map(|rejection| rejection.row)
                .collect::<Vec<_>>(),
            [1, 2, 4]
        );
        let firing = Firing {
            window,
            key: Bytes::from_static(b"k"),
            accumulator: answer.accumulators[0].clone(),
            timestamp: Timestamp::from_millis(1),
            reason: FiringReason::OnTime,
        };
        let mut output = Output::new(OutputBounds { outputs: 1, origins: 1 });
        plugin.fire(&[firing], &mut output).unwrap();
        let value: Value = serde_json::from_slice(output.rows()[0].value.as_ref().unwrap()).unwrap();
        assert_eq!(
            value,
            serde_json::from_str::<Value>(r#"{"count":2,"minimum":-2.5,"average":2.25}"#).unwrap()
        );
    }

    #[test]
    fn merging_is_the_same_as_folding_all() {
        let mut plugin = DelayStatistics {
            value_field: "delay".into(),
            keying: None,
        };
        let state = |count, minimum, sum| Statistics { count, minimum, sum }.encode();
        let merged = plugin.merge(&[(state(2, -1.0, 4.0), state(1, -3.0, -3.0))]).unwrap();
        assert_eq!(merged, [state(3, -3.0, 1.0)]);
        assert!(
            plugin
                .merge(&[(Bytes::from_static(b"short"), state(1, 0.0, 0.0))])
                .is_err()
        );
    }
}
