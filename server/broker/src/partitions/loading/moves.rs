//! Which partitions are to lie in another log directory: wanted, being copied, and what they have left behind.
//!
//! - What is wanted outlives a restart: the folder in which the copy grows is made when it is asked for, and the copy is
//!   begun anew where it is found again.
//! - A folder in which a copy grows is touched by the mover alone. What is given up is put on a list for it.
//! - A log that has moved leaves its folder behind until the controller knows where the log is: while it does not, nobody
//!   makes a new log there.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use metadata::Image;
use model::{BrokerId, DirectoryId, ErrorCode, Monotonic, Offset, Timestamp, TopicId, TopicPartition, Uuid};
use replication::Replica;
use storage::relocation::{CopyError, Copying, ExchangeError, Noted, Progress, Sides, exchange, read_note};
use storage::{LogDirectory, PartitionLog};
use tracing::{info, warn};

use super::{Doomed, LogDirectories, LogDirectoriesError, State, unique};
use crate::partitions::LogDisk;

/// How many partitions that are not there yet may have a directory of choice; what is more is forgotten.
const PREFERENCES_MAX: usize = 10_000;
/// Kafka refuses topics whose folder names would not fit behind the suffix of a copy.
const FOLDER_NAME_LENGTH_MAX: usize = 255;
/// What the name of a folder with a copy has behind topic and partition: a dot, 32 digits and `-future`.
const FUTURE_SUFFIX_LENGTH: usize = 40;

/// A partition that is to lie in another directory.
#[derive(Clone, Debug)]
pub(crate) struct WantedMove {
    pub(crate) place: TopicPartition,
    pub(crate) topic_id: TopicId,
    /// Tells this move from an earlier one of the same partition, and names the folder of the copy.
    unique: Uuid,
    to: usize,
    pub(crate) future: PathBuf,
    /// The smallest comes first.
    turn: u64,
    figures: Arc<MoveFigures>,
}

#[derive(Debug, Default)]
struct MoveFigures {
    size_bytes: AtomicU64,
    end: AtomicI64,
}

/// A copy that grows, as it is shown.
pub(crate) struct FutureState {
    pub(crate) place: TopicPartition,
    pub(crate) size_bytes: u64,
    pub(crate) end: Offset,
}

/// Why a move has not come to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MoveEnd {
    #[error("it is not wanted any more")]
    GivenUp,
    #[error("a log directory has failed")]
    DirectoryFailed,
    #[error("the disk has too little room")]
    NoRoom,
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
}

impl From<CopyError> for MoveEnd {
    fn from(error: CopyError) -> Self {
        MoveEnd::Exchange(error.into())
    }
}

/// What a log has left behind.
struct Left {
    directory: usize,
    path: PathBuf,
    place: TopicPartition,
    topic_id: TopicId,
}

#[derive(Default)]
pub(super) struct Moves {
    wanted: Vec<WantedMove>,
    next_turn: u64,
    /// Copies of moves that were under way when the node stopped.
    leftover: Vec<(usize, TopicPartition, PathBuf)>,
    /// Copies that nobody wants, for the mover to remove.
    abandoned: Vec<(usize, PathBuf)>,
    left: Vec<Left>,
    preferences: Vec<(TopicPartition, usize)>,
}

impl Moves {
    /// Remembers a folder that a log has left; false if it is another one.
    pub(super) fn note_left(
        &mut self,
        at: usize,
        directory: &LogDirectory<LogDisk>,
        place: &TopicPartition,
        path: &Path,
    ) -> Result<bool, LogDirectoriesError> {
        let is_left = matches!(read_note(directory.disk(), path)?, Noted::Move(_));
        let topic_id = directory.topic_id_at(path)?.filter(|_| is_left);
        if let Some(topic_id) = topic_id {
            self.left.push(Left {
                directory: at,
                path: path.to_owned(),
                place: place.clone(),
                topic_id,
            });
        }
        Ok(topic_id.is_some())
    }

    pub(super) fn note_leftover(&mut self, at: usize, place: TopicPartition, path: PathBuf) {
        self.leftover.push((at, place, path));
    }

    /// Whether the log has left one of the directories, and the controller was not seen to know.
    pub(super) fn has_left(&self, place: &TopicPartition, topic_id: TopicId) -> bool {
        let mut left = self.left.iter();
        left.any(|left| left.place == *place && left.topic_id == topic_id)
    }

    pub(super) fn take_preference(&mut self, place: &TopicPartition) -> Option<usize> {
        let found = self.preferences.iter().position(|(known, _)| known == place)?;
        Some(self.preferences.swap_remove(found).1)
    }

    fn prefer(&mut self, place: TopicPartition, at: usize) {
        self.take_preference(&place);
        if self.preferences.len() < PREFERENCES_MAX {
            self.preferences.push((place, at));
        }
    }

    fn find(&self, place: &TopicPartition) -> Option<&WantedMove> {
        self.wanted.iter().find(|wanted| wanted.place == *place)
    }

    /// Gives up a move, if there is one.
    pub(super) fn abandon(&mut self, place: &TopicPartition) {
        if let Some(at) = self.wanted.iter().position(|wanted| wanted.place == *place) {
            let given_up = self.wanted.swap_remove(at);
            self.abandoned.push((given_up.to, given_up.future));
        }
    }

    fn turn(&mut self) -> u64 {
        self.next_turn += 1;
        self.next_turn
    }
}

impl LogDirectories {
    /// The directory at a path as clients name it.
    ///
    /// # Errors
    /// LOG_DIR_NOT_FOUND where the node has no such directory, KAFKA_STORAGE_ERROR where it takes nothing.
    pub(crate) fn target(&self, path: &str) -> Result<usize, ErrorCode> {
        let state = self.lock();
        let is_it = |known: &Path| shown(known) == path;
        match state.directories.iter().position(|it| is_it(it.log_directory.path())) {
            Some(at) if state.directories[at].is_writable() => Ok(at),
            None if !state.missing.iter().any(|known| is_it(known)) => Err(ErrorCode::LogDirNotFound),
            _ => Err(ErrorCode::KafkaStorageError),
        }
    }

    /// Remembers where a partition is to be made that is not there yet.
    pub(crate) fn prefer(&self, place: TopicPartition, at: usize) {
        self.lock().moves.prefer(place, at);
    }

    /// Whether no folder can be made for a copy of a partition, because its topic's name is too long.
    pub(crate) fn is_name_too_long(place: &TopicPartition) -> bool {
        place.to_string().len() + FUTURE_SUFFIX_LENGTH > FOLDER_NAME_LENGTH_MAX
    }

    /// Wants an open partition to lie in the directory at `to`. Where it lies there, or is on its way there, nothing happens
    /// but that another move of it is given up. True if there is something to do for the mover.
    pub(crate) fn want_move(
        &self,
        place: &TopicPartition,
        topic_id: TopicId,
        to: usize,
    ) -> Result<bool, LogDirectoriesError> {
        let mut state = self.lock();
        let from = state.places.get(place).copied().ok_or(LogDirectoriesError::Closed)?;
        if state.moves.find(place).is_some_and(|wanted| wanted.to == to) {
            return Ok(false);
        }
        let given_up = state.moves.find(place).is_some();
        state.moves.abandon(place);
        if from == to {
            return Ok(given_up);
        }
        if !state.directories[from].is_writable() {
            return Err(LogDirectoriesError::Offline);
        }
        state.want(place, topic_id, to)?;
        Ok(true)
    }

    /// Goes on with the move of a partition that was under way when the node stopped: the copy is begun anew.
    pub(crate) fn resume_move(&self, place: &TopicPartition, topic_id: TopicId) -> Result<(), LogDirectoriesError> {
        let mut state = self.lock();
        let Some(from) = state.places.get(place).copied() else {
            return Ok(());
        };
        let leftover = std::mem::take(&mut state.moves.leftover);
        let (mine, others) = leftover.into_iter().partition(|(_, known, _)| known == place);
        state.moves.leftover = others;
        let mut wanted = None;
        for (at, _, path) in mine {
            let directory = &state.directories[at];
            let is_of_it = directory.is_writable() && directory.log_directory.topic_id_at(&path)? == Some(topic_id);
            if is_of_it && at != from {
                wanted = Some(at);
            }
            state.moves.abandoned.push((at, path));
        }
        if let Some(to) = wanted.filter(|_| state.directories[from].is_writable()) {
            info!(partition = %place, "the move to another log directory begins anew");
            state.want(place, topic_id, to)?;
        }
        Ok(())
    }

    /// Copies of moves that were under way go, where the cluster does not know the partition or has given it to others. The
    /// other ones wait for their logs to be opened.
    pub(crate) fn abandon_leftovers(&self, image: &Image, broker: BrokerId) {
        let mut state = self.lock();
        let leftover = std::mem::take(&mut state.moves.leftover);
        let (kept, gone): (Vec<_>, Vec<_>) = leftover.into_iter().partition(|(_, place, _)| {
            let topic = image.topics.by_name(place.topic.as_str());
            let partition = topic.and_then(|topic| topic.partitions.get(&place.partition));
            partition.is_some_and(|partition| partition.replicas.contains(&broker))
        });
        state.moves.leftover = kept;
        let abandoned = gone.into_iter().map(|(at, _, path)| (at, path));
        state.moves.abandoned.extend(abandoned);
    }

    /// Removes what nobody wants any more. For the mover only.
    pub(crate) fn discard_abandoned(&self) {
        let mut state = self.lock();
        for (at, path) in std::mem::take(&mut state.moves.abandoned) {
            let directory = &mut state.directories[at];
            if !directory.is_writable() {
                continue;
            }
            if let Err(error) = directory.log_directory.discard_future(&path) {
                warn!(path = %path.display(), %error, "what was copied of a log is not removed");
            }
        }
    }

    /// The move whose turn it is.
    pub(crate) fn next_move(&self) -> Option<WantedMove> {
        let state = self.lock();
        state.moves.wanted.iter().min_by_key(|wanted| wanted.turn).cloned()
    }

    /// Lets the other moves go first.
    pub(crate) fn postpone(&self, moving: &WantedMove) {
        let mut state = self.lock();
        let turn = state.moves.turn();
        let mut wanted = state.moves.wanted.iter_mut();
        if let Some(known) = wanted.find(|wanted| wanted.unique == moving.unique) {
            known.turn = turn;
        }
    }

    pub(crate) fn is_wanted(&self, moving: &WantedMove) -> bool {
        let state = self.lock();
        state
            .moves
            .find(&moving.place)
            .is_some_and(|it| it.unique == moving.unique)
    }

    /// The move is not gone on with.
    pub(crate) fn give_up(&self, moving: &WantedMove) {
        if self.is_wanted(moving) {
            self.lock().moves.abandon(&moving.place);
        }
    }

    /// The disk that a move goes to; `None` where it takes nothing.
    pub(crate) fn target_disk(&self, moving: &WantedMove) -> Option<LogDisk> {
        let state = self.lock();
        let directory = &state.directories[moving.to];
        directory.is_writable().then(|| directory.log_directory.disk().clone())
    }

    /// The id of the directory that a partition lies in.
    pub(crate) fn lies_in(&self, place: &TopicPartition) -> Option<DirectoryId> {
        let state = self.lock();
        let at = state.places.get(place)?;
        state.directories[*at].id()
    }

    /// The copies that grow in a directory.
    pub(crate) fn futures(&self, directory: &Path) -> Vec<FutureState> {
        let state = self.lock();
        let wanted = state.moves.wanted.iter();
        let here = wanted.filter(|it| state.directories[it.to].log_directory.path() == directory);
        here.map(|wanted| FutureState {
            place: wanted.place.clone(),
            size_bytes: wanted.figures.size_bytes.load(Ordering::Relaxed),
            end: Offset::new(wanted.figures.end.load(Ordering::Relaxed)),
        })
        .collect()
    }

    /// Puts a copy into the place of the log; the partition's lock is held.
    pub(crate) fn exchange(
        &self,
        moving: &WantedMove,
        copying: &mut Copying<LogDisk>,
        replica: &Replica<LogDisk>,
        bytes_max: u64,
        now: Timestamp,
    ) -> Result<PartitionLog<LogDisk>, MoveEnd> {
        let mut state = self.lock();
        let is_wanted = state
            .moves
            .find(&moving.place)
            .is_some_and(|it| it.unique == moving.unique);
        let from = state.places.get(&moving.place).copied().filter(|_| is_wanted);
        let (Some(from), to) = (from, moving.to) else {
            return Err(MoveEnd::GivenUp);
        };
        if !state.directories[from].is_writable() || !state.directories[to].is_writable() {
            return Err(MoveEnd::DirectoryFailed);
        }
        let Ok([source, target]) = state.directories.get_disjoint_mut([from, to]) else {
            return Err(MoveEnd::GivenUp);
        };
        let sides = Sides {
            from: &mut source.log_directory,
            to: &mut target.log_directory,
            place: &moving.place,
        };
        let (log, high_watermark) = (replica.log(), replica.high_watermark());
        let moved = exchange(sides, copying, log, high_watermark, (moving.unique, bytes_max), now)?;
        source.partitions = source.partitions.saturating_sub(1);
        target.partitions += 1;
        state.places.insert(moving.place.clone(), to);
        state.moves.wanted.retain(|wanted| wanted.unique != moving.unique);
        state.moves.left.extend(moved.set_aside.map(|path| Left {
            directory: from,
            path,
            place: moving.place.clone(),
            topic_id: moving.topic_id,
        }));
        Ok(moved.log)
    }

    /// What logs have left behind goes, after a while, once the controller knows where they are.
    pub(crate) fn release_left(&self, image: &Image, broker: BrokerId, now: Monotonic) {
        let mut state = self.lock();
        if state.moves.left.is_empty() {
            return;
        }
        let due = self.due(now);
        let (released, kept) = std::mem::take(&mut state.moves.left).into_iter().partition(|left| {
            let topic = image.topics.by_id(left.topic_id);
            let partition = topic.and_then(|topic| topic.partitions.get(&left.place.partition));
            let known = partition.map(|partition| partition.directory_of(broker));
            let lies_in = state.places.get(&left.place);
            known.is_none_or(|known| lies_in.is_some_and(|at| state.directories[*at].id() == Some(known)))
        });
        state.moves.left = kept;
        let released: Vec<Left> = released;
        let doomed = released.into_iter().map(|left| {
            let (directory, path) = (left.directory, left.path);
            (due, Doomed::Folder { directory, path })
        });
        state.doomed.extend(doomed);
    }
}

impl State {
    fn want(&mut self, place: &TopicPartition, topic_id: TopicId, to: usize) -> Result<(), LogDirectoriesError> {
        let unique = unique()?;
        let directory = &mut self.directories[to].log_directory;
        // A copy that a failed disk kept from being set aside, or a folder of a topic long gone.
        if directory.has_folder(place)? {
            let path = directory.set_stray_aside(place, super::unique()?)?;
            warn!(folder = %path.display(), "the folder is not that of the log: set aside");
        }
        let future = directory.create_future(place, topic_id, unique)?;
        let turn = self.moves.turn();
        self.moves.wanted.push(WantedMove {
            place: place.clone(),
            topic_id,
            unique,
            to,
            future,
            turn,
            figures: Arc::default(),
        });
        Ok(())
    }
}

impl WantedMove {
    /// Shows how far the copy is.
    pub(crate) fn note(&self, progress: &Progress) {
        self.figures.size_bytes.store(progress.size_bytes, Ordering::Relaxed);
        self.figures.end.store(progress.end.get(), Ordering::Relaxed);
    }
}

/// A directory's path as clients are shown it.
pub(crate) fn shown(path: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests;
