//! Makes the producers and epochs of a log again: the producers from the latest snapshot and the batches behind it.

use std::io;
use std::path::Path;
use std::sync::Arc;

use model::record_batch::{BatchHeader, ControlType, HEADER_BYTES};
use model::{LeaderEpoch, Offset};
use tracing::warn;

use crate::disk::{Disk, File, read_exact_at, read_small_file};
use crate::file_names::Kind;
use crate::leader_epochs::LeaderEpochs;
use crate::partition_log::marker;
use crate::producer_state::{ProducerStates, SNAPSHOT_BYTES_MAX};
use crate::scan::Check;
use crate::segment::{Segment, Wait};
use crate::survey::{Rules, survey};

/// Only batches up to this size are looked into for a transaction marker; real ones are 78 bytes.
const MARKER_BATCH_BYTES_MAX: usize = 4096;

/// What the batches of a log say while they are read again, so that each is read once.
#[derive(Debug, Default)]
pub(super) struct Replay {
    pub(super) producers: ProducerStates,
    /// The batches' epochs, a run for each change.
    epochs: Vec<Run>,
}

/// Neighbouring batches of one epoch.
#[derive(Clone, Copy, Debug)]
struct Run {
    epoch: LeaderEpoch,
    start: Offset,
    end: Offset,
    batches: u64,
}

impl Replay {
    /// Takes the batch at `position` of `file` in.
    #[inline]
    pub(super) fn note<F: File>(&mut self, file: &F, header: &BatchHeader, position: u64) -> io::Result<()> {
        self.producers.note(header, read_marker(file, header, position)?);
        self.note_epoch(header);
        Ok(())
    }

    #[inline]
    pub(super) fn note_epoch(&mut self, header: &BatchHeader) {
        let Some(epoch) = header.leader_epoch() else { return };
        let (start, end) = (header.first_offset(), header.next_offset());
        match self.epochs.last_mut() {
            Some(run) if run.epoch == epoch => {
                run.end = end;
                run.batches += 1;
            }
            _ => self.epochs.push(Run {
                epoch,
                start,
                end,
                batches: 1,
            }),
        }
    }

    /// Puts the epochs of the batches that end above `from` behind those that are known. Epochs ascend: where they do not,
    /// the shorter run is a damaged batch.
    pub(super) fn assign_to(&self, epochs: &mut LeaderEpochs, from: Offset) {
        let mut runs: Vec<Run> = Vec::new();
        for run in &self.epochs {
            while runs
                .last()
                .is_some_and(|last| last.epoch > run.epoch && last.batches <= run.batches)
            {
                runs.pop();
            }
            match runs.last_mut() {
                Some(last) if last.epoch > run.epoch => {}
                Some(last) if last.epoch == run.epoch => {
                    last.end = run.end;
                    last.batches += run.batches;
                }
                _ => runs.push(*run),
            }
        }
        for run in runs.iter().filter(|run| run.end > from) {
            epochs.assign(run.epoch, run.start);
        }
    }
}

/// The producers of the latest readable snapshot at or below `end`, and its offset; none and 0 if there is none.
pub(crate) fn load_snapshot<D: Disk>(disk: &D, directory: &Path, end: Offset) -> io::Result<(ProducerStates, Offset)> {
    let mut offsets: Vec<Offset> = disk
        .list(directory)?
        .iter()
        .filter_map(|entry| match Kind::parse(&entry.name) {
            Some((Kind::ProducerSnapshot, offset)) if offset <= end => Some(offset),
            _ => None,
        })
        .collect();
    offsets.sort();
    for offset in offsets.into_iter().rev() {
        let path = Kind::ProducerSnapshot.path(directory, offset);
        let bytes = read_small_file(disk, &path, SNAPSHOT_BYTES_MAX)?;
        match ProducerStates::from_snapshot(&bytes) {
            Ok(producers) => return Ok((producers, offset)),
            Err(error) => {
                warn!(path = %path.display(), %error, "producer snapshot is of no use");
                disk.remove_file(&path)?;
            }
        }
    }
    Ok((ProducerStates::default(), Offset::ZERO))
}

/// Notes the producers of the batches from `from` up to `end`.
pub(crate) fn replay_producers<F: File>(
    segments: &[Arc<Segment<F>>],
    from: Offset,
    end: Offset,
    producers: &mut ProducerStates,
) -> io::Result<()> {
    visit_headers(segments, from, end, |header, marker| {
        producers.note(header, marker);
        Ok(())
    })
}

/// Visits the headers of the batches that end at or above `from` and below `end`. Damaged stretches are passed over.
pub(crate) fn visit_headers<F: File>(
    segments: &[Arc<Segment<F>>],
    from: Offset,
    end: Offset,
    mut visit: impl FnMut(&BatchHeader, Option<(ControlType, i32)>) -> io::Result<()>,
) -> io::Result<()> {
    if from >= end {
        return Ok(());
    }
    let first = segments
        .partition_point(|segment| segment.base_offset <= from)
        .saturating_sub(1);
    for segment in &segments[first..] {
        let mut behind = Offset::ZERO;
        let mut take = |header: &BatchHeader, position: u64| {
            let is_wanted = header.last_offset() >= from && header.last_offset() < end;
            if !is_wanted || header.first_offset() < behind {
                return Ok(());
            }
            behind = header.next_offset();
            visit(header, read_marker(&segment.log, header, position)?)
        };
        let mut outcome = Ok(());
        let visited = segment.visit_from(from, Wait::Allowed, |found| {
            outcome = take(&found.header, found.position);
            outcome.is_err()
        });
        match visited {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                let bases = segment.load_bases()?;
                let rules = Rules {
                    limit: segment.limit(),
                    bases: bases.as_ref(),
                    ..Rules::bare(segment.base_offset)
                };
                survey(&segment.log, segment.size(), rules, Check::Checksums, take)?;
            }
            visited => visited?,
        }
        outcome?;
    }
    Ok(())
}

/// What the control batch at `position` of `file` says about its producer's transaction.
#[inline]
pub(crate) fn read_marker<F: File>(
    file: &F,
    header: &BatchHeader,
    position: u64,
) -> io::Result<Option<(ControlType, i32)>> {
    let size = header.size_bytes();
    if !header.attributes.is_control() || size > MARKER_BATCH_BYTES_MAX {
        return Ok(None);
    }
    let mut payload = vec![0; size - HEADER_BYTES];
    read_exact_at(file, &mut payload, position + HEADER_BYTES as u64)?;
    Ok(marker(header, &payload))
}

/// Removes the snapshots of offsets above `offset`; whether there were any.
pub(super) fn remove_snapshots_above<D: Disk>(disk: &D, directory: &Path, offset: Offset) -> io::Result<bool> {
    let mut removed = false;
    for entry in disk.list(directory)? {
        if matches!(Kind::parse(&entry.name), Some((Kind::ProducerSnapshot, of)) if of > offset) {
            disk.remove_file(&directory.join(&entry.name))?;
            removed = true;
        }
    }
    Ok(removed)
}
