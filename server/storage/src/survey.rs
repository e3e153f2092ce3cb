//! Reads a segment from front to back and tells its sound batches from damage.
//!
//! ```text
//! sound | sound |  hole  | sound |  …  | tail
//!               ^from    ^to           ^ nothing sound from here on
//! ```
//! - What a batch's checksum covers is borne out by it. What it does not cover (base offset, length, leader epoch, magic)
//!   is borne out by the neighbours: batches follow one another without a gap, or, where compaction has left gaps, never
//!   overlap; a segment ends where the next begins; epochs are those of the epoch cache.
//! - Behind a hole the walk goes on where the damaged batch says that it ends. Only if nothing sound is there is a batch
//!   looked for byte by byte, and then it has to be the first of a row that reaches the segment's end, or to have the
//!   offset that follows: records may hold bytes that look like batches.

use std::io;
use std::ops::Range;

use model::Offset;
use model::record_batch::{BatchHeader, HEADER_BYTES};

use crate::batch_bases::Bases;
use crate::disk::File;
use crate::leader_epochs::{EpochSpan, LeaderEpochs};
use crate::scan::{CANDIDATES_MAX, Check, Window};
use crate::segment::Segment;

const LENGTH_PREFIX_BYTES: u64 = 12;
const LAST_OFFSET_DELTA_AT: usize = 23;
/// What stands in the epoch's place where no leader has stamped the batch.
const UNSTAMPED: i32 = -1;

/// What is wrong with a stretch of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// No header, or one that reaches beyond the segment.
    NoBatch,
    Checksum,
    /// A sound checksum under offsets that do not fit between the neighbours.
    Order,
    /// A sound checksum under a leader epoch that was not its own.
    Epoch,
}

/// A stretch of bytes that is never served, and the offsets that are missing for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Hole {
    pub(crate) bytes: Range<u64>,
    pub(crate) from: Offset,
    pub(crate) to: Offset,
    pub(crate) fault: Fault,
}

/// What is known of a segment beside its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules<'a> {
    pub(crate) base: Offset,
    /// Where the next segment begins, or the log's known end.
    pub(crate) limit: Option<Offset>,
    /// A log's end that was recorded once: the end of a batch. 0 for none.
    pub(crate) recorded: Offset,
    /// Whether a gap before the very last batch of a log may be one that compaction left.
    pub(crate) gaps: bool,
    /// None where nothing is known of the epochs.
    pub(crate) epochs: Option<&'a LeaderEpochs>,
    /// Batches that end from here on may have a later epoch than any that is known.
    pub(crate) newer_from: Offset,
    /// Where the batches begin, if that was written down.
    pub(crate) bases: Option<&'a Bases>,
}

impl<'a> Rules<'a> {
    /// For a segment of which no more is known than its name.
    pub(crate) fn bare(base: Offset) -> Self {
        Rules {
            base,
            limit: None,
            recorded: Offset::ZERO,
            gaps: true,
            epochs: None,
            newer_from: Offset::ZERO,
            bases: None,
        }
    }

    /// For a segment that ends at `limit` and of which all epochs are known.
    pub(crate) fn sealed(base: Offset, limit: Offset, epochs: &'a LeaderEpochs, bases: Option<&'a Bases>) -> Self {
        Rules {
            limit: Some(limit),
            epochs: Some(epochs),
            newer_from: Offset::MAX,
            bases,
            ..Rules::bare(base)
        }
    }

    /// Whether a batch of these offsets may stand where `expected` is next.
    #[inline]
    fn admit(&self, header: &BatchHeader, expected: Offset) -> bool {
        header.first_offset() >= expected
            && self.limit.is_none_or(|limit| header.next_offset() <= limit)
            && header.last_offset().since(self.base) <= i64::from(i32::MAX)
    }
}

/// What a segment holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Survey {
    pub(crate) holes: Vec<Hole>,
    /// Behind the last sound batch.
    pub(crate) position: u64,
    /// The offset after its last record, or the segment's base.
    pub(crate) next_offset: Offset,
    /// What is wrong from there on, if anything is.
    pub(crate) tail: Option<Tail>,
}

/// The end of a segment behind its last sound batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tail {
    pub(crate) fault: Fault,
    /// How many offsets the batch there has, where it is only its place that is wrong.
    pub(crate) offsets: i64,
}

enum Judgement {
    Sound(BatchHeader),
    Bad(Tail),
}

struct Walk<'a, F> {
    file: &'a F,
    window: Window<'a, F>,
    size: u64,
    rules: Rules<'a>,
    check: Check,
    /// The batch here shares the blame with the one before it.
    suspect_at: Option<u64>,
    /// The epoch of the last batch that was looked up, and from where on it holds: most of a log is of one.
    span: (Offset, EpochSpan),
}

/// Walks over the first `size` bytes of `file`; `visit` is shown the sound batches.
///
/// # Errors
/// As the disk and `visit` say.
pub(crate) fn survey<F: File>(
    file: &F,
    size: u64,
    rules: Rules<'_>,
    check: Check,
    mut visit: impl FnMut(&BatchHeader, u64) -> io::Result<()>,
) -> io::Result<Survey> {
    let mut walk = Walk {
        file,
        window: Window::new(file, size, check),
        size,
        rules,
        check,
        suspect_at: None,
        span: (
            Offset::MAX,
            EpochSpan {
                epoch: None,
                until: Offset::ZERO,
            },
        ),
    };
    let mut holes: Vec<Hole> = Vec::new();
    let (mut position, mut expected) = (0, rules.base);
    // Where the damage begins that the walk is behind of, and its first fault.
    let mut open: Option<(u64, Tail)> = None;
    let mut at = position;
    while at < size {
        match walk.judge(at, expected, open.is_some())? {
            Judgement::Sound(header) => {
                if let Some((from, tail)) = open.take() {
                    holes.push(Hole {
                        bytes: from..at,
                        from: expected,
                        to: header.first_offset(),
                        fault: tail.fault,
                    });
                }
                visit(&header, at)?;
                at += header.size_bytes() as u64;
                (position, expected) = (at, header.next_offset());
            }
            Judgement::Bad(tail) => {
                open.get_or_insert((at, tail));
                match walk.next_candidate(at, expected)? {
                    Some(next) => at = next,
                    None => break,
                }
            }
        }
    }
    Ok(Survey {
        holes,
        position,
        next_offset: expected,
        tail: open.map(|(_, tail)| tail),
    })
}

/// The offset from which on the headers of a segment are not in order; `None` if all are.
///
/// # Errors
/// As the disk says.
pub(crate) fn first_disorder<F: File>(segment: &Segment<F>, end: Offset) -> io::Result<Option<Offset>> {
    let bases = segment.load_bases()?;
    let rules = Rules {
        limit: Some(end),
        bases: bases.as_ref(),
        ..Rules::bare(segment.base_offset)
    };
    let found = survey(&segment.log, segment.size(), rules, Check::Headers, |_, _| Ok(()))?;
    let hole = found.holes.first().map(|hole| hole.from);
    Ok(hole.or(found.tail.map(|_| found.next_offset)))
}

impl<F: File> Walk<'_, F> {
    // Once for each batch of a log: to hand its result over in memory costs as much as all the rest.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "a quarter of the time that recovery takes, measured"
    )]
    fn judge(&mut self, at: u64, expected: Offset, after_hole: bool) -> io::Result<Judgement> {
        let bad = |fault| Ok(Judgement::Bad(Tail { fault, offsets: 0 }));
        let Some(header) = self.window.header(at)? else {
            return bad(Fault::NoBatch);
        };
        if self.check == Check::Checksums && !self.window.is_sound(&header, at)? {
            return bad(Fault::Checksum);
        }
        let misplaced = |fault| {
            let offsets = i64::from(header.last_offset_delta) + 1;
            Ok(Judgement::Bad(Tail { fault, offsets }))
        };
        let behind = at + header.size_bytes() as u64;
        // Nothing but the damage before it can tell where the last batch belongs.
        if self.suspect_at == Some(at) || !self.rules.admit(&header, expected) {
            return misplaced(Fault::Order);
        }
        let is_placed = match self.rules.bases {
            // Those of the damaged ones are passed over.
            Some(bases) if after_hole => bases.next_from(header.first_offset()) == Some(header.first_offset()),
            Some(bases) => bases.next_from(expected) == Some(header.first_offset()),
            None => {
                let explained = behind >= self.size && after_hole;
                header.first_offset() <= expected || explained || self.bears_gap(&header, behind, expected)?
            }
        };
        if !is_placed {
            return misplaced(Fault::Order);
        }
        if !self.is_of_its_epoch(&header) {
            return misplaced(Fault::Epoch);
        }
        Ok(Judgement::Sound(header))
    }

    /// Whether a batch that begins above `expected` may: its successor tells.
    fn bears_gap(&mut self, header: &BatchHeader, behind: u64, expected: Offset) -> io::Result<bool> {
        if behind >= self.size {
            let crosses = expected < self.rules.recorded && self.rules.recorded < header.next_offset();
            return Ok(self.rules.limit.is_some() || self.rules.gaps && !crosses);
        }
        let Some(next) = self.window.header(behind)? else {
            return Ok(true);
        };
        let offsets = i64::from(header.last_offset_delta) + 1;
        if next.first_offset() >= header.next_offset() || next.first_offset() < expected.plus(offsets) {
            return Ok(true);
        }
        if next.first_offset() > expected.plus(offsets) {
            // Either of the two is out of place, and nothing tells which.
            self.suspect_at = Some(behind);
        }
        Ok(false)
    }

    #[inline]
    fn is_of_its_epoch(&mut self, header: &BatchHeader) -> bool {
        let epoch = header.partition_leader_epoch;
        let Some(epochs) = self.rules.epochs else { return true };
        let last = header.last_offset();
        if last < self.span.0 || last >= self.span.1.until {
            self.span = (last, epochs.span_of(last));
        }
        let known = self.span.1.epoch;
        let is_newer = || {
            header.last_offset() >= self.rules.newer_from
                && epochs.latest().is_some_and(|latest| epoch > latest.epoch.get())
        };
        epoch == UNSTAMPED || known.is_none_or(|known| known.get() == epoch) || is_newer()
    }

    /// Where the next batch may stand behind the damaged one at `at`.
    fn next_candidate(&mut self, at: u64, expected: Offset) -> io::Result<Option<u64>> {
        let bytes = self.window.at(at, HEADER_BYTES)?;
        let length = bytes.get(8..12).and_then(|length| length.first_chunk::<4>());
        let length = length.map(|length| i32::from_be_bytes(*length));
        let base = bytes.first_chunk::<8>().map(|base| i64::from_be_bytes(*base));
        let delta = bytes
            .get(LAST_OFFSET_DELTA_AT..)
            .and_then(|bytes| bytes.first_chunk::<4>());
        let claimed = base
            .zip(delta)
            .and_then(|(base, delta)| base.checked_add(i64::from(i32::from_be_bytes(*delta)) + 1));
        let skipped = length
            .and_then(|length| u64::try_from(length).ok())
            .map(|length| at + LENGTH_PREFIX_BYTES + length)
            .filter(|behind| *behind > at + HEADER_BYTES as u64 - 1);
        if let Some(behind) = skipped.filter(|behind| *behind <= self.size)
            && (self.is_batch(behind, expected)?.is_some() || behind == self.size && self.is_length_borne_out(at)?)
        {
            return Ok(Some(behind).filter(|behind| *behind < self.size));
        }
        self.search(at + 1, expected, claimed)
    }

    /// Whether the batch at `at`, which ends with the segment, has its length right: by its checksum.
    fn is_length_borne_out(&mut self, at: u64) -> io::Result<bool> {
        match self.window.header(at)? {
            Some(header) => self.window.is_sound(&header, at),
            None => Ok(false),
        }
    }

    /// The header of the sound batch at `at` of an offset that could follow `expected`.
    fn is_batch(&mut self, at: u64, expected: Offset) -> io::Result<Option<BatchHeader>> {
        match self.window.header(at)? {
            Some(header) if self.rules.admit(&header, expected) && self.window.is_sound(&header, at)? => {
                Ok(Some(header))
            }
            _ => Ok(None),
        }
    }

    /// The first batch from `from` on, byte by byte.
    fn search(&mut self, from: u64, expected: Offset, claimed: Option<i64>) -> io::Result<Option<u64>> {
        let mut at = from;
        let mut second_best = None;
        for _ in 0..CANDIDATES_MAX {
            let rules = self.rules;
            let found = self.window.find_header(at, |header| rules.admit(header, expected))?;
            let Some((header, start)) = found else { break };
            at = start + 1;
            if !self.window.is_sound(&header, start)? {
                continue;
            }
            let end = self.end_of_row(start, expected)?;
            if end == self.size {
                return Ok(Some(start));
            }
            if claimed == Some(header.base_offset) {
                second_best = second_best.or(Some(start));
            }
            at = end.max(at);
        }
        Ok(second_best)
    }

    /// Where the headers that follow one another from `at` on end.
    fn end_of_row(&self, at: u64, expected: Offset) -> io::Result<u64> {
        let mut window = Window::new(self.file, self.size, Check::Headers);
        let (mut at, mut expected) = (at, expected);
        while at < self.size {
            match window.header(at)? {
                Some(header) if self.rules.admit(&header, expected) => {
                    at += header.size_bytes() as u64;
                    expected = header.next_offset();
                }
                _ => break,
            }
        }
        Ok(at)
    }
}
