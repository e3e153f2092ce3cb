//! One segment of a log: a file of batches and its two sparse indexes, as readers see them.
//!
//! ```text
//! base offset                                   end
//! |batch|batch|batch|  …  |batch|batch|          log file; readers see its first `size` bytes
//!       ^ index entry           ^ index entry    every `index.interval.bytes`
//! ```
//! The one writer appends behind `size` and then moves `size`; readers never look beyond. The segment that is written to
//! has its indexes in memory (and in the files, for tools and the next start); the others are looked up in their files.

use std::io;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use arc_swap::{ArcSwap, ArcSwapOption};
use model::record_batch::BatchHeader;
use model::{Offset, Timestamp};

use crate::batch_bases::{Bases, BatchBases, Cursor};
use crate::disk::{File, read_exact_at};
use crate::scan::{Check, Window};
use crate::survey::Hole;
use crate::{offset_index, time_index};

/// Stands for "not looked up yet" in [`Segment::largest_timestamp`]: no producer can send it.
const TIMESTAMP_UNKNOWN: i64 = i64::MIN;

/// Whether a read may wait for the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    Allowed,
    /// Fail with [`io::ErrorKind::WouldBlock`] instead.
    Refused,
}

/// The read side of a segment.
#[derive(Debug)]
pub(crate) struct Segment<F> {
    pub(crate) base_offset: Offset,
    pub(crate) log: F,
    size: AtomicU64,
    indexes: RwLock<Indexes<F>>,
    largest_timestamp: AtomicI64,
    /// Where the next segment begins; the greatest offset for the last one.
    limit: AtomicI64,
    /// Stretches of bytes that are never served, ascending.
    holes: ArcSwap<Vec<Hole>>,
    /// Where the batches begin, if that was written down.
    bases: ArcSwapOption<BatchBases<F>>,
}

/// Where the indexes of a segment are.
#[derive(Debug)]
pub(crate) enum Indexes<F> {
    Memory {
        offsets: Vec<offset_index::Entry>,
        times: Vec<time_index::Entry>,
    },
    Files {
        offsets: F,
        times: F,
    },
}

/// A batch found in a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Found {
    pub(crate) header: BatchHeader,
    pub(crate) position: u64,
}

impl<F: File> Segment<F> {
    pub(crate) fn new(base_offset: Offset, log: F, size: u64, indexes: Indexes<F>) -> Self {
        Segment {
            base_offset,
            log,
            size: AtomicU64::new(size),
            indexes: RwLock::new(indexes),
            largest_timestamp: AtomicI64::new(TIMESTAMP_UNKNOWN),
            limit: AtomicI64::new(i64::MAX),
            holes: ArcSwap::default(),
            bases: ArcSwapOption::empty(),
        }
    }

    /// Lets readers hold the batches against a list of where they begin.
    pub(crate) fn set_bases(&self, bases: Option<BatchBases<F>>) {
        self.bases.store(bases.map(Arc::new));
    }

    pub(crate) fn bases(&self) -> Option<Arc<BatchBases<F>>> {
        self.bases.load_full()
    }

    /// The list in memory; `None` if there is none, or it is of no use.
    pub(crate) fn load_bases(&self) -> io::Result<Option<Bases>> {
        match self.bases() {
            Some(bases) => bases.load(&self.log, self.size(), self.base_offset),
            None => Ok(None),
        }
    }

    /// Whether the batch of `header` begins where the one does that `cursor` is at. Moves it on.
    pub(crate) fn is_placed(&self, cursor: &mut Cursor<'_, F>, header: &BatchHeader) -> io::Result<bool> {
        match self.relative(header.first_offset()) {
            Some(relative) => cursor.next_is(relative),
            None => Ok(false),
        }
    }

    /// A cursor at the batch that begins at `offset`, if the list says that one does.
    pub(crate) fn cursor_at<'b>(
        &self,
        bases: &'b BatchBases<F>,
        offset: Offset,
        wait: Wait,
    ) -> io::Result<Cursor<'b, F>> {
        bases.at(self.relative(offset).unwrap_or(u32::MAX), wait)
    }

    pub(crate) fn size(&self) -> u64 {
        self.size.load(Ordering::Acquire)
    }

    /// Lets readers see the first `size` bytes.
    pub(crate) fn publish_size(&self, size: u64) {
        self.size.store(size, Ordering::Release);
    }

    pub(crate) fn with_indexes<T>(&self, act: impl FnOnce(&mut Indexes<F>) -> T) -> T {
        act(&mut self.indexes.write().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn relative(&self, offset: Offset) -> Option<u32> {
        u32::try_from(offset.since(self.base_offset)).ok()
    }

    /// Where the next segment begins; `None` if this is the last.
    pub(crate) fn limit(&self) -> Option<Offset> {
        let limit = self.limit.load(Ordering::Acquire);
        (limit < i64::MAX).then(|| Offset::new(limit))
    }

    pub(crate) fn set_limit(&self, limit: Offset) {
        self.limit.store(limit.get(), Ordering::Release);
    }

    /// Lets readers pass over damaged stretches.
    pub(crate) fn set_holes(&self, holes: Vec<Hole>) {
        self.holes.store(Arc::new(holes));
        // It may have been that of a damaged batch.
        self.set_largest_timestamp(TIMESTAMP_UNKNOWN);
    }

    pub(crate) fn holes(&self) -> Arc<Vec<Hole>> {
        self.holes.load_full()
    }

    pub(crate) fn set_largest_timestamp(&self, timestamp: i64) {
        self.largest_timestamp.store(timestamp, Ordering::Release);
    }

    /// The greatest timestamp of the segment's records; `None` if none has one.
    pub(crate) fn largest_timestamp(&self, wait: Wait) -> io::Result<Option<Timestamp>> {
        let known = self.largest_timestamp.load(Ordering::Acquire);
        if known != TIMESTAMP_UNKNOWN {
            return Ok(Timestamp::from_wire(known));
        }
        let last = self.verified_time_floor(i64::MAX, wait)?;
        let mut largest = last.map_or(-1, |entry| entry.timestamp);
        // The last entry is written when the segment is left; without it the rest has to be looked at.
        let from = last.map_or(self.base_offset, |entry| {
            self.base_offset.plus(i64::from(entry.relative_offset))
        });
        self.visit_from(from, wait, |found| {
            largest = largest.max(found.header.max_timestamp);
            false
        })?;
        self.set_largest_timestamp(largest);
        Ok(Timestamp::from_wire(largest))
    }

    /// The first batch whose last offset is at or above `offset`; `None` if the segment ends before.
    pub(crate) fn find(&self, offset: Offset, wait: Wait) -> io::Result<Option<Found>> {
        let mut hit = None;
        self.visit_from(offset, wait, |found| {
            hit = Some(*found);
            true
        })?;
        Ok(hit)
    }

    /// Visits the batches from the one that holds `offset` on until `stop` says so.
    ///
    /// # Errors
    /// `InvalidData` where the bytes are no batch in order.
    pub(crate) fn visit_from(
        &self,
        offset: Offset,
        wait: Wait,
        mut stop: impl FnMut(&Found) -> bool,
    ) -> io::Result<()> {
        let size = self.size();
        let limit = Offset::new(self.limit.load(Ordering::Acquire));
        let holes = self.holes.load();
        let mut window = Window::new(&self.log, size, Check::Headers).nowait(wait == Wait::Refused);
        let mut position = self.position_hint(offset, &mut window, wait)?;
        // What an index entry bears out is in its place.
        let mut expected = (position == 0).then_some(self.base_offset);
        let bases = self.bases();
        let mut cursor = match &bases {
            Some(bases) if position == 0 => Some(bases.first(wait)),
            _ => None,
        };
        while position < size {
            if let Some(hole) = hole_at(&holes, position) {
                position = hole.bytes.end;
                expected = Some(hole.from);
                cursor = None;
                continue;
            }
            let header = window.header(position)?.ok_or_else(no_batch)?;
            let behind = position + header.size_bytes() as u64;
            let first = header.first_offset();
            let is_in_order = match expected {
                Some(expected) if first > expected => {
                    behind >= size
                        || hole_at(&holes, behind).is_some()
                        || window
                            .header(behind)?
                            .is_some_and(|next| next.first_offset() >= header.next_offset())
                }
                Some(expected) => first == expected,
                None => true,
            };
            if !is_in_order || header.next_offset() > limit {
                return Err(no_batch());
            }
            if let Some(bases) = &bases {
                let mut at = match cursor.take() {
                    Some(cursor) => cursor,
                    None => self.cursor_at(bases, first, wait)?,
                };
                if !self.is_placed(&mut at, &header)? {
                    return Err(no_batch());
                }
                cursor = Some(at);
            }
            let found = Found { header, position };
            if header.last_offset() >= offset && stop(&found) {
                return Ok(());
            }
            (position, expected) = (behind, Some(header.next_offset()));
        }
        Ok(())
    }

    /// Where to start scanning for `offset`. An index that points to no batch, or behind the one that is sought, is of no
    /// use: then it is the segment's start.
    fn position_hint(&self, offset: Offset, window: &mut Window<'_, F>, wait: Wait) -> io::Result<u64> {
        let Some(relative) = self.relative(offset) else {
            return Ok(0);
        };
        let entry = {
            let indexes = self.indexes.read().unwrap_or_else(PoisonError::into_inner);
            match &*indexes {
                Indexes::Memory { offsets, .. } => offset_index::floor(offsets, relative),
                Indexes::Files { offsets, .. } => {
                    floor_in_file(offsets, wait, offset_entry, |entry: &offset_index::Entry| {
                        entry.relative_offset <= relative
                    })?
                    .map(|(_, entry)| entry)
                }
            }
        };
        let Some(entry) = entry else { return Ok(0) };
        let position = u64::from(entry.position);
        let sound = position < self.size()
            && window.header(position)?.is_some_and(|header| {
                header.first_offset() <= offset && self.relative(header.last_offset()) == Some(entry.relative_offset)
            });
        Ok(if sound { position } else { 0 })
    }

    /// The last time index entry at or below `timestamp`, and the one before it.
    fn time_floor(
        &self,
        timestamp: i64,
        wait: Wait,
    ) -> io::Result<Option<(time_index::Entry, Option<time_index::Entry>)>> {
        let indexes = self.indexes.read().unwrap_or_else(PoisonError::into_inner);
        match &*indexes {
            Indexes::Memory { times, .. } => {
                let after = times.partition_point(|entry| entry.timestamp <= timestamp);
                let before = after.checked_sub(2).map(|at| times[at]);
                Ok(after.checked_sub(1).map(|at| (times[at], before)))
            }
            Indexes::Files { times, .. } => {
                let floor = floor_in_file(times, wait, time_entry, |entry: &time_index::Entry| {
                    entry.timestamp <= timestamp
                })?;
                let Some((slot, entry)) = floor else { return Ok(None) };
                let before = match slot.checked_sub(1) {
                    Some(slot) => Some(time_entry(&read_slot(times, wait, slot)?)),
                    None => None,
                };
                Ok(Some((entry, before)))
            }
        }
    }

    /// The last time index entry at or below `timestamp`, if the log bears it out, for its time; and where to look from for
    /// greater ones: from the entry before it, for one that points too far would hide them, and only one is damaged.
    fn verified_time_floor(&self, timestamp: i64, wait: Wait) -> io::Result<Option<time_index::Entry>> {
        let Some((entry, before)) = self.time_floor(timestamp, wait)? else {
            return Ok(None);
        };
        if before.is_some_and(|before| before.relative_offset > entry.relative_offset) {
            return Ok(None);
        }
        let offset = self.base_offset.plus(i64::from(entry.relative_offset));
        let found = self.find(offset, wait)?;
        let is_borne_out = found.is_some_and(|found| found.header.max_timestamp == entry.timestamp);
        Ok(is_borne_out.then_some(time_index::Entry {
            relative_offset: before.map_or(0, |before| before.relative_offset),
            ..entry
        }))
    }

    /// The first batch whose greatest timestamp is at or above `timestamp` and which ends at or above `from`.
    pub(crate) fn find_timestamp(&self, timestamp: i64, from: Offset, wait: Wait) -> io::Result<Option<Found>> {
        // All records above the entry's timestamp come after its offset.
        let entry = self.verified_time_floor(timestamp.saturating_sub(1), wait)?;
        let start = entry.map_or(self.base_offset, |entry| {
            self.base_offset.plus(i64::from(entry.relative_offset))
        });
        let mut hit = None;
        self.visit_from(start.max(from), wait, |found| {
            if found.header.max_timestamp >= timestamp {
                hit = Some(*found);
            }
            hit.is_some()
        })?;
        Ok(hit)
    }
}

fn no_batch() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "no batch where one should begin")
}

fn hole_at(holes: &[Hole], position: u64) -> Option<&Hole> {
    holes.iter().find(|hole| hole.bytes.contains(&position))
}

/// Tells each segment where the next begins.
pub(crate) fn set_limits<F: File>(segments: &[Arc<Segment<F>>]) {
    for pair in segments.windows(2) {
        pair[0].set_limit(pair[1].base_offset);
    }
    if let Some(last) = segments.last() {
        last.set_limit(Offset::MAX);
    }
}

fn offset_entry(bytes: &[u8; offset_index::ENTRY_BYTES]) -> offset_index::Entry {
    offset_index::Entry::from_bytes(*bytes)
}

fn time_entry(bytes: &[u8; time_index::ENTRY_BYTES]) -> time_index::Entry {
    time_index::Entry::from_bytes(*bytes)
}

/// The last entry of an index file for which `is_below` holds, and its slot. Slots of zeroes behind the first are no
/// entries.
fn floor_in_file<F: File, E, const N: usize>(
    file: &F,
    wait: Wait,
    parse: impl Fn(&[u8; N]) -> E,
    is_below: impl Fn(&E) -> bool,
) -> io::Result<Option<(u64, E)>> {
    let slots = file.size_bytes()? / N as u64;
    let (mut low, mut high) = (0, slots);
    let mut best = None;
    while low < high {
        let middle = low + (high - low) / 2;
        let slot = read_slot(file, wait, middle)?;
        let entry = parse(&slot);
        let empty = middle > 0 && slot == [0; N];
        if !empty && is_below(&entry) {
            best = Some((middle, entry));
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(best)
}

fn read_slot<F: File, const N: usize>(file: &F, wait: Wait, slot: u64) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    fill(file, &mut bytes, slot * N as u64, wait)?;
    Ok(bytes)
}

/// Fills `buffer` from `position` on.
///
/// # Errors
/// As the disk says; [`io::ErrorKind::WouldBlock`] where waiting is refused and there is no other way.
pub(crate) fn fill<F: File>(file: &F, buffer: &mut [u8], position: u64, wait: Wait) -> io::Result<()> {
    match wait {
        Wait::Allowed => read_exact_at(file, buffer, position),
        Wait::Refused if file.read_at_nowait(buffer, position)? == buffer.len() => Ok(()),
        Wait::Refused => Err(io::ErrorKind::WouldBlock.into()),
    }
}
