//! One of a node's `log.dirs`: whose it is, whether it was left in good order, and the folders of its partitions.
//!
//! ```text
//! meta.properties                     cluster, node and directory id
//! .kafka_cleanshutdown                there only if the last stop was clean; taken away at start
//! recovery-point-offset-checkpoint    and the other checkpoints
//! first-0/                            one folder a partition; partition.metadata in it names the topic's id
//! first-0.0123…-delete/               deleted, to be removed
//! first-0.0123…-stray/                not in the metadata: kept for the operator
//! first-0.0123…-future/               on its way here from another directory of the node
//! ```

mod clean_shutdown;
mod folder;
mod meta_properties;

use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};

use model::{Offset, TopicId, TopicPartition, Uuid};
use tracing::error;

use crate::checkpoint::{
    CLEANER_CHECKPOINT, CheckpointError, HIGH_WATERMARK_CHECKPOINT, LOG_START_CHECKPOINT, Offsets,
    RECOVERY_POINT_CHECKPOINT, read_checkpoint, write_checkpoint,
};
use crate::disk::{Disk, File, OpenMode, read_small_file, replace_file};
use crate::file_names::Kind;
use crate::recovery::Start;

pub use clean_shutdown::CLEAN_SHUTDOWN_FILE;
pub use folder::{Folder, FolderKind};
pub use meta_properties::{META_PROPERTIES, MetaProperties, MetaPropertiesError};

pub(crate) const PARTITION_METADATA: &str = "partition.metadata";
pub(crate) const LOCK_FILE: &str = ".lock";
pub(crate) const SMALL_FILE_BYTES_MAX: usize = 64 << 10;

/// Why a log directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    #[error(transparent)]
    MetaProperties(#[from] MetaPropertiesError),
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    #[error("folder {folder} holds topic id {found}, {expected} is wanted")]
    TopicId {
        folder: String,
        found: TopicId,
        expected: TopicId,
    },
    #[error("partition.metadata of {0} is damaged: write the topic's id into it again")]
    PartitionMetadata(String),
    #[error("{} is in use by another process", .0.display())]
    Locked(PathBuf),
    #[error("using the log directory")]
    Io(#[from] io::Error),
}

/// An open log directory.
pub struct LogDirectory<D: Disk> {
    disk: D,
    /// Held for as long as the directory is open.
    _lock: D::File,
    path: PathBuf,
    properties: MetaProperties,
    /// The broker epoch of a clean end, -1 in it for "not known"; `None` if the end was not clean.
    previous_broker_epoch: Option<i64>,
    recovery_points: Offsets,
    log_starts: Offsets,
    high_watermarks: Offsets,
    cleaned_to: Offsets,
}

/// Gives a directory its identity, as `storage format` does.
///
/// # Errors
/// If it has one already, or the disk fails.
pub fn format<D: Disk>(disk: &D, path: &Path, properties: &MetaProperties) -> Result<(), DirectoryError> {
    disk.create_directory(path)?;
    match MetaProperties::read(disk, path) {
        Err(MetaPropertiesError::Missing(_)) => {}
        Ok(_) => return Err(MetaPropertiesError::AlreadyFormatted(path.to_owned()).into()),
        Err(error) => return Err(error.into()),
    }
    properties.write(disk, path)?;
    for above in path.ancestors().skip(1) {
        let is_here = above.as_os_str().is_empty();
        match disk.sync_directory(if is_here { Path::new(".") } else { above }) {
            Ok(()) => {}
            // It is another's, so was there before.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

impl<D: Disk> LogDirectory<D> {
    /// Opens a formatted directory. The sign of a clean end is taken away: whoever stops in good order puts a new one.
    ///
    /// # Errors
    /// If it was not formatted, or its files cannot be read. A directory without id gets `new_directory_id`.
    pub fn open(disk: D, path: &Path, new_directory_id: Uuid) -> Result<Self, DirectoryError> {
        let mut properties = MetaProperties::read(&disk, path)?;
        if properties.directory_id.is_none() || properties.version == 0 {
            properties.directory_id.get_or_insert(new_directory_id);
            properties.version = 1;
            properties.write(&disk, path)?;
        }
        let lock = disk.open(&path.join(LOCK_FILE), OpenMode::Create)?;
        lock.lock().map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => DirectoryError::Locked(path.to_owned()),
            _ => error.into(),
        })?;
        let previous_broker_epoch = clean_shutdown::take(&disk, path)?;
        // What each of them says can be found out again: from the logs how far those are sound, from the epochs where they
        // begin, and by cleaning what is clean.
        let recovery_points = read_if_sound(&disk, path, RECOVERY_POINT_CHECKPOINT)?;
        let log_starts = read_if_sound(&disk, path, LOG_START_CHECKPOINT)?;
        let high_watermarks = read_if_sound(&disk, path, HIGH_WATERMARK_CHECKPOINT)?;
        let cleaned_to = read_if_sound(&disk, path, CLEANER_CHECKPOINT)?;
        let path = path.to_owned();
        Ok(LogDirectory {
            disk,
            _lock: lock,
            path,
            properties,
            previous_broker_epoch,
            recovery_points,
            log_starts,
            high_watermarks,
            cleaned_to,
        })
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    #[must_use]
    pub fn disk(&self) -> &D {
        &self.disk
    }

    #[must_use]
    pub fn properties(&self) -> &MetaProperties {
        &self.properties
    }

    /// Whether the last stop was in good order.
    #[must_use]
    pub fn was_clean(&self) -> bool {
        self.previous_broker_epoch.is_some()
    }

    /// The broker epoch of the last clean stop: PreviousBrokerEpoch of the registration.
    #[must_use]
    pub fn previous_broker_epoch(&self) -> Option<i64> {
        self.previous_broker_epoch.filter(|epoch| *epoch >= 0)
    }

    /// Leaves the sign of a clean end: the last thing to do, after all logs are closed and the checkpoints written.
    ///
    /// # Errors
    /// As the disk says.
    pub fn mark_clean(&self, broker_epoch: Option<i64>) -> io::Result<()> {
        clean_shutdown::put(&self.disk, &self.path, broker_epoch)
    }

    /// What is known of the log of `partition` before it is opened. A high watermark below the recovery point counts in its
    /// place: a flipped digit must not make records missing that never were. Nothing else counts in its place, for what
    /// replicas have in memory may be above what is on the disk.
    #[must_use]
    pub fn start_of(&self, partition: &TopicPartition) -> Start {
        let recovery_point = self.recovery_points.get(partition).copied();
        let high_watermark = self.high_watermarks.get(partition).copied();
        let synced = recovery_point.map(|point| high_watermark.map_or(point, |watermark| point.min(watermark)));
        Start {
            clean: self.was_clean(),
            recovery_point: synced.unwrap_or_default(),
            log_start_offset: self.log_starts.get(partition).copied().unwrap_or_default(),
        }
    }

    /// The high watermark that was recorded last; 0 if there is none.
    #[must_use]
    pub fn high_watermark_of(&self, partition: &TopicPartition) -> Offset {
        self.high_watermarks.get(partition).copied().unwrap_or_default()
    }

    /// Everything below was cleaned, as recorded last.
    #[must_use]
    pub fn cleaned_to(&self, partition: &TopicPartition) -> Option<Offset> {
        self.cleaned_to.get(partition).copied()
    }

    pub fn set_cleaned_to(&mut self, partition: &TopicPartition, offset: Offset) {
        self.cleaned_to.insert(partition.clone(), offset);
    }

    /// # Errors
    /// As the disk says.
    pub fn write_cleaned_to(&self) -> io::Result<()> {
        write_checkpoint(&self.disk, &self.path, CLEANER_CHECKPOINT, &self.cleaned_to)
    }

    pub fn set_recovery_point(&mut self, partition: &TopicPartition, offset: Offset) {
        self.recovery_points.insert(partition.clone(), offset);
    }

    /// Only logs whose start is above their first segment's need this.
    pub fn set_log_start(&mut self, partition: &TopicPartition, offset: Offset) {
        self.log_starts.insert(partition.clone(), offset);
    }

    pub fn set_high_watermark(&mut self, partition: &TopicPartition, offset: Offset) {
        self.high_watermarks.insert(partition.clone(), offset);
    }

    /// Forgets a partition that is not here any more; the checkpoints say so when they are written next.
    pub fn forget(&mut self, partition: &TopicPartition) {
        self.recovery_points.remove(partition);
        self.log_starts.remove(partition);
        self.high_watermarks.remove(partition);
        self.cleaned_to.remove(partition);
    }

    /// # Errors
    /// As the disk says; so for the other two.
    pub fn write_recovery_points(&self) -> io::Result<()> {
        write_checkpoint(&self.disk, &self.path, RECOVERY_POINT_CHECKPOINT, &self.recovery_points)
    }

    /// # Errors
    /// As the disk says.
    pub fn write_log_starts(&self) -> io::Result<()> {
        write_checkpoint(&self.disk, &self.path, LOG_START_CHECKPOINT, &self.log_starts)
    }

    /// # Errors
    /// As the disk says.
    pub fn write_high_watermarks(&self) -> io::Result<()> {
        write_checkpoint(&self.disk, &self.path, HIGH_WATERMARK_CHECKPOINT, &self.high_watermarks)
    }

    /// Where the log of `partition` is.
    #[must_use]
    pub fn partition_path(&self, partition: &TopicPartition) -> PathBuf {
        self.path.join(partition.to_string())
    }

    /// Makes the folder of a partition and writes its topic's id into it; checks the id if it is there. Nothing is synced: the
    /// first sync of the log does that, before a record counts as durable.
    ///
    /// # Errors
    /// If the folder is another topic's of the same name, or the disk fails.
    pub fn create_partition(&self, partition: &TopicPartition, topic_id: TopicId) -> Result<PathBuf, DirectoryError> {
        let path = self.partition_path(partition);
        match self.topic_id_near(partition, topic_id)? {
            Some(found) if found == topic_id => return Ok(path),
            Some(found) => {
                return Err(DirectoryError::TopicId {
                    folder: partition.to_string(),
                    found,
                    expected: topic_id,
                });
            }
            None => {}
        }
        self.disk.create_directory(&path)?;
        let text = format!("version: 0\ntopic_id: {topic_id}");
        let file = self.disk.open(&path.join(PARTITION_METADATA), OpenMode::Replace)?;
        file.write_all_at(&[IoSlice::new(text.as_bytes())], 0)?;
        Ok(path)
    }

    /// Makes the folder in which a copy of a partition's log grows that is to come here: it has a name ending in `-future`.
    ///
    /// # Errors
    /// As the disk says.
    pub fn create_future(&self, partition: &TopicPartition, topic_id: TopicId, unique: Uuid) -> io::Result<PathBuf> {
        let name = folder::set_aside_name(partition, unique, FolderKind::Future);
        let path = self.path.join(name);
        self.disk.create_directory(&path)?;
        let text = format!("version: 0\ntopic_id: {topic_id}");
        replace_file(&self.disk, &path.join(PARTITION_METADATA), text.as_bytes())?;
        self.disk.sync_directory(&self.path)?;
        Ok(path)
    }

    /// Removes such a folder with everything in it. What the checkpoints say of a log that never came here goes first: it
    /// would speak of the next one of this name.
    ///
    /// # Errors
    /// If `path` is no such folder of this directory, or the disk fails.
    pub fn discard_future(&mut self, path: &Path) -> io::Result<()> {
        let folder = self.folder_at(path, FolderKind::Future)?;
        let is_known = self.recovery_points.contains_key(&folder.partition)
            || self.log_starts.contains_key(&folder.partition)
            || self.high_watermarks.contains_key(&folder.partition)
            || self.cleaned_to.contains_key(&folder.partition);
        if is_known && !self.has_folder(&folder.partition)? {
            self.forget(&folder.partition);
            self.write_recovery_points()?;
            self.write_log_starts()?;
            self.write_high_watermarks()?;
            self.write_cleaned_to()?;
        }
        match self.disk.remove_directory(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    /// Gives a future folder the partition's name, durably.
    pub(crate) fn adopt_future(&self, path: &Path, partition: &TopicPartition) -> io::Result<PathBuf> {
        self.folder_at(path, FolderKind::Future)?;
        let target = self.partition_path(partition);
        self.disk.rename(path, &target)?;
        self.disk.sync_directory(&self.path)?;
        Ok(target)
    }

    fn folder_at(&self, path: &Path, kind: FolderKind) -> io::Result<Folder> {
        let folder = path.file_name().and_then(|name| name.to_str()).and_then(Folder::parse);
        let folder = folder.filter(|folder| path.parent() == Some(&self.path) && folder.kind == kind);
        folder.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the folder is not of this kind"))
    }

    /// The topic's id that a folder of this directory holds, in use or not; `None` if nothing sound says it.
    ///
    /// # Errors
    /// As the disk says.
    pub fn topic_id_at(&self, path: &Path) -> io::Result<Option<TopicId>> {
        match read_small_file(&self.disk, &path.join(PARTITION_METADATA), SMALL_FILE_BYTES_MAX) {
            Ok(bytes) => Ok(parse_partition_metadata(&bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// As [`LogDirectory::topic_id_of`], where the folder should be that of `expected`.
    ///
    /// # Errors
    /// As there; also where the id in the folder is `expected` with a few bits flipped.
    pub fn topic_id_near(
        &self,
        partition: &TopicPartition,
        expected: TopicId,
    ) -> Result<Option<TopicId>, DirectoryError> {
        match self.topic_id_of(partition)? {
            Some(found) if found != expected && is_damaged_form(found, expected) => {
                Err(DirectoryError::PartitionMetadata(partition.to_string()))
            }
            found => Ok(found),
        }
    }

    /// Whether there is a folder of that name, be it without an id.
    ///
    /// # Errors
    /// As the disk says.
    pub fn has_folder(&self, partition: &TopicPartition) -> io::Result<bool> {
        match self.disk.list(&self.partition_path(partition)) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The topic id in the folder of `partition`; `None` if there is no folder, or no id in it, as after a crash that came
    /// before the first sync of its log.
    ///
    /// # Errors
    /// If the file that has it is malformed or cannot be read.
    pub fn topic_id_of(&self, partition: &TopicPartition) -> Result<Option<TopicId>, DirectoryError> {
        let path = self.partition_path(partition).join(PARTITION_METADATA);
        let bytes = match read_small_file(&self.disk, &path, SMALL_FILE_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        match parse_partition_metadata(&bytes) {
            Some(id) => Ok(Some(id)),
            None if bytes.is_empty() || self.has_no_records(partition)? => Ok(None),
            None => Err(DirectoryError::PartitionMetadata(partition.to_string())),
        }
    }

    fn has_no_records(&self, partition: &TopicPartition) -> io::Result<bool> {
        let path = self.partition_path(partition);
        for entry in self.disk.list(&path)? {
            if let Some((Kind::Log, _)) = Kind::parse(&entry.name)
                && self.disk.open(&path.join(&entry.name), OpenMode::Read)?.size_bytes()? > 0
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The partition folders, those marked for deletion and the stray ones included.
    ///
    /// # Errors
    /// As the disk says.
    pub fn folders(&self) -> io::Result<Vec<Folder>> {
        let entries = self.disk.list(&self.path)?;
        Ok(entries
            .into_iter()
            .filter(|entry| entry.is_directory)
            .filter_map(|entry| Folder::parse(&entry.name))
            .collect())
    }

    /// Takes a partition's folder out of use: it gets a name ending in `-delete`. Returns where it is, for
    /// [`LogDirectory::remove_folder`] after `file.delete.delay.ms`. `unique` keeps two deletions apart.
    ///
    /// # Errors
    /// As the disk says.
    pub fn delete_partition(&mut self, partition: &TopicPartition, unique: Uuid) -> io::Result<PathBuf> {
        self.set_aside(partition, unique, FolderKind::Deleted)
    }

    /// Sets a folder aside that the metadata does not know: it gets a name ending in `-stray` and is left alone.
    ///
    /// # Errors
    /// As the disk says.
    pub fn set_stray_aside(&mut self, partition: &TopicPartition, unique: Uuid) -> io::Result<PathBuf> {
        self.set_aside(partition, unique, FolderKind::Stray)
    }

    pub(crate) fn set_aside(
        &mut self,
        partition: &TopicPartition,
        unique: Uuid,
        kind: FolderKind,
    ) -> io::Result<PathBuf> {
        let target = self.path.join(folder::set_aside_name(partition, unique, kind));
        self.disk.rename(&self.partition_path(partition), &target)?;
        self.disk.sync_directory(&self.path)?;
        let was_cleaned = self.cleaned_to.contains_key(partition);
        self.forget(partition);
        if was_cleaned {
            // It would speak of the next topic of this name.
            self.write_cleaned_to()?;
        }
        Ok(target)
    }

    /// Removes a folder that was taken out of use, with everything in it.
    ///
    /// # Errors
    /// If `path` is not such a folder of this directory, or the disk fails.
    pub fn remove_folder(&self, path: &Path) -> io::Result<()> {
        let name = path.file_name().and_then(|name| name.to_str()).and_then(Folder::parse);
        if path.parent() != Some(&self.path) || !name.is_some_and(|folder| folder.kind == FolderKind::Deleted) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "only folders marked for deletion are removed",
            ));
        }
        self.disk.remove_directory(path)
    }
}

/// The offsets of a checkpoint; none if it is malformed.
fn read_if_sound<D: Disk>(disk: &D, path: &Path, name: &str) -> Result<Offsets, CheckpointError> {
    match read_checkpoint(disk, path, name) {
        Err(error @ CheckpointError::Malformed { .. }) => {
            error!(path = %path.display(), %error, "a checkpoint is damaged and is made again");
            Ok(Offsets::new())
        }
        read => read,
    }
}

/// Whether two random ids are so alike that one is the other, damaged.
fn is_damaged_form(found: TopicId, expected: TopicId) -> bool {
    const DIFFERING_BYTES_MAX: usize = 2;
    let pairs = found.as_bytes().iter().zip(expected.as_bytes());
    pairs.filter(|(one, other)| one != other).count() <= DIFFERING_BYTES_MAX
}

/// The topic's id in a `partition.metadata`; `None` if it is malformed.
pub(crate) fn parse_partition_metadata(bytes: &[u8]) -> Option<TopicId> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut lines = text.lines();
    lines.next().filter(|line| *line == "version: 0")?;
    lines.next()?.strip_prefix("topic_id: ")?.parse().ok()
}

#[cfg(test)]
mod tests;
