//! Puts a cleaned segment into the place of those that it was made of, and finishes after a crash what was begun.
//!
//! ```text
//! 1  00.log.cleaned, .index.cleaned, .timeindex.cleaned, .bases.cleaned  ->  .swap, the log first; directory synced
//! 2  00.log, 10.log, 20.log with their indexes, snapshots of 10 and 20  ->  .deleted
//! 3  00.index.swap, 00.timeindex.swap, 00.bases.swap, then 00.log.swap  ->  the segment; directory synced
//! ```
//! The exchange is decided when `.log.swap` is there, and over when it is not there any more. A `.log.swap` that is damaged
//! is thrown away for as long as the log that it replaces is there.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use model::Offset;

use super::cleaner::{CleanedSegment, remove_cleaned};
use crate::disk::{DirectoryEntry, Disk, File, OpenMode, remove_file_if_there};
use crate::file_names::{CLEANED_SUFFIX, Kind, SWAP_SUFFIX, suffixed};
use crate::partition_log::PartitionLog;
use crate::retention::{Removed, rename_deleted};
use crate::scan::{self, Check};

/// What is renamed last ends the exchange.
const LOG_LAST: [Kind; 4] = [Kind::OffsetIndex, Kind::TimeIndex, Kind::Bases, Kind::Log];

/// Why a cleaned segment does not come into the log.
#[derive(Debug, thiserror::Error)]
pub enum SwapError {
    /// Retention or a truncation was faster: what was cleaned is thrown away.
    #[error("the segments have changed since they were cleaned")]
    Changed,
    /// The log is offline if anything but the mark of the exchange was to be renamed.
    #[error("swapping a cleaned segment in")]
    Io(#[from] io::Error),
}

impl<D: Disk> PartitionLog<D> {
    /// Puts a cleaned segment into its place; durable when this returns. The old segments' files are renamed and stay
    /// readable to those who hold them.
    ///
    /// # Errors
    /// [`SwapError`]; nothing has changed if the segments have.
    pub fn swap_in(&mut self, cleaned: CleanedSegment<D>) -> Result<Removed, SwapError> {
        if self.is_offline() {
            return Err(io::Error::other("the log is offline").into());
        }
        let CleanedSegment { segment, replaced } = cleaned;
        let segments = self.segments();
        let at = segments
            .iter()
            .position(|candidate| replaced.first().is_some_and(|first| Arc::ptr_eq(first, candidate)));
        // Never the active one, whatever happened meanwhile.
        let place = at.filter(|at| {
            let behind = at + replaced.len();
            behind < segments.len()
                && segments[*at..behind]
                    .iter()
                    .zip(&replaced)
                    .all(|(one, other)| Arc::ptr_eq(one, other))
        });
        let Some(at) = place else {
            remove_cleaned(self.disk(), self.directory(), segment.base_offset)?;
            return Err(SwapError::Changed);
        };
        let mut removed = Removed::default();
        let bases: Vec<Offset> = replaced.iter().map(|old| old.base_offset).collect();
        let log = Kind::Log.path(self.directory(), segment.base_offset);
        // Until this is done nothing has changed.
        self.disk()
            .rename(&suffixed(&log, CLEANED_SUFFIX), &suffixed(&log, SWAP_SUFFIX))?;
        if let Err(error) = exchange(self.disk(), self.directory(), &bases, &mut removed.files) {
            self.shared().offline.store(true, Ordering::Release);
            return Err(error.into());
        }
        removed.segments = replaced.len();
        removed.size_bytes = replaced.iter().map(|old| old.size()).sum();
        let mut list = segments[..at].to_vec();
        list.push(segment);
        list.extend_from_slice(&segments[at + replaced.len()..]);
        self.publish_segments(list);
        Ok(removed)
    }
}

/// Everything behind the first rename.
fn exchange<D: Disk>(disk: &D, directory: &Path, bases: &[Offset], files: &mut Vec<PathBuf>) -> io::Result<()> {
    let Some(base) = bases.first().copied() else {
        return Ok(());
    };
    for kind in LOG_LAST.into_iter().filter(|kind| *kind != Kind::Log) {
        let path = kind.path(directory, base);
        disk.rename(&suffixed(&path, CLEANED_SUFFIX), &suffixed(&path, SWAP_SUFFIX))?;
    }
    disk.sync_directory(directory)?;
    for old in bases {
        // The snapshot of the first base stays good for the new segment.
        let snapshot = (*old != base).then_some(Kind::ProducerSnapshot);
        let kinds = Kind::OF_SEGMENT.into_iter().chain(snapshot);
        rename_deleted(disk, directory, *old, kinds, files)?;
    }
    for kind in LOG_LAST {
        let path = kind.path(directory, base);
        disk.rename(&suffixed(&path, SWAP_SUFFIX), &path)?;
    }
    disk.sync_directory(directory)
}

/// Ends exchanges that a crash has interrupted, and removes `.swap` files that mean nothing. To be called before anything
/// else looks at the directory. True if anything was done: the directory is to be listed anew.
pub(crate) fn complete_swaps<D: Disk>(disk: &D, directory: &Path, entries: &[DirectoryEntry]) -> io::Result<bool> {
    let mut swapped = false;
    for entry in entries {
        if let Some((Kind::Log, base)) = entry.name.strip_suffix(SWAP_SUFFIX).and_then(Kind::parse) {
            complete(disk, directory, entries, base)?;
            swapped = true;
        }
    }
    for entry in entries {
        let of = entry.name.strip_suffix(SWAP_SUFFIX).and_then(Kind::parse);
        if of.is_some_and(|(kind, _)| kind != Kind::Log) {
            remove_file_if_there(disk, &directory.join(&entry.name))?;
            swapped = true;
        }
    }
    if swapped {
        disk.sync_directory(directory)?;
    }
    Ok(swapped)
}

fn complete<D: Disk>(disk: &D, directory: &Path, entries: &[DirectoryEntry], base: Offset) -> io::Result<()> {
    let log = Kind::Log.path(directory, base);
    let swap = suffixed(&log, SWAP_SUFFIX);
    let file = disk.open(&swap, OpenMode::Read)?;
    let size = file.size_bytes()?;
    let mut found = scan::scan(&file, 0, size, base, Check::Checksums, |_, _| Ok(()))?;
    if found.faulty {
        // The first of the old logs goes first: while it is there, all of them are.
        if entries
            .iter()
            .any(|entry| Kind::parse(&entry.name) == Some((Kind::Log, base)))
        {
            return remove_file_if_there(disk, &swap);
        }
        // There is nothing else: its damage is found when it is read, and what it replaces are all that its headers tell.
        found = scan::scan(&file, 0, size, base, Check::Headers, |_, _| Ok(()))?;
    }
    let end = found.next_offset;
    for entry in entries {
        let Some((kind, of)) = Kind::parse(&entry.name) else {
            continue;
        };
        // Whose the indexes at the base are, nobody knows: they are made again. Its snapshot stays good.
        let is_replaced = base < of && of < end || of == base && kind != Kind::ProducerSnapshot;
        if is_replaced {
            remove_file_if_there(disk, &directory.join(&entry.name))?;
        }
    }
    for kind in LOG_LAST {
        let path = kind.path(directory, base);
        match disk.rename(&suffixed(&path, SWAP_SUFFIX), &path) {
            // Made again from the log.
            Err(error) if error.kind() == io::ErrorKind::NotFound && kind != Kind::Log => {}
            renamed => renamed?,
        }
    }
    Ok(())
}
