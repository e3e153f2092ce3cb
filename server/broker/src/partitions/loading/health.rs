//! How the disks under the log directories are: which have failed, which are full, and what they have done.

use std::path::PathBuf;

use model::DirectoryId;
use storage::Disk;
use storage::disk::{DirectoryFailure, GuardedFigures, Room};

use super::{Directory, LogDirectories};
use crate::partitions::LogDisk;

/// What the disks of all directories have done since the node started.
#[derive(Clone, Copy, Debug, Default)]
pub struct DirectoryFigures {
    /// Directories that take no records for good: failed, or not opened at the start.
    pub offline: usize,
    /// Directories that take no records until there is room.
    pub full: usize,
    pub read_errors: u64,
    pub write_errors: u64,
    pub reserve_bytes: u64,
}

/// A directory that has failed.
pub(crate) struct FailedDirectory {
    pub(crate) path: PathBuf,
    pub(crate) failure: DirectoryFailure,
    /// The controllers' log lies in it.
    pub(crate) holds_metadata: bool,
}

/// What a directory is like, for who asks.
pub(crate) struct DirectoryState {
    pub(crate) path: PathBuf,
    pub(crate) is_offline: bool,
    pub(crate) room: Option<Room>,
}

impl LogDirectories {
    /// Returns when a directory has failed since the last time.
    pub(crate) async fn failed(&self) {
        self.failure.notified().await;
    }

    /// Those that have failed, or failed for worse, since they were asked for last.
    pub(crate) fn take_failures(&self) -> Vec<FailedDirectory> {
        let mut state = self.lock();
        let metadata = state.metadata_directory.clone();
        let mut failed = Vec::new();
        for directory in &mut state.directories {
            let kind = directory.failure_kind();
            let Some(failure) = directory
                .log_directory
                .disk()
                .failure()
                .filter(|_| kind > directory.told)
            else {
                continue;
            };
            directory.told = kind;
            let path = directory.log_directory.path().to_owned();
            failed.push(FailedDirectory {
                holds_metadata: metadata.as_ref() == Some(&path),
                path,
                failure,
            });
        }
        failed
    }

    /// The ids of the directories that are dead.
    pub(crate) fn offline_ids(&self) -> Vec<DirectoryId> {
        let state = self.lock();
        let dead = state.directories.iter().filter(|it| !it.is_readable());
        dead.filter_map(Directory::id).collect()
    }

    /// Whether there is a directory that takes records.
    pub(crate) fn has_writable(&self) -> bool {
        self.lock().directories.iter().any(Directory::is_writable)
    }

    /// Looks whether directories that were full have room again, and lets go at once of what is to be unlinked in those
    /// that have not: who still reads it has it open.
    pub(crate) fn look_for_room(&self) {
        let state = self.lock();
        let disks: Vec<LogDisk> = state
            .directories
            .iter()
            .map(|it| it.log_directory.disk().clone())
            .collect();
        drop(state);
        let full: Vec<LogDisk> = disks.into_iter().filter(|disk| !disk.reopen_with_room()).collect();
        if !full.is_empty() {
            self.unlink_where(|_, path| full.iter().any(|disk| path.starts_with(disk.directory())));
        }
    }

    /// What the disks of the directories have done.
    pub(crate) fn figures(&self) -> DirectoryFigures {
        let state = self.lock();
        let mut sum = DirectoryFigures {
            offline: state.missing.len(),
            ..DirectoryFigures::default()
        };
        for directory in &state.directories {
            let GuardedFigures {
                read_errors,
                write_errors,
                reserve_bytes,
                is_full,
            } = directory.log_directory.disk().figures();
            sum.offline += usize::from(!directory.is_writable());
            sum.full += usize::from(is_full);
            sum.read_errors += read_errors;
            sum.write_errors += write_errors;
            sum.reserve_bytes += reserve_bytes;
        }
        sum
    }

    /// All directories; may wait for the disk.
    pub(crate) fn states(&self) -> Vec<DirectoryState> {
        let state = self.lock();
        let mut states: Vec<DirectoryState> = Vec::new();
        for directory in &state.directories {
            let path = directory.log_directory.path();
            states.push(DirectoryState {
                path: path.to_owned(),
                is_offline: !directory.is_readable(),
                room: directory.log_directory.disk().room(path).ok(),
            });
        }
        states.extend(state.missing.iter().map(|path| DirectoryState {
            path: path.clone(),
            is_offline: true,
            room: None,
        }));
        states
    }
}
