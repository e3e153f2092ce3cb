//! Logs to measure with: their batches, and those that are made once and then only read.
//!
//! The record at offset n has the time [`EPOCH_MS`] + n, so that what a look-up by time has to find is known.

use std::error::Error;
use std::io::IoSlice;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use model::record_batch::{BatchBuilder, BatchOptions};
use model::{LeaderEpoch, Offset, Timestamp};
use storage::disk::OpenMode;
use storage::{AppendAs, Disk, File, GuardedDisk, LogOptions, Origin, PartitionLog, RealDisk, Start};

/// As the broker uses it.
pub(crate) type Log = PartitionLog<GuardedDisk<RealDisk>>;
pub(crate) type Outcome<T> = Result<T, Box<dyn Error>>;

pub(crate) const EPOCH_MS: i64 = 1_700_000_000_000;
pub(crate) const ROLE: AppendAs = AppendAs::Leader {
    epoch: LeaderEpoch::new(0),
    origin: Origin::Client,
};
const VALUE: [u8; 100] = [b'.'; 100];
/// How many logs are opened at once.
pub(crate) const OPENED_LOGS: u64 = 1000;
const KEYS: u64 = 100_000;
/// Into so many segments a log is cut that is to be compacted.
const COMPACTED_SEGMENTS: u64 = 4;
/// A log that was made whole has a file beside it that ends so and says how large it was to be and where it ends.
const MADE: &str = "made";

/// What a batch is made of: records of 100 bytes, up to so many bytes together, or one alone.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    batch_bytes: usize,
}

pub(crate) const ONE: Shape = Shape {
    name: "one",
    batch_bytes: 1,
};
pub(crate) const KIB_16: Shape = Shape {
    name: "16k",
    batch_bytes: 16 << 10,
};
pub(crate) const MIB_1: Shape = Shape {
    name: "1m",
    batch_bytes: 1 << 20,
};
/// A record's own bytes besides its key and value, at most.
const RECORD_OVERHEAD_BYTES: usize = 20;

impl Shape {
    /// A batch whose first record is to get this offset; `key` gives each record's.
    pub(crate) fn batch(self, first_offset: i64, mut key: impl FnMut() -> Option<[u8; 8]>) -> Outcome<Bytes> {
        let mut builder = BatchBuilder::new(BatchOptions::default());
        loop {
            let at = Timestamp::from_millis(EPOCH_MS + first_offset + i64::from(builder.record_count()));
            let key = key();
            builder.append(at, key.as_ref().map(<[u8; 8]>::as_slice), Some(&VALUE), &[])?;
            if builder.uncompressed_bytes() + VALUE.len() + RECORD_OVERHEAD_BYTES > self.batch_bytes {
                return Ok(builder.build()?);
            }
        }
    }
}

/// A log that was closed in good order.
pub(crate) struct Made {
    path: PathBuf,
    end: Offset,
}

impl Made {
    fn clean(&self) -> Start {
        Start {
            clean: true,
            recovery_point: self.end,
            ..Start::default()
        }
    }
}

/// Numbers without an order to be seen in them, the same in each run.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new() -> Self {
        Numbers(1)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Where the logs are, and how large those are that are read.
pub(crate) struct Place {
    directory: PathBuf,
    pub(crate) log_bytes: u64,
    /// Whether page cache is provided for what is to be written. Not where the program is looked at by a profiler.
    provides: bool,
    disk: GuardedDisk<RealDisk>,
}

impl Place {
    pub(crate) fn new(directory: PathBuf, log_bytes: u64, provides: bool) -> Self {
        let disk = GuardedDisk::new(RealDisk, &directory);
        Place {
            directory,
            log_bytes,
            provides,
            disk,
        }
    }

    pub(crate) fn now() -> Timestamp {
        Timestamp::from_millis(EPOCH_MS)
    }

    /// An empty log in a directory of its own.
    pub(crate) fn empty(&self, bytes: u64) -> Outcome<Log> {
        remove(&self.work())?;
        if self.provides {
            self.provide(bytes)?;
        }
        self.open(&self.work(), LogOptions::default(), Start::default())
    }

    /// Sees to it that there are so many bytes of page cache: pages that were given back to the machine's host and are
    /// faulted in anew would be the costliest part of a write.
    fn provide(&self, bytes: u64) -> Outcome<()> {
        let path = self.directory.join("ballast");
        let file = self.disk.open(&path, OpenMode::Replace)?;
        let block = vec![1; 1 << 20];
        for position in (0..bytes).step_by(block.len()) {
            file.write_all_at(&[IoSlice::new(&block)], position)?;
        }
        Ok(self.disk.remove_file(&path)?)
    }

    pub(crate) fn remove_work(&self) -> Outcome<()> {
        remove(&self.work())
    }

    fn work(&self) -> PathBuf {
        self.directory.join("work-0")
    }

    fn open(&self, path: &Path, options: LogOptions, start: Start) -> Outcome<Log> {
        let (log, recovery) = PartitionLog::open(self.disk.clone(), path, options, start, Self::now())?;
        if recovery.bytes_cut > 0 || !recovery.damage.is_empty() || start.clean && recovery.bytes_read > 0 {
            return Err(format!("{} is not as it was left: {recovery:?}", path.display()).into());
        }
        Ok(log)
    }

    /// Opens a log that was closed in good order.
    pub(crate) fn open_clean(&self, made: &Made) -> Outcome<Log> {
        self.open(&made.path, LogOptions::default(), made.clean())
    }

    /// Opens it as after a crash before anything was known to be durable; who does is to close it, so that it is in good
    /// order again.
    pub(crate) fn recover(&self, made: &Made) -> Outcome<Log> {
        self.open(&made.path, LogOptions::default(), Start::default())
    }

    /// A log of `log_bytes` in such batches.
    pub(crate) fn filled(&self, shape: Shape) -> Outcome<Made> {
        self.made(&format!("{}-0", shape.name), |path| {
            let mut log = self.open(path, LogOptions::default(), Start::default())?;
            fill(&mut log, shape, self.log_bytes, || None)?;
            Ok(log.close()?)
        })
    }

    /// A log of `log_bytes` that has most of its keys many times, all of it in segments that may be compacted.
    fn keyed(&self) -> Outcome<Made> {
        self.made("keyed-0", |path| {
            let mut log = self.open(path, self.compacted(), Start::default())?;
            let mut numbers = Numbers::new();
            fill(&mut log, KIB_16, self.log_bytes, || {
                Some(numbers.below(KEYS).to_be_bytes())
            })?;
            log.roll(Self::now())?;
            Ok(log.close()?)
        })
    }

    /// A copy of that, open; segments' logs are linked, as compaction writes into none that is there.
    pub(crate) fn to_compact(&self) -> Outcome<Log> {
        let (from, to) = (self.keyed()?, self.work());
        remove(&to)?;
        std::fs::create_dir(&to)?;
        for entry in std::fs::read_dir(&from.path)? {
            let entry = entry?;
            let target = to.join(entry.file_name());
            if entry.path().extension().is_some_and(|extension| extension == "log") && entry.metadata()?.len() > 0 {
                std::fs::hard_link(entry.path(), target)?;
            } else {
                std::fs::copy(entry.path(), target)?;
            }
        }
        self.open(&to, self.compacted(), from.clean())
    }

    fn compacted(&self) -> LogOptions {
        LogOptions {
            compact: true,
            delete: false,
            segment_size_bytes: u32::try_from(self.log_bytes / COMPACTED_SEGMENTS).unwrap_or(u32::MAX),
            ..LogOptions::default()
        }
    }

    /// Logs of a batch each.
    pub(crate) fn many(&self) -> Outcome<Vec<Made>> {
        let paths: Vec<PathBuf> = (0..OPENED_LOGS)
            .map(|number| self.directory.join(format!("many-{number}")))
            .collect();
        let made = self.made("many", |_| {
            let mut end = Offset::ZERO;
            for path in &paths {
                let mut log = self.open(path, LogOptions::default(), Start::default())?;
                fill(&mut log, KIB_16, 1, || None)?;
                end = log.close()?;
            }
            Ok(end)
        })?;
        Ok(paths.into_iter().map(|path| Made { path, end: made.end }).collect())
    }

    /// Makes a log, unless that was done before; `make` tells where it ends.
    fn made(&self, name: &str, make: impl FnOnce(&Path) -> Outcome<Offset>) -> Outcome<Made> {
        let path = self.directory.join(name);
        let sign = self.directory.join(format!("{name}.{MADE}"));
        if let Some(end) = std::fs::read_to_string(&sign).ok().and_then(|text| self.end_in(&text)) {
            return Ok(Made { path, end });
        }
        remove(&path)?;
        let end = make(&path)?;
        std::fs::write(sign, format!("{} {end}", self.log_bytes))?;
        Ok(Made { path, end })
    }

    /// What the sign of a log of this size says; `None` for one of another size.
    fn end_in(&self, sign: &str) -> Option<Offset> {
        let (bytes, end) = sign.split_once(' ')?;
        (bytes == self.log_bytes.to_string()).then_some(Offset::new(end.parse().ok()?))
    }
}

fn fill(log: &mut Log, shape: Shape, bytes: u64, mut key: impl FnMut() -> Option<[u8; 8]>) -> Outcome<()> {
    let mut written = 0;
    while written < bytes {
        let batch = shape.batch(log.log_end_offset().get(), &mut key)?;
        // The clock goes along with the records, as it does for a producer.
        let now = Timestamp::from_millis(EPOCH_MS + log.log_end_offset().get());
        written += log.append(&batch, ROLE, now)?.size_bytes as u64;
    }
    Ok(())
}

fn remove(path: &Path) -> Outcome<()> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}
