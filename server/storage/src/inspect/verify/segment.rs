//! One segment: its batches in their order, and its indexes in step with them.

use std::io;
use std::path::Path;

use model::Offset;
use model::record_batch::{Batch, BatchHeader, DecompressionLimit, RecordReader};

use super::partition::PartitionCheck;
use crate::batch_bases::{Bases, BatchBases};
use crate::disk::{Disk, File};
use crate::file_names::Kind;
use crate::inspect::batch_file::{BatchAt, BatchFile, ReadBatchError, Step, Stretch};
use crate::inspect::finding::Fault;
use crate::inspect::index_check::{OffsetIndexCheck, TimeIndexCheck, check_transaction_index};
use crate::recovery::read_marker;

/// The watcher hears of this many bytes at a time.
const TELL_BYTES: u64 = 8 << 20;
/// How often the end of a file is looked at again while a node writes to it.
const GROWTHS_MAX: u32 = 100;

/// The indexes of a segment as far as they are there.
struct Indexes<'f, F> {
    offsets: Option<OffsetIndexCheck<'f, F>>,
    times: Option<TimeIndexCheck<'f, F>>,
}

impl<F: File> Indexes<'_, F> {
    /// Bytes up to `position` that say nothing.
    fn pass_over(&mut self, position: u64) -> io::Result<()> {
        if let Some(times) = &mut self.times {
            times.pass_over_damage();
        }
        match &mut self.offsets {
            Some(offsets) => offsets.pass_over(position),
            None => Ok(()),
        }
    }
}

/// Where the walk is in a segment.
struct Place<'p> {
    path: &'p Path,
    base: Offset,
    is_last: bool,
    batches: u64,
    /// Where the last batch begins.
    last_position: u64,
    /// Where batches begin, if that was written down.
    bases: Option<Bases>,
}

impl<D: Disk> PartitionCheck<'_, D> {
    /// Looks at the segment at `base`; `is_last` if it is the one that is written to.
    pub(super) fn check_segment(&mut self, base: Offset, is_last: bool) {
        let path = Kind::Log.path(self.directory, base);
        // The indexes' sizes before the log's: a running node writes the log first.
        let offset_file = self.open_sized(Kind::OffsetIndex, base);
        let time_file = self.open_sized(Kind::TimeIndex, base);
        let mut log = match BatchFile::open(self.disk, &path) {
            Ok(log) => log,
            // A running node has deleted it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => {
                self.found(path, Fault::Io(error.to_string()));
                return;
            }
        };
        self.looked.segments += 1;
        if log.size_bytes() > 0 {
            self.find_index(Kind::OffsetIndex, base, offset_file.is_some());
            self.find_index(Kind::TimeIndex, base, time_file.is_some());
        }
        let offsets = offset_file
            .as_ref()
            .map(|(file, size)| OffsetIndexCheck::new(file, *size, base));
        let times = time_file
            .as_ref()
            .map(|(file, size)| TimeIndexCheck::new(file, *size, base));
        let mut indexes = Indexes {
            offsets: self.readable(Kind::OffsetIndex, base, offsets),
            times: self.readable(Kind::TimeIndex, base, times),
        };
        let mut place = Place {
            path: &path,
            base,
            is_last,
            batches: 0,
            last_position: 0,
            bases: self.read_bases(base, &log),
        };
        if log.size_bytes() == 0 {
            self.check_empty(&path, base);
        }
        if let Err(error) = self.walk_segment(&mut log, &mut place, &mut indexes) {
            self.found(path.clone(), Fault::Io(error.to_string()));
            self.snapshots.stop_comparing();
        }
        self.finish_indexes(&place, indexes, log.size_bytes());
        let transactions = self.check_transactions(base);
        self.readable(Kind::TransactionIndex, base, Some(transactions));
    }

    /// Tells of a file that the disk does not give.
    fn readable<T>(&mut self, kind: Kind, base: Offset, read: Option<io::Result<T>>) -> Option<T> {
        match read? {
            Ok(read) => Some(read),
            Err(error) => {
                self.found(kind.path(self.directory, base), Fault::Io(error.to_string()));
                None
            }
        }
    }

    fn read_bases(&mut self, base: Offset, log: &BatchFile<D::File>) -> Option<Bases> {
        let path = Kind::Bases.path(self.directory, base);
        let file = self.open(&path);
        let file = self.readable(Kind::Bases, base, Some(file))??;
        let size = log.size_bytes();
        let loaded = BatchBases::open(file, size).and_then(|bases| match bases {
            Some(bases) => bases.load(log.file(), size, base),
            None => Ok(None),
        });
        let bases = self.readable(Kind::Bases, base, Some(loaded))?;
        if bases.is_none() {
            self.found(path, Fault::Bases);
        }
        bases
    }

    /// An empty segment holds the place of the offset in its name.
    fn check_empty(&mut self, path: &Path, base: Offset) {
        let end = self.expected.unwrap_or(base);
        if end < base && !self.is_compacted {
            let count = base.since(end);
            self.found_at(path, 0, Some((end, base)), Fault::OffsetGap { count });
            self.snapshots.stop_comparing();
        }
        self.expect_at_least(base);
    }

    fn expect_at_least(&mut self, base: Offset) {
        self.expected = Some(self.expected.map_or(base, |expected| expected.max(base)));
    }

    fn walk_segment(
        &mut self,
        log: &mut BatchFile<D::File>,
        place: &mut Place<'_>,
        indexes: &mut Indexes<'_, D::File>,
    ) -> io::Result<()> {
        let mut from = 0;
        for _ in 0..GROWTHS_MAX {
            let mut tail = None;
            let size = log.size_bytes();
            log.walk(from, |step| -> io::Result<bool> {
                // What ends the last file and is not whole may be in the middle of being written.
                let is_whole = matches!(&step, Step::Batch(batch) if batch.is_sound);
                if !is_whole && step.bytes().end == size && place.is_last {
                    tail = Some(step);
                    return Ok(false);
                }
                self.step(log, place, indexes, step)?;
                Ok(true)
            })?;
            let Some(tail) = tail else { return Ok(()) };
            if !log.grow()? {
                return self.check_tail(log, place, indexes, tail);
            }
            from = tail.bytes().start;
        }
        // It grows faster than it is read: what was read is in order.
        Ok(())
    }

    /// The end of the last segment is no sound batch: what a crash leaves, if nothing was ever recorded as being there.
    fn check_tail(
        &mut self,
        log: &BatchFile<D::File>,
        place: &mut Place<'_>,
        indexes: &mut Indexes<'_, D::File>,
        tail: Step,
    ) -> io::Result<()> {
        let end = self.expected.unwrap_or(place.base);
        let was_synced = self.recorded.clean || self.recorded.recovery_point.is_some_and(|point| point > end);
        if was_synced {
            return self.step(log, place, indexes, tail);
        }
        let position = tail.bytes().start;
        let bytes = log.size_bytes() - position;
        self.expect_at_least(place.base);
        self.found_at(place.path, position, None, Fault::TornTail { bytes });
        // Entries that point into it go with it.
        indexes.pass_over(log.size_bytes())
    }

    fn step(
        &mut self,
        log: &BatchFile<D::File>,
        place: &mut Place<'_>,
        indexes: &mut Indexes<'_, D::File>,
        step: Step,
    ) -> io::Result<()> {
        let bytes = step.bytes();
        self.looked.bytes += bytes.end - bytes.start;
        self.bytes_untold += bytes.end - bytes.start;
        if self.bytes_untold >= TELL_BYTES {
            self.tell_read();
        }
        match step {
            Step::Batch(batch) if batch.is_sound => self.sound(log, place, indexes, &batch),
            Step::Batch(batch) => {
                let offsets = (batch.header.first_offset(), batch.header.next_offset());
                self.found_at(place.path, batch.position, Some(offsets), Fault::Checksum);
                self.damaged(indexes, batch.end())?;
                // Its offsets lie outside of the checksum; what follows shows whether they were right.
                if self.expected.is_none_or(|expected| expected <= offsets.0) {
                    self.expected = Some(offsets.1);
                }
                Ok(())
            }
            Step::Unreadable(stretch) => self.unreadable(place, indexes, &stretch),
        }
    }

    fn unreadable(
        &mut self,
        place: &Place<'_>,
        indexes: &mut Indexes<'_, D::File>,
        stretch: &Stretch,
    ) -> io::Result<()> {
        let bytes = stretch.to - stretch.from;
        let reason = stretch.reason.clone();
        self.found_at(place.path, stretch.from, None, Fault::Unreadable { bytes, reason });
        self.expect_at_least(place.base);
        self.damaged(indexes, stretch.to)
    }

    fn damaged(&mut self, indexes: &mut Indexes<'_, D::File>, to: u64) -> io::Result<()> {
        self.snapshots.stop_comparing();
        indexes.pass_over(to)
    }

    fn sound(
        &mut self,
        log: &BatchFile<D::File>,
        place: &mut Place<'_>,
        indexes: &mut Indexes<'_, D::File>,
        batch: &BatchAt,
    ) -> io::Result<()> {
        let BatchAt { header, position, .. } = batch;
        let offsets = (header.first_offset(), header.next_offset());
        self.looked.batches += 1;
        place.batches += 1;
        place.last_position = *position;
        if i64::from(header.record_count) != i64::from(header.last_offset_delta) + 1 {
            self.note_compaction();
        }
        let goes_back = self.check_order(place, header, *position);
        if goes_back {
            // Whichever of the two was wrong, the log goes on from here: told once.
            self.expected = Some(offsets.1);
            return self.damaged(indexes, batch.end());
        }
        if let Some(bases) = &place.bases
            && bases.next_from(offsets.0) != Some(offsets.0)
        {
            self.found_at(place.path, *position, Some(offsets), Fault::OffsetMoved);
        }
        if let Some(epoch) = header.leader_epoch() {
            self.check_epoch(place.path, *position, offsets, epoch);
        }
        self.snapshots.before(offsets.0, self.watcher);
        self.snapshots.note(header, read_marker(log.file(), header, *position)?);
        self.expected = Some(offsets.1);
        if let Some(index) = &mut indexes.offsets {
            index.visit(header, *position)?;
        }
        if let Some(index) = &mut indexes.times {
            index.visit(header)?;
        }
        if self.options.records {
            self.check_records(log, place, batch)?;
        }
        Ok(())
    }

    fn note_compaction(&mut self) {
        if !self.is_compacted {
            self.is_compacted = true;
            self.snapshots.stop_comparing();
        }
    }

    /// True if the batch begins at an offset that the log had passed.
    fn check_order(&mut self, place: &Place<'_>, header: &BatchHeader, position: u64) -> bool {
        let first = header.first_offset();
        let expected = match self.expected {
            Some(expected) if place.batches > 1 => expected,
            Some(expected) => expected.max(place.base),
            None => place.base,
        };
        if first < expected {
            let offsets = Some((first, header.next_offset()));
            self.found_at(place.path, position, offsets, Fault::OffsetsGoBack { expected });
            return true;
        }
        // Where the log begins is where it begins: what came before was deleted.
        let from = self.expected.unwrap_or(place.base);
        let is_gap = first > from && !self.is_compacted;
        if is_gap {
            let count = first.since(from);
            self.found_at(place.path, position, Some((from, first)), Fault::OffsetGap { count });
            self.snapshots.stop_comparing();
        }
        false
    }

    fn check_records(&mut self, log: &BatchFile<D::File>, place: &Place<'_>, batch: &BatchAt) -> io::Result<()> {
        let offsets = Some((batch.header.first_offset(), batch.header.next_offset()));
        let bytes = match log.read(batch) {
            Ok(bytes) => bytes,
            Err(ReadBatchError::TooLarge { .. }) => {
                self.found_at(place.path, batch.position, offsets, Fault::TooLargeToRead);
                return Ok(());
            }
            Err(ReadBatchError::Io(error)) => return Err(error),
        };
        let read = Batch::split_first(&bytes).and_then(|(batch, _)| {
            let mut reader = RecordReader::new(batch, DecompressionLimit::DEFAULT)?;
            while reader.next_record()?.is_some() {}
            Ok(())
        });
        if let Err(error) = read {
            self.found_at(place.path, batch.position, offsets, Fault::Records(error));
        }
        Ok(())
    }

    /// Tells of an index that is not there beside batches. The first batch may have come with it since it was looked for.
    fn find_index(&mut self, kind: Kind, base: Offset, is_open: bool) {
        let path = kind.path(self.directory, base);
        if !is_open && matches!(self.open(&path), Ok(None)) {
            self.found(path, Fault::IndexMissing);
        }
    }

    fn open_sized(&mut self, kind: Kind, base: Offset) -> Option<(D::File, u64)> {
        let path = kind.path(self.directory, base);
        let opened = self
            .open(&path)
            .and_then(|file| file.map(|file| file.size_bytes().map(|size| (file, size))).transpose());
        match opened {
            Ok(opened) => return opened,
            Err(error) => self.found(path, Fault::Io(error.to_string())),
        }
        None
    }

    fn finish_indexes(&mut self, place: &Place<'_>, indexes: Indexes<'_, D::File>, log_bytes: u64) {
        if let Some(offsets) = indexes.offsets {
            let path = Kind::OffsetIndex.path(self.directory, place.base);
            // The first entry is of a batch behind the interval; of the active segment some entries wait in memory.
            let wants_entries = place.last_position > 2 * u64::from(self.options.index_interval_bytes)
                && (!place.is_last || self.recorded.clean);
            if wants_entries && offsets.is_empty() {
                self.found(path, Fault::IndexEmpty { log_bytes });
            } else if let Some((position, fault)) = offsets.finish() {
                self.found_at(&path, position, None, fault);
            }
        }
        if let Some((position, fault)) = indexes.times.and_then(|times| times.finish(!place.is_last)) {
            let path = Kind::TimeIndex.path(self.directory, place.base);
            self.found_at(&path, position, None, fault);
        }
    }

    fn check_transactions(&mut self, base: Offset) -> io::Result<()> {
        let path = Kind::TransactionIndex.path(self.directory, base);
        let Some(file) = self.open(&path)? else { return Ok(()) };
        let end = self.expected.unwrap_or(base);
        if let Some((position, fault)) = check_transaction_index(&file, file.size_bytes()?, base, end)? {
            self.found_at(&path, position, None, fault);
        }
        Ok(())
    }
}
