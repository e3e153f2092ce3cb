//! One partition's log: the one writer.
//!
//! ```text
//! log start            recovery point     synced          log end
//! |----- segment -----|----- segment -----|--- active segment ---|
//!                      recorded in a      on the disk     written
//!                      checkpoint file    for good
//! ```
//! - Offsets only grow; a batch is written by one call, behind the end that readers see, and then shown to them.
//! - What is below the synced offset has been through fdatasync. A sync is a handle that the shell runs on a thread of
//!   its own and reports back; while it runs, appends go on and wait for the next (group commit).
//! - The synced offset is recorded now and then ([`PartitionLog::recovery_point_due`]). Damage found below the recorded
//!   point is never cut away.
//! - After a failed sync nothing is known about the disk: the log is offline for good.

mod active;
mod sync;
mod truncation;
mod validation;

use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use model::record_batch::{Batch, BatchError, BatchHeader, Batches, ControlType, HEADER_BYTES, TimestampType};
use model::{LeaderEpoch, Offset, Timestamp};
use tracing::warn;

use crate::disk::{self, Disk, File, OpenMode};
use crate::file_names::{Kind, LEADER_EPOCH_CHECKPOINT, LEADER_EPOCH_CHECKSUM};
use crate::log_reader::{DamagedRange, LogReader, Shared};
use crate::options::{Durability, LogOptions};
use crate::producer_state::ProducerStates;
use crate::segment::{Segment, set_limits};

pub(crate) use active::Active;
pub(crate) use sync::SyncState;
pub use sync::{SyncDone, SyncHandle};
pub(crate) use truncation::rewrite_index_files;
pub use validation::AppendError;
use validation::{Prepared, prepare, sound_batch};

/// Who hands a batch to a leader's log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// A producer: base offset 0, no control batches, sequences checked.
    Client,
    /// A coordinator or the broker itself: may write transaction markers.
    Coordinator,
    /// The controller quorum: batches of any size and time, nothing but the checksum is looked at.
    Quorum,
}

/// In what role a batch is appended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AppendAs {
    /// The log gives the offsets and stamps the epoch; exactly one batch.
    Leader { epoch: LeaderEpoch, origin: Origin },
    /// The batches have their offsets and epochs from a leader. Gaps are fine; a batch cut short at the end is left out.
    Follower,
}

/// What an append did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Appended {
    pub first_offset: Offset,
    pub last_offset: Offset,
    /// Where the log stamped the batch.
    pub log_append_time: Option<Timestamp>,
    pub max_timestamp: Option<Timestamp>,
    /// The batch was there already: these are its first offsets, nothing was written.
    pub is_duplicate: bool,
    pub size_bytes: usize,
}

/// One partition's log on one disk.
pub struct PartitionLog<D: Disk> {
    disk: D,
    directory: PathBuf,
    options: LogOptions,
    shared: Arc<Shared<D>>,
    active: Active<D::File>,
    producers: ProducerStates,
    sync: SyncState<D::File>,
    /// The latest epoch is not in its file: it has no batch yet.
    epochs_unwritten: bool,
    /// The end at which the log was left in good order; `None` if it never was.
    closed_at: Option<Offset>,
}

/// What recovery hands over.
pub(crate) struct Parts<D: Disk> {
    pub(crate) disk: D,
    pub(crate) directory: PathBuf,
    pub(crate) options: LogOptions,
    pub(crate) shared: Arc<Shared<D>>,
    pub(crate) active: Active<D::File>,
    pub(crate) producers: ProducerStates,
    pub(crate) recovery_point: Offset,
    /// Files besides the active segment's that are to be synced first.
    pub(crate) unsynced: Vec<D::File>,
    /// Whether names in the folder are to be synced with the next files.
    pub(crate) names_changed: bool,
    /// Whether there is nothing that [`PartitionLog::close`] would have to do.
    pub(crate) is_closed: bool,
}

impl<D: Disk> PartitionLog<D> {
    pub(crate) fn from_parts(parts: Parts<D>) -> Self {
        let sync = SyncState::new(parts.recovery_point, parts.unsynced, parts.names_changed);
        let closed_at = parts.is_closed.then(|| parts.shared.log_end_offset());
        PartitionLog {
            epochs_unwritten: false,
            closed_at,
            disk: parts.disk,
            directory: parts.directory,
            options: parts.options,
            shared: parts.shared,
            active: parts.active,
            producers: parts.producers,
            sync,
        }
    }

    /// A handle for reading, of use for as long as anyone holds it.
    #[must_use]
    pub fn reader(&self) -> LogReader<D> {
        LogReader::new(self.shared.clone())
    }

    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    #[must_use]
    pub fn options(&self) -> &LogOptions {
        &self.options
    }

    /// Changes the settings; they count from the next call on.
    pub fn set_options(&mut self, options: LogOptions) {
        self.options = options;
    }

    #[must_use]
    pub fn log_start_offset(&self) -> Offset {
        self.shared.log_start_offset()
    }

    #[must_use]
    pub fn log_end_offset(&self) -> Offset {
        self.shared.log_end_offset()
    }

    #[must_use]
    pub fn synced_offset(&self) -> Offset {
        self.shared.synced_offset()
    }

    #[must_use]
    pub fn is_offline(&self) -> bool {
        self.shared.offline.load(Ordering::Acquire)
    }

    /// What is known to be damaged; the rest is served, and appends go on at the end.
    #[must_use]
    pub fn damage(&self) -> Arc<Vec<DamagedRange>> {
        self.shared.damage.load_full()
    }

    #[must_use]
    pub fn producers(&self) -> &ProducerStates {
        &self.producers
    }

    /// Forgets producers that were silent for too long.
    pub fn remove_expired_producers(&mut self, now: Timestamp) {
        self.producers
            .remove_expired(now, self.options.producer_id_expiration_ms);
    }

    /// The latest leader epoch of the log's records, or assigned since.
    #[must_use]
    pub fn latest_epoch(&self) -> Option<LeaderEpoch> {
        self.shared
            .with_epochs(|epochs| epochs.latest().map(|start| start.epoch))
    }

    /// Notes that `epoch` begins at the log's end: what a new leader does before its first append. The checkpoint of the
    /// epochs follows with that append: each start of a node begins an epoch in every log, and most of them end empty.
    pub fn begin_epoch(&mut self, epoch: LeaderEpoch) {
        let end = self.log_end_offset();
        let mut epochs = self.shared.epochs.write().unwrap_or_else(PoisonError::into_inner);
        if epochs.latest().is_none_or(|latest| latest.epoch != epoch) {
            self.epochs_unwritten |= epochs.assign(epoch, end);
        }
    }

    /// Appends `records` in the given role; `now` is the wall clock.
    ///
    /// # Errors
    /// Nothing has been appended then. [`AppendError::error_code`] is what a client is told.
    pub fn append(&mut self, records: &[u8], role: AppendAs, now: Timestamp) -> Result<Appended, AppendError> {
        if self.is_offline() {
            return Err(AppendError::Offline);
        }
        match role {
            AppendAs::Leader { epoch, origin } => self.append_as_leader(records, epoch, origin, now),
            AppendAs::Follower => self.append_as_follower(records, now),
        }
    }

    fn append_as_leader(
        &mut self,
        records: &[u8],
        epoch: LeaderEpoch,
        origin: Origin,
        now: Timestamp,
    ) -> Result<Appended, AppendError> {
        let batch = sound_batch(records, &self.options, origin)?;
        if origin != Origin::Quorum
            && let Some(duplicate) = self.producers.check(&batch.header)?
        {
            let stamped = self.options.timestamp_type == TimestampType::LogAppendTime;
            return Ok(Appended {
                first_offset: duplicate.first_offset,
                last_offset: duplicate.last_offset,
                log_append_time: stamped.then_some(duplicate.timestamp),
                max_timestamp: Some(duplicate.timestamp),
                is_duplicate: true,
                size_bytes: 0,
            });
        }
        let Prepared { mut header, payload } = prepare(&batch, &self.options, origin, now)?;
        let log_end = self.log_end_offset();
        header.base_offset = log_end.get();
        header.partition_leader_epoch = epoch.get();
        if log_end
            .get()
            .checked_add(i64::from(header.last_offset_delta) + 1)
            .is_none()
        {
            return Err(AppendError::OffsetsExhausted);
        }
        let bytes = header.to_bytes();
        let marker = marker(&header, &payload);
        self.write(
            &[IoSlice::new(&bytes), IoSlice::new(&payload)],
            &[(header, marker)],
            now,
        )
    }

    fn append_as_follower(&mut self, records: &[u8], now: Timestamp) -> Result<Appended, AppendError> {
        let mut notes = Vec::new();
        let mut size = 0;
        let mut log_end = self.log_end_offset();
        for batch in Batches::new(records) {
            let batch = match batch {
                Ok(batch) => batch,
                Err(BatchError::Truncated { .. }) if size > 0 => break,
                Err(error) => return Err(error.into()),
            };
            batch.check_crc()?;
            let first = batch.header.first_offset();
            if first < log_end {
                return Err(AppendError::OffsetsGoBack { first, log_end });
            }
            log_end = batch.header.next_offset();
            size += batch.bytes().len();
            notes.push((batch.header, marker(&batch.header, batch.payload())));
        }
        if notes.is_empty() {
            return Err(AppendError::InvalidBatch("there is no batch to append"));
        }
        self.write(&[IoSlice::new(&records[..size])], &notes, now)
    }

    /// Writes batches that are final, and notes them everywhere.
    fn write(&mut self, parts: &[IoSlice<'_>], notes: &[Note], now: Timestamp) -> Result<Appended, AppendError> {
        let (first, last) = match notes {
            [(first, _), .., (last, _)] => (first, last),
            [(only, _)] => (only, only),
            [] => return Err(AppendError::InvalidBatch("there is no batch to append")),
        };
        let max_timestamp = notes.iter().map(|(header, _)| header.max_timestamp).max().unwrap_or(-1);
        let size_bytes = parts.iter().map(|part| part.len()).sum();
        if self
            .active
            .is_full_for(size_bytes, last.last_offset(), max_timestamp, &self.options, now)
        {
            self.roll_to(first.first_offset(), now)
                .map_err(AppendError::from_write)?;
        }
        for (header, _) in notes {
            if let Some(epoch) = header.leader_epoch() {
                self.assign_epoch(epoch, header.first_offset())
                    .map_err(AppendError::from_write)?;
            }
        }
        if self.epochs_unwritten {
            let epochs = self.shared.with_epochs(Clone::clone);
            write_epochs(&self.disk, &self.directory, &epochs).map_err(AppendError::from_write)?;
            self.epochs_unwritten = false;
        }
        if self.active.is_empty()
            && let Err(error) = self.active.make_index_files(&self.disk, &self.directory)
        {
            return Err(AppendError::from_write(error));
        }
        let segment = self.active.segment.clone();
        let position = segment.size();
        if let Err(error) = segment.log.write_all_at(parts, position) {
            return Err(self.undo_write(position, error));
        }
        let mut at = position;
        for (header, marker) in notes {
            self.active.note(header, at, &self.options);
            at += header.size_bytes() as u64;
            self.producers.note(header, *marker);
        }
        segment.publish_size(at);
        self.shared.log_end.store(last.next_offset().get(), Ordering::Release);
        self.sync.note_append(at - position, now);
        if self.active.indexes_are_due() {
            self.write_indexes();
        }
        let stamped = last.attributes.timestamp_type() == TimestampType::LogAppendTime;
        Ok(Appended {
            first_offset: first.first_offset(),
            last_offset: last.last_offset(),
            log_append_time: stamped.then(|| Timestamp::from_millis(last.max_timestamp)),
            max_timestamp: Timestamp::from_wire(max_timestamp),
            is_duplicate: false,
            size_bytes,
        })
    }

    /// Brings the indexes' files up to date. Entries that cannot be written stay in memory and are tried again with the
    /// next; the index can be rebuilt.
    fn write_indexes(&mut self) {
        if let Err(error) = self.active.write_indexes(&self.disk, &self.directory) {
            warn!(%error, directory = %self.directory.display(), "index entries not written");
        }
    }

    /// Takes back what a failed write may have left behind the end. A full disk may have room again later; any other
    /// error, or a file that cannot be cut, is a broken disk.
    fn undo_write(&mut self, position: u64, error: io::Error) -> AppendError {
        let undone = self.active.segment.log.truncate(position);
        if undone.is_err() || !disk::is_full(&error) {
            self.shared.offline.store(true, Ordering::Release);
        }
        AppendError::from_write(error)
    }

    /// Leaves the active segment and begins a new one at the log's end. Nothing happens if it is empty.
    ///
    /// # Errors
    /// As the disk says; the log goes on in the old segment then.
    pub fn roll(&mut self, now: Timestamp) -> io::Result<()> {
        self.roll_to(self.log_end_offset(), now)
    }

    fn roll_to(&mut self, base_offset: Offset, now: Timestamp) -> io::Result<()> {
        let base_offset = base_offset.max(self.log_end_offset());
        if base_offset == self.active.base_offset() {
            return Ok(());
        }
        let index_files = self.active.finish_indexes(&self.disk, &self.directory)?;
        let snapshot = self.write_snapshot(base_offset)?;
        if self.options.durability == Durability::Fsync
            && let Err(error) = self.active.segment.log.sync()
        {
            self.shared.offline.store(true, Ordering::Release);
            return Err(error);
        }
        let next = Active::create(&self.disk, &self.directory, base_offset, now)?;
        let left = std::mem::replace(&mut self.active, next);
        self.sync
            .note_roll(left.segment.log.clone(), [&index_files[..], &[snapshot]].concat());
        let [offsets, times] = index_files;
        left.segment
            .with_indexes(|indexes| *indexes = crate::segment::Indexes::Files { offsets, times });
        let mut segments = self.segments().to_vec();
        segments.push(self.active.segment.clone());
        self.publish_segments(segments);
        Ok(())
    }

    fn write_snapshot(&self, offset: Offset) -> io::Result<D::File> {
        let path = Kind::ProducerSnapshot.path(&self.directory, offset);
        let file = self.disk.open(&path, OpenMode::Replace)?;
        file.write_all_at(&[IoSlice::new(&self.producers.to_snapshot())], 0)?;
        Ok(file)
    }

    pub(crate) fn segments(&self) -> Arc<Vec<Arc<Segment<D::File>>>> {
        self.shared.segments.load_full()
    }

    pub(crate) fn publish_segments(&self, segments: Vec<Arc<Segment<D::File>>>) {
        set_limits(&segments);
        self.shared.segments.store(Arc::new(segments));
    }

    pub(crate) fn shared(&self) -> &Shared<D> {
        &self.shared
    }

    /// The disk that the log lies on.
    #[must_use]
    pub fn disk(&self) -> &D {
        &self.disk
    }

    fn assign_epoch(&mut self, epoch: LeaderEpoch, start_offset: Offset) -> io::Result<()> {
        if self
            .shared
            .with_epochs(|epochs| epochs.latest().is_some_and(|latest| latest.epoch == epoch))
        {
            return Ok(());
        }
        self.change_epochs(|epochs| epochs.assign(epoch, start_offset))
    }

    /// Changes the epochs and, if that changed anything, their file; neither if the file cannot be written.
    pub(crate) fn change_epochs(&mut self, change: impl FnOnce(&mut crate::LeaderEpochs) -> bool) -> io::Result<()> {
        let mut changed = self.shared.with_epochs(Clone::clone);
        if !change(&mut changed) {
            return Ok(());
        }
        write_epochs(&self.disk, &self.directory, &changed)?;
        self.epochs_unwritten = false;
        *self.shared.epochs.write().unwrap_or_else(PoisonError::into_inner) = changed;
        Ok(())
    }

    /// Ends the log in good order: everything written and synced, indexes complete, producers in a snapshot. The next
    /// open may be told that it was clean. Readers stay of use.
    ///
    /// # Errors
    /// If anything could not be made durable: then it was not clean.
    pub fn close(&mut self) -> io::Result<Offset> {
        if self.is_offline() {
            return Err(io::Error::other("the log is offline"));
        }
        let log_end = self.log_end_offset();
        if self.closed_at == Some(log_end) && self.active.is_finished() && !self.sync.is_pending() {
            return Ok(log_end);
        }
        let index_files = self.active.finish_indexes(&self.disk, &self.directory)?;
        let snapshot = self.write_snapshot(log_end)?;
        self.sync.note_files([&index_files[..], &[snapshot]].concat());
        self.sync_now()?;
        // Of many logs that are closed one after the other all files would be open in the end.
        self.active.release_index_files();
        self.closed_at = Some(log_end);
        Ok(log_end)
    }
}

type Note = (BatchHeader, Option<(ControlType, i32)>);

pub(crate) fn write_epochs<D: Disk>(disk: &D, directory: &Path, epochs: &crate::LeaderEpochs) -> io::Result<()> {
    let text = epochs.to_text();
    disk::replace_file(disk, &directory.join(LEADER_EPOCH_CHECKPOINT), text.as_bytes())?;
    // Without it, or with half of it, the epochs are compared with the batches instead.
    let checksum = directory.join(LEADER_EPOCH_CHECKSUM);
    if let Ok(file) = disk.open(&checksum, OpenMode::Replace) {
        let _ = file.write_all_at(&[IoSlice::new(checksum_of_epochs(text.as_bytes()).as_bytes())], 0);
    }
    Ok(())
}

/// What the file beside the epochs says.
pub(crate) fn checksum_of_epochs(text: &[u8]) -> String {
    format!("{:08x}\n", crc32c::crc32c(text))
}

/// What a control batch of a transaction says: the decision and the coordinator's epoch.
pub(crate) fn marker(header: &BatchHeader, payload: &[u8]) -> Option<(ControlType, i32)> {
    if !header.attributes.is_control() || header.producer_id().is_none() {
        return None;
    }
    let bytes = [&header.to_bytes()[..HEADER_BYTES], payload].concat();
    let (batch, _) = Batch::split_first(&bytes).ok()?;
    let mut reader = model::record_batch::RecordReader::new(batch, crate::scan::MARKER_LIMIT).ok()?;
    let record = reader.next_record().ok()??;
    let control = ControlType::from_key(record.key?)?;
    let coordinator_epoch = record
        .value?
        .get(2..6)?
        .first_chunk::<4>()
        .map(|bytes| i32::from_be_bytes(*bytes))?;
    matches!(control, ControlType::Abort | ControlType::Commit).then_some((control, coordinator_epoch))
}

#[cfg(test)]
mod tests;
