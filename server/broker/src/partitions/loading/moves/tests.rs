//! Moves on a real disk: what is wanted, exchanged, left behind and found again.

use std::time::Duration;

use bytes::Bytes;
use model::record_batch::{BatchBuilder, BatchOptions};
use model::{LeaderEpoch, PartitionIndex, TopicName};
use storage::log_directory::{MetaProperties, format};
use storage::{Disk, LogOptions, Origin, RealDisk, Wait};

use super::*;
use crate::partitions::{Partition, PartitionParts, Placement};

const TOPIC: Uuid = Uuid::from_bytes([1; 16]);
const IDS: [u8; 2] = [9, 10];

fn open(root: &Path) -> LogDirectories {
    let opened = IDS.map(|id| {
        let path = root.join(id.to_string());
        let properties = MetaProperties {
            version: 1,
            cluster_id: Some("c".to_owned()),
            node_id: Some(BrokerId::new(1)),
            directory_id: Some(Uuid::from_bytes([id; 16])),
        };
        // It is there already the second time.
        let _ = format(&RealDisk, &path, &properties);
        LogDirectory::open(LogDisk::new(RealDisk, &path), &path, Uuid::ZERO).unwrap()
    });
    LogDirectories::new(opened.into(), Duration::from_secs(60)).unwrap()
}

fn place() -> TopicPartition {
    TopicPartition {
        topic: TopicName::new("t").unwrap(),
        partition: PartitionIndex::new(0),
    }
}

fn partition(directories: &LogDirectories, placement: Placement) -> Arc<Partition> {
    let (place, now) = (place(), Timestamp::from_millis(1));
    let options = LogOptions::default();
    let log = directories.open(&place.topic, TOPIC, place.partition, placement, options, now);
    Partition::new(PartitionParts {
        topic: place.topic,
        topic_id: TOPIC,
        index: place.partition,
        replica: Replica::lead(log.unwrap(), LeaderEpoch::new(0)).unwrap(),
        in_sync_replicas: 1,
        in_sync_replicas_min: 1,
        flusher: Arc::default(),
    })
}

fn batch() -> Bytes {
    let mut builder = BatchBuilder::new(BatchOptions::default());
    let now = Timestamp::from_millis(1);
    builder.append(now, None, Some(b"v"), &[]).unwrap();
    builder.build().unwrap()
}

fn path(root: &Path, at: usize) -> String {
    root.join(IDS[at].to_string()).to_string_lossy().into_owned()
}

fn folders(root: &Path, at: usize) -> Vec<String> {
    let entries = RealDisk.list(Path::new(&path(root, at))).unwrap().into_iter();
    entries
        .filter(|entry| entry.is_directory)
        .map(|entry| entry.name)
        .collect()
}

fn relocate(directories: &LogDirectories, partition: &Arc<Partition>) -> Result<(), MoveEnd> {
    let moving = directories.next_move().unwrap();
    let disk = directories.target_disk(&moving).unwrap();
    let mut copying = partition.with_replica(|it| Copying::begin(it.log(), disk, moving.future.clone()));
    while copying.step(100).unwrap().behind > 0 {}
    let now = Timestamp::from_millis(1);
    let moved = partition.rehouse(|replica| {
        let log = directories.exchange(&moving, &mut copying, replica, 1 << 20, now)?;
        Ok((log, ()))
    });
    moved.unwrap()
}

#[test]
fn directories_are_known_as_they_are_shown() {
    let temporary = tempfile::tempdir().unwrap();
    let root = temporary.path();
    let directories = open(root).with(vec![root.join("gone")], &root.join("9"));
    assert_eq!(directories.target(&path(root, 1)), Ok(1));
    let unknown = Err(ErrorCode::LogDirNotFound);
    assert_eq!(directories.target(&format!("{}/", path(root, 1))), unknown);
    assert_eq!(directories.target("10"), unknown);
    let offline = Err(ErrorCode::KafkaStorageError);
    assert_eq!(directories.target(&root.join("gone").to_string_lossy()), offline);
    let disk = directories.lock().directories[1].log_directory.disk().clone();
    disk.fail(storage::disk::FailureKind::ReadOnly, "on purpose");
    assert_eq!(directories.target(&path(root, 1)), offline);
    let long = TopicPartition {
        topic: TopicName::new(&"x".repeat(214)).unwrap(),
        partition: PartitionIndex::new(0),
    };
    assert!(LogDirectories::is_name_too_long(&long));
}

#[tokio::test]
async fn a_partition_goes_on_in_the_other_directory() {
    let temporary = tempfile::tempdir().unwrap();
    let (root, now) = (temporary.path(), Timestamp::from_millis(1));
    let directories = open(root);
    let partition = partition(&directories, Placement::Anywhere);
    let (_, committed) = partition.append(&batch(), Origin::Client, now, true).unwrap();
    committed.unwrap().await.unwrap().unwrap();
    assert!(directories.want_move(&place(), TOPIC, 1).unwrap());
    assert!(!directories.want_move(&place(), TOPIC, 1).unwrap(), "asked for already");
    assert_eq!(directories.futures(Path::new(&path(root, 1))).len(), 1);
    relocate(&directories, &partition).unwrap();
    assert!(directories.futures(Path::new(&path(root, 1))).is_empty());
    assert_eq!(partition.log_directory(), Path::new(&path(root, 1)));
    assert_eq!(directories.lies_in(&place()), Some(Uuid::from_bytes([10; 16])));
    let (appended, committed) = partition.append(&batch(), Origin::Client, now, true).unwrap();
    assert_eq!(appended.first_offset, Offset::new(1));
    committed.unwrap().await.unwrap().unwrap();
    let read = |from| partition.read(Offset::new(from), 1 << 20, true, Wait::Allowed);
    assert_eq!(read(0).unwrap().records.len(), 2 * read(1).unwrap().records.len());
    directories.close(std::slice::from_ref(&partition)).unwrap();
    assert_eq!(folders(root, 1), ["t-0"]);
    let [left] = &folders(root, 0)[..] else {
        panic!("what was left behind")
    };
    assert!(left.ends_with("-delete"), "{left}");
}

#[test]
fn what_a_log_has_left_behind_stays_until_the_controller_knows_and_keeps_others_from_making_it_anew() {
    let temporary = tempfile::tempdir().unwrap();
    let root = temporary.path();
    let directories = open(root);
    let running = partition(&directories, Placement::Anywhere);
    directories.want_move(&place(), TOPIC, 1).unwrap();
    relocate(&directories, &running).unwrap();
    drop((running, directories));
    // The node is started again, and the other disk has gone.
    std::fs::rename(path(root, 1), root.join("elsewhere")).unwrap();
    let only = LogDirectory::open(
        LogDisk::new(RealDisk, Path::new(&path(root, 0))),
        Path::new(&path(root, 0)),
        Uuid::ZERO,
    );
    let directories = LogDirectories::new(vec![only.unwrap()], Duration::from_secs(60)).unwrap();
    for placement in [Placement::At(Uuid::from_bytes([9; 16])), Placement::Anywhere] {
        let (place, options) = (place(), LogOptions::default());
        let now = Timestamp::from_millis(1);
        let refused = directories.open(&place.topic, TOPIC, place.partition, placement, options, now);
        assert!(matches!(refused.err(), Some(LogDirectoriesError::MovedAway)));
    }
    let now = Monotonic::from_start(Duration::from_secs(1));
    directories.unlink_due(now.plus(Duration::from_secs(600)));
    assert_eq!(folders(root, 0).len(), 1);
    // The topic is gone: so is what is left of it.
    directories.release_left(&Image::default(), BrokerId::new(1), now);
    directories.unlink_due(now.plus(Duration::from_secs(600)));
    assert!(folders(root, 0).is_empty());
}

#[test]
fn a_move_is_begun_anew_by_the_next_start_and_given_up_for_the_directory_that_it_is_in() {
    let temporary = tempfile::tempdir().unwrap();
    let root = temporary.path();
    let directories = open(root);
    let running = partition(&directories, Placement::Anywhere);
    directories.want_move(&place(), TOPIC, 1).unwrap();
    drop((running, directories));
    let directories = open(root);
    assert!(directories.next_move().is_none());
    let running = partition(&directories, Placement::Anywhere);
    directories.resume_move(&place(), TOPIC).unwrap();
    assert!(directories.next_move().is_some());
    assert_eq!(folders(root, 1).len(), 2, "the copy that was, and the one that will be");
    directories.discard_abandoned();
    assert_eq!(folders(root, 1).len(), 1);
    assert!(directories.want_move(&place(), TOPIC, 0).unwrap());
    assert!(directories.next_move().is_none());
    directories.discard_abandoned();
    assert!(folders(root, 1).is_empty());
    drop((running, directories));
    assert_eq!(folders(root, 0), ["t-0"]);
}

#[test]
fn a_topic_that_goes_takes_its_copy_along() {
    let temporary = tempfile::tempdir().unwrap();
    let root = temporary.path();
    let directories = open(root);
    let running = partition(&directories, Placement::Anywhere);
    directories.want_move(&place(), TOPIC, 1).unwrap();
    running.delete();
    let now = Monotonic::from_start(Duration::from_secs(1));
    directories.delete(&place(), TOPIC, now).unwrap();
    assert!(directories.next_move().is_none());
    directories.discard_abandoned();
    directories.unlink_due(now.plus(Duration::from_secs(600)));
    assert!(folders(root, 0).is_empty() && folders(root, 1).is_empty());
}

#[test]
fn a_partition_that_is_not_there_yet_is_made_where_it_is_wanted() {
    let temporary = tempfile::tempdir().unwrap();
    let directories = open(temporary.path());
    directories.prefer(place(), 0);
    directories.prefer(place(), 1);
    let running = partition(&directories, Placement::Anywhere);
    assert_eq!(running.log_directory(), Path::new(&path(temporary.path(), 1)));
    assert_eq!(directories.lock().moves.take_preference(&place()), None, "once");
}
