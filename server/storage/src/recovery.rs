//! Opens a log, and finds out what a crash left of it.
//!
//! After a clean end the segment list, the last segment's indexes and the producer snapshot are believed. Otherwise
//! every batch from the segment that holds the recovery point on is read again:
//! - bytes behind the recovery point that are no batch are a torn tail and cut, if no sound batch follows them;
//! - anything else that is missing or wrong is damage: kept, quarantined, and never served. Appends go on in a new segment.
//!
//! Indexes, epochs and producers are made again from what was read. Opening twice does the same as opening once.

mod replay;
mod resume;

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64};
use std::sync::{Arc, RwLock};

use arc_swap::ArcSwap;
use model::record_batch::BatchHeader;
use model::{Offset, Timestamp};
use tracing::{error, warn};

use crate::batch_bases::BatchBases;
use crate::compaction::complete_swaps;
use crate::disk::{Disk, File, OpenMode, is_full, read_small_file, remove_file_if_there};
use crate::file_names::{
    CLEANED_SUFFIX, DELETED_SUFFIX, Kind, LEADER_EPOCH_CHECKPOINT, LEADER_EPOCH_CHECKSUM, TEMPORARY_SUFFIX,
};
use crate::leader_epochs::LeaderEpochs;
use crate::log_reader::{DamagedRange, Shared};
use crate::options::{Durability, LogOptions};
use crate::partition_log::{Active, PartitionLog, Parts, checksum_of_epochs, rewrite_index_files, write_epochs};
use crate::quarantine::{Quarantine, Recorded, examine, holes_of, read_recorded, tell};
use crate::scan::{self, Check};
use crate::segment::{Indexes, Segment, Wait, set_limits};
use crate::survey::{Rules, survey};
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
            known_epochs: LeaderEpochs::default(),
            epochs_trusted: false,
            listed: Vec::new(),
            lost: Vec::new(),
            replay: Replay::default(),
            snapshot_at: Offset::ZERO,
            names_changed: false,
        };
        let recorded = read_recorded(&disk, directory)?;
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
        set_limits(&opened.segments);
        opening.look_again(&recorded, &opened)?;
        let log_start = opening.log_start(&opened)?;
        if opening.epochs.truncate_from_start(log_start) {
            write_epochs(&disk, directory, &opening.epochs)?;
        }
        let Opening {
            epochs,
            lost,
            mut recovery,
            replay,
            names_changed,
            ..
        } = opening;
        let segments = opened.segments;
        for segment in &segments {
            for hole in segment.holes().iter() {
                tell(directory, segment.base_offset, hole);
            }
        }
        let is_whole = segments.last().is_none_or(|last| last.holes().is_empty());
        let appends_here = is_whole && opened.reached == opened.end;
        let shared = Shared {
            segments: ArcSwap::from_pointee(segments),
            log_start: AtomicI64::new(log_start.get()),
            log_end: AtomicI64::new(opened.end.get()),
            synced: AtomicI64::new(synced.get()),
            truncations: AtomicU64::new(0),
            epochs: RwLock::new(epochs),
            damage: ArcSwap::default(),
            offline: AtomicBool::new(false),
            quarantine: Quarantine::new(disk.clone(), directory.to_owned(), lost, &recorded),
        };
        shared.refresh_damage();
        recovery.damage = shared.damage.load().to_vec();
        let mut log = PartitionLog::from_parts(Parts {
            disk: disk.clone(),
            directory: directory.to_owned(),
            options: options.clone(),
            shared: Arc::new(shared),
            active: opened.active,
            producers: replay.producers,
            recovery_point: start.recovery_point,
            unsynced: opened.unsynced,
            names_changed,
            is_closed: opened.is_closed,
        });
        if !appends_here {
            // What is damaged is not written to any more. Where there is no room for another segment it has to be.
            match log.roll(now) {
                Err(error) if is_full(&error) => warn!(directory = %directory.display(), %error, "no new segment"),
                rolled => rolled?,
            }
        }
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
    /// Those of the checkpoint.
    known_epochs: LeaderEpochs,
    /// Their checksum is right, so that a batch that says otherwise is damaged.
    epochs_trusted: bool,
    /// Segments with a list of where their batches begin, ascending.
    listed: Vec<Offset>,
    /// Offsets of which nothing is left.
    lost: Vec<DamagedRange>,
    replay: Replay,
    /// Where the snapshot of the producers was taken that was loaded; 0 if there was none.
    snapshot_at: Offset,
    /// Files were made, removed or renamed.
    names_changed: bool,
}

struct Opened<F> {
    segments: Vec<Arc<Segment<F>>>,
    active: Active<F>,
    end: Offset,
    /// Where the last segment's records end; below `end` where some are missing.
    reached: Offset,
    /// Files that may hold bytes that are not on the disk yet.
    unsynced: Vec<F>,
    /// All is as [`PartitionLog::close`] leaves it.
    is_closed: bool,
}

/// A segment that was read, its indexes in memory.
struct Loaded<F> {
    active: Active<F>,
    end: Offset,
    reached: Offset,
}

impl<D: Disk> Opening<'_, D> {
    /// Removes what was never finished; returns the base offsets of the segments, ascending.
    fn tidy(&mut self) -> Result<Vec<Offset>, OpenError> {
        let mut entries = self.disk.list(self.directory)?;
        if complete_swaps(self.disk, self.directory, &entries)? {
            self.names_changed = true;
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
                self.names_changed = true;
            } else if let Some((Kind::Log, base)) = Kind::parse(name) {
                bases.push(base);
            }
        }
        if bases.len() > SEGMENTS_MAX {
            return Err(OpenError::TooManySegments);
        }
        for entry in &entries {
            let Some((kind, base)) = Kind::parse(&entry.name) else {
                continue;
            };
            let is_of_segment = kind != Kind::Log && Kind::OF_SEGMENT.contains(&kind);
            if is_of_segment && bases.binary_search(&base).is_err() {
                self.disk.remove_file(&self.directory.join(&entry.name))?;
                self.names_changed = true;
            } else if kind == Kind::Bases {
                self.listed.push(base);
            }
        }
        Ok(bases)
    }

    fn create(&mut self, now: Timestamp) -> io::Result<Opened<D::File>> {
        let base = self.start.log_start_offset;
        let active = Active::create(self.disk, self.directory, base, now)?;
        let end = base.max(self.start.recovery_point);
        if end > base {
            self.lose(base, end);
            self.names_changed = true;
        }
        self.names_changed |= remove_snapshots_above(self.disk, self.directory, base)?;
        Ok(Opened {
            segments: vec![active.segment.clone()],
            active,
            end,
            reached: base,
            unsynced: Vec::new(),
            is_closed: end == base,
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
        // A clean end records just where the log ends: anything else is damage, of the log or of what was recorded.
        if loaded.end != self.start.recovery_point {
            return Ok(None);
        }
        segments.push(loaded.active.segment.clone());
        set_limits(&segments);
        let is_empty = segments.iter().all(|segment| segment.size() == 0);
        let on_disk = self.read_epochs()?;
        let on_disk = self.fitting(on_disk, &segments, loaded.end)?;
        self.known_epochs = on_disk.clone().unwrap_or_default();
        if on_disk.is_none() {
            self.visit_epochs(&segments, loaded.end)?;
        }
        self.finish_epochs(on_disk, loaded.end, loaded.end)?;
        self.load_producers(&segments, loaded.end)?;
        Ok(Some(Opened {
            segments,
            active: loaded.active,
            end: loaded.end,
            reached: loaded.end,
            unsynced: Vec::new(),
            is_closed: self.snapshot_at == loaded.end || is_empty,
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
        set_limits(&segments);
        if let Some(last) = segments.last() {
            last.set_limit(trusted);
        }
        self.names_changed |= remove_snapshots_above(self.disk, self.directory, trusted)?;
        self.load_producers(&segments, trusted)?;
        let epochs = self.read_epochs()?;
        let epochs = match self.epochs_trusted || epochs.is_none() {
            true => epochs,
            // Nothing vouches for it, so what is to be read again is looked at, too, before it is held against that.
            false => {
                let unread = bases[first..].iter().map(|base| self.open_unread(*base));
                let unread = unread.collect::<io::Result<Vec<_>>>()?;
                let all = [&segments[..], &unread].concat();
                set_limits(&unread);
                let epochs = self.fitting(epochs, &segments, trusted)?;
                self.fitting(epochs, &all, self.start.recovery_point)?
            }
        };
        match &epochs {
            Some(epochs) => {
                self.known_epochs = epochs.clone();
                if !self.epochs_trusted {
                    self.known_epochs.truncate_from_end(self.start.recovery_point);
                }
            }
            None => self.visit_epochs(&segments, trusted)?,
        }
        let mut unsynced = Vec::new();
        let mut last = None;
        for (index, base) in bases.iter().enumerate().skip(first) {
            let next_base = bases.get(index + 1).copied();
            let mut loaded = self.reread(*base, next_base, now)?;
            self.recovery.indexes_rebuilt += 1;
            if loaded.active.is_empty() {
                loaded.active.finish_empty();
            } else {
                rewrite_index_files(self.disk, self.directory, &mut loaded.active)?;
            }
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
        let Some(Loaded { active, end, reached }) = last else {
            return Err(io::Error::other("no segment to load"));
        };
        self.finish_epochs(epochs, self.start.recovery_point, end)?;
        if self.names_changed {
            // What was removed must not come back behind what is appended next.
            self.disk.sync_directory(self.directory)?;
        }
        self.names_changed = true;
        Ok(Opened {
            segments,
            active,
            end,
            reached,
            unsynced,
            is_closed: false,
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
            if size > 0 && self.holds_sound(&file, size, last)? {
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
            self.names_changed = true;
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
        segment.set_bases(self.open_bases(base, size)?);
        let bases = segment.load_bases()?;
        let mut active = Active::resume(segment.clone(), now);
        let (options, known_epochs) = (self.options, self.known_epochs.clone());
        let replay = &mut self.replay;
        let rules = Rules {
            base,
            limit: next_base,
            recorded: self.start.recovery_point,
            gaps: options.compact,
            epochs: Some(&known_epochs),
            // Where their checksum is right, the epochs of all batches are known; else they may be those of an earlier time.
            newer_from: if self.epochs_trusted { Offset::MAX } else { Offset::ZERO },
            bases: bases.as_ref(),
        };
        let found = survey(&segment.log, size, rules, Check::Checksums, |header, position| {
            active.note(header, position, options);
            replay.note(&segment.log, header, position)
        })?;
        self.recovery.bytes_read += size;
        let reached = found.next_offset;
        let mut holes = found.holes.clone();
        let lost_to = match next_base {
            Some(next) if self.drops_what_follows(reached, next) => reached,
            // The cleaner and gaps in what a leader sent leave holes between segments that are no loss.
            Some(next) if found.tail.is_some() || !self.options.compact => next,
            Some(_) => reached,
            // Its checksum is right: it is not torn, whatever its place is.
            None => match found.tail {
                Some(tail) if tail.offsets > 0 => self.start.recovery_point.max(reached.plus(tail.offsets)),
                _ => self.start.recovery_point,
            },
        };
        let mut end = reached;
        let mut kept = found.position;
        if lost_to > reached {
            end = lost_to;
            match found.tail {
                Some(_) => {
                    holes = holes_of(&found, size, Some(lost_to));
                    kept = size;
                }
                None => self.lose(reached, lost_to),
            }
        } else if found.tail.is_some() {
            self.recovery.bytes_cut += size - found.position;
            segment.log.truncate(found.position)?;
            segment.log.sync()?;
        }
        segment.publish_size(kept);
        if !holes.is_empty() {
            segment.set_holes(holes);
        }
        Ok(Loaded { active, end, reached })
    }

    fn lose(&mut self, from: Offset, to: Offset) {
        let to = to.max(from.plus(1));
        error!(directory = %self.directory.display(), %from, %to, "records are missing on the disk");
        self.lost.push(DamagedRange { from, to });
    }

    /// Whether any batch in there is sound.
    fn holds_sound(&self, file: &D::File, size: u64, base: Offset) -> io::Result<bool> {
        let rules = Rules {
            epochs: Some(&self.known_epochs),
            ..Rules::bare(base)
        };
        let found = survey(file, size, rules, Check::Checksums, |_, _| Ok(()))?;
        Ok(found.next_offset > base)
    }

    /// Reads the segments again that are known to be damaged, and remembers what is missing altogether.
    fn look_again(&mut self, recorded: &Recorded, opened: &Opened<D::File>) -> io::Result<()> {
        if *recorded == Recorded::Useless {
            warn!(directory = %self.directory.display(), "the list of what is damaged is of no use: all is read again");
        }
        for segment in &opened.segments {
            let is_named = match recorded {
                Recorded::Lines(lines) => lines
                    .iter()
                    .any(|line| line.segment == segment.base_offset && !line.bytes.is_empty()),
                Recorded::Useless => true,
            };
            // Those that were just read have their holes.
            if !is_named || !segment.holes().is_empty() {
                continue;
            }
            let limit = segment.limit().unwrap_or(opened.end);
            let holes = examine(segment, limit, &self.epochs, |_| Ok(()))?.holes;
            self.recovery.bytes_read += segment.size();
            if holes.is_empty() {
                warn!(file = %Kind::Log.path(self.directory, segment.base_offset).display(), "found sound again");
            } else {
                segment.set_holes(holes);
            }
        }
        let Recorded::Lines(lines) = recorded else {
            return Ok(());
        };
        for line in lines.iter().filter(|line| line.bytes.is_empty()) {
            let known = self
                .lost
                .iter()
                .any(|range| range.from <= line.range.from && line.range.to <= range.to);
            let holder = opened.segments.iter().rfind(|it| it.base_offset <= line.range.from);
            let is_there = match holder.map(|segment| segment.find(line.range.from, Wait::Allowed)) {
                Some(Ok(Some(found))) => found.header.first_offset() < line.range.to,
                _ => false,
            };
            if !known && !is_there && line.range.to <= opened.end {
                self.lost.push(line.range);
            }
        }
        Ok(())
    }

    /// Where the log begins. Sound epochs, which are cut at the same place and before, know it as well as the checkpoint: no
    /// records are hidden, and none that were deleted come back, because of a flipped digit there.
    fn log_start(&self, opened: &Opened<D::File>) -> io::Result<Offset> {
        let first = opened
            .segments
            .first()
            .map_or(Offset::ZERO, |segment| segment.base_offset);
        let recorded = self.start.log_start_offset;
        // One that lies outside of the log is of another life of it.
        let recorded = if recorded > opened.end {
            first
        } else {
            recorded.max(first)
        };
        let oldest = self.known_epochs.entries().first().filter(|_| self.epochs_trusted);
        let Some(oldest) = oldest
            .map(|entry| entry.start_offset)
            .filter(|oldest| *oldest != recorded)
        else {
            return Ok(recorded);
        };
        if oldest > recorded {
            // A batch before it whose epoch is not among them was deleted.
            let before = match Offset::from_wire(oldest.get() - 1) {
                Some(before) => header_at(&opened.segments, before)?,
                None => None,
            };
            let is_cut = before.is_some_and(|it| it.first_offset() < oldest && it.leader_epoch().is_some());
            if !is_cut || oldest > opened.end {
                return Ok(recorded);
            }
        }
        let (directory, log_start) = (self.directory.display(), oldest.max(first));
        warn!(%directory, %recorded, %log_start, "the recorded start of the log is not that of its epochs");
        Ok(log_start)
    }

    /// The epochs of the checkpoint, if their checksum or the batches below `end` bear them out.
    fn fitting(
        &mut self,
        epochs: Option<LeaderEpochs>,
        segments: &[Arc<Segment<D::File>>],
        end: Offset,
    ) -> io::Result<Option<LeaderEpochs>> {
        let Some(epochs) = epochs else {
            self.epochs_trusted = false;
            return Ok(None);
        };
        if self.epochs_trusted {
            return Ok(Some(epochs));
        }
        for (index, entry) in epochs.entries().iter().enumerate() {
            let start = entry.start_offset;
            if start >= end {
                break;
            }
            let first = header_at(segments, start)?.filter(|first| first.last_offset() < end);
            let is_first = first.is_none_or(|first| {
                first.leader_epoch().is_none_or(|epoch| epoch == entry.epoch)
                    && (first.first_offset() >= start || index == 0)
            });
            // A later start would give the epoch's first batches to the one before.
            let before = match Offset::from_wire(start.get() - 1) {
                Some(last) if index > 0 => header_at(segments, last)?,
                _ => None,
            };
            let before = before.filter(|before| before.last_offset() < start);
            let is_later = before.is_none_or(|before| before.leader_epoch().is_none_or(|epoch| epoch < entry.epoch));
            if !is_first || !is_later {
                warn!(
                    directory = %self.directory.display(),
                    leader_epoch = %entry.epoch,
                    offset = %start,
                    "the checkpoint of the leader epochs is not that of the log: made again from its batches"
                );
                return Ok(None);
            }
        }
        // Of an earlier time, it lacks the last.
        let last = Offset::from_wire(end.get() - 1);
        let header = last.map_or(Ok(None), |last| header_at(segments, last))?;
        let header = header.filter(|header| header.last_offset() < end);
        let is_known = header.is_none_or(|header| {
            let epoch = header.leader_epoch();
            epoch.is_none() || epoch == epochs.epoch_of(header.last_offset())
        });
        Ok(Some(epochs).filter(|_| is_known))
    }

    /// Opens a segment that is not written to any more.
    fn open_sealed(&mut self, base: Offset) -> io::Result<Arc<Segment<D::File>>> {
        let segment = self.open_indexed(base)?;
        segment.set_bases(self.open_bases(base, segment.size())?);
        Ok(segment)
    }

    /// A segment that is to be read again, for a look at it before that.
    fn open_unread(&self, base: Offset) -> io::Result<Arc<Segment<D::File>>> {
        let log = self.disk.open(&Kind::Log.path(self.directory, base), OpenMode::Read)?;
        let size = log.size_bytes()?;
        let indexes = Indexes::Memory {
            offsets: Vec::new(),
            times: Vec::new(),
        };
        Ok(Arc::new(Segment::new(base, log, size, indexes)))
    }

    /// The list of where the batches of a cleaned segment begin. One of another size is thrown away.
    fn open_bases(&self, base: Offset, size: u64) -> io::Result<Option<BatchBases<D::File>>> {
        if self.listed.binary_search(&base).is_err() {
            return Ok(None);
        }
        let path = Kind::Bases.path(self.directory, base);
        let bases = BatchBases::open(self.disk.open(&path, OpenMode::Read)?, size)?;
        if bases.is_none() {
            warn!(path = %path.display(), "the list of where batches begin is not of this segment");
            // If it comes back it is removed again.
            self.disk.remove_file(&path)?;
        }
        Ok(bases)
    }

    /// Opens a segment with its indexes. Those that cannot be right are made again.
    fn open_indexed(&mut self, base: Offset) -> io::Result<Arc<Segment<D::File>>> {
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
        survey(
            &segment.log,
            size,
            Rules::bare(base),
            Check::Headers,
            |header, position| {
                active.note(header, position, self.options);
                Ok(())
            },
        )?;
        self.recovery.indexes_rebuilt += 1;
        self.names_changed = true;
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
            reached: end.next_offset,
        }))
    }

    /// The epochs of the checkpoint; `None` if it is of no use.
    fn read_epochs(&mut self) -> io::Result<Option<LeaderEpochs>> {
        let Some(text) = self.read_if_there(LEADER_EPOCH_CHECKPOINT)? else {
            return Ok(None);
        };
        let checksum = self.read_if_there(LEADER_EPOCH_CHECKSUM)?;
        self.epochs_trusted = checksum.is_some_and(|checksum| checksum == checksum_of_epochs(&text).as_bytes());
        Ok(std::str::from_utf8(&text).ok().and_then(LeaderEpochs::from_text))
    }

    fn read_if_there(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        match read_small_file(self.disk, &self.directory.join(name), CHECKPOINT_BYTES_MAX) {
            Ok(bytes) => Ok(Some(bytes)),
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

    /// The epochs of a log that ends at `end`: those of the checkpoint, and behind them those of the batches that were read.
    /// Where no checksum vouches for the checkpoint, what it says from `known_to` on may be of a tail that is gone.
    fn finish_epochs(&mut self, on_disk: Option<LeaderEpochs>, known_to: Offset, end: Offset) -> io::Result<()> {
        let mut epochs = on_disk.clone().unwrap_or_default();
        match (&on_disk, self.epochs_trusted) {
            (Some(_), true) => {
                epochs.truncate_from_end(end);
                if epochs.entries().is_empty() {
                    self.replay.assign_to(&mut epochs, Offset::ZERO);
                }
            }
            (Some(_), false) => {
                epochs.truncate_from_end(known_to.min(end));
                self.replay.assign_to(&mut epochs, known_to.min(end));
            }
            (None, _) => self.replay.assign_to(&mut epochs, Offset::ZERO),
        }
        let is_new = !self.epochs_trusted || on_disk.as_ref() != Some(&epochs);
        if is_new && !(on_disk.is_none() && epochs.entries().is_empty()) {
            write_epochs(self.disk, self.directory, &epochs)?;
        }
        self.epochs = epochs;
        Ok(())
    }

    /// The producers of the batches below `end`: from the latest snapshot, and what `segments` hold behind it.
    fn load_producers(&mut self, segments: &[Arc<Segment<D::File>>], end: Offset) -> io::Result<()> {
        let (mut producers, from) = load_snapshot(self.disk, self.directory, end)?;
        replay_producers(segments, from, end, &mut producers)?;
        self.snapshot_at = from;
        self.replay.producers = producers;
        Ok(())
    }
}

/// The header of the first batch that ends at or above `offset`; `None` also where damage hides it.
fn header_at<F: File>(segments: &[Arc<Segment<F>>], offset: Offset) -> io::Result<Option<BatchHeader>> {
    let after = segments.partition_point(|segment| segment.base_offset <= offset);
    let Some(at) = after.checked_sub(1) else {
        return Ok(None);
    };
    match segments[at].find(offset, Wait::Allowed) {
        Ok(found) => Ok(found.map(|found| found.header)),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
