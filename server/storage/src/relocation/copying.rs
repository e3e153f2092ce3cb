//! The copy that grows behind a log in another directory.
//!
//! - What is copied is whole segments' files, byte for byte, in the order of their offsets. The segment that is written to
//!   is copied as far as readers see it; its indexes come with [`Copying::complete`].
//! - A segment that has left the log, by retention, compaction or truncation, leaves the copy with the next step.
//! - A segment's copy is on the disk before the next one's is begun, so that little is left to sync under the log's lock.

use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::Offset;
use model::record_batch::{BatchHeader, HEADER_BYTES};

use crate::disk::{Disk, File, OpenMode, read_exact_at, read_small_file, remove_file_if_there};
use crate::file_names::{Kind, LEADER_EPOCH_CHECKPOINT, LEADER_EPOCH_CHECKSUM};
use crate::log_reader::LogReader;
use crate::partition_log::{PartitionLog, checksum_of_epochs};
use crate::quarantine::{FILE_BYTES_MAX, QUARANTINE_FILE};
use crate::segment::{Indexes, Segment};

/// What is read and written at a time of files other than logs.
const BUFFER_BYTES: usize = 256 << 10;

/// Why the copy does not grow.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// More was appended than may be copied under the log's lock: go on with steps.
    #[error("the copy is {0} bytes behind")]
    Behind(u64),
    #[error("copying the log")]
    Io(#[from] io::Error),
}

/// How far the copy is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Bytes of log that this step copied.
    pub copied: usize,
    /// Bytes of log that are still to be copied.
    pub behind: u64,
    /// Bytes of log in the copy.
    pub size_bytes: u64,
    /// The offset behind the last whole batch in the copy.
    pub end: Offset,
}

/// A copy on its way.
pub struct Copying<D: Disk> {
    reader: LogReader<D>,
    source: (D, PathBuf),
    disk: D,
    directory: PathBuf,
    /// The segments as of the last step.
    segments: Arc<Vec<Arc<Segment<D::File>>>>,
    pieces: BTreeMap<Offset, Piece<D::File>>,
    buffer: Vec<u8>,
}

/// The copy of one segment.
struct Piece<F> {
    segment: Arc<Segment<F>>,
    /// `None` once all of it is on the disk.
    log: Option<F>,
    copied: u64,
    /// Where the next batch begins whose header was not seen yet; `None` where no header is where one should be.
    next_batch: Option<u64>,
    end: Offset,
}

impl<D: Disk> Copying<D> {
    /// Begins a copy of `log` in `directory`, an empty folder on `disk`.
    #[must_use]
    pub fn begin(log: &PartitionLog<D>, disk: D, directory: PathBuf) -> Self {
        Copying {
            reader: log.reader(),
            source: (log.disk().clone(), log.directory().to_owned()),
            disk,
            directory,
            segments: Arc::default(),
            pieces: BTreeMap::new(),
            buffer: Vec::new(),
        }
    }

    /// Where the copy grows.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Copies at most `bytes_max` bytes of log, and the other files of segments that are complete by that. Takes no lock.
    ///
    /// # Errors
    /// As the disks say.
    pub fn step(&mut self, bytes_max: usize) -> Result<Progress, CopyError> {
        self.follow()?;
        let segments = self.segments.clone();
        let mut copied = 0;
        for (at, segment) in segments.iter().enumerate() {
            let is_sealed = at + 1 < segments.len();
            if !self.pieces.contains_key(&segment.base_offset) {
                let piece = Piece::begin(&self.disk, &self.directory, segment)?;
                self.pieces.insert(segment.base_offset, piece);
            }
            let Some(piece) = self.pieces.get_mut(&segment.base_offset) else {
                continue;
            };
            if piece.log.is_none() {
                continue;
            }
            copied += piece.grow(&mut self.buffer, bytes_max.saturating_sub(copied))?;
            if piece.copied < segment.size() {
                break;
            }
            if is_sealed {
                self.seal(segment)?;
            }
            if copied >= bytes_max {
                break;
            }
        }
        Ok(self.progress(copied))
    }

    /// Syncs what is copied of the segment that is written to, so that the next sync has little to do.
    ///
    /// # Errors
    /// As the disk says.
    pub fn sync(&self) -> io::Result<()> {
        let mut unsynced = self.pieces.values().filter_map(|piece| piece.log.as_ref());
        unsynced.try_for_each(File::sync)
    }

    /// Brings the copy up to the end of `log`, which is the one that it was begun with and must not change meanwhile: all of
    /// it is on the disk when this returns.
    ///
    /// # Errors
    /// [`CopyError::Behind`] where that is more than `bytes_max`.
    pub fn complete(&mut self, log: &PartitionLog<D>, bytes_max: u64) -> Result<(), CopyError> {
        self.follow()?;
        loop {
            let behind = self.progress(0).behind;
            if behind > bytes_max {
                return Err(CopyError::Behind(behind));
            }
            let progress = self.step(BUFFER_BYTES)?;
            if progress.behind == 0 && progress.copied == 0 {
                break;
            }
        }
        let Some(active) = self.segments.last().cloned() else {
            return Err(io::Error::other("the log has no segment").into());
        };
        let (offsets, times) = active.with_indexes(|indexes| match indexes {
            Indexes::Memory { offsets, times } => (
                offsets.iter().flat_map(|entry| entry.to_bytes()).collect::<Vec<u8>>(),
                times.iter().flat_map(|entry| entry.to_bytes()).collect::<Vec<u8>>(),
            ),
            Indexes::Files { .. } => (Vec::new(), Vec::new()),
        });
        self.put(&Kind::OffsetIndex.path(&self.directory, active.base_offset), &offsets)?;
        self.put(&Kind::TimeIndex.path(&self.directory, active.base_offset), &times)?;
        self.copy_others(active.base_offset)?;
        let snapshot = Kind::ProducerSnapshot.path(&self.directory, log.log_end_offset());
        self.put(&snapshot, &log.producers().to_snapshot())?;
        let epochs = log.shared().with_epochs(|epochs| epochs.to_text());
        self.put(&self.directory.join(LEADER_EPOCH_CHECKPOINT), epochs.as_bytes())?;
        let checksum = checksum_of_epochs(epochs.as_bytes());
        self.put(&self.directory.join(LEADER_EPOCH_CHECKSUM), checksum.as_bytes())?;
        self.copy_quarantine()?;
        self.sync()?;
        self.disk.sync_directory(&self.directory)?;
        Ok(())
    }

    /// Takes in which segments the log has by now.
    fn follow(&mut self) -> io::Result<()> {
        let segments = self.reader.shared().segments.load_full();
        if Arc::ptr_eq(&segments, &self.segments) {
            return Ok(());
        }
        let mut gone = Vec::new();
        for (base, piece) in &self.pieces {
            let at = segments.partition_point(|segment| segment.base_offset < *base);
            let is_there = segments.get(at).is_some_and(|it| Arc::ptr_eq(it, &piece.segment));
            if !is_there {
                gone.push(*base);
            }
        }
        for base in gone {
            for kind in Kind::OF_SEGMENT.into_iter().chain([Kind::ProducerSnapshot]) {
                remove_file_if_there(&self.disk, &kind.path(&self.directory, base))?;
            }
            self.pieces.remove(&base);
        }
        self.segments = segments;
        Ok(())
    }

    /// The log of a segment that is not written to any more is copied: the rest of its files, and all of it to the disk.
    fn seal(&mut self, segment: &Segment<D::File>) -> io::Result<()> {
        let base = segment.base_offset;
        let files = segment.with_indexes(|indexes| match indexes {
            Indexes::Files { offsets, times } => Some((offsets.clone(), times.clone())),
            Indexes::Memory { .. } => None,
        });
        if let Some((offsets, times)) = files {
            self.copy_file(&offsets, &Kind::OffsetIndex.path(&self.directory, base))?;
            self.copy_file(&times, &Kind::TimeIndex.path(&self.directory, base))?;
        }
        self.copy_others(base)?;
        if let Some(piece) = self.pieces.get_mut(&base)
            && let Some(log) = piece.log.take()
        {
            log.sync()?;
            piece.end = segment.limit().unwrap_or(piece.end);
        }
        Ok(())
    }

    /// What a segment may have besides. Where it is gone, its segment is, and the copy of it goes with the next step.
    fn copy_others(&mut self, base: Offset) -> io::Result<()> {
        for kind in [Kind::TransactionIndex, Kind::Bases, Kind::ProducerSnapshot] {
            let (disk, source) = &self.source;
            match disk.open(&kind.path(source, base), OpenMode::Read) {
                Ok(file) => self.copy_file(&file, &kind.path(&self.directory, base))?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn copy_quarantine(&self) -> io::Result<()> {
        let (disk, source) = &self.source;
        let target = self.directory.join(QUARANTINE_FILE);
        match read_small_file(disk, &source.join(QUARANTINE_FILE), FILE_BYTES_MAX) {
            Ok(bytes) => self.put(&target, &bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => remove_file_if_there(&self.disk, &target),
            Err(error) => Err(error),
        }
    }

    fn copy_file(&mut self, from: &D::File, to: &Path) -> io::Result<()> {
        let file = self.disk.open(to, OpenMode::Replace)?;
        self.buffer.resize(BUFFER_BYTES, 0);
        let mut position = 0;
        loop {
            let read = from.read_at(&mut self.buffer, position)?;
            if read == 0 {
                return file.sync();
            }
            file.write_all_at(&[IoSlice::new(&self.buffer[..read])], position)?;
            position += read as u64;
        }
    }

    fn put(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        let file = self.disk.open(path, OpenMode::Replace)?;
        file.write_all_at(&[IoSlice::new(content)], 0)?;
        file.sync()
    }

    fn progress(&self, copied: usize) -> Progress {
        let size = self.segments.iter().map(|segment| segment.size()).sum::<u64>();
        let size_bytes = self.pieces.values().map(|piece| piece.copied).sum();
        let end = self.pieces.values().next_back().map_or(Offset::ZERO, |piece| piece.end);
        Progress {
            copied,
            behind: size.saturating_sub(size_bytes),
            size_bytes,
            end,
        }
    }
}

impl<F: File> Piece<F> {
    fn begin<D: Disk<File = F>>(disk: &D, directory: &Path, segment: &Arc<Segment<F>>) -> io::Result<Self> {
        let path = Kind::Log.path(directory, segment.base_offset);
        Ok(Piece {
            segment: segment.clone(),
            log: Some(disk.open(&path, OpenMode::Replace)?),
            copied: 0,
            next_batch: Some(0),
            end: segment.base_offset,
        })
    }

    /// Copies what readers see of the segment, at most `bytes_max`.
    fn grow(&mut self, buffer: &mut Vec<u8>, bytes_max: usize) -> io::Result<usize> {
        let left = usize::try_from(self.segment.size().saturating_sub(self.copied)).unwrap_or(usize::MAX);
        let size = left.min(bytes_max);
        let Some(log) = self.log.as_ref().filter(|_| size > 0) else {
            return Ok(0);
        };
        buffer.resize(size, 0);
        read_exact_at(&self.segment.log, buffer, self.copied)?;
        log.write_all_at(&[IoSlice::new(buffer)], self.copied)?;
        let from = self.copied;
        self.copied += size as u64;
        self.pass_batches(buffer, from)?;
        Ok(size)
    }

    /// Notes which batches are whole in the copy by now; `buffer` is what was copied from `from` on.
    fn pass_batches(&mut self, buffer: &[u8], from: u64) -> io::Result<()> {
        while let Some(position) = self.next_batch
            && position + (HEADER_BYTES as u64) <= self.copied
        {
            let within = position.checked_sub(from).and_then(|at| usize::try_from(at).ok());
            let header = match within.and_then(|at| buffer.get(at..at + HEADER_BYTES)) {
                Some(bytes) => BatchHeader::parse(bytes),
                // It was cut by the end of the step before.
                None => {
                    let mut bytes = [0; HEADER_BYTES];
                    read_exact_at(&self.segment.log, &mut bytes, position)?;
                    BatchHeader::parse(&bytes)
                }
            };
            let Ok(header) = header else {
                self.next_batch = None;
                break;
            };
            let behind = position + header.size_bytes() as u64;
            if behind > self.copied {
                break;
            }
            self.end = self.end.max(header.next_offset());
            self.next_batch = Some(behind);
        }
        Ok(())
    }
}
