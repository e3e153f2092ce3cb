//! Log directories on a real disk.

use storage::log_directory::{MetaProperties, format};

use super::*;

const DELAY: Duration = Duration::from_secs(60);

fn directories(root: &std::path::Path) -> LogDirectories {
    let properties = MetaProperties {
        version: 1,
        cluster_id: Some("c".to_owned()),
        node_id: Some(BrokerId::new(1)),
        directory_id: Some(Uuid::from_bytes([9; 16])),
    };
    format(&RealDisk, root, &properties).unwrap();
    let directory = LogDirectory::open(RealDisk, root, Uuid::from_bytes([8; 16])).unwrap();
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
    let now = Timestamp::from_millis(1_000);

    directories.delete(&place, other, now).unwrap();
    assert_eq!(folders(temporary.path()), ["t-0"]);
    directories.delete(&place, id, now).unwrap();
    let [aside] = &folders(temporary.path())[..] else {
        panic!("one folder")
    };
    assert!(aside.starts_with("t-0.") && aside.ends_with("-delete"), "{aside}");
    directories.unlink_due(Timestamp::from_millis(60_999));
    assert_eq!(folders(temporary.path()).len(), 1);
    directories.unlink_due(Timestamp::from_millis(61_000));
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
        let opened = directories.open(&topic, id, PartitionIndex::new(0), options, Timestamp::default());
        opened.unwrap();
    }
    assert_eq!(directories.lock().directories[0].partitions, 1);
}
