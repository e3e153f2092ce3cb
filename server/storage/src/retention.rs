//! Which segments are too old, too many, or below the log's start, and their removal.
//!
//! Only whole segments go, from the front, and only if all their records lie below the high watermark. They are renamed
//! (`.deleted`) at once and unlinked later by the shell, so that readers have time to finish.
//!
//! A time further in the future than the topic takes from producers is not believed: it may have been written under another
//! setting, or by another program. Such a segment goes with the one behind it, whose time tells that it is old as well.
//!
//! Damage does not keep a segment: it goes when its sound records are old enough or it is too much, and if none of its
//! records is sound, together with the segment behind it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use model::{Offset, Timestamp};
use tracing::info;

use crate::disk::Disk;
use crate::file_names::{DELETED_SUFFIX, Kind, suffixed};
use crate::partition_log::PartitionLog;
use crate::segment::{Segment, Wait};

/// What retention took out of the log.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Removed {
    /// Renamed files, to be unlinked after `file.delete.delay.ms`.
    pub files: Vec<PathBuf>,
    pub segments: usize,
    pub size_bytes: u64,
    /// Segments that stay although they would be next, because their records' times lie in the future.
    pub future_segments: usize,
}

/// Times further ahead than this are told of, wherever they are allowed: no two clocks differ by so much.
const FUTURE_MS: i64 = 3_600_000;

/// The oldest segments that have expired.
#[derive(Default)]
struct Expired {
    count: usize,
    future_segments: usize,
}

/// Why records cannot be deleted from the front.
#[derive(Debug, thiserror::Error)]
pub enum DeleteRecordsError {
    #[error("offset {offset} is above the high watermark {high_watermark}")]
    AboveHighWatermark { offset: Offset, high_watermark: Offset },
    #[error("deleting records")]
    Io(#[from] io::Error),
}

impl<D: Disk> PartitionLog<D> {
    /// Removes segments by `retention.ms`, by `retention.bytes` and below the log's start. `now` is the wall clock; the
    /// active segment is left for a new one if all of it has expired.
    ///
    /// # Errors
    /// As the disk says.
    pub fn enforce_retention(&mut self, now: Timestamp, high_watermark: Offset) -> io::Result<Removed> {
        if self.is_offline() {
            return Ok(Removed::default());
        }
        let mut count = self.count_below_log_start();
        let mut future_segments = 0;
        if self.options().delete {
            let expired = self.expired(now)?;
            count = count.max(expired.count).max(self.count_oversize());
            future_segments = expired.future_segments;
        }
        Ok(Removed {
            future_segments,
            ..self.remove_first(count, now, high_watermark)?
        })
    }

    /// Moves the log's start up to `offset` (DeleteRecords); segments wholly below go with the next retention. The start is
    /// to be recorded in the directory's checkpoint. Returns the log's start.
    ///
    /// # Errors
    /// If `offset` is above the high watermark.
    pub fn delete_records_before(
        &mut self,
        offset: Offset,
        high_watermark: Offset,
    ) -> Result<Offset, DeleteRecordsError> {
        if offset > high_watermark || offset > self.log_end_offset() {
            return Err(DeleteRecordsError::AboveHighWatermark { offset, high_watermark });
        }
        self.move_log_start(offset)?;
        Ok(self.log_start_offset())
    }

    /// The bytes of all segments.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.segments().iter().map(|segment| segment.size()).sum()
    }

    fn count_below_log_start(&self) -> usize {
        let log_start = self.log_start_offset();
        let segments = self.segments();
        segments
            .iter()
            .skip(1)
            .take_while(|next| next.base_offset <= log_start)
            .count()
    }

    fn expired(&self, now: Timestamp) -> io::Result<Expired> {
        let Some(retention_ms) = self.options().retention_ms else {
            return Ok(Expired::default());
        };
        let mut expired = Expired::default();
        for (index, segment) in self.segments().iter().enumerate() {
            let Some(largest) = self.largest_timestamp(segment)? else {
                // Without timestamps nothing is known of its age; where they are damaged, that of the next one tells.
                if segment.holes().is_empty() {
                    break;
                }
                continue;
            };
            let ahead_ms = largest.millis().saturating_sub(now.millis());
            expired.future_segments += usize::from(ahead_ms > FUTURE_MS);
            if ahead_ms > self.options().timestamp_after_max_ms {
                continue;
            }
            if segment.size() == 0 || now.millis().saturating_sub(largest.millis()) <= retention_ms {
                break;
            }
            expired = Expired {
                count: index + 1,
                future_segments: 0,
            };
        }
        Ok(expired)
    }

    /// Damage that is come upon is quarantined.
    fn largest_timestamp(&self, segment: &Arc<Segment<D::File>>) -> io::Result<Option<Timestamp>> {
        match segment.largest_timestamp(Wait::Allowed) {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                self.shared().examine(segment)?;
                segment.largest_timestamp(Wait::Allowed)
            }
            largest => largest,
        }
    }

    fn count_oversize(&self) -> usize {
        let Some(retention_bytes) = self.options().retention_bytes else {
            return 0;
        };
        let mut excess = self.size_bytes().saturating_sub(retention_bytes);
        let segments = self.segments();
        segments
            .iter()
            .take_while(|segment| {
                let goes = segment.size() > 0 && segment.size() <= excess;
                excess = excess.saturating_sub(segment.size());
                goes
            })
            .count()
    }

    fn remove_first(&mut self, count: usize, now: Timestamp, high_watermark: Offset) -> io::Result<Removed> {
        let segments = self.segments();
        let log_end = self.log_end_offset();
        let end_of = |index: usize| segments.get(index + 1).map_or(log_end, |next| next.base_offset);
        let count = (0..count.min(segments.len()))
            .take_while(|index| end_of(*index) <= high_watermark)
            .count();
        if count == 0 {
            return Ok(Removed::default());
        }
        if count == segments.len() {
            self.roll(now)?;
        }
        let (gone, kept) = segments.split_at(count);
        let first_kept = kept.first().map_or(log_end, |segment| segment.base_offset);
        self.move_log_start(first_kept)?;
        let kept: Vec<Arc<Segment<D::File>>> = self.segments().iter().skip(count).cloned().collect();
        self.publish_segments(kept);
        let mut removed = Removed::default();
        for segment in gone {
            removed.segments += 1;
            removed.size_bytes += segment.size();
            if !segment.holes().is_empty() {
                let (directory, offset) = (self.directory().display(), segment.base_offset);
                info!(%directory, %offset, "a quarantined segment goes with retention");
            }
            self.rename_deleted(segment.base_offset, &mut removed.files)?;
        }
        self.note_names();
        self.shared().refresh_damage();
        Ok(removed)
    }

    fn rename_deleted(&self, base_offset: Offset, files: &mut Vec<PathBuf>) -> io::Result<()> {
        let kinds = Kind::OF_SEGMENT.into_iter().chain([Kind::ProducerSnapshot]);
        rename_deleted(self.disk(), self.directory(), base_offset, kinds, files)
    }

    fn move_log_start(&mut self, offset: Offset) -> io::Result<()> {
        if offset <= self.log_start_offset() {
            return Ok(());
        }
        self.change_epochs(|epochs| epochs.truncate_from_start(offset))?;
        self.shared().log_start.store(offset.get(), Ordering::Release);
        Ok(())
    }
}

/// Takes files of a segment out of the log by their names; those that are there, to be removed later, go into `files`.
pub(crate) fn rename_deleted<D: Disk>(
    disk: &D,
    directory: &Path,
    base_offset: Offset,
    kinds: impl Iterator<Item = Kind>,
    files: &mut Vec<PathBuf>,
) -> io::Result<()> {
    for kind in kinds {
        let path = kind.path(directory, base_offset);
        let deleted = suffixed(&path, DELETED_SUFFIX);
        match disk.rename(&path, &deleted) {
            Ok(()) => files.push(deleted),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
