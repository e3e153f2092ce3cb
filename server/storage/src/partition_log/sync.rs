//! Group commit: one sync makes everything durable that was written before it began.
//!
//! The log hands out at most one [`SyncHandle`] at a time, with all files that need it: a segment that was left since,
//! with its indexes, comes before the active one. The shell runs it anywhere and reports the [`SyncDone`].

use std::io;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use model::{Offset, Timestamp};

use super::PartitionLog;
use crate::disk::{Disk, File, OpenMode};
use crate::log_directory::PARTITION_METADATA;

/// After so many synced bytes the synced offset is worth recording.
const RECOVERY_POINT_STEP_BYTES: u64 = 8 << 20;

/// What has to reach the disk.
#[derive(Debug)]
pub struct SyncHandle<D: Disk> {
    up_to: Offset,
    files: Vec<D::File>,
    directory: Option<Folder<D>>,
}

/// The log's folder, whose names have changed since the last sync.
#[derive(Debug)]
struct Folder<D> {
    disk: D,
    path: PathBuf,
    /// Whether its own name and what it says of its topic may not be on the disk yet.
    is_new: bool,
}

impl<D: Disk> Folder<D> {
    fn sync(&self) -> io::Result<()> {
        if self.is_new {
            match self.disk.open(&self.path.join(PARTITION_METADATA), OpenMode::Read) {
                Ok(file) => file.sync()?,
                // The controllers' log need not have one.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        self.disk.sync_directory(&self.path)?;
        match self.path.parent() {
            Some(parent) if self.is_new => self.disk.sync_directory(parent),
            _ => Ok(()),
        }
    }
}

/// The outcome of a sync, to be reported to [`PartitionLog::synced`].
#[derive(Debug)]
#[must_use = "the log waits for the outcome of its sync"]
pub struct SyncDone {
    up_to: Offset,
    result: io::Result<()>,
}

impl SyncDone {
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.result.is_ok()
    }
}

impl<D: Disk> SyncHandle<D> {
    /// Everything below is durable when this has run well.
    #[must_use]
    pub fn up_to(&self) -> Offset {
        self.up_to
    }

    /// Syncs; blocks for as long as the disk takes. It is not tried again: after a failed sync the kernel may have dropped
    /// what it could not write.
    pub fn run(self) -> SyncDone {
        let mut result = self.files.iter().try_for_each(File::sync);
        if let (Ok(()), Some(directory)) = (&result, &self.directory) {
            result = directory.sync();
        }
        SyncDone {
            up_to: self.up_to,
            result,
        }
    }
}

#[derive(Debug)]
pub(crate) struct SyncState<F> {
    /// Files of segments that were left and not synced since.
    files: Vec<F>,
    directory_changed: bool,
    is_new: bool,
    in_flight: bool,
    /// A sync that is on its way counts up to here at most: a truncation may have put other records behind it.
    cap: Offset,
    unsynced_since: Option<Timestamp>,
    unrecorded_bytes: u64,
    rolled: bool,
    recorded: Offset,
}

impl<F> SyncState<F> {
    /// Of a log of which all is synced up to `recorded`, but for these files. Where nothing is, the folder itself may be new.
    pub(crate) fn new(recorded: Offset, files: Vec<F>, directory_changed: bool) -> Self {
        SyncState {
            files,
            directory_changed,
            is_new: recorded == Offset::ZERO,
            in_flight: false,
            cap: Offset::MAX,
            unsynced_since: None,
            unrecorded_bytes: 0,
            rolled: false,
            recorded,
        }
    }

    /// Whether anything but what was appended, or a folder that nothing was written to, awaits a sync.
    pub(super) fn is_pending(&self) -> bool {
        self.in_flight || self.directory_changed || !self.files.is_empty()
    }

    pub(super) fn note_append(&mut self, size_bytes: u64, now: Timestamp) {
        self.unrecorded_bytes += size_bytes;
        self.unsynced_since.get_or_insert(now);
    }

    pub(super) fn note_roll(&mut self, log: F, others: Vec<F>) {
        self.files.push(log);
        self.note_files(others);
    }

    /// Files beside the active segment's log that are to be synced with it, and were made just now.
    pub(super) fn note_files(&mut self, files: Vec<F>) {
        self.files.extend(files);
        self.directory_changed = true;
        self.rolled = true;
    }

    pub(super) fn note_truncation(&mut self, log_end: Offset) {
        self.cap = self.cap.min(log_end);
        self.directory_changed = true;
    }

    pub(super) fn recorded(&self) -> Offset {
        self.recorded
    }
}

impl<D: Disk> PartitionLog<D> {
    /// The names in the folder have changed.
    pub(crate) fn note_names(&mut self) {
        self.sync.directory_changed = true;
    }

    /// What has to be synced so that everything appended so far is durable; `None` if it is, or if a sync is running:
    /// call again when that has been reported.
    pub fn begin_sync(&mut self) -> Option<SyncHandle<D>> {
        if self.sync.in_flight || self.is_offline() || self.synced_offset() >= self.log_end_offset() {
            return None;
        }
        Some(self.take_sync())
    }

    fn take_sync(&mut self) -> SyncHandle<D> {
        // Not synced here, but there for tools that look at the files of a running node.
        self.write_indexes();
        let mut files = std::mem::take(&mut self.sync.files);
        files.push(self.active.segment.log.clone());
        let has_changed = std::mem::take(&mut self.sync.directory_changed);
        let is_new = std::mem::take(&mut self.sync.is_new);
        self.sync.in_flight = true;
        self.sync.cap = self.log_end_offset();
        self.sync.unsynced_since = None;
        SyncHandle {
            up_to: self.log_end_offset(),
            files,
            directory: (has_changed || is_new).then(|| Folder {
                disk: self.disk.clone(),
                path: self.directory.clone(),
                is_new,
            }),
        }
    }

    /// Takes in how a sync went. Returns the synced offset.
    ///
    /// # Errors
    /// The sync's error; the log is offline then.
    pub fn synced(&mut self, done: SyncDone) -> io::Result<Offset> {
        self.sync.in_flight = false;
        if let Err(error) = done.result {
            self.shared.offline.store(true, Ordering::Release);
            return Err(error);
        }
        let synced = done.up_to.min(self.sync.cap);
        self.shared.synced.fetch_max(synced.get(), Ordering::AcqRel);
        Ok(self.synced_offset())
    }

    /// Syncs here and now, on this thread.
    ///
    /// # Errors
    /// As [`PartitionLog::synced`]; also if a sync is running elsewhere.
    pub fn sync_now(&mut self) -> io::Result<()> {
        if self.is_offline() {
            return Err(io::Error::other("the log is offline"));
        }
        if self.sync.in_flight {
            return Err(io::Error::other("a sync of the log is running"));
        }
        let done = self.take_sync().run();
        self.synced(done).map(|_| ())
    }

    /// Whether `flush.messages` or `flush.ms` ask for a sync although nobody waits for one.
    #[must_use]
    pub fn sync_is_due(&self, now: Timestamp) -> bool {
        let unsynced = self.log_end_offset().since(self.synced_offset());
        let waited = self
            .sync
            .unsynced_since
            .map_or(0, |since| match now.millis().saturating_sub(since.millis()) {
                // The clock was set back: how long it was is not known.
                waited if waited < 0 => i64::MAX,
                waited => waited,
            });
        unsynced > 0 && (unsynced >= self.options.flush_messages || waited >= self.options.flush_ms)
    }

    /// The offset to write into the directory's recovery point checkpoint: all below is durable.
    #[must_use]
    pub fn recovery_point(&self) -> Offset {
        self.synced_offset()
    }

    /// Whether the recovery point has moved far enough to be recorded: a segment was left, or some megabytes were synced.
    #[must_use]
    pub fn recovery_point_due(&self) -> bool {
        self.synced_offset() > self.sync.recorded
            && (self.sync.rolled || self.sync.unrecorded_bytes >= RECOVERY_POINT_STEP_BYTES)
    }

    /// Notes that the checkpoint on the disk says `point`.
    pub fn recovery_point_recorded(&mut self, point: Offset) {
        self.sync.recorded = point;
        self.sync.rolled = false;
        self.sync.unrecorded_bytes = 0;
    }
}
