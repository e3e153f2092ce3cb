//! Makes the indexes of a partition anew from its log, and the producer snapshots that are missing or of no use.
//!
//! ```text
//! BASE.log ──read──▶ BASE.index.tmp, BASE.timeindex.tmp ──sync──▶ renamed ──▶ directory synced
//! ```
//! The log is only read. What cannot be read of it has no entries; cutting a torn tail is the next start's business.
//! A crash leaves of each file the old or the new one. `.txnindex` files are left as they are: this log writes none.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{Offset, Timestamp};

use super::Watcher;
use super::batch_file::{BatchAt, BatchFile, Step};
use super::target::{Target, TargetError, lock};
use super::verify::folders;
use crate::disk::{Disk, File, OpenMode, read_small_file, remove_file_if_there, replace_file};
use crate::file_names::{Kind, TEMPORARY_SUFFIX, suffixed};
use crate::log_directory::FolderKind;
use crate::options::LogOptions;
use crate::partition_log::Active;
use crate::producer_state::{ProducerStates, SNAPSHOT_BYTES_MAX};
use crate::recovery::read_marker;
use crate::segment::{Indexes, Segment};

const COMPARE_BYTES: usize = 64 << 10;

/// How the indexes are to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RebuildOptions {
    /// `index.interval.bytes`
    pub index_interval_bytes: u32,
}

/// What became of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rebuilt {
    pub path: PathBuf,
    /// Whether it was not the same before.
    pub changed: bool,
}

/// What was done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    pub partitions: u64,
    pub segments: u64,
    pub files_changed: u64,
    /// Bytes of logs that are no sound batches.
    pub bytes_unreadable: u64,
}

/// Hears what is done.
pub trait Audience: Watcher {
    fn rebuilt(&mut self, file: Rebuilt);
}

/// Makes the indexes at `target` anew, under the directory's lock.
///
/// # Errors
/// If a node runs there, or the disk fails; what was done so far stays.
pub fn rebuild<D: Disk>(
    disk: &D,
    target: &Target,
    options: RebuildOptions,
    audience: &mut dyn Audience,
) -> Result<Tally, TargetError> {
    let _lock = lock(disk, target)?;
    let mut tally = Tally::default();
    let mut one = |path: &Path| {
        let rebuilding = Rebuilding {
            disk,
            directory: path,
            options: LogOptions {
                index_interval_bytes: options.index_interval_bytes,
                ..LogOptions::default()
            },
            audience: &mut *audience,
            tally: &mut tally,
            producers: ProducerStates::default(),
            knows_producers: true,
            end: None,
            has_batches: false,
        };
        rebuilding.run().map_err(|error| TargetError::Io {
            path: path.to_owned(),
            error,
        })
    };
    match target {
        Target::Partition { path, .. } => one(path)?,
        Target::Directory(directory) => {
            let listed = folders(disk, directory).map_err(|error| TargetError::Io {
                path: directory.clone(),
                error,
            })?;
            for folder in listed.iter().filter(|folder| folder.kind == FolderKind::Partition) {
                one(&directory.join(&folder.name))?;
            }
        }
    }
    Ok(tally)
}

struct Rebuilding<'a, D: Disk> {
    disk: &'a D,
    directory: &'a Path,
    options: LogOptions,
    audience: &'a mut dyn Audience,
    tally: &'a mut Tally,
    producers: ProducerStates,
    /// Not behind damage: what is lost there may be a producer's last.
    knows_producers: bool,
    /// Where the log has come to.
    end: Option<Offset>,
    /// Logs without any have neither indexes nor snapshots.
    has_batches: bool,
}

impl<D: Disk> Rebuilding<'_, D> {
    fn run(mut self) -> io::Result<()> {
        self.tally.partitions += 1;
        let entries = self.disk.list(self.directory)?;
        let of_kind = |wanted: Kind| {
            let mut offsets: Vec<Offset> = entries
                .iter()
                .filter_map(|entry| match Kind::parse(&entry.name) {
                    Some((kind, offset)) if kind == wanted => Some(offset),
                    _ => None,
                })
                .collect();
            offsets.sort();
            offsets
        };
        let bases = of_kind(Kind::Log);
        // Each is adopted when the walk comes to its offset.
        let mut snapshots = of_kind(Kind::ProducerSnapshot);
        snapshots.extend(bases.iter().skip(1));
        snapshots.sort();
        snapshots.dedup();
        let mut snapshots = snapshots.into_iter().peekable();
        for base in &bases {
            self.segment(*base, &mut snapshots)?;
        }
        if let Some(end) = self.end.filter(|_| self.has_batches) {
            // As a node leaves it that stops in good order.
            self.snapshots_up_to(end, &mut snapshots)?;
            self.snapshot(end)?;
        }
        Ok(())
    }

    fn segment(
        &mut self,
        base: Offset,
        snapshots: &mut std::iter::Peekable<impl Iterator<Item = Offset>>,
    ) -> io::Result<()> {
        self.tally.segments += 1;
        self.end = Some(self.end.map_or(base, |end| end.max(base)));
        self.snapshots_up_to(base, snapshots)?;
        let log = BatchFile::open(self.disk, &Kind::Log.path(self.directory, base))?;
        let size = log.size_bytes();
        let index_paths = [Kind::OffsetIndex, Kind::TimeIndex].map(|kind| kind.path(self.directory, base));
        if size == 0 && !self.is_there(&index_paths[0])? && !self.is_there(&index_paths[1])? {
            return Ok(());
        }
        let indexes = Indexes::Memory {
            offsets: Vec::new(),
            times: Vec::new(),
        };
        let segment = Arc::new(Segment::new(base, log.file().clone(), size, indexes));
        let [offsets, times] = index_paths.each_ref().map(|path| {
            let temporary = suffixed(path, TEMPORARY_SUFFIX);
            self.disk.open(&temporary, OpenMode::Replace)
        });
        let mut active = Active::resume(segment, Timestamp::default()).with_index_files(offsets?, times?);
        log.walk(0, |step| -> io::Result<bool> {
            match step {
                Step::Batch(batch) if batch.is_sound && self.is_in_order(&batch) => {
                    self.snapshots_up_to(batch.header.first_offset(), snapshots)?;
                    active.note(&batch.header, batch.position, &self.options);
                    let marker = read_marker(log.file(), &batch.header, batch.position)?;
                    self.producers.note(&batch.header, marker);
                    self.end = Some(batch.header.next_offset());
                    self.has_batches = true;
                    self.audience.read(batch.header.size_bytes() as u64);
                }
                other => self.pass_over(other.bytes()),
            }
            Ok(true)
        })?;
        for file in active.finish_indexes(self.disk, self.directory)? {
            file.sync()?;
        }
        for path in &index_paths {
            self.put(path)?;
        }
        self.disk.sync_directory(self.directory)
    }

    fn is_there(&self, path: &Path) -> io::Result<bool> {
        match self.disk.open(path, OpenMode::Read) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn is_in_order(&self, batch: &BatchAt) -> bool {
        self.end.is_none_or(|end| batch.header.first_offset() >= end)
    }

    fn pass_over(&mut self, bytes: Range<u64>) {
        let bytes = bytes.end - bytes.start;
        self.knows_producers = false;
        self.tally.bytes_unreadable += bytes;
        self.audience.read(bytes);
    }

    /// Puts the temporary file into the place of the one at `path`, if they differ.
    fn put(&mut self, path: &Path) -> io::Result<()> {
        let temporary = suffixed(path, TEMPORARY_SUFFIX);
        let changed = !self.same(path, &temporary)?;
        if changed {
            self.disk.rename(&temporary, path)?;
        } else {
            self.disk.remove_file(&temporary)?;
        }
        self.tell(path, changed);
        Ok(())
    }

    fn tell(&mut self, path: &Path, changed: bool) {
        self.tally.files_changed += u64::from(changed);
        self.audience.rebuilt(Rebuilt {
            path: path.to_owned(),
            changed,
        });
    }

    fn same(&self, one: &Path, other: &Path) -> io::Result<bool> {
        let one = match self.disk.open(one, OpenMode::Read) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        let other = self.disk.open(other, OpenMode::Read)?;
        let size = one.size_bytes()?;
        if size != other.size_bytes()? {
            return Ok(false);
        }
        let mut position = 0;
        while position < size {
            let part = usize::try_from(size - position).map_or(COMPARE_BYTES, |left| left.min(COMPARE_BYTES));
            let (mut left, mut right) = (vec![0; part], vec![0; part]);
            crate::disk::read_exact_at(&one, &mut left, position)?;
            crate::disk::read_exact_at(&other, &mut right, position)?;
            if left != right {
                return Ok(false);
            }
            position += part as u64;
        }
        Ok(true)
    }

    fn snapshots_up_to(
        &mut self,
        offset: Offset,
        snapshots: &mut std::iter::Peekable<impl Iterator<Item = Offset>>,
    ) -> io::Result<()> {
        while let Some(of) = snapshots.next_if(|of| *of <= offset) {
            self.snapshot(of)?;
        }
        Ok(())
    }

    /// Believes the snapshot of `offset`, which the walk has come to; writes it if there is none that can be believed.
    fn snapshot(&mut self, offset: Offset) -> io::Result<()> {
        let path = Kind::ProducerSnapshot.path(self.directory, offset);
        let is_there = match read_small_file(self.disk, &path, SNAPSHOT_BYTES_MAX) {
            Ok(bytes) => {
                if let Ok(producers) = ProducerStates::from_snapshot(&bytes) {
                    // It may know of batches that were deleted since.
                    self.producers = producers;
                    self.knows_producers = true;
                    return Ok(());
                }
                true
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => true,
            Err(error) => return Err(error),
        };
        if self.knows_producers {
            replace_file(self.disk, &path, &self.producers.to_snapshot())?;
            self.tell(&path, true);
        } else if is_there {
            remove_file_if_there(self.disk, &path)?;
            self.tell(&path, true);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
