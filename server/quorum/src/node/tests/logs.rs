//! What the node writes: the first records of a fresh cluster, restarts, snapshots.

use model::record_batch::{Batches, DecompressionLimit, records};
use storage::disk::{Disk, read_small_file};

use super::*;

/// Offsets and kinds of the log's records, a line a batch.
fn written(disk: &SimDisk) -> String {
    let path = directory().join("__cluster_metadata-0/00000000000000000000.log");
    let bytes = bytes::Bytes::from(read_small_file(disk, &path, 1 << 20).unwrap());
    let mut text = String::new();
    for batch in Batches::new(&bytes) {
        let batch = batch.unwrap();
        batch.check_crc().unwrap();
        let header = batch.header;
        assert_eq!(
            header.base_timestamp, header.max_timestamp,
            "all records of a batch bear one time"
        );
        let kinds = records(&bytes.slice_ref(batch.bytes()), DecompressionLimit::DEFAULT)
            .unwrap()
            .map(|record| {
                let record = record.unwrap();
                let value = record.value.unwrap();
                if header.attributes.is_control() {
                    let control = ControlRecord::from_bytes(record.key.unwrap(), value).unwrap();
                    format!("control {}", control.control_type())
                } else {
                    let (record, version) = MetadataRecord::from_bytes(value).unwrap();
                    format!("{} v{version}", record.name().trim_end_matches("Record"))
                }
            });
        let kinds: Vec<String> = kinds.collect();
        let epoch = header.partition_leader_epoch;
        text.push_str(&format!("{} epoch {epoch}: {}\n", header.base_offset, kinds.join(", ")));
    }
    text
}

#[test]
fn a_fresh_cluster_begins_as_kafkas_does() {
    let disk = SimDisk::new(1);
    let directory_id = formatted(&disk);
    let mut node = open(&disk, options(directory_id, 1), at(1)).unwrap();
    node.tick(at(501)).unwrap();
    join(&mut node, 1, at(600)).unwrap();
    call(&mut node, create("first", 2), at(700)).unwrap();
    let expected = "\
0 epoch 1: control 2, control 5, control 6
3 epoch 1: BeginTransaction v0, FeatureLevel v0, FeatureLevel v0, FeatureLevel v0, FeatureLevel v0, FeatureLevel v0, FeatureLevel v0, Config v0, EndTransaction v0
12 epoch 1: RegisterController v0
13 epoch 1: NoOp v0
14 epoch 1: RegisterBroker v4
15 epoch 1: BrokerRegistrationChange v0
16 epoch 1: Topic v0, Partition v2, Partition v2
";
    assert_eq!(written(&disk), expected);
    let state = read_small_file(&disk, &directory().join("__cluster_metadata-0/quorum-state"), 1 << 10).unwrap();
    let kafkas =
        r#"{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}"#;
    assert_eq!(String::from_utf8(state).unwrap(), kafkas);
}

#[test]
fn a_restart_continues_the_log_in_the_next_epoch() {
    let disk = SimDisk::new(1);
    let directory_id = formatted(&disk);
    let mut node = open(&disk, options(directory_id, 1), at(1)).unwrap();
    join(&mut node, 1, at(2)).unwrap();
    call(&mut node, create("first", 1), at(3)).unwrap();
    let image = node.latest.clone();
    node.stop(at(4)).unwrap();
    let node = open(&disk, options(directory_id, 2), at(5)).unwrap();
    let text = written(&disk);
    let tail: Vec<&str> = text.lines().rev().take(2).collect();
    assert_eq!(tail, ["18 epoch 2: RegisterController v0", "17 epoch 2: control 2"]);
    assert_eq!(node.latest.topics, image.topics);
    assert_eq!(node.latest.configs, image.configs);
}

#[test]
fn a_start_from_a_snapshot_gives_the_same_image_as_one_from_the_log() {
    let disk = SimDisk::new(1);
    let directory_id = formatted(&disk);
    let mut node = open(&disk, options(directory_id, 1), at(1)).unwrap();
    join(&mut node, 1, at(2)).unwrap();
    call(&mut node, create("first", 3), at(3)).unwrap();
    assert!(node.begin_snapshot(at(4)).is_none());
    node.request_snapshot();
    let written = node.begin_snapshot(at(4)).unwrap().run();
    let id = node.snapshot_done(written, at(4)).unwrap();
    assert_eq!(id.end_offset, node.latest.end_offset);
    node.request_snapshot();
    assert!(
        node.begin_snapshot(at(4)).is_none(),
        "nothing is committed beyond the snapshot"
    );
    call(&mut node, create("second", 1), at(5)).unwrap();
    let image = node.latest.clone();
    node.stop(at(6)).unwrap();

    let folder = directory().join("__cluster_metadata-0");
    let contents = crate::snapshot_file::read(&disk, &folder, id).unwrap();
    assert_eq!(contents.quorum.kraft_version, Some(KRaftVersion::Dynamic));
    let node = open(&disk, options(directory_id, 1), at(7)).unwrap();
    assert_eq!(node.latest.topics, image.topics);
    assert_eq!(node.latest.cluster, image.cluster);
    // A snapshot that a crash cut short has no name to be found by.
    let part = folder.join("00000000000000000099-0000000009.checkpoint.part");
    disk.open(&part, storage::disk::OpenMode::Create).unwrap();
    node.stop(at(8)).unwrap();
    open(&disk, options(directory_id, 1), at(9)).unwrap();
    assert!(
        disk.list(&folder)
            .unwrap()
            .iter()
            .all(|entry| !entry.name.ends_with(".part"))
    );
}

#[test]
fn old_log_goes_once_a_newer_snapshot_covers_it() {
    let disk = SimDisk::new(1);
    let directory_id = formatted(&disk);
    let mut small = options(directory_id, 1);
    small.log.segment_size_bytes = 1024;
    small.log.retention_bytes = 8 << 10;
    let mut node = open(&disk, small.clone(), at(1)).unwrap();
    join(&mut node, 1, at(2)).unwrap();
    for round in 0..20 {
        call(&mut node, create(&format!("t{round}"), 5), at(10 + round)).unwrap();
        node.request_snapshot();
        let job = node.begin_snapshot(at(10 + round)).unwrap();
        node.snapshot_done(job.run(), at(10 + round));
        node.log.clean(node.high_watermark, at(10 + round).wall).unwrap();
    }
    let names: Vec<String> = disk
        .list(&directory().join("__cluster_metadata-0"))
        .unwrap()
        .into_iter()
        .map(|e| e.name)
        .collect();
    assert!(!names.contains(&"00000000000000000000.log".to_owned()), "{names:?}");
    assert!(
        names.iter().filter(|name| name.ends_with(".checkpoint")).count() < 20,
        "{names:?}"
    );
    let image = node.latest.clone();
    drop(node);
    disk.restart();
    let node = open(&disk, small, at(100)).unwrap();
    assert_eq!(node.latest.topics, image.topics);
}

#[test]
fn a_folder_that_was_not_formatted_is_refused() {
    let disk = SimDisk::new(1);
    let error = open(&disk, options(Uuid::from_bytes([9; 16]), 1), at(1)).err().unwrap();
    assert!(
        matches!(error, NodeError::Log(MetadataLogError::NotFormatted)),
        "{error:?}"
    );
}

#[test]
fn another_directory_id_is_no_voter() {
    let disk = SimDisk::new(1);
    formatted(&disk);
    let error = open(&disk, options(Uuid::from_bytes([9; 16]), 1), at(1)).err().unwrap();
    assert!(
        matches!(error, NodeError::Raft(raft::StartError::NotAVoter { .. })),
        "{error:?}"
    );
}

#[test]
fn a_formatted_directory_is_not_formatted_again() {
    let disk = SimDisk::new(1);
    formatted(&disk);
    let directories = [directory()];
    let request = FormatRequest {
        cluster_id: CLUSTER_ID,
        node_id: BrokerId::new(1),
        log_directories: &directories,
        metadata_directory: &directories[0],
        controller_endpoints: None,
        now: at(0).wall,
    };
    let error = format(&disk, &request, &mut Seeded(2)).unwrap_err();
    assert!(matches!(error, crate::FormatError::AlreadyFormatted(_)), "{error:?}");
}
