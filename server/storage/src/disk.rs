//! The one door to the file system: a directory tree of files that are read and written at positions.
//!
//! Everything above speaks to [`Disk`] and [`File`], so that [`SimDisk`] can stand in for the machine's disk and lose,
//! tear or refuse what a real one may lose, tear or refuse. Calls are synchronous and may block; the shell runs those
//! that do on its own threads.
//!
//! What is on a disk after a crash: the bytes of a file as of its last [`File::sync`], or any part of what was written
//! since; the names of a directory as of its last [`Disk::sync_directory`], or any later state.

mod guarded;
mod real;
mod sim;

use std::io::{self, IoSlice};
use std::path::Path;

pub use guarded::{DirectoryFailure, FailureKind, GuardedDisk, GuardedFigures, GuardedFile, RESERVE_FILE};
pub use real::{RealDisk, RealFile};
pub use sim::{Fault, Operation, SimDisk, SimFile};

/// How a file is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenMode {
    Read,
    /// The file must be there.
    ReadWrite,
    /// For reading and writing; made if it is not there.
    Create,
    /// For writing, emptied if it is there.
    Replace,
}

/// A name in a directory.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct DirectoryEntry {
    pub name: String,
    pub is_directory: bool,
}

/// How large the file system under a directory is, and what of it can still be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Room {
    pub available_bytes: u64,
    pub capacity_bytes: u64,
}

/// A file system, or a part of one.
pub trait Disk: Clone + Send + Sync + 'static {
    type File: File;

    /// # Errors
    /// As the file system says.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Self::File>;

    /// The names in `directory`, sorted. Names that are not UTF-8 are left out: nothing here makes such.
    ///
    /// # Errors
    /// As the file system says.
    fn list(&self, directory: &Path) -> io::Result<Vec<DirectoryEntry>>;

    /// Makes `directory` and what is missing above it; no error if it is there.
    ///
    /// # Errors
    /// As the file system says.
    fn create_directory(&self, directory: &Path) -> io::Result<()>;

    /// Gives a file or directory another name, replacing a file that has it.
    ///
    /// # Errors
    /// As the file system says.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// # Errors
    /// As the file system says.
    fn remove_file(&self, path: &Path) -> io::Result<()>;

    /// Removes `directory` with everything in it.
    ///
    /// # Errors
    /// As the file system says.
    fn remove_directory(&self, directory: &Path) -> io::Result<()>;

    /// Makes the names in `directory` durable.
    ///
    /// # Errors
    /// As the file system says.
    fn sync_directory(&self, directory: &Path) -> io::Result<()>;

    /// Makes a file `to` with the bytes of `from`, which are durable when this returns; its name is not.
    ///
    /// # Errors
    /// As the file system says.
    fn copy_file(&self, from: &Path, to: &Path) -> io::Result<()> {
        let source = self.open(from, OpenMode::Read)?;
        let target = self.open(to, OpenMode::Replace)?;
        let mut buffer = vec![0; COPY_BYTES];
        let mut position = 0;
        loop {
            let read = source.read_at(&mut buffer, position)?;
            if read == 0 {
                return target.sync();
            }
            target.write_all_at(&[IoSlice::new(&buffer[..read])], position)?;
            position += read as u64;
        }
    }

    /// Gives the file `from` a second name, in the same file system.
    ///
    /// # Errors
    /// As the file system says.
    fn link_file(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// The room in the file system that `directory` lies in.
    ///
    /// # Errors
    /// As the file system says.
    fn room(&self, directory: &Path) -> io::Result<Room>;

    /// Whether there is room for what users add; what takes away or keeps order is tried in any case.
    fn takes_growth(&self) -> bool {
        true
    }
}

/// How much of a file is copied at a time.
const COPY_BYTES: usize = 1 << 20;

/// An open file. Clones share it; it stays readable after its name is gone.
pub trait File: Clone + Send + Sync + 'static {
    /// # Errors
    /// As the file system says.
    fn size_bytes(&self) -> io::Result<u64>;

    /// Reads what is there at `position`, at most `buffer.len()` bytes; 0 at the end.
    ///
    /// # Errors
    /// As the file system says.
    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize>;

    /// As [`File::read_at`], but only what needs no waiting for a device.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if nothing can be had without waiting.
    fn read_at_nowait(&self, buffer: &mut [u8], position: u64) -> io::Result<usize>;

    /// Writes all of `parts`, one behind the other, from `position` on.
    ///
    /// # Errors
    /// As the file system says; a part may have been written.
    fn write_all_at(&self, parts: &[IoSlice<'_>], position: u64) -> io::Result<()>;

    /// # Errors
    /// As the file system says.
    fn truncate(&self, size_bytes: u64) -> io::Result<()>;

    /// Takes room for the file's first `size_bytes` and makes the file that long, so that the room is nobody else's.
    ///
    /// # Errors
    /// As the file system says; a part may have been taken.
    fn allocate(&self, size_bytes: u64) -> io::Result<()>;

    /// Keeps other processes, and other openings of this one, from locking the file while this opening of it lives.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if it is locked.
    fn lock(&self) -> io::Result<()>;

    /// Makes the file's bytes durable (fdatasync).
    ///
    /// # Errors
    /// As the file system says. After an error nothing is known about what is on the disk.
    fn sync(&self) -> io::Result<()>;
}

/// Fills `buffer` from `position` on.
///
/// # Errors
/// [`io::ErrorKind::UnexpectedEof`] if the file ends before.
pub fn read_exact_at(file: &impl File, buffer: &mut [u8], position: u64) -> io::Result<()> {
    let mut filled = 0;
    while filled < buffer.len() {
        let read = file.read_at(&mut buffer[filled..], position + filled as u64)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        filled += read;
    }
    Ok(())
}

/// The whole of a small file.
///
/// # Errors
/// [`io::ErrorKind::NotFound`] if it is not there, [`io::ErrorKind::FileTooLarge`] above `size_max`.
pub fn read_small_file<D: Disk>(disk: &D, path: &Path, size_max: usize) -> io::Result<Vec<u8>> {
    let file = disk.open(path, OpenMode::Read)?;
    let size = usize::try_from(file.size_bytes()?).unwrap_or(usize::MAX);
    if size > size_max {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut content = vec![0; size];
    read_exact_at(&file, &mut content, 0)?;
    Ok(content)
}

/// Puts `content` into the place of the file at `path` so that a crash leaves either the old or the new content: written
/// beside it under the suffix `.tmp`, synced, renamed, the directory synced.
///
/// # Errors
/// As the file system says; the old content stands then.
pub fn replace_file<D: Disk>(disk: &D, path: &Path, content: &[u8]) -> io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".tmp");
    let temporary = Path::new(&temporary);
    let file = disk.open(temporary, OpenMode::Replace)?;
    file.write_all_at(&[IoSlice::new(content)], 0)?;
    file.sync()?;
    disk.rename(temporary, path)?;
    match path.parent() {
        Some(directory) => disk.sync_directory(directory),
        None => Ok(()),
    }
}

/// Removes a file that may be gone already.
///
/// # Errors
/// As the file system says.
pub(crate) fn remove_file_if_there<D: Disk>(disk: &D, path: &Path) -> io::Result<()> {
    match disk.remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Whether `error` says that there is no room, which may pass, rather than that the disk is broken.
#[must_use]
pub fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

#[cfg(test)]
mod tests;
