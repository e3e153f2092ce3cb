//! Which batches belong to aborted transactions, and which markers have nothing left to mark.
//!
//! The log's own markers tell: a transaction of a producer reaches from its first batch behind the last marker to the
//! next one. They are looked for, in the headers of the whole log, when the first transactional batch is met; a log
//! without such batches is spared that.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use model::Offset;
use model::record_batch::{BatchHeader, ControlType};

use super::{CleanError, Pace};
use crate::disk::File;
use crate::recovery::visit_headers;
use crate::segment::Segment;

/// No log that is cleaned has more.
const ABORTED_MAX: usize = 4_000_000;

pub(super) struct Transactions<F> {
    segments: Arc<Vec<Arc<Segment<F>>>>,
    log_end: Offset,
    aborted: Option<Aborted>,
    /// Producers of whose current transaction a batch was met while rewriting.
    observed: BTreeSet<i64>,
}

/// Of each producer, first offset and marker of its aborted transactions, ascending.
type Aborted = BTreeMap<i64, Vec<(Offset, Offset)>>;

impl<F: File> Transactions<F> {
    pub(super) fn new(segments: Arc<Vec<Arc<Segment<F>>>>, log_end: Offset) -> Self {
        Transactions {
            segments,
            log_end,
            aborted: None,
            observed: BTreeSet::new(),
        }
    }

    /// Whether the batch is part of an aborted transaction.
    pub(super) fn is_aborted(&mut self, header: &BatchHeader, pace: &mut Pace<'_>) -> Result<bool, CleanError> {
        if !header.attributes.is_transactional() || header.attributes.is_control() {
            return Ok(false);
        }
        if self.aborted.is_none() {
            self.aborted = Some(find_aborted(&self.segments, self.log_end, pace)?);
        }
        let ranges = self
            .aborted
            .as_ref()
            .and_then(|aborted| aborted.get(&header.producer_id));
        Ok(ranges.is_some_and(|ranges| {
            let after = ranges.partition_point(|(first, _)| *first <= header.first_offset());
            after
                .checked_sub(1)
                .is_some_and(|at| header.last_offset() < ranges[at].1)
        }))
    }

    /// Notes a batch that was met while the log is rewritten from its start.
    pub(super) fn observe(&mut self, header: &BatchHeader) {
        if header.attributes.is_transactional() && !header.attributes.is_control() {
            self.observed.insert(header.producer_id);
        }
    }

    /// Whether a control batch has nothing left to mark. Its transaction is over.
    pub(super) fn is_bare_marker(&mut self, header: &BatchHeader, marker: Option<ControlType>) -> bool {
        if header.record_count == 0 {
            return true;
        }
        matches!(marker, Some(ControlType::Abort | ControlType::Commit)) && !self.observed.remove(&header.producer_id)
    }
}

fn find_aborted<F: File>(
    segments: &[Arc<Segment<F>>],
    log_end: Offset,
    pace: &mut Pace<'_>,
) -> Result<Aborted, CleanError> {
    let mut open = BTreeMap::new();
    let mut aborted = Aborted::new();
    let mut count = 0;
    let mut stopped = false;
    let visited = visit_headers(segments, Offset::ZERO, log_end, |header, marker| {
        if pace(header.size_bytes().min(crate::scan::HEADER_CHUNK_BYTES_MIN)).is_break() {
            stopped = true;
            return Err(io::ErrorKind::Interrupted.into());
        }
        if header.attributes.is_control() {
            let first = marker.and_then(|_| open.remove(&header.producer_id));
            if let (Some(first), Some((ControlType::Abort, _))) = (first, marker) {
                aborted
                    .entry(header.producer_id)
                    .or_default()
                    .push((first, header.first_offset()));
                count += 1;
            }
        } else if header.attributes.is_transactional() {
            open.entry(header.producer_id).or_insert(header.first_offset());
        }
        if count > ABORTED_MAX {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        Ok(())
    });
    match visited {
        Ok(()) => Ok(aborted),
        Err(_) if stopped => Err(CleanError::Stopped),
        Err(_) if count > ABORTED_MAX => Err(CleanError::TooManyAborted(ABORTED_MAX)),
        Err(error) => Err(error.into()),
    }
}
