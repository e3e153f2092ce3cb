//! Which of several folders of a partition is its log, after a crash in the middle of a move.

use std::io;

use model::{DirectoryId, TopicId, TopicPartition, Uuid};
use tracing::{info, warn};

use super::note::{Noted, read_note, remove_note};
use crate::disk::Disk;
use crate::log_directory::{DirectoryError, FolderKind, LogDirectory};

/// A directory with a folder of the partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Holder {
    pub directory: DirectoryId,
    pub noted: Noted,
}

/// Which folder is the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Judgement {
    /// There is none.
    Nowhere,
    /// That of the holder at this index. The others are set aside, as what is said; its note is over if nothing speaks
    /// against it.
    At {
        log: usize,
        aside: Vec<(usize, FolderKind)>,
        note_is_over: bool,
    },
    /// Only this directory, which is not there, can tell.
    WaitsFor(DirectoryId),
    /// Two folders, and a note that cannot be read.
    Unreadable,
}

/// Why a partition's log cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum SettleError {
    #[error(
        "the log was being moved when the node stopped, and the log directory {0} is not there to tell which of the two is \
         the log"
    )]
    WaitsFor(DirectoryId),
    #[error("two log directories hold the log, and the note of its move is damaged")]
    Unreadable,
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    #[error("looking for the log")]
    Io(#[from] io::Error),
}

/// Decides. `is_there` says whether a directory can be read, so that it would be among the holders if it held a folder;
/// `assigned` is where the controller believes the log to be.
#[must_use]
pub fn judge(holders: &[Holder], is_there: impl Fn(DirectoryId) -> bool, assigned: Option<DirectoryId>) -> Judgement {
    match holders {
        [] => Judgement::Nowhere,
        [only] => judge_one(*only, is_there, assigned),
        several => judge_several(several),
    }
}

fn judge_one(holder: Holder, is_there: impl Fn(DirectoryId) -> bool, assigned: Option<DirectoryId>) -> Judgement {
    let here = |note_is_over| Judgement::At {
        log: 0,
        aside: Vec::new(),
        note_is_over,
    };
    let Noted::Move(note) = holder.noted else {
        return here(true);
    };
    let has_arrived = note.to == holder.directory;
    let other = if has_arrived { note.from } else { note.to };
    // The other one has no folder: either it was set aside already, or it never was more than a copy.
    if is_there(other) || other == holder.directory {
        return here(true);
    }
    // The controller is told when a move is over.
    match has_arrived && assigned == Some(holder.directory) {
        true => here(false),
        false => Judgement::WaitsFor(other),
    }
}

fn judge_several(holders: &[Holder]) -> Judgement {
    let moves = |holder: &Holder| match holder.noted {
        Noted::Move(note) => Some(note),
        Noted::Nothing | Noted::Damaged => None,
    };
    if holders.iter().any(|holder| holder.noted == Noted::Damaged) {
        return Judgement::Unreadable;
    }
    let mut aside: Vec<(usize, FolderKind)> = Vec::new();
    for (at, holder) in holders.iter().enumerate() {
        let Some(note) = moves(holder).filter(|note| note.to == holder.directory) else {
            continue;
        };
        let source = holders.iter().position(|other| other.directory == note.from);
        let Some(source) = source.filter(|source| *source != at) else {
            continue;
        };
        // Both say so, or the move was withdrawn and the log has gone on where it was.
        match moves(&holders[source]) == Some(note) {
            true => aside.push((source, FolderKind::Deleted)),
            false => aside.push((at, FolderKind::Stray)),
        }
    }
    let log = (0..holders.len()).find(|at| !aside.iter().any(|(gone, _)| gone == at));
    match log {
        Some(log) => Judgement::At {
            log,
            note_is_over: !aside.is_empty(),
            aside,
        },
        // Notes that go in a circle are nothing that a move leaves.
        None => Judgement::Unreadable,
    }
}

/// Looks which of the directories has the log of a partition and sets aside what is not it. A directory that cannot be read
/// is `None`. Gives the index of the one that has it.
///
/// # Errors
/// [`SettleError`]; what could not be set aside is only told of, and found again by the next start.
pub fn settle<D: Disk>(
    directories: &mut [Option<&mut LogDirectory<D>>],
    place: &TopicPartition,
    topic_id: TopicId,
    assigned: Option<DirectoryId>,
    mut unique: impl FnMut() -> Option<Uuid>,
) -> Result<Option<usize>, SettleError> {
    let mut holders = Vec::new();
    let mut places = Vec::new();
    for (at, directory) in directories.iter().enumerate() {
        let Some(directory) = directory else { continue };
        if directory.topic_id_near(place, topic_id)? != Some(topic_id) {
            continue;
        }
        let noted = read_note(directory.disk(), &directory.partition_path(place))?;
        let id = directory.properties().directory_id.unwrap_or(Uuid::ZERO);
        holders.push(Holder { directory: id, noted });
        places.push(at);
    }
    let ids: Vec<Option<DirectoryId>> = directories
        .iter()
        .flatten()
        .map(|directory| directory.properties().directory_id)
        .collect();
    match judge(&holders, |id| ids.contains(&Some(id)), assigned) {
        Judgement::Nowhere => Ok(None),
        Judgement::WaitsFor(other) => Err(SettleError::WaitsFor(other)),
        Judgement::Unreadable => Err(SettleError::Unreadable),
        Judgement::At {
            log,
            aside,
            note_is_over,
        } => {
            let mut is_settled = true;
            for (at, kind) in aside {
                let directory = directories[places[at]].as_deref_mut();
                let named = directory.zip(unique());
                let set = named.map(|(directory, unique)| directory.set_aside(place, unique, kind));
                match set {
                    Some(Ok(path)) => {
                        info!(partition = %place, folder = %path.display(), "a move was interrupted: not the log, set aside");
                    }
                    Some(Err(error)) => {
                        warn!(partition = %place, %error, "what is not the log was not set aside");
                        is_settled = false;
                    }
                    None => is_settled = false,
                }
            }
            let directory = directories[places[log]].as_deref();
            if note_is_over
                && is_settled
                && holders[log].noted != Noted::Nothing
                && let Some(directory) = directory
                && let Err(error) = remove_note(directory.disk(), &directory.partition_path(place))
            {
                warn!(partition = %place, %error, "the note of a move that is over was not removed");
            }
            Ok(Some(places[log]))
        }
    }
}

#[cfg(test)]
mod tests;
