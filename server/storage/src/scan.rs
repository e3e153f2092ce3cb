//! Walks the batches of a log file from front to back, in large sequential reads.
//!
//! The walk ends at the first bytes that are no batch in order. What a crash or a worn disk left there, and whether anything
//! sound comes behind, is [`crate::survey`]'s to tell.

use std::io;

use model::Offset;
use model::record_batch::{BatchHeader, CHECKSUMMED_FROM, DecompressionLimit, HEADER_BYTES};

use crate::disk::{File, read_exact_at};

/// Transaction markers are a few bytes.
pub(crate) const MARKER_LIMIT: DecompressionLimit = DecompressionLimit::bytes(4096);
/// What is read at a time: it is still in the processor's cache when the checksums are taken.
const CHUNK_BYTES: usize = 256 << 10;
/// How much is read where only headers are wanted and batches may be far apart: as much as lies between two index entries.
/// Where what is wanted next follows what was read, twice as much each time.
pub(crate) const HEADER_CHUNK_BYTES_MIN: usize = 4 << 10;
/// Up to this.
const HEADER_CHUNK_BYTES_MAX: usize = 64 << 10;

/// How many candidates a search for a sound batch takes the checksum of before it gives up.
pub(crate) const CANDIDATES_MAX: u32 = 10_000;
/// Where the format's version stands in a header, and the only one there is.
const MAGIC_AT: usize = 16;
const MAGIC: u8 = 2;

/// How thoroughly a walk looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Check {
    Headers,
    Checksums,
}

/// Where a walk ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct End {
    /// Behind the last sound batch.
    pub(crate) position: u64,
    /// The offset after its last record, or where the walk began.
    pub(crate) next_offset: Offset,
    /// Whether bytes follow that are no batch in order.
    pub(crate) faulty: bool,
}

/// Reads `file` through a buffer that is filled at most once per chunk.
pub(crate) struct Window<'f, F> {
    file: &'f F,
    size: u64,
    buffer: Vec<u8>,
    start: u64,
    chunk: usize,
    /// Where batches are small, what is read at a time grows.
    grows: bool,
    nowait: bool,
}

impl<'f, F: File> Window<'f, F> {
    pub(crate) fn new(file: &'f F, size: u64, check: Check) -> Self {
        let chunk = match check {
            Check::Headers => HEADER_CHUNK_BYTES_MIN,
            Check::Checksums => CHUNK_BYTES,
        };
        Window {
            file,
            size,
            buffer: Vec::new(),
            start: 0,
            chunk,
            grows: check == Check::Headers,
            nowait: false,
        }
    }

    /// A window that reads so much at a time.
    pub(crate) fn chunk(mut self, bytes: usize) -> Self {
        self.chunk = bytes;
        self.grows = false;
        self
    }

    /// A window that fails with `WouldBlock` rather than wait for the device.
    pub(crate) fn nowait(mut self, nowait: bool) -> Self {
        self.nowait = nowait;
        self
    }

    /// At least `wanted` bytes from `position` on if the file has them, else what it has.
    #[inline]
    pub(crate) fn at(&mut self, position: u64, wanted: usize) -> io::Result<&[u8]> {
        let available = usize::try_from(self.size.saturating_sub(position)).unwrap_or(usize::MAX);
        let wanted = wanted.min(available);
        let end = self.start + self.buffer.len() as u64;
        if position < self.start || position + wanted as u64 > end {
            if self.grows {
                let follows = !self.buffer.is_empty() && position >= self.start && position <= end;
                self.chunk = match follows {
                    true => (self.chunk * 2).min(HEADER_CHUNK_BYTES_MAX),
                    false => HEADER_CHUNK_BYTES_MIN,
                };
            }
            let size = available.min(self.chunk.max(wanted));
            self.buffer.resize(size, 0);
            self.start = position;
            if self.nowait {
                let read = self.file.read_at_nowait(&mut self.buffer, position);
                let read = read.inspect_err(|_| self.buffer.clear())?;
                self.buffer.truncate(read);
                if read < wanted {
                    self.buffer.clear();
                    return Err(io::ErrorKind::WouldBlock.into());
                }
            } else {
                read_exact_at(self.file, &mut self.buffer, position).inspect_err(|_| self.buffer.clear())?;
            }
        }
        let from = usize::try_from(position - self.start)
            .unwrap_or(usize::MAX)
            .min(self.buffer.len());
        Ok(&self.buffer[from..])
    }

    /// The header at `position`; `None` if the bytes there are none, or the batch is longer than the file.
    #[inline]
    pub(crate) fn header(&mut self, position: u64) -> io::Result<Option<BatchHeader>> {
        let size = self.size;
        let bytes = self.at(position, HEADER_BYTES)?;
        match BatchHeader::parse(bytes) {
            Ok(header) if header.size_bytes() as u64 <= size - position => Ok(Some(header)),
            _ => Ok(None),
        }
    }

    /// The first header from `from` on, byte by byte, whose batch ends within the file and for which `fits` holds; and where
    /// it is. Its checksum is not taken.
    pub(crate) fn find_header(
        &mut self,
        from: u64,
        fits: impl Fn(&BatchHeader) -> bool,
    ) -> io::Result<Option<(BatchHeader, u64)>> {
        let size = self.size;
        let mut at = from;
        while at + HEADER_BYTES as u64 <= size {
            let bytes = self.at(at, HEADER_BYTES)?;
            let starts = bytes.len() + 1 - HEADER_BYTES;
            let found = (0..starts).find_map(|start| {
                if bytes[start + MAGIC_AT] != MAGIC {
                    return None;
                }
                let header = BatchHeader::parse(&bytes[start..]).ok()?;
                let position = at + start as u64;
                let is_whole = header.size_bytes() as u64 <= size - position;
                (is_whole && fits(&header)).then_some((header, position))
            });
            if found.is_some() {
                return Ok(found);
            }
            at += starts as u64;
        }
        Ok(None)
    }

    /// Whether the checksum of the batch at `position` is right. Batches larger than a chunk are read piecewise.
    #[inline]
    pub(crate) fn is_sound(&mut self, header: &BatchHeader, position: u64) -> io::Result<bool> {
        let mut at = position + CHECKSUMMED_FROM as u64;
        let end = position + header.size_bytes() as u64;
        let mut crc = 0;
        while at < end {
            let left = usize::try_from(end - at).unwrap_or(usize::MAX);
            let bytes = self.at(at, 1)?;
            let part = &bytes[..bytes.len().min(left)];
            if part.is_empty() {
                return Ok(false);
            }
            crc = crc32c::crc32c_append(crc, part);
            at += part.len() as u64;
        }
        Ok(crc == header.crc)
    }
}

/// Visits the batches of `file` from `position` on, where the next offset is `expected`, up to `size` bytes.
pub(crate) fn scan<F: File>(
    file: &F,
    position: u64,
    size: u64,
    expected: Offset,
    check: Check,
    mut visit: impl FnMut(&BatchHeader, u64) -> io::Result<()>,
) -> io::Result<End> {
    let mut window = Window::new(file, size, check);
    let mut end = End {
        position,
        next_offset: expected,
        faulty: false,
    };
    while end.position < size {
        let header = match window.header(end.position)? {
            Some(header) if header.first_offset() >= end.next_offset => header,
            _ => {
                end.faulty = true;
                break;
            }
        };
        if check == Check::Checksums && !window.is_sound(&header, end.position)? {
            end.faulty = true;
            break;
        }
        visit(&header, end.position)?;
        end.position += header.size_bytes() as u64;
        end.next_offset = header.next_offset();
    }
    Ok(end)
}

/// Whether `file` begins with a sound batch of an offset from `expected` on.
pub(crate) fn begins_sound<F: File>(file: &F, size: u64, expected: Offset) -> io::Result<bool> {
    let mut window = Window::new(file, size, Check::Checksums);
    match window.header(0)? {
        Some(header) if header.first_offset() >= expected => window.is_sound(&header, 0),
        _ => Ok(false),
    }
}
