//! A log beside a plain list: whatever is done to both, both say the same.
#![allow(clippy::unwrap_used, reason = "a test ends where it is surprised")]

use std::path::Path;

use model::record_batch::{Batch, BatchBuilder, BatchOptions, Compression, DecompressionLimit, records};
use model::{LeaderEpoch, Offset, Timestamp};
use proptest::prelude::*;
use storage::{AppendAs, Durability, LogOptions, Origin, PartitionLog, ReadError, ReadRequest, SimDisk, Start, Wait};

const DIRECTORY: &str = "/t-0";

#[derive(Clone, Debug)]
enum Step {
    Append {
        records: usize,
        size: usize,
        compression: u8,
        epoch: bool,
    },
    Roll,
    Sync,
    /// Per mille of the log.
    Truncate(u64),
    DeleteBefore(u64),
    Retain(u64),
    Reopen {
        clean: bool,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (1usize..5, 0usize..150, 0u8..5, prop::bool::weighted(0.1))
            .prop_map(|(records, size, compression, epoch)| Step::Append { records, size, compression, epoch }),
        1 => Just(Step::Roll),
        1 => Just(Step::Sync),
        1 => (500u64..1001).prop_map(Step::Truncate),
        1 => (0u64..600).prop_map(Step::DeleteBefore),
        1 => (300u64..3000).prop_map(Step::Retain),
        1 => any::<bool>().prop_map(|clean| Step::Reopen { clean }),
    ];
    prop::collection::vec(step, 1..80)
}

struct Both {
    disk: SimDisk,
    log: Option<PartitionLog<SimDisk>>,
    /// Value, first offset of its batch, leader epoch; one row an offset.
    rows: Vec<(String, i64, i32)>,
    log_start: i64,
    epoch: i32,
}

fn options(retention_bytes: Option<u64>) -> LogOptions {
    LogOptions {
        segment_size_bytes: 700,
        index_interval_bytes: 150,
        retention_ms: None,
        retention_bytes,
        durability: Durability::Replicated,
        ..LogOptions::default()
    }
}

impl Both {
    fn new() -> Self {
        let disk = SimDisk::new(3);
        let log = open(&disk, Start::default());
        Both {
            disk,
            log: Some(log),
            rows: Vec::new(),
            log_start: 0,
            epoch: 0,
        }
    }

    fn log(&mut self) -> &mut PartitionLog<SimDisk> {
        self.log.as_mut().unwrap()
    }

    fn end(&self) -> i64 {
        self.rows.len() as i64
    }

    fn part(&self, per_mille: u64) -> i64 {
        self.log_start + (self.end() - self.log_start) * per_mille as i64 / 1000
    }

    fn apply(&mut self, step: &Step) {
        match *step {
            Step::Append {
                records,
                size,
                compression,
                epoch,
            } => self.append(records, size, compression, epoch),
            Step::Roll => self.log().roll(Timestamp::from_millis(0)).unwrap(),
            Step::Sync => self.log().sync_now().unwrap(),
            Step::Truncate(per_mille) => {
                let target = self.part(per_mille);
                let end = self
                    .log()
                    .truncate_to(Offset::new(target), Timestamp::from_millis(0), |_| Ok(()))
                    .unwrap();
                let expected = self.rows.get(target as usize).map_or(target, |(_, first, _)| *first);
                assert_eq!(end.get(), expected);
                self.rows.truncate(expected as usize);
                self.log_start = self.log_start.min(expected);
            }
            Step::DeleteBefore(per_mille) => {
                let (offset, end) = (self.part(per_mille), self.end());
                self.log()
                    .delete_records_before(Offset::new(offset), Offset::new(end))
                    .unwrap();
                self.log_start = self.log_start.max(offset);
            }
            Step::Retain(bytes) => {
                let end = Offset::new(self.end());
                self.log().set_options(options(Some(bytes)));
                let before = self.log().size_bytes();
                self.log().enforce_retention(Timestamp::from_millis(0), end).unwrap();
                let after = self.log().size_bytes();
                assert!(after >= bytes.min(before) || self.log().log_start_offset().get() >= self.log_start);
                self.log_start = self.log().log_start_offset().get();
            }
            Step::Reopen { clean } => {
                let mut log = self.log.take().unwrap();
                if clean {
                    log.close().unwrap();
                } else {
                    drop(log);
                }
                let start = Start {
                    clean,
                    recovery_point: Offset::ZERO,
                    log_start_offset: Offset::new(self.log_start),
                };
                self.log = Some(open(&self.disk, start));
            }
        }
    }

    fn append(&mut self, count: usize, size: usize, compression: u8, new_epoch: bool) {
        self.epoch += i32::from(new_epoch);
        let compression = Compression::from_code(compression).unwrap();
        let mut builder = BatchBuilder::new(BatchOptions {
            compression,
            ..BatchOptions::default()
        });
        let first = self.end();
        for index in 0..count {
            let value = format!("{}-{}-{}", first, index, "v".repeat(size));
            builder
                .append(Timestamp::from_millis(first), None, Some(value.as_bytes()), &[])
                .unwrap();
            self.rows.push((value, first, self.epoch));
        }
        let role = AppendAs::Leader {
            epoch: LeaderEpoch::new(self.epoch),
            origin: Origin::Client,
        };
        let appended = self
            .log()
            .append(&builder.build().unwrap(), role, Timestamp::from_millis(first))
            .unwrap();
        assert_eq!(appended.first_offset.get(), first);
        assert_eq!(appended.last_offset.get(), self.end() - 1);
    }

    fn compare(&mut self) {
        let reader = self.log().reader();
        assert_eq!(reader.log_end_offset().get(), self.end());
        assert_eq!(reader.log_start_offset().get(), self.log_start);
        let request = |from: i64| ReadRequest {
            from: Offset::new(from),
            max_bytes: 900,
            up_to: Offset::MAX,
            min_one: true,
            wait: Wait::Allowed,
        };
        assert!(matches!(
            reader.read(request(self.end() + 1)),
            Err(ReadError::OutOfRange { .. })
        ));
        let mut from = self.log_start;
        while from < self.end() {
            let read = reader.read(request(from)).unwrap();
            assert_eq!(read.first_offset.get(), self.rows[from as usize].1);
            let mut rest = read.bytes;
            while !rest.is_empty() {
                let size = Batch::split_first(&rest).unwrap().0.bytes().len();
                for record in records(&rest.split_to(size), DecompressionLimit::DEFAULT).unwrap() {
                    let record = record.unwrap();
                    let row = &self.rows[record.offset.get() as usize];
                    assert_eq!(record.value.unwrap(), row.0.as_bytes());
                    // The first batch may begin before the log does.
                    if record.offset.get() >= self.log_start {
                        assert_eq!(reader.epoch_of(record.offset).map(LeaderEpoch::get), Some(row.2));
                    }
                }
            }
            from = read.next_offset.get();
        }
        let middle = self.part(500);
        let wanted = Timestamp::from_millis(middle);
        let found = reader
            .offset_for_timestamp(wanted, DecompressionLimit::DEFAULT, Wait::Allowed)
            .unwrap();
        let expected = (self.log_start..self.end()).find(|offset| self.rows[*offset as usize].1 >= middle);
        assert_eq!(found.map(|found| found.offset.get()), expected);
    }
}

fn open(disk: &SimDisk, start: Start) -> PartitionLog<SimDisk> {
    let now = Timestamp::from_millis(0);
    let (log, recovery) = PartitionLog::open(disk.clone(), Path::new(DIRECTORY), options(None), start, now).unwrap();
    assert!(recovery.damage.is_empty() && recovery.bytes_cut == 0, "{recovery:?}");
    log
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_log_and_a_list_say_the_same(steps in steps()) {
        let mut both = Both::new();
        for step in &steps {
            both.apply(step);
            both.compare();
        }
    }
}
