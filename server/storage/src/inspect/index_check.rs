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

/// The offset index of a segment.
pub(super) struct OffsetIndexCheck<'f, F> {
    slots: Slots<'f, F, { offset_index::ENTRY_BYTES }>,
    base: Offset,
    current: Option<(u64, offset_index::Entry)>,
    before: Option<offset_index::Entry>,
    pub(super) fault: Option<(u64, Fault)>,
}

impl<'f, F: File> OffsetIndexCheck<'f, F> {
    pub(super) fn new(file: &'f F, size: u64, base: Offset) -> io::Result<Self> {
        let mut check = OffsetIndexCheck {
            slots: Slots::new(file, size),
            base,
            current: None,
            before: None,
            fault: size_fault(size, offset_index::ENTRY_BYTES),
        };
        check.advance()?;
        Ok(check)
    }

    /// Whether the file has any entry.
    pub(super) fn is_empty(&self) -> bool {
        self.before.is_none() && self.current.is_none() && self.fault.is_none()
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
        let entry = offset_index::Entry::from_bytes(slot);
        let ascends = self
            .before
            .is_none_or(|before| before.relative_offset < entry.relative_offset && before.position < entry.position);
        if ascends {
            self.current = Some((number, entry));
        } else {
            self.fail(number, Fault::IndexOrder { entry: number });
        }
        Ok(())
    }

    fn fail(&mut self, number: u64, fault: Fault) {
        self.current = None;
        self.fault
            .get_or_insert((number * offset_index::ENTRY_BYTES as u64, fault));
    }

    /// A batch whose header can be believed.
    pub(super) fn visit(&mut self, header: &BatchHeader, position: u64) -> io::Result<()> {
        while let Some((number, entry)) = self.current.filter(|(_, entry)| u64::from(entry.position) <= position) {
            let offset = absolute(self.base, entry.relative_offset);
            if u64::from(entry.position) == position && offset == header.last_offset() {
                self.advance()?;
                continue;
            }
            let fault = Fault::OffsetIndexEntry {
                entry: number,
                offset,
                position: entry.position,
            };
            self.fail(number, fault);
        }
        Ok(())
    }

    /// Bytes up to `position` that say nothing: entries that point there are passed over.
    pub(super) fn pass_over(&mut self, position: u64) -> io::Result<()> {
        while self
            .current
            .is_some_and(|(_, entry)| u64::from(entry.position) < position)
        {
            self.advance()?;
        }
        Ok(())
    }

    /// The log is at its end.
    pub(super) fn finish(&mut self) {
        if let Some((number, _)) = self.current {
            self.fail(number, Fault::IndexBeyondLog { entry: number });
        }
    }
}

/// The time index of a segment.
pub(super) struct TimeIndexCheck<'f, F> {
    slots: Slots<'f, F, { time_index::ENTRY_BYTES }>,
    base: Offset,
    current: Option<(u64, time_index::Entry)>,
    before: Option<time_index::Entry>,
    largest_timestamp: i64,
    /// After damage it is not known what the greatest timestamp was, nor where what was damaged ended.
    after_damage: bool,
    pub(super) fault: Option<(u64, Fault)>,
}

impl<'f, F: File> TimeIndexCheck<'f, F> {
    pub(super) fn new(file: &'f F, size: u64, base: Offset) -> io::Result<Self> {
        let mut check = TimeIndexCheck {
            slots: Slots::new(file, size),
            base,
            current: None,
            before: None,
            largest_timestamp: -1,
            after_damage: false,
            fault: size_fault(size, time_index::ENTRY_BYTES),
        };
        check.advance()?;
        Ok(check)
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
        let entry = time_index::Entry::from_bytes(slot);
        let ascends = self
            .before
            .is_none_or(|before| before.timestamp < entry.timestamp && before.relative_offset <= entry.relative_offset);
        if ascends {
            self.current = Some((number, entry));
        } else {
            self.fail(number, Fault::IndexOrder { entry: number });
        }
        Ok(())
    }

    fn fail(&mut self, number: u64, fault: Fault) {
        self.current = None;
        self.fault
            .get_or_insert((number * time_index::ENTRY_BYTES as u64, fault));
    }

    /// A sound batch.
    pub(super) fn visit(&mut self, header: &BatchHeader) -> io::Result<()> {
        self.largest_timestamp = self.largest_timestamp.max(header.max_timestamp);
        while let Some((number, entry)) = self.current {
            let offset = absolute(self.base, entry.relative_offset);
            if offset > header.last_offset() {
                return Ok(());
            }
            let was_passed = offset < header.first_offset();
            let agrees = !was_passed
                && entry.timestamp == header.max_timestamp
                && (self.after_damage || entry.timestamp == self.largest_timestamp);
            if agrees || (was_passed && self.after_damage) {
                self.advance()?;
                continue;
            }
            let fault = Fault::TimeIndexEntry {
                entry: number,
                offset,
                timestamp: entry.timestamp,
            };
            self.fail(number, fault);
        }
        Ok(())
    }

    pub(super) fn pass_over_damage(&mut self) {
        self.after_damage = true;
    }

    /// The log is at its end. Of a segment that is not written to any more, the last entry is its greatest timestamp.
    pub(super) fn finish(&mut self, is_sealed: bool) {
        if let Some((number, _)) = self.current {
            if !self.after_damage {
                self.fail(number, Fault::IndexBeyondLog { entry: number });
            }
            return;
        }
        let last = self.before.map_or(-1, |entry| entry.timestamp);
        // The slot of a first batch at time 0 is all zeroes.
        let is_complete = last >= self.largest_timestamp || self.largest_timestamp <= 0;
        if is_sealed && !self.after_damage && self.fault.is_none() && !is_complete {
            let timestamp = self.largest_timestamp;
            self.fault = Some((0, Fault::TimeIndexIncomplete { timestamp }));
        }
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
