//! A log directory on the simulated disk, for the tests of what looks at it.

use std::io::IoSlice;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use model::record_batch::{BatchBuilder, BatchHeader, BatchOptions, BatchProducer, Batches};
use model::{
    BrokerId, LeaderEpoch, Offset, PartitionIndex, ProducerEpoch, ProducerId, Sequence, Timestamp, TopicName,
    TopicPartition, Uuid,
};

use super::{Finding, Watcher};
use crate::disk::{Disk, File, OpenMode, SimDisk, read_small_file};
use crate::file_names::LEADER_EPOCH_CHECKSUM;
use crate::log_directory::{LogDirectory, MetaProperties, format};
use crate::{AppendAs, LogOptions, Origin, PartitionLog, Start};

pub(super) const DIRECTORY: &str = "/d";
pub(super) const PARTITION: &str = "/d/first-0";
/// The names of the segments: of four batches each, but the last.
pub(super) const FIRST: &str = "00000000000000000000";
pub(super) const SECOND: &str = "00000000000000000012";
pub(super) const LAST: &str = "00000000000000000024";
/// Of eleven batches of three records.
pub(super) const END: i64 = 33;
pub(super) const INTERVAL_BYTES: u32 = 100;

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);
const ID: Uuid = Uuid::from_bytes([7; 16]);

/// What was found, in the order in which it was.
#[derive(Default)]
pub(super) struct Notes {
    pub(super) findings: Vec<Finding>,
    pub(super) bytes: u64,
}

impl Watcher for Notes {
    fn found(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    fn read(&mut self, bytes: u64) {
        self.bytes += bytes;
    }
}

pub(super) fn partition() -> TopicPartition {
    TopicPartition {
        topic: TopicName::new("first").unwrap(),
        partition: PartitionIndex::from_wire(0).unwrap(),
    }
}

pub(super) fn options() -> LogOptions {
    LogOptions {
        segment_size_bytes: 500,
        index_interval_bytes: INTERVAL_BYTES,
        ..LogOptions::default()
    }
}

fn batch(number: i32) -> Bytes {
    let producer = BatchProducer {
        id: ProducerId::from_wire(9).unwrap(),
        epoch: ProducerEpoch::ZERO,
        base_sequence: Sequence::from_wire(3 * number),
    };
    let mut builder = BatchBuilder::new(BatchOptions {
        producer: Some(producer),
        ..BatchOptions::default()
    });
    for record in 0..3 {
        let time = Timestamp::from_millis(NOW.millis() + i64::from(10 * number + record));
        builder.append(time, Some(b"k"), Some(b"0123456789"), &[]).unwrap();
    }
    builder.build().unwrap()
}

/// A directory that was closed in good order: one partition of three segments.
pub(super) fn directory() -> SimDisk {
    let disk = SimDisk::new(1);
    let properties = MetaProperties {
        version: 1,
        cluster_id: Some("c".to_owned()),
        node_id: BrokerId::from_wire(1),
        directory_id: Some(ID),
    };
    format(&disk, Path::new(DIRECTORY), &properties).unwrap();
    let mut directory = LogDirectory::open(disk.clone(), Path::new(DIRECTORY), ID).unwrap();
    let path = directory.create_partition(&partition(), ID).unwrap();
    let mut log = open(&disk, &path, Start::default());
    for number in 0..11 {
        // The second segment begins with the second epoch.
        let epoch = LeaderEpoch::new(if number < 4 { 3 } else { 5 });
        let role = AppendAs::Leader {
            epoch,
            origin: Origin::Client,
        };
        log.append(&batch(number), role, NOW).unwrap();
    }
    let end = log.close().unwrap();
    assert_eq!(end.get(), END);
    // Which is left to the operating system, and would not survive a crash now.
    let checksum = disk.open(&path.join(LEADER_EPOCH_CHECKSUM), OpenMode::Read).unwrap();
    checksum.sync().unwrap();
    directory.set_recovery_point(&partition(), end);
    directory.set_high_watermark(&partition(), end);
    directory.write_recovery_points().unwrap();
    directory.write_log_starts().unwrap();
    directory.write_high_watermarks().unwrap();
    directory.mark_clean(None).unwrap();
    disk
}

pub(super) fn open(disk: &SimDisk, path: &Path, start: Start) -> PartitionLog<SimDisk> {
    PartitionLog::open(disk.clone(), path, options(), start, NOW).unwrap().0
}

/// As a crash leaves it: nothing says that the end was in good order.
pub(super) fn forget_the_end(disk: &SimDisk) {
    disk.remove_file(&Path::new(DIRECTORY).join(".kafka_cleanshutdown"))
        .unwrap();
    disk.remove_file(&Path::new(DIRECTORY).join("recovery-point-offset-checkpoint"))
        .unwrap();
}

pub(super) fn at(name: &str) -> PathBuf {
    Path::new(PARTITION).join(name)
}

pub(super) fn content(disk: &SimDisk, path: &Path) -> Vec<u8> {
    read_small_file(disk, path, 1 << 30).unwrap()
}

pub(super) fn put(disk: &SimDisk, path: &Path, bytes: &[u8]) {
    let file = disk.open(path, OpenMode::Replace).unwrap();
    file.write_all_at(&[IoSlice::new(bytes)], 0).unwrap();
    file.sync().unwrap();
}

/// Changes a file of the partition.
pub(super) fn change(disk: &SimDisk, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = content(disk, &at(name));
    change(&mut bytes);
    put(disk, &at(name), &bytes);
}

/// Where the batches of a segment begin.
pub(super) fn batches(disk: &SimDisk, segment: &str) -> Vec<(usize, BatchHeader)> {
    let bytes = content(disk, &at(&format!("{segment}.log")));
    let mut position = 0;
    Batches::new(&bytes)
        .map(|batch| {
            let header = batch.unwrap().header;
            let start = position;
            position += header.size_bytes();
            (start, header)
        })
        .collect()
}

pub(super) fn offset(offset: i64) -> Offset {
    Offset::new(offset)
}
