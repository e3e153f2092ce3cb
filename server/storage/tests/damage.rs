//! What becomes of damage once it is known, and how it gets known where nobody reads.
#![allow(clippy::unwrap_used, reason = "a test ends where it is surprised")]

use std::io::IoSlice;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use model::record_batch::{BatchBuilder, BatchOptions};
use model::{LeaderEpoch, Offset, Timestamp};
use storage::compaction::{CleanError, CleaningLimits};
use storage::disk::{File, OpenMode};
use storage::{
    AppendAs, DamagedRange, Disk, LogOptions, Origin, PartitionLog, ReadError, ReadRequest, SimDisk, Start, Wait,
};

const DAY_MS: i64 = 86_400_000;
const FOLDER: &str = "/t-0";
const BATCH_BYTES: usize = 61 + 16;

fn options() -> LogOptions {
    LogOptions {
        segment_size_bytes: 4 * BATCH_BYTES as u32,
        index_interval_bytes: 100,
        retention_ms: Some(DAY_MS),
        ..LogOptions::default()
    }
}

fn at(day: i64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + day * DAY_MS)
}

/// One record of a size that makes four to a segment.
fn batch(number: i64) -> Bytes {
    let mut builder = BatchBuilder::new(BatchOptions::default());
    let key = [number.to_be_bytes()[7]];
    builder.append(at(number), Some(&key), Some(b"12345678"), &[]).unwrap();
    let bytes = builder.build().unwrap();
    assert_eq!(bytes.len(), BATCH_BYTES);
    bytes
}

fn open(disk: &SimDisk, options: LogOptions, clean: bool, recovery_point: i64) -> PartitionLog<SimDisk> {
    let start = Start {
        clean,
        recovery_point: Offset::new(recovery_point),
        log_start_offset: Offset::ZERO,
    };
    PartitionLog::open(disk.clone(), Path::new(FOLDER), options, start, at(0))
        .unwrap()
        .0
}

/// A log of twelve records in three segments, a day between one and the next.
fn filled(options: LogOptions) -> (SimDisk, PartitionLog<SimDisk>) {
    let disk = SimDisk::new(1);
    let mut log = open(&disk, options, false, 0);
    let role = AppendAs::Leader {
        epoch: LeaderEpoch::new(0),
        origin: Origin::Quorum,
    };
    for number in 0..12 {
        log.append(&batch(number), role, at(number)).unwrap();
    }
    log.sync_now().unwrap();
    (disk, log)
}

fn log_file(base: u64) -> PathBuf {
    Path::new(FOLDER).join(format!("{base:020}.log"))
}

fn range(from: i64, to: i64) -> DamagedRange {
    DamagedRange {
        from: Offset::new(from),
        to: Offset::new(to),
    }
}

fn scrub(log: &PartitionLog<SimDisk>) -> usize {
    let (mut from, mut found) = (Offset::ZERO, 0);
    while let Some(step) = log.reader().scrub(from, |_| ControlFlow::Continue(())).unwrap() {
        from = step.next;
        found += usize::from(step.found);
    }
    assert_eq!(from, log.log_end_offset());
    found
}

fn recorded(disk: &SimDisk) -> Option<String> {
    let file = disk.open(&Path::new(FOLDER).join("quarantine"), OpenMode::Read).ok()?;
    let mut bytes = vec![0; file.size_bytes().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    Some(String::from_utf8(bytes).unwrap())
}

#[test]
fn the_scrubber_finds_what_nobody_reads_and_tells_of_it_once() {
    let (disk, log) = filled(options());
    assert_eq!(scrub(&log), 0);
    assert_eq!(recorded(&disk), None);
    assert!(disk.flip_bit(&log_file(4), BATCH_BYTES + 70, 1));
    assert_eq!(*log.damage(), []);
    assert_eq!(scrub(&log), 1);
    assert_eq!(*log.damage(), [range(5, 6)]);
    assert_eq!(recorded(&disk).as_deref(), Some("0\n1\n4 77 154 5 6\n"));
    assert_eq!(scrub(&log), 0);
    let stopped = log.reader().scrub(Offset::ZERO, |_| ControlFlow::Break(())).unwrap();
    assert_eq!(stopped, None);
}

#[test]
fn a_start_that_reads_nothing_again_knows_of_the_damage() {
    for list_is_whole in [true, false] {
        let (disk, mut log) = filled(options());
        assert!(disk.flip_bit(&log_file(4), 70, 1));
        assert_eq!(scrub(&log), 1);
        log.close().unwrap();
        drop(log);
        if !list_is_whole {
            assert!(disk.flip_bit(&Path::new(FOLDER).join("quarantine"), 3, 7));
        }
        let log = open(&disk, options(), true, 12);
        assert_eq!(*log.damage(), [range(4, 5)], "{list_is_whole}");
        assert_eq!(recorded(&disk).as_deref(), Some("0\n1\n4 0 77 4 5\n"));
    }
}

#[test]
fn what_was_put_right_is_served_again() {
    let (disk, mut log) = filled(options());
    assert!(disk.flip_bit(&log_file(4), 70, 1));
    assert_eq!(scrub(&log), 1);
    log.close().unwrap();
    drop(log);
    assert!(disk.flip_bit(&log_file(4), 70, 1));
    let log = open(&disk, options(), true, 12);
    assert_eq!((&**log.damage(), recorded(&disk)), (&[][..], None));
}

#[test]
fn a_damaged_segment_goes_when_its_time_has_come() {
    let (disk, mut log) = filled(options());
    assert!(disk.flip_bit(&log_file(0), 70, 1));
    assert_eq!(scrub(&log), 1);
    let end = log.log_end_offset();
    assert_eq!(log.enforce_retention(at(3), end).unwrap().segments, 0);
    assert_eq!(*log.damage(), [range(0, 1)]);
    assert_eq!(log.enforce_retention(at(5), end).unwrap().segments, 1);
    assert_eq!((log.log_start_offset(), &**log.damage()), (Offset::new(4), &[][..]));
    assert_eq!(recorded(&disk), None);
}

#[test]
fn a_segment_without_a_sound_record_goes_with_the_next() {
    let (disk, mut log) = filled(options());
    for number in 0..4 {
        assert!(disk.flip_bit(&log_file(0), number * BATCH_BYTES + 70, 1));
    }
    let end = log.log_end_offset();
    assert_eq!(scrub(&log), 1);
    assert_eq!(*log.damage(), [range(0, 4)]);
    assert_eq!(log.enforce_retention(at(7), end).unwrap().segments, 0);
    assert_eq!(log.enforce_retention(at(9), end).unwrap().segments, 2);
    assert_eq!((log.log_start_offset(), log.log_end_offset()), (Offset::new(8), end));
}

#[test]
fn a_moved_batch_is_not_compacted() {
    let compacted = LogOptions {
        compact: true,
        delete: false,
        ..options()
    };
    let (disk, log) = filled(compacted);
    // The base offset lies outside of the checksum.
    assert!(disk.flip_bit(&log_file(4), BATCH_BYTES + 7, 5));
    let backlog = |log: &PartitionLog<SimDisk>| {
        let view = log.compaction_view(log.synced_offset())?;
        Some(view.backlog(None, at(20)).unwrap())
    };
    let mut cleaning = log.begin_cleaning(&backlog(&log).unwrap(), CleaningLimits::default(), at(20));
    let refused = cleaning.map_keys(&mut |_| ControlFlow::Continue(())).unwrap_err();
    assert!(
        matches!(refused, CleanError::Damaged(offset) if offset == Offset::new(5)),
        "{refused}"
    );
    assert_eq!(scrub(&log), 1);
    assert_eq!(backlog(&log), None, "what is known to be damaged is left alone");
}

#[test]
fn a_lost_end_stays_lost_and_the_log_goes_on_behind_it() {
    let (disk, log) = filled(options());
    drop(log);
    let file = disk.open(&log_file(8), OpenMode::ReadWrite).unwrap();
    file.truncate(2 * BATCH_BYTES as u64).unwrap();
    for _ in 0..2 {
        let mut log = open(&disk, options(), false, 12);
        assert_eq!(*log.damage(), [range(10, 12)]);
        assert_eq!(recorded(&disk).as_deref(), Some("0\n1\n8 0 0 10 12\n"));
        let role = AppendAs::Leader {
            epoch: LeaderEpoch::new(0),
            origin: Origin::Quorum,
        };
        let end = log.log_end_offset();
        assert_eq!(log.append(&batch(1), role, at(12)).unwrap().first_offset, end);
        log.sync_now().unwrap();
        let read = |from| {
            log.reader().read(ReadRequest {
                from: Offset::new(from),
                max_bytes: 1000,
                up_to: Offset::MAX,
                min_one: true,
                wait: Wait::Allowed,
            })
        };
        assert_eq!(read(9).unwrap().next_offset, Offset::new(10));
        assert!(matches!(read(11), Err(ReadError::Corrupt(_))));
        assert_eq!(read(12).unwrap().next_offset, log.log_end_offset());
    }
}

#[test]
fn a_reader_that_must_not_wait_leaves_the_search_to_one_that_may() {
    let (disk, log) = filled(options());
    assert!(disk.flip_bit(&log_file(0), 70, 1));
    let read = |wait| {
        log.reader().read(ReadRequest {
            from: Offset::ZERO,
            max_bytes: 1000,
            up_to: Offset::MAX,
            min_one: true,
            wait,
        })
    };
    assert!(matches!(read(Wait::Refused), Err(ReadError::WouldBlock)));
    assert!(matches!(read(Wait::Allowed), Err(ReadError::Corrupt(_))));
    assert!(
        matches!(read(Wait::Refused), Err(ReadError::Corrupt(_))),
        "now it is known"
    );
}

#[test]
fn zeroes_that_a_crash_left_are_cut_where_nothing_was_recorded() {
    let (disk, log) = filled(options());
    drop(log);
    let file = disk.open(&log_file(8), OpenMode::ReadWrite).unwrap();
    let size = file.size_bytes().unwrap();
    file.write_all_at(&[IoSlice::new(&[0; 500])], size).unwrap();
    let log = open(&disk, options(), false, 12);
    assert_eq!((log.log_end_offset(), &**log.damage()), (Offset::new(12), &[][..]));
    assert_eq!(file_size(&disk, 8), size);
}

fn file_size(disk: &SimDisk, base: u64) -> u64 {
    disk.open(&log_file(base), OpenMode::Read)
        .unwrap()
        .size_bytes()
        .unwrap()
}
