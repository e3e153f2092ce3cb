//! The metadata of a stopped node, read without changing a byte: its newest snapshot and the log behind it.

use std::io;
use std::path::Path;

use bytes::Bytes;
use metadata::{Image, Replay};
use model::record_batch::Batches;
use model::{ControllerEpoch, Offset, Uuid};
use raft::{KRaftVersion, QuorumRecords, QuorumState, ReplicaKey, SnapshotId, Voter, VoterSet};
use storage::disk::{Disk, read_small_file};
use storage::inspect::{BatchFile, ReadBatchError, Step};

use crate::metadata_log::{
    Loaded, MetadataLogError, QUORUM_STATE, QUORUM_STATE_BYTES_MAX, metadata_directory, replay_batch,
};
use crate::snapshot_file;

const LOG_SUFFIX: &str = ".log";

/// What a node's metadata log says at its end.
#[derive(Clone, Debug)]
pub struct SourceMetadata {
    pub image: Image,
    pub kraft_version: KRaftVersion,
    /// Without endpoints and directories where the configuration names the voters.
    pub voters: VoterSet,
    /// The last epoch that the node has seen.
    pub epoch: ControllerEpoch,
}

/// Reads the metadata log in `log_directory`.
///
/// # Errors
/// If it is not there, is damaged, or holds what this version does not know.
pub(super) fn read<D: Disk>(disk: &D, log_directory: &Path) -> Result<SourceMetadata, MetadataLogError> {
    let directory = metadata_directory(log_directory);
    let io = MetadataLogError::io;
    let entries = match disk.list(&directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(MetadataLogError::NotFormatted),
        entries => entries.map_err(io("listing the metadata log"))?,
    };
    let newest = snapshot_file::among(&entries).last().copied();
    let text = match read_small_file(disk, &directory.join(QUORUM_STATE), QUORUM_STATE_BYTES_MAX) {
        Ok(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(io("reading quorum-state")(error)),
    };
    let quorum_state = text.as_deref().map(QuorumState::parse).transpose()?.unwrap_or_default();
    let mut loaded = Loaded {
        replay: Replay::default(),
        quorum: QuorumRecords::default(),
        quorum_state,
        bootstrap: Vec::new(),
    };
    let from = take_snapshot(disk, &directory, newest, &mut loaded)?;
    let mut logs: Vec<&str> = entries
        .iter()
        .map(|entry| entry.name.as_str())
        .filter(|name| name.ends_with(LOG_SUFFIX))
        .collect();
    // Names have their offsets in twenty digits.
    logs.sort_unstable();
    let mut position = Position { next: None, from };
    for name in logs {
        read_log(disk, &directory.join(name), &mut position, &mut loaded)?;
    }
    let image = loaded.replay.settled();
    let static_voters = text
        .as_deref()
        .map(QuorumState::static_voters)
        .transpose()?
        .unwrap_or_default();
    let voters = match loaded.quorum.voters {
        Some((voters, _)) => voters,
        None => VoterSet::new(static_voters.into_iter().map(|id| Voter {
            key: ReplicaKey {
                id,
                directory: Uuid::ZERO,
            },
            endpoints: Vec::new(),
            kraft_versions: (KRaftVersion::Static.level(), KRaftVersion::Dynamic.level()),
        })),
    };
    Ok(SourceMetadata {
        epoch: loaded.quorum_state.epoch.max(image.epoch),
        kraft_version: loaded.quorum.kraft_version.unwrap_or(KRaftVersion::Static),
        voters,
        image,
    })
}

/// Takes in the newest snapshot. Returns from where the log counts.
fn take_snapshot<D: Disk>(
    disk: &D,
    directory: &Path,
    newest: Option<SnapshotId>,
    loaded: &mut Loaded,
) -> Result<Offset, MetadataLogError> {
    let Some(id) = newest else { return Ok(Offset::ZERO) };
    let contents = snapshot_file::read(disk, directory, id)?;
    loaded.quorum = contents.quorum;
    // What formatting wrote stands in the log, too.
    if id == SnapshotId::BOOTSTRAP {
        return Ok(Offset::ZERO);
    }
    for record in &contents.records {
        let replayed = loaded.replay.record(record);
        replayed.map_err(|error| MetadataLogError::SnapshotReplay { id, error })?;
    }
    loaded
        .replay
        .batch_ended(id.end_offset, id.epoch, contents.last_timestamp);
    Ok(id.end_offset)
}

/// How far the log has been read.
struct Position {
    /// The offset that follows; `None` before the first segment.
    next: Option<Offset>,
    /// What is below is in the snapshot.
    from: Offset,
}

fn read_log<D: Disk>(
    disk: &D,
    path: &Path,
    position: &mut Position,
    loaded: &mut Loaded,
) -> Result<(), MetadataLogError> {
    let io = MetadataLogError::io;
    let file = BatchFile::open(disk, path).map_err(io("opening a segment of the metadata log"))?;
    if position.next.is_none() && file.base_offset() > position.from {
        return Err(MetadataLogError::Gap {
            log_start: file.base_offset(),
            snapshot_end: position.from,
        });
    }
    position.next.get_or_insert(file.base_offset());
    file.walk(0, |step| {
        let next = position.next.unwrap_or_default();
        let batch = match step {
            Step::Batch(batch) if batch.is_sound && batch.header.first_offset() == next => batch,
            Step::Batch(batch) => {
                return Err(Walk(MetadataLogError::Damaged {
                    from: next,
                    to: batch.header.next_offset(),
                }));
            }
            Step::Unreadable(_) => {
                return Err(Walk(MetadataLogError::Damaged {
                    from: next,
                    to: next.plus(1),
                }));
            }
        };
        let bytes: Bytes = file.read(&batch).map_err(|error| match error {
            ReadBatchError::Io(error) => Walk(io("reading the metadata log")(error)),
            ReadBatchError::TooLarge { .. } => Walk(MetadataLogError::Damaged {
                from: next,
                to: batch.header.next_offset(),
            }),
        })?;
        for one in Batches::new(&bytes) {
            let one = one.map_err(|error| Walk(MetadataLogError::Batch { offset: next, error }))?;
            replay_batch(&bytes, &one, position.from, loaded).map_err(Walk)?;
        }
        position.next = Some(batch.header.next_offset());
        Ok(true)
    })
    .map_err(|Walk(error)| error)
}

/// What ends a walk over a file.
struct Walk(MetadataLogError);

impl From<io::Error> for Walk {
    fn from(error: io::Error) -> Self {
        Walk(MetadataLogError::io("reading the metadata log")(error))
    }
}
