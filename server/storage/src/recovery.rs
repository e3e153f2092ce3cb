//! Opens a log, and finds out what a crash left of it.
//!
//! After a clean end the segment list, the last segment's indexes and the producer snapshot are believed. Otherwise
//! every batch from the segment that holds the recovery point on is read again:
//! - bytes behind the recovery point that are no batch are a torn tail and cut, if no sound batch follows them;
//! - anything else that is missing or wrong is damage: kept, reported, and the log takes no appends.
//!
//! Indexes, epochs and producers are made again from what was read. Opening twice does the same as opening once.

mod replay;
mod resume;

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64};
use std::sync::{Arc, RwLock};

use arc_swap::ArcSwap;
use model::{Offset, Timestamp};
use tracing::warn;

use crate::compaction::complete_swaps;
use crate::disk::{Disk, File, OpenMode, read_small_file, remove_file_if_there};
use crate::file_names::{CLEANED_SUFFIX, DELETED_SUFFIX, Kind, LEADER_EPOCH_CHECKPOINT, TEMPORARY_SUFFIX};
use crate::leader_epochs::LeaderEpochs;
use crate::log_reader::{DamagedRange, Shared};
use crate::options::{Durability, LogOptions};
use crate::partition_log::{Active, PartitionLog, Parts, rewrite_index_files, write_epochs};
use crate::scan::{self, Check};
use crate::segment::{Indexes, Segment};
use crate::{offset_index, time_index};

use replay::{Replay, remove_snapshots_above};
pub(crate) use replay::{load_snapshot, read_marker, replay_producers, visit_headers};
pub(crate) use resume::reopen_segment;
use resume::resume;

/// No partition has more.
const SEGMENTS_MAX: usize = 1_000_000;
pub(crate) const CHECKPOINT_BYTES_MAX: usize = 16 << 20;

/// What is known of the log before it is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Start {
    /// Whether the whole directory was closed in good order.
    pub clean: bool,
    /// As recorded in the directory's checkpoint; all below was durable.
    pub recovery_point: Offset,
    /// As recorded in the directory's checkpoint.
    pub log_start_offset: Offset,
}

/// What opening the log found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Recovery {
    /// How many bytes were read again.
    pub bytes_read: u64,
    /// How many bytes of a torn tail were cut.
    pub bytes_cut: u64,
    /// How many segments had their indexes made again.
    pub indexes_rebuilt: usize,
    pub damage: Vec<DamagedRange>,
}

/// Why a log cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the directory holds more than {SEGMENTS_MAX} segments")]
    TooManySegments,
    #[error("opening the log")]
    Io(#[from] io::Error),
}

impl<D: Disk> PartitionLog<D> {
    /// Opens the log in `directory`, making it if it is not there.
    ///
    /// # Errors
    /// As the disk says. Damaged records are no error but part of the [`Recovery`].
    pub fn open(
        disk: D,
        directory: &Path,
        options: LogOptions,
        start: Start,
        now: Timestamp,
    ) -> Result<(PartitionLog<D>, Recovery), OpenError> {
        disk.create_directory(directory)?;
        let mut opening = Opening {
            disk: &disk,
            directory,
            options: &options,
            start,
            recovery: Recovery::default(),
            epochs: LeaderEpochs::default(),
            replay: Replay::default(),
        };
        let bases = opening.tidy()?;
        let opened = if bases.is_empty() {
            opening.create(now)?
        } else {
            opening.load(&bases, now)?
        };
        let synced = if opening.start.clean {
            opened.end
        } else {
            start.recovery_point.min(opened.end)
        };
        let (epochs, producers, recovery) = (opening.epochs, opening.replay.producers, opening.recovery);
        // A checkpoint that lies outside of the log is of another life of it.
        let first = opened.segments[0].base_offset;
        let recorded = start.log_start_offset;
        let log_start = if recorded > opened.end {
            first
        } else {
            recorded.max(first)
        };
        let shared = Shared {
            segments: ArcSwap::from_pointee(opened.segments),
            log_start: AtomicI64::new(log_start.get()),
            log_end: AtomicI64::new(opened.end.get()),
            synced: AtomicI64::new(synced.get()),
            truncations: AtomicU64::new(0),
            epochs: RwLock::new(epochs),
            damage: ArcSwap::from_pointee(recovery.damage.clone()),
            offline: AtomicBool::new(false),
        };
        let log = PartitionLog::from_parts(Parts {
            disk: disk.clone(),
            directory: directory.to_owned(),
            options: options.clone(),
            shared: Arc::new(shared),
            active: opened.active,
            producers,
            recovery_point: start.recovery_point,
            unsynced: opened.unsynced,
        });
        Ok((log, recovery))
    }
}

struct Opening<'a, D: Disk> {
    disk: &'a D,
    directory: &'a Path,
    options: &'a LogOptions,
    start: Start,
    recovery: Recovery,
    epochs: LeaderEpochs,
    replay: Replay,
}

struct Opened<F> {
    segments: Vec<Arc<Segment<F>>>,
    active: Active<F>,
    end: Offset,
    /// Files that may hold bytes that are not on the disk yet.
    unsynced: Vec<F>,
}

/// A segment that was read, its indexes in memory.
struct Loaded<F> {
    active: Active<F>,
    end: Offset,
}

impl<D: Disk> Opening<'_, D> {
    /// Removes what was never finished; returns the base offsets of the segments, ascending.
    fn tidy(&self) -> Result<Vec<Offset>, OpenError> {
        let mut entries = self.disk.list(self.directory)?;
        if complete_swaps(self.disk, self.directory, &entries)? {
            entries = self.disk.list(self.directory)?;
        }
        let mut bases = Vec::new();
        for entry in &entries {
            let name = entry.name.as_str();
            if [DELETED_SUFFIX, CLEANED_SUFFIX, TEMPORARY_SUFFIX]
                .iter()
                .any(|suffix| name.ends_with(suffix))
            {
                self.disk.remove_file(&self.directory.join(name))?;
            } else if let Some((Kind::Log, base)) = Kind::parse(name) {
                bases.push(base);
            }
        }
        if bases.len() > SEGMENTS_MAX {
            return Err(OpenError::TooManySegments);
        }
        for entry in &entries {
            if let Some((Kind::OffsetIndex | Kind::TimeIndex | Kind::TransactionIndex, base)) = Kind::parse(&entry.name)
                && bases.binary_search(&base).is_err()
            {
                self.disk.remove_file(&self.directory.join(&entry.name))?;
            }
        }
        Ok(bases)
    }

    fn create(&mut self, now: Timestamp) -> io::Result<Opened<D::File>> {
        let base = self.start.log_start_offset;
        let active = Active::create(self.disk, self.directory, base, now)?;
        let end = base.max(self.start.recovery_point);
        if end > base {
            self.report(base, end);
        }
        remove_snapshots_above(self.disk, self.directory, base)?;
        Ok(Opened {
            segments: vec![active.segment.clone()],
            active,
            end,
            unsynced: Vec::new(),
        })
    }

    fn load(&mut self, bases: &[Offset], now: Timestamp) -> io::Result<Opened<D::File>> {
        if self.start.clean {
            if let Some(opened) = self.load_clean(bases, now)? {
                return Ok(opened);
            }
            warn!(directory = %self.directory.display(), "the log was closed in good order but is not in it");
            self.start.clean = false;
        }
        self.load_unclean(bases, now)
    }

    /// Believes the files; `None` if they turn out not to deserve it.
    fn load_clean(&mut self, bases: &[Offset], now: Timestamp) -> io::Result<Option<Opened<D::File>>> {
        let Some((last, sealed)) = bases.split_last() else {
            return Ok(None);
        };
        let mut segments = sealed
            .iter()
            .map(|base| self.open_sealed(*base))
            .collect::<io::Result<Vec<_>>>()?;
        let Some(loaded) = self.resume_last(*last, now)? else {
            return Ok(None);
        };
        if loaded.end < self.start.recovery_point {
            return Ok(None);
        }
        segments.push(loaded.active.segment.clone());
        let on_disk = self.read_epochs()?;
        if on_disk.is_none() {
            self.visit_epochs(&segments, loaded.end)?;
        }
        self.finish_epochs(on_disk, loaded.end)?;
        self.load_producers(&segments, loaded.end)?;
        Ok(Some(Opened {
            segments,
            active: loaded.active,
            end: loaded.end,
            unsynced: Vec::new(),
        }))
    }

    /// Reads again what may have suffered.
    fn load_unclean(&mut self, bases: &[Offset], now: Timestamp) -> io::Result<Opened<D::File>> {
        let bases = self.drop_empty_tail(bases)?;
        let first = bases
            .partition_point(|base| *base <= self.start.recovery_point)
            .saturating_sub(1);
        let mut segments = bases[..first]
            .iter()
            .map(|base| self.open_sealed(*base))
            .collect::<io::Result<Vec<_>>>()?;
        // Snapshots of what is read again may be from a tail that is gone.
        let trusted = bases[first];
        remove_snapshots_above(self.disk, self.directory, trusted)?;
        self.load_producers(&segments, trusted)?;
        let epochs = self.read_epochs()?;
        match &epochs {
            Some(_) => self.replay.epochs_from = self.start.recovery_point,
            None => self.visit_epochs(&segments, trusted)?,
        }
        let mut unsynced = Vec::new();
        let mut last = None;
        for (index, base) in bases.iter().enumerate().skip(first) {
            let next_base = bases.get(index + 1).copied();
            let mut loaded = self.reread(*base, next_base, now)?;
            self.recovery.indexes_rebuilt += 1;
            rewrite_index_files(self.disk, self.directory, &mut loaded.active)?;
            segments.push(loaded.active.segment.clone());
            let is_last = next_base.is_none_or(|next| self.drops_what_follows(loaded.end, next));
            if is_last {
                self.remove_segments(&bases[index + 1..])?;
                last = Some(loaded);
                break;
            }
            let index_files = loaded.active.finish_indexes(self.disk, self.directory)?;
            unsynced.push(loaded.active.segment.log.clone());
            unsynced.extend(index_files.clone());
            let [offsets, times] = index_files;
            loaded
                .active
                .segment
                .with_indexes(|indexes| *indexes = Indexes::Files { offsets, times });
        }
        let Some(Loaded { active, end }) = last else {
            return Err(io::Error::other("no segment to load"));
        };
        self.finish_epochs(epochs, self.start.recovery_point.min(end))?;
        self.disk.sync_directory(self.directory)?;
        Ok(Opened {
            segments,
            active,
            end,
            unsynced,
        })
    }

    /// Removes segments at the end that hold no sound batch and none that was synced: what a roll just before a crash
    /// leaves. The first segment always stays.
    fn drop_empty_tail(&mut self, bases: &[Offset]) -> io::Result<Vec<Offset>> {
        let mut bases = bases.to_vec();
        while let [_, .., last] = bases[..] {
            let path = Kind::Log.path(self.directory, last);
            let file = self.disk.open(&path, OpenMode::Read)?;
            let size = file.size_bytes()?;
            if last < self.start.recovery_point || scan::begins_sound(&file, size, last)? {
                break;
            }
            if size > 0 && scan::find_batch_after(&file, 0, size, last)?.is_some() {
                break;
            }
            self.remove_segments(&[last])?;
            bases.pop();
        }
        Ok(bases)
    }

    /// Whether the segments from `next` on go although they hold records: in a log that was not synced at each roll, a
    /// crash may take the end of a segment and leave some of the next.
    fn drops_what_follows(&self, end: Offset, next: Offset) -> bool {
        self.options.durability == Durability::Replicated
            && !self.options.compact
            && end < next
            && end >= self.start.recovery_point
    }

    fn remove_segments(&mut self, bases: &[Offset]) -> io::Result<()> {
        for base in bases.iter().rev() {
            let log = self.disk.open(&Kind::Log.path(self.directory, *base), OpenMode::Read)?;
            self.recovery.bytes_cut += log.size_bytes()?;
            for kind in Kind::OF_SEGMENT {
                remove_file_if_there(self.disk, &kind.path(self.directory, *base))?;
            }
        }
        Ok(())
    }

    /// Reads all of a segment, cuts or reports what is wrong with it.
    fn reread(&mut self, base: Offset, next_base: Option<Offset>, now: Timestamp) -> io::Result<Loaded<D::File>> {
        let log = self
            .disk
            .open(&Kind::Log.path(self.directory, base), OpenMode::ReadWrite)?;
        let size = log.size_bytes()?;
        let indexes = Indexes::Memory {
            offsets: Vec::new(),
            times: Vec::new(),
        };
        let segment = Arc::new(Segment::new(base, log, size, indexes));
        let mut active = Active::resume(segment.clone(), now);
        let options = self.options;
        let mut holes = Vec::new();
        let mut at = scan::End {
            position: 0,
            next_offset: base,
            faulty: false,
        };
        loop {
            let replay = &mut self.replay;
            at = scan::scan(
                &segment.log,
                at.position,
                size,
                at.next_offset,
                Check::Checksums,
                |header, position| {
                    active.note(header, position, options);
                    replay.note(&segment.log, header, position)
                },
            )?;
            if !at.faulty {
                break;
            }
            match scan::find_batch_after(&segment.log, at.position, size, at.next_offset)? {
                Some((header, position)) => {
                    holes.push(at.position..position);
                    self.report(at.next_offset, header.first_offset());
                    at = scan::End {
                        position,
                        next_offset: header.first_offset(),
                        faulty: false,
                    };
                }
                None => break,
            }
        }
        self.recovery.bytes_read += size;
        let mut end = at.next_offset;
        let lost_to = match next_base {
            Some(next) if self.drops_what_follows(end, next) => end,
            // The cleaner and gaps in what a leader sent leave holes between segments that are no loss.
            Some(next) if at.faulty || !self.options.compact => next,
            Some(_) => end,
            None => self.start.recovery_point,
        };
        if lost_to > end {
            self.report(end, lost_to);
            end = lost_to;
        } else if at.faulty {
            self.recovery.bytes_cut += size - at.position;
            segment.log.truncate(at.position)?;
            segment.log.sync()?;
        }
        segment.publish_size(at.position);
        segment.set_holes(holes);
        Ok(Loaded { active, end })
    }

    fn report(&mut self, from: Offset, to: Offset) {
        let to = to.max(from.plus(1));
        warn!(directory = %self.directory.display(), %from, %to, "records are damaged or missing");
        self.recovery.damage.push(DamagedRange { from, to });
    }

    /// Opens a segment that is not written to any more. Indexes that cannot be right are made again.
    fn open_sealed(&mut self, base: Offset) -> io::Result<Arc<Segment<D::File>>> {
        let log = self
            .disk
            .open(&Kind::Log.path(self.directory, base), OpenMode::ReadWrite)?;
        let size = log.size_bytes()?;
        let offsets = self.open_index(Kind::OffsetIndex, base, offset_index::ENTRY_BYTES)?;
        let times = self.open_index(Kind::TimeIndex, base, time_index::ENTRY_BYTES)?;
        if let (Some(offsets), Some(times)) = (offsets, times) {
            let is_suspicious = offsets.size_bytes()? == 0 && size > 2 * u64::from(self.options.index_interval_bytes);
            if !is_suspicious {
                return Ok(Arc::new(Segment::new(
                    base,
                    log,
                    size,
                    Indexes::Files { offsets, times },
                )));
            }
        }
        let indexes = Indexes::Memory {
            offsets: Vec::new(),
            times: Vec::new(),
        };
        let segment = Arc::new(Segment::new(base, log, size, indexes));
        let mut active = Active::resume(segment.clone(), Timestamp::default());
        scan::scan(&segment.log, 0, size, base, Check::Headers, |header, position| {
            active.note(header, position, self.options);
            Ok(())
        })?;
        self.recovery.indexes_rebuilt += 1;
        rewrite_index_files(self.disk, self.directory, &mut active)?;
        let [offsets, times] = active.finish_indexes(self.disk, self.directory)?;
        segment.with_indexes(|indexes| *indexes = Indexes::Files { offsets, times });
        Ok(segment)
    }

    fn open_index(&self, kind: Kind, base: Offset, entry_bytes: usize) -> io::Result<Option<D::File>> {
        match self.disk.open(&kind.path(self.directory, base), OpenMode::ReadWrite) {
            Ok(file) => Ok(file.size_bytes()?.is_multiple_of(entry_bytes as u64).then_some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Takes the last segment over after a clean end; `None` if it does not end with a whole batch.
    fn resume_last(&mut self, base: Offset, now: Timestamp) -> io::Result<Option<Loaded<D::File>>> {
        let log = self
            .disk
            .open(&Kind::Log.path(self.directory, base), OpenMode::ReadWrite)?;
        let size = log.size_bytes()?;
        let indexes = Indexes::Memory {
            offsets: Vec::new(),
            times: Vec::new(),
        };
        let segment = Arc::new(Segment::new(base, log, size, indexes));
        let (active, end) = resume(self.disk, self.directory, &segment, size, self.options, now)?;
        Ok((!end.faulty).then_some(Loaded {
            active,
            end: end.next_offset,
        }))
    }

    /// The epochs of the checkpoint; `None` if it is of no use.
    fn read_epochs(&self) -> io::Result<Option<LeaderEpochs>> {
        let path = self.directory.join(LEADER_EPOCH_CHECKPOINT);
        match read_small_file(self.disk, &path, CHECKPOINT_BYTES_MAX) {
            Ok(bytes) => Ok(String::from_utf8(bytes)
                .ok()
                .and_then(|text| LeaderEpochs::from_text(&text))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Takes the epochs of the batches below `end` from the segments.
    fn visit_epochs(&mut self, segments: &[Arc<Segment<D::File>>], end: Offset) -> io::Result<()> {
        let replay = &mut self.replay;
        visit_headers(segments, Offset::ZERO, end, |header, _| {
            replay.note_epoch(header);
            Ok(())
        })
    }

    /// The epochs of the checkpoint that begin below `known_to`, and behind them those of the batches that were read.
    fn finish_epochs(&mut self, on_disk: Option<LeaderEpochs>, known_to: Offset) -> io::Result<()> {
        let mut epochs = on_disk.clone().unwrap_or_default();
        epochs.truncate_from_end(known_to);
        self.replay.assign_to(&mut epochs);
        if on_disk.as_ref() != Some(&epochs) && !(on_disk.is_none() && epochs.entries().is_empty()) {
            write_epochs(self.disk, self.directory, &epochs)?;
        }
        self.epochs = epochs;
        Ok(())
    }

    /// The producers of the batches below `end`: from the latest snapshot, and what `segments` hold behind it.
    fn load_producers(&mut self, segments: &[Arc<Segment<D::File>>], end: Offset) -> io::Result<()> {
        let (mut producers, from) = load_snapshot(self.disk, self.directory, end)?;
        replay_producers(segments, from, end, &mut producers)?;
        self.replay.producers = producers;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
