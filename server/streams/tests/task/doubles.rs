//! A plugin whose accumulator lists the rows that it holds, and which misbehaves where a row's value says so; and a shell
//! that does with effects what the broker does.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use model::{Offset, PartitionIndex, Timestamp};
use plugin::{
    Accumulated, Batch, BatchBuilder, CallError, Failure, Firing, FiringReason, Keying, Keys, KeysColumns, Output,
    OutputRow, Pane, Rejection, Row, Trap, TrapKind, WindowAggregator,
};
use streams::{
    ChangelogRecord, Commit, DeadLetter, DeadLetterSource, Effect, MemoryStore, Refusal, Refused, ResultRow, Task,
    TaskOptions,
};

/// What a row makes the plugin do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conduct {
    Fold,
    RejectKey,
    TrapKey,
    Reject,
    Trap,
    Interrupt,
}

impl Conduct {
    pub(crate) fn value(self) -> &'static [u8] {
        match self {
            Conduct::Fold => b"fold",
            Conduct::RejectKey => b"reject key",
            Conduct::TrapKey => b"trap key",
            Conduct::Reject => b"reject",
            Conduct::Trap => b"trap",
            Conduct::Interrupt => b"interrupt",
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) key: Option<&'static str>,
    pub(crate) time: i64,
    pub(crate) conduct: Conduct,
}

pub(crate) fn event(key: &'static str, time: i64) -> Event {
    Event {
        key: Some(key),
        time,
        conduct: Conduct::Fold,
    }
}

/// The events from `first` to `end`, each with its index as offset.
pub(crate) fn batch(events: &[Event], first: usize, end: usize) -> Batch {
    let mut builder = BatchBuilder::new(0, PartitionIndex::new(0), offset(first));
    for (index, event) in (first..).zip(&events[first..end]) {
        let key = event.key.map(str::as_bytes);
        let (time, value) = (Timestamp::from_millis(event.time), Some(event.conduct.value()));
        builder
            .push(offset(index), time, key, value, std::iter::empty())
            .expect("a test is small");
    }
    builder.finish()
}

pub(crate) fn offset(index: usize) -> Offset {
    Offset::new(i64::try_from(index).expect("a test is small"))
}

/// What a test wants of the plugin beyond what rows say; shared with the test while the task owns the plugin.
#[derive(Debug, Default)]
pub(crate) struct Wishes {
    /// How the next calls of `accumulate` fail; a call whose turn is `None` goes well.
    pub(crate) failures: Vec<Option<CallError>>,
    /// Trap when one of these windows (by start) is fired.
    pub(crate) trap_at_firing: Vec<i64>,
    /// Leave the origins of results out.
    pub(crate) no_origins: bool,
    /// Give out no result for the first firing of a call.
    pub(crate) skip_first: bool,
    /// Give one accumulator too few.
    pub(crate) short_answer: bool,
    /// What was seen: why each firing came, and the bytes of accumulators that each call brought.
    pub(crate) reasons: Vec<FiringReason>,
    pub(crate) accumulator_bytes: Vec<usize>,
}

/// The accumulator is a text: the offsets of its rows, in the order in which they came, separated by commas.
#[derive(Default)]
pub(crate) struct Listing {
    pub(crate) keyed: bool,
    pub(crate) wishes: Arc<Mutex<Wishes>>,
}

impl Listing {
    pub(crate) fn wishing(wishes: &Arc<Mutex<Wishes>>) -> Box<Listing> {
        Box::new(Listing {
            keyed: false,
            wishes: Arc::clone(wishes),
        })
    }
}

fn index(row: &Row<'_>) -> u32 {
    u32::try_from(row.index()).expect("a test is small")
}

fn rejecting(rows: &Batch, value: &[u8]) -> Vec<Rejection> {
    let bad = rows.rows().filter(|row| row.value() == Some(value));
    bad.map(|row| Rejection {
        row: index(&row),
        reason: format!("row {} asks for it", row.offset()),
    })
    .collect()
}

impl Keying for Listing {
    fn assign(&mut self, rows: &Batch) -> Result<Keys, Trap> {
        if let Some(row) = rows.rows().find(|row| row.value() == Some(Conduct::TrapKey.value())) {
            return Err(Trap::new(TrapKind::Fault, format!("key of row {}", row.offset())));
        }
        let rejections = rejecting(rows, Conduct::RejectKey.value());
        Ok(Keys::from_columns(
            KeysColumns {
                rejections,
                ..KeysColumns::default()
            },
            rows.len(),
        )?)
    }
}

impl WindowAggregator for Listing {
    fn keying(&mut self) -> Option<&mut dyn Keying> {
        if self.keyed { Some(self) } else { None }
    }

    fn accumulate(&mut self, rows: &Batch, panes: &[Pane]) -> Result<Accumulated, CallError> {
        let mut wishes = self.wishes.lock().expect("no test panics while it holds the wishes");
        let brought = panes
            .iter()
            .filter_map(|pane| pane.accumulator.as_ref())
            .map(Bytes::len)
            .sum();
        wishes.accumulator_bytes.push(brought);
        if !wishes.failures.is_empty()
            && let Some(failure) = wishes.failures.remove(0)
        {
            return Err(failure);
        }
        for (conduct, kind) in [
            (Conduct::Trap, TrapKind::Fault),
            (Conduct::Interrupt, TrapKind::Interrupted),
        ] {
            if let Some(row) = rows.rows().find(|row| row.value() == Some(conduct.value())) {
                return Err(Trap::new(kind, format!("row {}", row.offset())).into());
            }
        }
        let rejections = rejecting(rows, Conduct::Reject.value());
        let mut accumulators = Vec::new();
        for pane in panes {
            let mut list = pane.accumulator.as_ref().map_or(Vec::new(), |list| list.to_vec());
            for row in &pane.rows {
                if rejections.iter().all(|rejection| rejection.row != *row) {
                    let separator = if list.is_empty() { "" } else { "," };
                    list.extend(format!("{separator}{}", rows.row(*row as usize).offset()).bytes());
                }
                if pane.each {
                    accumulators.push(Bytes::from(list.clone()));
                }
            }
            if !pane.each {
                accumulators.push(Bytes::from(list));
            }
        }
        if wishes.short_answer {
            accumulators.pop();
        }
        Ok(Accumulated {
            accumulators,
            rejections,
        })
    }

    fn merge(&mut self, pairs: &[(Bytes, Bytes)]) -> Result<Vec<Bytes>, Trap> {
        Ok(pairs
            .iter()
            .map(|(left, right)| Bytes::from([left, &b","[..], right].concat()))
            .collect())
    }

    fn fire(&mut self, firings: &[Firing], output: &mut Output) -> Result<(), CallError> {
        let mut wishes = self.wishes.lock().expect("no test panics while it holds the wishes");
        wishes.reasons.extend(firings.iter().map(|firing| firing.reason));
        for (index, firing) in (0u32..).zip(firings) {
            if wishes.trap_at_firing.contains(&firing.window.start.millis()) {
                let reason = format!("window {}", firing.window.start);
                return Err(Trap::new(TrapKind::Fault, reason).into());
            }
            if index == 0 && wishes.skip_first {
                continue;
            }
            output.send(OutputRow {
                origin: (!wishes.no_origins).then_some(index),
                key: Some(firing.key.clone()),
                value: Some(firing.accumulator.clone()),
                ..OutputRow::default()
            })?;
        }
        Ok(())
    }
}

pub(crate) fn retry() -> Option<CallError> {
    Some(Failure::Retry("not now".into()).into())
}

/// A result as the tests look at it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Seen {
    pub(crate) key: String,
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) kind: String,
    pub(crate) rows: String,
    pub(crate) timestamp: i64,
}

impl Seen {
    pub(crate) fn of(result: &ResultRow) -> Seen {
        let text = |bytes: &Option<Bytes>| String::from_utf8_lossy(bytes.as_deref().unwrap_or_default()).into_owned();
        let header = |place: usize, name: &str| {
            assert_eq!(result.headers[place].name, name);
            text(&result.headers[place].value)
        };
        Seen {
            key: text(&result.key),
            start: header(0, "window.start").parse().expect("a number"),
            end: header(1, "window.end").parse().expect("a number"),
            kind: header(2, "window.kind"),
            rows: text(&result.value),
            timestamp: result.timestamp.millis(),
        }
    }
}

/// What a shell has made durable.
#[derive(Default)]
pub(crate) struct Shell {
    pub(crate) results: Vec<Seen>,
    /// The row that brought each result about.
    pub(crate) causes: Vec<Option<Offset>>,
    pub(crate) dead: Vec<DeadLetter>,
    pub(crate) refusals: Vec<Refusal>,
    pub(crate) changelog: Vec<ChangelogRecord>,
    pub(crate) commits: usize,
    pub(crate) back_offs: Vec<u64>,
    pub(crate) stopped: Option<String>,
    pub(crate) store_failed: Option<String>,
}

impl Shell {
    pub(crate) fn execute(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Commit(commit) => self.commit(commit),
                Effect::BackOff { wait, .. } => {
                    self.back_offs
                        .push(u64::try_from(wait.as_millis()).expect("a wait is short"));
                }
                Effect::Stop { reason } => self.stopped = Some(reason),
                Effect::StoreFailed { reason } => self.store_failed = Some(reason),
            }
        }
    }

    pub(crate) fn commit(&mut self, commit: Commit) {
        self.results.extend(commit.results.iter().map(Seen::of));
        self.causes.extend(commit.results.iter().map(|result| result.cause));
        self.dead.extend(commit.dead_letters);
        self.refusals.extend(commit.refusals);
        self.changelog.extend(commit.changelog);
        self.commits += 1;
    }

    /// The changelog with only the last word for each key, and without tombstones.
    pub(crate) fn compacted(&self) -> Vec<ChangelogRecord> {
        let last: BTreeMap<&Bytes, usize> = self
            .changelog
            .iter()
            .enumerate()
            .map(|(place, record)| (&record.key, place))
            .collect();
        let kept = self
            .changelog
            .iter()
            .enumerate()
            .filter(|(place, record)| last[&record.key] == *place);
        kept.map(|(_, record)| record)
            .filter(|record| record.value.is_some())
            .cloned()
            .collect()
    }

    pub(crate) fn dead_rows(&self) -> Vec<i64> {
        let rows = self.dead.iter().filter_map(|letter| match letter.source {
            DeadLetterSource::Row(offset) => Some(offset.get()),
            DeadLetterSource::Window(_) => None,
        });
        rows.collect()
    }

    /// Offset and number of windows that refused it; 0 for a null key.
    pub(crate) fn refused_rows(&self) -> Vec<(i64, u32)> {
        let windows = |why| match why {
            Refused::NullKey => 0,
            Refused::Late { windows, .. } => windows,
        };
        self.refusals
            .iter()
            .map(|refusal| (refusal.offset.get(), windows(refusal.why)))
            .collect()
    }
}

/// A task with this plugin, as the changelog left it.
pub(crate) fn restore(options: &TaskOptions, plugin: Box<Listing>, changelog: Vec<ChangelogRecord>) -> Task {
    Task::restore(options.clone(), plugin, Box::new(MemoryStore::new()), changelog).expect("the changelog is sound")
}

/// Feeds all events in one call.
pub(crate) fn feed(task: &mut Task, events: &[Event], shell: &mut Shell) {
    let mut effects = Vec::new();
    let first = usize::try_from(task.position().get()).expect("not negative");
    task.on_rows(&batch(events, first, events.len()), offset(events.len()), &mut effects);
    shell.execute(effects);
}
