//! From a changelog to a task.
//!
//! Records are taken in the order of the log, from its start or from where the local store ends. Commits of an owner
//! that had lost the task (a lower epoch after a higher) are passed over as a whole; a commit's progress record stands
//! before its panes.

use model::{Offset, Timestamp};
use plugin::WindowAggregator;

use super::{Calls, Counters, Task, TaskOptions, TaskState};
use crate::changelog::{ChangelogError, ChangelogKey, ChangelogRecord, PaneState, Progress, TaskEpoch};
use crate::store::{Store, StoreError};
use crate::watermark::Watermark;

/// Why a task cannot be restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error("the changelog cannot be read")]
    Changelog(#[from] ChangelogError),
    #[error("the changelog was written for other windows, grace or emission; they need another changelog")]
    OtherWindows,
    #[error("the task is at epoch {}, the changelog already at {}", mine.get(), theirs.get())]
    Fenced { mine: TaskEpoch, theirs: TaskEpoch },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A task that is being restored.
pub struct Restoration {
    options: TaskOptions,
    store: Box<dyn Store>,
    progress: Option<Progress>,
    /// The records that follow are those of a fenced owner.
    skipping: bool,
}

impl Restoration {
    /// `store` is empty, or holds what an earlier part of the same changelog says.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn new(options: TaskOptions, store: Box<dyn Store>) -> Result<Self, RestoreError> {
        let progress = store.get(&ChangelogKey::Progress.encode())?;
        let progress = progress.map(Progress::decode).transpose()?;
        Ok(Restoration {
            options,
            store,
            progress,
            skipping: false,
        })
    }

    /// Takes the next record of the changelog.
    ///
    /// # Errors
    /// If the record is not one of a changelog, or the store cannot take it.
    pub fn apply(&mut self, record: ChangelogRecord) -> Result<(), RestoreError> {
        match ChangelogKey::decode(record.key.clone())? {
            ChangelogKey::Progress => {
                let value = record.value.clone().ok_or(ChangelogError::NoProgress)?;
                let progress = Progress::decode(value)?;
                self.skipping = self
                    .progress
                    .as_ref()
                    .is_some_and(|latest| progress.epoch < latest.epoch);
                if !self.skipping {
                    self.progress = Some(progress);
                }
            }
            ChangelogKey::Pane { .. } => {
                record.value.clone().map(PaneState::decode).transpose()?;
            }
        }
        if !self.skipping {
            self.store.apply(std::slice::from_ref(&record))?;
        }
        Ok(())
    }

    /// The changelog ends at `changelog_end` and everything up to there was applied.
    ///
    /// # Errors
    /// If the store cannot write it.
    pub fn committed(&mut self, changelog_end: Offset) -> Result<(), RestoreError> {
        Ok(self.store.committed(changelog_end)?)
    }

    /// # Errors
    /// If the changelog belongs to other windows or to a later owner.
    pub fn finish(self, aggregator: Box<dyn WindowAggregator>) -> Result<Task, RestoreError> {
        let Restoration {
            options,
            store,
            progress,
            ..
        } = self;
        if let Some(progress) = &progress {
            let theirs = (progress.windows, progress.grace_ms, progress.emit);
            if theirs != (options.windows(), options.grace_ms(), options.emit) {
                return Err(RestoreError::OtherWindows);
            }
            if progress.epoch > options.epoch {
                return Err(RestoreError::Fenced {
                    mine: options.epoch,
                    theirs: progress.epoch,
                });
            }
        }
        let stream_time = progress.as_ref().and_then(|progress| progress.stream_time);
        Ok(Task {
            watermark: Watermark::new(stream_time, options.grace_ms()),
            position: progress.as_ref().map_or(options.start, |progress| progress.position),
            counters: progress
                .as_ref()
                .map_or_else(Counters::default, |progress| progress.counters),
            options,
            aggregator,
            store,
            calls: Calls::default(),
            attempt: 0,
            state: TaskState::Running,
            done_below: Timestamp::from_millis(0),
        })
    }
}
