//! What is to be cleaned: how much of a log is dirty, whether it is time, and which segments become one.

use std::io;
use std::sync::Arc;

use model::{Offset, Timestamp};

use super::CompactionOptions;
use crate::disk::{Disk, File};
use crate::options::LogOptions;
use crate::partition_log::PartitionLog;
use crate::scan::{Check, Window};
use crate::segment::{Indexes, Segment, Wait};

/// A log as the cleaner looks at it, without its lock.
pub struct View<D: Disk> {
    segments: Arc<Vec<Arc<Segment<D::File>>>>,
    options: CompactionOptions,
    log_start: Offset,
    log_end: Offset,
    /// Nothing from here on is cleaned.
    bound: Offset,
}

/// How much of a log is dirty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Backlog {
    /// Where the dirty part begins.
    pub first_dirty: Offset,
    /// Where what may be cleaned now ends; the base of a segment.
    pub end: Offset,
    pub clean_bytes: u64,
    /// The bytes of the dirty segments below `end`.
    pub cleanable_bytes: u64,
    /// The bytes from `end` on: the active segment, what is too young, not committed or of an open transaction.
    pub held_back_bytes: u64,
    /// A record of the dirty part is older than `max.compaction.lag.ms`.
    pub overdue: bool,
}

impl Backlog {
    /// The dirty share of what may be cleaned.
    #[must_use]
    pub fn dirty_ratio(&self) -> f64 {
        let total = self.clean_bytes + self.cleanable_bytes;
        if total == 0 {
            return 0.0;
        }
        self.cleanable_bytes as f64 / total as f64
    }

    /// Whether cleaning is due.
    #[must_use]
    pub fn is_due(&self, options: &CompactionOptions) -> bool {
        self.cleanable_bytes > 0 && (self.overdue || self.dirty_ratio() > options.dirty_ratio_min)
    }
}

impl<D: Disk> PartitionLog<D> {
    /// What the cleaner needs to know to choose; `None` where the log is not for it: not compacted, offline, damaged.
    #[must_use]
    pub fn compaction_view(&self, high_watermark: Offset) -> Option<View<D>> {
        if !self.options().compact || self.is_offline() || !self.damage().is_empty() {
            return None;
        }
        let segments = self.segments();
        let active = segments.last()?.base_offset;
        let unstable = self.producers().first_unstable_offset().unwrap_or(Offset::MAX);
        Some(View {
            options: self.options().compaction,
            log_start: self.log_start_offset(),
            log_end: self.log_end_offset(),
            bound: high_watermark.min(unstable).min(active),
            segments,
        })
    }
}

impl<D: Disk> View<D> {
    #[must_use]
    pub fn options(&self) -> &CompactionOptions {
        &self.options
    }

    /// How much is dirty, if everything below `cleaned_to` was cleaned before: what the checkpoint says. One that lies
    /// outside of the log is of another life of it.
    ///
    /// # Errors
    /// As the disk says.
    pub fn backlog(&self, cleaned_to: Option<Offset>, now: Timestamp) -> io::Result<Backlog> {
        let first_dirty = cleaned_to
            .filter(|offset| *offset >= self.log_start && *offset <= self.log_end)
            .unwrap_or(self.log_start);
        let ends = ends(&self.segments, self.log_end);
        let mut backlog = Backlog {
            first_dirty,
            end: self.segments.first().map_or(self.log_start, |first| first.base_offset),
            clean_bytes: 0,
            cleanable_bytes: 0,
            held_back_bytes: 0,
            overdue: false,
        };
        let mut held_back = false;
        for (segment, end) in self.segments.iter().zip(ends) {
            let is_dirty = end > first_dirty;
            // Nothing is cleaned behind what is held back.
            held_back = held_back || end > self.bound || is_dirty && self.is_young(segment, now)?;
            if held_back {
                backlog.held_back_bytes += segment.size();
                continue;
            }
            backlog.end = end;
            if is_dirty {
                backlog.cleanable_bytes += segment.size();
                backlog.overdue |= self.is_overdue(segment, now)?;
            } else {
                backlog.clean_bytes += segment.size();
            }
        }
        Ok(backlog)
    }

    fn is_young(&self, segment: &Segment<D::File>, now: Timestamp) -> io::Result<bool> {
        let lag_ms = self.options.lag_ms_min;
        if lag_ms <= 0 {
            return Ok(false);
        }
        let largest = segment.largest_timestamp(Wait::Allowed)?;
        Ok(largest.is_some_and(|largest| largest.millis() > now.millis().saturating_sub(lag_ms)))
    }

    fn is_overdue(&self, segment: &Segment<D::File>, now: Timestamp) -> io::Result<bool> {
        let Some(lag_ms) = self.options.lag_ms_max else {
            return Ok(false);
        };
        let first = Window::new(&segment.log, segment.size(), Check::Headers).header(0)?;
        Ok(first
            .is_some_and(|first| first.max_timestamp > 0 && first.max_timestamp < now.millis().saturating_sub(lag_ms)))
    }
}

/// The offset behind each segment.
pub(super) fn ends<F>(segments: &[Arc<Segment<F>>], log_end: Offset) -> impl Iterator<Item = Offset> + '_ {
    let next = segments.iter().skip(1).map(|segment| segment.base_offset);
    next.chain(std::iter::once(log_end))
}

/// How many of the first of `segments` (each with the offset behind it) become one: they and their indexes are no larger
/// than one segment may be, and offsets fit into its indexes. At least one if there is any.
pub(super) fn group_size<F: File>(segments: &[(Arc<Segment<F>>, Offset)], options: &LogOptions) -> io::Result<usize> {
    let Some((first, _)) = segments.first() else {
        return Ok(0);
    };
    let (mut log, mut offsets, mut times) = (0, 0, 0);
    let index_bytes_max = u64::from(options.index_size_bytes_max);
    for (count, (segment, end)) in segments.iter().enumerate() {
        let (offset_bytes, time_bytes) = segment.with_indexes(|indexes| match indexes {
            Indexes::Files { offsets, times } => Ok((offsets.size_bytes()?, times.size_bytes()?)),
            Indexes::Memory { .. } => Ok::<_, io::Error>((0, 0)),
        })?;
        log += segment.size();
        offsets += offset_bytes;
        times += time_bytes;
        let fits = log <= u64::from(options.segment_size_bytes)
            && offsets <= index_bytes_max
            && times <= index_bytes_max
            && end.since(first.base_offset) <= i64::from(i32::MAX);
        if count > 0 && !fits {
            return Ok(count);
        }
    }
    Ok(segments.len())
}
