//! The sparse map from offsets to positions in a segment: Kafka's `.index` file.
//!
//! ```text
//! entry = relative offset u32 | position u32      (big-endian, 8 bytes, both ascending)
//! ```
//! An entry names the last offset of a batch and where the batch begins; there is one for every
//! `index.interval.bytes` of log. Preallocated files end in zeroes, which are no entries. The file can be rebuilt from
//! the segment, so nothing read from it is trusted: a lookup is a hint where to start scanning.

use std::io;

use crate::disk::{File, read_exact_at};

pub(crate) const ENTRY_BYTES: usize = 8;

/// Where a batch is: its last offset, relative to the segment's base, and its first byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    pub(crate) relative_offset: u32,
    pub(crate) position: u32,
}

impl Entry {
    pub(crate) fn to_bytes(self) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        bytes[..4].copy_from_slice(&self.relative_offset.to_be_bytes());
        bytes[4..].copy_from_slice(&self.position.to_be_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: [u8; ENTRY_BYTES]) -> Self {
        let [a, b, c, d, e, f, g, h] = bytes;
        Entry {
            relative_offset: u32::from_be_bytes([a, b, c, d]),
            position: u32::from_be_bytes([e, f, g, h]),
        }
    }
}

/// The entries of a file of `count` slots; slots of zeroes at its end are left out.
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
    while entries
        .last()
        .is_some_and(|entry| entry.position == 0 && entry.relative_offset == 0)
    {
        entries.pop();
    }
    let ascending = entries
        .windows(2)
        .all(|pair| pair[0].relative_offset < pair[1].relative_offset && pair[0].position < pair[1].position);
    Ok(ascending.then_some(entries))
}

/// The last entry at or below `relative_offset`.
pub(crate) fn floor(entries: &[Entry], relative_offset: u32) -> Option<Entry> {
    let after = entries.partition_point(|entry| entry.relative_offset <= relative_offset);
    after.checked_sub(1).map(|at| entries[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_is_the_last_entry_not_above() {
        let entries: Vec<Entry> = [(24, 4664), (44, 9249)]
            .into_iter()
            .map(|(relative_offset, position)| Entry {
                relative_offset,
                position,
            })
            .collect();
        assert_eq!(floor(&entries, 23), None);
        assert_eq!(floor(&entries, 24).map(|entry| entry.position), Some(4664));
        assert_eq!(floor(&entries, 43).map(|entry| entry.position), Some(4664));
        assert_eq!(floor(&entries, 500).map(|entry| entry.position), Some(9249));
    }

    #[test]
    fn an_entry_is_eight_big_endian_bytes() {
        let entry = Entry {
            relative_offset: 24,
            position: 4664,
        };
        assert_eq!(entry.to_bytes(), [0, 0, 0, 24, 0, 0, 0x12, 0x38]);
        assert_eq!(Entry::from_bytes(entry.to_bytes()), entry);
    }
}
