//! The batches of one file from front to back, sound or not, and the bytes between them that are none.
//!
//! ```text
//! |batch|batch|broken batch|batch|~~~~~~~~~~~|batch|~~~~|
//!                           ^ follows: so the ^ found by its   ^ the end of the file
//!                             length is right   checksum
//! ```
//! A batch whose checksum is wrong is passed over by its length if that leads to a batch or to the file's end; all else
//! by a search for the next sound one.

use std::io;
use std::ops::Range;
use std::path::Path;

use bytes::Bytes;
use model::Offset;
use model::record_batch::{BatchError, BatchHeader, HEADER_BYTES};

use crate::disk::{Disk, File, OpenMode, read_exact_at};
use crate::file_names::Kind;
use crate::scan::{CANDIDATES_MAX, Check, Window};

/// No larger batch is read into memory.
pub const BATCH_BYTES_MAX: usize = 128 << 20;

/// An open file of batches: a segment's log, or a snapshot of the metadata log.
#[derive(Debug)]
pub struct BatchFile<F> {
    file: F,
    size: u64,
    base_offset: Offset,
}

/// What comes next in a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    Batch(BatchAt),
    Unreadable(Stretch),
}

impl Step {
    /// Where in the file it stands.
    #[must_use]
    pub fn bytes(&self) -> Range<u64> {
        match self {
            Step::Batch(batch) => batch.position..batch.end(),
            Step::Unreadable(stretch) => stretch.from..stretch.to,
        }
    }
}

/// A batch and where it stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BatchAt {
    pub header: BatchHeader,
    pub position: u64,
    /// Whether its checksum is right.
    pub is_sound: bool,
}

/// Bytes that are no batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stretch {
    pub from: u64,
    /// Where a sound batch follows, or the end of the file.
    pub to: u64,
    pub reason: Unreadable,
}

/// Why the bytes at a position are no batch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    #[error("{0}")]
    Header(BatchError),
    #[error("a batch of {needed} bytes begins {available} bytes before the end of the file")]
    Cut { needed: u64, available: u64 },
    #[error("its checksum is wrong and its length leads to no batch")]
    Checksum,
}

/// Why a batch cannot be had whole.
#[derive(Debug, thiserror::Error)]
pub enum ReadBatchError {
    #[error("the batch has {size} bytes, more than {BATCH_BYTES_MAX} are not read at a time")]
    TooLarge { size: usize },
    #[error("reading the batch")]
    Io(#[from] io::Error),
}

impl BatchAt {
    /// The first byte behind it.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.position + self.header.size_bytes() as u64
    }
}

impl<F: File> BatchFile<F> {
    /// Opens a file for reading. Its size is taken now: what a running node appends later is not seen.
    ///
    /// # Errors
    /// As the disk says.
    pub fn open<D: Disk<File = F>>(disk: &D, path: &Path) -> io::Result<Self> {
        let file = disk.open(path, OpenMode::Read)?;
        let size = file.size_bytes()?;
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let base_offset = match Kind::parse(name) {
            Some((Kind::Log, base)) => base,
            _ => Offset::ZERO,
        };
        Ok(BatchFile {
            file,
            size,
            base_offset,
        })
    }

    /// The offset in the file's name; 0 if it is named otherwise.
    #[must_use]
    pub fn base_offset(&self) -> Offset {
        self.base_offset
    }

    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.size
    }

    pub(crate) fn file(&self) -> &F {
        &self.file
    }

    /// Looks again how large the file is. True if it has grown.
    pub(crate) fn grow(&mut self) -> io::Result<bool> {
        let size = self.file.size_bytes()?;
        let grown = size > self.size;
        self.size = self.size.max(size);
        Ok(grown)
    }

    /// Visits what is in the file from `position` on until `visit` says that it is enough. Every batch's checksum is
    /// taken, piecewise.
    ///
    /// # Errors
    /// As the disk says, and those of `visit`.
    pub fn walk<E: From<io::Error>>(
        &self,
        position: u64,
        mut visit: impl FnMut(Step) -> Result<bool, E>,
    ) -> Result<(), E> {
        let mut window = Window::new(&self.file, self.size, Check::Checksums);
        let mut position = position;
        let mut next_offset = self.base_offset;
        while position < self.size {
            let step = self.step(&mut window, position, next_offset)?;
            position = match &step {
                Step::Batch(batch) => batch.end(),
                Step::Unreadable(stretch) => stretch.to,
            };
            if let Step::Batch(BatchAt {
                header, is_sound: true, ..
            }) = &step
            {
                next_offset = header.next_offset();
            }
            if !visit(step)? {
                return Ok(());
            }
        }
        Ok(())
    }

    fn step(&self, window: &mut Window<'_, F>, position: u64, next_offset: Offset) -> io::Result<Step> {
        let available = self.size - position;
        let header = BatchHeader::parse(window.at(position, HEADER_BYTES)?);
        let reason = match header {
            Err(error) => Unreadable::Header(error),
            Ok(header) if header.size_bytes() as u64 > available => Unreadable::Cut {
                needed: header.size_bytes() as u64,
                available,
            },
            Ok(header) => {
                let batch = BatchAt {
                    header,
                    position,
                    is_sound: window.is_sound(&header, position)?,
                };
                if batch.is_sound || self.leads_on(window, &batch)? {
                    return Ok(Step::Batch(batch));
                }
                Unreadable::Checksum
            }
        };
        // An offset that a flipped bit has moved far away must not hide what follows.
        let near = (0..i64::from(i32::MAX)).contains(&next_offset.since(self.base_offset));
        let expected = if near { next_offset } else { self.base_offset };
        let found = find_batch_after(&self.file, position, self.size, expected)?;
        Ok(Step::Unreadable(Stretch {
            from: position,
            to: found.map_or(self.size, |(_, position)| position),
            reason,
        }))
    }

    /// Whether the length of a batch with a wrong checksum can be believed.
    fn leads_on(&self, window: &mut Window<'_, F>, batch: &BatchAt) -> io::Result<bool> {
        if batch.end() == self.size {
            return Ok(true);
        }
        let next = window.header(batch.end())?;
        Ok(next.is_some_and(|next| next.base_offset > batch.header.base_offset))
    }

    /// The whole of a batch that [`BatchFile::walk`] has found.
    ///
    /// # Errors
    /// If it is too large, or the disk fails.
    pub fn read(&self, batch: &BatchAt) -> Result<Bytes, ReadBatchError> {
        let size = batch.header.size_bytes();
        if size > BATCH_BYTES_MAX {
            return Err(ReadBatchError::TooLarge { size });
        }
        let mut bytes = vec![0; size];
        read_exact_at(&self.file, &mut bytes, batch.position)?;
        Ok(bytes.into())
    }
}

/// The first sound batch behind `position` that could follow `expected`, and where it is.
fn find_batch_after<F: File>(
    file: &F,
    position: u64,
    size: u64,
    expected: Offset,
) -> io::Result<Option<(BatchHeader, u64)>> {
    let near = 0..i64::from(i32::MAX);
    let mut window = Window::new(file, size, Check::Checksums);
    let mut probe = Window::new(file, size, Check::Checksums);
    let mut at = position + 1;
    for _ in 0..CANDIDATES_MAX {
        let found = window.find_header(at, |header| near.contains(&header.first_offset().since(expected)))?;
        let Some((header, start)) = found else { break };
        if probe.is_sound(&header, start)? {
            return Ok(Some((header, start)));
        }
        at = start + 1;
    }
    Ok(None)
}
