//! The disk under one log directory, watched: it notices when the disk fails and when it is full.
//!
//! ```text
//!           a write is refused (EROFS)                 any other failure of the device, or of a sync
//!  sound ───────────────────────────────▶ read-only ─────────────────────────────────────────────────▶ dead
//!    └───────────────────────────────────────────────────────────────────────────────────────────────▶
//!
//!           ENOSPC: the reserve is let go              room for the reserve, and as much again
//!  open  ───────────────────────────────▶ full      ─────────────────────────────────────────────────▶ open
//! ```
//! - After the first failed write or sync nothing is written any more until the directory is opened anew: pages that
//!   could not be written count as clean afterwards, so a second sync would say what is not true.
//! - What fails to be read harms nothing but the read; it is counted.
//! - A full disk is no failure. The call that met it is tried again with the room of the reserve, a file that held it. What
//!   adds records asks [`Disk::takes_growth`] first, so that the reserve is there for what deletes and keeps order.

use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::io::Errno;
use tracing::{error, info, warn};

use super::{DirectoryEntry, Disk, File, OpenMode, Room, is_full};

/// Holds room for the time when there is none. It lies at the root of the directory, where only folders are partitions.
pub const RESERVE_FILE: &str = ".millstream_reserve";
/// The reserve takes at most this share of its file system.
const CAPACITY_PER_RESERVE_MIN: u64 = 16;

/// How far a directory has failed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum FailureKind {
    /// Nothing can be written; what is there is read.
    ReadOnly,
    /// What is on the disk is not known any more.
    Dead,
}

/// Why nothing is written to a directory any more.
#[derive(Clone, Debug)]
pub struct DirectoryFailure {
    pub kind: FailureKind,
    /// Which call failed, and how.
    pub cause: String,
}

/// What a directory's disk has done since it was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GuardedFigures {
    pub read_errors: u64,
    pub write_errors: u64,
    /// What the reserve holds.
    pub reserve_bytes: u64,
    pub is_full: bool,
}

/// A disk as one directory has it; clones share what is noticed.
pub struct GuardedDisk<D: Disk> {
    disk: D,
    guard: Arc<Guard<D>>,
}

/// An open file of a [`GuardedDisk`].
pub struct GuardedFile<D: Disk> {
    file: D::File,
    guard: Arc<Guard<D>>,
}

const SOUND: u8 = 0;
const READ_ONLY: u8 = 1;
const DEAD: u8 = 2;

struct Guard<D: Disk> {
    directory: PathBuf,
    state: AtomicU8,
    cause: Mutex<Option<String>>,
    /// Called at each change of the state, on the thread that met the failure.
    on_failure: OnceLock<Box<dyn Fn() + Send + Sync>>,
    full: AtomicBool,
    /// How often the reserve was let go.
    releases: AtomicU64,
    reserve: Mutex<Reserve<D::File>>,
    read_errors: AtomicU64,
    write_errors: AtomicU64,
}

struct Reserve<F> {
    wanted_bytes: u64,
    held_bytes: u64,
    file: Option<F>,
}

impl<D: Disk> Clone for GuardedDisk<D> {
    fn clone(&self) -> Self {
        GuardedDisk {
            disk: self.disk.clone(),
            guard: self.guard.clone(),
        }
    }
}

impl<D: Disk> Clone for GuardedFile<D> {
    fn clone(&self) -> Self {
        GuardedFile {
            file: self.file.clone(),
            guard: self.guard.clone(),
        }
    }
}

impl<D: Disk> GuardedDisk<D> {
    /// Watches over what is done below `directory`, for as long as it is open.
    #[must_use]
    pub fn new(disk: D, directory: &Path) -> Self {
        let guard = Guard {
            directory: directory.to_owned(),
            state: AtomicU8::new(SOUND),
            cause: Mutex::new(None),
            on_failure: OnceLock::new(),
            full: AtomicBool::new(false),
            releases: AtomicU64::new(0),
            reserve: Mutex::new(Reserve {
                wanted_bytes: 0,
                held_bytes: 0,
                file: None,
            }),
            read_errors: AtomicU64::new(0),
            write_errors: AtomicU64::new(0),
        };
        GuardedDisk {
            disk,
            guard: Arc::new(guard),
        }
    }

    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.guard.directory
    }

    /// Why nothing is written any more; `None` while all is well.
    #[must_use]
    pub fn failure(&self) -> Option<DirectoryFailure> {
        let kind = match self.guard.state.load(Ordering::Acquire) {
            SOUND => return None,
            READ_ONLY => FailureKind::ReadOnly,
            _ => FailureKind::Dead,
        };
        let cause = self.guard.cause.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Some(DirectoryFailure {
            kind,
            cause: cause.unwrap_or_default(),
        })
    }

    #[must_use]
    pub fn failure_kind(&self) -> Option<FailureKind> {
        match self.guard.state.load(Ordering::Acquire) {
            SOUND => None,
            READ_ONLY => Some(FailureKind::ReadOnly),
            _ => Some(FailureKind::Dead),
        }
    }

    /// Has `act` called when the directory fails, and at once if it has. Only the first to ask is heard.
    pub fn on_failure(&self, act: impl Fn() + Send + Sync + 'static) {
        if self.guard.on_failure.set(Box::new(act)).is_ok()
            && self.failure_kind().is_some()
            && let Some(act) = self.guard.on_failure.get()
        {
            act();
        }
    }

    /// Notes that the directory is of no use, for a reason that was found elsewhere.
    pub fn fail(&self, kind: FailureKind, cause: &str) {
        self.guard.fail(kind, cause.to_owned());
    }

    /// Holds `wanted_bytes` back, or less on a small file system, or nothing for 0. Where there is no room for it and as
    /// much again, the directory counts as full from the start.
    ///
    /// # Errors
    /// As the disk says.
    pub fn set_reserve(&self, wanted_bytes: u64) -> io::Result<()> {
        let path = self.guard.directory.join(RESERVE_FILE);
        if wanted_bytes == 0 {
            return super::remove_file_if_there(&self.disk, &path);
        }
        let room = self.disk.room(&self.guard.directory)?;
        let wanted_bytes = wanted_bytes.min(room.capacity_bytes / CAPACITY_PER_RESERVE_MIN);
        let file = self.disk.open(&path, OpenMode::Create)?;
        let mut held_bytes = file.size_bytes()?;
        if held_bytes > wanted_bytes {
            file.truncate(wanted_bytes)?;
            held_bytes = wanted_bytes;
        }
        let mut reserve = self.guard.reserve();
        *reserve = Reserve {
            wanted_bytes,
            held_bytes,
            file: Some(file),
        };
        drop(reserve);
        if held_bytes < wanted_bytes && !self.fill_reserve() {
            self.guard.full.store(true, Ordering::Release);
            let directory = self.guard.directory.display();
            warn!(%directory, "the disk has too little room: records are refused until there is more");
        }
        Ok(())
    }

    /// Whether there is room by now: looks at the file system where it was full, and fills the reserve again.
    pub fn reopen_with_room(&self) -> bool {
        if !self.guard.full.load(Ordering::Acquire) {
            return true;
        }
        let has_room = self.fill_reserve();
        if has_room && self.guard.full.swap(false, Ordering::AcqRel) {
            info!(directory = %self.guard.directory.display(), "the disk has room again");
        }
        has_room
    }

    /// Takes the reserve if there is room for it and as much again.
    fn fill_reserve(&self) -> bool {
        let mut reserve = self.guard.reserve();
        let missing = reserve.wanted_bytes.saturating_sub(reserve.held_bytes);
        let enough = |room: Room| room.available_bytes >= missing + reserve.wanted_bytes;
        if !self.disk.room(&self.guard.directory).is_ok_and(enough) {
            return false;
        }
        if let Some(file) = &reserve.file
            && let Err(error) = file.allocate(reserve.wanted_bytes)
        {
            if !is_full(&error) {
                warn!(directory = %self.guard.directory.display(), %error, "the reserve is not filled");
            }
            // What was taken of it is given back, lest it stands in the way.
            let _ = file.truncate(0);
            reserve.held_bytes = 0;
            return false;
        }
        reserve.held_bytes = reserve.wanted_bytes;
        true
    }

    /// Whether half of the reserve is still there to be used while the disk is full.
    #[must_use]
    pub fn has_half_of_reserve(&self) -> bool {
        let half = self.guard.reserve().wanted_bytes / 2;
        let room = self.disk.room(&self.guard.directory);
        room.is_ok_and(|room| room.available_bytes >= half)
    }

    #[must_use]
    pub fn figures(&self) -> GuardedFigures {
        GuardedFigures {
            read_errors: self.guard.read_errors.load(Ordering::Relaxed),
            write_errors: self.guard.write_errors.load(Ordering::Relaxed),
            reserve_bytes: self.guard.reserve().held_bytes,
            is_full: self.guard.full.load(Ordering::Acquire),
        }
    }

    fn guarded(&self, file: D::File) -> GuardedFile<D> {
        GuardedFile {
            file,
            guard: self.guard.clone(),
        }
    }
}

impl<D: Disk> Guard<D> {
    fn reserve(&self) -> MutexGuard<'_, Reserve<D::File>> {
        self.reserve.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fail(&self, kind: FailureKind, cause: String) {
        let state = match kind {
            FailureKind::ReadOnly => READ_ONLY,
            FailureKind::Dead => DEAD,
        };
        let before = {
            let mut known = self.cause.lock().unwrap_or_else(PoisonError::into_inner);
            let before = self.state.fetch_max(state, Ordering::AcqRel);
            if before < state {
                error!(directory = %self.directory.display(), ?kind, cause, "the log directory has failed");
                *known = Some(cause);
            }
            before
        };
        if before < state
            && let Some(act) = self.on_failure.get()
        {
            act();
        }
    }

    /// Whether anything may be written.
    fn check(&self) -> io::Result<()> {
        match self.state.load(Ordering::Acquire) {
            SOUND => Ok(()),
            READ_ONLY => Err(io::ErrorKind::ReadOnlyFilesystem.into()),
            _ => Err(io::Error::other("the log directory has failed")),
        }
    }

    /// Something that writes; once more if the disk was full and the reserve has made room.
    fn write<T>(&self, what: &str, act: impl Fn() -> io::Result<T>) -> io::Result<T> {
        self.check()?;
        let releases = self.releases.load(Ordering::Acquire);
        let result = match act() {
            Err(error) if is_full(&error) && self.make_room(releases) => act(),
            result => result,
        };
        self.note_write(what, result)
    }

    fn note_write<T>(&self, what: &str, result: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &result
            && let Some(kind) = failure_kind(error)
        {
            self.write_errors.fetch_add(1, Ordering::Relaxed);
            self.fail(kind, format!("{what}: {error}"));
        }
        result
    }

    /// A failed sync leaves nothing to be relied on, whatever it says.
    fn note_sync(&self, result: io::Result<()>) -> io::Result<()> {
        if let Err(error) = &result {
            self.write_errors.fetch_add(1, Ordering::Relaxed);
            let kind = failure_kind(error).unwrap_or(FailureKind::Dead);
            self.fail(kind, format!("syncing a file: {error}"));
        }
        result
    }

    fn note_read<T>(&self, what: &str, result: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &result
            && failure_kind(error).is_some()
        {
            // The first and then ever fewer, lest a broken place fills the log.
            let count = self.read_errors.fetch_add(1, Ordering::Relaxed) + 1;
            if count.is_power_of_two() {
                error!(directory = %self.directory.display(), what, %error, count, "the disk cannot read");
            }
        }
        result
    }

    /// Lets the reserve go. True if there is room that was not there at the time of `releases_seen`.
    fn make_room(&self, releases_seen: u64) -> bool {
        let mut reserve = self.reserve();
        if reserve.file.is_none() {
            return false;
        }
        // First of all, so that nobody who asks now takes of the room.
        if !self.full.swap(true, Ordering::AcqRel) {
            warn!(directory = %self.directory.display(), "the disk is full: records are refused until there is room");
        }
        if reserve.held_bytes == 0 {
            return self.releases.load(Ordering::Acquire) != releases_seen;
        }
        let released = reserve.file.as_ref().is_some_and(|file| file.truncate(0).is_ok());
        if released {
            reserve.held_bytes = 0;
            self.releases.fetch_add(1, Ordering::AcqRel);
        }
        released
    }
}

/// Whether `error` speaks of a broken device rather than of the call, and of what kind the failure is.
fn failure_kind(error: &io::Error) -> Option<FailureKind> {
    match error.kind() {
        io::ErrorKind::ReadOnlyFilesystem => return Some(FailureKind::ReadOnly),
        // ETIMEDOUT of a block device, ESTALE of a network one.
        io::ErrorKind::TimedOut | io::ErrorKind::StaleNetworkFileHandle => return Some(FailureKind::Dead),
        _ => {}
    }
    let broken = [
        Errno::IO,
        Errno::NXIO,
        Errno::NODEV,
        Errno::NODATA,
        // How file systems say that their own structures are damaged.
        Errno::UCLEAN,
        Errno::BADMSG,
        Errno::ILSEQ,
        Errno::REMOTEIO,
        Errno::NOMEDIUM,
    ];
    let code = error.raw_os_error()?;
    broken
        .iter()
        .any(|errno| errno.raw_os_error() == code)
        .then_some(FailureKind::Dead)
}

impl<D: Disk> Disk for GuardedDisk<D> {
    type File = GuardedFile<D>;

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<GuardedFile<D>> {
        let open = || self.disk.open(path, mode);
        let opened = match mode {
            OpenMode::Read => self.guard.note_read("opening a file", open()),
            OpenMode::ReadWrite | OpenMode::Create | OpenMode::Replace => {
                self.guard.write("opening a file for writing", open)
            }
        };
        Ok(self.guarded(opened?))
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<DirectoryEntry>> {
        self.guard.note_read("listing a directory", self.disk.list(directory))
    }

    fn create_directory(&self, directory: &Path) -> io::Result<()> {
        self.guard
            .write("making a directory", || self.disk.create_directory(directory))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.guard.write("renaming", || self.disk.rename(from, to))
    }

    fn link_file(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.guard.write("linking", || self.disk.link_file(from, to))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.guard.write("removing a file", || self.disk.remove_file(path))
    }

    fn remove_directory(&self, directory: &Path) -> io::Result<()> {
        self.guard
            .write("removing a directory", || self.disk.remove_directory(directory))
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        self.guard.check()?;
        let synced = self.disk.sync_directory(directory);
        // A folder may be renamed before its turn comes: that is no failure.
        self.guard.note_write("syncing a directory", synced)
    }

    fn room(&self, directory: &Path) -> io::Result<Room> {
        self.disk.room(directory)
    }

    fn takes_growth(&self) -> bool {
        self.reopen_with_room()
    }
}

impl<D: Disk> File for GuardedFile<D> {
    fn size_bytes(&self) -> io::Result<u64> {
        self.guard.note_read("asking for a file's size", self.file.size_bytes())
    }

    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        self.guard.note_read("reading", self.file.read_at(buffer, position))
    }

    fn read_at_nowait(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        self.guard
            .note_read("reading", self.file.read_at_nowait(buffer, position))
    }

    fn write_all_at(&self, parts: &[IoSlice<'_>], position: u64) -> io::Result<()> {
        self.guard.write("writing", || self.file.write_all_at(parts, position))
    }

    fn truncate(&self, size_bytes: u64) -> io::Result<()> {
        self.guard.write("cutting a file", || self.file.truncate(size_bytes))
    }

    fn allocate(&self, size_bytes: u64) -> io::Result<()> {
        self.guard.write("taking room", || self.file.allocate(size_bytes))
    }

    fn lock(&self) -> io::Result<()> {
        self.file.lock()
    }

    fn sync(&self) -> io::Result<()> {
        self.guard.check()?;
        self.guard.note_sync(self.file.sync())
    }
}

#[cfg(test)]
mod tests;
