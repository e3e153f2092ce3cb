//! One partition's folder: the names in it, its segments one after the other, and what stands beside them.

use std::io;
use std::path::{Path, PathBuf};

use model::{LeaderEpoch, Offset};

use super::{Looked, Recorded, VerifyOptions};
use crate::disk::{DirectoryEntry, Disk, OpenMode, read_small_file};
use crate::file_names::{CLEANED_SUFFIX, DELETED_SUFFIX, Kind, LEADER_EPOCH_CHECKPOINT, SWAP_SUFFIX, TEMPORARY_SUFFIX};
use crate::inspect::Watcher;
use crate::inspect::batch_file::{BatchFile, Step};
use crate::inspect::finding::{Fault, Finding, ListedEpoch};
use crate::inspect::snapshot_check::SnapshotChecks;
use crate::leader_epochs::LeaderEpochs;
use crate::log_directory::{PARTITION_METADATA, SMALL_FILE_BYTES_MAX, parse_partition_metadata};
use crate::recovery::CHECKPOINT_BYTES_MAX;

/// The snapshots of the metadata log are files of batches of this name's end.
const METADATA_SNAPSHOT_SUFFIX: &str = ".checkpoint";

/// A look at one partition.
pub(super) struct PartitionCheck<'a, D: Disk> {
    pub(super) disk: &'a D,
    pub(super) directory: &'a Path,
    pub(super) recorded: Recorded,
    pub(super) options: VerifyOptions,
    pub(super) watcher: &'a mut dyn Watcher,
    pub(super) looked: &'a mut Looked,
    entries: Vec<DirectoryEntry>,
    pub(super) snapshots: SnapshotChecks<'a, D>,
    epochs: Option<LeaderEpochs>,
    /// Told once: what follows from one wrong entry is no news.
    epochs_told: bool,
    last_epoch: Option<LeaderEpoch>,
    /// The offset that is to come next.
    pub(super) expected: Option<Offset>,
    /// Whether the cleaner was seen at work: gaps are as they should be.
    pub(super) is_compacted: bool,
    /// Read since the watcher was last told.
    pub(super) bytes_untold: u64,
}

impl<'a, D: Disk> PartitionCheck<'a, D> {
    pub(super) fn new(
        disk: &'a D,
        directory: &'a Path,
        recorded: Recorded,
        options: VerifyOptions,
        watcher: &'a mut dyn Watcher,
        looked: &'a mut Looked,
    ) -> io::Result<Self> {
        let entries = disk.list(directory)?;
        let is_compacted = recorded.cleaned_to.is_some();
        let mut snapshots: Vec<Offset> = bases(&entries, Kind::ProducerSnapshot).collect();
        snapshots.sort();
        Ok(PartitionCheck {
            disk,
            directory,
            recorded,
            options,
            watcher,
            looked,
            entries,
            snapshots: SnapshotChecks::new(disk, directory, snapshots, !is_compacted),
            epochs: None,
            epochs_told: false,
            last_epoch: None,
            expected: None,
            is_compacted,
            bytes_untold: 0,
        })
    }

    pub(super) fn run(mut self) {
        self.looked.partitions += 1;
        self.check_names();
        self.check_partition_metadata();
        self.read_epochs();
        let mut segments: Vec<Offset> = bases(&self.entries, Kind::Log).collect();
        segments.sort();
        for (number, base) in segments.iter().enumerate() {
            self.check_segment(*base, number + 1 == segments.len());
        }
        self.check_metadata_snapshots();
        self.finish(segments.is_empty());
    }

    pub(super) fn found(&mut self, path: PathBuf, fault: Fault) {
        self.watcher.found(Finding {
            path,
            position: None,
            offsets: None,
            fault,
        });
    }

    pub(super) fn found_at(&mut self, path: &Path, position: u64, offsets: Option<(Offset, Offset)>, fault: Fault) {
        self.watcher.found(Finding {
            path: path.to_owned(),
            position: Some(position),
            offsets,
            fault,
        });
    }

    fn check_names(&mut self) {
        let logs: Vec<Offset> = bases(&self.entries, Kind::Log).collect();
        let mut findings = Vec::new();
        for entry in &self.entries {
            let name = entry.name.as_str();
            let is_orphan = matches!(
                Kind::parse(name),
                Some((kind, base))
                    if kind != Kind::Log && Kind::OF_SEGMENT.contains(&kind) && logs.binary_search(&base).is_err()
            );
            let fault = if name.ends_with(DELETED_SUFFIX) {
                Fault::DeletedFile
            } else if name.ends_with(CLEANED_SUFFIX) {
                Fault::CleanedFile
            } else if name.ends_with(SWAP_SUFFIX) {
                Fault::SwapFile
            } else if name.ends_with(TEMPORARY_SUFFIX) {
                Fault::TemporaryFile
            } else if is_orphan {
                Fault::OrphanIndex
            } else {
                continue;
            };
            findings.push((self.directory.join(name), fault));
        }
        for (path, fault) in findings {
            self.found(path, fault);
        }
    }

    fn check_partition_metadata(&mut self) {
        let path = self.directory.join(PARTITION_METADATA);
        match read_small_file(self.disk, &path, SMALL_FILE_BYTES_MAX) {
            Ok(bytes) if parse_partition_metadata(&bytes).is_none() => self.found(path, Fault::PartitionMetadata),
            // The metadata log has none.
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => self.found(path, Fault::Io(error.to_string())),
        }
    }

    fn read_epochs(&mut self) {
        let path = self.epochs_path();
        match read_small_file(self.disk, &path, CHECKPOINT_BYTES_MAX) {
            Ok(bytes) => {
                self.epochs = std::str::from_utf8(&bytes).ok().and_then(LeaderEpochs::from_text);
                if self.epochs.is_none() {
                    self.epochs_told = true;
                    self.found(path, Fault::EpochsMalformed);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                self.epochs_told = true;
                self.found(path, Fault::Io(error.to_string()));
            }
        }
    }

    fn epochs_path(&self) -> PathBuf {
        self.directory.join(LEADER_EPOCH_CHECKPOINT)
    }

    /// The leader epoch of a sound batch against the one before it and against the checkpoint.
    pub(super) fn check_epoch(&mut self, path: &Path, position: u64, offsets: (Offset, Offset), found: LeaderEpoch) {
        // One wrong epoch is told once, not again with each batch that follows.
        if let Some(before) = self.last_epoch.replace(found).filter(|before| *before > found) {
            self.found_at(path, position, Some(offsets), Fault::EpochGoesBack { before, found });
            return;
        }
        if self.epochs_told {
            return;
        }
        let Some(epochs) = &self.epochs else {
            self.epochs_told = true;
            let path = self.epochs_path();
            self.found(path, Fault::EpochsMissing);
            return;
        };
        let listed = epochs.epoch_of(offsets.0);
        // What lies before the log's start is not listed any more.
        let is_readable = self.recorded.log_start.is_none_or(|start| offsets.1 > start);
        if listed != Some(found) && is_readable && !self.is_before_the_list(offsets) {
            self.epochs_told = true;
            let listed = ListedEpoch(listed);
            self.found_at(path, position, Some(offsets), Fault::EpochNotListed { found, listed });
        }
    }

    /// Whether a batch begins before the first epoch of the list and reaches into it: the log start may lie within it.
    fn is_before_the_list(&self, offsets: (Offset, Offset)) -> bool {
        let first = self.epochs.as_ref().and_then(|epochs| epochs.entries().first());
        first.is_some_and(|first| offsets.0 < first.start_offset && first.start_offset < offsets.1)
    }

    /// The snapshots that the metadata log has: files of batches that begin at offset 0.
    fn check_metadata_snapshots(&mut self) {
        let names: Vec<String> = self
            .entries
            .iter()
            .filter(|entry| entry.name.ends_with(METADATA_SNAPSHOT_SUFFIX))
            .map(|entry| entry.name.clone())
            .collect();
        for name in names {
            let path = self.directory.join(&name);
            let file = match BatchFile::open(self.disk, &path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => {
                    self.found(path, Fault::Io(error.to_string()));
                    continue;
                }
            };
            let walked = file.walk(0, |step| -> io::Result<bool> {
                match step {
                    Step::Batch(batch) if batch.is_sound => {}
                    Step::Batch(batch) => {
                        let offsets = (batch.header.first_offset(), batch.header.next_offset());
                        self.found_at(&path, batch.position, Some(offsets), Fault::Checksum);
                    }
                    Step::Unreadable(stretch) => {
                        let bytes = stretch.to - stretch.from;
                        let reason = stretch.reason;
                        self.found_at(&path, stretch.from, None, Fault::Unreadable { bytes, reason });
                    }
                }
                Ok(true)
            });
            if let Err(error) = walked {
                self.found(path, Fault::Io(error.to_string()));
            }
        }
    }

    /// What the checkpoints say against where the log ends.
    fn finish(mut self, is_empty: bool) {
        self.tell_read();
        let recorded = self.recorded;
        let end = match self.expected {
            Some(end) => end,
            None if is_empty => Offset::ZERO,
            None => return,
        };
        if let Some(recorded) = recorded.recovery_point.filter(|recorded| *recorded > end) {
            self.watcher.found(Finding {
                path: self.directory.to_owned(),
                position: None,
                offsets: Some((end, recorded)),
                fault: Fault::EndBelowRecoveryPoint { end, recorded },
            });
        }
        let directory = self.directory.to_owned();
        if let Some(recorded) = recorded.log_start.filter(|recorded| *recorded > end) {
            self.found(directory.clone(), Fault::LogStartAboveEnd { recorded, end });
        }
        if let Some(recorded) = recorded.high_watermark.filter(|recorded| *recorded > end) {
            self.found(directory.clone(), Fault::HighWatermarkAboveEnd { recorded, end });
        }
        if let Some(recorded) = recorded.cleaned_to.filter(|recorded| *recorded > end) {
            self.found(directory, Fault::CleanedAboveEnd { recorded, end });
        }
        let latest = self.epochs.as_ref().and_then(LeaderEpochs::latest);
        if let Some(latest) = latest.filter(|latest| latest.start_offset > end) {
            let epoch = latest.epoch;
            let path = self.epochs_path();
            self.found(path, Fault::EpochAboveEnd { epoch, end });
        }
        self.snapshots.finish(end, self.watcher);
    }

    pub(super) fn tell_read(&mut self) {
        self.watcher.read(std::mem::take(&mut self.bytes_untold));
    }

    /// Opens a file that may be missing.
    pub(super) fn open(&self, path: &Path) -> io::Result<Option<D::File>> {
        match self.disk.open(path, OpenMode::Read) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn bases(entries: &[DirectoryEntry], wanted: Kind) -> impl Iterator<Item = Offset> + '_ {
    entries.iter().filter_map(move |entry| match Kind::parse(&entry.name) {
        Some((kind, base)) if kind == wanted => Some(base),
        _ => None,
    })
}
