//! Processors, modules and tasks as people read them. What an answer lacks is shown as `-`.

use serde_json::Value;

use crate::commands::duration::shown;
use crate::output::{Table, print_line};

/// How much of a digest is enough to tell modules apart by eye.
const DIGEST_SHOWN: usize = 12;

/// A text of an object.
pub(super) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or("-")
}

/// Anything of an object.
fn cell(value: &Value, name: &str) -> String {
    match &value[name] {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn short_digest(value: &Value, name: &str) -> String {
    text(value, name).chars().take(DIGEST_SHOWN).collect()
}

fn window(spec: &Value) -> String {
    let millis = |name: &str| spec[name].as_i64();
    let mut line = text(spec, "type").to_owned();
    if let Some(size) = millis("size_ms") {
        line.push_str(&format!(" {}", shown(size)));
    }
    if let Some(advance) = millis("advance_ms") {
        line.push_str(&format!(" by {}", shown(advance)));
    }
    if let Some(grace) = millis("grace_ms").filter(|grace| *grace != 0) {
        line.push_str(&format!(", grace {}", shown(grace)));
    }
    line
}

pub(super) fn processors(rows: &[Value]) -> Table {
    let mut table = Table::new(&[
        "NAME", "STATE", "VERSION", "INPUT", "OUTPUT", "WINDOW", "EMIT", "MODULE",
    ]);
    for row in rows {
        table.row([
            cell(row, "name"),
            cell(row, "state"),
            cell(row, "version"),
            cell(row, "input"),
            cell(row, "output"),
            window(&row["window"]),
            cell(row, "emit"),
            short_digest(row, "module"),
        ]);
    }
    table
}

pub(super) fn modules(rows: &[Value]) -> Table {
    let mut table = Table::new(&["SHA256", "NAME", "VERSION", "KIND", "SIZE"]);
    for row in rows {
        table.row([
            cell(row, "sha256"),
            cell(row, "name"),
            cell(row, "version"),
            cell(row, "world"),
            cell(row, "size"),
        ]);
    }
    table
}

pub(super) fn module_line(module: &Value) -> String {
    format!(
        "{} {}, a {} of {} bytes",
        text(module, "name"),
        text(module, "version"),
        text(module, "world"),
        module["size"]
    )
}

pub(super) fn module(module: &Value) -> anyhow::Result<()> {
    print_line(&format!("{}\n{}", text(module, "sha256"), module_line(module)))?;
    if let Some(doc) = module["doc"].as_str().filter(|doc| !doc.is_empty()) {
        print_line(doc)?;
    }
    let parameters = module["parameters"].as_array().map_or(&[][..], Vec::as_slice);
    if parameters.is_empty() {
        return Ok(());
    }
    print_line("")?;
    let mut table = Table::new(&["SETTING", "REQUIRED", "DEFAULT", "WHAT IT IS"]);
    for parameter in parameters {
        table.row([
            cell(parameter, "name"),
            if parameter["required"] == true { "yes" } else { "no" }.to_owned(),
            cell(parameter, "default"),
            cell(parameter, "doc"),
        ]);
    }
    Ok(table.print()?)
}

pub(super) fn processor(processor: &Value) -> anyhow::Result<()> {
    print_line(&format!(
        "{}, version {}, {}\n",
        text(processor, "name"),
        processor["version"],
        text(processor, "state")
    ))?;
    let mut table = Table::new(&["WHAT", "VALUE"]);
    let rows = [
        ("module", cell(processor, "module")),
        ("input", cell(processor, "input")),
        ("from", cell(processor, "from")),
        ("output", cell(processor, "output")),
        ("dead letters", cell(processor, "dead_letter_topic")),
        ("changelog", cell(processor, "changelog_topic")),
        ("window", window(&processor["window"])),
        ("emit", cell(processor, "emit")),
    ];
    for (what, value) in rows {
        table.row([what.to_owned(), value]);
    }
    if let Some(config) = processor["config"].as_object() {
        for name in config.keys() {
            table.row([format!("config {name}"), cell(&processor["config"], name)]);
        }
    }
    Ok(table.print()?)
}

pub(super) fn tasks(status: &Value) -> Table {
    let headings = [
        "PARTITION",
        "BROKER",
        "STATE",
        "POSITION",
        "END",
        "LAG",
        "STREAM TIME",
        "PROCESSED",
        "LATE",
        "NO KEY",
        "REJECTED",
        "TRAPS",
        "REASON",
    ];
    let names = [
        "partition",
        "broker",
        "state",
        "position",
        "end_offset",
        "lag",
        "stream_time",
        "processed",
        "late",
        "null_keys",
        "rejected",
        "traps",
        "reason",
    ];
    let mut table = Table::new(&headings);
    for task in status["tasks"].as_array().map_or(&[][..], Vec::as_slice) {
        table.row(names.iter().map(|name| cell(task, name)));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn windows_are_shown_in_the_units_that_they_were_meant_in() {
        let hopping = json!({"type": "hopping", "size_ms": 3_600_000, "advance_ms": 900_000, "grace_ms": 0});
        assert_eq!(window(&hopping), "hopping 1h by 15m");
        let tumbling = json!({"type": "tumbling", "size_ms": 1_500, "grace_ms": 60_000});
        assert_eq!(window(&tumbling), "tumbling 1500ms, grace 1m");
        assert_eq!(window(&Value::Null), "-");
    }
}
