//! The folder `__cluster_metadata-0`: the log, its snapshots and `quorum-state`.
//!
//! ```text
//!  snapshot        what it holds     │ log
//!  ────────────────────────────────▶ │ ────────────────────────▶ end
//!                     snapshot's end ┘ the log begins at or below
//! ```
//!
//! The state at a start is the newest snapshot and the log from its end on. How far the log is synced is recorded in a
//! checkpoint of its own in the folder, since the one of the directory belongs to the broker.

use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use metadata::{Image, MetadataVersion, Replay, ReplayError, SealedRecord};
use model::record_batch::{BatchBuilder, BatchError, BatchOptions, Batches, DecompressionLimit, records};
use model::{ControllerEpoch, Offset, PartitionIndex, Timestamp, TopicName, TopicPartition, Uuid};
use protocol::DecodeError;
use protocol::internal_records::control::ControlRecord;
use protocol::internal_records::metadata::MetadataRecord;
use raft::{ControlRecordError, KRaftVersion, QuorumRecords, QuorumState, QuorumStateError, ReplicaKey, SnapshotId};
use storage::disk::{Disk, read_small_file, replace_file};
use storage::{
    AppendAs, AppendError, CheckpointError, LogOptions, Offsets, OpenError, Origin, PartitionLog,
    RECOVERY_POINT_CHECKPOINT, ReadError, ReadRequest, Start, SyncDone, SyncHandle, Wait, read_checkpoint,
    write_checkpoint,
};

use crate::snapshot_file::{self, Contents, SnapshotError, append_control, leader_epoch};

/// The topic's name, which no client can use.
pub const METADATA_TOPIC: &str = "__cluster_metadata";
pub(crate) const QUORUM_STATE: &str = "quorum-state";
pub(crate) const QUORUM_STATE_BYTES_MAX: usize = 64 << 10;
const PARTITION_METADATA: &str = "partition.metadata";
/// Read at once while replaying.
const REPLAY_BYTES: usize = 4 << 20;
/// What one batch of ours may hold, as Kafka's.
const BATCH_BYTES_MAX: usize = 8 << 20;

/// Why the metadata log cannot be read or written. The node stops.
#[derive(Debug, thiserror::Error)]
pub enum MetadataLogError {
    #[error("{what}: the disk failed")]
    Io {
        what: &'static str,
        #[source]
        error: io::Error,
    },
    #[error("opening the metadata log")]
    Open(#[from] OpenError),
    #[error("reading the metadata log")]
    Read(#[from] ReadError),
    #[error("appending to the metadata log")]
    Append(#[from] AppendError),
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    #[error(transparent)]
    QuorumState(#[from] QuorumStateError),
    #[error("recovery point of the metadata log")]
    Checkpoint(#[from] CheckpointError),
    #[error("the batch at offset {offset} is damaged")]
    Batch {
        offset: Offset,
        #[source]
        error: BatchError,
    },
    #[error("the record at offset {offset} cannot be read")]
    Decode {
        offset: Offset,
        #[source]
        error: DecodeError,
    },
    #[error("the control record at offset {offset} cannot be")]
    Control {
        offset: Offset,
        #[source]
        error: ControlRecordError,
    },
    #[error("the record at offset {offset} does not fit what is before it")]
    Replay {
        offset: Offset,
        #[source]
        error: ReplayError,
    },
    #[error("snapshot {id} has a record that does not fit what is before it")]
    SnapshotReplay {
        id: SnapshotId,
        #[source]
        error: ReplayError,
    },
    #[error("the log begins at {log_start}, behind the end {snapshot_end} of the newest snapshot")]
    Gap { log_start: Offset, snapshot_end: Offset },
    #[error("the log is damaged between {from} and {to}: restore the folder from another controller or a backup")]
    Damaged { from: Offset, to: Offset },
    #[error("the folder has no checkpoint and no log: format the metadata directory first")]
    NotFormatted,
}

impl MetadataLogError {
    pub(crate) fn io(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| MetadataLogError::Io { what, error }
    }
}

/// How the log behaves.
#[derive(Clone, Copy, Debug)]
pub struct MetadataLogOptions {
    /// `metadata.log.segment.bytes`
    pub segment_size_bytes: u32,
    /// `metadata.log.segment.ms`
    pub segment_ms: i64,
    /// `metadata.max.retention.bytes`
    pub retention_bytes: u64,
    /// `metadata.max.retention.ms`
    pub retention_ms: i64,
}

impl Default for MetadataLogOptions {
    fn default() -> Self {
        const WEEK_MS: i64 = 7 * 24 * 3_600_000;
        MetadataLogOptions {
            segment_size_bytes: 1 << 30,
            segment_ms: WEEK_MS,
            retention_bytes: 100 << 20,
            retention_ms: WEEK_MS,
        }
    }
}

/// What the folder held when it was opened.
pub(crate) struct Loaded {
    pub(crate) replay: Replay,
    pub(crate) quorum: QuorumRecords,
    pub(crate) quorum_state: QuorumState,
    /// The data records of the checkpoint that formatting wrote; empty if a later snapshot has taken its place.
    pub(crate) bootstrap: Vec<MetadataRecord>,
}

/// One kept snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Snapshot {
    id: SnapshotId,
    size_bytes: u64,
    /// When it was written, or for one found at the start, when that was.
    since: Timestamp,
}

/// The folder, open.
pub(crate) struct MetadataLog<D: Disk> {
    disk: D,
    directory: PathBuf,
    options: MetadataLogOptions,
    log: PartitionLog<D>,
    snapshots: Vec<Snapshot>,
}

/// Where the folder is within a log directory.
pub(crate) fn metadata_directory(log_directory: &Path) -> PathBuf {
    log_directory.join(format!("{METADATA_TOPIC}-0"))
}

fn metadata_partition() -> TopicPartition {
    TopicPartition {
        topic: TopicName::new(METADATA_TOPIC).expect("the name follows the rules"),
        partition: PartitionIndex::new(0),
    }
}

impl<D: Disk> MetadataLog<D> {
    /// Opens the folder and replays it.
    pub(crate) fn open(
        disk: D,
        log_directory: &Path,
        options: MetadataLogOptions,
        now: Timestamp,
    ) -> Result<(Self, Loaded), MetadataLogError> {
        let directory = metadata_directory(log_directory);
        let io = MetadataLogError::io;
        disk.create_directory(&directory).map_err(io("making the folder"))?;
        write_partition_metadata(&disk, &directory).map_err(io("writing partition.metadata"))?;
        let ids = snapshot_file::list(&disk, &directory).map_err(io("listing snapshots"))?;
        let recovery_point = recovery_point(&disk, &directory)?;
        let start = Start {
            clean: false,
            recovery_point,
            log_start_offset: ids.last().map_or(Offset::ZERO, |id| id.end_offset.min(recovery_point)),
        };
        let (mut log, recovery) = PartitionLog::open(disk.clone(), &directory, log_options(options), start, now)?;
        if let Some(damage) = recovery.damage.first() {
            return Err(MetadataLogError::Damaged {
                from: damage.from,
                to: damage.to,
            });
        }
        if recovery.bytes_cut > 0 {
            tracing::warn!(bytes = recovery.bytes_cut, "cut a torn tail off the metadata log");
        }
        let newest = ids.last().copied();
        if let Some(id) = newest.filter(|id| log.log_end_offset() < id.end_offset) {
            // The snapshot holds more than the log, which a crash may have taken: the snapshot was synced first.
            let restarted = log.restart_at(id.end_offset, now, |point| record_point(&disk, &directory, point));
            restarted.map_err(io("starting the log anew"))?;
        }
        let mut this = MetadataLog {
            snapshots: ids
                .iter()
                .map(|id| Snapshot {
                    id: *id,
                    size_bytes: 0,
                    since: now,
                })
                .collect(),
            disk,
            directory,
            options,
            log,
        };
        let loaded = this.load(newest)?;
        if this.log.synced_offset() < this.log.log_end_offset() {
            this.log.sync_now().map_err(io("syncing what was recovered"))?;
        }
        Ok((this, loaded))
    }

    /// Whether there is room for what users add.
    pub(crate) fn takes_growth(&self) -> bool {
        self.disk.takes_growth()
    }

    fn load(&mut self, newest: Option<SnapshotId>) -> Result<Loaded, MetadataLogError> {
        if newest.is_none() && self.log.log_end_offset() == Offset::ZERO {
            return Err(MetadataLogError::NotFormatted);
        }
        let contents = match newest {
            Some(id) => snapshot_file::read(&self.disk, &self.directory, id)?,
            None => Contents::default(),
        };
        let mut loaded = Loaded {
            replay: Replay::default(),
            quorum: contents.quorum,
            quorum_state: self.read_quorum_state()?,
            bootstrap: Vec::new(),
        };
        let mut from = self.log.log_start_offset();
        match newest {
            // What formatting wrote is repeated by the first leader, and counts from there.
            Some(SnapshotId::BOOTSTRAP) => loaded.bootstrap = contents.records,
            Some(id) => {
                for record in &contents.records {
                    let replayed = loaded.replay.record(record);
                    replayed.map_err(|error| MetadataLogError::SnapshotReplay { id, error })?;
                }
                loaded
                    .replay
                    .batch_ended(id.end_offset, id.epoch, contents.last_timestamp);
                from = id.end_offset;
            }
            None => {}
        }
        let log_start = self.log.log_start_offset();
        if from < log_start || (newest.is_none() && log_start > Offset::ZERO) {
            return Err(MetadataLogError::Gap {
                log_start,
                snapshot_end: from,
            });
        }
        self.replay_log(from, &mut loaded)?;
        Ok(loaded)
    }

    fn replay_log(&self, from: Offset, loaded: &mut Loaded) -> Result<(), MetadataLogError> {
        let reader = self.log.reader();
        let mut at = from;
        while at < self.log.log_end_offset() {
            let read = reader.read(ReadRequest {
                from: at,
                max_bytes: REPLAY_BYTES,
                up_to: Offset::MAX,
                min_one: true,
                wait: Wait::Allowed,
            })?;
            if read.next_offset <= at {
                return Err(MetadataLogError::Damaged {
                    from: at,
                    to: self.log.log_end_offset(),
                });
            }
            for batch in Batches::new(&read.bytes) {
                let batch = batch.map_err(|error| MetadataLogError::Batch { offset: at, error })?;
                replay_batch(&read.bytes.slice_ref(batch.bytes()), &batch, from, loaded)?;
            }
            at = read.next_offset;
        }
        Ok(())
    }

    pub(crate) fn log_end_offset(&self) -> Offset {
        self.log.log_end_offset()
    }

    /// The epoch of the last record, in the log or in the snapshot that it begins with.
    pub(crate) fn last_epoch(&self) -> ControllerEpoch {
        let in_log = self.log.latest_epoch().map_or(0, model::LeaderEpoch::get);
        let in_snapshot = self.snapshots.last().map_or(0, |snapshot| snapshot.id.epoch.get());
        ControllerEpoch::new(in_log.max(in_snapshot))
    }

    fn read_quorum_state(&self) -> Result<QuorumState, MetadataLogError> {
        match read_small_file(&self.disk, &self.directory.join(QUORUM_STATE), QUORUM_STATE_BYTES_MAX) {
            Ok(bytes) => Ok(QuorumState::parse(&String::from_utf8_lossy(&bytes))?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(QuorumState::default()),
            Err(error) => Err(MetadataLogError::io("reading quorum-state")(error)),
        }
    }

    pub(crate) fn save_quorum_state(
        &self,
        state: &QuorumState,
        version: KRaftVersion,
        voters: &[ReplicaKey],
    ) -> Result<(), MetadataLogError> {
        let text = state.render(version, voters);
        let saved = replace_file(&self.disk, &self.directory.join(QUORUM_STATE), text.as_bytes());
        saved.map_err(MetadataLogError::io("writing quorum-state"))
    }

    /// Appends control records as one batch. Returns the log's end.
    pub(crate) fn append_control(
        &mut self,
        epoch: ControllerEpoch,
        records: &[ControlRecord],
        now: Timestamp,
    ) -> Result<Offset, MetadataLogError> {
        let offset = self.log.log_end_offset();
        let mut batch = BatchBuilder::new(BatchOptions {
            control: true,
            ..BatchOptions::default()
        });
        let bytes = append_control(&mut batch, records, now).and_then(|()| batch.build());
        self.append(
            bytes.map_err(|error| MetadataLogError::Batch { offset, error })?,
            epoch,
            now,
        )
    }

    /// Appends data records as one batch; all bear the same time, as Kafka's readers demand. Returns the log's end.
    pub(crate) fn append_data(
        &mut self,
        epoch: ControllerEpoch,
        records: &[SealedRecord],
        now: Timestamp,
    ) -> Result<Offset, MetadataLogError> {
        let offset = self.log.log_end_offset();
        let mut batch = BatchBuilder::new(BatchOptions::default());
        let mut fill = || {
            for record in records {
                batch.append(now, None, Some(&record.bytes), &[])?;
            }
            Ok(())
        };
        let bytes = fill().and_then(|()| batch.build());
        self.append(
            bytes.map_err(|error| MetadataLogError::Batch { offset, error })?,
            epoch,
            now,
        )
    }

    fn append(&mut self, batch: Bytes, epoch: ControllerEpoch, now: Timestamp) -> Result<Offset, MetadataLogError> {
        let role = AppendAs::Leader {
            epoch: leader_epoch(epoch),
            origin: Origin::Quorum,
        };
        self.log.append(&batch, role, now)?;
        Ok(self.log.log_end_offset())
    }

    /// Whether everything appended is on the disk.
    pub(crate) fn is_synced(&self) -> bool {
        self.log.synced_offset() >= self.log.log_end_offset()
    }

    pub(crate) fn begin_sync(&mut self) -> Option<SyncHandle<D>> {
        self.log.begin_sync()
    }

    /// Takes in how a sync went. Returns how far the log is synced.
    pub(crate) fn synced(&mut self, done: SyncDone) -> Result<Offset, MetadataLogError> {
        let io = MetadataLogError::io;
        let synced = self.log.synced(done).map_err(io("syncing the metadata log"))?;
        if self.log.recovery_point_due() {
            record_point(&self.disk, &self.directory, synced).map_err(io("recording the recovery point"))?;
            self.log.recovery_point_recorded(synced);
        }
        Ok(synced)
    }

    /// A writer of a snapshot of `image`, for a thread that may block.
    pub(crate) fn snapshot_job(&self, image: Image, quorum: QuorumRecords, now: Timestamp) -> SnapshotJob<D> {
        SnapshotJob {
            disk: self.disk.clone(),
            directory: self.directory.clone(),
            image,
            quorum,
            now,
        }
    }

    /// The newest snapshot but the one that formatting wrote.
    pub(crate) fn newest_snapshot(&self) -> Option<SnapshotId> {
        let newest = self.snapshots.last().map(|snapshot| snapshot.id);
        newest.filter(|id| *id != SnapshotId::BOOTSTRAP)
    }

    /// Counts a snapshot that a job has written.
    pub(crate) fn snapshot_written(&mut self, written: WrittenSnapshot, now: Timestamp) {
        self.snapshots.push(Snapshot {
            id: written.id,
            size_bytes: written.size_bytes,
            since: now,
        });
        self.snapshots.sort_by_key(|snapshot| snapshot.id);
    }

    pub(crate) fn log_size_bytes(&self) -> u64 {
        self.log.size_bytes()
    }

    /// Lets go of the oldest snapshot and the log below the next, as long as log and snapshots are too large or that
    /// snapshot too old. The newest snapshot always stays.
    pub(crate) fn clean(&mut self, committed: Offset, now: Timestamp) -> Result<(), MetadataLogError> {
        let io = MetadataLogError::io;
        while let [oldest, next, ..] = self.snapshots.as_slice() {
            let (oldest, next) = (*oldest, *next);
            let size = self.log.size_bytes() + self.snapshots.iter().map(|snapshot| snapshot.size_bytes).sum::<u64>();
            let age_ms = now.millis().saturating_sub(next.since.millis());
            if size <= self.options.retention_bytes && age_ms <= self.options.retention_ms {
                break;
            }
            if next.id.end_offset > committed {
                break;
            }
            self.log
                .delete_records_before(next.id.end_offset, committed)
                .map_err(|_| io::Error::other("the log's start cannot pass its committed end"))
                .map_err(io("moving the log's start"))?;
            self.log
                .enforce_retention(now, committed)
                .map_err(io("removing old segments"))?;
            let path = snapshot_file::path(&self.directory, oldest.id);
            self.disk.remove_file(&path).map_err(io("removing an old snapshot"))?;
            self.snapshots.remove(0);
        }
        Ok(())
    }

    /// Ends the log in good order.
    pub(crate) fn close(mut self) -> Result<(), MetadataLogError> {
        let end = self
            .log
            .close()
            .map_err(MetadataLogError::io("closing the metadata log"))?;
        record_point(&self.disk, &self.directory, end).map_err(MetadataLogError::io("recording the recovery point"))
    }
}

/// A snapshot to be written.
pub(crate) struct SnapshotJob<D: Disk> {
    disk: D,
    directory: PathBuf,
    image: Image,
    quorum: QuorumRecords,
    now: Timestamp,
}

/// A snapshot that is on the disk.
pub(crate) struct WrittenSnapshot {
    pub(crate) id: SnapshotId,
    size_bytes: u64,
}

impl<D: Disk> SnapshotJob<D> {
    /// Blocks for as long as the disk takes.
    pub(crate) fn run(self) -> Result<WrittenSnapshot, SnapshotError> {
        let id = SnapshotId {
            end_offset: self.image.end_offset,
            epoch: self.image.epoch,
        };
        let voters = self.quorum.voters.map(|(voters, _)| voters).unwrap_or_default();
        let frame = snapshot_file::Frame {
            id,
            last_timestamp: self.image.last_timestamp,
            kraft_version: self.quorum.kraft_version.unwrap_or(KRaftVersion::Static),
            voters: &voters,
            now: self.now,
        };
        let version = self
            .image
            .features
            .metadata_version()
            .unwrap_or(MetadataVersion::LATEST);
        let size_bytes = snapshot_file::write(&self.disk, &self.directory, &frame, self.image.records(), version)?;
        Ok(WrittenSnapshot { id, size_bytes })
    }
}

pub(crate) fn replay_batch(
    bytes: &Bytes,
    batch: &model::record_batch::Batch<'_>,
    from: Offset,
    loaded: &mut Loaded,
) -> Result<(), MetadataLogError> {
    let header = batch.header;
    let damaged = |error| MetadataLogError::Batch {
        offset: header.first_offset(),
        error,
    };
    batch.check_crc().map_err(damaged)?;
    if header.next_offset() <= from {
        return Ok(());
    }
    for record in records(bytes, DecompressionLimit::bytes(BATCH_BYTES_MAX)).map_err(damaged)? {
        let record = record.map_err(damaged)?;
        let offset = record.offset;
        let decode = |error| MetadataLogError::Decode { offset, error };
        let value = record.value.unwrap_or_default();
        if header.attributes.is_control() {
            let control = ControlRecord::from_bytes(record.key.unwrap_or_default(), value).map_err(decode)?;
            let seen = loaded.quorum.see(Some(offset), &control);
            seen.map_err(|error| MetadataLogError::Control { offset, error })?;
        } else {
            let (record, _) = MetadataRecord::from_bytes(value).map_err(decode)?;
            let replayed = loaded.replay.record(&record);
            replayed.map_err(|error| MetadataLogError::Replay { offset, error })?;
        }
    }
    let epoch = ControllerEpoch::new(header.partition_leader_epoch.max(0));
    let timestamp = Timestamp::from_millis(header.max_timestamp);
    loaded.replay.batch_ended(header.next_offset(), epoch, timestamp);
    Ok(())
}

fn log_options(options: MetadataLogOptions) -> LogOptions {
    LogOptions {
        segment_size_bytes: options.segment_size_bytes,
        segment_ms: options.segment_ms,
        // Only what a snapshot covers goes: `MetadataLog::clean`.
        retention_ms: None,
        retention_bytes: None,
        max_message_bytes: BATCH_BYTES_MAX,
        ..LogOptions::default()
    }
}

pub(crate) fn write_partition_metadata<D: Disk>(disk: &D, directory: &Path) -> io::Result<()> {
    let path = directory.join(PARTITION_METADATA);
    match read_small_file(disk, &path, QUORUM_STATE_BYTES_MAX) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let text = format!("version: 0\ntopic_id: {}", Uuid::ONE);
            replace_file(disk, &path, text.as_bytes())
        }
        Err(error) => Err(error),
    }
}

fn recovery_point<D: Disk>(disk: &D, directory: &Path) -> Result<Offset, MetadataLogError> {
    let points = read_checkpoint(disk, directory, RECOVERY_POINT_CHECKPOINT)?;
    Ok(points.get(&metadata_partition()).copied().unwrap_or_default())
}

fn record_point<D: Disk>(disk: &D, directory: &Path, point: Offset) -> io::Result<()> {
    let points: Offsets = [(metadata_partition(), point)].into();
    write_checkpoint(disk, directory, RECOVERY_POINT_CHECKPOINT, &points)
}
