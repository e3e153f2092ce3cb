//! One flipped bit in any file of a log: every record outside the batch that it hit is served as it was written, nothing
//! else is, nothing is cut that was committed, and the log goes on.
//!
//! A log is written, plain or compacted, under several leader epochs, in several segments; then a bit is flipped while it
//! is open, after a clean end, or after its node was killed; and all is read from each offset, looked up by each time, and
//! compared with what was there. A failure names its seed; `STORAGE_SEED=n cargo test -p storage --test damage_simulation`
//! runs that seed alone.
#![allow(clippy::unwrap_used, reason = "a test ends where it is surprised")]

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use model::record_batch::{Batch, BatchBuilder, BatchOptions, BatchProducer, Compression, DecompressionLimit, records};
use model::{
    LeaderEpoch, Offset, PartitionIndex, ProducerEpoch, ProducerId, Sequence, Timestamp, TopicName, TopicPartition,
    Uuid,
};
use storage::compaction::{CleaningLimits, CompactionOptions};
use storage::disk::{File, OpenMode};
use storage::log_directory::{MetaProperties, format};
use storage::{AppendAs, Disk, LogDirectory, LogOptions, Origin, PartitionLog, ReadError, ReadRequest, SimDisk, Wait};

#[path = "support/seeds.rs"]
mod seeds;

use seeds::{Random, each_seed};

const SEEDS: u64 = 400;
const ROOT: &str = "/d";
const KEYS: u64 = 8;
const PRODUCERS: usize = 3;
const BATCHES_MAX: u64 = 60;
const CHECKPOINTS: [&str; 4] = [
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    "log-start-offset-checkpoint",
    "cleaner-offset-checkpoint",
];

/// How the log was left when the bit flips.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Left {
    Open,
    Closed,
    Killed,
}

/// All that can be asked of a log.
#[derive(Clone, PartialEq, Debug)]
struct Answers {
    start: Offset,
    end: Offset,
    /// By first offset.
    batches: BTreeMap<i64, Bytes>,
    times: Vec<(i64, Option<(i64, i64)>)>,
    greatest: Option<i64>,
    epochs: Vec<Option<(i32, i64)>>,
}

struct World {
    random: Random,
    disk: SimDisk,
    place: TopicPartition,
    options: LogOptions,
    now: i64,
    epoch: i32,
    sequences: [i32; PRODUCERS],
    next_value: u64,
    recorded: Offset,
}

impl World {
    fn new(seed: u64) -> Self {
        let disk = SimDisk::new(seed);
        let properties = MetaProperties {
            version: 1,
            cluster_id: Some("c".to_owned()),
            node_id: Some(model::BrokerId::from_wire(1).unwrap()),
            directory_id: Some(Uuid::from_bytes([7; 16])),
        };
        format(&disk, Path::new(ROOT), &properties).unwrap();
        let mut random = Random(seed ^ 0xdada);
        let compact = random.below(2) == 0;
        let options = LogOptions {
            segment_size_bytes: 700 + random.below(1500) as u32,
            index_interval_bytes: 100 + random.below(200) as u32,
            compact,
            delete: !compact,
            compaction: CompactionOptions {
                dirty_ratio_min: 0.0,
                ..CompactionOptions::default()
            },
            ..LogOptions::default()
        };
        World {
            random,
            disk,
            place: TopicPartition {
                topic: TopicName::new("t").unwrap(),
                partition: PartitionIndex::new(0),
            },
            options,
            now: 1_700_000_000_000,
            epoch: 0,
            sequences: [0; PRODUCERS],
            next_value: 0,
            recorded: Offset::ZERO,
        }
    }

    fn folder(&self) -> PathBuf {
        Path::new(ROOT).join("t-0")
    }

    fn directory(&self) -> LogDirectory<SimDisk> {
        LogDirectory::open(self.disk.clone(), Path::new(ROOT), Uuid::from_bytes([8; 16])).unwrap()
    }

    fn open(&self, directory: &LogDirectory<SimDisk>) -> PartitionLog<SimDisk> {
        let path = directory
            .create_partition(&self.place, Uuid::from_bytes([9; 16]))
            .unwrap();
        let start = directory.start_of(&self.place);
        let now = Timestamp::from_millis(self.now);
        PartitionLog::open(self.disk.clone(), &path, self.options.clone(), start, now)
            .unwrap()
            .0
    }

    fn append(&mut self, log: &mut PartitionLog<SimDisk>) {
        self.now += 1;
        let producer = self.random.below(PRODUCERS as u64) as usize;
        let compressions = [Compression::None, Compression::Lz4, Compression::Zstd];
        let mut builder = BatchBuilder::new(BatchOptions {
            compression: compressions[self.random.below(3) as usize],
            producer: Some(BatchProducer {
                id: ProducerId::from_wire(producer as i64).unwrap(),
                epoch: ProducerEpoch::ZERO,
                base_sequence: Sequence::from_wire(self.sequences[producer]),
            }),
            ..BatchOptions::default()
        });
        let count = 1 + self.random.below(3) as i32;
        for _ in 0..count {
            let key = self.random.below(KEYS).to_be_bytes();
            let time = self.now - self.random.below(10) as i64;
            let padding = "x".repeat(self.random.below(80) as usize);
            let mut value = format!("{}-{padding}", self.next_value).into_bytes();
            self.next_value += 1;
            if self.random.below(8) == 0 {
                // Records may hold what looks like a batch of this very log.
                value.extend(lookalike(log.log_end_offset().plus(1 + self.random.below(5) as i64)));
            }
            builder
                .append(Timestamp::from_millis(time), Some(&key), Some(&value), &[])
                .unwrap();
        }
        self.sequences[producer] += count;
        let role = AppendAs::Leader {
            epoch: LeaderEpoch::new(self.epoch),
            origin: Origin::Client,
        };
        log.append(&builder.build().unwrap(), role, Timestamp::from_millis(self.now))
            .unwrap();
    }

    /// Writes a log, with all that a node does to it meanwhile.
    fn fill(&mut self, directory: &mut LogDirectory<SimDisk>, log: &mut PartitionLog<SimDisk>) {
        for _ in 0..1 + self.random.below(BATCHES_MAX) {
            match self.random.below(20) {
                0 => {
                    self.epoch += 1 + self.random.below(3) as i32;
                    log.begin_epoch(LeaderEpoch::new(self.epoch));
                }
                1 => {
                    log.sync_now().unwrap();
                    self.record(directory, log);
                }
                2 if self.options.compact => self.clean(log),
                3 if self.random.below(4) == 0 => {
                    let end = log.log_end_offset();
                    let offset = Offset::new(self.random.below(end.get() as u64 / 2 + 1) as i64);
                    log.delete_records_before(offset, end).unwrap();
                    log.sync_now().unwrap();
                    self.record(directory, log);
                }
                _ => self.append(log),
            }
        }
        // An epoch without a record is forgotten at the next start.
        self.append(log);
        log.sync_now().unwrap();
    }

    fn record(&mut self, directory: &mut LogDirectory<SimDisk>, log: &PartitionLog<SimDisk>) {
        self.recorded = log.recovery_point();
        directory.set_recovery_point(&self.place, self.recorded);
        directory.set_high_watermark(&self.place, self.recorded);
        directory.set_log_start(&self.place, log.log_start_offset());
        directory.set_cleaned_to(&self.place, log.log_start_offset());
        directory.write_recovery_points().unwrap();
        directory.write_log_starts().unwrap();
        directory.write_high_watermarks().unwrap();
        directory.write_cleaned_to().unwrap();
    }

    fn clean(&mut self, log: &mut PartitionLog<SimDisk>) {
        let now = Timestamp::from_millis(self.now);
        let Some(view) = log.compaction_view(log.synced_offset()) else {
            return;
        };
        let backlog = view.backlog(None, now).unwrap();
        if backlog.cleanable_bytes == 0 {
            return;
        }
        let mut cleaning = log.begin_cleaning(&backlog, CleaningLimits::default(), now);
        let pace = &mut |_| ControlFlow::Continue(());
        cleaning.map_keys(pace).unwrap();
        while let Some(cleaned) = cleaning.clean_group(pace).unwrap() {
            for file in log.swap_in(cleaned).unwrap().files {
                self.disk.remove_file(&file).unwrap();
            }
        }
    }

    /// Whether a flip there moves a batch that has a gap beside it, which compaction has left: nothing tells that yet.
    fn moves_within_gap(&self, path: &Path, byte: usize) -> bool {
        const BASE_OFFSET_BYTES: usize = 8;
        let mut bytes = vec![0; self.size(path)];
        let file = self.disk.open(path, OpenMode::Read).unwrap();
        storage::disk::read_exact_at(&file, &mut bytes, 0).unwrap();
        let mut rest = &bytes[..];
        let mut expected = path.file_stem().unwrap().to_str().unwrap().parse::<i64>().unwrap();
        while let Ok((batch, after)) = Batch::split_first(rest) {
            let position = bytes.len() - rest.len();
            if (position..position + BASE_OFFSET_BYTES).contains(&byte) {
                let next = Batch::split_first(after).map(|(next, _)| next.header.base_offset);
                let end = batch.header.next_offset().get();
                return batch.header.base_offset > expected || next.is_ok_and(|next| next > end);
            }
            expected = batch.header.next_offset().get();
            rest = after;
        }
        false
    }

    /// A file of the log that has bytes, and one of its bits.
    fn target(&mut self) -> (PathBuf, usize, u8) {
        let mut files: Vec<PathBuf> = self
            .disk
            .list(&self.folder())
            .unwrap()
            .into_iter()
            .filter(|entry| entry.name != "partition.metadata")
            .map(|entry| self.folder().join(entry.name))
            .collect();
        files.extend(CHECKPOINTS.map(|name| Path::new(ROOT).join(name)));
        files.retain(|file| self.size(file) > 0);
        // Half of the flips hit the log itself.
        if self.random.below(2) == 0 {
            files.retain(|file| is_log(file));
        }
        let file = files[self.random.below(files.len() as u64) as usize].clone();
        let mut byte = self.random.below(self.size(&file) as u64) as usize;
        while is_log(&file) && self.moves_within_gap(&file, byte) {
            byte = self.random.below(self.size(&file) as u64) as usize;
        }
        (file, byte, self.random.below(8) as u8)
    }

    fn size(&self, path: &Path) -> usize {
        match self.disk.open(path, OpenMode::Read) {
            Ok(file) => file.size_bytes().unwrap() as usize,
            Err(_) => 0,
        }
    }

    /// The offsets of the batch at `byte` of a log file that is whole.
    fn batch_at(&self, path: &Path, byte: usize) -> Range<i64> {
        let mut bytes = vec![0; self.size(path)];
        let file = self.disk.open(path, OpenMode::Read).unwrap();
        storage::disk::read_exact_at(&file, &mut bytes, 0).unwrap();
        let mut rest = &bytes[..];
        loop {
            let (batch, after) = Batch::split_first(rest).unwrap();
            if byte < bytes.len() - after.len() {
                return batch.header.base_offset..batch.header.next_offset().get();
            }
            rest = after;
        }
    }
}

fn is_log(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "log")
}

fn lookalike(offset: Offset) -> Bytes {
    let mut builder = BatchBuilder::new(BatchOptions::default());
    builder
        .append(Timestamp::from_millis(1), None, Some(b"never served"), &[])
        .unwrap();
    let mut bytes = builder.build().unwrap().to_vec();
    let mut batch = model::record_batch::BatchMut::first(&mut bytes).unwrap();
    batch.set_base_offset(offset).unwrap();
    batch.set_leader_epoch(LeaderEpoch::new(0));
    bytes.into()
}

/// Reads on from `from`, over what is damaged.
fn read_from(log: &PartitionLog<SimDisk>, from: Offset, max_bytes: usize) -> BTreeMap<i64, Bytes> {
    let mut found = BTreeMap::new();
    let mut from = from;
    while from < log.log_end_offset() {
        let request = ReadRequest {
            from,
            max_bytes,
            up_to: Offset::MAX,
            min_one: true,
            wait: Wait::Allowed,
        };
        let read = match log.reader().read(request) {
            Ok(read) => read,
            Err(ReadError::Corrupt(_)) => {
                let damage = log.damage();
                let range = damage.iter().find(|range| range.from <= from && from < range.to);
                from = range.expect("what is refused is known to be damaged").to;
                continue;
            }
            Err(error) => panic!("reading {from}: {error}"),
        };
        if read.bytes.is_empty() {
            // Compaction may leave nothing at the end.
            break;
        }
        let mut rest = read.bytes;
        while !rest.is_empty() {
            let (batch, _) = Batch::split_first(&rest).unwrap();
            let (first, size) = (batch.header.base_offset, batch.bytes().len());
            found.insert(first, rest.split_to(size));
        }
        assert!(read.next_offset > from);
        from = read.next_offset;
    }
    found
}

fn answers(log: &PartitionLog<SimDisk>, now: i64) -> Answers {
    let reader = log.reader();
    let start = log.log_start_offset();
    let batches = read_from(log, start, 600);
    for offset in (start.get()..log.log_end_offset().get()).step_by(3) {
        let behind = read_from(log, Offset::new(offset), 200);
        let expected: BTreeMap<_, _> = batches
            .iter()
            .filter(|(_, bytes)| Batch::split_first(bytes).unwrap().0.header.last_offset().get() >= offset)
            .map(|(first, bytes)| (*first, bytes.clone()))
            .collect();
        assert_eq!(behind, expected, "read from {offset} on");
    }
    let times = (1_700_000_000_000 - 10..=now + 1)
        .map(|time| {
            let found =
                reader.offset_for_timestamp(Timestamp::from_millis(time), DecompressionLimit::DEFAULT, Wait::Allowed);
            (
                time,
                found
                    .unwrap()
                    .map(|found| (found.offset.get(), found.timestamp.millis())),
            )
        })
        .collect();
    let greatest = reader
        .offset_of_max_timestamp(DecompressionLimit::DEFAULT, Wait::Allowed)
        .unwrap();
    let epochs = (0..40).map(|epoch| {
        let end = reader.end_of_epoch(LeaderEpoch::new(epoch))?;
        Some((end.epoch.get(), end.end_offset.get()))
    });
    Answers {
        start,
        end: log.log_end_offset(),
        batches,
        times,
        greatest: greatest.map(|found| found.timestamp.millis()),
        epochs: epochs.collect(),
    }
}

/// What look-ups by time have to find among these batches: the first batch with such a record counts.
fn times_in(
    batches: &BTreeMap<i64, Bytes>,
    start: Offset,
    asked: &[(i64, Option<(i64, i64)>)],
) -> Vec<(i64, Option<(i64, i64)>)> {
    let all: Vec<(i64, i64)> = batches
        .values()
        .flat_map(|bytes| {
            records(bytes, DecompressionLimit::DEFAULT)
                .unwrap()
                .map(|record| record.unwrap())
                .map(|record| (record.offset.get(), record.timestamp.millis()))
                .collect::<Vec<_>>()
        })
        .collect();
    asked
        .iter()
        .map(|(time, _)| {
            let hit = all.iter().find(|(offset, at)| *offset >= start.get() && at >= time);
            (*time, hit.copied())
        })
        .collect()
}

/// The expected answers where the batch of `hit` is not served any more.
fn without(before: &Answers, hit: &Range<i64>, cut: bool) -> Answers {
    let mut expected = before.clone();
    let was_read = expected.batches.remove(&hit.start).is_some();
    if cut {
        expected.end = Offset::new(hit.start);
        expected.epochs.clear();
    }
    if was_read {
        expected.times = times_in(&expected.batches, expected.start, &before.times);
        let times = expected.batches.values().filter_map(|bytes| {
            let header = Batch::split_first(bytes).unwrap().0.header;
            (header.record_count > 0).then_some(header.max_timestamp)
        });
        expected.greatest = times.max();
    }
    expected
}

fn run(seed: u64) -> &'static str {
    let mut world = World::new(seed);
    let mut directory = world.directory();
    let mut log = world.open(&directory);
    world.fill(&mut directory, &mut log);
    let left = [Left::Open, Left::Closed, Left::Killed][world.random.below(3) as usize];
    let before = answers(&log, world.now);
    assert_eq!(before.times, times_in(&before.batches, before.start, &before.times));
    if left == Left::Closed {
        log.close().unwrap();
        world.record(&mut directory, &log);
        directory.mark_clean(None).unwrap();
    }
    let (file, byte, bit) = world.target();
    let hit = is_log(&file).then(|| world.batch_at(&file, byte));
    assert!(world.disk.flip_bit(&file, byte, bit));
    let what = format!(
        "{} byte {byte} bit {bit}, {left:?}, compact {}",
        file.display(),
        world.options.compact
    );
    eprintln!("{what}, hit {hit:?}, recorded {}, end {}", world.recorded, before.end);
    if left != Left::Open {
        drop((log, directory));
        directory = world.directory();
        log = world.open(&directory);
    }
    let after = answers(&log, world.now);
    let is_cut = hit.as_ref().is_some_and(|hit| {
        left == Left::Killed
            && after.end.get() == hit.start
            && hit.end == before.end.get()
            && hit.start >= world.recorded.get()
    });
    let mut expected = match &hit {
        Some(hit) => without(&before, hit, is_cut),
        None => before.clone(),
    };
    if is_cut {
        expected.epochs = after.epochs.clone();
    }
    compare(&after, &expected, &what);
    if let Some(hit) = hit
        .as_ref()
        .filter(|hit| !is_cut && before.batches.contains_key(&hit.start))
    {
        let damage = log.damage();
        assert!(
            damage
                .iter()
                .any(|range| range.from.get() <= hit.start && hit.end <= range.to.get()),
            "{what}: {damage:?}"
        );
    }
    goes_on(&mut world, directory, log, &after);
    match hit {
        None => "beside the log",
        Some(_) if is_cut => "cut",
        Some(_) => "quarantined",
    }
}

/// Field by field, so that a failure says what differs.
fn compare(after: &Answers, expected: &Answers, what: &str) {
    assert_eq!(
        (after.start, after.end),
        (expected.start, expected.end),
        "{what}: start and end"
    );
    let keys = |answers: &Answers| answers.batches.keys().copied().collect::<Vec<_>>();
    assert_eq!(keys(after), keys(expected), "{what}: batches");
    let changed = after
        .batches
        .iter()
        .find(|(first, bytes)| expected.batches[first] != *bytes);
    assert_eq!(changed, None, "{what}: bytes");
    assert_eq!(after.epochs, expected.epochs, "{what}: epochs");
    let differing: Vec<_> = after
        .times
        .iter()
        .zip(&expected.times)
        .filter(|(one, other)| one != other)
        .collect();
    assert_eq!(differing, [], "{what}: look-ups by time");
    assert_eq!(after.greatest, expected.greatest, "{what}: greatest time");
}

/// Appends follow the end, and all of it is there after the next start, the damage as well.
fn goes_on(world: &mut World, directory: LogDirectory<SimDisk>, mut log: PartitionLog<SimDisk>, after: &Answers) {
    let damage = log.damage();
    world.epoch += 1;
    log.begin_epoch(LeaderEpoch::new(world.epoch));
    world.sequences = [0; PRODUCERS];
    log.remove_expired_producers(Timestamp::from_millis(i64::MAX));
    world.append(&mut log);
    world.append(&mut log);
    log.sync_now().unwrap();
    let more = read_from(&log, after.start, 1000);
    assert_eq!(more.len(), after.batches.len() + 2);
    let first = more.range(after.end.get()..).next().map(|(first, _)| *first);
    assert_eq!(first, Some(after.end.get()), "appends follow the end");
    drop((log, directory));
    let directory = world.directory();
    let log = world.open(&directory);
    assert_eq!(log.damage(), damage, "damage is not forgotten");
    assert_eq!(read_from(&log, after.start, 1000), more, "after the next start");
}

#[test]
fn a_flipped_bit_takes_nothing_but_the_batch_that_it_hit() {
    let mut outcomes: BTreeMap<&str, usize> = BTreeMap::new();
    each_seed(SEEDS, |seed| *outcomes.entry(run(seed)).or_default() += 1);
    let is_partial = ["STORAGE_SEED", "STORAGE_SEEDS"]
        .iter()
        .any(|name| std::env::var(name).is_ok());
    assert!(outcomes.len() == 3 || is_partial, "{outcomes:?}");
}
