//! Where the batches of a cleaned segment begin: the file `.bases` beside it.
//!
//! ```text
//! 0   format, 0
//! 4   checksum (CRC-32C) of all behind it
//! 8   bytes of the log file
//! 16  CRC-32C over the checksums of its batches: whose the list is
//! 20  base offset of each batch, less the segment's; four bytes each, ascending
//! ```
//! No checksum covers a batch's base offset. Elsewhere the neighbours bear it out, for batches follow one another without a
//! gap; compaction leaves gaps, in which a batch could be moved. So the cleaner writes down what it has written.
//! - All numbers are big-endian. Kafka passes over the file, and a segment that it has cleaned again is told by size and
//!   checksums: the list is of no use then, and dropped.
//! - A list that is missing or of no use makes nothing unreadable.

use std::io;

use model::Offset;
use model::record_batch::BatchHeader;

use crate::disk::{File, read_exact_at};
use crate::scan::{Check, Window};
use crate::segment::{Wait, fill};

const FORMAT: u32 = 0;
const HEADER_BYTES: usize = 20;
/// Where what the checksum covers begins.
const CHECKSUMMED_FROM: usize = 8;
const ENTRY_BYTES: usize = 4;
/// No segment has more batches: each takes 61 bytes at least.
const ENTRIES_MAX: u64 = i32::MAX.unsigned_abs() as u64 / 61 + 1;
/// How many entries a reader takes at a time.
const CHUNK_ENTRIES: u64 = 256;

/// The list of a segment that readers hold.
#[derive(Debug)]
pub(crate) struct BatchBases<F> {
    file: F,
    entries: u64,
}

/// The list in memory, checked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Bases {
    segment: Offset,
    relative: Vec<u32>,
}

/// Walks along the list as a reader walks along the batches.
pub(crate) struct Cursor<'b, F> {
    bases: &'b BatchBases<F>,
    wait: Wait,
    /// The entry of the next batch.
    entry: u64,
    chunk: Vec<u32>,
    chunk_from: u64,
}

/// Notes the batches that are written.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    entries: Vec<u8>,
    fingerprint: u32,
}

impl Writer {
    /// Takes a batch in that begins `relative` above the segment's base.
    pub(crate) fn note(&mut self, header: &BatchHeader, relative: u32) {
        self.entries.extend_from_slice(&relative.to_be_bytes());
        self.fingerprint = fingerprint_with(self.fingerprint, header);
    }

    /// The file of a segment of so many bytes.
    pub(crate) fn finish(self, log_bytes: u64) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES + self.entries.len());
        bytes.extend_from_slice(&FORMAT.to_be_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&log_bytes.to_be_bytes());
        bytes.extend_from_slice(&self.fingerprint.to_be_bytes());
        bytes.extend_from_slice(&self.entries);
        let checksum = crc32c::crc32c(&bytes[CHECKSUMMED_FROM..]);
        bytes[4..CHECKSUMMED_FROM].copy_from_slice(&checksum.to_be_bytes());
        bytes
    }
}

fn fingerprint_with(fingerprint: u32, header: &BatchHeader) -> u32 {
    crc32c::crc32c_append(fingerprint, &header.crc.to_be_bytes())
}

impl<F: File> BatchBases<F> {
    /// Takes the list over for a segment of `log_bytes`; `None` if it is not one of such a segment.
    ///
    /// # Errors
    /// As the disk says.
    pub(crate) fn open(file: F, log_bytes: u64) -> io::Result<Option<Self>> {
        let size = file.size_bytes()?;
        let Some(entries) = size
            .checked_sub(HEADER_BYTES as u64)
            .map(|rest| rest / ENTRY_BYTES as u64)
        else {
            return Ok(None);
        };
        let is_sized = size == HEADER_BYTES as u64 + entries * ENTRY_BYTES as u64 && entries <= ENTRIES_MAX;
        if !is_sized {
            return Ok(None);
        }
        let mut head = [0; HEADER_BYTES];
        read_exact_at(&file, &mut head, 0)?;
        let is_of_it = head[..4] == FORMAT.to_be_bytes() && head[CHECKSUMMED_FROM..16] == log_bytes.to_be_bytes();
        Ok(is_of_it.then_some(BatchBases { file, entries }))
    }

    /// The whole list, if it is sound and that of the first `log_bytes` of `log`.
    ///
    /// # Errors
    /// As the disk says.
    pub(crate) fn load(&self, log: &F, log_bytes: u64, segment: Offset) -> io::Result<Option<Bases>> {
        let entries_bytes = usize::try_from(self.entries).unwrap_or(usize::MAX) * ENTRY_BYTES;
        let mut bytes = vec![0; HEADER_BYTES + entries_bytes];
        read_exact_at(&self.file, &mut bytes, 0)?;
        if bytes[4..CHECKSUMMED_FROM] != crc32c::crc32c(&bytes[CHECKSUMMED_FROM..]).to_be_bytes() {
            return Ok(None);
        }
        let (mut fingerprint, mut position) = (0, 0);
        let mut window = Window::new(log, log_bytes, Check::Headers);
        while let Some(header) = window.header(position)? {
            fingerprint = fingerprint_with(fingerprint, &header);
            position += header.size_bytes() as u64;
        }
        let is_of_it = bytes[16..HEADER_BYTES] == fingerprint.to_be_bytes();
        let relative = to_entries(&bytes[HEADER_BYTES..]);
        Ok(is_of_it.then_some(Bases { segment, relative }))
    }

    /// A cursor at the first batch.
    pub(crate) fn first(&self, wait: Wait) -> Cursor<'_, F> {
        Cursor {
            bases: self,
            wait,
            entry: 0,
            chunk: Vec::new(),
            chunk_from: 0,
        }
    }

    /// A cursor at the batch that begins at `relative`; behind the last one if none does.
    ///
    /// # Errors
    /// As the disk says; [`io::ErrorKind::WouldBlock`] where waiting is refused.
    pub(crate) fn at(&self, relative: u32, wait: Wait) -> io::Result<Cursor<'_, F>> {
        let mut cursor = self.first(wait);
        let (mut low, mut high) = (0, self.entries);
        while low < high {
            let middle = low + (high - low) / 2;
            let mut slot = [0; ENTRY_BYTES];
            fill(&self.file, &mut slot, position(middle), wait)?;
            if u32::from_be_bytes(slot) < relative {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        cursor.entry = low;
        if cursor.peek()? != Some(relative) {
            cursor.entry = self.entries;
        }
        Ok(cursor)
    }
}

impl<F: File> Cursor<'_, F> {
    /// Whether the next batch begins at `relative`; the cursor moves on.
    ///
    /// # Errors
    /// As the disk says; [`io::ErrorKind::WouldBlock`] where waiting is refused.
    pub(crate) fn next_is(&mut self, relative: u32) -> io::Result<bool> {
        let next = self.peek()?;
        self.entry += 1;
        Ok(next == Some(relative))
    }

    fn peek(&mut self) -> io::Result<Option<u32>> {
        if self.entry >= self.bases.entries {
            return Ok(None);
        }
        let within = |cursor: &Self| {
            let at = cursor.entry.checked_sub(cursor.chunk_from)?;
            cursor.chunk.get(usize::try_from(at).ok()?).copied()
        };
        if let Some(relative) = within(self) {
            return Ok(Some(relative));
        }
        let count = CHUNK_ENTRIES.min(self.bases.entries - self.entry);
        let mut bytes = vec![0; usize::try_from(count).unwrap_or(0) * ENTRY_BYTES];
        fill(&self.bases.file, &mut bytes, position(self.entry), self.wait)?;
        self.chunk = to_entries(&bytes);
        self.chunk_from = self.entry;
        Ok(within(self))
    }
}

impl Bases {
    /// Where the first batch at or above `offset` begins.
    pub(crate) fn next_from(&self, offset: Offset) -> Option<Offset> {
        let relative = offset.since(self.segment);
        let at = self.relative.partition_point(|base| i64::from(*base) < relative);
        let base = self.relative.get(at)?;
        Some(self.segment.plus(i64::from(*base)))
    }
}

fn position(entry: u64) -> u64 {
    HEADER_BYTES as u64 + entry * ENTRY_BYTES as u64
}

fn to_entries(bytes: &[u8]) -> Vec<u32> {
    let (entries, _) = bytes.as_chunks::<ENTRY_BYTES>();
    entries.iter().map(|entry| u32::from_be_bytes(*entry)).collect()
}

#[cfg(test)]
mod tests;
