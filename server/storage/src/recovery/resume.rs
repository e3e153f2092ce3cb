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
use crate::segment::{Indexes, Segment};
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
    let segment = Arc::new(Segment::new(segment.base_offset, segment.log.clone(), size, indexes));
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
    let usable = offsets.zip(times).and_then(|(mut offsets, mut times)| {
        offsets.retain(|entry| u64::from(entry.position) < size);
        let last = *offsets.last()?;
        times.retain(|entry| entry.relative_offset <= last.relative_offset);
        Some((last, offsets, times))
    });
    if let Some((last, offsets, times)) = usable {
        let header = window.header(u64::from(last.position))?;
        if let Some(header) =
            header.filter(|header| segment.relative(header.last_offset()) == Some(last.relative_offset))
        {
            segment.with_indexes(|indexes| *indexes = Indexes::Memory { offsets, times });
            let mut active = Active::resume(segment.clone(), now);
            if let Some(first) = first {
                active.set_first_timestamp(first.max_timestamp);
            }
            let from = u64::from(last.position);
            let end = note_all(&mut active, from, size, header.first_offset(), options)?;
            return Ok((active, end));
        }
    }
    let mut active = Active::resume(segment.clone(), now);
    let end = note_all(&mut active, 0, size, segment.base_offset, options)?;
    rewrite_index_files(disk, directory, &mut active)?;
    Ok((active, end))
}

fn note_all<F: File>(
    active: &mut Active<F>,
    from: u64,
    size: u64,
    expected: Offset,
    options: &LogOptions,
) -> io::Result<scan::End> {
    let segment = active.segment.clone();
    scan::scan(
        &segment.log,
        from,
        size,
        expected,
        Check::Headers,
        |header, position| {
            active.note(header, position, options);
            Ok(())
        },
    )
}
