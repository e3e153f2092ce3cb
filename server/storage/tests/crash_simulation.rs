//! Random work on a log whose machine loses power at a random disk call, again and again.
//!
//! After each crash the log is opened and compared with what was done: everything synced is there at its offset, nothing
//! is there that was not written there, no batch twice, and opening twice finds the same as opening once. A failure names
//! its seed; `STORAGE_SEED=n cargo test -p storage --test crash_simulation` runs that seed alone.
#![allow(clippy::unwrap_used, reason = "a test ends where it is surprised")]

use std::path::Path;

use bytes::Bytes;
use model::record_batch::{Batch, BatchBuilder, BatchOptions, BatchProducer, DecompressionLimit, records};
use model::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, Timestamp};
use storage::{
    AppendAs, Appended, Disk, Durability, LogOptions, Origin, PartitionLog, ReadError, ReadRequest, Recovery, SimDisk,
    Start, SyncHandle, Wait,
};

#[path = "support/seeds.rs"]
mod seeds;

use seeds::{Random, each_seed};

const SEEDS: u64 = 400;
const CRASHES_PER_SEED: usize = 4;
const STEPS_MAX: usize = 400;
const CALLS_BETWEEN_CRASHES_MAX: u64 = 250;
const DIRECTORY: &str = "/t-0";
const PRODUCERS: i64 = 2;

/// What was done: one row an offset, also for what may be lost.
#[derive(Default)]
struct Model {
    values: Vec<String>,
    /// How many of them were reported as synced and not truncated since.
    synced: usize,
    /// What the recovery point checkpoint says.
    recorded: Offset,
    next_value: u64,
    /// The batch that each producer sent last and which was appended: its bytes and first offset.
    last: [Option<(Bytes, Offset)>; PRODUCERS as usize],
    sequences: [i32; PRODUCERS as usize],
    epoch: i32,
}

struct World {
    random: Random,
    disk: SimDisk,
    model: Model,
    now: i64,
    durability: Durability,
}

fn options(durability: Durability) -> LogOptions {
    LogOptions {
        segment_size_bytes: 1500,
        index_interval_bytes: 200,
        durability,
        ..LogOptions::default()
    }
}

impl World {
    fn new(seed: u64, durability: Durability, reorder: bool) -> Self {
        let disk = SimDisk::new(seed);
        disk.reorder_on_crash(reorder);
        disk.create_directory(Path::new(DIRECTORY)).unwrap();
        disk.sync_directory(Path::new("/")).unwrap();
        World {
            random: Random(seed ^ 0xabcd),
            disk,
            model: Model::default(),
            now: 1_700_000_000_000,
            durability,
        }
    }

    fn open(&self) -> Result<(PartitionLog<SimDisk>, Recovery), storage::OpenError> {
        let start = Start {
            clean: false,
            recovery_point: self.model.recorded,
            log_start_offset: Offset::ZERO,
        };
        let now = Timestamp::from_millis(self.now);
        PartitionLog::open(
            self.disk.clone(),
            Path::new(DIRECTORY),
            options(self.durability),
            start,
            now,
        )
    }

    fn batch(&mut self) -> (usize, Bytes, Vec<String>) {
        let producer = self.random.below(PRODUCERS as u64) as usize;
        let mut builder = BatchBuilder::new(BatchOptions {
            producer: Some(BatchProducer {
                id: ProducerId::from_wire(producer as i64).unwrap(),
                epoch: ProducerEpoch::ZERO,
                base_sequence: Sequence::from_wire(self.model.sequences[producer]),
            }),
            ..BatchOptions::default()
        });
        let mut values = Vec::new();
        for _ in 0..=self.random.below(4) {
            let padding = "x".repeat(self.random.below(200) as usize);
            let value = format!("{}-{padding}", self.model.next_value);
            self.model.next_value += 1;
            builder
                .append(
                    Timestamp::from_millis(self.now),
                    Some(b"k"),
                    Some(value.as_bytes()),
                    &[],
                )
                .unwrap();
            values.push(value);
        }
        (producer, builder.build().unwrap(), values)
    }

    /// Works until the power goes; a sync may be running all the while.
    fn work(&mut self, log: &mut PartitionLog<SimDisk>) {
        let mut running: Option<SyncHandle<SimDisk>> = None;
        for _ in 0..STEPS_MAX {
            if self.disk.has_crashed() {
                return;
            }
            self.now += 1;
            match self.random.below(20) {
                0..=10 => self.append(log),
                11..=13 if running.is_none() => running = log.begin_sync(),
                11..=15 => {
                    if let Some(handle) = running.take() {
                        let up_to = handle.up_to();
                        let done = handle.run();
                        if let Ok(synced) = log.synced(done) {
                            assert!(synced <= up_to.max(Offset::new(self.model.synced as i64)));
                            self.model.synced = self.model.synced.max(synced.get() as usize);
                        }
                    }
                }
                16 | 17 => {
                    let point = log.recovery_point();
                    assert!(point.get() as usize <= self.model.synced);
                    self.model.recorded = point;
                    log.recovery_point_recorded(point);
                }
                18 if self.random.below(4) == 0 => self.truncate(log),
                _ => self.repeat(log),
            }
        }
    }

    fn append(&mut self, log: &mut PartitionLog<SimDisk>) {
        let end = log.log_end_offset();
        self.model.values.truncate(end.get() as usize);
        let (producer, bytes, values) = self.batch();
        let count = values.len() as i32;
        // Whether it fails or not, it may be there after a crash.
        self.model.values.extend(values);
        if let Ok(appended) = self.send(log, &bytes) {
            assert_eq!((appended.first_offset, appended.is_duplicate), (end, false));
            self.model.sequences[producer] += count;
            self.model.last[producer] = Some((bytes, end));
        }
    }

    fn send(&mut self, log: &mut PartitionLog<SimDisk>, bytes: &[u8]) -> Result<Appended, storage::AppendError> {
        let role = AppendAs::Leader {
            epoch: LeaderEpoch::new(self.model.epoch),
            origin: Origin::Client,
        };
        log.append(bytes, role, Timestamp::from_millis(self.now))
    }

    /// A retry of a batch whose answer was lost.
    fn repeat(&mut self, log: &mut PartitionLog<SimDisk>) {
        let producer = self.random.below(PRODUCERS as u64) as usize;
        let Some((bytes, offset)) = self.model.last[producer].clone() else {
            return;
        };
        let end = log.log_end_offset();
        let answer = self.send(log, &bytes).unwrap();
        assert_eq!(
            (answer.first_offset, answer.is_duplicate),
            (offset, true),
            "a retry gets the first answer"
        );
        assert_eq!(log.log_end_offset(), end);
    }

    fn truncate(&mut self, log: &mut PartitionLog<SimDisk>) {
        let end = log.log_end_offset().get();
        let target = Offset::new(end - self.random.below(end as u64 / 2 + 1) as i64);
        let mut recorded = self.model.recorded;
        let cut = log.truncate_to(target, Timestamp::from_millis(self.now), |point| {
            recorded = point;
            Ok(())
        });
        self.model.recorded = recorded;
        if let Ok(end) = cut {
            assert!(end <= target);
            self.model.synced = self.model.synced.min(end.get() as usize);
            self.model.values.truncate(end.get() as usize);
            self.forget_producers(end);
        } else if recorded <= target {
            // What was to be cut is not promised any more, whether the cut came to its end or not.
            self.model.synced = self.model.synced.min(recorded.get() as usize);
        }
        self.model.epoch += 1;
    }

    /// Lets the producers whose last batch is not in the log begin anew under other sequences.
    fn forget_producers(&mut self, end: Offset) {
        for producer in 0..PRODUCERS as usize {
            if self.model.last[producer]
                .as_ref()
                .is_some_and(|(_, offset)| *offset >= end)
            {
                self.model.last[producer] = None;
            }
        }
    }

    /// Compares the log with the model and takes over what became of the unsynced.
    fn check(&mut self, log: &PartitionLog<SimDisk>, recovery: &Recovery) {
        let found = read_all(log, recovery);
        for (offset, value) in &found {
            assert_eq!(
                self.model.values.get(*offset),
                Some(value),
                "offset {offset} holds what was written there"
            );
        }
        for offset in 0..self.model.synced {
            assert!(
                found.iter().any(|(found, _)| *found == offset),
                "synced offset {offset} is there"
            );
        }
        let end = log.log_end_offset().get() as usize;
        assert!(end >= self.model.synced);
        if recovery.damage.is_empty() {
            assert!(found.iter().map(|(offset, _)| *offset).eq(0..end), "without gaps");
        }
        self.model.values.truncate(end);
    }

    /// After a restart the producers are what the log says.
    fn resynchronize_producers(&mut self, log: &PartitionLog<SimDisk>) {
        self.forget_producers(log.log_end_offset());
        for producer in log.producers().active() {
            let index = producer.id.get() as usize;
            let last = producer.last_sequence.expect("there are no markers");
            self.model.sequences[index] = last.plus(1).get();
            if self.model.last[index].is_some() {
                let (bytes, _) = self.model.last[index].clone().unwrap();
                let header = Batch::split_first(&bytes).unwrap().0.header;
                // An append that failed may be in the log: then its predecessor was the last before it.
                if header.last_sequence() != Some(last) {
                    self.model.last[index] = None;
                }
            }
        }
    }
}

fn read_all(log: &PartitionLog<SimDisk>, recovery: &Recovery) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut from = Offset::ZERO;
    while from < log.log_end_offset() {
        let request = ReadRequest {
            from,
            max_bytes: 700,
            up_to: Offset::MAX,
            min_one: true,
            wait: Wait::Allowed,
        };
        let read = match log.reader().read(request) {
            Ok(read) => read,
            Err(ReadError::Corrupt(offset)) => {
                let range = recovery
                    .damage
                    .iter()
                    .find(|range| range.from <= offset && offset < range.to);
                from = range.expect("only reported damage is refused").to;
                continue;
            }
            Err(error) => panic!("reading {from}: {error}"),
        };
        assert!(read.next_offset > from);
        let mut rest = read.bytes;
        while !rest.is_empty() {
            let size = Batch::split_first(&rest).unwrap().0.bytes().len();
            for record in records(&rest.split_to(size), DecompressionLimit::DEFAULT).unwrap() {
                let record = record.unwrap();
                let value = String::from_utf8(record.value.unwrap().to_vec()).unwrap();
                found.push((record.offset.get() as usize, value));
            }
        }
        from = read.next_offset;
    }
    found
}

/// True if the log ended with damage that could not be told from rot.
fn run(seed: u64, durability: Durability, reorder: bool) -> bool {
    let mut world = World::new(seed, durability, reorder);
    let Ok((mut log, _)) = world.open() else {
        panic!("an empty log opens")
    };
    for _ in 0..CRASHES_PER_SEED {
        let call = world.disk.calls() + 1 + world.random.below(CALLS_BETWEEN_CRASHES_MAX);
        world.disk.crash_at_call(call);
        world.work(&mut log);
        drop(log);
        world.disk.restart();
        // The power may go again while the log is opened.
        if world.random.below(3) == 0 {
            world
                .disk
                .crash_at_call(world.disk.calls() + 1 + world.random.below(60));
            let _ = world.open();
            world.disk.restart();
        }
        let (first, recovery) = world.open().unwrap();
        world.check(&first, &recovery);
        let (end, damage) = (first.log_end_offset(), recovery.damage.clone());
        drop(first);
        let (again, recovery) = world.open().unwrap();
        world.check(&again, &recovery);
        assert_eq!(
            (again.log_end_offset(), &recovery.damage),
            (end, &damage),
            "opening twice is opening once"
        );
        assert_eq!(recovery.bytes_cut, 0, "what was cut is gone");
        if !damage.is_empty() {
            eprintln!(
                "seed {seed} ({:?}) ends with damage {damage:?}, recorded {}, synced {}",
                world.durability, world.model.recorded, world.model.synced
            );
            return true;
        }
        world.resynchronize_producers(&again);
        world.model.epoch += 1;
        log = again;
    }
    false
}

/// Each seed under both durabilities.
fn run_seeds(reorder: bool) {
    each_seed(SEEDS, |seed| {
        for durability in [Durability::Fsync, Durability::Replicated] {
            let damaged = run(seed, durability, reorder);
            assert!(reorder || !damaged, "{durability:?}: no log is given up");
        }
    });
}

#[test]
fn what_was_synced_survives_every_crash_and_no_log_is_given_up() {
    run_seeds(false);
}

#[test]
fn what_was_synced_survives_even_if_the_disk_writes_in_any_order() {
    run_seeds(true);
}

#[test]
fn a_seed_runs_the_same_twice() {
    let trace = |seed| {
        let mut world = World::new(seed, Durability::Fsync, false);
        let (mut log, _) = world.open().unwrap();
        world.disk.crash_at_call(400);
        world.work(&mut log);
        world.disk.restart();
        let (log, recovery) = world.open().unwrap();
        (world.disk.calls(), read_all(&log, &recovery), recovery)
    };
    assert_eq!(trace(5), trace(5));
}
