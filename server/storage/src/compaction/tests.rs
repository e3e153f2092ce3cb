//! What a round leaves of a log, case by case; what crashes do to it is in `tests/compaction_simulation.rs`.

use std::ops::ControlFlow;
use std::path::Path;

use bytes::Bytes;
use model::record_batch::{
    Batch, BatchBuilder, BatchOptions, BatchProducer, Compression, ControlType, DecompressionLimit, TimestampType,
    records,
};
use model::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, Timestamp};

use super::*;
use crate::{AppendAs, Disk, LogOptions, Origin, PartitionLog, ReadRequest, SimDisk, Start, Wait};

const DIRECTORY: &str = "/t-0";
const NOW: i64 = 1_700_000_000_000;
const DAY_MS: i64 = 24 * 3_600_000;

struct Bench {
    disk: SimDisk,
    log: PartitionLog<SimDisk>,
    now: i64,
    cleaned_to: Option<Offset>,
    limits: CleaningLimits,
}

fn options() -> LogOptions {
    LogOptions {
        compact: true,
        delete: false,
        ..LogOptions::default()
    }
}

impl Bench {
    fn new(options: LogOptions) -> Self {
        let disk = SimDisk::new(1);
        Bench {
            log: open(&disk, options),
            disk,
            now: NOW,
            cleaned_to: None,
            limits: CleaningLimits::default(),
        }
    }

    fn append(&mut self, batch: &[u8], origin: Origin) {
        let role = AppendAs::Leader {
            epoch: LeaderEpoch::new(3),
            origin,
        };
        self.log.append(batch, role, Timestamp::from_millis(self.now)).unwrap();
    }

    /// `k1=v1 k2=` are two records, the second a tombstone; one batch each.
    fn write(&mut self, rows: &str) {
        for row in rows.split_ascii_whitespace() {
            let batch = batch(BatchOptions::default(), row, self.now);
            self.append(&batch, Origin::Client);
        }
    }

    fn roll(&mut self) {
        self.log.roll(Timestamp::from_millis(self.now)).unwrap();
        self.log.sync_now().unwrap();
    }

    fn backlog(&self) -> Backlog {
        let view = self.log.compaction_view(self.log.synced_offset()).unwrap();
        view.backlog(self.cleaned_to, Timestamp::from_millis(self.now)).unwrap()
    }

    /// What replaces the first segments, before it does.
    fn clean_one_group(&mut self) -> CleanedSegment<SimDisk> {
        let backlog = self.backlog();
        let now = Timestamp::from_millis(self.now);
        let mut cleaning = self.log.begin_cleaning(&backlog, self.limits, now);
        let pace = &mut |_| ControlFlow::Continue(());
        cleaning.map_keys(pace).unwrap();
        cleaning.clean_group(pace).unwrap().unwrap()
    }

    fn clean(&mut self) -> Tally {
        self.try_clean().unwrap()
    }

    fn try_clean(&mut self) -> Result<Tally, CleanError> {
        let backlog = self.backlog();
        let now = Timestamp::from_millis(self.now);
        let mut cleaning = self.log.begin_cleaning(&backlog, self.limits, now);
        let pace = &mut |_| ControlFlow::Continue(());
        cleaning.map_keys(pace)?;
        while let Some(cleaned) = cleaning.clean_group(pace)? {
            self.log.swap_in(cleaned).unwrap();
        }
        self.cleaned_to = Some(cleaning.end());
        Ok(cleaning.tally())
    }

    fn batches(&self) -> Vec<Bytes> {
        let mut batches = Vec::new();
        let mut from = Offset::ZERO;
        loop {
            let read = self.log.reader().read(request(from)).unwrap();
            let mut rest = read.bytes;
            while !rest.is_empty() {
                let size = Batch::split_first(&rest).unwrap().0.bytes().len();
                batches.push(rest.split_to(size));
            }
            if read.next_offset == from {
                return batches;
            }
            from = read.next_offset;
        }
    }

    /// `0:k1=v1 …` of all data records.
    fn rows(&self) -> String {
        let text = |bytes: Bytes| String::from_utf8(bytes.to_vec()).unwrap();
        let mut rows = Vec::new();
        for batch in self.batches() {
            if Batch::split_first(&batch).unwrap().0.header.attributes.is_control() {
                continue;
            }
            for record in records(&batch, DecompressionLimit::DEFAULT).unwrap() {
                let record = record.unwrap();
                let value = record.value.map(text).unwrap_or_default();
                rows.push(format!("{}:{}={value}", record.offset, text(record.key.unwrap())));
            }
        }
        rows.join(" ")
    }

    fn names(&self) -> Vec<String> {
        let entries = self.disk.list(Path::new(DIRECTORY)).unwrap();
        entries.into_iter().map(|entry| entry.name).collect()
    }

    fn count(&self, suffix: &str) -> usize {
        self.names().iter().filter(|name| name.ends_with(suffix)).count()
    }
}

fn open(disk: &SimDisk, options: LogOptions) -> PartitionLog<SimDisk> {
    let now = Timestamp::from_millis(NOW);
    PartitionLog::open(disk.clone(), Path::new(DIRECTORY), options, Start::default(), now)
        .unwrap()
        .0
}

fn request(from: Offset) -> ReadRequest {
    ReadRequest {
        from,
        max_bytes: 1 << 20,
        up_to: Offset::MAX,
        min_one: true,
        wait: Wait::Allowed,
    }
}

fn batch(options: BatchOptions, rows: &str, time: i64) -> Bytes {
    let mut builder = BatchBuilder::new(options);
    for (row, time) in rows.split_ascii_whitespace().zip(time..) {
        let (key, value) = row.split_once('=').unwrap();
        let value = (!value.is_empty()).then_some(value.as_bytes());
        builder
            .append(
                Timestamp::from_millis(time),
                Some(key.as_bytes()),
                value,
                &[("h", Some(b"1"))],
            )
            .unwrap();
    }
    builder.build().unwrap()
}

fn producer(id: i64, sequence: Option<i32>) -> Option<BatchProducer> {
    Some(BatchProducer {
        id: ProducerId::from_wire(id).unwrap(),
        epoch: ProducerEpoch::ZERO,
        base_sequence: sequence.and_then(Sequence::from_wire),
    })
}

fn transactional(id: i64, sequence: i32, rows: &str) -> Bytes {
    let options = BatchOptions {
        producer: producer(id, Some(sequence)),
        transactional: true,
        ..BatchOptions::default()
    };
    batch(options, rows, NOW)
}

fn end_of_transaction(id: i64, control: ControlType) -> Bytes {
    let mut builder = BatchBuilder::new(BatchOptions {
        producer: producer(id, None),
        transactional: true,
        control: true,
        ..BatchOptions::default()
    });
    builder
        .append_control(control, Timestamp::from_millis(NOW), &[0, 0, 0, 0, 0, 9])
        .unwrap();
    builder.build().unwrap()
}

#[test]
fn the_last_of_each_key_stays_at_its_offset_and_the_active_segment_as_it_is() {
    let mut bench = Bench::new(options());
    bench.write("k1=v1 k2=v2 k1=v3 k3=v4 k4=v5 k5=v6 k6=v7 k2=v8 k6=v9");
    bench.roll();
    bench.write("k7=v10");
    bench.clean();
    let expected = "2:k1=v3 3:k3=v4 4:k4=v5 5:k5=v6 7:k2=v8 8:k6=v9 9:k7=v10";
    assert_eq!(bench.rows(), expected);
    let read = bench.log.reader().read(request(Offset::new(6))).unwrap();
    assert_eq!(read.first_offset, Offset::new(7), "a gap gives the next offset");
    bench.log.close().unwrap();
    bench.log = open(&bench.disk, options());
    assert_eq!(bench.rows(), expected);
}

#[test]
fn a_tombstone_stays_until_its_horizon_and_then_goes() {
    let mut bench = Bench::new(options());
    bench.write("k1=v1 k3=v2");
    bench.roll();
    bench.write("k3= k2=v3");
    bench.roll();
    bench.clean();
    assert_eq!(bench.rows(), "0:k1=v1 2:k3= 3:k2=v3");
    let tombstone = bench.batches()[1].clone();
    let header = Batch::split_first(&tombstone).unwrap().0.header;
    assert_eq!(header.delete_horizon(), Some(Timestamp::from_millis(NOW + DAY_MS)));
    let record = records(&tombstone, DecompressionLimit::DEFAULT).unwrap().next();
    assert_eq!(record.unwrap().unwrap().timestamp.millis(), NOW, "its time is kept");
    bench.now += DAY_MS - 1;
    bench.write("k4=v4");
    bench.roll();
    bench.clean();
    assert_eq!(bench.rows(), "0:k1=v1 2:k3= 3:k2=v3 4:k4=v4");
    bench.now += 1;
    bench.write("k5=v5");
    bench.roll();
    bench.clean();
    assert_eq!(bench.rows(), "0:k1=v1 3:k2=v3 4:k4=v4 5:k5=v5");
}

#[test]
fn batches_keep_producer_epoch_compression_and_times() {
    for compression in Compression::ALL {
        for timestamp_type in [TimestampType::CreateTime, TimestampType::LogAppendTime] {
            let mut bench = Bench::new(LogOptions {
                timestamp_type,
                ..options()
            });
            let options = BatchOptions {
                compression,
                producer: producer(7, Some(5)),
                ..BatchOptions::default()
            };
            bench.append(&batch(options, "a=1 b=2 a=3 c=4 b=5", NOW - 50), Origin::Client);
            let before = Batch::split_first(&bench.batches()[0]).unwrap().0.header;
            bench.write("c=6");
            bench.roll();
            bench.clean();
            assert_eq!(bench.rows(), "2:a=3 4:b=5 5:c=6");
            let bytes = bench.batches()[0].clone();
            let (after, _) = Batch::split_first(&bytes).unwrap();
            after.check_crc().unwrap();
            assert_eq!(after.header.attributes, before.attributes);
            assert_eq!(after.header.last_sequence(), before.last_sequence());
            assert_eq!((after.header.producer_id, after.header.partition_leader_epoch), (7, 3));
            assert_eq!(after.header.max_timestamp, before.max_timestamp);
            let times = records(&bytes, DecompressionLimit::DEFAULT).unwrap();
            let times: Vec<i64> = times.map(|record| record.unwrap().timestamp.millis()).collect();
            let expected = match timestamp_type {
                TimestampType::CreateTime => [NOW - 48, NOW - 46],
                TimestampType::LogAppendTime => [NOW, NOW],
            };
            assert_eq!(times, expected);
        }
    }
}

#[test]
fn the_last_sequence_of_a_producer_outlives_its_records_and_the_snapshots() {
    let mut bench = Bench::new(options());
    let of_producer = |sequence| BatchOptions {
        producer: producer(7, Some(sequence)),
        ..BatchOptions::default()
    };
    bench.append(&batch(of_producer(0), "a=1 b=2", NOW), Origin::Client);
    bench.append(&batch(of_producer(2), "a=3 b=4", NOW), Origin::Client);
    bench.write("a=5 b=6 c=7");
    bench.roll();
    bench.clean();
    assert_eq!(bench.rows(), "4:a=5 5:b=6 6:c=7");
    let kept = Batch::split_first(&bench.batches()[0]).unwrap().0.header;
    assert_eq!((kept.base_offset, kept.record_count, kept.size_bytes()), (2, 0, 61));
    for name in bench.names().iter().filter(|name| name.ends_with(".snapshot")) {
        bench.disk.remove_file(&Path::new(DIRECTORY).join(name)).unwrap();
    }
    bench.log = open(&bench.disk, options());
    bench.append(&batch(of_producer(4), "d=8", NOW), Origin::Client);
    assert_eq!(bench.rows(), "4:a=5 5:b=6 6:c=7 7:d=8");
}

#[test]
fn aborted_records_go_and_their_marker_after_its_time() {
    let mut bench = Bench::new(options());
    bench.write("a=1 b=2");
    bench.append(&transactional(7, 0, "a=bad"), Origin::Client);
    bench.append(&transactional(8, 0, "b=good"), Origin::Client);
    bench.append(&end_of_transaction(8, ControlType::Commit), Origin::Coordinator);
    bench.roll();
    // The marker is in a later segment than what it is about.
    bench.append(&end_of_transaction(7, ControlType::Abort), Origin::Coordinator);
    for id in [7, 8] {
        bench.append(&transactional(id, 1, "x=1"), Origin::Client);
        bench.append(&end_of_transaction(id, ControlType::Commit), Origin::Coordinator);
    }
    bench.roll();
    let markers = |bench: &Bench| {
        let headers = bench
            .batches()
            .into_iter()
            .map(|batch| Batch::split_first(&batch).unwrap().0.header);
        let markers: Vec<i64> = headers
            .filter(|header| header.attributes.is_control())
            .map(|header| header.base_offset)
            .collect();
        markers
    };
    bench.clean();
    assert_eq!(bench.rows(), "0:a=1 3:b=good 8:x=1");
    assert_eq!(
        markers(&bench),
        [4, 5, 7, 9],
        "what they are about was there in this round"
    );
    for _ in 0..2 {
        bench.write("y=1");
        bench.roll();
        bench.clean();
        bench.now += DAY_MS;
    }
    bench.write("z=1");
    bench.roll();
    bench.clean();
    assert_eq!(markers(&bench), [4, 7, 9], "what has nothing left to mark goes");
}

#[test]
fn nothing_is_cleaned_from_an_open_transaction_or_the_high_watermark_on() {
    let mut bench = Bench::new(options());
    bench.write("a=1");
    bench.roll();
    bench.append(&transactional(7, 0, "a=2"), Origin::Client);
    bench.roll();
    bench.write("a=3");
    bench.roll();
    assert_eq!(bench.backlog().end, Offset::new(1));
    let view = bench.log.compaction_view(Offset::ZERO).unwrap();
    let backlog = view.backlog(None, Timestamp::from_millis(NOW)).unwrap();
    assert_eq!((backlog.end, backlog.cleanable_bytes), (Offset::ZERO, 0));
}

#[test]
fn a_small_map_cleans_in_several_rounds() {
    let mut bench = Bench::new(options());
    bench.limits.map_bytes = 3 * 24;
    for _ in 0..2 {
        bench.write("a=1 b=2 c=3 d=4 e=5");
    }
    bench.roll();
    let mut rounds = 0;
    while bench.backlog().cleanable_bytes > 0 {
        let tally = bench.clean();
        assert!(tally.map_bytes <= 72);
        rounds += 1;
    }
    assert!(rounds > 2, "{rounds}");
    assert_eq!(bench.rows(), "5:a=1 6:b=2 7:c=3 8:d=4 9:e=5");
    let mut bench = Bench::new(options());
    bench.limits.map_bytes = 3 * 24;
    bench.append(&batch(BatchOptions::default(), "a=1 b=2 c=3 d=4", NOW), Origin::Client);
    bench.roll();
    assert!(matches!(bench.try_clean(), Err(CleanError::MapTooSmall(_))));
}

#[test]
fn young_segments_are_left_alone_and_old_ones_are_overdue() {
    let mut bench = Bench::new(options());
    bench.write("a=1");
    bench.roll();
    bench.now += 1000;
    bench.write("a=2");
    bench.roll();
    let with = |bench: &mut Bench, compaction| {
        bench.log.set_options(LogOptions {
            compaction,
            ..options()
        });
        bench.backlog()
    };
    let compaction = CompactionOptions {
        lag_ms_min: 500,
        ..CompactionOptions::default()
    };
    assert_eq!(with(&mut bench, compaction).end, Offset::new(1));
    let compaction = CompactionOptions {
        lag_ms_max: Some(500),
        dirty_ratio_min: 1.0,
        ..CompactionOptions::default()
    };
    let backlog = with(&mut bench, compaction);
    assert!(backlog.overdue && backlog.is_due(&compaction));
    bench.cleaned_to = Some(Offset::new(1));
    assert!(!bench.backlog().overdue);
}

#[test]
fn a_log_is_due_when_more_of_it_is_dirty_than_its_ratio_allows() {
    let mut bench = Bench::new(options());
    bench.write("a=1 b=1 c=1 d=1");
    bench.roll();
    bench.clean();
    let clean_bytes = bench.log.size_bytes();
    let compaction = CompactionOptions::default();
    bench.write("a=2 b=2 c=2 d=2");
    assert_eq!(
        bench.backlog().cleanable_bytes,
        0,
        "the active segment counts for nothing"
    );
    bench.roll();
    let backlog = bench.backlog();
    assert_eq!((backlog.first_dirty, backlog.end), (Offset::new(4), Offset::new(8)));
    assert_eq!(
        (backlog.clean_bytes, backlog.cleanable_bytes),
        (clean_bytes, clean_bytes)
    );
    assert!(!backlog.is_due(&compaction), "half of it is dirty, and not more");
    bench.write("a=3");
    bench.roll();
    assert!(bench.backlog().is_due(&compaction));
    bench.clean();
    assert_eq!(bench.rows(), "5:b=2 6:c=2 7:d=2 8:a=3");
    assert!(!bench.backlog().is_due(&compaction), "all of it is clean");
}

#[test]
fn small_segments_become_one_and_who_reads_the_old_reads_on() {
    let mut bench = Bench::new(options());
    for round in 0..4 {
        bench.write(&format!("a={round} b={round}"));
        bench.roll();
    }
    let old = bench.log.segments();
    bench.clean();
    assert_eq!(bench.count(".log"), 2);
    assert_eq!(bench.count(".log.deleted"), 4);
    assert_eq!(bench.rows(), "6:a=3 7:b=3");
    let first = old[0].find(Offset::ZERO, Wait::Allowed).unwrap().unwrap();
    assert_eq!(first.header.base_offset, 0);
    let at = |millis| {
        let limit = DecompressionLimit::DEFAULT;
        let reader = bench.log.reader();
        let found = reader.offset_for_timestamp(Timestamp::from_millis(millis), limit, Wait::Allowed);
        found.unwrap().map(|found| found.offset.get())
    };
    assert_eq!((at(0), at(NOW), at(NOW + 1)), (Some(6), Some(6), None));
}

#[test]
fn what_changed_meanwhile_is_not_swapped_over() {
    let mut bench = Bench::new(options());
    bench.write("a=1 a=2");
    bench.roll();
    bench.write("a=3");
    let cleaned = bench.clean_one_group();
    let now = Timestamp::from_millis(bench.now);
    bench.log.truncate_to(Offset::new(1), now, |_| Ok(())).unwrap();
    assert!(matches!(bench.log.swap_in(cleaned), Err(SwapError::Changed)));
    assert_eq!(bench.rows(), "0:a=1");
    assert_eq!(bench.count(".cleaned"), 0);
}

#[test]
fn no_segment_is_left_without_records_before_one_that_has_some() {
    // None of these fits into one with its neighbour.
    let mut bench = Bench::new(LogOptions {
        segment_size_bytes: 200,
        ..options()
    });
    for round in 0..4 {
        bench.write(&format!("a={round} b={round}"));
        bench.roll();
    }
    bench.clean();
    assert_eq!(bench.rows(), "6:a=3 7:b=3");
    assert_eq!(bench.count(".log"), 2);
    let first = bench.log.reader().read(request(Offset::ZERO)).unwrap().bytes;
    assert!(Batch::split_first(&first).unwrap().0.header.record_count > 0);
    bench.log = open(&bench.disk, options());
    assert_eq!(bench.rows(), "6:a=3 7:b=3");
}

/// Two segments of which one was written anew, and the node died when that had been decided.
fn decided(damaged: bool) -> (Bench, usize) {
    let mut bench = Bench::new(options());
    bench.write("a=1 b=1");
    bench.roll();
    bench.write("a=2 b=2");
    bench.roll();
    let cleaned = bench.clean_one_group();
    drop(cleaned);
    for name in bench.names().iter().filter(|name| name.ends_with(".cleaned")) {
        let path = Path::new(DIRECTORY).join(name);
        bench.disk.rename(&path, &path.with_extension("swap")).unwrap();
    }
    bench.disk.sync_directory(Path::new(DIRECTORY)).unwrap();
    if damaged {
        let swap = Path::new(DIRECTORY).join("00000000000000000000.log.swap");
        assert!(bench.disk.flip_bit(&swap, 70, 1));
    }
    bench.log = open(&bench.disk, options());
    let left = bench.count(".swap");
    (bench, left)
}

#[test]
fn an_exchange_that_was_decided_is_finished_by_the_next_start() {
    let (bench, left) = decided(false);
    assert_eq!((bench.rows().as_str(), left), ("2:a=2 3:b=2", 0));
}

#[test]
fn a_damaged_swap_is_not_taken_for_what_it_should_replace() {
    let (bench, left) = decided(true);
    assert_eq!((bench.rows().as_str(), left), ("0:a=1 1:b=1 2:a=2 3:b=2", 0));
}

#[test]
fn the_greatest_time_is_found_where_the_record_that_had_it_has_gone() {
    let mut bench = Bench::new(options());
    let options = BatchOptions {
        producer: producer(7, Some(0)),
        ..BatchOptions::default()
    };
    bench.append(&batch(options, "a=1", NOW + 500), Origin::Client);
    bench.write("a=2");
    bench.roll();
    bench.clean();
    let found = bench
        .log
        .reader()
        .offset_of_max_timestamp(DecompressionLimit::DEFAULT, Wait::Allowed);
    assert_eq!(found.unwrap().map(|found| found.offset), Some(Offset::new(1)));
}

#[test]
fn damage_is_no_reason_to_drop_anything() {
    let mut bench = Bench::new(options());
    bench.write("a=1 a=2 a=3");
    bench.roll();
    let log = crate::file_names::Kind::Log.path(Path::new(DIRECTORY), Offset::ZERO);
    assert!(bench.disk.flip_bit(&log, 70, 1));
    let size = bench.log.size_bytes();
    assert!(matches!(bench.try_clean(), Err(CleanError::Damaged(_))));
    assert_eq!(bench.log.size_bytes(), size);
}

/// What can be read if what is refused is passed over.
fn rows_and_refused(log: &PartitionLog<SimDisk>) -> (Vec<(i64, String)>, Vec<i64>) {
    let (mut rows, mut refused) = (Vec::new(), Vec::new());
    let mut from = Offset::ZERO;
    loop {
        match log.reader().read(request(from)) {
            Ok(read) if read.next_offset == from => return (rows, refused),
            Ok(read) => {
                let mut rest = read.bytes;
                while !rest.is_empty() {
                    let size = Batch::split_first(&rest).unwrap().0.bytes().len();
                    for record in records(&rest.split_to(size), DecompressionLimit::DEFAULT).unwrap() {
                        let record = record.unwrap();
                        let key = String::from_utf8(record.key.unwrap().to_vec()).unwrap();
                        rows.push((record.offset.get(), key));
                    }
                }
                from = read.next_offset;
            }
            Err(crate::ReadError::Corrupt(_)) => {
                refused.push(from.get());
                from = from.plus(1);
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// A cleaned segment with records at 0, 1, 3, 5, 6 and 8.
fn with_gaps() -> Bench {
    let mut bench = Bench::new(options());
    bench.write("a=1 b=1 k=1 c=1 k=2 d=1 e=1 k=3 k=4");
    bench.roll();
    bench.clean();
    bench.write("z=1");
    bench.log.sync_now().unwrap();
    assert_eq!(bench.rows(), "0:a=1 1:b=1 3:c=1 5:d=1 6:e=1 8:k=4 9:z=1");
    bench
}

fn keys_but(gone: &str) -> Vec<(i64, String)> {
    let all = [(0, "a"), (1, "b"), (3, "c"), (5, "d"), (6, "e"), (8, "k"), (9, "z")];
    let kept = all.into_iter().filter(|(_, key)| *key != gone);
    kept.map(|(offset, key)| (offset, key.to_owned())).collect()
}

#[test]
fn a_batch_that_was_moved_within_a_gap_is_damage() {
    let path = crate::file_names::Kind::Log.path(Path::new(DIRECTORY), Offset::ZERO);
    // Into the gap before it, and into the one behind it.
    for (index, key, refused) in [(2, "c", 2..5), (4, "e", 6..8)] {
        let mut bench = with_gaps();
        let position: usize = bench.batches()[..index].iter().map(Bytes::len).sum();
        assert!(bench.disk.flip_bit(&path, position + 7, 0));
        let expected = (keys_but(key), refused.collect::<Vec<i64>>());
        assert_eq!(rows_and_refused(&bench.log), expected);
        assert!(
            bench.log.compaction_view(bench.log.synced_offset()).is_none(),
            "it is left alone"
        );
        bench.log = open(&bench.disk, options());
        assert_eq!(rows_and_refused(&bench.log), expected, "after another start");
    }
}

#[test]
fn a_damaged_list_of_where_batches_begin_hides_nothing() {
    let path = crate::file_names::Kind::Bases.path(Path::new(DIRECTORY), Offset::ZERO);
    for byte in [0, 5, 10, 17, 20, 31] {
        let mut bench = with_gaps();
        assert!(bench.disk.flip_bit(&path, byte, 2));
        for start in 0..2 {
            assert_eq!(
                rows_and_refused(&bench.log),
                (keys_but("-"), Vec::new()),
                "{byte}, {start}"
            );
            bench.log = open(&bench.disk, options());
        }
    }
}

#[test]
fn a_segment_that_another_program_has_cleaned_is_believed() {
    let bench = with_gaps();
    let path = |kind: crate::file_names::Kind| kind.path(Path::new(DIRECTORY), Offset::ZERO);
    let list = crate::disk::read_small_file(&bench.disk, &path(crate::file_names::Kind::Bases), 1 << 20).unwrap();
    // As long as before, but other batches: the last two keys have changed places.
    let mut other = Bench::new(options());
    other.write("a=1 b=1 k=1 c=1 k=2 d=1 k=3 k=4 e=1");
    other.roll();
    other.clean();
    other.write("z=1");
    let file = other
        .disk
        .open(&path(crate::file_names::Kind::Bases), crate::disk::OpenMode::Replace)
        .unwrap();
    crate::disk::File::write_all_at(&file, &[std::io::IoSlice::new(&list)], 0).unwrap();
    crate::disk::File::sync(&file).unwrap();
    other.log.sync_now().unwrap();
    other.log = open(&other.disk, options());
    assert_eq!(other.rows(), "0:a=1 1:b=1 3:c=1 5:d=1 7:k=4 8:e=1 9:z=1");
    assert_eq!(other.count(".bases"), 0, "what is of no use goes");
}
