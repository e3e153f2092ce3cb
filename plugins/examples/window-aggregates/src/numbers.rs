//! Sums and comparisons of JSON numbers: whole numbers stay whole as long as they fit into 64 bits.

use serde_json::{Number, Value};

pub(crate) fn add(left: &Value, right: &Value) -> Value {
    if let (Some(left), Some(right)) = (left.as_i64(), right.as_i64())
        && let Some(sum) = left.checked_add(right)
    {
        return Value::from(sum);
    }
    let sum = Number::from_f64(float(left) + float(right));
    Value::Number(sum.expect("a sum that JSON can show"))
}

pub(crate) fn smaller(left: Value, right: Value) -> Value {
    if not_greater(&left, &right) { left } else { right }
}

pub(crate) fn greater(left: Value, right: Value) -> Value {
    if not_greater(&left, &right) { right } else { left }
}

fn not_greater(left: &Value, right: &Value) -> bool {
    match (left.as_i64(), right.as_i64()) {
        (Some(left), Some(right)) => left <= right,
        _ => float(left) <= float(right),
    }
}

pub(crate) fn float(number: &Value) -> f64 {
    number.as_f64().expect("only numbers are folded")
}
