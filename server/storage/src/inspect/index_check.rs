//! Index files against the log, in step with a walk over it: each entry is looked at when its batch comes by.
//!
//! At most one fault is told of an index: the whole file is made anew whatever the number.

use std::io;

use model::Offset;
use model::record_batch::BatchHeader;

use super::finding::Fault;
use super::slots::{Slots, TRANSACTION_ENTRY_BYTES, absolute, transaction_entry};
use crate::disk::File;
use crate::{offset_index, time_index};

/// The entries of an index in their order, up to the first fault.
struct Entries<'f, F, E, const N: usize> {
    slots: Slots<'f, F, N>,
    parse: fn([u8; N]) -> E,
    /// Whether the second may follow the first.
    ascends: fn(E, E) -> bool,
    current: Option<(u64, E)>,
    before: Option<E>,
    fault: Option<(u64, Fault)>,
}

impl<'f, F: File, E: Copy, const N: usize> Entries<'f, F, E, N> {
    fn new(file: &'f F, size: u64, parse: fn([u8; N]) -> E, ascends: fn(E, E) -> bool) -> io::Result<Self> {
        let mut entries = Entries {
            slots: Slots::new(file, size),
            parse,
            ascends,
            current: None,
            before: None,
            fault: size_fault(size, N),
        };
        entries.advance()?;
        Ok(entries)
    }

    fn advance(&mut self) -> io::Result<()> {
        self.before = self.current.map(|(_, entry)| entry).or(self.before);
        self.current = None;
        if self.fault.is_some() {
            return Ok(());
        }
        let Some((number, slot)) = self.slots.next()? else {
            return Ok(());
        };
        let entry = (self.parse)(slot);
        if self.before.is_none_or(|before| (self.ascends)(before, entry)) {
            self.current = Some((number, entry));
        } else {
            self.fail(number, Fault::IndexOrder { entry: number });
        }
        Ok(())
    }

    fn fail(&mut self, number: u64, fault: Fault) {
        self.current = None;
        self.fault.get_or_insert((number * N as u64, fault));
    }
}

/// The offset index of a segment.
pub(super) struct OffsetIndexCheck<'f, F> {
    entries: Entries<'f, F, offset_index::Entry, { offset_index::ENTRY_BYTES }>,
    base: Offset,
}

impl<'f, F: File> OffsetIndexCheck<'f, F> {
    pub(super) fn new(file: &'f F, size: u64, base: Offset) -> io::Result<Self> {
        let entries = Entries::new(file, size, offset_index::Entry::from_bytes, |before, entry| {
            before.relative_offset < entry.relative_offset && before.position < entry.position
        })?;
        Ok(OffsetIndexCheck { entries, base })
    }

    /// Whether the file has any entry.
    pub(super) fn is_empty(&self) -> bool {
        let entries = &self.entries;
        entries.before.is_none() && entries.current.is_none() && entries.fault.is_none()
    }

    /// A batch whose header can be believed.
    pub(super) fn visit(&mut self, header: &BatchHeader, position: u64) -> io::Result<()> {
        while let Some((number, entry)) = self
            .entries
            .current
            .filter(|(_, entry)| u64::from(entry.position) <= position)
        {
            let offset = absolute(self.base, entry.relative_offset);
            if u64::from(entry.position) == position && offset == header.last_offset() {
                self.entries.advance()?;
                continue;
            }
            let fault = Fault::OffsetIndexEntry {
                entry: number,
                offset,
                position: entry.position,
            };
            self.entries.fail(number, fault);
        }
        Ok(())
    }

    /// Bytes up to `position` that say nothing: entries that point there are passed over.
    pub(super) fn pass_over(&mut self, position: u64) -> io::Result<()> {
        while self
            .entries
            .current
            .is_some_and(|(_, entry)| u64::from(entry.position) < position)
        {
            self.entries.advance()?;
        }
        Ok(())
    }

    /// The log is at its end: what is wrong, and where in the file.
    pub(super) fn finish(mut self) -> Option<(u64, Fault)> {
        if let Some((number, _)) = self.entries.current {
            self.entries.fail(number, Fault::IndexBeyondLog { entry: number });
        }
        self.entries.fault
    }
}

/// The time index of a segment.
pub(super) struct TimeIndexCheck<'f, F> {
    entries: Entries<'f, F, time_index::Entry, { time_index::ENTRY_BYTES }>,
    base: Offset,
    largest_timestamp: i64,
    /// After damage it is not known what the greatest timestamp was, nor where what was damaged ended.
    after_damage: bool,
}

impl<'f, F: File> TimeIndexCheck<'f, F> {
    pub(super) fn new(file: &'f F, size: u64, base: Offset) -> io::Result<Self> {
        let entries = Entries::new(file, size, time_index::Entry::from_bytes, |before, entry| {
            before.timestamp < entry.timestamp && before.relative_offset <= entry.relative_offset
        })?;
        Ok(TimeIndexCheck {
            entries,
            base,
            largest_timestamp: -1,
            after_damage: false,
        })
    }

    /// A sound batch.
    pub(super) fn visit(&mut self, header: &BatchHeader) -> io::Result<()> {
        self.largest_timestamp = self.largest_timestamp.max(header.max_timestamp);
        while let Some((number, entry)) = self.entries.current {
            let offset = absolute(self.base, entry.relative_offset);
            if offset > header.last_offset() {
                return Ok(());
            }
            let was_passed = offset < header.first_offset();
            let agrees = !was_passed
                && entry.timestamp == header.max_timestamp
                && (self.after_damage || entry.timestamp == self.largest_timestamp);
            if agrees || (was_passed && self.after_damage) {
                self.entries.advance()?;
                continue;
            }
            let fault = Fault::TimeIndexEntry {
                entry: number,
                offset,
                timestamp: entry.timestamp,
            };
            self.entries.fail(number, fault);
        }
        Ok(())
    }

    pub(super) fn pass_over_damage(&mut self) {
        self.after_damage = true;
    }

    /// The log is at its end: what is wrong, and where in the file. Of a segment that is not written to any more, the last
    /// entry is its greatest timestamp.
    pub(super) fn finish(mut self, is_sealed: bool) -> Option<(u64, Fault)> {
        if let Some((number, _)) = self.entries.current {
            if !self.after_damage {
                self.entries.fail(number, Fault::IndexBeyondLog { entry: number });
            }
            return self.entries.fault;
        }
        let last = self.entries.before.map_or(-1, |entry| entry.timestamp);
        // The slot of a first batch at time 0 is all zeroes.
        let is_complete = last >= self.largest_timestamp || self.largest_timestamp <= 0;
        if is_sealed && !self.after_damage && self.entries.fault.is_none() && !is_complete {
            let timestamp = self.largest_timestamp;
            self.entries.fault = Some((0, Fault::TimeIndexIncomplete { timestamp }));
        }
        self.entries.fault
    }
}

/// The aborted transactions of a segment: within it, in the order of their ends.
pub(super) fn check_transaction_index<F: File>(
    file: &F,
    size: u64,
    base: Offset,
    end: Offset,
) -> io::Result<Option<(u64, Fault)>> {
    if let Some(fault) = size_fault(size, TRANSACTION_ENTRY_BYTES) {
        return Ok(Some(fault));
    }
    let mut slots = Slots::<_, TRANSACTION_ENTRY_BYTES>::new(file, size);
    let mut before = base.get() - 1;
    while let Some((number, slot)) = slots.next()? {
        let entry = transaction_entry(slot);
        let is_one = entry.version == 0
            && entry.producer_id >= 0
            && (0..=entry.last_offset).contains(&entry.first_offset)
            && (before + 1..end.get()).contains(&entry.last_offset);
        if !is_one {
            let position = number * TRANSACTION_ENTRY_BYTES as u64;
            return Ok(Some((position, Fault::TransactionIndexEntry { entry: number })));
        }
        before = entry.last_offset;
    }
    Ok(None)
}

fn size_fault(size: u64, entry_bytes: usize) -> Option<(u64, Fault)> {
    let rest = size % entry_bytes as u64;
    (rest != 0).then_some((
        size - rest,
        Fault::IndexSize {
            bytes: size,
            entry_bytes,
        },
    ))
}
