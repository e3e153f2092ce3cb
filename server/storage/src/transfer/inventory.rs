//! What is in a log directory: partitions with their files, and what is not worth or not fit to be taken along.

use std::io;
use std::path::{Path, PathBuf};

use model::{LeaderEpoch, Offset, ProducerId, TopicId};

use super::{LOST_AND_FOUND, TransferError};
use crate::checkpoint::{
    CLEANER_CHECKPOINT, HIGH_WATERMARK_CHECKPOINT, LOG_START_CHECKPOINT, RECOVERY_POINT_CHECKPOINT, read_checkpoint,
};
use crate::disk::{DirectoryEntry, Disk, File, OpenMode, RESERVE_FILE, read_small_file};
use crate::file_names::{
    CLEANED_SUFFIX, DELETED_SUFFIX, Kind, LEADER_EPOCH_CHECKPOINT, LEADER_EPOCH_CHECKSUM, SWAP_SUFFIX, TEMPORARY_SUFFIX,
};
use crate::inspect::TRANSACTION_ENTRY_BYTES;
use crate::leader_epochs::LeaderEpochs;
use crate::log_directory::{
    CLEAN_SHUTDOWN_FILE, Folder, FolderKind, LOCK_FILE, META_PROPERTIES, PARTITION_METADATA, SMALL_FILE_BYTES_MAX,
    parse_partition_metadata,
};
use crate::producer_state::{ProducerStates, SNAPSHOT_BYTES_MAX};
use crate::quarantine::QUARANTINE_FILE;
use crate::relocation::MOVE_FILE;

/// No list of leader epochs above this is read.
const EPOCHS_BYTES_MAX: usize = 64 << 20;

/// What a log directory holds.
#[derive(Clone, Debug, Default)]
pub struct Inventory {
    /// Whether it was left in good order.
    pub clean: bool,
    /// Partitions in use and those set aside as strays, by name.
    pub partitions: Vec<PartitionFolder>,
    /// What is not taken along, below the directory.
    pub left_out: Vec<LeftOut>,
}

/// The folder of a partition.
#[derive(Clone, Debug)]
pub struct PartitionFolder {
    pub folder: Folder,
    /// `None` if nothing in the folder says it.
    pub topic_id: Option<TopicId>,
    /// Under which the log was written last.
    pub latest_epoch: Option<LeaderEpoch>,
    /// How many are listed; the cleaner takes the lists away with the records.
    pub aborted_transactions: u64,
    /// As of the newest producer snapshot.
    pub open_transactions: Vec<OpenTransaction>,
    /// Whether a node of ours knows of damage in the log.
    pub is_quarantined: bool,
    pub files: Vec<FileToCopy>,
}

/// A transaction that nobody has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenTransaction {
    pub producer: ProducerId,
    pub first_offset: Offset,
}

/// A file of a partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileToCopy {
    pub name: String,
    pub size_bytes: u64,
    /// A log behind which there is another one: nobody writes to it any more.
    pub is_complete_log: bool,
    /// Kafka has no such file; what is in it can be found out again.
    pub is_own: bool,
}

/// What stays behind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LeftOut {
    /// Was being removed or made when the node stopped, which the node itself would remove.
    Leftover(PathBuf),
    /// A replica on its way between directories.
    Future(PathBuf),
    /// Nothing of a log directory.
    Unknown(PathBuf),
}

/// Lists a log directory. Folders and files called as in `apart` are not looked at.
///
/// # Errors
/// If it cannot be read, or a file that says what belongs together is malformed.
pub fn stock<D: Disk>(disk: &D, directory: &Path, apart: &[&str]) -> Result<Inventory, TransferError> {
    let mut inventory = Inventory {
        clean: exists(disk, &directory.join(CLEAN_SHUTDOWN_FILE))?,
        ..Inventory::default()
    };
    // A damaged one is for the node that it belongs to: it is made again at the next start.
    for name in [
        RECOVERY_POINT_CHECKPOINT,
        LOG_START_CHECKPOINT,
        HIGH_WATERMARK_CHECKPOINT,
    ] {
        read_checkpoint(disk, directory, name)?;
    }
    for entry in list(disk, directory)? {
        let path = directory.join(&entry.name);
        if apart.contains(&entry.name.as_str()) || entry.name == LOST_AND_FOUND {
            continue;
        }
        if !entry.is_directory {
            inventory.left_out.extend(left_out_file(&path, &entry.name));
            continue;
        }
        match Folder::parse(&entry.name) {
            None => inventory.left_out.push(LeftOut::Unknown(path)),
            Some(folder) => match folder.kind {
                FolderKind::Deleted => inventory.left_out.push(LeftOut::Leftover(path)),
                FolderKind::Future => inventory.left_out.push(LeftOut::Future(path)),
                FolderKind::Partition | FolderKind::Stray => {
                    let partition = partition(disk, &path, folder, &mut inventory.left_out)?;
                    inventory.partitions.push(partition);
                }
            },
        }
    }
    Ok(inventory)
}

/// The checkpoints of a log directory, which go along as they are.
pub(super) const CHECKPOINTS: [&str; 4] = [
    RECOVERY_POINT_CHECKPOINT,
    LOG_START_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    CLEANER_CHECKPOINT,
];

fn left_out_file(path: &Path, name: &str) -> Option<LeftOut> {
    let known = [CLEAN_SHUTDOWN_FILE, LOCK_FILE, META_PROPERTIES, RESERVE_FILE];
    if CHECKPOINTS.contains(&name) || known.contains(&name) {
        return None;
    }
    Some(match name.ends_with(TEMPORARY_SUFFIX) {
        true => LeftOut::Leftover(path.to_owned()),
        false => LeftOut::Unknown(path.to_owned()),
    })
}

fn partition<D: Disk>(
    disk: &D,
    path: &Path,
    folder: Folder,
    left_out: &mut Vec<LeftOut>,
) -> Result<PartitionFolder, TransferError> {
    let entries = list(disk, path)?;
    let mut partition = PartitionFolder {
        topic_id: None,
        latest_epoch: None,
        aborted_transactions: 0,
        open_transactions: Vec::new(),
        is_quarantined: entries.iter().any(|entry| entry.name == QUARANTINE_FILE),
        files: Vec::new(),
        folder,
    };
    let of_kind = |wanted: Kind| {
        let parsed = entries.iter().filter_map(|entry| Kind::parse(&entry.name));
        parsed
            .filter(|(kind, _)| *kind == wanted)
            .map(|(_, offset)| offset)
            .max()
    };
    let last_log = of_kind(Kind::Log);
    for entry in &entries {
        let file = path.join(&entry.name);
        let kind = Kind::parse(&entry.name);
        if entry.is_directory || !is_taken(&entry.name) {
            left_out.push(match is_leftover(&entry.name) {
                true => LeftOut::Leftover(file),
                false => LeftOut::Unknown(file),
            });
            continue;
        }
        let size_bytes = disk
            .open(&file, OpenMode::Read)
            .and_then(|opened| opened.size_bytes())
            .map_err(TransferError::io(&file))?;
        if let Some((Kind::TransactionIndex, _)) = kind {
            partition.aborted_transactions += size_bytes / TRANSACTION_ENTRY_BYTES as u64;
        }
        partition.files.push(FileToCopy {
            name: entry.name.clone(),
            size_bytes,
            is_complete_log: matches!(kind, Some((Kind::Log, offset)) if Some(offset) < last_log),
            is_own: is_own(&entry.name),
        });
    }
    if let Some(bytes) = read_if_there(disk, &path.join(PARTITION_METADATA), SMALL_FILE_BYTES_MAX)? {
        let name = || TransferError::PartitionMetadata(partition.folder.name.clone());
        partition.topic_id = Some(parse_partition_metadata(&bytes).ok_or_else(name)?);
    }
    if let Some(bytes) = read_if_there(disk, &path.join(LEADER_EPOCH_CHECKPOINT), EPOCHS_BYTES_MAX)? {
        // One that cannot be read is made anew from the batches when the log is opened.
        let epochs = LeaderEpochs::from_text(&String::from_utf8_lossy(&bytes));
        partition.latest_epoch = epochs.and_then(|epochs| Some(epochs.latest()?.epoch));
    }
    if let Some(offset) = of_kind(Kind::ProducerSnapshot)
        && let Some(bytes) = read_if_there(disk, &Kind::ProducerSnapshot.path(path, offset), SNAPSHOT_BYTES_MAX)?
        && let Ok(states) = ProducerStates::from_snapshot(&bytes)
    {
        let open = states.active().filter_map(|producer| {
            Some(OpenTransaction {
                producer: producer.id,
                first_offset: producer.transaction_start_offset?,
            })
        });
        partition.open_transactions = open.collect();
    }
    Ok(partition)
}

/// Segments, snapshots and what says of whom they are; and a cleaner's segments that were about to take their place.
fn is_taken(name: &str) -> bool {
    let name = name.strip_suffix(SWAP_SUFFIX).unwrap_or(name);
    Kind::parse(name).is_some() || [LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA].contains(&name) || is_own(name)
}

fn is_own(name: &str) -> bool {
    let name = name.strip_suffix(SWAP_SUFFIX).unwrap_or(name);
    matches!(Kind::parse(name), Some((Kind::Bases, _))) || [LEADER_EPOCH_CHECKSUM, QUARANTINE_FILE].contains(&name)
}

fn is_leftover(name: &str) -> bool {
    let suffixes = [DELETED_SUFFIX, CLEANED_SUFFIX, TEMPORARY_SUFFIX];
    name == MOVE_FILE || suffixes.iter().any(|suffix| name.ends_with(suffix))
}

fn list<D: Disk>(disk: &D, path: &Path) -> Result<Vec<DirectoryEntry>, TransferError> {
    disk.list(path).map_err(TransferError::io(path))
}

pub(super) fn exists<D: Disk>(disk: &D, path: &Path) -> Result<bool, TransferError> {
    match disk.open(path, OpenMode::Read) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(TransferError::io(path)(error)),
    }
}

fn read_if_there<D: Disk>(disk: &D, path: &Path, size_max: usize) -> Result<Option<Vec<u8>>, TransferError> {
    match read_small_file(disk, path, size_max) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(TransferError::io(path)(error)),
    }
}
