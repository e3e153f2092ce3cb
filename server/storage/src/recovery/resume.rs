//! Takes a segment over to be written to: its indexes from the files as far as they are of use, the rest from its batches.

use std::io;
use std::path::Path;
use std::sync::Arc;

use model::{Offset, Timestamp};

use crate::disk::{Disk, File, OpenMode};
use crate::file_names::Kind;
use crate::options::LogOptions;
use crate::partition_log::{Active, rewrite_index_files};
use crate::scan::{self, Check};
use crate::segment::{Indexes, Segment, Wait};
use crate::{offset_index, time_index};

/// Takes a segment over to be written to, after a truncation.
pub(crate) fn reopen_segment<D: Disk>(
    disk: &D,
    directory: &Path,
    segment: &Segment<D::File>,
    size: u64,
    options: &LogOptions,
    now: Timestamp,
) -> io::Result<Active<D::File>> {
    let indexes = Indexes::Memory {
        offsets: Vec::new(),
        times: Vec::new(),
    };
    let damaged = segment.holes();
    let segment = Arc::new(Segment::new(segment.base_offset, segment.log.clone(), size, indexes));
    let kept = damaged.iter().filter(|hole| hole.bytes.start < size).cloned();
    segment.set_holes(kept.collect());
    let (mut active, end) = resume(disk, directory, &segment, size, options, now)?;
    if end.faulty {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "no batch where one should begin",
        ));
    }
    rewrite_index_files(disk, directory, &mut active)?;
    Ok(active)
}

/// Reads the index files of `segment` into memory as far as they are of use, and the batches behind their last entry.
pub(super) fn resume<D: Disk>(
    disk: &D,
    directory: &Path,
    segment: &Arc<Segment<D::File>>,
    size: u64,
    options: &LogOptions,
    now: Timestamp,
) -> io::Result<(Active<D::File>, scan::End)> {
    let entries_max = |entry_bytes: usize| options.index_size_bytes_max as usize / entry_bytes + 1;
    let offsets = match disk.open(
        &Kind::OffsetIndex.path(directory, segment.base_offset),
        OpenMode::ReadWrite,
    ) {
        Ok(file) => offset_index::read_all(&file, entries_max(offset_index::ENTRY_BYTES))?,
        Err(_) => None,
    };
    let times = match disk.open(
        &Kind::TimeIndex.path(directory, segment.base_offset),
        OpenMode::ReadWrite,
    ) {
        Ok(file) => time_index::read_all(&file, entries_max(time_index::ENTRY_BYTES))?,
        Err(_) => None,
    };
    let mut window = scan::Window::new(&segment.log, size, Check::Headers);
    let first = window.header(0)?;
    let in_files = match offsets.zip(times) {
        // They are made with the first batch.
        None if size == 0 => Some((Vec::new(), Vec::new())),
        in_files => in_files,
    };
    let usable = in_files.clone().and_then(|(mut offsets, mut times)| {
        let all = offsets.len();
        offsets.retain(|entry| u64::from(entry.position) < size);
        let last = *offsets.last()?;
        // What is dropped here is found again in the batches behind the last entry, if it was right.
        let dropped = times
            .iter()
            .filter(|entry| entry.relative_offset > last.relative_offset);
        let dropped = dropped
            .map(|entry| entry.timestamp)
            .max()
            .filter(|_| offsets.len() == all);
        times.retain(|entry| entry.relative_offset <= last.relative_offset);
        Some((last, offsets, times, dropped))
    });
    if let Some((last, offsets, times, dropped)) = usable {
        let header = window.header(u64::from(last.position))?;
        if let Some(header) =
            header.filter(|header| segment.relative(header.last_offset()) == Some(last.relative_offset))
        {
            let last_time = times.last().copied();
            segment.with_indexes(|indexes| *indexes = Indexes::Memory { offsets, times });
            let is_borne_out = match last_time {
                Some(entry) => bears_out(segment, &entry),
                None => true,
            };
            let mut active = Active::resume(segment.clone(), now);
            if let Some(first) = first {
                active.set_first_timestamp(first.max_timestamp);
            }
            let from = u64::from(last.position);
            let end = note_all(&mut active, from, size, header.first_offset(), options)?;
            if is_borne_out && dropped.is_none_or(|dropped| dropped <= active.largest_timestamp()) {
                if let Some(in_files) = &in_files {
                    active.finish_if_same(in_files);
                }
                return Ok((active, end));
            }
            segment.with_indexes(|indexes| {
                *indexes = Indexes::Memory {
                    offsets: Vec::new(),
                    times: Vec::new(),
                };
            });
        }
    }
    let mut active = Active::resume(segment.clone(), now);
    let end = note_all(&mut active, 0, size, segment.base_offset, options)?;
    let is_same = in_files.is_some_and(|in_files| active.finish_if_same(&in_files));
    if !is_same {
        rewrite_index_files(disk, directory, &mut active)?;
    }
    Ok((active, end))
}

/// Whether the batch that a time index entry points to has that time. Damage on the way to it is found by others.
fn bears_out<F: File>(segment: &Segment<F>, entry: &time_index::Entry) -> bool {
    let offset = segment.base_offset.plus(i64::from(entry.relative_offset));
    match segment.find(offset, Wait::Allowed) {
        Ok(found) => found.is_some_and(|found| found.header.max_timestamp == entry.timestamp),
        Err(_) => true,
    }
}

fn note_all<F: File>(
    active: &mut Active<F>,
    from: u64,
    size: u64,
    expected: Offset,
    options: &LogOptions,
) -> io::Result<scan::End> {
    let segment = active.segment.clone();
    let holes = segment.holes();
    let mut end = scan::End {
        position: from,
        next_offset: expected,
        faulty: false,
    };
    loop {
        end = scan::scan(
            &segment.log,
            end.position,
            size,
            end.next_offset,
            Check::Headers,
            |header, position| {
                active.note(header, position, options);
                Ok(())
            },
        )?;
        match holes.iter().find(|hole| hole.bytes.start == end.position) {
            Some(hole) if end.faulty => {
                end.position = hole.bytes.end.min(size);
                end.next_offset = hole.to;
            }
            _ => return Ok(end),
        }
    }
}
