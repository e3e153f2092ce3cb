//! The file `move` in a partition's folder: that the log is about to leave for another directory, or has come from there.
//!
//! ```text
//! version: 0
//! move: the move's id
//! from: the id of the directory that the log leaves
//! to: the id of the directory that it goes to
//! checksum: CRC-32C of all before this line
//! ```
//! In a folder of the directory `from` it says what is about to happen; in one of `to`, what its content is a copy of.

use std::io;
use std::path::Path;

use model::{DirectoryId, Uuid};

use crate::disk::{Disk, read_small_file, remove_file_if_there, replace_file};
use crate::log_directory::SMALL_FILE_BYTES_MAX;

/// Kafka passes over it.
pub const MOVE_FILE: &str = "move";

/// One move of one partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MoveNote {
    pub id: Uuid,
    pub from: DirectoryId,
    pub to: DirectoryId,
}

/// What a folder says of moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Noted {
    Nothing,
    Move(MoveNote),
    /// There is a note that cannot be read.
    Damaged,
}

impl MoveNote {
    fn to_text(self) -> String {
        let body = format!("version: 0\nmove: {}\nfrom: {}\nto: {}\n", self.id, self.from, self.to);
        let checksum = crc32c::crc32c(body.as_bytes());
        format!("{body}checksum: {checksum:08x}\n")
    }

    fn from_text(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        lines.next().filter(|line| *line == "version: 0")?;
        let note = MoveNote {
            id: lines.next()?.strip_prefix("move: ")?.parse().ok()?,
            from: lines.next()?.strip_prefix("from: ")?.parse().ok()?,
            to: lines.next()?.strip_prefix("to: ")?.parse().ok()?,
        };
        (note.to_text() == text).then_some(note)
    }

    /// Puts the note into a folder, durably.
    pub(super) fn write<D: Disk>(self, disk: &D, folder: &Path) -> io::Result<()> {
        replace_file(disk, &folder.join(MOVE_FILE), self.to_text().as_bytes())
    }
}

/// The note in a folder.
///
/// # Errors
/// As the disk says.
pub fn read_note<D: Disk>(disk: &D, folder: &Path) -> io::Result<Noted> {
    match read_small_file(disk, &folder.join(MOVE_FILE), SMALL_FILE_BYTES_MAX) {
        Ok(bytes) => {
            let note = std::str::from_utf8(&bytes).ok().and_then(MoveNote::from_text);
            Ok(note.map_or(Noted::Damaged, Noted::Move))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Noted::Nothing),
        Err(error) => Err(error),
    }
}

/// Takes the note out of a folder, durably.
pub(super) fn remove_note<D: Disk>(disk: &D, folder: &Path) -> io::Result<()> {
    remove_file_if_there(disk, &folder.join(MOVE_FILE))?;
    disk.sync_directory(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{File, OpenMode, SimDisk};

    #[test]
    fn a_note_is_read_back_and_any_flipped_bit_is_damage() {
        let disk = SimDisk::new(1);
        let folder = Path::new("/t-0");
        disk.create_directory(folder).unwrap();
        assert_eq!(read_note(&disk, folder).unwrap(), Noted::Nothing);
        let note = MoveNote {
            id: Uuid::from_bytes([1; 16]),
            from: Uuid::from_bytes([2; 16]),
            to: Uuid::from_bytes([3; 16]),
        };
        note.write(&disk, folder).unwrap();
        assert_eq!(read_note(&disk, folder).unwrap(), Noted::Move(note));
        let text = note.to_text();
        let file = disk.open(&folder.join(MOVE_FILE), OpenMode::ReadWrite).unwrap();
        for bit in 0..text.len() * 8 {
            let mut bytes = text.clone().into_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            file.write_all_at(&[io::IoSlice::new(&bytes)], 0).unwrap();
            assert_eq!(read_note(&disk, folder).unwrap(), Noted::Damaged, "bit {bit}");
        }
        remove_note(&disk, folder).unwrap();
        remove_note(&disk, folder).unwrap();
        assert_eq!(read_note(&disk, folder).unwrap(), Noted::Nothing);
    }
}
