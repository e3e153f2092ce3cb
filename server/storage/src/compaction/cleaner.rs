//! One round: reads the dirty part into the key map, then writes group after group anew. Works on a snapshot of the
//! segments, without the log's lock: what is appended meanwhile lies behind, what is cut or deleted meanwhile shows when
//! a group is swapped in.

use std::io::{self, IoSlice};
use std::path::PathBuf;
use std::sync::Arc;

use model::record_batch::{Batch, BatchHeader, RecordReader};
use model::{Offset, Timestamp};

use super::batch_filter::{BatchFilter, Circumstances, Verdict};
use super::key_map::KeyMap;
use super::plan::{ends, group_size};
use super::transactions::Transactions;
use super::{Backlog, CleanError, CleaningLimits, Pace};
use crate::batch_bases::{self, BatchBases};
use crate::disk::{Disk, File, OpenMode, remove_file_if_there};
use crate::file_names::{CLEANED_SUFFIX, Kind, suffixed};
use crate::options::LogOptions;
use crate::partition_log::{Active, PartitionLog, marker};
use crate::scan::{Check, Window};
use crate::segment::{Indexes, Segment};
use crate::survey::first_disorder;

/// What a round did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Bytes of the segments that were read to be written anew, and what came of them.
    pub bytes_before: u64,
    pub bytes_after: u64,
    /// Bytes that were read for the key map.
    pub bytes_mapped: u64,
    pub records_before: u64,
    pub records_after: u64,
    pub keys: usize,
    pub map_bytes: usize,
}

/// A round under way.
pub struct Cleaning<D: Disk> {
    disk: D,
    directory: PathBuf,
    options: LogOptions,
    limits: CleaningLimits,
    now: Timestamp,
    /// All of the log, for the markers of transactions.
    transactions: Transactions<D::File>,
    /// What may be cleaned, each with the offset behind it.
    segments: Vec<(Arc<Segment<D::File>>, Offset)>,
    /// How many of them have been written anew.
    done: usize,
    first_dirty: Offset,
    filter: BatchFilter,
    tally: Tally,
}

/// A group of segments, written anew and durable under `.cleaned` names.
pub struct CleanedSegment<D: Disk> {
    pub(super) segment: Arc<Segment<D::File>>,
    /// In whose place it comes.
    pub(super) replaced: Vec<Arc<Segment<D::File>>>,
}

impl<D: Disk> PartitionLog<D> {
    /// Begins a round over what `backlog` says. `now` is the wall clock.
    #[must_use]
    pub fn begin_cleaning(&self, backlog: &Backlog, limits: CleaningLimits, now: Timestamp) -> Cleaning<D> {
        let all = self.segments();
        let log_end = self.log_end_offset();
        let ends: Vec<Offset> = ends(&all, log_end).collect();
        let segments = all
            .iter()
            .cloned()
            .zip(ends)
            .take_while(|(_, end)| *end <= backlog.end)
            .collect();
        Cleaning {
            disk: self.disk().clone(),
            directory: self.directory().to_owned(),
            options: self.options().clone(),
            limits,
            now,
            transactions: Transactions::new(all, log_end),
            segments,
            done: 0,
            first_dirty: backlog.first_dirty,
            filter: BatchFilter {
                map: KeyMap::new(0, limits.map_load_factor, 0),
                mapped_to: backlog.first_dirty,
                now,
                delete_retention_ms: self.options().compaction.delete_retention_ms,
                producers: self.producers().last_of_each().collect(),
                limit: self.options().decompression_limit,
            },
            tally: Tally::default(),
        }
    }
}

impl<D: Disk> Cleaning<D> {
    /// Where the next round's dirty part begins, once all groups of this one are swapped in.
    #[must_use]
    pub fn end(&self) -> Offset {
        self.filter.mapped_to
    }

    #[must_use]
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Reads as much of the dirty part as the map holds the keys of.
    ///
    /// # Errors
    /// If the log cannot be read, or the map does not hold the keys of even one batch.
    pub fn map_keys(&mut self, pace: &mut Pace<'_>) -> Result<(), CleanError> {
        self.remove_leftovers()?;
        // Where a record stands decides which one stays, and no checksum covers it.
        for (segment, end) in &self.segments {
            if let Some(offset) = first_disorder(segment, *end)? {
                return Err(CleanError::Damaged(offset));
            }
        }
        let bound = self.segments.last().map_or(self.first_dirty, |(_, end)| *end);
        let offsets = u64::try_from(bound.since(self.first_dirty)).unwrap_or(0);
        self.filter.map = KeyMap::new(self.limits.map_bytes, self.limits.map_load_factor, offsets);
        let mut filled = false;
        for (segment, end) in &self.segments {
            if *end <= self.first_dirty {
                continue;
            }
            filled = map_segment(
                segment,
                self.first_dirty,
                &mut self.filter,
                &mut self.transactions,
                &mut self.tally,
                self.limits.buffer_bytes,
                pace,
            )?;
            if filled {
                break;
            }
            self.filter.mapped_to = *end;
        }
        if filled && self.filter.mapped_to <= self.first_dirty {
            return Err(CleanError::MapTooSmall(self.first_dirty));
        }
        let mapped_to = self.filter.mapped_to;
        self.segments.retain(|(segment, _)| segment.base_offset < mapped_to);
        self.tally.keys = self.filter.map.len();
        self.tally.map_bytes = self.filter.map.size_bytes();
        Ok(())
    }

    /// Writes the next group anew; `None` if there is none left. A group of one segment of which everything stays is
    /// passed over.
    ///
    /// # Errors
    /// As [`Cleaning::map_keys`]. What was swapped in before stands.
    pub fn clean_group(&mut self, pace: &mut Pace<'_>) -> Result<Option<CleanedSegment<D>>, CleanError> {
        loop {
            let count = group_size(&self.segments[self.done..], &self.options)?;
            if count == 0 {
                return Ok(None);
            }
            let (output, count, changed) = self.write_group(count, pace)?;
            let group = &self.segments[self.done..self.done + count];
            let replaced: Vec<_> = group.iter().map(|(segment, _)| segment.clone()).collect();
            self.done += count;
            self.tally.bytes_after += output.size;
            if !changed && replaced.len() == 1 {
                remove_cleaned(&self.disk, &self.directory, replaced[0].base_offset)?;
                continue;
            }
            let segment = output.finish(&self.disk, &self.directory)?;
            return Ok(Some(CleanedSegment { segment, replaced }));
        }
    }

    /// Writes the next segments anew, `group` of them and those behind them for as long as no record stays: a reader who is given
    /// batches without any may take that for the end. Also gives how many they were, and whether anything has changed.
    fn write_group(
        &mut self,
        mut group: usize,
        pace: &mut Pace<'_>,
    ) -> Result<(Output<D::File>, usize, bool), CleanError> {
        let segments = self.segments[self.done..].to_vec();
        let base = segments
            .first()
            .map_or(Offset::ZERO, |(segment, _)| segment.base_offset);
        let mut output = Output::create(&self.disk, &self.directory, base, self.limits.buffer_bytes, self.now)?;
        let (mut changed, mut index) = (false, 0);
        let records_before = self.tally.records_after;
        while index < group {
            let segment = &segments[index].0;
            let last_segment = segments[..group].iter().rposition(|(segment, _)| segment.size() > 0);
            let size = segment.size();
            let mut window = Window::new(&segment.log, size, Check::Checksums).chunk(self.limits.buffer_bytes);
            let mut position = 0;
            while position < size {
                let batch = read_batch(&mut window, position, segment.base_offset)?;
                let next = position + batch.bytes().len() as u64;
                stop_or_go(pace(batch.bytes().len()))?;
                let is_last = last_segment == Some(index) && next == size;
                let further = (is_last && self.tally.records_after == records_before)
                    .then(|| further(&segments, group, output.size))
                    .flatten();
                let circumstances = Circumstances {
                    aborted: self.transactions.is_aborted(&batch.header, pace)?,
                    bare_marker: batch.header.attributes.is_control() && self.is_bare_marker(&batch),
                    last: is_last && further.is_none(),
                };
                self.transactions.observe(&batch.header);
                let verdict = self
                    .filter
                    .judge(&batch, circumstances)
                    .map_err(|_| CleanError::Damaged(batch.header.first_offset()))?;
                self.tally.records_before += count(&batch.header);
                changed |= verdict != Verdict::KeepWhole;
                match verdict {
                    Verdict::Drop => {}
                    Verdict::KeepWhole => {
                        self.tally.records_after += count(&batch.header);
                        output.append(&batch.header, batch.bytes(), &self.options, pace)?;
                    }
                    Verdict::Write(bytes) => {
                        let header =
                            BatchHeader::parse(&bytes).map_err(|_| CleanError::Damaged(batch.header.first_offset()))?;
                        self.tally.records_after += count(&header);
                        output.append(&header, &bytes, &self.options, pace)?;
                    }
                }
                if self.tally.records_after == records_before {
                    group = further.unwrap_or(group);
                }
                position = next;
            }
            self.tally.bytes_before += size;
            index += 1;
        }
        output.flush(pace)?;
        Ok((output, group, changed))
    }

    fn is_bare_marker(&mut self, batch: &Batch<'_>) -> bool {
        let control = marker(&batch.header, batch.payload()).map(|(control, _)| control);
        self.transactions.is_bare_marker(&batch.header, control)
    }

    /// What a round that did not come to its end has left.
    fn remove_leftovers(&self) -> io::Result<()> {
        for entry in self.disk.list(&self.directory)? {
            if entry.name.ends_with(CLEANED_SUFFIX) {
                self.disk.remove_file(&self.directory.join(&entry.name))?;
            }
        }
        Ok(())
    }
}

/// How many segments a group of `count` has, of which `written` bytes stay, with the next one that has anything in it;
/// `None` if there is none, or offsets or positions would become too large.
fn further<F: File>(segments: &[(Arc<Segment<F>>, Offset)], count: usize, written: u64) -> Option<usize> {
    let base = segments.first()?.0.base_offset;
    let rest = segments.get(count..)?;
    let at = rest.iter().position(|(segment, _)| segment.size() > 0)?;
    let (next, end) = &rest[at];
    let is_small = written + next.size() <= i32::MAX.unsigned_abs().into();
    (is_small && end.since(base) <= i64::from(i32::MAX)).then_some(count + at + 1)
}

/// Notes the keys of a segment from `first_dirty` on; true if the map is full.
fn map_segment<F: File>(
    segment: &Segment<F>,
    first_dirty: Offset,
    filter: &mut BatchFilter,
    transactions: &mut Transactions<F>,
    tally: &mut Tally,
    buffer_bytes: usize,
    pace: &mut Pace<'_>,
) -> Result<bool, CleanError> {
    let size = segment.size();
    let from = segment.find(first_dirty, crate::segment::Wait::Allowed)?;
    let mut position = from.map_or(size, |found| found.position);
    let mut window = Window::new(&segment.log, size, Check::Checksums).chunk(buffer_bytes);
    while position < size {
        let batch = read_batch(&mut window, position, segment.base_offset)?;
        let header = batch.header;
        stop_or_go(pace(batch.bytes().len()))?;
        tally.bytes_mapped += batch.bytes().len() as u64;
        if !header.attributes.is_control() && !transactions.is_aborted(&header, pace)? {
            let damaged = |_| CleanError::Damaged(header.first_offset());
            let mut reader = RecordReader::new(batch, filter.limit).map_err(damaged)?;
            while let Some(record) = reader.next_record().map_err(damaged)? {
                if let Some(key) = record.key
                    && record.offset >= first_dirty
                    && !filter.map.put(key, record.offset)
                {
                    return Ok(true);
                }
            }
        }
        filter.mapped_to = header.next_offset();
        position += batch.bytes().len() as u64;
    }
    Ok(false)
}

fn read_batch<'w, F: File>(
    window: &'w mut Window<'_, F>,
    position: u64,
    base_offset: Offset,
) -> Result<Batch<'w>, CleanError> {
    let header = window.header(position)?.ok_or(CleanError::Damaged(base_offset))?;
    let damaged = || CleanError::Damaged(header.first_offset());
    let bytes = window.at(position, header.size_bytes())?;
    let (batch, _) = Batch::split_first(bytes).map_err(|_| damaged())?;
    batch.check_crc().map_err(|_| damaged())?;
    Ok(batch)
}

fn count(header: &BatchHeader) -> u64 {
    u64::try_from(header.record_count).unwrap_or(0)
}

fn stop_or_go(pace: std::ops::ControlFlow<()>) -> Result<(), CleanError> {
    if pace.is_break() {
        return Err(CleanError::Stopped);
    }
    Ok(())
}

fn cleaned_path(kind: Kind, directory: &std::path::Path, base: Offset) -> PathBuf {
    suffixed(&kind.path(directory, base), CLEANED_SUFFIX)
}

pub(super) fn remove_cleaned<D: Disk>(disk: &D, directory: &std::path::Path, base: Offset) -> io::Result<()> {
    for kind in Kind::OF_SEGMENT {
        remove_file_if_there(disk, &cleaned_path(kind, directory, base))?;
    }
    Ok(())
}

/// The segment that is being written.
struct Output<F> {
    active: Active<F>,
    buffer: Vec<u8>,
    buffer_bytes: usize,
    /// What is in the file, and behind it in the buffer.
    size: u64,
    bases: batch_bases::Writer,
}

impl<F: File> Output<F> {
    fn create<D: Disk<File = F>>(
        disk: &D,
        directory: &std::path::Path,
        base: Offset,
        buffer_bytes: usize,
        now: Timestamp,
    ) -> io::Result<Self> {
        let open = |kind| disk.open(&cleaned_path(kind, directory, base), OpenMode::Replace);
        let log = open(Kind::Log)?;
        let (offsets, times) = (open(Kind::OffsetIndex)?, open(Kind::TimeIndex)?);
        let indexes = Indexes::Memory {
            offsets: Vec::new(),
            times: Vec::new(),
        };
        let segment = Arc::new(Segment::new(base, log, 0, indexes));
        Ok(Output {
            active: Active::resume(segment, now).with_index_files(offsets, times),
            buffer: Vec::with_capacity(buffer_bytes),
            buffer_bytes,
            size: 0,
            bases: batch_bases::Writer::default(),
        })
    }

    fn append(
        &mut self,
        header: &BatchHeader,
        bytes: &[u8],
        options: &LogOptions,
        pace: &mut Pace<'_>,
    ) -> Result<(), CleanError> {
        if self.buffer.len() + bytes.len() > self.buffer_bytes {
            self.flush(pace)?;
        }
        let segment = &self.active.segment;
        let relative = segment
            .relative(header.first_offset())
            .ok_or(CleanError::Damaged(header.first_offset()))?;
        self.bases.note(header, relative);
        self.active.note(header, self.size, options);
        self.size += bytes.len() as u64;
        if bytes.len() > self.buffer_bytes {
            self.write(bytes, pace)
        } else {
            self.buffer.extend_from_slice(bytes);
            Ok(())
        }
    }

    fn flush(&mut self, pace: &mut Pace<'_>) -> Result<(), CleanError> {
        let buffer = std::mem::take(&mut self.buffer);
        self.write(&buffer, pace)?;
        self.buffer = buffer;
        self.buffer.clear();
        Ok(())
    }

    fn write(&mut self, bytes: &[u8], pace: &mut Pace<'_>) -> Result<(), CleanError> {
        if bytes.is_empty() {
            return Ok(());
        }
        stop_or_go(pace(bytes.len()))?;
        let segment = &self.active.segment;
        segment.log.write_all_at(&[IoSlice::new(bytes)], segment.size())?;
        segment.publish_size(segment.size() + bytes.len() as u64);
        Ok(())
    }

    /// Everything to the disk; the names too.
    fn finish<D: Disk<File = F>>(mut self, disk: &D, directory: &std::path::Path) -> io::Result<Arc<Segment<F>>> {
        let [offsets, times] = self.active.finish_indexes(disk, directory)?;
        let segment = self.active.segment;
        let list = disk.open(
            &cleaned_path(Kind::Bases, directory, segment.base_offset),
            OpenMode::Replace,
        )?;
        list.write_all_at(&[IoSlice::new(&self.bases.finish(segment.size()))], 0)?;
        for file in [&segment.log, &offsets, &times, &list] {
            file.sync()?;
        }
        disk.sync_directory(directory)?;
        segment.set_bases(BatchBases::open(list, segment.size())?);
        segment.with_indexes(|indexes| *indexes = Indexes::Files { offsets, times });
        Ok(segment)
    }
}
