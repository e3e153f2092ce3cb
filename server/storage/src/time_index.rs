//! The sparse map from timestamps to offsets in a segment: Kafka's `.timeindex` file.
//!
//! ```text
//! entry = timestamp i64 | relative offset u32      (big-endian, 12 bytes, both ascending)
//! ```
//! An entry says: up to here the greatest timestamp is this one, and the batch that has it ends at this offset. So every
//! record with a greater timestamp comes later. Rebuilt from the segment when lost.

use std::io;

use crate::disk::{File, read_exact_at};

pub(crate) const ENTRY_BYTES: usize = 12;

/// The greatest timestamp so far, and the last offset of the first batch that has it (relative to the segment's base).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    pub(crate) timestamp: i64,
    pub(crate) relative_offset: u32,
}

impl Entry {
    pub(crate) fn to_bytes(self) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        bytes[..8].copy_from_slice(&self.timestamp.to_be_bytes());
        bytes[8..].copy_from_slice(&self.relative_offset.to_be_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: [u8; ENTRY_BYTES]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j, k, l] = bytes;
        Entry {
            timestamp: i64::from_be_bytes([a, b, c, d, e, f, g, h]),
            relative_offset: u32::from_be_bytes([i, j, k, l]),
        }
    }
}

/// The entries of the file; slots of zeroes at its end are left out.
///
/// # Errors
/// As the disk says. `None` if the entries do not ascend.
pub(crate) fn read_all(file: &impl File, entries_max: usize) -> io::Result<Option<Vec<Entry>>> {
    let size = usize::try_from(file.size_bytes()?).unwrap_or(usize::MAX);
    if !size.is_multiple_of(ENTRY_BYTES) || size / ENTRY_BYTES > entries_max {
        return Ok(None);
    }
    let mut bytes = vec![0; size];
    read_exact_at(file, &mut bytes, 0)?;
    let (chunks, _) = bytes.as_chunks::<ENTRY_BYTES>();
    let mut entries: Vec<Entry> = chunks.iter().map(|chunk| Entry::from_bytes(*chunk)).collect();
    // The very first entry may be all zero: timestamp 0 in the first batch of one record.
    while entries.len() > 1
        && entries
            .last()
            .is_some_and(|entry| entry.timestamp == 0 && entry.relative_offset == 0)
    {
        entries.pop();
    }
    let ascending = entries
        .windows(2)
        .all(|pair| pair[0].timestamp < pair[1].timestamp && pair[0].relative_offset <= pair[1].relative_offset);
    Ok(ascending.then_some(entries))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_twelve_big_endian_bytes() {
        let entry = Entry {
            timestamp: 0x0102,
            relative_offset: 3,
        };
        assert_eq!(entry.to_bytes(), [0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 3]);
        assert_eq!(Entry::from_bytes(entry.to_bytes()), entry);
    }
}
