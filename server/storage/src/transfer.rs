//! A log directory that was left in good order as a whole: what is in it, and a copy of it elsewhere.
//!
//! ```text
//!  stock ──▶ Inventory ──(the caller decides)──▶ Staging: TARGET/log.unfinished ──rename──▶ TARGET/log
//! ```
//!
//! - The source is only read, under the lock that a node would take there.
//! - The target gets its name when all in it is on the disk: there is a whole directory or none. What a crash leaves is
//!   known by its name, and the next attempt begins anew.
//! - A log that may still be written to is copied; a segment that is complete may be shared, since nobody writes into one.

mod inventory;
mod staging;

use std::io;
use std::path::{Path, PathBuf};

use crate::checkpoint::CheckpointError;
use crate::disk::{Disk, File, OpenMode};
use crate::log_directory::LOCK_FILE;

pub use inventory::{FileToCopy, Inventory, LeftOut, OpenTransaction, PartitionFolder, stock};
pub use staging::{CopyOptions, Staging, Tally, unfinished_directory};

/// An empty folder of root's that belongs to the file system.
const LOST_AND_FOUND: &str = "lost+found";

/// Why a directory cannot be looked at or copied.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    #[error("{} is in use by a running node: stop it first", .0.display())]
    InUse(PathBuf),
    #[error("{} is not empty: it holds {found}", .path.display())]
    NotEmpty { path: PathBuf, found: String },
    #[error("{} and {} are not in the same file system: segments cannot be linked", .from.display(), .to.display())]
    OtherFileSystem { from: PathBuf, to: PathBuf },
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    #[error("partition.metadata of {0} is malformed")]
    PartitionMetadata(String),
    #[error("using {}", .path.display())]
    Io {
        path: PathBuf,
        #[source]
        error: io::Error,
    },
}

impl TransferError {
    fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |error| TransferError::Io {
            path: path.to_owned(),
            error,
        }
    }
}

/// Keeps nodes out of a log directory without leaving a trace in it.
#[derive(Debug)]
pub struct SourceLock<F> {
    _lock: Option<F>,
}

/// Locks a directory that must not be changed. Where no node has ever run, or none can, there is no lock, and none is made.
///
/// # Errors
/// [`TransferError::InUse`] if a node of ours or of Apache Kafka's runs there.
pub fn lock_source<D: Disk>(disk: &D, directory: &Path) -> Result<SourceLock<D::File>, TransferError> {
    let path = directory.join(LOCK_FILE);
    let file = match disk.open(&path, OpenMode::ReadWrite) {
        Ok(file) => file,
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::ReadOnlyFilesystem
            ) =>
        {
            return Ok(SourceLock { _lock: None });
        }
        Err(error) => return Err(TransferError::io(&path)(error)),
    };
    file.lock().map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => TransferError::InUse(directory.to_owned()),
        _ => TransferError::io(&path)(error),
    })?;
    Ok(SourceLock { _lock: Some(file) })
}

#[cfg(test)]
mod tests;
