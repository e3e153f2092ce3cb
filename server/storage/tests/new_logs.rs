//! Logs that begin: what is on the disk of them and when, with the power lost at any call.
#![allow(clippy::unwrap_used, reason = "a test ends where it is surprised")]

use std::path::Path;

use bytes::Bytes;
use model::record_batch::{BatchBuilder, BatchOptions};
use model::{BrokerId, LeaderEpoch, Offset, PartitionIndex, Timestamp, TopicName, TopicPartition, Uuid};
use storage::log_directory::{DirectoryError, MetaProperties, format};
use storage::{
    AppendAs, Disk, LogDirectory, LogOptions, Origin, PartitionLog, ReadRequest, Recovery, SimDisk, Start, Wait,
};

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);
const ID: Uuid = Uuid::from_bytes([7; 16]);
const OTHER: Uuid = Uuid::from_bytes([9; 16]);
const SEEDS: u64 = 4;
/// No life makes more calls.
const CALLS_MAX: u64 = 10_000;

fn place() -> TopicPartition {
    TopicPartition {
        topic: TopicName::new("t").unwrap(),
        partition: PartitionIndex::new(0),
    }
}

fn formatted(seed: u64) -> SimDisk {
    let disk = SimDisk::new(seed);
    let properties = MetaProperties {
        version: 1,
        cluster_id: Some("c".to_owned()),
        node_id: BrokerId::from_wire(1),
        directory_id: Some(OTHER),
    };
    format(&disk, Path::new("/d"), &properties).unwrap();
    disk
}

fn batch(value: &str) -> Bytes {
    let mut builder = BatchBuilder::new(BatchOptions::default());
    builder.append(NOW, None, Some(value.as_bytes()), &[]).unwrap();
    builder.build().unwrap()
}

fn open(disk: &SimDisk, path: &Path, start: Start) -> Option<(PartitionLog<SimDisk>, Recovery)> {
    PartitionLog::open(disk.clone(), path, LogOptions::default(), start, NOW).ok()
}

/// A node that leads the partition with this epoch and appends a record; whether it could acknowledge that.
fn live(disk: &SimDisk, epoch: i32, found: &mut Vec<String>) -> bool {
    let Ok(directory) = LogDirectory::open(disk.clone(), Path::new("/d"), OTHER) else {
        return false;
    };
    let Ok(path) = directory.create_partition(&place(), ID) else {
        return false;
    };
    let Some((mut log, recovery)) = open(disk, &path, directory.start_of(&place())) else {
        return false;
    };
    assert_eq!(recovery.damage, [], "what a crash leaves is no damage");
    let request = ReadRequest {
        from: Offset::ZERO,
        max_bytes: 1 << 20,
        up_to: Offset::MAX,
        min_one: true,
        wait: Wait::Allowed,
    };
    if let Ok(read) = log.reader().read(request) {
        found.push(String::from_utf8_lossy(&read.bytes).into_owned());
    }
    let epoch = LeaderEpoch::new(epoch);
    log.begin_epoch(epoch);
    let role = AppendAs::Leader {
        epoch,
        origin: Origin::Client,
    };
    log.append(&batch(&format!("life {}", epoch.get())), role, NOW).is_ok() && log.sync_now().is_ok()
}

fn topic_id(disk: &SimDisk) -> Result<Option<Uuid>, DirectoryError> {
    LogDirectory::open(disk.clone(), Path::new("/d"), OTHER)?.topic_id_near(&place(), ID)
}

/// Three lives, each ended by a loss of power; the one of number `shorter` at its `call`-th call. Whether it came to that.
fn try_crash(seed: u64, reorder: bool, shorter: i32, call: u64) -> bool {
    let disk = formatted(seed);
    disk.reorder_on_crash(reorder);
    let mut acknowledged = Vec::new();
    let mut has_crashed = false;
    for epoch in 0..3 {
        if epoch == shorter {
            disk.crash_at_call(disk.calls() + call);
        }
        if live(&disk, epoch, &mut Vec::new()) {
            acknowledged.push(format!("life {epoch}"));
        }
        has_crashed |= disk.has_crashed();
        disk.restart();
        let id = topic_id(&disk).unwrap();
        assert!(
            acknowledged.is_empty() || id == Some(ID),
            "seed {seed}, life {shorter}, call {call}: the folder does not say whose it is"
        );
    }
    let mut found = Vec::new();
    live(&disk, 3, &mut found);
    let found = found.concat();
    for value in acknowledged {
        assert!(
            found.contains(&value),
            "seed {seed}, life {shorter}, call {call}: {value} is lost"
        );
    }
    has_crashed
}

#[test]
fn a_log_that_begins_keeps_what_it_acknowledged_and_whose_it_is() {
    for (seed, shorter) in (0..SEEDS).flat_map(|seed| (0..3).map(move |shorter| (seed, shorter))) {
        for reorder in [false, true] {
            let crashes = (1..CALLS_MAX)
                .take_while(|call| try_crash(seed, reorder, shorter, *call))
                .count();
            assert!(crashes > 20, "{crashes} crashes");
        }
    }
}

#[test]
fn a_log_without_records_is_three_names_and_its_close_writes_nothing() {
    let disk = formatted(1);
    let directory = LogDirectory::open(disk.clone(), Path::new("/d"), OTHER).unwrap();
    let path = directory.create_partition(&place(), ID).unwrap();
    let names = |path: &Path| -> Vec<String> {
        let entries = disk.list(path).unwrap().into_iter();
        entries.map(|entry| entry.name).collect()
    };
    let (mut log, _) = open(&disk, &path, Start::default()).unwrap();
    log.begin_epoch(LeaderEpoch::new(0));
    let calls = disk.calls();
    assert_eq!(log.close().unwrap(), Offset::ZERO);
    assert_eq!(disk.calls(), calls);
    assert_eq!(names(&path), ["00000000000000000000.log", "partition.metadata"]);

    let clean = Start {
        clean: true,
        ..Start::default()
    };
    let (mut log, _) = open(&disk, &path, clean).unwrap();
    log.begin_epoch(LeaderEpoch::new(1));
    let role = AppendAs::Leader {
        epoch: LeaderEpoch::new(1),
        origin: Origin::Client,
    };
    log.append(&batch("a"), role, NOW).unwrap();
    log.close().unwrap();
    assert_eq!(
        names(&path),
        [
            "00000000000000000000.index",
            "00000000000000000000.log",
            "00000000000000000000.timeindex",
            "00000000000000000001.snapshot",
            "leader-epoch-checkpoint",
            "leader-epoch-checkpoint.crc",
            "partition.metadata",
        ]
    );
    let end = Start {
        clean: true,
        recovery_point: Offset::new(1),
        ..Start::default()
    };
    let (mut log, recovery) = open(&disk, &path, end).unwrap();
    assert_eq!(recovery, Recovery::default());
    log.begin_epoch(LeaderEpoch::new(2));
    let calls = disk.calls();
    log.close().unwrap();
    assert_eq!(disk.calls(), calls, "nothing was appended");
    log.append(&batch("b"), role, NOW).unwrap();
    assert_eq!(log.close().unwrap(), Offset::new(2));
    assert!(disk.calls() > calls);
}

#[test]
fn a_folder_whose_id_did_not_reach_the_disk_is_taken_over_if_it_holds_no_records() {
    let disk = formatted(1);
    let directory = LogDirectory::open(disk.clone(), Path::new("/d"), OTHER).unwrap();
    assert!(!directory.has_folder(&place()).unwrap());
    let path = directory.create_partition(&place(), ID).unwrap();
    assert!(directory.has_folder(&place()).unwrap());
    let (mut log, _) = open(&disk, &path, Start::default()).unwrap();
    let metadata = path.join("partition.metadata");
    storage::disk::replace_file(&disk, &metadata, b"version: 0\ntop").unwrap();
    assert_eq!(directory.topic_id_of(&place()).unwrap(), None);
    directory.create_partition(&place(), ID).unwrap();
    assert_eq!(directory.topic_id_of(&place()).unwrap(), Some(ID));

    let role = AppendAs::Leader {
        epoch: LeaderEpoch::new(0),
        origin: Origin::Client,
    };
    log.append(&batch("a"), role, NOW).unwrap();
    storage::disk::replace_file(&disk, &metadata, b"version: 0\ntop").unwrap();
    assert!(directory.topic_id_of(&place()).is_err(), "whose are the records?");
    storage::disk::replace_file(&disk, &metadata, b"").unwrap();
    assert_eq!(directory.topic_id_of(&place()).unwrap(), None, "nobody's so far");
}
