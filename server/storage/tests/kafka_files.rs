//! The folder of a partition that Apache Kafka 4.4.0 wrote: 120 records by idempotent producers in two segments, the
//! second compressed with zstd (`index.interval.bytes=500`, `segment.ms=3000`), closed in good order.
//!
//! We open it as our own, and what we write of the same batches is the same, byte for byte.
#![allow(clippy::unwrap_used, reason = "a test ends where it is surprised")]

use std::io::IoSlice;
use std::path::Path;

use model::record_batch::{BatchHeader, Batches, DecompressionLimit};
use model::{LeaderEpoch, Offset, Timestamp};
use storage::disk::{OpenMode, read_small_file};
use storage::inspect::rebuild::{Audience, RebuildOptions, Rebuilt, rebuild};
use storage::inspect::verify::{VerifyOptions, verify};
use storage::inspect::{Finding, Target, Watcher};
use storage::{AppendAs, Disk, File, LogOptions, PartitionLog, ReadRequest, SimDisk, Start, Wait};

const DIRECTORY: &str = "/gold-0";
const END: Offset = Offset::new(120);

macro_rules! golden {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_bytes!(concat!("golden/gold-0/", $name)))),*]
    };
}

const FILES: &[(&str, &[u8])] = golden![
    "00000000000000000000.index",
    "00000000000000000000.log",
    "00000000000000000000.timeindex",
    "00000000000000000060.index",
    "00000000000000000060.log",
    "00000000000000000060.snapshot",
    "00000000000000000060.timeindex",
    "00000000000000000120.snapshot",
    "leader-epoch-checkpoint",
    "partition.metadata",
];

fn options() -> LogOptions {
    LogOptions {
        index_interval_bytes: 500,
        segment_ms: 3000,
        ..LogOptions::default()
    }
}

fn content(name: &str) -> &'static [u8] {
    FILES
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, content)| *content)
        .unwrap()
}

fn disk_with_kafkas_files() -> SimDisk {
    let disk = SimDisk::new(1);
    disk.create_directory(Path::new(DIRECTORY)).unwrap();
    for (name, content) in FILES {
        let file = disk.open(&Path::new(DIRECTORY).join(name), OpenMode::Create).unwrap();
        file.write_all_at(&[IoSlice::new(content)], 0).unwrap();
    }
    disk
}

fn open(disk: &SimDisk, clean: bool) -> PartitionLog<SimDisk> {
    let start = Start {
        clean,
        recovery_point: END,
        log_start_offset: Offset::ZERO,
    };
    let now = Timestamp::from_millis(0);
    let (log, recovery) = PartitionLog::open(disk.clone(), Path::new(DIRECTORY), options(), start, now).unwrap();
    assert!(recovery.damage.is_empty() && recovery.bytes_cut == 0, "{recovery:?}");
    log
}

#[test]
fn kafkas_folder_is_opened_as_our_own() {
    for clean in [true, false] {
        let log = open(&disk_with_kafkas_files(), clean);
        assert_eq!((log.log_start_offset(), log.log_end_offset()), (Offset::ZERO, END));
        assert_eq!(log.latest_epoch(), Some(LeaderEpoch::ZERO));
        assert_eq!(log.producers().len(), 2);
        let reader = log.reader();
        let mut offset = Offset::ZERO;
        let mut read = Vec::new();
        while offset < END {
            let request = ReadRequest {
                from: offset,
                max_bytes: 1000,
                up_to: Offset::MAX,
                min_one: true,
                wait: Wait::Allowed,
            };
            let part = reader.read(request).unwrap();
            assert_eq!(part.first_offset, offset);
            read.extend_from_slice(&part.bytes);
            offset = part.next_offset;
        }
        let stored = [content("00000000000000000000.log"), content("00000000000000000060.log")].concat();
        assert_eq!(read, stored);
        for batch in Batches::new(&stored) {
            let header = batch.unwrap().header;
            let first = Timestamp::from_millis(header.base_timestamp);
            let found = reader
                .offset_for_timestamp(first, DecompressionLimit::DEFAULT, Wait::Allowed)
                .unwrap()
                .unwrap();
            assert!(found.offset <= header.first_offset() && found.timestamp >= first);
        }
    }
}

#[test]
fn the_same_batches_make_the_same_files() {
    let disk = SimDisk::new(1);
    let now = Timestamp::from_millis(0);
    let (mut log, _) =
        PartitionLog::open(disk.clone(), Path::new(DIRECTORY), options(), Start::default(), now).unwrap();
    for name in ["00000000000000000000.log", "00000000000000000060.log"] {
        for batch in Batches::new(content(name)) {
            log.append(batch.unwrap().bytes(), AppendAs::Follower, now).unwrap();
        }
    }
    assert_eq!(log.close().unwrap(), END);
    for (name, expected) in FILES.iter().filter(|(name, _)| *name != "partition.metadata") {
        let written = read_small_file(&disk, &Path::new(DIRECTORY).join(name), 1 << 20).unwrap();
        assert_eq!(written, *expected, "{name}");
    }
}

#[test]
fn an_index_that_kafka_preallocated_is_read() {
    // What a Kafka that was killed leaves: index files of their greatest size, the rest of them zero.
    let disk = disk_with_kafkas_files();
    for name in ["00000000000000000060.index", "00000000000000000060.timeindex"] {
        let file = disk
            .open(&Path::new(DIRECTORY).join(name), OpenMode::ReadWrite)
            .unwrap();
        let entry = if name.ends_with("timeindex") { 12 } else { 8 };
        file.truncate(100_000 / entry * entry).unwrap();
    }
    for clean in [true, false] {
        let log = open(&disk, clean);
        let request = ReadRequest {
            from: Offset::new(110),
            max_bytes: 1,
            up_to: Offset::MAX,
            min_one: true,
            wait: Wait::Allowed,
        };
        let header = BatchHeader::parse(&log.reader().read(request).unwrap().bytes).unwrap();
        assert!(header.first_offset() <= Offset::new(110) && header.last_offset() >= Offset::new(110));
    }
}

#[derive(Default)]
struct Notes {
    findings: Vec<Finding>,
    changed: usize,
}

impl Watcher for Notes {
    fn found(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    fn read(&mut self, _bytes: u64) {}
}

impl Audience for Notes {
    fn rebuilt(&mut self, file: Rebuilt) {
        self.changed += usize::from(file.changed);
    }
}

#[test]
fn kafkas_files_hold_together_and_come_back_as_it_wrote_them() {
    let disk = disk_with_kafkas_files();
    let directory = Path::new(DIRECTORY);
    let target = Target::of(&disk, directory).unwrap();
    let look = || {
        let options = VerifyOptions {
            records: true,
            index_interval_bytes: 500,
        };
        let mut notes = Notes::default();
        let looked = verify(&disk, &target, options, &mut notes).unwrap();
        (looked.segments, notes.findings)
    };
    assert_eq!(look(), (2, Vec::new()));
    let derived = FILES
        .iter()
        .filter(|(name, _)| name.ends_with("index") || name.ends_with("60.snapshot"));
    for (name, _) in derived.clone() {
        disk.remove_file(&directory.join(name)).unwrap();
    }
    assert_eq!(look().1.len(), 4);
    let options = RebuildOptions {
        index_interval_bytes: 500,
    };
    let mut notes = Notes::default();
    rebuild(&disk, &target, options, &mut notes).unwrap();
    assert_eq!(notes.changed, 5);
    for (name, content) in derived {
        let written = read_small_file(&disk, &directory.join(name), 1 << 20).unwrap();
        assert_eq!(written, *content, "{name}");
    }
    assert_eq!(look(), (2, Vec::new()));
}
