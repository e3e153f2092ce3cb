//! Count, minimum and average of a number field in windows: for flights the delay, for stocks the price.
//!
//! Rows are grouped by their key, or by the field `key_field`. Event time is the record's timestamp, or the field
//! `time_field`: milliseconds since 1970, or a text such as `2001-01-14 21:55`.

mod calendar;

use millstream_sdk::{
    Assigned, Descriptor, Firing, Key, Keying, Output, Plugin, Row, WindowAggregator, host, keyed_aggregator,
};
use serde_json::{Number, Value, json};

struct DelayStatistics {
    value_field: String,
    key_field: Option<String>,
    time_field: Option<String>,
}

#[derive(Clone, Copy)]
struct Statistics {
    count: u64,
    minimum: f64,
    sum: f64,
}

impl Plugin for DelayStatistics {
    fn describe() -> Descriptor {
        let doc = "Count, minimum and average of a number field of JSON values in windows.";
        Descriptor::new("delay-statistics", "0.1.0", doc)
            .optional("value_field", "The number that is looked at.", Some("delay"))
            .optional("key_field", "Group by this field, not by the record's key.", None)
            .optional(
                "time_field",
                "Take event time from this field: milliseconds since 1970 or a date and time; without it, from the record.",
                None,
            )
    }

    fn start() -> Result<Self, String> {
        Ok(DelayStatistics {
            value_field: host::config("value_field").unwrap_or_else(|| "delay".into()),
            key_field: host::config("key_field"),
            time_field: host::config("time_field"),
        })
    }
}

impl Keying for DelayStatistics {
    /// A row whose value is null, or lacks the key field, has no key.
    fn assign(&mut self, row: &Row<'_>) -> Result<Assigned, String> {
        if self.key_field.is_none() && self.time_field.is_none() {
            return Ok(Assigned::default());
        }
        if row.value().is_none() {
            return Ok(Assigned {
                key: Key::Nothing,
                timestamp: None,
            });
        }
        let Value::Object(value) = parse(row)? else {
            return Err("the value is no JSON object".into());
        };
        let key = match &self.key_field {
            None => Key::Kept,
            Some(name) => match value.get(name) {
                None | Some(Value::Null) => Key::Nothing,
                Some(Value::String(text)) => Key::Is(text.clone().into_bytes()),
                Some(other) => Key::Is(other.to_string().into_bytes()),
            },
        };
        let timestamp = self.time_field.as_ref().map(|name| {
            let time = match value.get(name) {
                Some(Value::Number(number)) => number.as_i64(),
                Some(Value::String(text)) => calendar::millis(text),
                _ => None,
            };
            time.ok_or_else(|| format!("field {name:?} is no time"))
        });
        Ok(Assigned {
            key,
            timestamp: timestamp.transpose()?,
        })
    }
}

impl WindowAggregator for DelayStatistics {
    type Input = f64;
    type Accumulator = Statistics;

    fn read(&self, row: &Row<'_>) -> Result<f64, String> {
        let value = parse(row)?;
        let number = value.get(&self.value_field).and_then(Value::as_f64);
        number.ok_or_else(|| format!("field {:?} is no number", self.value_field))
    }

    fn begin(&self) -> Statistics {
        Statistics {
            count: 0,
            minimum: f64::INFINITY,
            sum: 0.0,
        }
    }

    fn fold(&self, statistics: &mut Statistics, input: &f64) {
        statistics.count += 1;
        statistics.minimum = statistics.minimum.min(*input);
        statistics.sum += input;
    }

    fn merge(&self, left: Statistics, right: Statistics) -> Statistics {
        Statistics {
            count: left.count + right.count,
            minimum: left.minimum.min(right.minimum),
            sum: left.sum + right.sum,
        }
    }

    /// 24 bytes, little-endian.
    fn encode(&self, statistics: &Statistics) -> Vec<u8> {
        let Statistics { count, minimum, sum } = statistics;
        [count.to_le_bytes(), minimum.to_le_bytes(), sum.to_le_bytes()].concat()
    }

    fn decode(&self, bytes: &[u8]) -> Statistics {
        let part = |at: usize| <[u8; 8]>::try_from(&bytes[at..at + 8]).expect("an accumulator has 24 bytes");
        Statistics {
            count: u64::from_le_bytes(part(0)),
            minimum: f64::from_le_bytes(part(8)),
            sum: f64::from_le_bytes(part(16)),
        }
    }

    fn fire(&self, firing: &Firing<'_>, statistics: &Statistics, output: &mut Output) {
        let average = statistics.sum / statistics.count as f64;
        let result = json!({
            "count": statistics.count,
            "minimum": shown(statistics.minimum),
            "average": shown(average),
        });
        output.row(Some(firing.key), Some(result.to_string().as_bytes()));
    }
}

fn parse(row: &Row<'_>) -> Result<Value, String> {
    let value = row.value().ok_or("the value is null")?;
    serde_json::from_slice(value).map_err(|error| format!("the value is no JSON: {error}"))
}

/// JSON has no infinities: they are shown as null.
fn shown(number: f64) -> Value {
    Number::from_f64(number).map_or(Value::Null, Value::Number)
}

keyed_aggregator!(DelayStatistics);
