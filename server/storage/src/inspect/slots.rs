//! The entries of index files, read in large pieces. Slots of zeroes are room that was set aside, not entries.

use std::io;
use std::path::Path;

use model::Offset;

use crate::disk::{Disk, File, OpenMode};
use crate::file_names::Kind;
use crate::scan::{Check, Window};
use crate::{offset_index, time_index};

/// version i16 | producer id, first offset, last offset, last stable offset i64
pub(super) const TRANSACTION_ENTRY_BYTES: usize = 34;

/// An entry of a `.index` file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OffsetIndexEntry {
    pub offset: Offset,
    pub position: u32,
}

/// An entry of a `.timeindex` file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimeIndexEntry {
    /// Milliseconds; as it stands in the file.
    pub timestamp: i64,
    pub offset: Offset,
}

/// An aborted transaction: an entry of a `.txnindex` file, as it stands there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TransactionIndexEntry {
    pub version: i16,
    pub producer_id: i64,
    pub first_offset: i64,
    pub last_offset: i64,
    pub last_stable_offset: i64,
}

/// The slots of `N` bytes of a file.
pub(super) struct Slots<'f, F, const N: usize> {
    window: Window<'f, F>,
    count: u64,
    next: u64,
}

impl<'f, F: File, const N: usize> Slots<'f, F, N> {
    pub(super) fn new(file: &'f F, size: u64) -> Self {
        Slots {
            window: Window::new(file, size, Check::Headers),
            count: size / N as u64,
            next: 0,
        }
    }

    /// The next entry and its number; `None` behind the last. A first slot of zeroes is passed over: the offset index has
    /// no such entry, and in the time index it says nothing.
    pub(super) fn next(&mut self) -> io::Result<Option<(u64, [u8; N])>> {
        while self.next < self.count {
            let number = self.next;
            self.next += 1;
            let bytes = self.window.at(number * N as u64, N)?;
            let slot = *bytes.first_chunk::<N>().ok_or(io::ErrorKind::UnexpectedEof)?;
            if slot != [0; N] {
                return Ok(Some((number, slot)));
            }
            if number > 0 {
                self.next = self.count;
            }
        }
        Ok(None)
    }
}

fn visit<D: Disk, const N: usize>(
    disk: &D,
    path: &Path,
    mut each: impl FnMut(Offset, [u8; N]) -> io::Result<()>,
) -> io::Result<u64> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let base = Kind::parse(name).map_or(Offset::ZERO, |(_, base)| base);
    let file = disk.open(path, OpenMode::Read)?;
    let size = file.size_bytes()?;
    let mut slots = Slots::<_, N>::new(&file, size);
    while let Some((_, slot)) = slots.next()? {
        each(base, slot)?;
    }
    Ok(size % N as u64)
}

/// Visits the entries of a `.index` file; the offsets are absolute. Returns how many bytes at its end are no entry.
///
/// # Errors
/// As the disk says, and those of `each`.
pub fn visit_offset_index<D: Disk>(
    disk: &D,
    path: &Path,
    mut each: impl FnMut(OffsetIndexEntry) -> io::Result<()>,
) -> io::Result<u64> {
    visit::<D, { offset_index::ENTRY_BYTES }>(disk, path, |base, slot| {
        let entry = offset_index::Entry::from_bytes(slot);
        each(OffsetIndexEntry {
            offset: absolute(base, entry.relative_offset),
            position: entry.position,
        })
    })
}

/// Visits the entries of a `.timeindex` file, as [`visit_offset_index`].
///
/// # Errors
/// As the disk says, and those of `each`.
pub fn visit_time_index<D: Disk>(
    disk: &D,
    path: &Path,
    mut each: impl FnMut(TimeIndexEntry) -> io::Result<()>,
) -> io::Result<u64> {
    visit::<D, { time_index::ENTRY_BYTES }>(disk, path, |base, slot| {
        let entry = time_index::Entry::from_bytes(slot);
        each(TimeIndexEntry {
            timestamp: entry.timestamp,
            offset: absolute(base, entry.relative_offset),
        })
    })
}

/// Visits the entries of a `.txnindex` file, as [`visit_offset_index`].
///
/// # Errors
/// As the disk says, and those of `each`.
pub fn visit_transaction_index<D: Disk>(
    disk: &D,
    path: &Path,
    mut each: impl FnMut(TransactionIndexEntry) -> io::Result<()>,
) -> io::Result<u64> {
    visit::<D, TRANSACTION_ENTRY_BYTES>(disk, path, |_, slot| each(transaction_entry(slot)))
}

pub(super) fn transaction_entry(slot: [u8; TRANSACTION_ENTRY_BYTES]) -> TransactionIndexEntry {
    let number = |at: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&slot[at..at + 8]);
        i64::from_be_bytes(bytes)
    };
    TransactionIndexEntry {
        version: i16::from_be_bytes([slot[0], slot[1]]),
        producer_id: number(2),
        first_offset: number(10),
        last_offset: number(18),
        last_stable_offset: number(26),
    }
}

/// The offset of an entry; what passes the greatest offset stays there.
pub(super) fn absolute(base: Offset, relative: u32) -> Offset {
    let offset = base.get().saturating_add(i64::from(relative));
    Offset::from_wire(offset).unwrap_or(Offset::MAX)
}
