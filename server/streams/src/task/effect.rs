//! What a task asks of its shell.

use std::time::Duration;

use bytes::Bytes;
use model::{Offset, PartitionIndex, Timestamp};
use plugin::{Header, Window};

use crate::changelog::ChangelogRecord;

/// To be executed in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    Commit(Commit),
    /// Wait, call [`resume`](super::Task::resume), then read on at the task's position.
    BackOff {
        wait: Duration,
        attempt: u32,
        reason: String,
    },
    /// The task takes no more rows.
    Stop {
        reason: String,
    },
    /// The same, but only because its local store cannot be read: the store is to be emptied and the task restored from
    /// the changelog.
    StoreFailed {
        reason: String,
    },
}

/// Output and state that belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    pub results: Vec<ResultRow>,
    pub dead_letters: Vec<DeadLetter>,
    /// Rows that left no trace in some or all of their windows, for logs; the counters have counted them.
    pub refusals: Vec<Refusal>,
    /// One batch, appended when all of the above has been acknowledged.
    pub changelog: Vec<ChangelogRecord>,
    /// The next row to read once the batch is there.
    pub position: Offset,
}

/// One result of one window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultRow {
    /// Which of the processor's outputs, from 0.
    pub output: u32,
    /// `None`: by key.
    pub partition: Option<PartitionIndex>,
    pub timestamp: Timestamp,
    pub key: Option<Bytes>,
    pub value: Option<Bytes>,
    /// The plugin's own, after `window.start`, `window.end` and `window.kind`.
    pub headers: Vec<Header>,
    /// The row that brought the result about: the one folded, or the one that closed the window. `None` for a result
    /// that was still due when the task was restored or backed off.
    pub cause: Option<Offset>,
}

/// Something that the plugin refused or broke at, for the dead-letter topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    pub source: DeadLetterSource,
    pub key: Option<Bytes>,
    pub value: Option<Bytes>,
    /// Names are the row's bytes as text; what is not UTF-8 is replaced.
    pub headers: Vec<Header>,
    pub timestamp: Timestamp,
    pub reason: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadLetterSource {
    /// The row of the input at this offset, unchanged.
    Row(Offset),
    /// The final result of this window: the value is the accumulator.
    Window(Window),
}

/// A row that was passed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub offset: Offset,
    pub why: Refused,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    NullKey,
    /// Late for `windows` of the `of` windows that hold its event time.
    Late {
        windows: u32,
        of: u32,
    },
}
