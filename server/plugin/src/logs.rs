//! What the instances of one deployment have logged lately.
//!
//! A plugin may write as much as it likes: only so many bytes a second are kept, only so many in all, and what was left
//! out is counted.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use model::{PartitionIndex, Timestamp};

use crate::error::shorten_to;

/// Most bytes of text that are kept of one deployment.
pub const KEPT_BYTES_MAX: usize = 256 << 10;
/// Most entries that are kept of one deployment.
pub const KEPT_ENTRIES_MAX: usize = 2_000;
/// Bytes of text that one deployment may log in a second; an unused second is saved up, not more.
pub const BYTES_PER_SECOND_MAX: usize = 64 << 10;
/// Longest message, and longest name or value of a field, in bytes.
pub const TEXT_BYTES_MAX: usize = 4 << 10;
/// Most fields of one entry.
pub const FIELDS_MAX: usize = 32;
/// What an entry costs beside its text.
const ENTRY_BYTES: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Level::Trace => "trace",
            Level::Debug => "debug",
            Level::Info => "info",
            Level::Warn => "warn",
            Level::Error => "error",
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// Counts the entries of the deployment since the program started, from 0, those that were left out too.
    pub sequence: u64,
    pub time: Timestamp,
    /// Of the task that logged it.
    pub partition: PartitionIndex,
    pub level: Level,
    pub message: String,
    pub fields: Vec<(String, String)>,
}

impl LogEntry {
    fn size_bytes(&self) -> usize {
        let fields: usize = self.fields.iter().map(|(name, value)| name.len() + value.len()).sum();
        ENTRY_BYTES + self.message.len() + fields
    }
}

/// The latest entries of one deployment.
#[derive(Debug, Default)]
pub struct Logs {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    entries: VecDeque<LogEntry>,
    size_bytes: usize,
    next: u64,
    left_out: u64,
    /// The time up to which the allowance has been given, and what is left of it.
    allowance: Option<(Timestamp, usize)>,
}

impl Logs {
    #[must_use]
    pub fn new() -> Self {
        Logs::default()
    }

    /// Takes an entry, or counts it as left out if too much was logged in the last second.
    pub fn push(
        &self,
        now: Timestamp,
        partition: PartitionIndex,
        level: Level,
        mut message: String,
        mut fields: Vec<(String, String)>,
    ) {
        shorten_to(&mut message, TEXT_BYTES_MAX);
        fields.truncate(FIELDS_MAX);
        for text in fields.iter_mut().flat_map(|(name, value)| [name, value]) {
            shorten_to(text, TEXT_BYTES_MAX);
        }
        let mut kept = self.lock();
        let entry = LogEntry {
            sequence: kept.next,
            time: now,
            partition,
            level,
            message,
            fields,
        };
        kept.next += 1;
        let size = entry.size_bytes();
        if !kept.allow(now, size) {
            kept.left_out += 1;
            return;
        }
        kept.size_bytes += size;
        kept.entries.push_back(entry);
        while kept.entries.len() > KEPT_ENTRIES_MAX || kept.size_bytes > KEPT_BYTES_MAX {
            let oldest = kept.entries.pop_front().map_or(0, |entry| entry.size_bytes());
            kept.size_bytes -= oldest;
        }
    }

    /// Up to `limit` of the latest entries from sequence `from` on, the oldest first.
    #[must_use]
    pub fn entries(&self, from: u64, limit: usize) -> Vec<LogEntry> {
        let kept = self.lock();
        let first = kept.entries.partition_point(|entry| entry.sequence < from);
        let skipped = first.max(kept.entries.len().saturating_sub(limit));
        kept.entries.range(skipped..).cloned().collect()
    }

    /// How many entries were left out because too much was logged at once.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.lock().left_out
    }

    /// A thread that panicked while it held the lock left whole entries behind.
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn allow(&mut self, now: Timestamp, size: usize) -> bool {
        let (since, left) = self.allowance.unwrap_or((now, BYTES_PER_SECOND_MAX));
        let waited_ms = usize::try_from(now.millis().saturating_sub(since.millis())).unwrap_or(0);
        let gained = waited_ms.min(1_000) * BYTES_PER_SECOND_MAX / 1_000;
        let allowance = (left + gained).min(BYTES_PER_SECOND_MAX);
        let left = allowance.checked_sub(size);
        self.allowance = Some((now.max(since), left.unwrap_or(allowance)));
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(logs: &Logs, now: i64, message: &str) {
        let partition = PartitionIndex::new(0);
        logs.push(
            Timestamp::from_millis(now),
            partition,
            Level::Info,
            message.to_owned(),
            Vec::new(),
        );
    }

    #[test]
    fn a_flood_is_cut_to_its_rate_and_counted() {
        let logs = Logs::new();
        let line = "x".repeat(1_024 - ENTRY_BYTES);
        (0..100).for_each(|_| push(&logs, 0, &line));
        assert_eq!(logs.entries(0, usize::MAX).len(), BYTES_PER_SECOND_MAX / 1_024);
        assert_eq!(logs.left_out(), 36);
        push(&logs, 15, &line);
        assert_eq!(logs.left_out(), 37, "15 ms give no whole line");
        push(&logs, 31, &line);
        let last = logs.entries(0, 1).remove(0);
        assert_eq!((last.sequence, last.time.millis()), (101, 31));
    }

    #[test]
    fn a_clock_that_goes_back_gives_nothing() {
        let logs = Logs::new();
        let line = "x".repeat(TEXT_BYTES_MAX);
        (0..20).for_each(|_| push(&logs, 1_000, &line));
        let before = logs.entries(0, usize::MAX).len();
        (0..20).for_each(|_| push(&logs, 0, &line));
        (0..20).for_each(|_| push(&logs, 1_000, &line));
        assert_eq!(logs.entries(0, usize::MAX).len(), before);
    }

    #[test]
    fn the_oldest_make_room() {
        let logs = Logs::new();
        for now in 0..2 * i64::try_from(KEPT_ENTRIES_MAX).unwrap() {
            push(&logs, now * 100, "short");
        }
        let entries = logs.entries(0, usize::MAX);
        assert_eq!(entries.len(), KEPT_ENTRIES_MAX);
        assert_eq!(entries[0].sequence, KEPT_ENTRIES_MAX as u64);
        assert_eq!(
            logs.entries(entries[5].sequence, usize::MAX).len(),
            KEPT_ENTRIES_MAX - 5
        );
        (0..100).for_each(|second| push(&logs, 10_000_000 + second * 1_000, &"x".repeat(2 * TEXT_BYTES_MAX)));
        let bytes: usize = logs.entries(0, usize::MAX).iter().map(LogEntry::size_bytes).sum();
        assert!(
            (KEPT_BYTES_MAX - 2 * TEXT_BYTES_MAX..=KEPT_BYTES_MAX).contains(&bytes),
            "{bytes}"
        );
    }
}
