//! The machine's own disk.
#![allow(clippy::disallowed_types, reason = "this is the one file that opens files")]

use std::fs;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use rustix::io::ReadWriteFlags;

use super::{DirectoryEntry, Disk, File, OpenMode, Room};

/// The file system of this machine. Paths are taken as they are.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

/// An open file of this machine.
#[derive(Clone, Debug)]
pub struct RealFile(Arc<fs::File>);

/// How many parts one call writes at most; Linux takes 1024.
const PARTS_MAX: usize = 64;
/// What is written at a time where room cannot be taken otherwise.
static FILLING: [u8; 64 << 10] = [0; 64 << 10];

impl Disk for RealDisk {
    type File = RealFile;

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<RealFile> {
        let mut options = fs::OpenOptions::new();
        // Whoever opens a pipe or a device does not wait for its other end.
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
        match mode {
            OpenMode::Read => options.read(true),
            OpenMode::ReadWrite => options.read(true).write(true),
            OpenMode::Create => options.read(true).write(true).create(true).truncate(false),
            OpenMode::Replace => options.read(true).write(true).create(true).truncate(true),
        };
        let file = options.open(path)?;
        let kind = file.metadata()?.file_type();
        if !kind.is_file() && !kind.is_dir() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        Ok(RealFile(Arc::new(file)))
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<DirectoryEntry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let is_directory = entry.file_type()?.is_dir();
            if let Ok(name) = entry.file_name().into_string() {
                entries.push(DirectoryEntry { name, is_directory });
            }
        }
        entries.sort();
        Ok(entries)
    }

    fn create_directory(&self, directory: &Path) -> io::Result<()> {
        fs::create_dir_all(directory)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_directory(&self, directory: &Path) -> io::Result<()> {
        fs::remove_dir_all(directory)
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        fs::File::open(directory)?.sync_all()
    }

    fn copy_file(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut source = fs::File::open(from)?;
        let mut target = fs::File::create(to)?;
        // By copy_file_range: where the file system can, both share their blocks until one is written to.
        io::copy(&mut source, &mut target)?;
        target.sync_data()
    }

    fn link_file(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn room(&self, directory: &Path) -> io::Result<Room> {
        let found = rustix::fs::statvfs(directory)?;
        Ok(Room {
            available_bytes: found.f_bavail.saturating_mul(found.f_frsize),
            capacity_bytes: found.f_blocks.saturating_mul(found.f_frsize),
        })
    }
}

impl File for RealFile {
    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        loop {
            match self.0.read_at(buffer, position) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }

    fn read_at_nowait(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        let mut parts = [IoSliceMut::new(buffer)];
        match rustix::io::preadv2(&*self.0, &mut parts, position, ReadWriteFlags::NOWAIT) {
            // File systems without the flag: waiting is the shell's business.
            Err(rustix::io::Errno::OPNOTSUPP) => Err(io::ErrorKind::WouldBlock.into()),
            result => result.map_err(io::Error::from),
        }
    }

    fn write_all_at(&self, parts: &[IoSlice<'_>], mut position: u64) -> io::Result<()> {
        for parts in parts.chunks(PARTS_MAX) {
            let mut parts = parts.to_vec();
            let mut parts = &mut parts[..];
            IoSlice::advance_slices(&mut parts, 0);
            while !parts.is_empty() {
                match rustix::io::pwritev(&*self.0, parts, position) {
                    Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                    Ok(written) => {
                        position += written as u64;
                        IoSlice::advance_slices(&mut parts, written);
                    }
                    Err(rustix::io::Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }

    fn truncate(&self, size_bytes: u64) -> io::Result<()> {
        self.0.set_len(size_bytes)
    }

    fn allocate(&self, size_bytes: u64) -> io::Result<()> {
        match rustix::fs::fallocate(&*self.0, rustix::fs::FallocateFlags::empty(), 0, size_bytes) {
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {}
            result => return Ok(result?),
        }
        let mut position = 0;
        while position < size_bytes {
            let part = usize::try_from(size_bytes - position)
                .unwrap_or(usize::MAX)
                .min(FILLING.len());
            self.write_all_at(&[IoSlice::new(&FILLING[..part])], position)?;
            position += part as u64;
        }
        Ok(())
    }

    fn lock(&self) -> io::Result<()> {
        // Ours among each other by flock; the record lock is the one that a JVM takes and sees.
        rustix::fs::flock(&*self.0, rustix::fs::FlockOperation::NonBlockingLockExclusive)?;
        rustix::fs::fcntl_lock(&*self.0, rustix::fs::FlockOperation::NonBlockingLockExclusive)?;
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}
