//! What differs between a case's outcome and ours, as far as it may not.
//!
//! Rows with the same `in` may come in any order, a dropped row may be counted differently (with `rekey_field` not at
//! all), floats may differ by 1e-9, and closed windows may still be in the store.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Case, Outcome, OutputEntry, StoreEntry};

pub(super) fn differences(case: &Case, ours: &Outcome, is_open: &dyn Fn(i64) -> bool) -> Vec<String> {
    let wanted = &case.wanted;
    let mut lines = Vec::new();
    match_up("result", &wanted.output, &ours.output, same_output, &mut lines);
    if let (Some(wanted), Some(ours)) = (&wanted.store, &ours.store) {
        let open = |entries: &[StoreEntry]| -> Vec<StoreEntry> {
            entries
                .iter()
                .filter(|entry| entry.window_end.is_none_or(is_open))
                .cloned()
                .collect()
        };
        match_up("store", &open(wanted), &open(ours), same_stored, &mut lines);
    }
    if case.params.rekey_field.is_none() {
        let dropped = |outcome: &Outcome| outcome.dropped.iter().map(|(input, _)| *input).collect::<BTreeSet<_>>();
        let (wanted, ours) = (dropped(wanted), dropped(ours));
        lines.extend(
            wanted
                .difference(&ours)
                .map(|input| format!("- dropped: input {input}")),
        );
        lines.extend(
            ours.difference(&wanted)
                .map(|input| format!("+ dropped: input {input}")),
        );
    }
    if wanted.error.is_some() != ours.error.is_some() {
        lines.push(format!("- error: {:?}", wanted.error));
        lines.push(format!("+ error: {:?}", ours.error));
    }
    lines
}

/// Each wanted entry has one of ours that is the same, and the reverse.
fn match_up<T: std::fmt::Debug>(
    what: &str,
    wanted: &[T],
    ours: &[T],
    same: impl Fn(&T, &T) -> bool,
    lines: &mut Vec<String>,
) {
    let mut left: Vec<&T> = ours.iter().collect();
    for want in wanted {
        match left.iter().position(|our| same(want, our)) {
            Some(place) => {
                left.remove(place);
            }
            None => lines.push(format!("- {what}: {want:?}")),
        }
    }
    lines.extend(left.iter().map(|our| format!("+ {what}: {our:?}")));
}

fn same_output(wanted: &OutputEntry, ours: &OutputEntry) -> bool {
    wanted.input == ours.input
        && wanted.key == ours.key
        && (wanted.window_start, wanted.window_end) == (ours.window_start, ours.window_end)
        && wanted.timestamp == ours.timestamp
        && same_value(&wanted.value, &ours.value)
}

fn same_stored(wanted: &StoreEntry, ours: &StoreEntry) -> bool {
    wanted.key == ours.key
        && (wanted.window_start, wanted.window_end) == (ours.window_start, ours.window_end)
        && wanted.timestamp == ours.timestamp
        && same_value(&wanted.value, &ours.value)
}

fn same_value(wanted: &Value, ours: &Value) -> bool {
    const TOLERANCE: f64 = 1e-9;
    match (wanted, ours) {
        (Value::Number(wanted), Value::Number(ours)) => match (wanted.as_i64(), ours.as_i64()) {
            (Some(wanted), Some(ours)) => wanted == ours,
            _ => match (wanted.as_f64(), ours.as_f64()) {
                (Some(wanted), Some(ours)) => (wanted - ours).abs() <= TOLERANCE * wanted.abs().max(1.0),
                _ => false,
            },
        },
        (Value::Array(wanted), Value::Array(ours)) => {
            wanted.len() == ours.len() && wanted.iter().zip(ours).all(|(wanted, ours)| same_value(wanted, ours))
        }
        (Value::Object(wanted), Value::Object(ours)) => {
            wanted.len() == ours.len()
                && wanted
                    .iter()
                    .all(|(name, wanted)| ours.get(name).is_some_and(|ours| same_value(wanted, ours)))
        }
        _ => wanted == ours,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_compared_as_numbers() {
        assert!(same_value(&json!({"avg": 8627.0}), &json!({"avg": 8627})));
        assert!(same_value(&json!([0.1]), &json!([0.100_000_000_000_1])));
        assert!(!same_value(&json!([0.1]), &json!([0.100_01])));
        assert!(!same_value(&json!({"a": 1}), &json!({"a": 1, "b": 2})));
        assert!(!same_value(
            &json!(9_007_199_254_740_993_i64),
            &json!(9_007_199_254_740_992_i64)
        ));
    }

    #[test]
    fn a_result_too_many_and_one_too_few_are_told_apart() {
        let entry = |key: &str| OutputEntry {
            input: Some(0),
            key: Some(key.to_owned()),
            window_start: None,
            window_end: None,
            value: Value::Null,
            timestamp: 0,
        };
        let mut lines = Vec::new();
        match_up(
            "result",
            &[entry("a"), entry("a")],
            &[entry("a"), entry("b")],
            same_output,
            &mut lines,
        );
        assert_eq!(lines.len(), 2);
        assert!(
            lines[0].starts_with("- result") && lines[0].contains("\"a\""),
            "{lines:?}"
        );
        assert!(
            lines[1].starts_with("+ result") && lines[1].contains("\"b\""),
            "{lines:?}"
        );
    }
}
