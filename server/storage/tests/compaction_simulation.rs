//! Random work on a compacted log whose machine loses power at a random disk call, most of them while it is cleaned.
//!
//! After each crash the log is opened twice and compared with what was appended: what is found stands at its offset as it
//! was written; of each key the last record is there; where that is a tombstone that has gone, nothing of the key has come
//! back, and its time was over. A failure names its seed; `STORAGE_SEED=n cargo test -p storage --test
//! compaction_simulation` runs that seed alone.
#![allow(clippy::unwrap_used, reason = "a test ends where it is surprised")]

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use model::record_batch::{Batch, BatchBuilder, BatchOptions, BatchProducer, Compression, DecompressionLimit, records};
use model::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, Timestamp};
use storage::compaction::{CleaningLimits, CompactionOptions};
use storage::{AppendAs, Disk, LogOptions, Origin, PartitionLog, ReadRequest, Recovery, SimDisk, Start, Wait};

#[path = "support/seeds.rs"]
mod seeds;

use seeds::{Random, each_seed};

const SEEDS: u64 = 80;
const CRASHES_PER_SEED: usize = 5;
const STEPS_MAX: usize = 300;
const CALLS_BETWEEN_CRASHES_MAX: u64 = 600;
const DIRECTORY: &str = "/t-0";
const KEYS: u64 = 12;
const PRODUCERS: usize = 3;
const DELETE_RETENTION_MS: i64 = 40;
const EPOCH: LeaderEpoch = LeaderEpoch::new(1);

#[derive(Clone, PartialEq, Eq, Debug)]
struct Row {
    key: u64,
    value: Option<String>,
    time: i64,
}

/// What was appended: one row an offset, also for what may be lost.
#[derive(Default)]
struct Model {
    rows: Vec<Row>,
    /// Last offset, producer and last sequence of each batch.
    batches: Vec<(usize, usize, i32)>,
    synced: usize,
    recorded: Offset,
    /// What the cleaner's checkpoint says.
    cleaned_to: Option<Offset>,
    /// When a round first covered an offset, for tombstones.
    covered: BTreeMap<usize, i64>,
    next_value: u64,
    sequences: [i32; PRODUCERS],
}

struct World {
    random: Random,
    disk: SimDisk,
    model: Model,
    now: i64,
    rounds: usize,
}

fn options() -> LogOptions {
    LogOptions {
        segment_size_bytes: 900,
        index_interval_bytes: 150,
        compact: true,
        delete: false,
        compaction: CompactionOptions {
            dirty_ratio_min: 0.0,
            delete_retention_ms: DELETE_RETENTION_MS,
            ..CompactionOptions::default()
        },
        ..LogOptions::default()
    }
}

impl World {
    fn new(seed: u64) -> Self {
        let disk = SimDisk::new(seed);
        disk.create_directory(Path::new(DIRECTORY)).unwrap();
        disk.sync_directory(Path::new("/")).unwrap();
        World {
            random: Random(seed ^ 0xabcd),
            disk,
            model: Model::default(),
            now: 1_700_000_000_000,
            rounds: 0,
        }
    }

    fn open(&self) -> Result<(PartitionLog<SimDisk>, Recovery), storage::OpenError> {
        let start = Start {
            clean: false,
            recovery_point: self.model.recorded,
            log_start_offset: Offset::ZERO,
        };
        let now = Timestamp::from_millis(self.now);
        PartitionLog::open(self.disk.clone(), Path::new(DIRECTORY), options(), start, now)
    }

    fn work(&mut self, log: &mut PartitionLog<SimDisk>) {
        for _ in 0..STEPS_MAX {
            if self.disk.has_crashed() {
                return;
            }
            self.now += 1;
            match self.random.below(24) {
                0..=14 => self.append(log),
                15..=17 => self.sync(log),
                18 => drop(log.roll(Timestamp::from_millis(self.now))),
                19 | 20 => {
                    self.model.recorded = log.recovery_point();
                    log.recovery_point_recorded(self.model.recorded);
                }
                21 => self.now += 30,
                _ => {
                    // Now and then too little for all keys of the dirty part.
                    let map_keys = 2 + self.random.below(12) as usize;
                    self.clean(log, map_keys);
                }
            }
        }
    }

    fn sync(&mut self, log: &mut PartitionLog<SimDisk>) {
        if let Some(handle) = log.begin_sync()
            && let Ok(synced) = log.synced(handle.run())
        {
            self.model.synced = self.model.synced.max(synced.get() as usize);
        }
    }

    fn append(&mut self, log: &mut PartitionLog<SimDisk>) {
        let end = log.log_end_offset().get() as usize;
        self.model.rows.truncate(end);
        self.model.batches.retain(|(last, ..)| *last < end);
        let producer = self.random.below(PRODUCERS as u64) as usize;
        let compressions = [Compression::None, Compression::Lz4, Compression::Gzip];
        let mut builder = BatchBuilder::new(BatchOptions {
            compression: compressions[self.random.below(3) as usize],
            producer: Some(BatchProducer {
                id: ProducerId::from_wire(producer as i64).unwrap(),
                epoch: ProducerEpoch::ZERO,
                base_sequence: Sequence::from_wire(self.model.sequences[producer]),
            }),
            ..BatchOptions::default()
        });
        let count = 1 + self.random.below(4) as i32;
        for _ in 0..count {
            let key = self.random.below(KEYS);
            let value = (self.random.below(4) > 0).then(|| {
                let padding = "x".repeat(self.random.below(60) as usize);
                format!("{}-{padding}", self.model.next_value)
            });
            self.model.next_value += 1;
            let time = self.now - self.random.below(20) as i64;
            let value_bytes = value.as_ref().map(String::as_bytes);
            builder
                .append(
                    Timestamp::from_millis(time),
                    Some(&key.to_be_bytes()),
                    value_bytes,
                    &[("h", None)],
                )
                .unwrap();
            self.model.rows.push(Row { key, value, time });
        }
        let last = self.model.rows.len() - 1;
        let sequence = self.model.sequences[producer] + count - 1;
        self.model.batches.push((last, producer, sequence));
        let role = AppendAs::Leader {
            epoch: EPOCH,
            origin: Origin::Client,
        };
        let batch = builder.build().unwrap();
        if log.append(&batch, role, Timestamp::from_millis(self.now)).is_ok() {
            self.model.sequences[producer] += count;
        }
    }

    fn clean(&mut self, log: &mut PartitionLog<SimDisk>, map_keys: usize) {
        let now = Timestamp::from_millis(self.now);
        let limits = CleaningLimits {
            map_bytes: map_keys * 24,
            map_load_factor: 0.9,
            buffer_bytes: 64 << self.random.below(6),
        };
        let Some(view) = log.compaction_view(log.synced_offset()) else {
            return;
        };
        let Ok(backlog) = view.backlog(self.model.cleaned_to, now) else {
            return;
        };
        if !backlog.is_due(view.options()) {
            return;
        }
        let mut cleaning = log.begin_cleaning(&backlog, limits, now);
        let pace = &mut |_| ControlFlow::Continue(());
        if cleaning.map_keys(pace).is_err() {
            return;
        }
        for offset in 0..cleaning.end().get() as usize {
            self.model.covered.entry(offset).or_insert(self.now);
        }
        loop {
            match cleaning.clean_group(pace) {
                Ok(Some(cleaned)) => {
                    if self.random.below(3) == 0 {
                        self.append(log);
                    }
                    let Ok(removed) = log.swap_in(cleaned) else { return };
                    if self.random.below(2) == 0 {
                        for file in removed.files {
                            let _ = self.disk.remove_file(&file);
                        }
                    }
                }
                Ok(None) => break,
                Err(_) => return,
            }
        }
        self.rounds += 1;
        // The checkpoint may be lost.
        if self.random.below(4) > 0 {
            self.model.cleaned_to = Some(cleaning.end());
        }
    }

    /// Compares the log with the model and takes over what became of the unsynced.
    fn check(&mut self, log: &PartitionLog<SimDisk>, recovery: &Recovery) {
        assert_eq!(recovery.damage, [], "nothing is taken for damage");
        let end = log.log_end_offset().get() as usize;
        assert!(end >= self.model.synced, "synced {} end {end}", self.model.synced);
        self.model.rows.truncate(end);
        self.model.batches.retain(|(last, ..)| *last < end);
        self.model.covered.split_off(&end);
        let found = read_all(log);
        for (offset, row) in &found {
            assert_eq!(
                Some(row),
                self.model.rows.get(*offset),
                "at {offset} is what was written there"
            );
        }
        let mut last = BTreeMap::new();
        for (offset, row) in self.model.rows.iter().enumerate() {
            last.insert(row.key, (offset, row.value.is_none()));
        }
        for (key, (offset, is_tombstone)) in last {
            if found.contains_key(&offset) {
                continue;
            }
            assert!(is_tombstone, "the last of key {key}, at {offset}, is gone");
            let covered = self.model.covered.get(&offset).copied();
            assert!(
                covered.is_some_and(|covered| covered + DELETE_RETENTION_MS <= self.now),
                "the tombstone at {offset} went before its time"
            );
            let back = found.iter().find(|(_, row)| row.key == key);
            assert_eq!(back, None, "key {key} has come back behind its tombstone at {offset}");
        }
        for producer in log.producers().active() {
            let index = producer.id.get() as usize;
            let known = self.model.batches.iter().rev().find(|(_, of, _)| *of == index);
            let sequence = producer.last_sequence.map(Sequence::get);
            assert_eq!(sequence, known.map(|(.., sequence)| *sequence), "producer {index}");
        }
        let known: std::collections::BTreeSet<_> = self.model.batches.iter().map(|(_, of, _)| *of).collect();
        assert_eq!(log.producers().len(), known.len(), "every producer is known");
    }

    fn resynchronize_producers(&mut self) {
        for producer in 0..PRODUCERS {
            let last = self.model.batches.iter().rev().find(|(_, of, _)| *of == producer);
            self.model.sequences[producer] = last.map_or(0, |(.., sequence)| sequence + 1);
        }
    }

    fn remove_snapshots(&self) {
        for entry in self.disk.list(Path::new(DIRECTORY)).unwrap() {
            if entry.name.ends_with(".snapshot") {
                self.disk.remove_file(&Path::new(DIRECTORY).join(&entry.name)).unwrap();
            }
        }
    }
}

fn read_all(log: &PartitionLog<SimDisk>) -> BTreeMap<usize, Row> {
    let mut found = BTreeMap::new();
    let mut from = Offset::ZERO;
    while from < log.log_end_offset() {
        let request = ReadRequest {
            from,
            max_bytes: 700,
            up_to: Offset::MAX,
            min_one: true,
            wait: Wait::Allowed,
        };
        let read = log.reader().read(request).unwrap();
        assert!(read.next_offset > from, "a read at {from} gets on");
        let mut rest = read.bytes;
        while !rest.is_empty() {
            let size = Batch::split_first(&rest).unwrap().0.bytes().len();
            for record in records(&rest.split_to(size), DecompressionLimit::DEFAULT).unwrap() {
                let record = record.unwrap();
                assert_eq!(record.headers.len(), 1);
                let row = Row {
                    key: u64::from_be_bytes(record.key.unwrap()[..].try_into().unwrap()),
                    value: record.value.map(|value| String::from_utf8(value.to_vec()).unwrap()),
                    time: record.timestamp.millis(),
                };
                found.insert(record.offset.get() as usize, row);
            }
        }
        from = read.next_offset;
    }
    found
}

fn reopen_and_check(world: &mut World) -> PartitionLog<SimDisk> {
    let (first, recovery) = world.open().unwrap();
    world.check(&first, &recovery);
    let before = (first.log_end_offset(), read_all(&first));
    drop(first);
    let (again, recovery) = world.open().unwrap();
    world.check(&again, &recovery);
    assert_eq!(
        (again.log_end_offset(), read_all(&again)),
        before,
        "opening twice is opening once"
    );
    for entry in world.disk.list(Path::new(DIRECTORY)).unwrap() {
        let is_left = [".swap", ".cleaned", ".deleted"]
            .iter()
            .any(|suffix| entry.name.ends_with(suffix));
        assert!(!is_left, "{} is left", entry.name);
    }
    again
}

/// How many rounds came to their end.
fn run(seed: u64) -> usize {
    let mut world = World::new(seed);
    let (mut log, _) = world.open().unwrap();
    for _ in 0..CRASHES_PER_SEED {
        let call = world.disk.calls() + 1 + world.random.below(CALLS_BETWEEN_CRASHES_MAX);
        world.disk.crash_at_call(call);
        world.work(&mut log);
        drop(log);
        world.disk.restart();
        // The power may go again while the log is opened.
        if world.random.below(2) == 0 {
            world
                .disk
                .crash_at_call(world.disk.calls() + 1 + world.random.below(60));
            let _ = world.open();
            world.disk.restart();
        }
        if world.random.below(4) == 0 {
            world.remove_snapshots();
        }
        log = reopen_and_check(&mut world);
        world.resynchronize_producers();
    }
    world.rounds
}

#[test]
fn the_last_of_each_key_survives_every_crash_and_nothing_comes_back() {
    let mut rounds = 0;
    each_seed(SEEDS, |seed| rounds += run(seed));
    assert!(rounds > 0);
}

/// A log with several groups to clean, synced and recorded; the same each time.
fn prepared(seed: u64) -> (World, PartitionLog<SimDisk>) {
    let mut world = World::new(seed);
    let (mut log, _) = world.open().unwrap();
    for _ in 0..60 {
        world.now += 1;
        world.append(&mut log);
    }
    world.sync(&mut log);
    world.model.recorded = log.recovery_point();
    (world, log)
}

#[test]
fn a_crash_at_any_call_of_a_round_leaves_the_old_or_the_new() {
    for seed in 0..3 {
        let (mut world, mut log) = prepared(seed);
        let begun = world.disk.calls();
        world.clean(&mut log, 4 * KEYS as usize);
        assert_eq!(world.rounds, 1);
        let calls = world.disk.calls() - begun;
        assert!(calls > 50, "{calls} calls are few for several groups");
        for call in 1..=calls {
            let (mut world, mut log) = prepared(seed);
            world.disk.crash_at_call(world.disk.calls() + call);
            world.clean(&mut log, 4 * KEYS as usize);
            drop(log);
            world.disk.restart();
            let mut log = reopen_and_check(&mut world);
            // And it is cleaned as if nothing had been.
            world.model.cleaned_to = None;
            world.resynchronize_producers();
            world.clean(&mut log, 4 * KEYS as usize);
            drop(log);
            drop(reopen_and_check(&mut world));
        }
    }
}
