//! The commit that is being filled, and its end.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::{Commit, DeadLetter, Effect, Refusal, ResultRow, Task};
use crate::changelog::ChangelogRecord;

/// What has been settled since the last commit. Of a pane that changed several times only the last state counts.
#[derive(Default)]
pub(super) struct OpenCommit {
    pub results: Vec<ResultRow>,
    pub dead_letters: Vec<DeadLetter>,
    pub refusals: Vec<Refusal>,
    changes: BTreeMap<Bytes, Option<Bytes>>,
    change_bytes: usize,
    result_bytes: usize,
    /// Position or state has moved.
    moved: bool,
}

impl OpenCommit {
    pub(super) fn would_exceed(&self, commit_bytes: usize, changes: &[ChangelogRecord]) -> bool {
        !self.changes.is_empty() && self.change_bytes + size_bytes(changes) > commit_bytes
    }

    pub(super) fn has_results_beyond(&self, bytes: usize) -> bool {
        self.result_bytes > bytes
    }

    pub(super) fn touch(&mut self) {
        self.moved = true;
    }

    pub(super) fn take_changes(&mut self, changes: Vec<ChangelogRecord>) {
        self.touch();
        for change in changes {
            self.change_bytes += change.size_bytes();
            let key = change.key.clone();
            if let Some(replaced) = self.changes.insert(change.key, change.value) {
                self.change_bytes -= ChangelogRecord { key, value: replaced }.size_bytes();
            }
        }
    }

    pub(super) fn take_results(&mut self, results: Vec<ResultRow>) {
        self.result_bytes += results.iter().map(result_size_bytes).sum::<usize>();
        self.results.extend(results);
    }
}

/// Bytes of a batch of changes.
pub(super) fn size_bytes(changes: &[ChangelogRecord]) -> usize {
    changes.iter().map(ChangelogRecord::size_bytes).sum()
}

pub(super) fn result_size_bytes(result: &ResultRow) -> usize {
    let length = |part: &Option<Bytes>| part.as_ref().map_or(0, Bytes::len);
    let headers: usize = result
        .headers
        .iter()
        .map(|header| header.name.len() + length(&header.value))
        .sum();
    length(&result.key) + length(&result.value) + headers
}

impl Task {
    /// Ends the open commit at the task's position.
    pub(super) fn flush(&self, open: &mut OpenCommit, effects: &mut Vec<Effect>) {
        let open = std::mem::take(open);
        if !open.moved {
            return;
        }
        let progress = self.progress_record();
        let changes = open
            .changes
            .into_iter()
            .map(|(key, value)| ChangelogRecord { key, value });
        effects.push(Effect::Commit(Commit {
            results: open.results,
            dead_letters: open.dead_letters,
            refusals: open.refusals,
            changelog: std::iter::once(progress).chain(changes).collect(),
            position: self.position,
        }));
    }
}
