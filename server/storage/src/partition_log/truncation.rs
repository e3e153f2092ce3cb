//! Takes records back from the end of the log: only ever those that were not committed.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use model::{Offset, Timestamp};

use super::{Active, PartitionLog};
use crate::disk::{Disk, File, OpenMode, remove_file_if_there};
use crate::file_names::Kind;
use crate::recovery;
use crate::segment::{Segment, Wait};

impl<D: Disk> PartitionLog<D> {
    /// Cuts the log so that it ends at or below `target`: at the start of the batch that holds it. Blocks until the disk
    /// has it.
    ///
    /// `record` is called before anything is cut if the recorded recovery point lies above the new end: it must make the
    /// given lower point durable, or a restart would take the missing records for lost ones.
    ///
    /// Returns the new end.
    ///
    /// # Errors
    /// If `record` fails nothing has changed; if the disk fails the log is offline.
    pub fn truncate_to(
        &mut self,
        target: Offset,
        now: Timestamp,
        record: impl FnOnce(Offset) -> io::Result<()>,
    ) -> io::Result<Offset> {
        if self.is_offline() {
            return Err(io::Error::other("the log is offline"));
        }
        if target >= self.log_end_offset() {
            self.change_epochs(|epochs| epochs.truncate_from_end(target))?;
            return Ok(self.log_end_offset());
        }
        let segments = self.segments();
        let Some(kept) = segments
            .partition_point(|segment| segment.base_offset <= target)
            .checked_sub(1)
        else {
            return self.restart_at(target, now, record);
        };
        let segment = segments[kept].clone();
        let found = segment.find(target, Wait::Allowed)?;
        let (position, end) = match found {
            // In a gap behind the segment's last batch nothing of it has to go.
            None => (segment.size(), target),
            Some(found) => (found.position, found.header.first_offset().min(target)),
        };
        self.lower_recovery_point(end, record)?;
        let cut = self.cut(&segments, kept, &segment, position, end, now);
        if cut.is_err() {
            self.shared.offline.store(true, Ordering::Release);
        }
        cut.map(|()| end)
    }

    /// Drops everything and begins again, empty, at `start`: when a leader's log begins above this one's end.
    ///
    /// # Errors
    /// As [`PartitionLog::truncate_to`].
    pub fn restart_at(
        &mut self,
        start: Offset,
        now: Timestamp,
        record: impl FnOnce(Offset) -> io::Result<()>,
    ) -> io::Result<Offset> {
        if self.is_offline() {
            return Err(io::Error::other("the log is offline"));
        }
        self.lower_recovery_point(start.min(self.log_start_offset()), record)?;
        let restarted = self.replace_all(start, now);
        if restarted.is_err() {
            self.shared.offline.store(true, Ordering::Release);
        }
        restarted.map(|()| start)
    }

    fn lower_recovery_point(&mut self, end: Offset, record: impl FnOnce(Offset) -> io::Result<()>) -> io::Result<()> {
        if self.sync.recorded() > end {
            record(end)?;
            self.recovery_point_recorded(end);
        }
        Ok(())
    }

    fn cut(
        &mut self,
        segments: &[Arc<Segment<D::File>>],
        kept: usize,
        segment: &Arc<Segment<D::File>>,
        position: u64,
        end: Offset,
        now: Timestamp,
    ) -> io::Result<()> {
        // Readers first: what is about to go is not to be found any more.
        self.shared.log_end.store(end.get(), Ordering::Release);
        // The start may have lain within the batch that goes.
        self.shared.log_start.fetch_min(end.get(), Ordering::AcqRel);
        self.shared.truncations.fetch_add(1, Ordering::AcqRel);
        self.sync.note_truncation(end);
        self.shared.synced.fetch_min(end.get(), Ordering::AcqRel);
        self.remove_snapshots(|offset| offset > end)?;
        for gone in segments[kept + 1..].iter().rev() {
            self.remove_segment_files(gone.base_offset)?;
        }
        // The later segments have to be gone before this one is cut: after a crash in between, records behind a gap
        // would be taken for a sign of damage.
        self.disk.sync_directory(&self.directory)?;
        segment.publish_size(position);
        segment.log.truncate(position)?;
        segment.log.sync()?;
        // Only now, so that the epochs of whatever is there are known at any time.
        self.change_epochs(|epochs| epochs.truncate_from_end(end))?;
        // The segment's file stays the same one, but its indexes come back to memory: the log is written here again.
        let reopened = recovery::reopen_segment(&self.disk, &self.directory, segment, position, &self.options, now)?;
        self.active = reopened;
        let mut list = segments[..kept].to_vec();
        list.push(self.active.segment.clone());
        self.publish_segments(list);
        self.shared.refresh_damage();
        self.shared.truncations.fetch_add(1, Ordering::AcqRel);
        self.reload_producers(end)
    }

    fn replace_all(&mut self, start: Offset, now: Timestamp) -> io::Result<()> {
        let segments = self.segments();
        self.shared.truncations.fetch_add(1, Ordering::AcqRel);
        self.change_epochs(|epochs| {
            epochs.clear();
            true
        })?;
        self.remove_snapshots(|_| true)?;
        for gone in segments.iter().rev() {
            self.remove_segment_files(gone.base_offset)?;
        }
        self.active = Active::create(&self.disk, &self.directory, start, now)?;
        self.disk.sync_directory(&self.directory)?;
        self.publish_segments(vec![self.active.segment.clone()]);
        self.shared.log_start.store(start.get(), Ordering::Release);
        self.shared.log_end.store(start.get(), Ordering::Release);
        self.shared.synced.store(start.get(), Ordering::Release);
        self.sync.note_truncation(start);
        self.shared.refresh_damage();
        self.producers = crate::ProducerStates::default();
        Ok(())
    }

    fn remove_segment_files(&self, base_offset: Offset) -> io::Result<()> {
        for kind in Kind::OF_SEGMENT {
            remove_file_if_there(&self.disk, &kind.path(&self.directory, base_offset))?;
        }
        Ok(())
    }

    pub(crate) fn remove_snapshots(&self, goes: impl Fn(Offset) -> bool) -> io::Result<()> {
        for entry in self.disk.list(&self.directory)? {
            if let Some((Kind::ProducerSnapshot, offset)) = Kind::parse(&entry.name)
                && goes(offset)
            {
                remove_file_if_there(&self.disk, &self.directory.join(&entry.name))?;
            }
        }
        Ok(())
    }

    fn reload_producers(&mut self, end: Offset) -> io::Result<()> {
        let (mut producers, from) = recovery::load_snapshot(&self.disk, &self.directory, end)?;
        recovery::replay_producers(&self.segments(), from, end, &mut producers)?;
        self.producers = producers;
        Ok(())
    }
}

/// Empties and truncates the index files of a segment to what is in memory.
pub(crate) fn rewrite_index_files<D: Disk>(
    disk: &D,
    directory: &std::path::Path,
    active: &mut Active<D::File>,
) -> io::Result<()> {
    for kind in [Kind::OffsetIndex, Kind::TimeIndex] {
        disk.open(&kind.path(directory, active.base_offset()), OpenMode::Replace)?;
    }
    active.rewrite_indexes();
    active.write_indexes(disk, directory)
}
