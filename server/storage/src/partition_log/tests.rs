//! What a log does, on the real and on the simulated disk.

use std::path::Path;

use bytes::Bytes;
use model::record_batch::{
    Batch, BatchBuilder, BatchOptions, BatchProducer, Compression, DecompressionLimit, TimestampType, records,
};
use model::{ErrorCode, ProducerEpoch, ProducerId, Sequence};

use super::*;
use crate::disk::{Fault, GuardedDisk, Operation, RealDisk, SimDisk};
use crate::{CompressionPolicy, Read, ReadError, ReadRequest, Recovery, Start, Wait};

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);
const EPOCH: LeaderEpoch = LeaderEpoch::new(3);
const CLIENT: AppendAs = AppendAs::Leader {
    epoch: EPOCH,
    origin: Origin::Client,
};

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(NOW.millis() + millis)
}

fn batch_with(options: BatchOptions, values: &[&str], first: Timestamp) -> Bytes {
    let mut builder = BatchBuilder::new(options);
    for (index, value) in (0..).zip(values) {
        let time = Timestamp::from_millis(first.millis() + index);
        builder.append(time, Some(b"k"), Some(value.as_bytes()), &[]).unwrap();
    }
    builder.build().unwrap()
}

fn batch(values: &[&str]) -> Bytes {
    batch_with(BatchOptions::default(), values, NOW)
}

fn idempotent(sequence: i32, values: &[&str]) -> Bytes {
    let producer = BatchProducer {
        id: ProducerId::from_wire(9).unwrap(),
        epoch: ProducerEpoch::ZERO,
        base_sequence: Sequence::from_wire(sequence),
    };
    batch_with(
        BatchOptions {
            producer: Some(producer),
            ..BatchOptions::default()
        },
        values,
        NOW,
    )
}

fn small_segments() -> LogOptions {
    LogOptions {
        segment_size_bytes: 300,
        index_interval_bytes: 100,
        ..LogOptions::default()
    }
}

fn open<D: Disk>(disk: &D, path: &Path, options: LogOptions, start: Start) -> (PartitionLog<D>, Recovery) {
    PartitionLog::open(disk.clone(), path, options, start, NOW).unwrap()
}

fn read<D: Disk>(log: &PartitionLog<D>, from: i64) -> Result<Read, ReadError> {
    let request = ReadRequest {
        from: Offset::new(from),
        max_bytes: 1 << 20,
        up_to: Offset::MAX,
        min_one: true,
        wait: Wait::Allowed,
    };
    log.reader().read(request)
}

/// All values from `from` on, with their offsets.
fn values<D: Disk>(log: &PartitionLog<D>, from: i64) -> Vec<(i64, String)> {
    let mut from = from;
    let mut found = Vec::new();
    loop {
        let got = read(log, from).unwrap();
        if got.bytes.is_empty() {
            return found;
        }
        let mut rest = got.bytes.clone();
        while !rest.is_empty() {
            let size = Batch::split_first(&rest).unwrap().0.bytes().len();
            for record in records(&rest.split_to(size), DecompressionLimit::DEFAULT).unwrap() {
                let record = record.unwrap();
                found.push((
                    record.offset.get(),
                    String::from_utf8(record.value.unwrap().to_vec()).unwrap(),
                ));
            }
        }
        from = got.next_offset.get();
    }
}

/// Expands to a test that runs a suite, generic over the disk, on both of them.
macro_rules! on_both_disks {
    ($($name:ident => $suite:ident;)*) => {
        $(#[test]
        fn $name() {
            let temporary = tempfile::tempdir().unwrap();
            $suite(&RealDisk, &temporary.path().join("t-0"));
            $suite(&SimDisk::new(1), Path::new("/t-0"));
        })*
    };
}

on_both_disks! {
    offsets_follow_one_another_over_segments => offsets_suite;
    reads_keep_their_bounds => bounds_suite;
    a_log_is_the_same_after_it_was_opened_again => reopen_suite;
    lost_or_senseless_indexes_change_no_answer => index_suite;
    a_truncated_log_goes_on_at_its_new_end => truncate_suite;
    retention_goes_by_time_size_and_log_start => retention_suite;
}

fn offsets_suite<D: Disk>(disk: &D, path: &Path) {
    let (mut log, _) = open(disk, path, small_segments(), Start::default());
    let first = log.append(&batch(&["a", "b"]), CLIENT, NOW).unwrap();
    assert_eq!((first.first_offset.get(), first.last_offset.get()), (0, 1));
    for index in 0..20 {
        let appended = log.append(&batch(&[&format!("v{index}")]), CLIENT, NOW).unwrap();
        assert_eq!(appended.first_offset.get(), 2 + index);
    }
    assert!(log.segments().len() > 3);
    let found = values(&log, 0);
    assert_eq!(found.len(), 22);
    assert!(
        found
            .iter()
            .enumerate()
            .all(|(index, (offset, _))| i64::try_from(index).unwrap() == *offset)
    );
    assert_eq!(values(&log, 1).len(), 22, "the batch that holds an offset comes whole");
    let bytes = read(&log, 5).unwrap().bytes;
    assert_eq!(Batch::split_first(&bytes).unwrap().0.header.leader_epoch(), Some(EPOCH));
    assert!(matches!(read(&log, 23), Err(ReadError::OutOfRange { .. })));
    assert!(read(&log, 22).unwrap().bytes.is_empty());
}

fn bounds_suite<D: Disk>(disk: &D, path: &Path) {
    let (mut log, _) = open(disk, path, LogOptions::default(), Start::default());
    for index in 0..5 {
        log.append(&batch(&[&format!("v{index}"), "x"]), CLIENT, NOW).unwrap();
    }
    let size = batch(&["v0", "x"]).len();
    let ask = |from: i64, max_bytes: usize, up_to: i64, min_one: bool| {
        let request = ReadRequest {
            from: Offset::new(from),
            max_bytes,
            up_to: Offset::new(up_to),
            min_one,
            wait: Wait::Allowed,
        };
        log.reader().read(request).unwrap().next_offset.get()
    };
    assert_eq!(ask(0, 10 * size, 10, true), 10);
    assert_eq!(ask(0, 2 * size + 5, 10, true), 4);
    assert_eq!(
        ask(0, 10 * size, 7, true),
        6,
        "a batch that reaches over the bound stays out"
    );
    assert_eq!(ask(2, 1, 10, true), 4, "one batch comes even if it is too large");
    assert_eq!(ask(2, 1, 10, false), 2);
    assert_eq!(ask(8, 10 * size, 8, true), 8);
}

fn reopen_suite<D: Disk>(disk: &D, path: &Path) {
    let (mut log, _) = open(disk, path, small_segments(), Start::default());
    for index in 0..10 {
        log.append(&idempotent(index, &[&format!("v{index}")]), CLIENT, NOW)
            .unwrap();
    }
    let before = values(&log, 0);
    let end = log.close().unwrap();
    let clean = Start {
        clean: true,
        recovery_point: end,
        log_start_offset: Offset::ZERO,
    };
    let (log, recovery) = open(disk, path, small_segments(), clean);
    assert_eq!(recovery, Recovery::default());
    assert_eq!(values(&log, 0), before);
    assert_eq!(log.synced_offset(), end);
    drop(log);
    // The same without knowing that it was closed well.
    let (mut log, recovery) = open(disk, path, small_segments(), Start { clean: false, ..clean });
    assert_eq!((recovery.bytes_cut, recovery.damage.len()), (0, 0));
    assert_eq!(values(&log, 0), before);
    assert_eq!(log.latest_epoch(), Some(EPOCH));
    let again = log.append(&idempotent(9, &["v9"]), CLIENT, NOW).unwrap();
    assert!(again.is_duplicate);
    assert_eq!(again.first_offset.get(), 9);
    let next = log.append(&idempotent(10, &["v10"]), CLIENT, NOW).unwrap();
    assert_eq!(next.first_offset, end);
}

fn index_suite<D: Disk>(disk: &D, path: &Path) {
    let (mut log, _) = open(disk, path, small_segments(), Start::default());
    for index in 0..30 {
        let time = at(i64::from(index % 7) * 1000);
        log.append(
            &batch_with(BatchOptions::default(), &[&format!("v{index}")], time),
            CLIENT,
            at(9000),
        )
        .unwrap();
    }
    let answers = |log: &PartitionLog<D>| {
        let reader = log.reader();
        let by_time: Vec<_> = (0..9)
            .map(|seconds| {
                let found = reader.offset_for_timestamp(at(seconds * 1000), DecompressionLimit::DEFAULT, Wait::Allowed);
                found.unwrap().map(|found| found.offset.get())
            })
            .collect();
        let latest = reader
            .offset_of_max_timestamp(DecompressionLimit::DEFAULT, Wait::Allowed)
            .unwrap()
            .unwrap();
        let starts: Vec<_> = (0..30)
            .map(|from| read(log, from).unwrap().first_offset.get())
            .collect();
        (by_time, latest.offset.get(), starts, values(log, 0))
    };
    let before = answers(&log);
    assert_eq!(
        before.0,
        [0, 1, 2, 3, 4, 5, 6, -1, -1].map(|offset| (offset >= 0).then_some(offset))
    );
    assert_eq!(before.1, 6);
    let end = log.close().unwrap();
    let clean = Start {
        clean: true,
        recovery_point: end,
        log_start_offset: Offset::ZERO,
    };
    for (round, start) in [clean, Start { clean: false, ..clean }].into_iter().enumerate() {
        for damage in 0..4u8 {
            for entry in disk.list(path).unwrap() {
                if !entry.name.ends_with("index") {
                    continue;
                }
                let file = path.join(&entry.name);
                let garbage: Vec<u8> = (0..96)
                    .map(|byte: u8| byte.wrapping_mul(37) ^ damage.wrapping_mul(91))
                    .collect();
                match damage {
                    0 => disk.remove_file(&file).unwrap(),
                    1 => disk.open(&file, OpenMode::Replace).map(|_| ()).unwrap(),
                    2 => disk
                        .open(&file, OpenMode::Replace)
                        .unwrap()
                        .write_all_at(&[IoSlice::new(&garbage)], 0)
                        .unwrap(),
                    _ => disk
                        .open(&file, OpenMode::Create)
                        .unwrap()
                        .write_all_at(&[IoSlice::new(&garbage[..7])], 0)
                        .unwrap(),
                }
            }
            let (mut log, recovery) = open(disk, path, small_segments(), start);
            assert!(recovery.damage.is_empty());
            assert_eq!(answers(&log), before, "round {round} damage {damage}");
            log.close().unwrap();
        }
    }
}

fn truncate_suite<D: Disk>(disk: &D, path: &Path) {
    let (mut log, _) = open(disk, path, small_segments(), Start::default());
    for index in 0..12 {
        let epoch = LeaderEpoch::new(index / 4);
        let role = AppendAs::Leader {
            epoch,
            origin: Origin::Client,
        };
        log.append(
            &idempotent(index * 2, &[&format!("a{index}"), &format!("b{index}")]),
            role,
            NOW,
        )
        .unwrap();
    }
    log.sync_now().unwrap();
    log.recovery_point_recorded(log.recovery_point());
    let mut recorded = None;
    let end = log.truncate_to(Offset::new(13), NOW, |point| {
        recorded = Some(point);
        Ok(())
    });
    assert_eq!(end.unwrap(), Offset::new(12), "a batch is cut whole");
    assert_eq!(recorded, Some(Offset::new(12)));
    assert_eq!(log.log_end_offset(), Offset::new(12));
    assert_eq!(values(&log, 0).len(), 12);
    assert_eq!(log.latest_epoch(), Some(LeaderEpoch::new(1)));
    // The producer goes on where the log ends now.
    let role = AppendAs::Leader {
        epoch: LeaderEpoch::new(9),
        origin: Origin::Client,
    };
    assert_eq!(
        log.append(&idempotent(12, &["new"]), role, NOW).unwrap().first_offset,
        Offset::new(12)
    );
    assert_eq!(values(&log, 12), [(12, "new".to_owned())]);
    log.truncate_to(Offset::ZERO, NOW, |_| Ok(())).unwrap();
    assert!(values(&log, 0).is_empty());
    log.append(&batch(&["fresh"]), role, NOW).unwrap();
    log.restart_at(Offset::new(100), NOW, |_| Ok(())).unwrap();
    assert_eq!(
        log.append(&batch(&["far"]), role, NOW).unwrap().first_offset,
        Offset::new(100)
    );
    assert_eq!(values(&log, 100), [(100, "far".to_owned())]);
    assert_eq!(log.log_start_offset(), Offset::new(100));
}

fn refused<D: Disk>(log: &mut PartitionLog<D>, bytes: &[u8]) -> AppendError {
    let end = log.log_end_offset();
    let error = log.append(bytes, CLIENT, NOW).expect_err("the batch is wrong");
    assert_eq!(log.log_end_offset(), end, "nothing is appended with {error}");
    error
}

fn sim_log(options: LogOptions) -> (SimDisk, PartitionLog<SimDisk>) {
    let disk = SimDisk::new(1);
    let (log, _) = open(&disk, Path::new("/t-0"), options, Start::default());
    (disk, log)
}

#[test]
fn a_batch_that_is_wrong_is_refused_with_the_code_that_kafka_gives() {
    let (_, mut log) = sim_log(LogOptions {
        max_message_bytes: 500,
        ..LogOptions::default()
    });
    let good = batch(&["a", "b"]);
    let mut flipped = good.to_vec();
    flipped[70] ^= 1;
    assert_eq!(refused(&mut log, &flipped).error_code(), ErrorCode::CorruptMessage);
    let mut old = good.to_vec();
    old[16] = 1;
    assert_eq!(refused(&mut log, &old).error_code(), ErrorCode::InvalidRecord);
    assert_eq!(
        refused(&mut log, &good[..good.len() - 1]).error_code(),
        ErrorCode::CorruptMessage
    );
    assert_eq!(refused(&mut log, &[]).error_code(), ErrorCode::CorruptMessage);
    assert_eq!(
        refused(&mut log, &[good.clone(), good.clone()].concat()).error_code(),
        ErrorCode::InvalidRecord
    );
    let moved = batch_with(
        BatchOptions {
            base_offset: Offset::new(1),
            ..BatchOptions::default()
        },
        &["a"],
        NOW,
    );
    assert_eq!(refused(&mut log, &moved).error_code(), ErrorCode::InvalidRecord);
    assert_eq!(
        refused(&mut log, &batch(&[&"x".repeat(500)])).error_code(),
        ErrorCode::MessageTooLarge
    );
    let control = batch_with(
        BatchOptions {
            control: true,
            ..BatchOptions::default()
        },
        &["a"],
        NOW,
    );
    assert_eq!(refused(&mut log, &control).error_code(), ErrorCode::InvalidRecord);
    let empty = BatchBuilder::new(BatchOptions::default()).build().unwrap();
    assert_eq!(refused(&mut log, &empty).error_code(), ErrorCode::InvalidRecord);
    let mut gap = BatchBuilder::new(BatchOptions::default());
    gap.append_at(0, NOW, None, None, std::iter::empty()).unwrap();
    gap.append_at(2, NOW, None, None, std::iter::empty()).unwrap();
    assert_eq!(
        refused(&mut log, &gap.build().unwrap()).error_code(),
        ErrorCode::InvalidRecord
    );
    assert_eq!(log.append(&good, CLIENT, NOW).unwrap().first_offset, Offset::ZERO);
}

#[test]
fn a_compacted_topic_names_the_records_without_key() {
    for compression in Compression::ALL {
        let (_, mut log) = sim_log(LogOptions {
            compact: true,
            ..LogOptions::default()
        });
        let mut builder = BatchBuilder::new(BatchOptions {
            compression,
            ..BatchOptions::default()
        });
        for key in [Some(&b"k"[..]), None, Some(b"k"), None] {
            builder.append(NOW, key, Some(b"v"), &[]).unwrap();
        }
        match refused(&mut log, &builder.build().unwrap()) {
            AppendError::InvalidRecords { records, .. } => assert_eq!(records, [1, 3]),
            error => panic!("{error}"),
        }
    }
}

#[test]
fn compressed_batches_are_kept_as_they_are_unless_a_rule_opens_them() {
    let broken = |options: LogOptions| {
        // A sound checksum over a payload that no codec can read.
        let mut bytes = batch_with(
            BatchOptions {
                compression: Compression::Zstd,
                ..BatchOptions::default()
            },
            &["a"],
            NOW,
        )
        .to_vec();
        bytes[HEADER_BYTES..HEADER_BYTES + 4].fill(0xee);
        let mut header = BatchHeader::parse(&bytes).unwrap();
        header.seal(&bytes[HEADER_BYTES..]);
        bytes[..HEADER_BYTES].copy_from_slice(&header.to_bytes());
        let (_, mut log) = sim_log(options);
        log.append(&bytes, CLIENT, NOW).map_err(|error| error.error_code())
    };
    assert!(broken(LogOptions::default()).is_ok());
    let corrupt = Some(ErrorCode::CorruptMessage);
    assert_eq!(
        broken(LogOptions {
            compact: true,
            ..LogOptions::default()
        })
        .err(),
        corrupt
    );
    assert_eq!(
        broken(LogOptions {
            validate_records: true,
            ..LogOptions::default()
        })
        .err(),
        corrupt
    );
    let compression = CompressionPolicy::Fixed {
        compression: Compression::Lz4,
        level: None,
    };
    assert_eq!(
        broken(LogOptions {
            compression,
            ..LogOptions::default()
        })
        .err(),
        corrupt
    );
}

#[test]
fn the_topics_compression_takes_the_place_of_the_producers() {
    for from in Compression::ALL {
        for to in Compression::ALL {
            let policy = CompressionPolicy::Fixed {
                compression: to,
                level: None,
            };
            let (_, mut log) = sim_log(LogOptions {
                compression: policy,
                ..LogOptions::default()
            });
            let sent = batch_with(
                BatchOptions {
                    compression: from,
                    ..BatchOptions::default()
                },
                &["a", "b"],
                NOW,
            );
            log.append(&sent, CLIENT, NOW).unwrap();
            let bytes = read(&log, 0).unwrap().bytes;
            let header = Batch::split_first(&bytes).unwrap().0.header;
            assert_eq!(header.attributes.compression(), Ok(to));
            assert_eq!(header.max_timestamp, NOW.millis() + 1);
            assert_eq!(values(&log, 0), [(0, "a".to_owned()), (1, "b".to_owned())]);
        }
    }
}

#[test]
fn a_batch_of_the_topics_compression_is_stored_as_sent_from_the_magic_on() {
    for compression in Compression::ALL {
        let (_, mut log) = sim_log(LogOptions::default());
        let sent = batch_with(
            BatchOptions {
                compression,
                ..BatchOptions::default()
            },
            &["a", "b"],
            NOW,
        );
        log.append(&sent, CLIENT, NOW).unwrap();
        assert_eq!(read(&log, 0).unwrap().bytes[16..], sent[16..]);
    }
}

#[test]
fn append_time_stamps_the_batch_and_create_time_takes_the_stamp_away() {
    let options = LogOptions {
        timestamp_type: TimestampType::LogAppendTime,
        ..LogOptions::default()
    };
    let (_, mut log) = sim_log(options);
    let appended = log.append(&batch(&["a"]), CLIENT, at(5000)).unwrap();
    assert_eq!(appended.log_append_time, Some(at(5000)));
    let stored = read(&log, 0).unwrap().bytes;
    let header = Batch::split_first(&stored).unwrap().0.header;
    assert_eq!(header.attributes.timestamp_type(), TimestampType::LogAppendTime);
    assert_eq!(header.max_timestamp, at(5000).millis());
    let reader = log.reader();
    let found = reader
        .offset_for_timestamp(at(4000), DecompressionLimit::DEFAULT, Wait::Allowed)
        .unwrap();
    assert_eq!(found.map(|found| found.timestamp), Some(at(5000)));
    // The other way round.
    log.set_options(LogOptions::default());
    let stamped = BatchOptions {
        log_append_time: Some(at(1)),
        ..BatchOptions::default()
    };
    let appended = log.append(&batch_with(stamped, &["b"], NOW), CLIENT, at(5000)).unwrap();
    assert_eq!(appended.log_append_time, None);
    let stored = read(&log, 1).unwrap().bytes;
    let header = Batch::split_first(&stored).unwrap().0.header;
    assert_eq!(header.attributes.timestamp_type(), TimestampType::CreateTime);
}

#[test]
fn the_greatest_timestamp_is_the_records_own() {
    for compression in Compression::ALL {
        let (_, mut log) = sim_log(LogOptions::default());
        let mut bytes = batch_with(
            BatchOptions {
                compression,
                ..BatchOptions::default()
            },
            &["a", "b"],
            NOW,
        )
        .to_vec();
        let mut header = BatchHeader::parse(&bytes).unwrap();
        header.max_timestamp = -1;
        header.seal(&bytes[HEADER_BYTES..]);
        bytes[..HEADER_BYTES].copy_from_slice(&header.to_bytes());
        assert_eq!(log.append(&bytes, CLIENT, NOW).unwrap().max_timestamp, Some(at(1)));
        let stored = read(&log, 0).unwrap().bytes;
        assert_eq!(BatchHeader::parse(&stored).unwrap().max_timestamp, at(1).millis());
    }
}

#[test]
fn records_from_too_far_a_time_are_named() {
    let options = LogOptions {
        timestamp_before_max_ms: 1000,
        timestamp_after_max_ms: 1000,
        ..LogOptions::default()
    };
    for compression in Compression::ALL {
        let (_, mut log) = sim_log(options.clone());
        let with_times = |times: &[i64]| {
            let mut builder = BatchBuilder::new(BatchOptions {
                compression,
                ..BatchOptions::default()
            });
            for time in times {
                builder.append(at(*time), Some(b"k"), None, &[]).unwrap();
            }
            builder.build().unwrap()
        };
        log.append(&with_times(&[-1000, 0, 1000]), CLIENT, NOW).unwrap();
        for times in [[0, 1001, 5], [3, -1001, 0]] {
            match refused(&mut log, &with_times(&times)) {
                AppendError::InvalidTimestamp { records } => assert_eq!(records, [1]),
                error => panic!("{error}"),
            }
        }
        let mut untimed = BatchBuilder::new(BatchOptions {
            compression,
            ..BatchOptions::default()
        });
        untimed.append(Timestamp::from_millis(-1), None, None, &[]).unwrap();
        log.append(&untimed.build().unwrap(), CLIENT, NOW).unwrap();
    }
}

#[test]
fn a_follower_takes_offsets_as_they_are_but_never_back() {
    let (_, mut leader) = sim_log(small_segments());
    for index in 0..5 {
        leader
            .append(&idempotent(index, &[&format!("v{index}")]), CLIENT, NOW)
            .unwrap();
    }
    let copied = [read(&leader, 0).unwrap().bytes, read(&leader, 3).unwrap().bytes].concat();
    let (_, mut follower) = sim_log(small_segments());
    let cut = &copied[..copied.len() - 3];
    let appended = follower.append(cut, AppendAs::Follower, NOW).unwrap();
    assert_eq!(follower.log_end_offset(), appended.last_offset.plus(1));
    assert_eq!(follower.latest_epoch(), Some(EPOCH));
    let back = follower.append(&copied, AppendAs::Follower, NOW);
    assert!(matches!(back, Err(AppendError::OffsetsGoBack { .. })));
    let far = batch_with(
        BatchOptions {
            base_offset: Offset::new(1 << 40),
            partition_leader_epoch: Some(LeaderEpoch::new(8)),
            ..BatchOptions::default()
        },
        &["far"],
        NOW,
    );
    follower.append(&far, AppendAs::Follower, NOW).unwrap();
    assert_eq!(follower.segments().last().unwrap().base_offset, Offset::new(1 << 40));
    assert_eq!(values(&follower, 100), [(1 << 40, "far".to_owned())]);
    let end = follower.reader().end_of_epoch(LeaderEpoch::new(5)).unwrap();
    assert_eq!((end.epoch, end.end_offset), (EPOCH, Offset::new(1 << 40)));
}

#[test]
fn a_segment_is_left_by_the_times_of_its_records() {
    let (_, mut log) = sim_log(LogOptions {
        segment_ms: 1000,
        segment_jitter_ms: 100,
        ..LogOptions::default()
    });
    for (time, segments) in [(0, 1), (800, 1), (850, 1), (901, 2), (950, 2)] {
        log.append(
            &batch_with(BatchOptions::default(), &["a"], at(time)),
            CLIENT,
            at(1_000_000),
        )
        .unwrap();
        assert_eq!(log.segments().len(), segments, "at {time}");
    }
}

fn retention_suite<D: Disk>(disk: &D, path: &Path) {
    let (mut log, _) = open(disk, path, small_segments(), Start::default());
    for index in 0..20 {
        let sent = batch_with(BatchOptions::default(), &[&format!("v{index}")], at(index * 1000));
        log.append(&sent, CLIENT, at(index * 1000)).unwrap();
    }
    let reader = log.reader();
    let held = log.segments();
    let total = log.size_bytes();
    let segment = held[0].size();
    // By size: what remains is at least the limit, less than a segment more.
    log.set_options(LogOptions {
        retention_bytes: Some(total - segment - 1),
        retention_ms: None,
        ..small_segments()
    });
    assert_eq!(
        log.enforce_retention(at(0), Offset::ZERO).unwrap().segments,
        0,
        "nothing above the high watermark"
    );
    let removed = log.enforce_retention(at(0), log.log_end_offset()).unwrap();
    assert_eq!((removed.segments, removed.size_bytes), (1, segment));
    assert_eq!(log.log_start_offset(), held[1].base_offset);
    assert!(matches!(read(&log, 0), Err(ReadError::OutOfRange { .. })));
    for file in &removed.files {
        assert!(file.to_str().unwrap().ends_with(".deleted"));
        disk.remove_file(file).unwrap();
    }
    assert!(
        held[0].find(Offset::ZERO, Wait::Allowed).unwrap().is_some(),
        "whoever holds a segment still reads it"
    );
    // By hand.
    let middle = held[3].base_offset.plus(1);
    assert!(log.delete_records_before(Offset::new(21), Offset::new(20)).is_err());
    assert_eq!(log.delete_records_before(middle, Offset::new(20)).unwrap(), middle);
    assert_eq!(reader.log_start_offset(), middle);
    log.set_options(LogOptions {
        retention_ms: None,
        ..small_segments()
    });
    assert_eq!(log.enforce_retention(at(0), Offset::new(20)).unwrap().segments, 2);
    assert_eq!(log.log_start_offset(), middle);
    // By time: the youngest record of a segment counts.
    log.set_options(LogOptions {
        retention_ms: Some(1500),
        ..small_segments()
    });
    log.enforce_retention(at(17_000), Offset::new(20)).unwrap();
    assert!(log.log_start_offset() <= Offset::new(16));
    let all = log.enforce_retention(at(60_000), Offset::new(20)).unwrap();
    assert!(all.segments > 0);
    assert_eq!(
        (log.log_start_offset(), log.log_end_offset()),
        (Offset::new(20), Offset::new(20))
    );
    assert_eq!(
        log.append(&batch(&["next"]), CLIENT, NOW).unwrap().first_offset,
        Offset::new(20)
    );
    let end = log.close().unwrap();
    let start = Start {
        clean: true,
        recovery_point: end,
        log_start_offset: Offset::new(20),
    };
    let (log, _) = open(disk, path, small_segments(), start);
    assert_eq!(values(&log, 20), [(20, "next".to_owned())]);
    assert!(
        disk.list(path)
            .unwrap()
            .iter()
            .all(|entry| !entry.name.ends_with(".deleted"))
    );
}

#[test]
fn one_sync_serves_all_that_was_appended_before_it() {
    let (_, mut log) = sim_log(small_segments());
    assert!(log.begin_sync().is_none());
    for index in 0..5 {
        log.append(&batch(&[&format!("v{index}")]), CLIENT, NOW).unwrap();
    }
    let handle = log.begin_sync().unwrap();
    log.append(&batch(&["later"]), CLIENT, NOW).unwrap();
    assert!(log.begin_sync().is_none(), "one at a time");
    assert_eq!(log.synced(handle.run()).unwrap(), Offset::new(5));
    assert!(log.recovery_point_due(), "segments were left");
    log.recovery_point_recorded(log.recovery_point());
    assert!(!log.recovery_point_due());
    let handle = log.begin_sync().unwrap();
    log.truncate_to(Offset::new(3), NOW, |_| Ok(())).unwrap();
    log.append(&batch(&["other"]), CLIENT, NOW).unwrap();
    assert_eq!(
        log.synced(handle.run()).unwrap(),
        Offset::new(3),
        "a sync does not count for what came after a cut"
    );
}

#[test]
fn a_failed_sync_takes_the_log_offline_for_good() {
    let (disk, mut log) = sim_log(LogOptions::default());
    log.append(&batch(&["a"]), CLIENT, NOW).unwrap();
    disk.inject(Fault {
        operation: Operation::Sync,
        skip: 0,
        error: io::ErrorKind::Other,
        lasting: false,
    });
    let handle = log.begin_sync().unwrap();
    assert!(log.synced(handle.run()).is_err());
    assert!(log.is_offline() && log.begin_sync().is_none());
    assert_eq!(log.synced_offset(), Offset::ZERO);
    let refused = log.append(&batch(&["b"]), CLIENT, NOW).unwrap_err();
    assert_eq!(refused.error_code(), ErrorCode::KafkaStorageError);
    assert_eq!(values(&log, 0).len(), 1, "reads go on");
}

#[test]
fn a_full_disk_refuses_and_a_log_goes_on_when_there_is_room() {
    let (disk, mut log) = sim_log(LogOptions::default());
    log.append(&batch(&["a"]), CLIENT, NOW).unwrap();
    disk.inject(Fault {
        operation: Operation::Write,
        skip: 0,
        error: io::ErrorKind::StorageFull,
        lasting: false,
    });
    assert!(matches!(refused(&mut log, &batch(&["lost"])), AppendError::DiskFull));
    assert!(!log.is_offline());
    assert_eq!(
        log.append(&batch(&["b"]), CLIENT, NOW).unwrap().first_offset,
        Offset::new(1)
    );
    assert_eq!(values(&log, 0), [(0, "a".to_owned()), (1, "b".to_owned())]);
    disk.inject(Fault {
        operation: Operation::Write,
        skip: 0,
        error: io::ErrorKind::Other,
        lasting: false,
    });
    assert!(matches!(refused(&mut log, &batch(&["lost"])), AppendError::Io(_)));
    assert!(log.is_offline());
}

#[test]
fn damage_below_the_recovery_point_is_kept_reported_and_never_served() {
    let path = Path::new("/t-0");
    let (disk, mut log) = sim_log(LogOptions::default());
    for index in 0..6 {
        log.append(&batch(&[&format!("v{index}"), "x"]), CLIENT, NOW).unwrap();
    }
    log.sync_now().unwrap();
    let size = usize::try_from(log.size_bytes()).unwrap();
    let file = path.join("00000000000000000000.log");
    assert!(disk.flip_bit(&file, size / 6 * 2 + 70, 3));
    assert!(matches!(read(&log, 4), Err(ReadError::Corrupt(offset)) if offset == Offset::new(4)));
    assert_eq!(
        read(&log, 0).unwrap().next_offset,
        Offset::new(4),
        "what is sound before it is served"
    );
    let start = Start {
        clean: false,
        recovery_point: Offset::new(12),
        log_start_offset: Offset::ZERO,
    };
    let (mut log, recovery) = open(&disk, path, LogOptions::default(), start);
    assert_eq!(
        recovery.damage,
        [DamagedRange {
            from: Offset::new(4),
            to: Offset::new(6)
        }]
    );
    assert_eq!((recovery.bytes_cut, log.log_end_offset()), (0, Offset::new(12)));
    assert!(matches!(read(&log, 5), Err(ReadError::Corrupt(_))));
    assert_eq!(values(&log, 6).len(), 6, "and what is sound behind it");
    let appended = log.append(&batch(&["y"]), CLIENT, NOW).unwrap();
    assert_eq!(appended.first_offset, Offset::new(12), "and the log goes on");
    assert_eq!(values(&log, 6).len(), 7);
}

#[test]
fn a_missing_end_below_the_recovery_point_is_damage() {
    let path = Path::new("/t-0");
    let (disk, mut log) = sim_log(LogOptions::default());
    for index in 0..3 {
        log.append(&batch(&[&format!("v{index}")]), CLIENT, NOW).unwrap();
    }
    log.sync_now().unwrap();
    let size = log.size_bytes();
    disk.open(&path.join("00000000000000000000.log"), OpenMode::ReadWrite)
        .unwrap()
        .truncate(size - 10)
        .unwrap();
    for clean in [false, true] {
        let start = Start {
            clean,
            recovery_point: Offset::new(3),
            log_start_offset: Offset::ZERO,
        };
        let (log, recovery) = open(&disk, path, LogOptions::default(), start);
        assert_eq!(
            recovery.damage,
            [DamagedRange {
                from: Offset::new(2),
                to: Offset::new(3)
            }]
        );
        assert_eq!(
            log.log_end_offset(),
            Offset::new(3),
            "a lost offset is not given out again"
        );
    }
}

#[test]
fn a_reader_that_must_not_wait_is_told_so() {
    let (disk, mut log) = sim_log(LogOptions::default());
    log.append(&batch(&["a"]), CLIENT, NOW).unwrap();
    disk.nowait_blocks(true);
    let request = ReadRequest {
        from: Offset::ZERO,
        max_bytes: 1000,
        up_to: Offset::MAX,
        min_one: true,
        wait: Wait::Refused,
    };
    assert!(matches!(log.reader().read(request), Err(ReadError::WouldBlock)));
    disk.nowait_blocks(false);
    assert_eq!(log.reader().read(request).unwrap().next_offset, Offset::new(1));
}

#[test]
fn a_log_on_a_full_disk_goes_on_with_the_reserve_and_a_dead_one_is_not_asked_again() {
    let sim = SimDisk::new(1);
    sim.create_directory(Path::new("/log")).unwrap();
    sim.sync_directory(Path::new("/")).unwrap();
    sim.set_capacity(Some(32_000));
    let disk = GuardedDisk::new(sim.clone(), Path::new("/log"));
    disk.set_reserve(2_000).unwrap();
    let (mut log, _) = open(&disk, Path::new("/log/t-0"), small_segments(), Start::default());
    let used = 32_000 - disk.room(Path::new("/log")).unwrap().available_bytes;
    let stuffing = disk.open(Path::new("/log/stuffing"), OpenMode::Create).unwrap();
    stuffing.allocate(32_000 - used - 10).unwrap();
    // Rolls, too: indexes and snapshots have their room.
    for index in 0..6 {
        log.append(&batch(&[&format!("v{index}")]), CLIENT, NOW).unwrap();
    }
    log.sync_now().unwrap();
    assert!(!disk.takes_growth() && log.segments().len() > 1);
    let full = (0..100).find_map(|_| log.append(&batch(&["more"]), CLIENT, NOW).err());
    assert!(matches!(full, Some(AppendError::DiskFull)), "{full:?}");
    assert!(!log.is_offline());
    stuffing.truncate(0).unwrap();
    assert!(disk.takes_growth());
    log.append(&batch(&["again"]), CLIENT, NOW).unwrap();
    log.sync_now().unwrap();

    let end = log.log_end_offset();
    sim.inject(Fault {
        operation: Operation::Write,
        skip: 0,
        error: io::ErrorKind::TimedOut,
        lasting: false,
    });
    refused(&mut log, &batch(&["lost"]));
    assert!(log.is_offline() && disk.failure().is_some());
    let calls = sim.calls();
    assert!(matches!(refused(&mut log, &batch(&["lost"])), AppendError::Offline));
    assert_eq!(sim.calls(), calls);
    // What is acknowledged is there when the disk has been looked after.
    sim.restart();
    sim.set_capacity(None);
    let again = GuardedDisk::new(sim, Path::new("/log"));
    let (log, _) = open(&again, Path::new("/log/t-0"), small_segments(), Start::default());
    assert!(log.log_end_offset() >= end);
}

#[test]
fn a_time_that_producers_may_not_name_does_not_keep_a_segment() {
    const RETENTION_MS: i64 = 10_000;
    let (_, mut log) = sim_log(LogOptions {
        timestamp_after_max_ms: i64::MAX,
        retention_ms: Some(RETENTION_MS),
        ..small_segments()
    });
    let far = 1_000 * RETENTION_MS;
    for time in [far, far, 0, 0, 0, 0] {
        let sent = batch_with(BatchOptions::default(), &[&"v".repeat(200)], at(time));
        log.append(&sent, CLIENT, at(0)).unwrap();
    }
    assert_eq!(log.segments().len(), 6);
    let end = log.log_end_offset();
    let now = at(RETENTION_MS + 1);
    // Where any time is allowed it counts, and is told of.
    let removed = log.enforce_retention(now, end).unwrap();
    assert_eq!((removed.segments, removed.future_segments), (0, 1));
    let mut options = log.options().clone();
    options.timestamp_after_max_ms = 3_600_000;
    log.set_options(options);
    // Not before what is behind it has expired.
    let removed = log.enforce_retention(at(RETENTION_MS - 1), end).unwrap();
    assert_eq!((removed.segments, removed.future_segments), (0, 2));
    let removed = log.enforce_retention(now, end).unwrap();
    assert_eq!((removed.segments, removed.future_segments), (6, 0));
}

#[test]
fn a_segment_of_the_future_behind_the_others_stays_and_is_told_of() {
    let (_, mut log) = sim_log(LogOptions {
        timestamp_after_max_ms: i64::MAX,
        retention_ms: Some(1_000),
        ..small_segments()
    });
    for time in [0, 0, 100_000_000] {
        let sent = batch_with(BatchOptions::default(), &[&"v".repeat(200)], at(time));
        log.append(&sent, CLIENT, at(0)).unwrap();
    }
    let mut options = log.options().clone();
    options.timestamp_after_max_ms = 3_600_000;
    log.set_options(options);
    let removed = log.enforce_retention(at(5_000), log.log_end_offset()).unwrap();
    assert_eq!((removed.segments, removed.future_segments), (2, 1));
}

#[test]
fn a_sync_is_due_when_the_clock_was_set_back() {
    let (_, mut log) = sim_log(LogOptions {
        flush_ms: 1_000,
        ..LogOptions::default()
    });
    log.append(&batch(&["a"]), CLIENT, NOW).unwrap();
    assert!(!log.sync_is_due(at(999)) && log.sync_is_due(at(1_000)));
    assert!(log.sync_is_due(at(-1)));
}
