//! A case's file.

use serde_json::{Map, Value};

use crate::window::WindowError;

/// Why a file is no case that can be run.
#[derive(Debug, thiserror::Error)]
pub enum CaseError {
    #[error("not JSON")]
    Json(#[from] serde_json::Error),
    #[error("no {0}")]
    Missing(&'static str),
    #[error("{0}: {1}")]
    Param(&'static str, String),
    #[error(transparent)]
    Windows(#[from] WindowError),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Must,
    Quirk,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    pub name: String,
    pub description: String,
    pub level: Level,
    pub operator: String,
    pub params: Params,
    pub input: Vec<Input>,
    /// `expected`, or `clean` for a quirk.
    pub wanted: Outcome,
}

/// The parameters that concern time windows.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Params {
    pub size_ms: Option<i64>,
    pub advance_ms: Option<i64>,
    pub grace_ms: Option<i64>,
    pub aggregate: Option<String>,
    pub emit: Option<String>,
    pub value_field: Option<String>,
    pub rekey_field: Option<String>,
    pub invalid_timestamps: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    pub key: Option<String>,
    pub value: Option<Value>,
    pub timestamp: i64,
}

#[derive(Clone, Debug, PartialEq, Default)]
pub struct Outcome {
    pub output: Vec<OutputEntry>,
    /// Input and how often it was refused.
    pub dropped: Vec<(usize, u64)>,
    pub store: Option<Vec<StoreEntry>>,
    pub error: Option<Value>,
}

/// One result; `input` is the row that brought it about.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputEntry {
    pub input: Option<usize>,
    pub key: Option<String>,
    pub window_start: Option<i64>,
    pub window_end: Option<i64>,
    pub value: Value,
    pub timestamp: i64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct StoreEntry {
    pub key: Option<String>,
    pub window_start: Option<i64>,
    pub window_end: Option<i64>,
    pub value: Value,
    pub timestamp: i64,
}

impl Case {
    /// # Errors
    /// If the text is not that of a case.
    pub fn parse(json: &str) -> Result<Case, CaseError> {
        let whole: Map<String, Value> = serde_json::from_str(json)?;
        let level = match string(&whole, "level").as_deref() {
            Some("must") => Level::Must,
            Some("quirk") => Level::Quirk,
            other => return Err(CaseError::Param("level", format!("{other:?}"))),
        };
        let params = whole
            .get("params")
            .and_then(Value::as_object)
            .ok_or(CaseError::Missing("params"))?;
        let wanted = match level {
            Level::Must => "expected",
            Level::Quirk => "clean",
        };
        Ok(Case {
            name: string(&whole, "name").ok_or(CaseError::Missing("name"))?,
            description: string(&whole, "description").unwrap_or_default(),
            level,
            operator: string(&whole, "operator").ok_or(CaseError::Missing("operator"))?,
            params: Params {
                size_ms: params.get("size_ms").and_then(Value::as_i64),
                advance_ms: params.get("advance_ms").and_then(Value::as_i64),
                grace_ms: params.get("grace_ms").and_then(Value::as_i64),
                aggregate: string(params, "aggregate"),
                emit: string(params, "emit"),
                value_field: string(params, "value_field"),
                rekey_field: string(params, "rekey_field"),
                invalid_timestamps: string(params, "invalid_timestamps"),
            },
            input: entries(whole.get("input"))?
                .iter()
                .map(input)
                .collect::<Result<_, _>>()?,
            wanted: outcome(
                whole
                    .get(wanted)
                    .and_then(Value::as_object)
                    .ok_or(CaseError::Missing(wanted))?,
            )?,
        })
    }
}

fn string(map: &Map<String, Value>, name: &str) -> Option<String> {
    map.get(name).and_then(Value::as_str).map(str::to_owned)
}

fn entries(value: Option<&Value>) -> Result<Vec<Map<String, Value>>, CaseError> {
    let Some(value) = value else { return Ok(Vec::new()) };
    let array = value.as_array().ok_or(CaseError::Missing("list of entries"))?;
    array
        .iter()
        .map(|entry| entry.as_object().cloned().ok_or(CaseError::Missing("object in a list")))
        .collect()
}

fn time(entry: &Map<String, Value>) -> Result<i64, CaseError> {
    entry
        .get("timestamp")
        .and_then(Value::as_i64)
        .ok_or(CaseError::Missing("timestamp"))
}

fn input(entry: &Map<String, Value>) -> Result<Input, CaseError> {
    let value = entry.get("value").filter(|value| !value.is_null()).cloned();
    Ok(Input {
        key: string(entry, "key"),
        value,
        timestamp: time(entry)?,
    })
}

fn outcome(map: &Map<String, Value>) -> Result<Outcome, CaseError> {
    let mut outcome = Outcome {
        error: map.get("error").cloned(),
        ..Outcome::default()
    };
    for entry in entries(map.get("output"))? {
        let index = entry
            .get("in")
            .and_then(Value::as_u64)
            .and_then(|index| usize::try_from(index).ok());
        let StoreEntry {
            key,
            window_start,
            window_end,
            value,
            timestamp,
        } = stored(&entry)?;
        outcome.output.push(OutputEntry {
            input: index,
            key,
            window_start,
            window_end,
            value,
            timestamp,
        });
    }
    for pair in map.get("dropped").and_then(Value::as_array).into_iter().flatten() {
        let number = |index: usize| {
            pair.get(index)
                .and_then(Value::as_u64)
                .ok_or(CaseError::Missing("dropped pair"))
        };
        outcome
            .dropped
            .push((usize::try_from(number(0)?).unwrap_or(usize::MAX), number(1)?));
    }
    if map.contains_key("store") {
        outcome.store = Some(
            entries(map.get("store"))?
                .iter()
                .map(stored)
                .collect::<Result<_, _>>()?,
        );
    }
    Ok(outcome)
}

fn stored(entry: &Map<String, Value>) -> Result<StoreEntry, CaseError> {
    Ok(StoreEntry {
        key: string(entry, "key"),
        window_start: entry.get("window_start").and_then(Value::as_i64),
        window_end: entry.get("window_end").and_then(Value::as_i64),
        value: entry.get("value").cloned().unwrap_or(Value::Null),
        timestamp: time(entry)?,
    })
}
