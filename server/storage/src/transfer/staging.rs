//! A log directory in the making: it has another name until all of it is on the disk.

use std::io;
use std::path::{Path, PathBuf};

use super::inventory::{CHECKPOINTS, Inventory, exists};
use super::{LOST_AND_FOUND, TransferError};
use crate::disk::{Disk, File, OpenMode};
use crate::file_names::TEMPORARY_SUFFIX;
use crate::log_directory::{CLEAN_SHUTDOWN_FILE, LOCK_FILE};

/// What is added to the name of a log directory that is being made.
const UNFINISHED_SUFFIX: &str = ".unfinished";

/// How logs are copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CopyOptions {
    /// Complete segments get a second name instead of a second copy.
    pub link_complete_logs: bool,
    /// Files that only we know stay behind.
    pub for_kafka: bool,
}

/// What was copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    pub partitions: u64,
    pub files: u64,
    pub copied_bytes: u64,
    pub linked_bytes: u64,
}

/// Where the log directory at `path` is while it is not whole.
#[must_use]
pub fn unfinished_directory(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(UNFINISHED_SUFFIX);
    PathBuf::from(name)
}

/// A log directory that is being made. Locked against others who make it.
pub struct Staging<D: Disk> {
    disk: D,
    _lock: D::File,
    /// What it will be called.
    whole: PathBuf,
    path: PathBuf,
}

impl<D: Disk> Staging<D> {
    /// Begins to make the log directory `folder` within `parent`, which must hold nothing but what an earlier attempt has
    /// left: that is removed. Such an attempt may have left the files `beside`, too.
    ///
    /// # Errors
    /// If something else is in `parent`, or another process makes the same directory.
    pub fn begin(disk: D, parent: &Path, folder: &str, beside: &[&str]) -> Result<Self, TransferError> {
        let whole = parent.join(folder);
        let path = unfinished_directory(&whole);
        check_empty(&disk, parent, &path, beside)?;
        make_directory(&disk, parent)?;
        let io = TransferError::io;
        if let Ok(lock) = disk.open(&path.join(LOCK_FILE), OpenMode::ReadWrite) {
            lock.lock().map_err(|_| TransferError::InUse(path.clone()))?;
            disk.remove_directory(&path).map_err(io(&path))?;
        } else {
            match disk.remove_directory(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io(&path)(error)),
                _ => {}
            }
        }
        disk.create_directory(&path).map_err(io(&path))?;
        disk.sync_directory(parent).map_err(io(parent))?;
        let lock = disk.open(&path.join(LOCK_FILE), OpenMode::Create).map_err(io(&path))?;
        lock.lock().map_err(|_| TransferError::InUse(path.clone()))?;
        Ok(Staging {
            disk,
            _lock: lock,
            whole,
            path,
        })
    }

    /// Where files are to be put meanwhile.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes along the partitions, the checkpoints and the mark of a clean end of the directory `from`. `progress` is told
    /// the bytes of each file.
    ///
    /// # Errors
    /// As the disk says.
    pub fn copy(
        &self,
        from: &Path,
        inventory: &Inventory,
        options: CopyOptions,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Tally, TransferError> {
        let mut tally = Tally::default();
        for partition in &inventory.partitions {
            let (source, target) = (
                from.join(&partition.folder.name),
                self.path.join(&partition.folder.name),
            );
            let io = TransferError::io;
            self.disk.create_directory(&target).map_err(io(&target))?;
            let files = partition
                .files
                .iter()
                .filter(|file| !(options.for_kafka && file.is_own));
            for file in files {
                let (source, target) = (source.join(&file.name), target.join(&file.name));
                if options.link_complete_logs && file.is_complete_log {
                    self.link(&source, &target)?;
                    tally.linked_bytes += file.size_bytes;
                } else {
                    self.disk.copy_file(&source, &target).map_err(io(&source))?;
                    tally.copied_bytes += file.size_bytes;
                }
                tally.files += 1;
                progress(file.size_bytes);
            }
            self.disk.sync_directory(&target).map_err(io(&target))?;
            tally.partitions += 1;
        }
        for name in CHECKPOINTS.into_iter().chain([CLEAN_SHUTDOWN_FILE]) {
            let source = from.join(name);
            if exists(&self.disk, &source)? {
                let copied = self.disk.copy_file(&source, &self.path.join(name));
                copied.map_err(TransferError::io(&source))?;
            }
        }
        Ok(tally)
    }

    fn link(&self, source: &Path, target: &Path) -> Result<(), TransferError> {
        self.disk.link_file(source, target).map_err(|error| match error.kind() {
            io::ErrorKind::CrossesDevices => TransferError::OtherFileSystem {
                from: source.to_owned(),
                to: target.to_owned(),
            },
            _ => TransferError::io(source)(error),
        })
    }

    /// Gives the directory its name: all in it is on the disk then.
    ///
    /// # Errors
    /// As the disk says.
    pub fn finish(self) -> Result<PathBuf, TransferError> {
        let io = TransferError::io;
        let disk = &self.disk;
        disk.sync_directory(&self.path).map_err(io(&self.path))?;
        disk.rename(&self.path, &self.whole).map_err(io(&self.path))?;
        if let Some(parent) = self.whole.parent() {
            disk.sync_directory(parent).map_err(io(parent))?;
        }
        Ok(self.whole)
    }
}

fn check_empty<D: Disk>(disk: &D, parent: &Path, unfinished: &Path, beside: &[&str]) -> Result<(), TransferError> {
    let entries = match disk.list(parent) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(TransferError::io(parent)(error)),
    };
    let of_unfinished = |name: &str| unfinished.file_name().is_some_and(|it| it == name);
    let has_unfinished = entries.iter().any(|entry| of_unfinished(&entry.name));
    let found = entries.iter().map(|entry| entry.name.as_str()).find(|name| {
        let is_beside = beside.contains(&name.strip_suffix(TEMPORARY_SUFFIX).unwrap_or(name));
        let is_ours = of_unfinished(name) || has_unfinished && is_beside;
        !is_ours && *name != LOST_AND_FOUND
    });
    match found {
        Some(found) => Err(TransferError::NotEmpty {
            path: parent.to_owned(),
            found: found.to_owned(),
        }),
        None => Ok(()),
    }
}

/// Makes a directory whose name lasts, and those above it that are missing.
fn make_directory<D: Disk>(disk: &D, directory: &Path) -> Result<(), TransferError> {
    let missing: Vec<&Path> = directory
        .ancestors()
        .take_while(|path| disk.list(path).is_err())
        .collect();
    disk.create_directory(directory).map_err(TransferError::io(directory))?;
    for made in missing {
        if let Some(above) = made.parent().filter(|above| !above.as_os_str().is_empty()) {
            disk.sync_directory(above).map_err(TransferError::io(above))?;
        }
    }
    Ok(())
}
