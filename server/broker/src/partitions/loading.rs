//! The node's log directories: where partitions lie, how their logs are opened, deleted and left in good order.
//!
//! A directory that has failed, or that could not be opened at the start, is left alone: nothing is looked for, made or
//! recorded in it. A partition that lies there is not made anew elsewhere.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use metadata::Image;
use model::{
    BrokerId, DirectoryId, Monotonic, Offset, PartitionIndex, Timestamp, TopicId, TopicName, TopicPartition, Uuid,
};
use storage::disk::FailureKind;
use storage::log_directory::{DirectoryError, FolderKind};
use storage::relocation::{Noted, SettleError, read_note, settle};
use storage::{Disk, LogDirectory, LogOptions, OpenError, PartitionLog, Recovery};
use tokio::sync::Notify;
use tracing::{error, info, warn};

use super::{LogDisk, Partition};

mod health;
mod moves;

pub use health::DirectoryFigures;
pub(crate) use health::{DirectoryState, FailedDirectory};
use moves::Moves;
pub(crate) use moves::{FutureState, MoveEnd, WantedMove, shown};

/// The controllers' own log lies in one of the directories and is not the broker's.
const METADATA_TOPIC: &str = "__cluster_metadata";
/// How many ids are drawn at most for the name of a folder that is set aside.
const UNIQUE_DRAWS_MAX: usize = 100;

/// Why a log is not there.
#[derive(Debug, thiserror::Error)]
pub enum LogDirectoriesError {
    #[error("no log directory can be used")]
    None,
    #[error("the log directory that the partition lies in is offline")]
    Offline,
    #[error("the log has moved to a log directory that is not there")]
    MovedAway,
    #[error("the folder {0} says that it is of another topic, which is there: put its own partition.metadata back")]
    Foreign(PathBuf),
    #[error(transparent)]
    Settle(#[from] SettleError),
    #[error("no random bytes from the system")]
    Entropy,
    #[error("the log has been closed already, or its disk has failed")]
    Closed,
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("using a log directory")]
    Io(#[from] io::Error),
}

/// Where a partition's log is to be looked for, and where it may be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Placement {
    /// It is new.
    Anywhere,
    /// It has been somewhere before, and nobody has said where.
    WhereItWas,
    At(DirectoryId),
}

struct Directory {
    log_directory: LogDirectory<LogDisk>,
    partitions: usize,
    /// What others have been told of its failure.
    told: Option<FailureKind>,
}

impl Directory {
    fn id(&self) -> Option<DirectoryId> {
        self.log_directory.properties().directory_id
    }

    fn failure_kind(&self) -> Option<FailureKind> {
        self.log_directory.disk().failure_kind()
    }

    fn is_writable(&self) -> bool {
        self.failure_kind().is_none()
    }

    /// Whether what lies in it can be read.
    fn is_readable(&self) -> bool {
        self.failure_kind() != Some(FailureKind::Dead)
    }

    /// Nothing where nothing can be written.
    fn write_checkpoints(&self) -> Result<(), LogDirectoriesError> {
        if self.is_writable() {
            self.log_directory.write_recovery_points()?;
            self.log_directory.write_log_starts()?;
            self.log_directory.write_high_watermarks()?;
        }
        Ok(())
    }
}

/// What is unlinked when its time has come.
enum Doomed {
    File(PathBuf),
    Folder { directory: usize, path: PathBuf },
}

impl Doomed {
    fn path(&self) -> &Path {
        match self {
            Doomed::File(path) | Doomed::Folder { path, .. } => path,
        }
    }
}

struct State {
    directories: Vec<Directory>,
    /// Those that could not be opened at the start.
    missing: Vec<PathBuf>,
    metadata_directory: Option<PathBuf>,
    /// Which directory each partition lies in.
    places: BTreeMap<TopicPartition, usize>,
    doomed: Vec<(Monotonic, Doomed)>,
    moves: Moves,
}

/// All `log.dirs` of a node.
pub struct LogDirectories {
    state: Mutex<State>,
    /// `file.delete.delay.ms`
    delete_delay: Duration,
    /// Told when a directory fails.
    failure: Arc<Notify>,
}

impl LogDirectories {
    /// Takes over opened directories. What was being deleted when the node stopped goes with the next clean-up.
    ///
    /// # Errors
    /// If a directory cannot be listed.
    pub fn new(directories: Vec<LogDirectory<LogDisk>>, delete_delay: Duration) -> Result<Self, LogDirectoriesError> {
        let mut doomed = Vec::new();
        let mut moves = Moves::default();
        let failure = Arc::new(Notify::new());
        for (at, directory) in directories.iter().enumerate() {
            let told = failure.clone();
            directory.disk().on_failure(move || told.notify_one());
            for folder in directory.folders()? {
                let path = directory.path().join(&folder.name);
                match folder.kind {
                    FolderKind::Deleted if moves.note_left(at, directory, &folder.partition, &path)? => {}
                    FolderKind::Deleted => {
                        doomed.push((Monotonic::default(), Doomed::Folder { directory: at, path }));
                    }
                    FolderKind::Future => moves.note_leftover(at, folder.partition, path),
                    FolderKind::Partition | FolderKind::Stray => {}
                }
            }
        }
        let directories = directories
            .into_iter()
            .map(|log_directory| Directory {
                log_directory,
                partitions: 0,
                told: None,
            })
            .collect();
        Ok(LogDirectories {
            state: Mutex::new(State {
                directories,
                missing: Vec::new(),
                metadata_directory: None,
                places: BTreeMap::new(),
                doomed,
                moves,
            }),
            delete_delay,
            failure,
        })
    }

    /// Names what could not be opened, and where the controllers' log lies.
    #[must_use]
    pub fn with(self, missing: Vec<PathBuf>, metadata_directory: &Path) -> Self {
        let mut state = self.lock();
        state.missing = missing;
        state.metadata_directory = Some(metadata_directory.to_owned());
        drop(state);
        self
    }

    /// The id of the directory that a partition lies in, opened or not.
    pub(crate) fn directory_of(
        &self,
        place: &TopicPartition,
        topic_id: TopicId,
    ) -> Result<Option<DirectoryId>, LogDirectoriesError> {
        let mut state = self.lock();
        let at = match state.places.get(place) {
            Some(at) => Some(*at),
            None => state.holder(place, topic_id, None)?,
        };
        Ok(at.and_then(|at| state.directories[at].id()))
    }

    /// The ids of the directories, as the controller is told.
    #[must_use]
    pub fn ids(&self) -> Vec<Uuid> {
        let state = self.lock();
        let mut ids: Vec<Uuid> = state
            .directories
            .iter()
            .filter_map(|it| it.log_directory.properties().directory_id)
            .collect();
        ids.sort_unstable();
        ids
    }

    /// How many directories are in use.
    pub(crate) fn count(&self) -> usize {
        self.lock().directories.len()
    }

    /// The broker epoch under which the node was stopped in good order; `None` if any directory was not.
    #[must_use]
    pub fn previous_broker_epoch(&self) -> Option<i64> {
        let state = self.lock();
        let opened = state.directories.iter();
        let epochs = opened.map(|it| it.log_directory.previous_broker_epoch());
        epochs.min().flatten()
    }

    /// # Errors
    /// [`LogDirectoriesError::Foreign`] where the folder of a partition has the id of another topic that is there. A topic
    /// that was deleted and made again has left a folder with an id that nobody has: it is set aside. But here an id was
    /// overwritten or folders were swapped, and a new log would give offsets away again that are acknowledged.
    pub(crate) fn refuse_foreign(&self, place: &TopicPartition, image: &Image) -> Result<(), LogDirectoriesError> {
        let state = self.lock();
        for directory in state.directories.iter().filter(|it| it.is_readable()) {
            let found = directory.log_directory.topic_id_of(place)?;
            if found.is_some_and(|id| names_another(image, id, &place.topic)) {
                let folder = directory.log_directory.partition_path(place);
                return Err(LogDirectoriesError::Foreign(folder));
            }
        }
        Ok(())
    }

    /// Opens a partition's log where it lies, or makes it where it may be: in the directory with the fewest partitions if
    /// nothing else is said.
    pub(crate) fn open(
        &self,
        topic: &TopicName,
        topic_id: TopicId,
        index: PartitionIndex,
        placement: Placement,
        options: LogOptions,
        now: Timestamp,
    ) -> Result<PartitionLog<LogDisk>, LogDirectoriesError> {
        let partition = TopicPartition {
            topic: topic.clone(),
            partition: index,
        };
        let (disk, path, start) = {
            let mut state = self.lock();
            let at = state.find(&partition, topic_id, placement)?;
            let directory = &mut state.directories[at];
            let path = directory.log_directory.create_partition(&partition, topic_id)?;
            let start = directory.log_directory.start_of(&partition);
            let disk = directory.log_directory.disk().clone();
            if state.places.insert(partition.clone(), at).is_none() {
                state.directories[at].partitions += 1;
            }
            (disk, path, start)
        };
        let (log, recovery) = PartitionLog::open(disk, &path, options, start, now)?;
        report(&partition, &recovery);
        Ok(log)
    }

    /// Sets a deleted partition's folder aside; it is unlinked later, so that those who still read it can end. It need not
    /// have been opened. Nothing happens where there is none, or where it is of another topic.
    pub(crate) fn delete(
        &self,
        place: &TopicPartition,
        topic_id: TopicId,
        now: Monotonic,
    ) -> Result<(), LogDirectoriesError> {
        let mut state = self.lock();
        state.moves.abandon(place);
        let holders = state.holders(place, topic_id)?;
        if holders.is_empty() {
            return Ok(());
        }
        if let Some(at) = state.places.remove(place) {
            let directory = &mut state.directories[at];
            directory.partitions = directory.partitions.saturating_sub(1);
        }
        let mut outcome = Ok(());
        for at in holders {
            let directory = &mut state.directories[at];
            match directory.log_directory.delete_partition(place, unique()?) {
                Ok(path) => state
                    .doomed
                    .push((self.due(now), Doomed::Folder { directory: at, path })),
                Err(error) => outcome = Err(error.into()),
            }
        }
        outcome
    }

    /// Sets aside what the cluster does not know, or has given to other brokers: an operator decides what becomes of it.
    pub(crate) fn set_strays_aside(&self, image: &Image, broker: BrokerId) -> Result<(), LogDirectoriesError> {
        let mut state = self.lock();
        for directory in state.directories.iter_mut().filter(|it| it.is_writable()) {
            for folder in directory.log_directory.folders()? {
                let partition = &folder.partition;
                if folder.kind != FolderKind::Partition || partition.topic.as_str() == METADATA_TOPIC {
                    continue;
                }
                let expected = image.topics.by_name(partition.topic.as_str()).map(|topic| topic.id);
                let topic_id = match expected {
                    Some(expected) => directory.log_directory.topic_id_near(partition, expected),
                    None => directory.log_directory.topic_id_of(partition),
                };
                let topic_id = match topic_id {
                    Ok(Some(id)) if names_another(image, id, &partition.topic) => {
                        let error = LogDirectoriesError::Foreign(directory.log_directory.partition_path(partition));
                        error!(%error, "the folder stays where it is");
                        continue;
                    }
                    Err(error @ DirectoryError::PartitionMetadata(_)) => {
                        error!(%error, "the folder stays where it is");
                        continue;
                    }
                    read => read?,
                };
                // A crash may have come before the id was on the disk, and before any record was.
                let id = topic_id.or(expected);
                let known = id.and_then(|id| image.topics.by_id(id)?.partitions.get(&partition.partition));
                if known.is_some_and(|partition| partition.replicas.contains(&broker)) {
                    continue;
                }
                let path = directory.log_directory.set_stray_aside(partition, unique()?)?;
                warn!(folder = %path.display(), "the cluster does not know this partition: set aside, not deleted");
            }
        }
        Ok(())
    }

    /// Files that retention has taken out of a log.
    pub(crate) fn unlink_later(&self, files: Vec<PathBuf>, now: Monotonic) {
        let due = self.due(now);
        self.lock()
            .doomed
            .extend(files.into_iter().map(|file| (due, Doomed::File(file))));
    }

    /// Whether anything was set aside long enough ago.
    pub(crate) fn has_due(&self, now: Monotonic) -> bool {
        self.lock().doomed.iter().any(|(at, _)| *at <= now)
    }

    /// Unlinks what was set aside long enough ago.
    pub(crate) fn unlink_due(&self, now: Monotonic) {
        self.unlink_where(|at, _| at <= now);
    }

    fn unlink_where(&self, is_due: impl Fn(Monotonic, &Path) -> bool) {
        let mut state = self.lock();
        let doomed = std::mem::take(&mut state.doomed);
        let (due, kept): (Vec<_>, Vec<_>) = doomed.into_iter().partition(|(at, doomed)| is_due(*at, doomed.path()));
        state.doomed = kept;
        for (_, doomed) in due {
            let unlinked = match &doomed {
                Doomed::File(path) => state.disk_of(path).map_or(Ok(()), |disk| disk.remove_file(path)),
                Doomed::Folder { directory, path } => state.directories[*directory].log_directory.remove_folder(path),
            };
            match unlinked {
                Ok(()) => {}
                // Its whole folder may have gone before it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => warn!(path = %doomed.path().display(), %error, "not unlinked"),
            }
        }
    }

    /// Records how far each log is synced, where it begins and how far it is committed.
    pub(crate) fn write_checkpoints(&self, partitions: &[Arc<Partition>]) -> Result<(), LogDirectoriesError> {
        let mut recorded = Vec::with_capacity(partitions.len());
        let mut state = self.lock();
        for partition in partitions {
            let place = partition.place();
            let at = state.places.get(&place).copied();
            let Some(at) = at.filter(|at| state.directories[*at].is_writable()) else {
                continue;
            };
            let (recovery_point, ends) = (partition.recovery_point(), partition.ends());
            let directory = &mut state.directories[at].log_directory;
            directory.set_recovery_point(&place, recovery_point);
            directory.set_log_start(&place, ends.log_start_offset);
            directory.set_high_watermark(&place, ends.high_watermark);
            recorded.push((at, partition, recovery_point));
        }
        // One directory's trouble is not another's.
        let mut outcome = Ok(());
        let mut failed = Vec::new();
        for (at, directory) in state.directories.iter().enumerate() {
            if let Err(error) = directory.write_checkpoints() {
                failed.push(at);
                outcome = Err(error);
            }
        }
        drop(state);
        for (at, partition, point) in recorded {
            if !failed.contains(&at) {
                partition.with_replica(|replica| replica.log_mut().recovery_point_recorded(point));
            }
        }
        outcome
    }

    /// Records a log's new start at once: what was deleted must not come back with a crash.
    pub(crate) fn write_log_start(&self, partition: &Partition, start: Offset) -> Result<(), LogDirectoriesError> {
        let place = partition.place();
        let mut state = self.lock();
        if let Some(at) = state.places.get(&place).copied() {
            let directory = &mut state.directories[at].log_directory;
            directory.set_log_start(&place, start);
            directory.write_log_starts()?;
        }
        Ok(())
    }

    /// Up to where a compacted log was cleaned, as recorded last.
    pub(crate) fn cleaned_to(&self, place: &TopicPartition) -> Option<Offset> {
        let state = self.lock();
        let at = state.places.get(place)?;
        state.directories[*at].log_directory.cleaned_to(place)
    }

    pub(crate) fn write_cleaned_to(&self, place: &TopicPartition, offset: Offset) -> Result<(), LogDirectoriesError> {
        let mut state = self.lock();
        if let Some(at) = state.places.get(place).copied() {
            let directory = &mut state.directories[at].log_directory;
            directory.set_cleaned_to(place, offset);
            directory.write_cleaned_to()?;
        }
        Ok(())
    }

    /// Closes the logs and records how they were left.
    pub(crate) fn close(&self, partitions: &[Arc<Partition>]) -> Result<(), LogDirectoriesError> {
        let mut outcome = Ok(());
        for partition in partitions {
            if let Err(error) = partition.close() {
                warn!(topic = %partition.topic(), partition = %partition.index(), %error, "log not closed in good order");
                outcome = Err(error.into());
            }
        }
        self.write_checkpoints(partitions)?;
        outcome
    }

    /// Marks the directories as left in good order: the last thing that a node does, when all logs in them are closed.
    ///
    /// # Errors
    /// If a mark cannot be written.
    pub fn mark_clean(&self, broker_epoch: i64) -> Result<(), LogDirectoriesError> {
        for directory in self.lock().directories.iter().filter(|it| it.is_writable()) {
            directory.log_directory.mark_clean(Some(broker_epoch))?;
        }
        Ok(())
    }

    fn due(&self, now: Monotonic) -> Monotonic {
        now.plus(self.delete_delay)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The directories that have a folder of that partition of that very topic.
    fn holders(&self, place: &TopicPartition, topic_id: TopicId) -> Result<Vec<usize>, LogDirectoriesError> {
        let mut holders = Vec::new();
        for (at, directory) in self.directories.iter().enumerate().filter(|(_, it)| it.is_readable()) {
            if directory.log_directory.topic_id_of(place)? == Some(topic_id) {
                holders.push(at);
            }
        }
        Ok(holders)
    }

    /// The directory that has the log of that partition of that very topic. `assigned` is where the controller believes it
    /// to be.
    fn holder(
        &mut self,
        place: &TopicPartition,
        topic_id: TopicId,
        assigned: Option<DirectoryId>,
    ) -> Result<Option<usize>, LogDirectoriesError> {
        match self.holders(place, topic_id)?.first() {
            Some(first) => self.settled(*first, place, topic_id, assigned),
            None => Ok(None),
        }
    }

    /// The directory that has the log, where the first that has a folder of it is `first`: another one, if that folder was
    /// being moved when the node stopped.
    fn settled(
        &mut self,
        first: usize,
        place: &TopicPartition,
        topic_id: TopicId,
        assigned: Option<DirectoryId>,
    ) -> Result<Option<usize>, LogDirectoriesError> {
        let directory = &self.directories[first].log_directory;
        if read_note(directory.disk(), &directory.partition_path(place))? == Noted::Nothing {
            return Ok(Some(first));
        }
        let mut readable: Vec<Option<&mut LogDirectory<LogDisk>>> = Vec::with_capacity(self.directories.len());
        for directory in &mut self.directories {
            let is_readable = directory.is_readable();
            readable.push(is_readable.then_some(&mut directory.log_directory));
        }
        Ok(settle(&mut readable, place, topic_id, assigned, || unique().ok())?)
    }

    /// The disk of the directory that `path` lies in.
    fn disk_of(&self, path: &Path) -> Option<LogDisk> {
        let mut directories = self.directories.iter().map(|it| it.log_directory.disk());
        directories.find(|disk| path.starts_with(disk.directory())).cloned()
    }

    fn all_are_online(&self) -> bool {
        self.missing.is_empty() && self.directories.iter().all(Directory::is_readable)
    }

    /// The directory that holds the partition, else the one that it may be made in. A folder of that name that belongs to
    /// another topic, of the same name and long deleted, is set aside.
    fn find(
        &mut self,
        partition: &TopicPartition,
        topic_id: TopicId,
        placement: Placement,
    ) -> Result<usize, LogDirectoriesError> {
        let assigned = match placement {
            Placement::At(id) => Some(id),
            Placement::Anywhere | Placement::WhereItWas => None,
        };
        for at in 0..self.directories.len() {
            if !self.directories[at].is_readable() {
                continue;
            }
            let directory = &mut self.directories[at].log_directory;
            match directory.topic_id_near(partition, topic_id)? {
                Some(found) if found == topic_id => {
                    let settled = self.settled(at, partition, topic_id, assigned)?;
                    return settled.ok_or(LogDirectoriesError::Offline);
                }
                Some(_) => {
                    let path = directory.set_stray_aside(partition, unique()?)?;
                    warn!(folder = %path.display(), "the folder is of another topic of this name: set aside");
                }
                None => {}
            }
        }
        if self.moves.has_left(partition, topic_id) {
            return Err(LogDirectoriesError::MovedAway);
        }
        match placement {
            Placement::Anywhere => {
                let preferred = self.moves.take_preference(partition);
                if let Some(at) = preferred.filter(|at| self.directories[*at].is_writable()) {
                    return Ok(at);
                }
                // Begun before a crash.
                for (at, directory) in self.directories.iter().enumerate().filter(|(_, it)| it.is_writable()) {
                    if self.directories.len() > 1 && directory.log_directory.has_folder(partition)? {
                        return Ok(at);
                    }
                }
            }
            Placement::WhereItWas if self.all_are_online() => {}
            Placement::WhereItWas => return Err(LogDirectoriesError::Offline),
            Placement::At(id) => {
                let at = self.directories.iter().position(|it| it.id() == Some(id));
                return at
                    .filter(|at| self.directories[*at].is_writable())
                    .ok_or(LogDirectoriesError::Offline);
            }
        }
        let writable = self.directories.iter().enumerate().filter(|(_, it)| it.is_writable());
        let emptiest = writable.min_by_key(|(_, it)| (it.log_directory.disk().figures().is_full, it.partitions));
        emptiest.map(|(at, _)| at).ok_or(LogDirectoriesError::None)
    }
}

/// Whether the id is that of a topic of another name.
fn names_another(image: &Image, id: TopicId, topic: &TopicName) -> bool {
    image.topics.by_id(id).is_some_and(|known| known.name != *topic)
}

fn report(partition: &TopicPartition, recovery: &Recovery) {
    if recovery.bytes_read > 0 || recovery.indexes_rebuilt > 0 {
        info!(
            partition = %partition,
            bytes_read = recovery.bytes_read,
            bytes_cut = recovery.bytes_cut,
            indexes_rebuilt = recovery.indexes_rebuilt,
            "log recovered"
        );
    }
    if !recovery.damage.is_empty() {
        let ranges = recovery.damage.len();
        warn!(topic = %partition.topic, partition = %partition.partition, ranges, "the log has damaged records");
    }
}

fn unique() -> Result<Uuid, LogDirectoriesError> {
    let draws = (0..UNIQUE_DRAWS_MAX).map_while(|_| {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).ok().map(|()| bytes)
    });
    Uuid::from_entropy(draws).ok_or(LogDirectoriesError::Entropy)
}

#[cfg(test)]
mod tests;
