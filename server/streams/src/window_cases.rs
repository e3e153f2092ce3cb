//! Runs the recorded window cases (`tests/cases/windows`) against a plugin: one suite for native and foreign ones.
//!
//! A case says what goes in and what must come out; its README says what may differ. Of each `must` case the outcome is
//! `expected`, of each `quirk` case `clean`.

mod case;
mod compare;
mod tally;

pub use case::{Case, CaseError, Input, Level, Outcome, OutputEntry, Params, StoreEntry};
pub use tally::Tally;

use bytes::Bytes;
use model::{Offset, PartitionIndex, Timestamp};
use plugin::builtin::{Aggregate, FieldKey, JsonAggregate};
use plugin::{BatchBuilder, Firing, FiringReason, Output, OutputBounds, WindowAggregator};
use serde_json::Value;

use crate::emit::{Emit, WINDOW_END, WINDOW_START};
use crate::store::MemoryStore;
use crate::task::{
    Commit, DeadLetterSource, Effect, InvalidTimestamps, ResultRow, StoredPane, Task, TaskOptions, TaskState,
};
use crate::window::{Hopping, Tumbling, Windows};

/// Most panes of a case that are compared with its `store`.
const PANES_MAX: usize = 100_000;

/// What became of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Passed,
    /// A line for each difference.
    Failed(Vec<String>),
    /// Its operator is not built.
    Skipped(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    pub verdict: Verdict,
    /// How often the plugin was called.
    pub guest_calls: u64,
}

/// Makes the plugin that a case's parameters ask for.
pub type Plugins<'a> = &'a mut dyn FnMut(&Params) -> Result<Box<dyn WindowAggregator>, CaseError>;

/// The native double for a case.
///
/// # Errors
/// If the case asks for an aggregate that there is not.
pub fn native(params: &Params) -> Result<Box<dyn WindowAggregator>, CaseError> {
    let aggregate = match params.aggregate.as_deref() {
        Some("count") => Aggregate::Count,
        Some("sum") => Aggregate::Sum,
        Some("min") => Aggregate::Min,
        Some("max") => Aggregate::Max,
        Some("list") => Aggregate::List,
        Some("stats") => Aggregate::Stats,
        other => return Err(CaseError::Param("aggregate", format!("{other:?}"))),
    };
    let keying = params.rekey_field.clone().map(|field| FieldKey {
        key_field: Some(field),
        time_field: None,
    });
    Ok(Box::new(JsonAggregate {
        aggregate,
        value_field: params.value_field.clone(),
        keying,
    }))
}

/// Feeds a case to a task in calls of as many rows as `cut` says (at least one), and compares.
///
/// # Errors
/// If the case itself is unsound.
pub fn run(case: &Case, plugins: Plugins<'_>, cut: &mut dyn FnMut() -> usize) -> Result<Run, CaseError> {
    let Some(windows) = windows(case)? else {
        let skipped = format!("operator {} not built", case.operator);
        return Ok(Run {
            verdict: Verdict::Skipped(skipped),
            guest_calls: 0,
        });
    };
    let params = &case.params;
    let emit = match params.emit.as_deref() {
        Some("update") => Emit::Update,
        Some("final" | "final_suppress") => Emit::Final,
        other => return Err(CaseError::Param("emit", format!("{other:?}"))),
    };
    let mut options = TaskOptions::new(windows, params.grace_ms.unwrap_or(0), emit)?;
    if params.invalid_timestamps.as_deref() == Some("fail") {
        options.invalid_timestamps = InvalidTimestamps::Stop;
    }
    let store = Box::new(MemoryStore::new());
    let mut task = Task::restore(options, plugins(params)?, store, [])
        .map_err(|error| CaseError::Param("input", error.to_string()))?;
    let commits = feed(&mut task, &case.input, cut);
    let mut outcome = outcome(&commits)?;
    outcome.store = Some(stored(&task, plugins(params)?)?);
    if let TaskState::Stopped { reason } | TaskState::BackingOff { reason } = task.state() {
        outcome.error = Some(Value::from(reason.clone()));
    }
    let is_open = |end: i64| {
        !task
            .watermark()
            .has_closed(windows.starting_at(before(end, windows.size_ms())))
    };
    let differences = compare::differences(case, &outcome, &is_open);
    let verdict = if differences.is_empty() {
        Verdict::Passed
    } else {
        Verdict::Failed(differences)
    };
    Ok(Run {
        verdict,
        guest_calls: task.calls().guest_calls,
    })
}

fn before(end: i64, size_ms: i64) -> Timestamp {
    Timestamp::from_millis(end.saturating_sub(size_ms))
}

/// `None` for an operator that is not built.
fn windows(case: &Case) -> Result<Option<Windows>, CaseError> {
    let size = || case.params.size_ms.ok_or(CaseError::Param("size_ms", "missing".into()));
    let advance = || {
        case.params
            .advance_ms
            .ok_or(CaseError::Param("advance_ms", "missing".into()))
    };
    Ok(match case.operator.as_str() {
        "tumbling" => Some(Windows::Tumbling(Tumbling::new(size()?)?)),
        "hopping" => Some(Windows::Hopping(Hopping::new(size()?, advance()?)?)),
        _ => None,
    })
}

/// The offset of a row is its place in the input.
fn feed(task: &mut Task, input: &[Input], cut: &mut dyn FnMut() -> usize) -> Vec<Commit> {
    let mut commits = Vec::new();
    let mut at = 0;
    while at < input.len() {
        let end = input.len().min(at + cut().max(1));
        let base = offset(at);
        let mut builder = BatchBuilder::new(0, PartitionIndex::new(0), base);
        for (index, row) in (at..).zip(&input[at..end]) {
            let key = row.key.as_ref().map(String::as_bytes);
            let value = row.value.as_ref().map(Value::to_string);
            let time = Timestamp::from_millis(row.timestamp);
            builder
                .push(
                    offset(index),
                    time,
                    key,
                    value.as_ref().map(String::as_bytes),
                    std::iter::empty(),
                )
                .expect("a case is small");
        }
        let mut effects = Vec::new();
        task.on_rows(&builder.finish(), offset(end), &mut effects);
        commits.extend(effects.into_iter().filter_map(|effect| match effect {
            Effect::Commit(commit) => Some(commit),
            Effect::BackOff { .. } | Effect::Stop { .. } | Effect::StoreFailed { .. } => None,
        }));
        at = end;
    }
    commits
}

fn offset(index: usize) -> Offset {
    Offset::new(i64::try_from(index).expect("a case is small"))
}

fn outcome(commits: &[Commit]) -> Result<Outcome, CaseError> {
    let mut outcome = Outcome::default();
    for commit in commits {
        for result in &commit.results {
            outcome.output.push(entry(result)?);
        }
        let dead = commit.dead_letters.iter().filter_map(|letter| match letter.source {
            DeadLetterSource::Row(offset) => Some(offset),
            DeadLetterSource::Window(_) => None,
        });
        let refused = commit.refusals.iter().map(|refusal| refusal.offset);
        for offset in dead.chain(refused) {
            outcome
                .dropped
                .push((usize::try_from(offset.get()).unwrap_or(usize::MAX), 1));
        }
    }
    Ok(outcome)
}

fn entry(result: &ResultRow) -> Result<OutputEntry, CaseError> {
    let header = |name: &str| {
        let header = result.headers.iter().find(|header| header.name == name);
        let text = header
            .and_then(|header| header.value.as_deref())
            .map(String::from_utf8_lossy);
        text.and_then(|text| text.parse().ok())
            .ok_or(CaseError::Param("header", format!("{name} is no number")))
    };
    Ok(OutputEntry {
        input: result.cause.and_then(|cause| usize::try_from(cause.get()).ok()),
        key: text(result.key.as_ref()),
        window_start: Some(header(WINDOW_START)?),
        window_end: Some(header(WINDOW_END)?),
        value: json(result.value.as_ref())?,
        timestamp: result.timestamp.millis(),
    })
}

/// What the panes in the store would give as results.
fn stored(task: &Task, mut plugin: Box<dyn WindowAggregator>) -> Result<Vec<StoreEntry>, CaseError> {
    let unreadable = |error: &dyn std::fmt::Display| CaseError::Param("store", error.to_string());
    let panes = task.panes(None, PANES_MAX).map_err(|error| unreadable(&error))?;
    let firing = |pane: &StoredPane| Firing {
        window: pane.window,
        key: pane.key.clone(),
        accumulator: pane.accumulator.clone(),
        timestamp: pane.timestamp,
        reason: FiringReason::Early,
    };
    let firings: Vec<_> = panes.iter().map(firing).collect();
    let origins = u32::try_from(firings.len()).expect("bounded by PANES_MAX");
    let mut output = Output::new(OutputBounds { outputs: 1, origins });
    plugin.fire(&firings, &mut output).map_err(|error| unreadable(&error))?;
    let rows = output.into_rows();
    panes
        .iter()
        .zip(&rows)
        .map(|(pane, row)| {
            Ok(StoreEntry {
                key: text(Some(&pane.key)),
                window_start: Some(pane.window.start.millis()),
                window_end: Some(pane.window.end.millis()),
                value: json(row.value.as_ref())?,
                timestamp: pane.timestamp.millis(),
            })
        })
        .collect()
}

fn text(bytes: Option<&Bytes>) -> Option<String> {
    bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}

fn json(bytes: Option<&Bytes>) -> Result<Value, CaseError> {
    bytes.map_or(Ok(Value::Null), |bytes| Ok(serde_json::from_slice(bytes)?))
}
