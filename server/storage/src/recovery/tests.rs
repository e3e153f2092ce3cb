//! What is made again after a crash does not depend on how much of the log has to be read for it.

use std::fs;
use std::path::Path;

use bytes::Bytes;
use model::record_batch::{BatchBuilder, BatchOptions, BatchProducer};
use model::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, Timestamp};

use super::{Recovery, Start};
use crate::disk::RealDisk;
use crate::file_names::{Kind, LEADER_EPOCH_CHECKPOINT, LEADER_EPOCH_CHECKSUM};
use crate::leader_epochs::LeaderEpochs;
use crate::producer_state::ActiveProducer;
use crate::{AppendAs, LogOptions, Origin, PartitionLog};

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);
const BATCHES: i32 = 24;
const BATCHES_PER_EPOCH: i32 = 5;
const PRODUCERS: i32 = 3;

fn options() -> LogOptions {
    LogOptions {
        segment_size_bytes: 400,
        index_interval_bytes: 100,
        ..LogOptions::default()
    }
}

/// A batch of two records; `PRODUCERS` producers take turns.
fn batch(number: i32) -> Bytes {
    let producer = BatchProducer {
        id: ProducerId::from_wire(i64::from(number % PRODUCERS)).unwrap(),
        epoch: ProducerEpoch::ZERO,
        base_sequence: Sequence::from_wire(number / PRODUCERS * 2),
    };
    let mut builder = BatchBuilder::new(BatchOptions {
        producer: Some(producer),
        ..BatchOptions::default()
    });
    for _ in 0..2 {
        builder.append(NOW, None, Some(b"value"), &[]).unwrap();
    }
    builder.build().unwrap()
}

fn open(path: &Path, start: Start) -> (PartitionLog<RealDisk>, Recovery) {
    PartitionLog::open(RealDisk, path, options(), start, NOW).unwrap()
}

type Known = (LeaderEpochs, Vec<ActiveProducer>, Offset);

/// Of each producer its last batch: a snapshot keeps no more.
fn known(log: &PartitionLog<RealDisk>) -> Known {
    let epochs = log.shared().with_epochs(Clone::clone);
    (epochs, log.producers().active().collect(), log.log_end_offset())
}

/// A log of several segments, and what it knew when its node died.
fn crashed(path: &Path) -> Known {
    let (mut log, _) = open(path, Start::default());
    for number in 0..BATCHES {
        let role = AppendAs::Leader {
            epoch: LeaderEpoch::new(number / BATCHES_PER_EPOCH),
            origin: Origin::Client,
        };
        log.append(&batch(number), role, NOW).unwrap();
    }
    log.sync_now().unwrap();
    known(&log)
}

fn remove(path: &Path, is_meant: impl Fn(&str) -> bool) -> usize {
    let names = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let meant: Vec<_> = names
        .filter(|file| is_meant(file.file_name().unwrap().to_str().unwrap()))
        .collect();
    for file in &meant {
        fs::remove_file(file).unwrap();
    }
    meant.len()
}

#[test]
fn epochs_that_nothing_vouches_for_make_no_batch_damaged() {
    // Of another log, of an earlier time, of a later one; with the checksum of what was there before, and without.
    for text in ["0\n1\n9 0\n", "0\n1\n0 0\n", "0\n2\n0 0\n3 12\n", "0\n2\n0 0\n70 90\n"] {
        for recovery_point in [0, 12, 31, 48] {
            for without_checksum in [false, true] {
                let temporary = tempfile::tempdir().unwrap();
                let path = temporary.path().join("t-0");
                let before = crashed(&path);
                fs::write(path.join(LEADER_EPOCH_CHECKPOINT), text).unwrap();
                if without_checksum {
                    assert_eq!(remove(&path, |name| name == LEADER_EPOCH_CHECKSUM), 1);
                }
                let start = Start {
                    clean: false,
                    recovery_point: Offset::new(recovery_point),
                    log_start_offset: Offset::ZERO,
                };
                let (log, recovery) = open(&path, start);
                let what = format!("{text:?} {recovery_point} {without_checksum}");
                assert_eq!(recovery.damage, Vec::new(), "{what}");
                assert_eq!(known(&log), before, "{what}");
            }
        }
    }
}

#[test]
fn producers_and_epochs_are_the_same_wherever_reading_begins() {
    for recovery_point in [0, 2, 10, 12, 20, 31, 40, 48] {
        for (without_epochs, without_snapshots) in [(false, false), (true, false), (false, true), (true, true)] {
            let temporary = tempfile::tempdir().unwrap();
            let path = temporary.path().join("t-0");
            let before = crashed(&path);
            if without_epochs {
                assert_eq!(remove(&path, |name| name == LEADER_EPOCH_CHECKPOINT), 1);
            }
            if without_snapshots {
                assert!(
                    remove(&path, |name| matches!(
                        Kind::parse(name),
                        Some((Kind::ProducerSnapshot, _))
                    )) > 3
                );
            }
            let start = Start {
                clean: false,
                recovery_point: Offset::new(recovery_point),
                log_start_offset: Offset::ZERO,
            };
            let what = format!("{recovery_point} {without_epochs} {without_snapshots}");
            let (log, recovery) = open(&path, start);
            assert_eq!(known(&log), before, "{what}");
            assert_eq!((recovery.damage, recovery.bytes_cut), (Vec::new(), 0), "{what}");
            drop(log);
            let (log, _) = open(&path, start);
            assert_eq!(known(&log), before, "{what}, the second time");
        }
    }
}
