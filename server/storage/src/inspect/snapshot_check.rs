//! Producer snapshots against the log: what a snapshot says of a producer's last batch must be what the log had come to.
//!
//! The log may know less than a snapshot (its oldest batches were deleted) and more (Kafka forgets silent producers);
//! both are as they should be. In a compacted log the two cannot be compared.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};

use model::record_batch::{BatchHeader, ControlType};
use model::{Offset, ProducerId};

use super::Watcher;
use super::finding::{Fault, Finding};
use crate::disk::{Disk, read_small_file};
use crate::file_names::Kind;
use crate::producer_state::{ProducerStates, SNAPSHOT_BYTES_MAX};

/// Above so many producers snapshots are only read, not compared.
const PRODUCERS_MAX: usize = 1_000_000;

/// # Errors
/// Why the bytes are no producer snapshot.
pub fn check_snapshot(bytes: &[u8]) -> Result<(), String> {
    ProducerStates::from_snapshot(bytes)
        .map(|_| ())
        .map_err(|error| error.to_string())
}

/// The snapshots of a partition, looked at while a walk over the log comes to their offsets.
pub(super) struct SnapshotChecks<'a, D> {
    disk: &'a D,
    directory: &'a Path,
    waiting: VecDeque<Offset>,
    producers: ProducerStates,
    /// Where the walk began.
    from: Option<Offset>,
    /// Whether what was read so far tells all that the log ever held from there on.
    comparable: bool,
}

impl<'a, D: Disk> SnapshotChecks<'a, D> {
    /// `offsets` ascend.
    pub(super) fn new(disk: &'a D, directory: &'a Path, offsets: Vec<Offset>, comparable: bool) -> Self {
        SnapshotChecks {
            disk,
            directory,
            waiting: offsets.into(),
            producers: ProducerStates::default(),
            from: None,
            comparable,
        }
    }

    /// The log has a batch next that begins at `offset`.
    pub(super) fn before(&mut self, offset: Offset, watcher: &mut dyn Watcher) {
        self.from.get_or_insert(offset);
        while let Some(next) = self.waiting.front().copied().filter(|next| *next <= offset) {
            self.waiting.pop_front();
            self.check(next, watcher);
        }
    }

    pub(super) fn note(&mut self, header: &BatchHeader, marker: Option<(ControlType, i32)>) {
        if self.comparable {
            self.producers.note(header, marker);
            if self.producers.len() > PRODUCERS_MAX {
                self.stop_comparing();
            }
        }
    }

    /// The log has gaps: what it says of producers is not all.
    pub(super) fn stop_comparing(&mut self) {
        self.comparable = false;
        self.producers = ProducerStates::default();
    }

    pub(super) fn finish(mut self, end: Offset, watcher: &mut dyn Watcher) {
        self.before(end, watcher);
        // Of what lies above the log says nothing.
        self.stop_comparing();
        for offset in std::mem::take(&mut self.waiting) {
            self.check(offset, watcher);
            let fault = Fault::SnapshotAboveEnd { end };
            watcher.found(self.finding(offset, fault));
        }
    }

    fn path(&self, offset: Offset) -> PathBuf {
        Kind::ProducerSnapshot.path(self.directory, offset)
    }

    fn finding(&self, offset: Offset, fault: Fault) -> Finding {
        Finding {
            path: self.path(offset),
            position: None,
            offsets: None,
            fault,
        }
    }

    fn check(&self, offset: Offset, watcher: &mut dyn Watcher) {
        let bytes = match read_small_file(self.disk, &self.path(offset), SNAPSHOT_BYTES_MAX) {
            Ok(bytes) => bytes,
            // A running node has removed it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => return watcher.found(self.finding(offset, Fault::Io(error.to_string()))),
        };
        match ProducerStates::from_snapshot(&bytes) {
            Err(error) => watcher.found(self.finding(offset, Fault::SnapshotUnreadable(error.to_string()))),
            Ok(snapshot) => {
                if let Some(producer) = self.differs(&snapshot, offset) {
                    watcher.found(self.finding(offset, Fault::SnapshotDiffers { producer }));
                }
            }
        }
    }

    /// A producer of whose last batch snapshot and log do not say the same.
    fn differs(&self, snapshot: &ProducerStates, of: Offset) -> Option<ProducerId> {
        let mut in_log = self.producers.last_of_each().peekable();
        for (id, last) in snapshot.last_of_each() {
            let Some(data_offset) = last.data_offset else { continue };
            let producer = ProducerId::from_wire(id);
            if data_offset >= of {
                return producer;
            }
            // Both come in the order of their ids.
            while in_log.next_if(|(other, _)| *other < id).is_some() {}
            let read_all = self.comparable && self.from.is_some_and(|from| data_offset >= from);
            if !read_all {
                continue;
            }
            let same = in_log
                .next_if(|(other, _)| *other == id)
                .is_some_and(|(_, logged)| logged.epoch == last.epoch && logged.data_offset == last.data_offset);
            if !same {
                return producer;
            }
        }
        None
    }
}
