//! Checkpoint files: a snapshot of the metadata, named by where it ends (KIP-630).
//!
//! ```text
//!  control batch   SnapshotHeader, KRaftVersion, KRaftVoters
//!  data batches    the image's records
//!  control batch   SnapshotFooter
//! ```
//!
//! Offsets inside count from 0, epochs are that of the snapshot. A file gets its name only when all of it is on the disk;
//! one without header or footer is refused.

use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use metadata::{MetadataVersion, RecordError, seal};
use model::record_batch::{BatchBuilder, BatchError, BatchOptions, Batches, DecompressionLimit, records};
use model::{ControllerEpoch, LeaderEpoch, Offset, Timestamp};
use protocol::DecodeError;
use protocol::internal_records::control::ControlRecord;
use protocol::internal_records::metadata::MetadataRecord;
use raft::{ControlRecordError, KRaftVersion, QuorumRecords, SnapshotId, VoterSet, snapshot_footer, snapshot_header};
use storage::disk::{DirectoryEntry, Disk, File, OpenMode, read_small_file};

/// A batch of a snapshot is closed at this size.
const BATCH_BYTES: usize = 1 << 20;
/// A batch of a snapshot is closed at this number of records, Kafka's limit for one.
const BATCH_RECORDS: i32 = 10_000;
/// No snapshot is larger; a million partitions take about 100 MiB.
const SNAPSHOT_BYTES_MAX: usize = 2 << 30;

/// Why a snapshot cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error("snapshot {id}: the disk failed")]
    Io {
        id: SnapshotId,
        #[source]
        error: io::Error,
    },
    #[error("snapshot {id} has a damaged batch")]
    Batch {
        id: SnapshotId,
        #[source]
        error: BatchError,
    },
    #[error("snapshot {id} has a record that cannot be read")]
    Decode {
        id: SnapshotId,
        #[source]
        error: DecodeError,
    },
    #[error("snapshot {id} has a control record that cannot be")]
    Control {
        id: SnapshotId,
        #[source]
        error: ControlRecordError,
    },
    #[error("snapshot {id}: a record cannot be written")]
    Record {
        id: SnapshotId,
        #[source]
        error: RecordError,
    },
    #[error("snapshot {id} does not begin with a header and end with a footer")]
    Incomplete { id: SnapshotId },
}

/// What a snapshot holds.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pub(crate) quorum: QuorumRecords,
    pub(crate) last_timestamp: Timestamp,
    pub(crate) records: Vec<MetadataRecord>,
}

/// What is written into a snapshot beside the records.
pub(crate) struct Frame<'a> {
    pub(crate) id: SnapshotId,
    /// The time of the last batch of the log that it covers.
    pub(crate) last_timestamp: Timestamp,
    pub(crate) kraft_version: KRaftVersion,
    pub(crate) voters: &'a VoterSet,
    pub(crate) now: Timestamp,
}

pub(crate) fn path(directory: &Path, id: SnapshotId) -> PathBuf {
    directory.join(format!("{id}{}", SnapshotId::EXTENSION))
}

/// Writes a snapshot so that it is there whole or not at all. Returns its size in bytes.
pub(crate) fn write<D: Disk>(
    disk: &D,
    directory: &Path,
    frame: &Frame<'_>,
    records: impl Iterator<Item = MetadataRecord>,
    version: MetadataVersion,
) -> Result<u64, SnapshotError> {
    let id = frame.id;
    let io = |error| SnapshotError::Io { id, error };
    let target = path(directory, id);
    let part = directory.join(format!("{id}{}{}", SnapshotId::EXTENSION, SnapshotId::PART_EXTENSION));
    let mut output = Output {
        id,
        epoch: LeaderEpoch::new(id.epoch.get()),
        file: disk.open(&part, OpenMode::Replace).map_err(io)?,
        position: 0,
        next_offset: Offset::ZERO,
    };
    output.control(
        &snapshot_header(frame.last_timestamp, frame.kraft_version, frame.voters),
        frame.now,
    )?;
    let mut batch = output.batch(false);
    for record in records {
        let sealed = seal(record, version).map_err(|error| SnapshotError::Record { id, error })?;
        let full =
            batch.uncompressed_bytes() + sealed.bytes.len() > BATCH_BYTES || batch.record_count() >= BATCH_RECORDS;
        if full && !batch.is_empty() {
            output.put(batch)?;
            batch = output.batch(false);
        }
        let appended = batch.append(frame.now, None, Some(&sealed.bytes), &[]);
        appended.map_err(|error| SnapshotError::Batch { id, error })?;
    }
    if !batch.is_empty() {
        output.put(batch)?;
    }
    output.control(&[snapshot_footer()], frame.now)?;
    output.file.sync().map_err(io)?;
    disk.rename(&part, &target).map_err(io)?;
    disk.sync_directory(directory).map_err(io)?;
    Ok(output.position)
}

/// A snapshot that is being written.
struct Output<F> {
    id: SnapshotId,
    epoch: LeaderEpoch,
    file: F,
    position: u64,
    next_offset: Offset,
}

impl<F: File> Output<F> {
    fn batch(&self, control: bool) -> BatchBuilder {
        BatchBuilder::new(BatchOptions {
            base_offset: self.next_offset,
            partition_leader_epoch: Some(self.epoch),
            control,
            ..BatchOptions::default()
        })
    }

    fn control(&mut self, records: &[ControlRecord], now: Timestamp) -> Result<(), SnapshotError> {
        let id = self.id;
        let mut batch = self.batch(true);
        append_control(&mut batch, records, now).map_err(|error| SnapshotError::Batch { id, error })?;
        self.put(batch)
    }

    fn put(&mut self, batch: BatchBuilder) -> Result<(), SnapshotError> {
        let id = self.id;
        let count = i64::from(batch.record_count());
        let bytes = batch.build().map_err(|error| SnapshotError::Batch { id, error })?;
        let written = self.file.write_all_at(&[IoSlice::new(&bytes)], self.position);
        written.map_err(|error| SnapshotError::Io { id, error })?;
        self.position += bytes.len() as u64;
        self.next_offset = self.next_offset.plus(count);
        Ok(())
    }
}

/// Adds control records to a control batch.
pub(crate) fn append_control(
    batch: &mut BatchBuilder,
    records: &[ControlRecord],
    now: Timestamp,
) -> Result<(), BatchError> {
    const UNWRITABLE: BatchError = BatchError::Unbuildable("a control record cannot be written");
    for record in records {
        let key = record.key_bytes().map_err(|_| UNWRITABLE)?;
        let value = record.value_bytes().map_err(|_| UNWRITABLE)?;
        batch.append(now, Some(&key), Some(&value), &[])?;
    }
    Ok(())
}

/// Reads a whole snapshot.
pub(crate) fn read<D: Disk>(disk: &D, directory: &Path, id: SnapshotId) -> Result<Contents, SnapshotError> {
    let bytes = read_small_file(disk, &path(directory, id), SNAPSHOT_BYTES_MAX);
    let bytes = Bytes::from(bytes.map_err(|error| SnapshotError::Io { id, error })?);
    let mut contents = Contents::default();
    let (mut has_header, mut has_footer) = (false, false);
    for batch in Batches::new(&bytes) {
        let batch = batch.map_err(|error| SnapshotError::Batch { id, error })?;
        batch.check_crc().map_err(|error| SnapshotError::Batch { id, error })?;
        if has_footer {
            return Err(SnapshotError::Incomplete { id });
        }
        let is_control = batch.header.attributes.is_control();
        let entries = records(&bytes.slice_ref(batch.bytes()), DecompressionLimit::DEFAULT);
        for record in entries.map_err(|error| SnapshotError::Batch { id, error })? {
            let record = record.map_err(|error| SnapshotError::Batch { id, error })?;
            let decode = |error| SnapshotError::Decode { id, error };
            if !is_control {
                let (record, _) = MetadataRecord::from_bytes(record.value.unwrap_or_default()).map_err(decode)?;
                contents.records.push(record);
                continue;
            }
            let (key, value) = (record.key.unwrap_or_default(), record.value.unwrap_or_default());
            match ControlRecord::from_bytes(key, value).map_err(decode)? {
                ControlRecord::SnapshotHeader(header) => {
                    has_header = true;
                    contents.last_timestamp = Timestamp::from_millis(header.last_contained_log_timestamp);
                }
                ControlRecord::SnapshotFooter(_) => has_footer = true,
                other => {
                    let seen = contents.quorum.see(None, &other);
                    seen.map_err(|error| SnapshotError::Control { id, error })?;
                }
            }
        }
        if !has_header {
            return Err(SnapshotError::Incomplete { id });
        }
    }
    if has_header && has_footer {
        Ok(contents)
    } else {
        Err(SnapshotError::Incomplete { id })
    }
}

/// The complete snapshots in `directory`, the oldest first. Parts that a crash left are removed.
pub(crate) fn list<D: Disk>(disk: &D, directory: &Path) -> io::Result<Vec<SnapshotId>> {
    let entries = disk.list(directory)?;
    for entry in entries.iter().filter(|entry| !entry.is_directory) {
        let part = entry.name.strip_suffix(SnapshotId::PART_EXTENSION);
        if part.is_some_and(|name| name.ends_with(SnapshotId::EXTENSION)) {
            disk.remove_file(&directory.join(&entry.name))?;
        }
    }
    Ok(among(&entries))
}

/// The complete snapshots among the names of a directory, the oldest first.
pub(crate) fn among(entries: &[DirectoryEntry]) -> Vec<SnapshotId> {
    let files = entries.iter().filter(|entry| !entry.is_directory);
    let named = files.filter_map(|entry| entry.name.strip_suffix(SnapshotId::EXTENSION)?.parse().ok());
    let mut found: Vec<SnapshotId> = named.collect();
    found.sort_unstable();
    found
}

/// The epoch of a snapshot as one of the log's.
pub(crate) fn leader_epoch(epoch: ControllerEpoch) -> LeaderEpoch {
    LeaderEpoch::new(epoch.get())
}
