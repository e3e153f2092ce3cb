//! Aggregates over JSON values: count, sum, minimum, maximum, list, statistics. The accumulator is the result, as JSON.

use bytes::Bytes;
use serde_json::{Map, Number, Value};

use crate::batch::{Batch, Row};
use crate::builtin::FieldKey;
use crate::error::{CallError, Rejection, Trap, TrapKind};
use crate::keying::Keying;
use crate::output::{Output, OutputRow};
use crate::window_aggregator::{Accumulated, Firing, Pane, WindowAggregator};

/// What is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregate {
    Count,
    Sum,
    Min,
    Max,
    List,
    /// `{count, sum, min, max, avg}`.
    Stats,
}

/// Count takes every row, list every JSON value; the others reject rows whose value (or field) is no number.
#[derive(Clone, Debug)]
pub struct JsonAggregate {
    pub aggregate: Aggregate,
    /// Aggregate this field of the value, not the value itself.
    pub value_field: Option<String>,
    pub keying: Option<FieldKey>,
}

impl WindowAggregator for JsonAggregate {
    fn keying(&mut self) -> Option<&mut dyn Keying> {
        self.keying.as_mut().map(|keying| keying as &mut dyn Keying)
    }

    fn accumulate(&mut self, rows: &Batch, panes: &[Pane]) -> Result<Accumulated, CallError> {
        let mut answer = Accumulated::default();
        let mut values = Vec::with_capacity(rows.len());
        for row in rows.rows() {
            values.push(self.value(&row).map_or_else(
                |reason| {
                    let index = u32::try_from(row.index()).expect("a batch's rows are bounded");
                    answer.rejections.push(Rejection { row: index, reason });
                    None
                },
                Some,
            ));
        }
        for pane in panes {
            let mut state = pane.accumulator.as_deref().map(parse).transpose()?;
            for row in &pane.rows {
                if let Some(value) = values.get(*row as usize).and_then(Option::as_ref) {
                    state = Some(self.fold(state, self.lift(value.clone())?)?);
                }
                if pane.each {
                    answer.accumulators.push(render(state.as_ref()));
                }
            }
            if !pane.each {
                answer.accumulators.push(render(state.as_ref()));
            }
        }
        Ok(answer)
    }

    fn merge(&mut self, pairs: &[(Bytes, Bytes)]) -> Result<Vec<Bytes>, Trap> {
        pairs
            .iter()
            .map(|(left, right)| Ok(render(Some(&self.fold(Some(parse(left)?), parse(right)?)?))))
            .collect()
    }

    fn fire(&mut self, firings: &[Firing], output: &mut Output) -> Result<(), CallError> {
        for (index, firing) in (0u32..).zip(firings) {
            output.send(OutputRow {
                origin: Some(index),
                key: Some(firing.key.clone()),
                value: Some(firing.accumulator.clone()),
                ..OutputRow::default()
            })?;
        }
        Ok(())
    }
}

impl JsonAggregate {
    fn value(&self, row: &Row<'_>) -> Result<Value, String> {
        if self.aggregate == Aggregate::Count {
            return Ok(Value::Null);
        }
        let mut value = match row.value() {
            None => Value::Null,
            Some(bytes) => serde_json::from_slice(bytes).map_err(|error| format!("the value is no JSON: {error}"))?,
        };
        if let Some(field) = &self.value_field {
            value = value
                .get_mut(field)
                .map(Value::take)
                .ok_or_else(|| format!("the value has no field {field:?}"))?;
        }
        match (self.aggregate, &value) {
            (Aggregate::List, _) | (_, Value::Number(_)) => Ok(value),
            _ => Err("the value is no number".into()),
        }
    }

    /// One value as the accumulator of a window that has seen it alone.
    fn lift(&self, value: Value) -> Result<Value, Trap> {
        Ok(match self.aggregate {
            Aggregate::Count => Value::from(1),
            Aggregate::Sum | Aggregate::Min | Aggregate::Max => value,
            Aggregate::List => Value::Array(vec![value]),
            Aggregate::Stats => stats(Value::from(1), value.clone(), value.clone(), value)?,
        })
    }

    fn fold(&self, left: Option<Value>, right: Value) -> Result<Value, Trap> {
        let Some(left) = left else { return Ok(right) };
        match self.aggregate {
            Aggregate::Count | Aggregate::Sum => add(&left, &right),
            Aggregate::Min => smaller(left, right, true),
            Aggregate::Max => smaller(left, right, false),
            Aggregate::List => match (left, right) {
                (Value::Array(mut left), Value::Array(right)) => {
                    left.extend(right);
                    Ok(Value::Array(left))
                }
                _ => Err(unsound()),
            },
            Aggregate::Stats => {
                let part = |of: &Value, name: &str| of.get(name).cloned().ok_or_else(unsound);
                stats(
                    add(&part(&left, "count")?, &part(&right, "count")?)?,
                    add(&part(&left, "sum")?, &part(&right, "sum")?)?,
                    smaller(part(&left, "min")?, part(&right, "min")?, true)?,
                    smaller(part(&left, "max")?, part(&right, "max")?, false)?,
                )
            }
        }
    }
}

fn stats(count: Value, sum: Value, min: Value, max: Value) -> Result<Value, Trap> {
    let average = number(&sum)? / number(&count)?;
    let average = Number::from_f64(average).ok_or_else(unsound)?;
    let fields = [
        ("count", count),
        ("sum", sum),
        ("min", min),
        ("max", max),
        ("avg", Value::Number(average)),
    ];
    Ok(Value::Object(
        fields
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect::<Map<_, _>>(),
    ))
}

/// Whole numbers stay whole as long as they fit.
fn add(left: &Value, right: &Value) -> Result<Value, Trap> {
    if let (Some(left), Some(right)) = (left.as_i64(), right.as_i64())
        && let Some(sum) = left.checked_add(right)
    {
        return Ok(Value::from(sum));
    }
    Number::from_f64(number(left)? + number(right)?)
        .map(Value::Number)
        .ok_or_else(unsound)
}

fn smaller(left: Value, right: Value, smaller: bool) -> Result<Value, Trap> {
    let left_is_smaller = match (left.as_i64(), right.as_i64()) {
        (Some(left), Some(right)) => left <= right,
        _ => number(&left)? <= number(&right)?,
    };
    Ok(if left_is_smaller == smaller { left } else { right })
}

fn number(value: &Value) -> Result<f64, Trap> {
    value.as_f64().filter(|number| number.is_finite()).ok_or_else(unsound)
}

fn parse(accumulator: &[u8]) -> Result<Value, Trap> {
    serde_json::from_slice(accumulator).map_err(|_| unsound())
}

fn render(state: Option<&Value>) -> Bytes {
    state.map_or_else(Bytes::new, |state| Bytes::from(state.to_string()))
}

fn unsound() -> Trap {
    Trap::new(
        TrapKind::Fault,
        "an accumulator or a number is not one this aggregate can hold",
    )
}
