//! What comes along when a log moves to another directory; what crashes do to it is in `relocation_simulation.rs`.
#![allow(clippy::unwrap_used, reason = "a test ends where it is surprised")]

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use model::record_batch::{BatchBuilder, BatchOptions};
use model::{BrokerId, LeaderEpoch, Offset, PartitionIndex, Timestamp, TopicName, TopicPartition, Uuid};
use storage::compaction::{CleaningLimits, CompactionOptions};
use storage::disk::{File, OpenMode};
use storage::log_directory::{MetaProperties, format};
use storage::relocation::{CopyError, Copying, ExchangeError, Exchanged, MOVE_FILE, Sides, exchange};
use storage::{AppendAs, Disk, LogDirectory, LogOptions, Origin, PartitionLog, ReadError, ReadRequest, SimDisk, Wait};

const TOPIC_ID: Uuid = Uuid::from_bytes([7; 16]);
const HELD_BYTES_MAX: u64 = 1 << 20;

/// A log in `/a`, and `/b` on a disk of its own.
struct Bench {
    from: LogDirectory<SimDisk>,
    to: LogDirectory<SimDisk>,
    log: PartitionLog<SimDisk>,
    unique: u8,
}

fn place() -> TopicPartition {
    TopicPartition {
        topic: TopicName::new("t").unwrap(),
        partition: PartitionIndex::new(0),
    }
}

fn now() -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000)
}

fn directory(path: &str, id: u8) -> LogDirectory<SimDisk> {
    let disk = SimDisk::new(u64::from(id));
    let properties = MetaProperties {
        version: 1,
        cluster_id: Some("c".to_owned()),
        node_id: Some(BrokerId::new(1)),
        directory_id: Some(Uuid::from_bytes([id; 16])),
    };
    format(&disk, Path::new(path), &properties).unwrap();
    LogDirectory::open(disk, Path::new(path), Uuid::ZERO).unwrap()
}

impl Bench {
    fn new(options: LogOptions) -> Self {
        let (from, to) = (directory("/a", 10), directory("/b", 11));
        let path = from.create_partition(&place(), TOPIC_ID).unwrap();
        let opened = PartitionLog::open(from.disk().clone(), &path, options, from.start_of(&place()), now());
        Bench {
            from,
            to,
            log: opened.unwrap().0,
            unique: 0,
        }
    }

    fn append(&mut self, key: &str) {
        let mut builder = BatchBuilder::new(BatchOptions::default());
        builder
            .append(now(), Some(key.as_bytes()), Some(&[b'x'; 80]), &[])
            .unwrap();
        let role = AppendAs::Leader {
            epoch: LeaderEpoch::new(3),
            origin: Origin::Client,
        };
        self.log.append(&builder.build().unwrap(), role, now()).unwrap();
        self.log.sync_now().unwrap();
    }

    fn begin(&mut self) -> Copying<SimDisk> {
        self.unique += 1;
        let unique = Uuid::from_bytes([self.unique; 16]);
        let path = self.to.create_future(&place(), TOPIC_ID, unique).unwrap();
        Copying::begin(&self.log, self.to.disk().clone(), path)
    }

    fn exchange(&mut self, copying: &mut Copying<SimDisk>, held: u64) -> Result<Exchanged<SimDisk>, ExchangeError> {
        let sides = Sides {
            from: &mut self.from,
            to: &mut self.to,
            place: &place(),
        };
        let (high_watermark, unique) = (self.log.synced_offset(), Uuid::from_bytes([self.unique; 16]));
        exchange(sides, copying, &self.log, high_watermark, (unique, held), now())
    }

    fn clean(&mut self) {
        let view = self.log.compaction_view(self.log.synced_offset()).unwrap();
        let backlog = view.backlog(None, now()).unwrap();
        let mut cleaning = self.log.begin_cleaning(&backlog, CleaningLimits::default(), now());
        let pace = &mut |_| ControlFlow::Continue(());
        cleaning.map_keys(pace).unwrap();
        while let Some(cleaned) = cleaning.clean_group(pace).unwrap() {
            self.log.swap_in(cleaned).unwrap();
        }
    }
}

fn catch_up(copying: &mut Copying<SimDisk>) {
    while copying.step(100).unwrap().behind > 0 {}
}

fn options() -> LogOptions {
    LogOptions {
        segment_size_bytes: 500,
        index_interval_bytes: 100,
        ..LogOptions::default()
    }
}

/// Name → content, of what lies in a folder of a partition and says something of its log.
fn files(disk: &SimDisk, folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = disk.list(folder).unwrap().into_iter();
    let told = entries.filter(|entry| entry.name != MOVE_FILE && !entry.name.ends_with(".deleted"));
    told.map(|entry| {
        let file = disk.open(&folder.join(&entry.name), OpenMode::Read).unwrap();
        let mut content = vec![0; file.size_bytes().unwrap() as usize];
        let read = file.read_at(&mut content, 0).unwrap();
        assert_eq!(read, content.len());
        (entry.name, content)
    })
    .collect()
}

fn read(log: &PartitionLog<SimDisk>, from: i64) -> Result<Bytes, ReadError> {
    let request = ReadRequest {
        from: Offset::new(from),
        max_bytes: 1 << 20,
        up_to: Offset::MAX,
        min_one: true,
        wait: Wait::Allowed,
    };
    log.reader().read(request).map(|read| read.bytes)
}

/// The folder that was left and the new one hold the same; the indexes of the last segment are written when they are due.
fn assert_same(bench: &Bench, exchanged: &Exchanged<SimDisk>) {
    let left = exchanged.set_aside.clone().unwrap();
    let (old, new) = (
        files(bench.from.disk(), &left),
        files(bench.to.disk(), Path::new("/b/t-0")),
    );
    let last = new.keys().filter(|name| name.ends_with(".log")).max().unwrap().clone();
    let is_sealed = |name: &&String| name[..20] != last[..20] || name.ends_with(".log");
    let names = |files: &BTreeMap<String, Vec<u8>>| -> Vec<String> {
        files
            .keys()
            .filter(|name| name.len() < 20 || is_sealed(name))
            .cloned()
            .collect()
    };
    assert_eq!(
        names(&old),
        names(&new)
            .into_iter()
            .filter(|name| old.contains_key(name))
            .collect::<Vec<_>>()
    );
    for name in names(&old) {
        assert!(old[&name] == new[&name], "{name} differs");
    }
}

#[test]
fn a_log_moves_with_its_indexes_epochs_and_start_while_it_is_written_to() {
    let mut bench = Bench::new(options());
    for number in 0..20 {
        bench.append(&number.to_string());
    }
    let mut copying = bench.begin();
    let mut ends = Vec::new();
    for number in 20..30 {
        let progress = copying.step(150).unwrap();
        assert!(progress.copied <= 150 && progress.behind > 0);
        ends.push(progress.end.get());
        bench.append(&number.to_string());
    }
    assert!(ends.is_sorted() && ends[0] < ends[9], "{ends:?}");
    bench
        .log
        .delete_records_before(Offset::new(4), Offset::new(30))
        .unwrap();
    let behind = bench.exchange(&mut copying, 10).err();
    assert!(
        matches!(behind, Some(ExchangeError::Copy(CopyError::Behind(_)))),
        "{behind:?}"
    );
    catch_up(&mut copying);
    bench.append("last");
    // A leader that has not written anything yet.
    bench.log.begin_epoch(LeaderEpoch::new(5));
    let exchanged = bench.exchange(&mut copying, HELD_BYTES_MAX).unwrap();
    let moved = &exchanged.log;
    assert_eq!(
        (moved.log_start_offset(), moved.log_end_offset()),
        (Offset::new(4), Offset::new(31))
    );
    assert_eq!(moved.synced_offset(), Offset::new(31));
    assert_eq!(moved.latest_epoch(), Some(LeaderEpoch::new(5)));
    assert_eq!(moved.directory(), Path::new("/b/t-0"));
    assert_eq!(read(moved, 4).unwrap(), read(&bench.log, 4).unwrap());
    assert_same(&bench, &exchanged);
    let start = bench.to.start_of(&place());
    assert_eq!(
        (start.recovery_point, start.log_start_offset),
        (Offset::new(31), Offset::new(4))
    );
    assert!(!bench.from.has_folder(&place()).unwrap());
}

#[test]
fn damage_moves_with_its_quarantine() {
    let mut bench = Bench::new(options());
    for number in 0..20 {
        bench.append(&number.to_string());
    }
    let sealed = PathBuf::from("/a/t-0/00000000000000000000.log");
    assert!(bench.from.disk().flip_bit(&sealed, 200, 3));
    let broken = (0..20).find(|offset| read(&bench.log, *offset).is_err()).unwrap();
    let damage = bench.log.damage();
    assert_eq!(damage.len(), 1);
    let mut copying = bench.begin();
    catch_up(&mut copying);
    let exchanged = bench.exchange(&mut copying, HELD_BYTES_MAX).unwrap();
    assert_eq!(exchanged.log.damage(), damage);
    assert!(matches!(read(&exchanged.log, broken), Err(ReadError::Corrupt(_))));
    assert_same(&bench, &exchanged);
}

#[test]
fn what_the_cleaner_and_retention_do_meanwhile_is_done_to_the_copy() {
    let mut bench = Bench::new(LogOptions {
        compact: true,
        compaction: CompactionOptions {
            dirty_ratio_min: 0.0,
            ..CompactionOptions::default()
        },
        retention_bytes: Some(1500),
        ..options()
    });
    for number in 0..40 {
        bench.append(&(number % 3).to_string());
    }
    let mut copying = bench.begin();
    copying.step(2000).unwrap();
    bench.clean();
    bench.from.set_cleaned_to(&place(), Offset::new(35));
    for number in 40..70 {
        bench.append(&number.to_string());
        copying.step(100).unwrap();
    }
    let removed = bench.log.enforce_retention(now(), bench.log.synced_offset()).unwrap();
    assert!(removed.segments > 0);
    catch_up(&mut copying);
    let exchanged = bench.exchange(&mut copying, HELD_BYTES_MAX).unwrap();
    assert_eq!(exchanged.log.log_start_offset(), bench.log.log_start_offset());
    assert_eq!(exchanged.log.size_bytes(), bench.log.size_bytes());
    assert_same(&bench, &exchanged);
    assert_eq!(bench.to.cleaned_to(&place()), Some(Offset::new(35)));
}

#[test]
fn a_full_disk_ends_the_move_and_nothing_else() {
    let mut bench = Bench::new(options());
    for number in 0..20 {
        bench.append(&number.to_string());
    }
    let mut copying = bench.begin();
    copying.step(400).unwrap();
    bench.to.disk().set_capacity(Some(0));
    let full = (0..20).find_map(|_| copying.step(400).err()).unwrap();
    assert!(matches!(full, CopyError::Io(error) if storage::disk::is_full(&error)));
    let path = copying.directory().to_owned();
    bench.to.discard_future(&path).unwrap();
    assert!(bench.to.folders().unwrap().is_empty());
    bench.append("after");
    assert_eq!(bench.log.log_end_offset(), Offset::new(21));
}

#[test]
fn a_disk_that_fails_in_the_exchange_leaves_the_log_where_it_was() {
    for call in 1..60 {
        let mut bench = Bench::new(options());
        for number in 0..20 {
            bench.append(&number.to_string());
        }
        let mut copying = bench.begin();
        catch_up(&mut copying);
        let disk = bench.to.disk().clone();
        disk.crash_at_call(disk.calls() + call);
        match bench.exchange(&mut copying, HELD_BYTES_MAX) {
            // All that is left to do is to take a note away.
            Ok(exchanged) => assert!(exchanged.set_aside.is_some() && call > 20, "call {call}"),
            Err(_) => {
                assert!(!bench.log.is_offline());
                bench.append("after");
                assert!(!read(&bench.log, 20).unwrap().is_empty());
                let note = PathBuf::from("/a/t-0").join(MOVE_FILE);
                assert!(bench.from.disk().open(&note, OpenMode::Read).is_err(), "call {call}");
            }
        }
    }
}
