//! Whether the files of a log directory, or of one partition, hold together: every fault that shows from outside.
//!
//! Nothing is written, so a running node may be looked at, too. What it is about to write may then be told as a torn tail
//! only if the file does not grow.

mod partition;
mod segment;

use std::io;
use std::path::Path;

use model::{Offset, TopicPartition};

use super::Watcher;
use super::finding::{Fault, Finding};
use super::target::{Target, TargetError};
use crate::checkpoint::{
    CLEANER_CHECKPOINT, HIGH_WATERMARK_CHECKPOINT, LOG_START_CHECKPOINT, Offsets, RECOVERY_POINT_CHECKPOINT,
    read_checkpoint,
};
use crate::disk::{Disk, File, OpenMode};
use crate::file_names::Kind;
use crate::log_directory::{CLEAN_SHUTDOWN_FILE, Folder, FolderKind, META_PROPERTIES, MetaProperties};

use partition::PartitionCheck;

/// How thoroughly to look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VerifyOptions {
    /// Open the batches and read their records, too.
    pub records: bool,
    /// `index.interval.bytes`: a log that is much larger has an index with entries.
    pub index_interval_bytes: u32,
}

impl Default for VerifyOptions {
    fn default() -> Self {
        VerifyOptions {
            records: false,
            index_interval_bytes: 4096,
        }
    }
}

/// What was looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Looked {
    pub partitions: u64,
    pub segments: u64,
    pub batches: u64,
    pub bytes: u64,
}

/// What the directory's checkpoints say of a partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Recorded {
    recovery_point: Option<Offset>,
    log_start: Option<Offset>,
    high_watermark: Option<Offset>,
    cleaned_to: Option<Offset>,
    /// Whether the node was stopped in good order.
    clean: bool,
}

/// The directory's checkpoints.
#[derive(Debug, Default)]
struct Checkpoints {
    recovery_points: Offsets,
    log_starts: Offsets,
    high_watermarks: Offsets,
    cleaned_to: Offsets,
    clean: bool,
}

/// Looks at everything at `target`.
///
/// # Errors
/// If the folder itself cannot be listed; all else is a finding.
pub fn verify<D: Disk>(
    disk: &D,
    target: &Target,
    options: VerifyOptions,
    watcher: &mut dyn Watcher,
) -> Result<Looked, TargetError> {
    let mut looked = Looked::default();
    let checked = match target {
        Target::Directory(directory) => verify_directory(disk, directory, options, watcher, &mut looked),
        Target::Partition { path, directory } => {
            // What is wrong with the directory's own files is not the partition's fault.
            let checkpoints = directory
                .as_ref()
                .map(|directory| Checkpoints::read(disk, directory, &mut |_| {}));
            let folder = folder_of(path);
            let recorded = checkpoints
                .zip(folder)
                .map(|(checkpoints, folder)| checkpoints.of(&folder.partition))
                .unwrap_or_default();
            PartitionCheck::new(disk, path, recorded, options, watcher, &mut looked).map(PartitionCheck::run)
        }
    };
    checked.map_err(|error| TargetError::Io {
        path: match target {
            Target::Directory(path) | Target::Partition { path, .. } => path.clone(),
        },
        error,
    })?;
    Ok(looked)
}

/// How many bytes of logs there are at `target`.
///
/// # Errors
/// As the disk says.
pub fn size_bytes<D: Disk>(disk: &D, target: &Target) -> io::Result<u64> {
    match target {
        Target::Partition { path, .. } => logs_size_bytes(disk, path),
        Target::Directory(directory) => {
            let mut size = 0;
            for folder in folders(disk, directory)? {
                if folder.kind == FolderKind::Partition {
                    size += logs_size_bytes(disk, &directory.join(folder.name))?;
                }
            }
            Ok(size)
        }
    }
}

fn logs_size_bytes<D: Disk>(disk: &D, folder: &Path) -> io::Result<u64> {
    let mut size = 0;
    for entry in disk.list(folder)? {
        if matches!(Kind::parse(&entry.name), Some((Kind::Log, _))) {
            size += match disk.open(&folder.join(&entry.name), OpenMode::Read) {
                Ok(file) => file.size_bytes()?,
                Err(_) => 0,
            };
        }
    }
    Ok(size)
}

/// The partitions in a log directory.
pub(super) fn folders<D: Disk>(disk: &D, directory: &Path) -> io::Result<Vec<Folder>> {
    let entries = disk.list(directory)?;
    Ok(entries
        .iter()
        .filter(|entry| entry.is_directory)
        .filter_map(|entry| Folder::parse(&entry.name))
        .collect())
}

/// Whose a partition's folder is, by its name.
fn folder_of(path: &Path) -> Option<Folder> {
    Folder::parse(path.file_name()?.to_str()?)
}

fn verify_directory<D: Disk>(
    disk: &D,
    directory: &Path,
    options: VerifyOptions,
    watcher: &mut dyn Watcher,
    looked: &mut Looked,
) -> io::Result<()> {
    let finding = |name: &str, fault: Fault| Finding {
        path: directory.join(name),
        position: None,
        offsets: None,
        fault,
    };
    if let Err(error) = MetaProperties::read(disk, directory) {
        watcher.found(finding(META_PROPERTIES, Fault::MetaProperties(error.to_string())));
    }
    let checkpoints = Checkpoints::read(disk, directory, &mut |finding| watcher.found(finding));
    for folder in folders(disk, directory)? {
        let fault = match folder.kind {
            FolderKind::Partition => {
                let path = directory.join(&folder.name);
                let recorded = checkpoints.of(&folder.partition);
                let checked =
                    PartitionCheck::new(disk, &path, recorded, options, watcher, looked).map(PartitionCheck::run);
                match checked {
                    Ok(()) => continue,
                    // A running node has deleted the topic.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    Err(error) => Fault::Io(error.to_string()),
                }
            }
            FolderKind::Deleted => Fault::DeletedFolder,
            FolderKind::Stray => Fault::StrayFolder,
            FolderKind::Future => Fault::FutureFolder,
        };
        watcher.found(finding(&folder.name, fault));
    }
    Ok(())
}

impl Checkpoints {
    /// Those that can be read; of the others `found` is told.
    fn read<D: Disk>(disk: &D, directory: &Path, found: &mut dyn FnMut(Finding)) -> Checkpoints {
        let mut read = |name: &str| {
            read_checkpoint(disk, directory, name).unwrap_or_else(|error| {
                found(Finding {
                    path: directory.join(name),
                    position: None,
                    offsets: None,
                    fault: Fault::CheckpointMalformed(error.to_string()),
                });
                Offsets::new()
            })
        };
        Checkpoints {
            recovery_points: read(RECOVERY_POINT_CHECKPOINT),
            log_starts: read(LOG_START_CHECKPOINT),
            high_watermarks: read(HIGH_WATERMARK_CHECKPOINT),
            cleaned_to: read(CLEANER_CHECKPOINT),
            clean: disk.open(&directory.join(CLEAN_SHUTDOWN_FILE), OpenMode::Read).is_ok(),
        }
    }

    fn of(&self, partition: &TopicPartition) -> Recorded {
        let of = |offsets: &Offsets| offsets.get(partition).copied();
        Recorded {
            recovery_point: of(&self.recovery_points),
            log_start: of(&self.log_starts),
            high_watermark: of(&self.high_watermarks),
            cleaned_to: of(&self.cleaned_to),
            clean: self.clean,
        }
    }
}

#[cfg(test)]
mod tests;
