//! Reads a log from any thread, without the writer's lock.
//!
//! ```text
//! log start ……………… high watermark ………… log end
//!      ^ from                ^ up_to (the caller's bound)
//! ```
//! A reader sees a snapshot of the segment list and whole batches below the log's end. What it hands out has had its
//! checksum taken, and stands where offsets and epochs say that it should: damage is an error, never an answer. Where a
//! reader comes upon bytes that cannot be right, the segment is examined and what is not sound in it quarantined; then it
//! looks again. A segment that is deleted meanwhile stays readable to those who
//! hold it.

mod buffers;
mod timestamps;

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use arc_swap::ArcSwap;
use bytes::Bytes;
use model::record_batch::{Batch, BatchError, BatchHeader};
use model::{LeaderEpoch, Offset};

use crate::disk::{Disk, File};
use crate::leader_epochs::{EpochEnd, EpochSpan, EpochStart, LeaderEpochs};
use crate::quarantine::Quarantine;
use crate::segment::{Segment, Wait, fill};

pub use timestamps::TimestampOffset;

/// No answer is larger, whatever is asked for (but for one batch that is).
const READ_BYTES_MAX: usize = 64 << 20;
/// How often a read is tried again when the log was truncated under it.
const ATTEMPTS_MAX: u32 = 3;

/// Offsets whose records are damaged on the disk: kept as evidence, never served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DamagedRange {
    pub from: Offset,
    /// The first sound offset behind it.
    pub to: Offset,
}

/// Why a read got nothing.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("offset {offset} is outside of the log, which has {log_start_offset} to {log_end_offset}")]
    OutOfRange {
        offset: Offset,
        log_start_offset: Offset,
        log_end_offset: Offset,
    },
    #[error("records from offset {0} on are damaged on the disk")]
    Corrupt(Offset),
    /// Only where waiting was refused: ask again on a thread that may wait.
    #[error("the disk would have to be waited for")]
    WouldBlock,
    #[error("reading the log")]
    Io(#[source] io::Error),
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::WouldBlock {
            ReadError::WouldBlock
        } else {
            ReadError::Io(error)
        }
    }
}

/// What to read.
#[derive(Clone, Copy, Debug)]
pub struct ReadRequest {
    /// The first wanted offset; the batch that holds it is returned whole.
    pub from: Offset,
    pub max_bytes: usize,
    /// Only batches that end below this offset are returned.
    pub up_to: Offset,
    /// Return the first batch even if it alone is larger than `max_bytes`.
    pub min_one: bool,
    pub wait: Wait,
}

/// Whole batches, one behind the other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Read {
    pub bytes: Bytes,
    /// The base offset of the first batch; the asked offset if there is none.
    pub first_offset: Offset,
    /// The offset behind the last batch; the asked offset if there is none.
    pub next_offset: Offset,
}

/// Why one look at the log got nothing.
pub(crate) enum Trouble<F> {
    Final(ReadError),
    /// This segment has bytes that cannot be right.
    Suspect(Arc<Segment<F>>),
}

impl<F> From<ReadError> for Trouble<F> {
    fn from(error: ReadError) -> Self {
        Trouble::Final(error)
    }
}

/// What reader and writer share.
pub(crate) struct Shared<D: Disk> {
    pub(crate) segments: ArcSwap<Vec<Arc<Segment<D::File>>>>,
    pub(crate) log_start: AtomicI64,
    pub(crate) log_end: AtomicI64,
    pub(crate) synced: AtomicI64,
    /// Counts changes of what was already readable.
    pub(crate) truncations: AtomicU64,
    pub(crate) epochs: RwLock<LeaderEpochs>,
    pub(crate) damage: ArcSwap<Vec<DamagedRange>>,
    pub(crate) offline: AtomicBool,
    pub(crate) quarantine: Quarantine<D>,
}

/// The read side of a log; clones are cheap.
pub struct LogReader<D: Disk> {
    shared: Arc<Shared<D>>,
}

impl<D: Disk> Clone for LogReader<D> {
    fn clone(&self) -> Self {
        LogReader {
            shared: self.shared.clone(),
        }
    }
}

impl<D: Disk> Shared<D> {
    pub(crate) fn log_start_offset(&self) -> Offset {
        Offset::new(self.log_start.load(Ordering::Acquire))
    }

    pub(crate) fn log_end_offset(&self) -> Offset {
        Offset::new(self.log_end.load(Ordering::Acquire))
    }

    pub(crate) fn synced_offset(&self) -> Offset {
        Offset::new(self.synced.load(Ordering::Acquire))
    }

    pub(crate) fn with_epochs<T>(&self, act: impl FnOnce(&LeaderEpochs) -> T) -> T {
        act(&self.epochs.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<D: Disk> LogReader<D> {
    pub(crate) fn new(shared: Arc<Shared<D>>) -> Self {
        LogReader { shared }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared<D>> {
        &self.shared
    }

    /// The first offset that may be read.
    #[must_use]
    pub fn log_start_offset(&self) -> Offset {
        self.shared.log_start_offset()
    }

    /// The offset of the record to be appended next.
    #[must_use]
    pub fn log_end_offset(&self) -> Offset {
        self.shared.log_end_offset()
    }

    /// Everything below is on the disk for good.
    #[must_use]
    pub fn synced_offset(&self) -> Offset {
        self.shared.synced_offset()
    }

    /// Whether the log's disk has failed: nothing can be written any more.
    #[must_use]
    pub fn is_offline(&self) -> bool {
        self.shared.offline.load(Ordering::Acquire)
    }

    /// What is known to be damaged.
    #[must_use]
    pub fn damage(&self) -> Arc<Vec<DamagedRange>> {
        self.shared.damage.load_full()
    }

    /// The bytes of all segments.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.shared.segments.load().iter().map(|segment| segment.size()).sum()
    }

    /// How many bytes of log stand before `offset`, by whole batches: for `min_bytes` and lag in bytes.
    ///
    /// # Errors
    /// As [`LogReader::read`].
    pub fn bytes_between(&self, from: Offset, to: Offset, wait: Wait) -> Result<u64, ReadError> {
        Ok(self
            .bytes_before(to, wait)?
            .saturating_sub(self.bytes_before(from, wait)?))
    }

    fn bytes_before(&self, offset: Offset, wait: Wait) -> Result<u64, ReadError> {
        let segments = self.shared.segments.load_full();
        let after = segments.partition_point(|segment| segment.base_offset <= offset);
        let Some(at) = after.checked_sub(1) else { return Ok(0) };
        let before: u64 = segments[..at].iter().map(|segment| segment.size()).sum();
        let within = match segments[at].find(offset, wait)? {
            Some(found) => found.position,
            None => segments[at].size(),
        };
        Ok(before + within)
    }

    /// The leader epoch under which the record at `offset` was written.
    #[must_use]
    pub fn epoch_of(&self, offset: Offset) -> Option<LeaderEpoch> {
        self.shared.with_epochs(|epochs| epochs.epoch_of(offset))
    }

    /// The latest leader epoch, and where it began.
    #[must_use]
    pub fn latest_epoch(&self) -> Option<EpochStart> {
        self.shared.with_epochs(LeaderEpochs::latest)
    }

    /// Where `epoch`, or the greatest known one below it, ended; `None` if it is above all known ones.
    #[must_use]
    pub fn end_of_epoch(&self, epoch: LeaderEpoch) -> Option<EpochEnd> {
        let log_end = self.log_end_offset();
        self.shared.with_epochs(|epochs| epochs.end_of(epoch, log_end))
    }

    /// Whole batches from the one that holds `from` on.
    ///
    /// # Errors
    /// Out of range below the log's start or above its end; corrupt if the first batch is damaged.
    pub fn read(&self, request: ReadRequest) -> Result<Read, ReadError> {
        self.looking(request.from, request.wait, || self.read_once(request))
    }

    /// Looks until there is an answer that stands: again where the log was truncated under the look, and where that came
    /// upon damage, once that is quarantined.
    fn looking<T>(
        &self,
        from: Offset,
        wait: Wait,
        look: impl Fn() -> Result<T, Trouble<D::File>>,
    ) -> Result<T, ReadError> {
        let mut attempts = 1;
        let mut examined: Vec<Offset> = Vec::new();
        loop {
            let before = self.shared.truncations.load(Ordering::Acquire);
            let result = look();
            let is_stale = before != self.shared.truncations.load(Ordering::Acquire) && attempts < ATTEMPTS_MAX;
            match result {
                Ok(found) => return Ok(found),
                Err(Trouble::Final(ReadError::Corrupt(_) | ReadError::Io(_)) | Trouble::Suspect(_)) if is_stale => {
                    attempts += 1;
                }
                Err(Trouble::Final(error)) => return Err(error),
                Err(Trouble::Suspect(_)) if wait == Wait::Refused => return Err(ReadError::WouldBlock),
                Err(Trouble::Suspect(segment)) if examined.contains(&segment.base_offset) => {
                    return Err(ReadError::Corrupt(from));
                }
                // Each segment once, so this ends.
                Err(Trouble::Suspect(segment)) => {
                    self.shared.examine(&segment)?;
                    examined.push(segment.base_offset);
                }
            }
        }
    }

    fn read_once(&self, request: ReadRequest) -> Result<Read, Trouble<D::File>> {
        let from = request.from;
        let nothing = Read {
            bytes: Bytes::new(),
            first_offset: from,
            next_offset: from,
        };
        let (log_start_offset, log_end_offset) = (self.log_start_offset(), self.log_end_offset());
        if from < log_start_offset || from > log_end_offset {
            return Err(ReadError::OutOfRange {
                offset: from,
                log_start_offset,
                log_end_offset,
            }
            .into());
        }
        let up_to = self.bounded_by_damage(from, request.up_to.min(log_end_offset))?;
        if from >= up_to {
            return Ok(nothing);
        }
        let segments = self.shared.segments.load_full();
        let first = segments
            .partition_point(|segment| segment.base_offset <= from)
            .saturating_sub(1);
        for segment in &segments[first..] {
            if segment.base_offset >= up_to {
                break;
            }
            if let Some(read) = self.read_segment(segment, request, up_to)? {
                return Ok(read);
            }
        }
        Ok(nothing)
    }

    /// The end of the sound offsets from `from` on.
    fn bounded_by_damage(&self, from: Offset, up_to: Offset) -> Result<Offset, ReadError> {
        let damage = self.shared.damage.load();
        match damage.iter().find(|range| from < range.to) {
            Some(range) if from >= range.from => Err(ReadError::Corrupt(from)),
            Some(range) => Ok(up_to.min(range.from)),
            None => Ok(up_to),
        }
    }

    /// The wanted batches of one segment; `None` if it ends before them.
    fn read_segment(
        &self,
        segment: &Arc<Segment<D::File>>,
        request: ReadRequest,
        up_to: Offset,
    ) -> Result<Option<Read>, Trouble<D::File>> {
        let Some(first) = sound(segment, segment.find(request.from, request.wait))? else {
            return Ok(None);
        };
        let nothing = Read {
            bytes: Bytes::new(),
            first_offset: request.from,
            next_offset: request.from,
        };
        let needed = first.header.size_bytes();
        let is_beyond = first.header.last_offset() >= up_to;
        if needed > request.max_bytes && !request.min_one && !is_beyond {
            return Ok(Some(nothing));
        }
        let available = usize::try_from(segment.size() - first.position).unwrap_or(usize::MAX);
        // One that may not be read yet is only looked at: whether it is what it says.
        let wanted = if is_beyond { needed } else { request.max_bytes };
        let size = wanted.min(READ_BYTES_MAX).max(needed).min(available);
        let bytes = buffers::filled(size, |buffer| fill(&segment.log, buffer, first.position, request.wait))
            .map_err(ReadError::from)?;
        if is_beyond {
            let is_sound = Batch::split_first(&bytes).is_ok_and(|(batch, _)| batch.check_crc().is_ok());
            return match is_sound {
                true => Ok(Some(nothing)),
                false => Err(Trouble::Suspect(segment.clone())),
            };
        }
        let is_whole = size == available;
        let mut span = self.span(first.header.last_offset());
        let mut rest = &bytes[..];
        let bases = segment.bases();
        let mut cursor = match &bases {
            Some(bases) => Some(
                segment
                    .cursor_at(bases, first.header.first_offset(), request.wait)
                    .map_err(ReadError::from)?,
            ),
            None => None,
        };
        let mut is_placed = |header: &BatchHeader| match &mut cursor {
            Some(cursor) => segment.is_placed(cursor, header).map_err(ReadError::from),
            None => Ok(true),
        };
        let (mut size, mut next_offset) = (0, request.from);
        loop {
            match Batch::split_first(rest) {
                Ok((batch, _)) if batch.header.last_offset() >= up_to => break,
                Ok((batch, after))
                    if (size == 0 || follows(&batch.header, next_offset, after, is_whole))
                        && self.is_of(&mut span, &batch.header)
                        && is_placed(&batch.header)?
                        && batch.check_crc().is_ok() =>
                {
                    size += batch.bytes().len();
                    next_offset = batch.header.next_offset();
                    rest = after;
                }
                // The last one may be cut by the size that was asked for.
                Err(BatchError::Truncated { .. }) if size > 0 => break,
                _ if size == 0 => return Err(Trouble::Suspect(segment.clone())),
                _ => break,
            }
        }
        Ok(Some(Read {
            bytes: bytes.slice(..size),
            first_offset: first.header.first_offset(),
            next_offset,
        }))
    }

    /// The epoch that batches around `offset` have to bear.
    fn span(&self, offset: Offset) -> EpochSpan {
        self.shared.with_epochs(|epochs| epochs.span_of(offset))
    }

    fn is_of(&self, span: &mut EpochSpan, header: &BatchHeader) -> bool {
        if header.last_offset() >= span.until {
            *span = self.span(header.last_offset());
        }
        // No leader has stamped a batch of -1.
        span.epoch
            .is_none_or(|epoch| epoch.get() == header.partition_leader_epoch || header.partition_leader_epoch == -1)
    }
}

/// Whether a batch may stand behind `next_offset`: right there, or where its successor bears a gap out. Without one in
/// sight it has to be looked at again.
#[inline]
fn follows(header: &BatchHeader, next_offset: Offset, after: &[u8], is_whole: bool) -> bool {
    let first = header.first_offset();
    if first <= next_offset {
        return first == next_offset;
    }
    match BatchHeader::parse(after) {
        Ok(next) => next.first_offset() >= header.next_offset(),
        Err(_) => is_whole && after.is_empty(),
    }
}

/// What a look at a segment found; bytes that are no batch in order make it suspect.
fn sound<T, F: File>(segment: &Arc<Segment<F>>, result: io::Result<T>) -> Result<T, Trouble<F>> {
    result.map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => Trouble::Suspect(segment.clone()),
        _ => Trouble::Final(error.into()),
    })
}
