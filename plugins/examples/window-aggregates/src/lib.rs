//! The usual aggregates over JSON values in windows: count, sum, min, max, list, stats.
//!
//! Settings: `aggregate` names one; `value_field` aggregates a field of the value, not the value itself; `rekey_field`
//! groups by a field, not by the record's key. The accumulator is the result, as JSON.

mod numbers;

use millstream_sdk::{
    Assigned, Descriptor, Firing, Key, Keying, Output, Plugin, Row, WindowAggregator, host, keyed_aggregator,
};
use numbers::{add, greater, smaller};
use serde_json::{Value, json};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Aggregate {
    Count,
    Sum,
    Min,
    Max,
    List,
    Stats,
}

struct WindowAggregates {
    aggregate: Aggregate,
    value_field: Option<String>,
    rekey_field: Option<String>,
}

impl Plugin for WindowAggregates {
    fn describe() -> Descriptor {
        let doc = "Count, sum, minimum, maximum, list or statistics of JSON values in windows.";
        Descriptor::new("window-aggregates", "0.1.0", doc)
            .required("aggregate", "count, sum, min, max, list or stats")
            .optional("value_field", "Aggregate this field of the value.", None)
            .optional("rekey_field", "Group by this field of the value.", None)
    }

    fn start() -> Result<Self, String> {
        let aggregate = match host::config("aggregate").as_deref() {
            Some("count") => Aggregate::Count,
            Some("sum") => Aggregate::Sum,
            Some("min") => Aggregate::Min,
            Some("max") => Aggregate::Max,
            Some("list") => Aggregate::List,
            Some("stats") => Aggregate::Stats,
            Some(other) => {
                return Err(format!(
                    "aggregate is {other:?}, not count, sum, min, max, list or stats"
                ));
            }
            None => return Err("the setting aggregate is missing".into()),
        };
        Ok(WindowAggregates {
            aggregate,
            value_field: host::config("value_field"),
            rekey_field: host::config("rekey_field"),
        })
    }
}

impl Keying for WindowAggregates {
    /// A row whose value is null, or lacks the field, has no key.
    fn assign(&mut self, row: &Row<'_>) -> Result<Assigned, String> {
        let Some(field) = &self.rekey_field else {
            return Ok(Assigned::default());
        };
        let key = match row.value().map(parse).transpose()? {
            None => Key::Nothing,
            Some(Value::Object(mut fields)) => match fields.remove(field) {
                None | Some(Value::Null) => Key::Nothing,
                Some(Value::String(text)) => Key::Is(text.into_bytes()),
                Some(other) => Key::Is(other.to_string().into_bytes()),
            },
            Some(_) => return Err("the value is no JSON object".into()),
        };
        Ok(Assigned { key, timestamp: None })
    }
}

impl WindowAggregator for WindowAggregates {
    type Input = Value;
    /// Null before the first row.
    type Accumulator = Value;

    fn read(&self, row: &Row<'_>) -> Result<Value, String> {
        if self.aggregate == Aggregate::Count {
            return Ok(Value::Null);
        }
        let mut value = row.value().map_or(Ok(Value::Null), parse)?;
        if let Some(field) = &self.value_field {
            let found = value.get_mut(field).map(Value::take);
            value = found.ok_or_else(|| format!("the value has no field {field:?}"))?;
        }
        match (self.aggregate, &value) {
            (Aggregate::List, _) | (_, Value::Number(_)) => Ok(value),
            _ => Err("the value is no number".into()),
        }
    }

    fn begin(&self) -> Value {
        Value::Null
    }

    fn fold(&self, accumulator: &mut Value, input: &Value) {
        let one = match self.aggregate {
            Aggregate::Count => Value::from(1),
            Aggregate::Sum | Aggregate::Min | Aggregate::Max => input.clone(),
            Aggregate::List => json!([input]),
            Aggregate::Stats => {
                json!({ "count": 1, "sum": input, "min": input, "max": input, "avg": numbers::float(input) })
            }
        };
        let before = accumulator.take();
        *accumulator = if before.is_null() { one } else { self.merge(before, one) };
    }

    fn merge(&self, left: Value, right: Value) -> Value {
        match self.aggregate {
            Aggregate::Count | Aggregate::Sum => add(&left, &right),
            Aggregate::Min => smaller(left, right),
            Aggregate::Max => greater(left, right),
            Aggregate::List => match (left, right) {
                (Value::Array(mut left), Value::Array(right)) => {
                    left.extend(right);
                    Value::Array(left)
                }
                _ => panic!("the accumulator of a list is a list"),
            },
            Aggregate::Stats => {
                let (count, sum) = (add(&left["count"], &right["count"]), add(&left["sum"], &right["sum"]));
                let average = numbers::float(&sum) / numbers::float(&count);
                json!({
                    "count": count,
                    "sum": sum,
                    "min": smaller(left["min"].clone(), right["min"].clone()),
                    "max": greater(left["max"].clone(), right["max"].clone()),
                    "avg": average,
                })
            }
        }
    }

    fn encode(&self, accumulator: &Value) -> Vec<u8> {
        accumulator.to_string().into_bytes()
    }

    fn decode(&self, bytes: &[u8]) -> Value {
        serde_json::from_slice(bytes).expect("an accumulator is JSON")
    }

    fn fire(&self, firing: &Firing<'_>, accumulator: &Value, output: &mut Output) {
        output.row(Some(firing.key), Some(accumulator.to_string().as_bytes()));
    }
}

fn parse(value: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(value).map_err(|error| format!("the value is no JSON: {error}"))
}

keyed_aggregator!(WindowAggregates);
