//! Log directories on a real disk.

use model::record_batch::{BatchBuilder, BatchOptions};
use model::{ErrorCode, LeaderEpoch};
use protocol::internal_records::metadata::{MetadataRecord, TopicRecord};
use storage::log_directory::{MetaProperties, format};
use storage::{Origin, RealDisk, Wait};

use super::*;
use crate::partitions::PartitionParts;

const DELAY: Duration = Duration::from_secs(60);

fn directories(root: &std::path::Path) -> LogDirectories {
    let properties = MetaProperties {
        version: 1,
        cluster_id: Some("c".to_owned()),
        node_id: Some(BrokerId::new(1)),
        directory_id: Some(Uuid::from_bytes([9; 16])),
    };
    format(&RealDisk, root, &properties).unwrap();
    let directory = LogDirectory::open(LogDisk::new(RealDisk, root), root, Uuid::from_bytes([8; 16])).unwrap();
    LogDirectories::new(vec![directory], DELAY).unwrap()
}

fn folders(root: &std::path::Path) -> Vec<String> {
    let entries = RealDisk.list(root).unwrap().into_iter();
    entries
        .filter(|entry| entry.is_directory)
        .map(|entry| entry.name)
        .collect()
}

#[test]
fn a_folder_with_the_id_of_another_topic_that_is_there_is_left_alone() {
    let temporary = tempfile::tempdir().unwrap();
    let directories = directories(temporary.path());
    let (mine, other, gone) = (
        Uuid::from_bytes([1; 16]),
        Uuid::from_bytes([2; 16]),
        Uuid::from_bytes([0xf3; 16]),
    );
    let mut replay = metadata::Replay::default();
    for (name, topic_id) in [("t", mine), ("u", other)] {
        let topic = TopicRecord {
            name: name.into(),
            topic_id,
            ..TopicRecord::default()
        };
        replay.record(&MetadataRecord::from(topic)).unwrap();
    }
    let image = replay.take().unwrap().1;
    let place = TopicPartition {
        topic: TopicName::new("t").unwrap(),
        partition: PartitionIndex::new(0),
    };
    let refused = |id: Uuid| {
        let folder = temporary.path().join("t-0");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("partition.metadata"), format!("version: 0\ntopic_id: {id}")).unwrap();
        directories.refuse_foreign(&place, &image)
    };
    assert!(directories.refuse_foreign(&place, &image).is_ok(), "no folder");
    assert!(refused(mine).is_ok());
    assert!(refused(gone).is_ok(), "a topic of this name that was deleted");
    assert!(matches!(refused(other), Err(LogDirectoriesError::Foreign(_))));
    directories.set_strays_aside(&image, BrokerId::new(1)).unwrap();
    assert_eq!(folders(temporary.path()), ["t-0"]);
}

#[test]
fn a_partition_that_was_never_opened_is_deleted_with_its_topic() {
    let temporary = tempfile::tempdir().unwrap();
    let directories = directories(temporary.path());
    let place = TopicPartition {
        topic: TopicName::new("t").unwrap(),
        partition: PartitionIndex::new(0),
    };
    let (id, other) = (Uuid::from_bytes([1; 16]), Uuid::from_bytes([2; 16]));
    directories.lock().directories[0]
        .log_directory
        .create_partition(&place, id)
        .unwrap();
    let at = |millis| Monotonic::from_start(Duration::from_millis(millis));
    let now = at(1_000);

    directories.delete(&place, other, now).unwrap();
    assert_eq!(folders(temporary.path()), ["t-0"]);
    directories.delete(&place, id, now).unwrap();
    let [aside] = &folders(temporary.path())[..] else {
        panic!("one folder")
    };
    assert!(aside.starts_with("t-0.") && aside.ends_with("-delete"), "{aside}");
    directories.unlink_due(at(60_999));
    assert_eq!(folders(temporary.path()).len(), 1);
    directories.unlink_due(at(61_000));
    assert!(folders(temporary.path()).is_empty());
    directories.delete(&place, id, now).unwrap();
}

#[test]
fn opening_again_counts_a_partition_once() {
    let temporary = tempfile::tempdir().unwrap();
    let directories = directories(temporary.path());
    let (topic, id) = (TopicName::new("t").unwrap(), Uuid::from_bytes([1; 16]));
    for _ in 0..2 {
        let options = LogOptions::default();
        let index = PartitionIndex::new(0);
        let opened = directories.open(&topic, id, index, Placement::Anywhere, options, Timestamp::default());
        opened.unwrap();
    }
    assert_eq!(directories.lock().directories[0].partitions, 1);
}

const HERE: [u8; 2] = [9, 10];

/// Two directories, of the ids [`HERE`].
fn two_directories(root: &Path) -> LogDirectories {
    let opened = HERE.map(|id| {
        let path = root.join(id.to_string());
        let properties = MetaProperties {
            version: 1,
            cluster_id: Some("c".to_owned()),
            node_id: Some(BrokerId::new(1)),
            directory_id: Some(Uuid::from_bytes([id; 16])),
        };
        format(&RealDisk, &path, &properties).unwrap();
        LogDirectory::open(LogDisk::new(RealDisk, &path), &path, Uuid::from_bytes([8; 16])).unwrap()
    });
    LogDirectories::new(opened.into(), DELAY)
        .unwrap()
        .with(Vec::new(), &root.join(HERE[0].to_string()))
}

fn open(directories: &LogDirectories, index: i32, placement: Placement) -> Result<PathBuf, LogDirectoriesError> {
    let (topic, id) = (TopicName::new("t").unwrap(), Uuid::from_bytes([1; 16]));
    let (index, options) = (PartitionIndex::new(index), LogOptions::default());
    let log = directories.open(&topic, id, index, placement, options, Timestamp::default())?;
    Ok(log.directory().to_owned())
}

#[test]
fn a_failed_directory_is_told_of_once_and_nothing_is_looked_for_or_made_there() {
    let temporary = tempfile::tempdir().unwrap();
    let root = temporary.path();
    let directories = two_directories(root);
    let [first, second] = HERE.map(|id| root.join(id.to_string()));
    let ids = HERE.map(|id| Uuid::from_bytes([id; 16]));
    assert_eq!(open(&directories, 0, Placement::Anywhere).unwrap(), first.join("t-0"));
    assert_eq!(open(&directories, 1, Placement::Anywhere).unwrap(), second.join("t-1"));
    assert_eq!(
        open(&directories, 2, Placement::At(ids[1])).unwrap(),
        second.join("t-2")
    );
    assert_eq!(directories.figures().offline, 0);

    let disk = directories.lock().directories[1].log_directory.disk().clone();
    disk.fail(FailureKind::Dead, "on purpose");
    let failed: Vec<_> = directories.take_failures();
    let [failed] = &failed[..] else {
        panic!("one has failed")
    };
    assert!(failed.path == second && !failed.holds_metadata);
    assert!(directories.take_failures().is_empty());
    assert_eq!(directories.offline_ids(), [ids[1]]);
    assert_eq!(directories.figures().offline, 1);
    assert!(directories.has_writable());

    // What is there already is not made anew elsewhere.
    for placement in [Placement::At(ids[1]), Placement::WhereItWas] {
        let refused = open(&directories, 1, placement);
        assert!(matches!(refused, Err(LogDirectoriesError::Offline)), "{placement:?}");
    }
    for index in 3..6 {
        let path = open(&directories, index, Placement::Anywhere).unwrap();
        assert_eq!(path, first.join(format!("t-{index}")));
    }
    assert_eq!(open(&directories, 0, Placement::WhereItWas).unwrap(), first.join("t-0"));
    directories.write_checkpoints(&[]).unwrap();
    directories.mark_clean(5).unwrap();
    let clean = storage::log_directory::CLEAN_SHUTDOWN_FILE;
    assert!(first.join(clean).exists() && !second.join(clean).exists());

    directories.lock().directories[0]
        .log_directory
        .disk()
        .fail(FailureKind::Dead, "on purpose");
    assert!(directories.take_failures()[0].holds_metadata && !directories.has_writable());
}

#[test]
fn what_was_in_a_directory_that_is_missing_at_the_start_is_not_made_anew() {
    let temporary = tempfile::tempdir().unwrap();
    let root = temporary.path();
    let directories = two_directories(root).with(vec![root.join("missing")], &root.join(HERE[0].to_string()));
    assert!(matches!(
        open(&directories, 0, Placement::WhereItWas),
        Err(LogDirectoriesError::Offline)
    ));
    assert!(matches!(
        open(&directories, 0, Placement::At(Uuid::from_bytes([77; 16]))),
        Err(LogDirectoriesError::Offline)
    ));
    open(&directories, 0, Placement::Anywhere).unwrap();
    assert_eq!(directories.figures().offline, 1);
    let states = directories.states();
    let offline: Vec<bool> = states.iter().map(|state| state.is_offline).collect();
    assert_eq!(offline, [false, false, true]);
}

#[tokio::test]
async fn a_partition_in_a_read_only_directory_is_read_and_one_in_a_dead_one_is_not() {
    let temporary = tempfile::tempdir().unwrap();
    let directories = directories(temporary.path());
    let (topic, topic_id, index) = (
        TopicName::new("t").unwrap(),
        Uuid::from_bytes([1; 16]),
        PartitionIndex::new(0),
    );
    let (options, now) = (LogOptions::default(), Timestamp::from_millis(1));
    let log = directories
        .open(&topic, topic_id, index, Placement::Anywhere, options, now)
        .unwrap();
    let disk = log.disk().clone();
    let partition = Partition::new(PartitionParts {
        topic,
        topic_id,
        index,
        replica: replication::Replica::lead(log, LeaderEpoch::new(0)).unwrap(),
        in_sync_replicas: 1,
        in_sync_replicas_min: 1,
        flusher: Arc::default(),
    });
    let batch = || {
        let mut builder = BatchBuilder::new(BatchOptions::default());
        builder.append(now, None, Some(b"v"), &[]).unwrap();
        builder.build().unwrap()
    };
    let append = || {
        let appended = partition.append(&batch(), Origin::Client, now, true);
        appended.map(|(_, committed)| committed).map_err(|refusal| refusal.code)
    };
    let read = || {
        let read = partition.read(Offset::ZERO, 1 << 20, true, Wait::Allowed);
        read.map(|slice| slice.records.len()).map_err(|refusal| refusal.code)
    };
    append().unwrap().unwrap().await.unwrap().unwrap();
    let size = read().unwrap();
    assert!(size > 0);
    // Not synced yet: whoever waits for it is told that it was in vain.
    disk.fail(FailureKind::ReadOnly, "on purpose");
    assert_eq!(append().err(), Some(ErrorCode::KafkaStorageError));
    partition.directory_failed();
    assert_eq!(read(), Ok(size));
    assert!(!partition.is_offline() && !partition.is_writable() && !partition.has_uncommitted());
    partition.close().unwrap();
    disk.fail(FailureKind::Dead, "on purpose");
    assert_eq!(read(), Err(ErrorCode::KafkaStorageError));
}
