//! Puts a complete copy into the place of the log: steps 1 to 5 of the drawing in [`super`].

use std::io;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use model::{Offset, Timestamp, TopicPartition, Uuid};
use tracing::{error, warn};

use super::copying::{CopyError, Copying};
use super::note::{MoveNote, remove_note};
use crate::disk::Disk;
use crate::log_directory::{FolderKind, LogDirectory};
use crate::partition_log::PartitionLog;
use crate::recovery::{OpenError, Start};

/// The log in its new place.
pub struct Exchanged<D: Disk> {
    pub log: PartitionLog<D>,
    /// Where the old one was set aside, to be removed once the controller knows where the log is; `None` if that failed: the
    /// next start sets it aside.
    pub set_aside: Option<PathBuf>,
}

/// Why the log stays where it is.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    #[error(transparent)]
    Copy(#[from] CopyError),
    /// A log that was opened with settings of its own, or a directory without id.
    #[error("the log cannot be moved: {0}")]
    Unfit(&'static str),
    #[error("the copy is not the log: it has {copy}, the log {log}")]
    Differs { copy: String, log: String },
    #[error("opening the copy")]
    Open(#[from] OpenError),
    #[error("exchanging the log for its copy")]
    Io(#[from] io::Error),
}

/// Two directories of a node, and what lies in the first.
pub struct Sides<'a, D: Disk> {
    pub from: &'a mut LogDirectory<D>,
    pub to: &'a mut LogDirectory<D>,
    pub place: &'a TopicPartition,
}

/// Completes the copy and puts it into the log's place. The caller holds the log's lock, no sync of it is running, and what
/// is appended afterwards is appended to the log that this returns. `unique` names the move in notes and folders.
///
/// # Errors
/// The log goes on where it was then, or is offline if not even that could be written down. [`CopyError::Behind`] where more
/// than `bytes_max` were still to be copied: then nothing has happened.
pub fn exchange<D: Disk>(
    sides: Sides<'_, D>,
    copying: &mut Copying<D>,
    log: &PartitionLog<D>,
    high_watermark: Offset,
    (unique, bytes_max): (Uuid, u64),
    now: Timestamp,
) -> Result<Exchanged<D>, ExchangeError> {
    let Sides { from, to, place } = sides;
    if log.is_offline() {
        return Err(ExchangeError::Unfit("it is offline"));
    }
    let directory_id = |directory: &LogDirectory<D>| directory.properties().directory_id;
    let Some((from_id, to_id)) = directory_id(from).zip(directory_id(to)) else {
        return Err(ExchangeError::Unfit("a directory has no id"));
    };
    let note = MoveNote {
        id: unique,
        from: from_id,
        to: to_id,
    };
    if to.has_folder(place)? {
        return Err(ExchangeError::Unfit("the directory has a folder of its name already"));
    }
    copying.complete(log, bytes_max)?;
    note.write(to.disk(), copying.directory())?;
    record(from, to, place, log, high_watermark)?;
    match promote(from, to, place, copying, log, note, now) {
        Ok(moved) => Ok(Exchanged {
            log: moved,
            set_aside: leave(from, to, place, unique),
        }),
        Err(error) => {
            withdraw(from, to, place, log, unique);
            Err(error)
        }
    }
}

/// Step 1: what the next start has to know of the log, durably.
fn record<D: Disk>(
    from: &LogDirectory<D>,
    to: &mut LogDirectory<D>,
    place: &TopicPartition,
    log: &PartitionLog<D>,
    high_watermark: Offset,
) -> io::Result<()> {
    to.set_recovery_point(place, log.log_end_offset());
    to.set_log_start(place, log.log_start_offset());
    // All of the copy is on the disk, so it is committed as soon as it is the log.
    to.set_high_watermark(place, high_watermark.max(log.log_end_offset()));
    to.write_recovery_points()?;
    to.write_log_starts()?;
    to.write_high_watermarks()?;
    if let Some(offset) = from.cleaned_to(place) {
        to.set_cleaned_to(place, offset);
        to.write_cleaned_to()?;
    }
    Ok(())
}

/// Steps 2 and 3, and a look at what has come of them.
fn promote<D: Disk>(
    from: &LogDirectory<D>,
    to: &LogDirectory<D>,
    place: &TopicPartition,
    copying: &Copying<D>,
    log: &PartitionLog<D>,
    note: MoveNote,
    now: Timestamp,
) -> Result<PartitionLog<D>, ExchangeError> {
    note.write(from.disk(), log.directory())?;
    let path = to.adopt_future(copying.directory(), place)?;
    let start = Start {
        clean: true,
        recovery_point: log.log_end_offset(),
        log_start_offset: log.log_start_offset(),
    };
    let (mut moved, _) = PartitionLog::open(to.disk().clone(), &path, log.options().clone(), start, now)?;
    // One under which nothing was written yet is not in what was opened.
    if let Some(epoch) = log.latest_epoch() {
        moved.begin_epoch(epoch);
    }
    let (copy, original) = (describe(&moved), describe(log));
    if copy != original {
        return Err(ExchangeError::Differs { copy, log: original });
    }
    Ok(moved)
}

/// What of a log must be as it was.
fn describe<D: Disk>(log: &PartitionLog<D>) -> String {
    let (start, end) = (log.log_start_offset(), log.log_end_offset());
    let epochs = log.shared().with_epochs(|epochs| epochs.to_text().replace('\n', " "));
    let damage = log.damage();
    let bytes = log.size_bytes();
    format!("offsets {start} to {end}, {bytes} bytes, epochs {epochs}, damage {damage:?}")
}

/// Steps 4 and 5. What fails here is done by the next start; the log has moved all the same.
fn leave<D: Disk>(
    from: &mut LogDirectory<D>,
    to: &LogDirectory<D>,
    place: &TopicPartition,
    unique: Uuid,
) -> Option<PathBuf> {
    let set_aside = match from.delete_partition(place, unique) {
        Ok(path) => path,
        Err(error) => {
            error!(partition = %place, %error, "the log has moved, but the old one was not set aside");
            return None;
        }
    };
    if let Err(error) = remove_note(to.disk(), &to.partition_path(place)) {
        warn!(partition = %place, %error, "the note of a move that is over was not removed");
    }
    Some(set_aside)
}

/// The log stays: its note goes before anything else is done, and then what may have become of the copy.
fn withdraw<D: Disk>(
    from: &LogDirectory<D>,
    to: &mut LogDirectory<D>,
    place: &TopicPartition,
    log: &PartitionLog<D>,
    unique: Uuid,
) {
    if let Err(error) = remove_note(from.disk(), &from.partition_path(place)) {
        // The next start may find that the copy is the log, so nothing may be acknowledged here any more.
        error!(partition = %place, %error, "a move that failed cannot be withdrawn: the log is offline");
        log.shared().offline.store(true, Ordering::Release);
        return;
    }
    // Its name goes first, so that a crash leaves no half of it under that of the log.
    let aside = match to.has_folder(place) {
        Ok(true) => to
            .set_aside(place, unique, FolderKind::Deleted)
            .and_then(|path| to.remove_folder(&path)),
        Ok(false) => Ok(()),
        Err(error) => Err(error),
    };
    if let Err(error) = aside {
        warn!(partition = %place, %error, "the copy of a move that failed was not removed");
    }
}
