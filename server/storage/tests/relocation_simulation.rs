//! Random work on a log that moves to and fro between two directories, whose machine loses power, or one of whose disks
//! fails, at a random disk call.
//!
//! After each crash at most one of the folders is the log, all that was synced and not deleted is in it, nothing is in it
//! that was not written there, and looking twice finds the same as looking once. Where one of the disks is not there, the
//! log is found whole or not at all, and nobody would make a new one. A failure names its seed; `STORAGE_SEED=n cargo test
//! -p storage --test relocation_simulation` runs that seed alone.
#![allow(clippy::unwrap_used, reason = "a test ends where it is surprised")]

use std::path::{Path, PathBuf};

use bytes::Bytes;
use model::record_batch::{Batch, BatchBuilder, BatchOptions, BatchProducer, DecompressionLimit, records};
use model::{
    BrokerId, LeaderEpoch, Offset, PartitionIndex, ProducerEpoch, ProducerId, Sequence, Timestamp, TopicName,
    TopicPartition, Uuid,
};
use storage::log_directory::{FolderKind, MetaProperties, format};
use storage::relocation::{CopyError, Copying, ExchangeError, Noted, SettleError, Sides, exchange, read_note, settle};
use storage::{AppendAs, Disk, LogDirectory, LogOptions, Origin, PartitionLog, ReadError, ReadRequest, SimDisk, Wait};

#[path = "support/seeds.rs"]
mod seeds;

use seeds::{Random, each_seed};

const SEEDS: u64 = 250;
const CRASHES_PER_SEED: usize = 5;
const STEPS_MAX: usize = 300;
const CALLS_BETWEEN_CRASHES_MAX: u64 = 500;
const PATHS: [&str; 2] = ["/a", "/b"];
const TOPIC_ID: Uuid = Uuid::from_bytes([7; 16]);

struct World {
    random: Random,
    /// The same disk twice, or two.
    disks: [SimDisk; 2],
    values: Vec<String>,
    /// How many of them were acknowledged.
    synced: usize,
    /// Everything below may be gone.
    deleted: usize,
    /// Where the controller believes the log to be.
    assigned: usize,
    sequence: i32,
    last: Option<(Bytes, Offset)>,
    now: i64,
    epoch: i32,
    drawn: u64,
    moves: usize,
}

/// A node that runs.
struct Node {
    directories: Vec<Option<LogDirectory<SimDisk>>>,
    at: usize,
    log: PartitionLog<SimDisk>,
    copying: Option<Copying<SimDisk>>,
}

fn place() -> TopicPartition {
    TopicPartition {
        topic: TopicName::new("t").unwrap(),
        partition: PartitionIndex::new(0),
    }
}

fn directory_id(at: usize) -> Uuid {
    Uuid::from_bytes([at as u8 + 10; 16])
}

fn options() -> LogOptions {
    LogOptions {
        segment_size_bytes: 1200,
        index_interval_bytes: 200,
        retention_bytes: Some(6000),
        ..LogOptions::default()
    }
}

impl World {
    fn new(seed: u64, two_disks: bool) -> Self {
        let first = SimDisk::new(seed);
        let second = if two_disks {
            SimDisk::new(seed ^ 0x5555)
        } else {
            first.clone()
        };
        let disks = [first, second];
        for (at, disk) in disks.iter().enumerate() {
            let properties = MetaProperties {
                version: 1,
                cluster_id: Some("c".to_owned()),
                node_id: Some(BrokerId::new(1)),
                directory_id: Some(directory_id(at)),
            };
            format(disk, Path::new(PATHS[at]), &properties).unwrap();
            disk.sync_directory(Path::new("/")).unwrap();
        }
        World {
            random: Random(seed ^ 0xabcd),
            disks,
            values: Vec::new(),
            synced: 0,
            deleted: 0,
            assigned: 0,
            sequence: 0,
            last: None,
            now: 1_700_000_000_000,
            epoch: 0,
            drawn: 0,
            moves: 0,
        }
    }

    fn unique(&mut self) -> Uuid {
        self.drawn += 1;
        let mut bytes = [0x55; 16];
        bytes[8..].copy_from_slice(&self.drawn.to_be_bytes());
        Uuid::from_bytes(bytes)
    }

    fn open_directories(&self, missing: Option<usize>) -> Vec<Option<LogDirectory<SimDisk>>> {
        let open = |at: usize| LogDirectory::open(self.disks[at].clone(), Path::new(PATHS[at]), Uuid::ZERO).unwrap();
        (0..2).map(|at| (missing != Some(at)).then(|| open(at))).collect()
    }

    /// A start of the node; `None` where the partition waits for a directory that is not there.
    fn start(&mut self, missing: Option<usize>) -> Option<Node> {
        let mut directories = self.open_directories(missing);
        for directory in directories.iter_mut().flatten() {
            for folder in directory.folders().unwrap() {
                if folder.kind == FolderKind::Future {
                    let path = directory.path().join(folder.name);
                    directory.discard_future(&path).unwrap();
                }
            }
        }
        let at = self.settle(&mut directories)?;
        let again = self.settle(&mut directories);
        assert_eq!(again, Some(at), "looking twice is looking once");
        let directory = directories[at].as_ref().unwrap();
        let path = directory.create_partition(&place(), TOPIC_ID).unwrap();
        let (start, now) = (directory.start_of(&place()), Timestamp::from_millis(self.now));
        let opened = PartitionLog::open(directory.disk().clone(), &path, options(), start, now);
        let (mut log, recovery) = opened.unwrap();
        assert!(recovery.damage.is_empty(), "{:?}", recovery.damage);
        log.sync_now().unwrap();
        self.check(&log);
        self.assigned = at;
        Some(Node {
            directories,
            at,
            log,
            copying: None,
        })
    }

    /// A start that comes to nothing.
    fn stumble(&mut self) {
        let mut opened = Vec::new();
        for (disk, path) in self.disks.iter().zip(PATHS) {
            opened.push(LogDirectory::open(disk.clone(), Path::new(path), Uuid::ZERO).ok());
        }
        for directory in opened.iter_mut().flatten() {
            for folder in directory.folders().unwrap_or_default() {
                let path = directory.path().join(folder.name);
                if folder.kind == FolderKind::Future {
                    let _ = directory.discard_future(&path);
                }
            }
        }
        if let [Some(first), Some(second)] = &mut opened[..] {
            let mut drawn: Vec<Uuid> = (0..4).map(|_| self.unique()).collect();
            let assigned = Some(directory_id(self.assigned));
            let mut both = [Some(first), Some(second)];
            let _ = settle(&mut both, &place(), TOPIC_ID, assigned, || drawn.pop());
        }
    }

    fn settle(&mut self, directories: &mut [Option<LogDirectory<SimDisk>>]) -> Option<usize> {
        let assigned = self.assigned;
        let mut borrowed: Vec<_> = directories.iter_mut().map(Option::as_mut).collect();
        let mut drawn = Vec::new();
        for _ in 0..4 {
            drawn.push(self.unique());
        }
        let found = settle(&mut borrowed, &place(), TOPIC_ID, Some(directory_id(assigned)), || {
            drawn.pop()
        });
        match found {
            Ok(Some(at)) => Some(at),
            Err(SettleError::WaitsFor(_)) => None,
            Err(error) => panic!("{error}"),
            Ok(None) => {
                // Nobody may make it anew: the directory is missing, or remembers that the log has left it.
                let left = directories[assigned]
                    .as_ref()
                    .is_none_or(|directory| !moved_away(directory).is_empty());
                assert!(left || self.values.is_empty(), "a log is not lost");
                self.values
                    .is_empty()
                    .then_some(assigned)
                    .filter(|at| directories[*at].is_some())
            }
        }
    }

    fn work(&mut self, node: &mut Node) {
        for _ in 0..STEPS_MAX {
            if self.disks.iter().any(SimDisk::has_crashed) && self.random.below(12) == 0 || node.log.is_offline() {
                return;
            }
            self.now += 1;
            match self.random.below(40) {
                0..=12 => self.append(&mut node.log),
                13..=15 => self.sync(&mut node.log),
                16 | 17 => Self::record(node),
                18 => self.retain(node),
                19 => self.delete_records(node),
                20 => self.tell(node),
                21 => self.repeat(&mut node.log),
                22 if self.random.below(8) == 0 => self.cancel(node),
                22..=34 => self.copy(node),
                _ => self.swap(node),
            }
        }
    }

    fn append(&mut self, log: &mut PartitionLog<SimDisk>) {
        let end = log.log_end_offset();
        self.values.truncate(end.get() as usize);
        let mut builder = BatchBuilder::new(BatchOptions {
            producer: Some(BatchProducer {
                id: ProducerId::from_wire(5).unwrap(),
                epoch: ProducerEpoch::from_wire(self.epoch as i16).unwrap(),
                base_sequence: Sequence::from_wire(self.sequence),
            }),
            ..BatchOptions::default()
        });
        let mut values = Vec::new();
        for _ in 0..=self.random.below(3) {
            let value = format!("{}-{}", end.get(), "x".repeat(self.random.below(150) as usize));
            let time = Timestamp::from_millis(self.now);
            builder.append(time, Some(b"k"), Some(value.as_bytes()), &[]).unwrap();
            values.push(value);
        }
        let (bytes, count) = (builder.build().unwrap(), values.len() as i32);
        self.values.extend(values);
        if self.send(log, &bytes).is_ok_and(|appended| !appended) {
            self.sequence += count;
            self.last = Some((bytes, end));
        }
    }

    /// Whether it was a duplicate.
    fn send(&mut self, log: &mut PartitionLog<SimDisk>, bytes: &[u8]) -> Result<bool, storage::AppendError> {
        let role = AppendAs::Leader {
            epoch: LeaderEpoch::new(self.epoch),
            origin: Origin::Client,
        };
        let appended = log.append(bytes, role, Timestamp::from_millis(self.now))?;
        Ok(appended.is_duplicate)
    }

    /// A retry of a batch is known, in whichever directory the log is by now.
    fn repeat(&mut self, log: &mut PartitionLog<SimDisk>) {
        if let Some((bytes, _)) = self.last.clone() {
            assert!(self.send(log, &bytes).unwrap(), "the producer's last batch is known");
        }
    }

    fn sync(&mut self, log: &mut PartitionLog<SimDisk>) {
        if log.sync_now().is_ok() {
            self.synced = self.synced.max(log.synced_offset().get() as usize);
        }
    }

    fn record(node: &mut Node) {
        let (point, start) = (node.log.recovery_point(), node.log.log_start_offset());
        let directory = node.directories[node.at].as_mut().unwrap();
        directory.set_recovery_point(&place(), point);
        directory.set_log_start(&place(), start);
        directory.set_high_watermark(&place(), point);
        let written = directory.write_log_starts().is_ok() && directory.write_high_watermarks().is_ok();
        if written && directory.write_recovery_points().is_ok() {
            node.log.recovery_point_recorded(point);
        }
    }

    fn retain(&mut self, node: &mut Node) {
        let (now, synced) = (Timestamp::from_millis(self.now), node.log.synced_offset());
        match node.log.enforce_retention(now, synced) {
            Ok(removed) => {
                for file in removed.files {
                    let _ = self.disks[node.at].remove_file(&file);
                }
                self.deleted = self.deleted.max(node.log.log_start_offset().get() as usize);
            }
            // A part of it may have been done.
            Err(_) => self.deleted = self.deleted.max(synced.get() as usize),
        }
    }

    fn delete_records(&mut self, node: &mut Node) {
        let (start, synced) = (node.log.log_start_offset(), node.log.synced_offset());
        let to = start.plus(self.random.below(synced.since(start) as u64 / 4 + 1) as i64);
        let _ = node.log.delete_records_before(to, synced);
        self.deleted = self.deleted.max(to.get() as usize);
        Self::record(node);
    }

    /// The controller hears where the log is; what was left behind goes.
    fn tell(&mut self, node: &mut Node) {
        self.assigned = node.at;
        for directory in node.directories.iter().flatten() {
            for path in moved_away(directory) {
                let _ = directory.remove_folder(&path);
            }
        }
    }

    fn cancel(&mut self, node: &mut Node) {
        if let Some(copying) = node.copying.take() {
            let directory = node.directories[1 - node.at].as_mut().unwrap();
            let _ = directory.discard_future(copying.directory());
        }
    }

    fn copy(&mut self, node: &mut Node) {
        let to = 1 - node.at;
        let Some(directory) = node.directories[to].as_mut() else {
            return;
        };
        let Some(copying) = &mut node.copying else {
            let unique = self.unique();
            if directory.has_folder(&place()).unwrap_or(false) {
                let _ = directory.set_stray_aside(&place(), unique);
            } else if let Ok(path) = directory.create_future(&place(), TOPIC_ID, unique) {
                node.copying = Some(Copying::begin(&node.log, directory.disk().clone(), path));
            }
            return;
        };
        let bytes_max = 1 + self.random.below(900) as usize;
        match copying.step(bytes_max) {
            Ok(progress) => {
                assert!(progress.copied <= bytes_max);
                assert!(progress.end <= node.log.log_end_offset());
                if self.random.below(3) == 0 {
                    let _ = copying.sync();
                }
            }
            Err(_) => self.cancel(node),
        }
    }

    fn swap(&mut self, node: &mut Node) {
        let (to, unique) = (1 - node.at, self.unique());
        let bytes_max = self.random.below(3000);
        // A log does not move on before the controller knows where it is.
        let Some(copying) = node.copying.as_mut().filter(|_| self.assigned == node.at) else {
            return;
        };
        let [first, second] = &mut node.directories[..] else {
            return;
        };
        let (Some(first), Some(second)) = (first, second) else {
            return;
        };
        let (from, target) = if node.at == 0 { (first, second) } else { (second, first) };
        let sides = Sides {
            from,
            to: target,
            place: &place(),
        };
        let (high_watermark, now) = (node.log.synced_offset(), Timestamp::from_millis(self.now));
        match exchange(sides, copying, &node.log, high_watermark, (unique, bytes_max), now) {
            Ok(exchanged) => {
                let (old, new) = (&node.log, &exchanged.log);
                // The power may go while they are read.
                if let (Ok(old), Ok(new)) = (read_all(old), read_all(new)) {
                    assert_eq!(old, new);
                }
                assert_eq!(new.synced_offset(), old.log_end_offset());
                node.log = exchanged.log;
                node.at = to;
                node.copying = None;
                self.synced = self.synced.max(node.log.log_end_offset().get() as usize);
                self.moves += 1;
            }
            Err(ExchangeError::Copy(CopyError::Behind(_))) => {}
            Err(_) => self.cancel(node),
        }
    }

    fn check(&mut self, log: &PartitionLog<SimDisk>) {
        let found = read_all(log).unwrap();
        for (offset, value) in &found {
            assert_eq!(
                self.values.get(*offset),
                Some(value),
                "offset {offset} holds what was written there"
            );
        }
        let (start, end) = (
            log.log_start_offset().get() as usize,
            log.log_end_offset().get() as usize,
        );
        assert!(
            start <= self.deleted,
            "nothing is deleted by itself: {start} above {}",
            self.deleted
        );
        assert!(
            end >= self.synced,
            "acknowledged up to {}, found up to {end}",
            self.synced
        );
        let offsets = found
            .iter()
            .map(|(offset, _)| *offset)
            .filter(|offset| *offset >= start);
        assert!(offsets.eq(start..end), "without gaps");
        self.values.truncate(end);
        self.synced = end;
        // What has become of the last batch is not known: a new epoch of the producer begins.
        (self.last, self.sequence) = (None, 0);
        self.epoch += 1;
    }
}

/// Folders of which a note says that the log has left them.
fn moved_away(directory: &LogDirectory<SimDisk>) -> Vec<PathBuf> {
    let folders = directory.folders().unwrap_or_default().into_iter();
    let deleted = folders.filter(|folder| folder.kind == FolderKind::Deleted);
    let paths = deleted.map(|folder| directory.path().join(folder.name));
    paths
        .filter(|path| matches!(read_note(directory.disk(), path), Ok(Noted::Move(_))))
        .collect()
}

fn read_all(log: &PartitionLog<SimDisk>) -> Result<Vec<(usize, String)>, ReadError> {
    let mut found = Vec::new();
    let mut from = log.log_start_offset();
    while from < log.log_end_offset() {
        let request = ReadRequest {
            from,
            max_bytes: 4000,
            up_to: Offset::MAX,
            min_one: true,
            wait: Wait::Allowed,
        };
        let read = log.reader().read(request)?;
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
    Ok(found)
}

fn power_off(disks: &[SimDisk; 2]) {
    for disk in disks {
        if !disk.has_crashed() {
            disk.crash_at_call(disk.calls() + 1);
            let _ = disk.sync_directory(Path::new("/"));
        }
        disk.restart();
    }
}

/// How often the log has moved.
fn run(seed: u64, two_disks: bool) -> usize {
    let mut world = World::new(seed, two_disks);
    let mut node = world.start(None).unwrap();
    for _ in 0..CRASHES_PER_SEED {
        let failing = world.random.below(2) as usize;
        let disk = &world.disks[failing];
        disk.crash_at_call(disk.calls() + 1 + world.random.below(CALLS_BETWEEN_CRASHES_MAX));
        world.work(&mut node);
        drop(node);
        power_off(&world.disks);
        // One of the disks may not be there the next time.
        let missing = (world.random.below(3) == 0).then(|| world.random.below(2) as usize);
        node = match world.start(missing) {
            Some(node) => node,
            None => world.start(None).expect("with both disks the log is found"),
        };
        // The power may go while the node starts, too.
        if world.random.below(3) == 0 {
            drop(node);
            let disk = &world.disks[failing];
            disk.crash_at_call(disk.calls() + 1 + world.random.below(40));
            world.stumble();
            power_off(&world.disks);
            node = world.start(None).expect("with both disks the log is found");
        }
    }
    world.moves
}

fn run_seeds(two_disks: bool) {
    let (mut moves, mut seeds) = (0, 0);
    each_seed(SEEDS, |seed| {
        moves += run(seed, two_disks);
        seeds += 1;
    });
    assert!(
        moves * 2 > seeds,
        "{moves} moves in {seeds} seeds are too few to tell anything"
    );
}

#[test]
fn exactly_one_folder_is_the_log_after_every_loss_of_power() {
    run_seeds(false);
}

#[test]
fn exactly_one_folder_is_the_log_when_one_of_two_disks_fails() {
    run_seeds(true);
}
