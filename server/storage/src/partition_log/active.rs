//! The segment that is written to: its index entries as they fall due, and when it is full.

use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::Arc;

use model::record_batch::BatchHeader;
use model::{Offset, Timestamp};

use crate::disk::{Disk, File, OpenMode};
use crate::file_names::Kind;
use crate::options::LogOptions;
use crate::segment::{Indexes, Segment};
use crate::{offset_index, time_index};

/// So many entries may wait in memory for the next sync, which writes them.
const ENTRIES_UNWRITTEN_MAX: usize = 64;

pub(crate) struct Active<F> {
    pub(crate) segment: Arc<Segment<F>>,
    /// Opened when the first entry is written: most partitions never come to that.
    index_files: Option<(F, F)>,
    /// The files hold all entries and the one for the end; or there is nothing to hold.
    is_finished: bool,
    offsets_written: usize,
    times_written: usize,
    bytes_since_entry: u64,
    largest_timestamp: i64,
    largest_timestamp_offset: Offset,
    first_timestamp: Option<i64>,
    created: Timestamp,
}

impl<F: File> Active<F> {
    /// Makes an empty segment; leftovers of the same names are emptied. Its index files are made with its first batch: many
    /// logs never come to that.
    pub(crate) fn create<D: Disk<File = F>>(
        disk: &D,
        directory: &Path,
        base_offset: Offset,
        now: Timestamp,
    ) -> io::Result<Self> {
        let log = disk.open(&Kind::Log.path(directory, base_offset), OpenMode::Replace)?;
        let indexes = Indexes::Memory {
            offsets: Vec::new(),
            times: Vec::new(),
        };
        let mut active = Self::resume(Arc::new(Segment::new(base_offset, log, 0, indexes)), now);
        active.is_finished = true;
        Ok(active)
    }

    /// Makes the index files that [`Active::create`] has left out.
    pub(crate) fn make_index_files<D: Disk<File = F>>(&self, disk: &D, directory: &Path) -> io::Result<()> {
        for kind in [Kind::OffsetIndex, Kind::TimeIndex] {
            disk.open(&kind.path(directory, self.base_offset()), OpenMode::Replace)?;
        }
        Ok(())
    }

    /// Takes a segment over whose indexes are in memory and, as far as they go, in the files; batches behind the last
    /// entry are to be noted by [`Active::note`].
    pub(crate) fn resume(segment: Arc<Segment<F>>, now: Timestamp) -> Self {
        let base_offset = segment.base_offset;
        let (offsets_written, times_written, last_time) = segment.with_indexes(|indexes| match indexes {
            Indexes::Memory { offsets, times } => (offsets.len(), times.len(), times.last().copied()),
            Indexes::Files { .. } => (0, 0, None),
        });
        Active {
            index_files: None,
            is_finished: false,
            offsets_written,
            times_written,
            bytes_since_entry: 0,
            largest_timestamp: last_time.map_or(-1, |entry| entry.timestamp),
            largest_timestamp_offset: last_time
                .map_or(base_offset, |entry| base_offset.plus(i64::from(entry.relative_offset))),
            first_timestamp: None,
            created: now,
            segment,
        }
    }

    /// Lets the entries go to these files, whatever they are called.
    pub(crate) fn with_index_files(mut self, offsets: F, times: F) -> Self {
        self.index_files = Some((offsets, times));
        self
    }

    pub(crate) fn base_offset(&self) -> Offset {
        self.segment.base_offset
    }

    pub(crate) fn largest_timestamp(&self) -> i64 {
        self.largest_timestamp
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.segment.size() == 0
    }

    pub(crate) fn set_first_timestamp(&mut self, timestamp: i64) {
        self.first_timestamp.get_or_insert(timestamp);
    }

    /// Marks the entries in memory as not in the files, so that they are written anew.
    pub(crate) fn rewrite_indexes(&mut self) {
        self.offsets_written = 0;
        self.times_written = 0;
    }

    /// Notes a batch that stands at `position`.
    #[inline]
    pub(crate) fn note(&mut self, header: &BatchHeader, position: u64, options: &LogOptions) {
        self.is_finished = false;
        self.set_first_timestamp(header.max_timestamp);
        if header.max_timestamp > self.largest_timestamp {
            self.largest_timestamp = header.max_timestamp;
            self.largest_timestamp_offset = header.last_offset();
        }
        if self.bytes_since_entry > u64::from(options.index_interval_bytes) {
            self.note_entry(header, position);
        }
        self.bytes_since_entry += header.size_bytes() as u64;
        self.segment.set_largest_timestamp(self.largest_timestamp);
    }

    fn note_entry(&mut self, header: &BatchHeader, position: u64) {
        let relative_offset = self.segment.relative(header.last_offset());
        let position = u32::try_from(position).ok();
        if let Some((relative_offset, position)) = relative_offset.zip(position) {
            self.segment.with_indexes(|indexes| {
                if let Indexes::Memory { offsets, .. } = indexes {
                    offsets.push(offset_index::Entry {
                        relative_offset,
                        position,
                    });
                }
            });
        }
        self.note_largest_timestamp();
        self.bytes_since_entry = 0;
    }

    fn note_largest_timestamp(&self) {
        let Some(relative_offset) = self.segment.relative(self.largest_timestamp_offset) else {
            return;
        };
        let timestamp = self.largest_timestamp;
        self.segment.with_indexes(|indexes| {
            if let Indexes::Memory { times, .. } = indexes
                && timestamp >= 0
                && times.last().is_none_or(|last| last.timestamp < timestamp)
            {
                times.push(time_index::Entry {
                    timestamp,
                    relative_offset,
                });
            }
        });
    }

    /// Whether so many entries are in memory only that they are to be written before the next sync.
    pub(crate) fn indexes_are_due(&self) -> bool {
        let offsets = self.segment.with_indexes(|indexes| match indexes {
            Indexes::Memory { offsets, .. } => offsets.len(),
            Indexes::Files { .. } => 0,
        });
        offsets >= self.offsets_written + ENTRIES_UNWRITTEN_MAX
    }

    /// Writes the entries that are in memory only.
    pub(crate) fn write_indexes<D: Disk<File = F>>(&mut self, disk: &D, directory: &Path) -> io::Result<()> {
        let (offsets, times, offsets_total, times_total) = self.segment.with_indexes(|indexes| match indexes {
            Indexes::Memory { offsets, times } => {
                let new_offsets: Vec<u8> = offsets
                    .iter()
                    .skip(self.offsets_written)
                    .flat_map(|entry| entry.to_bytes())
                    .collect();
                let new_times: Vec<u8> = times
                    .iter()
                    .skip(self.times_written)
                    .flat_map(|entry| entry.to_bytes())
                    .collect();
                (new_offsets, new_times, offsets.len(), times.len())
            }
            Indexes::Files { .. } => (Vec::new(), Vec::new(), 0, 0),
        });
        if offsets.is_empty() && times.is_empty() {
            return Ok(());
        }
        let (offset_file, time_file) = self.index_files(disk, directory)?;
        if !offsets.is_empty() {
            offset_file.write_all_at(
                &[IoSlice::new(&offsets)],
                (self.offsets_written * offset_index::ENTRY_BYTES) as u64,
            )?;
            self.offsets_written = offsets_total;
        }
        if !times.is_empty() {
            time_file.write_all_at(
                &[IoSlice::new(&times)],
                (self.times_written * time_index::ENTRY_BYTES) as u64,
            )?;
            self.times_written = times_total;
        }
        Ok(())
    }

    fn index_files<D: Disk<File = F>>(&mut self, disk: &D, directory: &Path) -> io::Result<(F, F)> {
        if let Some(files) = &self.index_files {
            return Ok(files.clone());
        }
        let base_offset = self.base_offset();
        let offsets = disk.open(&Kind::OffsetIndex.path(directory, base_offset), OpenMode::Create)?;
        let times = disk.open(&Kind::TimeIndex.path(directory, base_offset), OpenMode::Create)?;
        self.index_files = Some((offsets.clone(), times.clone()));
        Ok((offsets, times))
    }

    /// Completes the index files: the last time entry, nothing behind the last entries. Returns them to be synced.
    pub(crate) fn finish_indexes<D: Disk<File = F>>(&mut self, disk: &D, directory: &Path) -> io::Result<[F; 2]> {
        self.note_largest_timestamp();
        self.write_indexes(disk, directory)?;
        let (offset_file, time_file) = self.index_files(disk, directory)?;
        offset_file.truncate((self.offsets_written * offset_index::ENTRY_BYTES) as u64)?;
        time_file.truncate((self.times_written * time_index::ENTRY_BYTES) as u64)?;
        self.is_finished = true;
        Ok([offset_file, time_file])
    }

    /// Nothing of an empty segment is to be in index files; leftovers go when they are made.
    pub(crate) fn finish_empty(&mut self) {
        self.is_finished = self.is_empty();
    }

    /// Whether [`Active::finish_indexes`] would change nothing.
    pub(crate) fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// Whether files with these entries are what [`Active::finish_indexes`] would leave. If so nothing has to be written.
    pub(crate) fn finish_if_same(&mut self, in_files: &(Vec<offset_index::Entry>, Vec<time_index::Entry>)) -> bool {
        self.note_largest_timestamp();
        self.is_finished = self.segment.with_indexes(|indexes| match indexes {
            Indexes::Memory { offsets, times } => (&*offsets, &*times) == (&in_files.0, &in_files.1),
            Indexes::Files { .. } => false,
        });
        if self.is_finished {
            (self.offsets_written, self.times_written) = (in_files.0.len(), in_files.1.len());
        }
        self.is_finished
    }

    /// Lets go of the index files; they are opened again when they are needed.
    pub(crate) fn release_index_files(&mut self) {
        self.index_files = None;
    }

    /// Whether a batch set of this size, ending at `last_offset` with this greatest timestamp, begins a new segment.
    pub(crate) fn is_full_for(
        &self,
        size_bytes: usize,
        last_offset: Offset,
        max_timestamp: i64,
        options: &LogOptions,
        now: Timestamp,
    ) -> bool {
        if self.is_empty() {
            return self
                .segment
                .relative(last_offset)
                .is_none_or(|relative| i32::try_from(relative).is_err());
        }
        let relative_fits = self
            .segment
            .relative(last_offset)
            .is_some_and(|relative| i32::try_from(relative).is_ok());
        let (offsets, times) = self.segment.with_indexes(|indexes| match indexes {
            Indexes::Memory { offsets, times } => (offsets.len(), times.len()),
            Indexes::Files { .. } => (0, 0),
        });
        let index_bytes_max = options.index_size_bytes_max as usize;
        let size = self.segment.size() + size_bytes as u64;
        size > u64::from(options.segment_size_bytes)
            || self.waited_ms(max_timestamp, now) > options.segment_ms.saturating_sub(options.segment_jitter_ms)
            || offsets >= index_bytes_max / offset_index::ENTRY_BYTES
            // One slot stays free for the entry that is written when the segment is left.
            || times + 1 >= index_bytes_max / time_index::ENTRY_BYTES
            || !relative_fits
    }

    /// How old the segment is: by the times of the records where they have some, else by the clock.
    fn waited_ms(&self, max_timestamp: i64, now: Timestamp) -> i64 {
        match self.first_timestamp {
            Some(first) if first >= 0 && max_timestamp >= 0 => max_timestamp.saturating_sub(first),
            _ => now.millis().saturating_sub(self.created.millis()),
        }
    }
}
