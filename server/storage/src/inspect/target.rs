//! What a path is, a log directory or one partition's folder, and the lock that keeps a node away from it.

use std::io;
use std::path::{Path, PathBuf};

use crate::checkpoint::RECOVERY_POINT_CHECKPOINT;
use crate::disk::{DirectoryEntry, Disk, File, OpenMode};
use crate::file_names::{Kind, LEADER_EPOCH_CHECKPOINT};
use crate::log_directory::{Folder, LOCK_FILE, META_PROPERTIES, PARTITION_METADATA};

/// Where a node keeps its log directory within its data directory.
const LOG_FOLDER: &str = "log";

/// What an operator has named.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// One of `log.dirs`.
    Directory(PathBuf),
    Partition {
        path: PathBuf,
        /// The log directory it lies in, if it does.
        directory: Option<PathBuf>,
    },
}

/// Why a path is of no use.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    #[error("{} is neither a log directory nor a partition's folder", .0.display())]
    NoLogs(PathBuf),
    #[error("{} is in use by a running node: stop it first", .0.display())]
    InUse(PathBuf),
    #[error("looking at {}", .path.display())]
    Io {
        path: PathBuf,
        #[source]
        error: io::Error,
    },
}

impl TargetError {
    fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |error| TargetError::Io {
            path: path.to_owned(),
            error,
        }
    }
}

/// Keeps nodes out of a log directory for as long as it lives.
#[derive(Debug)]
pub struct LockedDirectory<F> {
    _lock: Option<F>,
}

impl Target {
    /// # Errors
    /// If there is nothing of a log at `path`, or the disk fails.
    pub fn of<D: Disk>(disk: &D, path: &Path) -> Result<Target, TargetError> {
        let entries = disk.list(path).map_err(TargetError::io(path))?;
        if is_log_directory(disk, path, &entries) {
            return Ok(Target::Directory(path.to_owned()));
        }
        if is_partition(&entries) {
            let directory = parent(path).filter(|parent| {
                let entries = disk.list(parent);
                entries.is_ok_and(|entries| is_log_directory(disk, parent, &entries))
            });
            return Ok(Target::Partition {
                path: path.to_owned(),
                directory,
            });
        }
        let inner = path.join(LOG_FOLDER);
        let holds_logs = entries
            .iter()
            .any(|entry| entry.is_directory && entry.name == LOG_FOLDER);
        if holds_logs && is_log_directory(disk, &inner, &disk.list(&inner).map_err(TargetError::io(&inner))?) {
            return Ok(Target::Directory(inner));
        }
        Err(TargetError::NoLogs(path.to_owned()))
    }

    /// The log directory, whose lock it is.
    #[must_use]
    pub fn directory(&self) -> Option<&Path> {
        match self {
            Target::Directory(path) => Some(path),
            Target::Partition { directory, .. } => directory.as_deref(),
        }
    }
}

fn parent(path: &Path) -> Option<PathBuf> {
    let parent = path.parent()?;
    // The parent of a relative path of one name is where we are.
    Some(if parent.as_os_str().is_empty() {
        PathBuf::from(".")
    } else {
        parent.to_owned()
    })
}

/// By the files of its own, or, where those are lost, by what lies in the folders that could be partitions.
fn is_log_directory<D: Disk>(disk: &D, path: &Path, entries: &[DirectoryEntry]) -> bool {
    let has_files = entries
        .iter()
        .any(|entry| [META_PROPERTIES, RECOVERY_POINT_CHECKPOINT].contains(&entry.name.as_str()));
    let mut folders = entries
        .iter()
        .filter(|entry| entry.is_directory && Folder::parse(&entry.name).is_some());
    has_files
        || folders.any(|folder| {
            disk.list(&path.join(&folder.name))
                .is_ok_and(|inner| is_partition(&inner))
        })
}

fn is_partition(entries: &[DirectoryEntry]) -> bool {
    entries.iter().any(|entry| {
        [LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA].contains(&entry.name.as_str())
            || matches!(Kind::parse(&entry.name), Some((Kind::Log, _)))
    })
}

/// Takes the lock that a node takes. A partition's folder outside of any log directory needs none.
///
/// # Errors
/// [`TargetError::InUse`] if a node of ours or of Apache Kafka's runs there.
pub fn lock<D: Disk>(disk: &D, target: &Target) -> Result<LockedDirectory<D::File>, TargetError> {
    let Some(directory) = target.directory() else {
        return Ok(LockedDirectory { _lock: None });
    };
    let file = disk
        .open(&directory.join(LOCK_FILE), OpenMode::Create)
        .map_err(TargetError::io(directory))?;
    file.lock().map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => TargetError::InUse(directory.to_owned()),
        _ => TargetError::io(directory)(error),
    })?;
    Ok(LockedDirectory { _lock: Some(file) })
}
