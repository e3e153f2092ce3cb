//! A node of ours on a simulated disk, stopped, taken over, and started again from what was made.

use std::io::IoSlice;

use metadata::image::Image;
use model::record_batch::{BatchBuilder, BatchOptions};
use model::{ControllerEpoch, DirectoryId, LeaderEpoch, PartitionIndex, TopicName, TopicPartition, Uuid};
use protocol::Response;
use protocol::internal_records::group_coordinator::{ConsumerGroupMetadataKey, Key, ShareGroupMetadataKey};
use protocol::messages::broker_heartbeat_request::BrokerHeartbeatRequest;
use protocol::messages::broker_registration_request::BrokerRegistrationRequest;
use storage::disk::{File, OpenMode, read_small_file};
use storage::{AppendAs, LogDirectory, LogOptions, Origin, PartitionLog, SimDisk, Start};

use super::*;
use crate::node::Node;
use crate::node::tests::{at, call, create, directory, formatted, image_of, open, options, register};

const TARGET: &str = "/taken";

struct Stopped {
    disk: SimDisk,
    directory_id: DirectoryId,
    image: Image,
}

/// A node with the topic `first`, a record in it, and groups of other kinds in the offsets topic.
fn stopped() -> Stopped {
    let disk = SimDisk::new(1);
    let directory_id = formatted(&disk);
    let mut node = open(&disk, options(directory_id, 1), at(1)).unwrap();
    let registration = BrokerRegistrationRequest {
        log_dirs: vec![directory_id],
        ..register(1)
    };
    let Response::BrokerRegistration(registered) = call(&mut node, registration, at(2)).unwrap() else {
        panic!("registration")
    };
    let heartbeat = BrokerHeartbeatRequest {
        broker_id: 1,
        broker_epoch: registered.broker_epoch,
        current_metadata_offset: 1 << 40,
        ..BrokerHeartbeatRequest::default()
    };
    call(&mut node, heartbeat, at(3)).unwrap();
    call(&mut node, create("first", 1), at(4)).unwrap();
    call(&mut node, create("__consumer_offsets", 1), at(5)).unwrap();
    let image = image_of(&node);
    node.stop(at(6)).unwrap();
    let mut log_directory = LogDirectory::open(disk.clone(), &directory(), Uuid::from_bytes([3; 16])).unwrap();
    write(
        &mut log_directory,
        &image,
        "first",
        &[(Some(b"k".to_vec()), Some(b"v".to_vec()))],
    );
    let share = Key::from(ShareGroupMetadataKey {
        group_id: "shared".into(),
    })
    .to_bytes()
    .unwrap()
    .to_vec();
    let gone = Key::from(ConsumerGroupMetadataKey {
        group_id: "gone".into(),
    })
    .to_bytes()
    .unwrap()
    .to_vec();
    let groups = [
        (Some(share), Some(vec![0, 0])),
        (Some(gone.clone()), Some(vec![0, 0])),
        (Some(gone), None),
    ];
    write(&mut log_directory, &image, "__consumer_offsets", &groups);
    log_directory.write_recovery_points().unwrap();
    log_directory.write_log_starts().unwrap();
    log_directory.write_high_watermarks().unwrap();
    log_directory.mark_clean(Some(registered.broker_epoch)).unwrap();
    drop(log_directory);
    sync_all(&disk, Path::new(""), Path::new("/"));
    Stopped {
        disk,
        directory_id,
        image,
    }
}

type Pair = (Option<Vec<u8>>, Option<Vec<u8>>);

fn write(log_directory: &mut LogDirectory<SimDisk>, image: &Image, topic: &str, records: &[Pair]) {
    let partition = TopicPartition {
        topic: TopicName::new(topic).unwrap(),
        partition: PartitionIndex::new(0),
    };
    let id = image.topics.by_name(topic).unwrap().id;
    let path = log_directory.create_partition(&partition, id).unwrap();
    let disk = log_directory.disk().clone();
    let (mut log, _) = PartitionLog::open(disk, &path, LogOptions::default(), Start::default(), at(7).wall).unwrap();
    let mut batch = BatchBuilder::new(BatchOptions::default());
    for (key, value) in records {
        batch.append(at(7).wall, key.as_deref(), value.as_deref(), &[]).unwrap();
    }
    let role = AppendAs::Leader {
        epoch: LeaderEpoch::ZERO,
        origin: Origin::Client,
    };
    log.append(&batch.build().unwrap(), role, at(7).wall).unwrap();
    let end = log.close().unwrap();
    log_directory.set_recovery_point(&partition, end);
    log_directory.set_high_watermark(&partition, end);
}

fn sync_all(disk: &SimDisk, above: &Path, path: &Path) {
    disk.sync_directory(above).unwrap();
    disk.sync_directory(path).unwrap();
    for entry in disk.list(path).unwrap_or_default() {
        let below = path.join(entry.name);
        if entry.is_directory {
            sync_all(disk, path, &below);
        } else {
            disk.open(&below, OpenMode::Read).unwrap().sync().unwrap();
        }
    }
}

fn request(direction: Direction) -> Request {
    Request {
        source: directory(),
        metadata_directory: None,
        direction,
    }
}

fn take_over(disk: &SimDisk, direction: Direction) -> Result<Plan, ExchangeError> {
    let exchange = Exchange::examine(disk.clone(), &request(direction))?;
    let plan = exchange.plan().clone();
    let beside = [Beside {
        name: "server.properties",
        text: "node.id=1\n",
    }];
    exchange.carry_out(
        Path::new(TARGET),
        CopyOptions::default(),
        &beside,
        at(10).wall,
        &mut |_| {},
    )?;
    Ok(plan)
}

fn taken() -> PathBuf {
    Path::new(TARGET).join(LOG_FOLDER)
}

/// Starts a node where the source was taken to; returns what it knows.
fn start(disk: &SimDisk, directory_id: DirectoryId) -> Image {
    let mut node = Node::open(disk.clone(), &taken(), options(directory_id, 2), at(20)).unwrap();
    node.settle(at(20)).unwrap();
    image_of(&node)
}

/// Every file below `path` with its bytes.
fn content(disk: &SimDisk, path: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in disk.list(path).unwrap() {
        let path = path.join(&entry.name);
        if entry.is_directory {
            found.extend(content(disk, &path));
        } else {
            found.push((path.clone(), read_small_file(disk, &path, 1 << 30).unwrap()));
        }
    }
    found
}

#[test]
fn a_node_that_is_started_from_a_taken_directory_knows_what_the_old_one_knew() {
    let Stopped {
        disk,
        directory_id,
        image,
    } = stopped();
    let before = content(&disk, &directory());
    let plan = take_over(&disk, Direction::Import).unwrap();
    assert_eq!(content(&disk, &directory()), before, "the source stays as it is");
    assert_eq!(plan.notices, [Notice::ShareGroups(1)]);
    let now = start(&disk, directory_id);
    assert_eq!((&now.topics, &now.configs), (&image.topics, &image.configs));
    assert_eq!(now.features, image.features);
    assert_eq!(now.cluster.brokers, image.cluster.brokers);
    assert!(now.epoch > image.epoch && now.end_offset > image.end_offset);
    let log_directory = LogDirectory::open(disk.clone(), &taken(), Uuid::from_bytes([3; 16])).unwrap();
    assert!(log_directory.was_clean());
    assert_eq!(log_directory.properties().directory_id, Some(directory_id));
    assert_eq!(log_directory.previous_broker_epoch(), Some(13));
    let log = Path::new("first-0/00000000000000000000.log");
    let read = |path: PathBuf| read_small_file(&disk, &path, 1 << 20).unwrap();
    assert_eq!(read(taken().join(log)), read(directory().join(log)));
}

#[test]
fn a_taken_directory_can_be_taken_again() {
    let Stopped {
        disk,
        directory_id,
        image,
    } = stopped();
    take_over(&disk, Direction::Export).unwrap();
    let again = Request {
        source: taken(),
        ..request(Direction::Import)
    };
    let exchange = Exchange::examine(disk.clone(), &again).unwrap();
    let plan = exchange.plan();
    assert_eq!(
        (plan.snapshot.end_offset, plan.snapshot.epoch),
        (image.end_offset, image.epoch)
    );
    assert_eq!(plan.directory_id, directory_id);
    assert_eq!(plan.image.topics, image.topics);
}

#[test]
fn what_cannot_be_taken_over_is_told_before_anything_is_written() {
    let refused = |change: &dyn Fn(&SimDisk)| {
        let Stopped { disk, .. } = stopped();
        change(&disk);
        let error = take_over(&disk, Direction::Import).unwrap_err();
        assert!(disk.list(Path::new(TARGET)).is_err(), "{error}");
        error
    };
    let put = |disk: &SimDisk, name: &str, bytes: &[u8]| {
        let file = disk.open(&directory().join(name), OpenMode::Replace).unwrap();
        file.write_all_at(&[IoSlice::new(bytes)], 0).unwrap();
    };
    let remove = |disk: &SimDisk, name: &str| disk.remove_file(&directory().join(name)).unwrap();
    let error = refused(&|disk| remove(disk, ".kafka_cleanshutdown"));
    assert!(
        matches!(
            error,
            ExchangeError::Refused {
                refusal: Refusal::NotClean,
                ..
            }
        ),
        "{error}"
    );
    let error = refused(&|disk| put(disk, "meta.properties", b"version=1\n"));
    assert!(matches!(error, ExchangeError::Properties(_)), "{error}");
    let error = refused(&|disk| {
        disk.remove_directory(&directory().join("__cluster_metadata-0"))
            .unwrap()
    });
    assert!(matches!(error, ExchangeError::NoMetadataLog(_)), "{error}");
    let log = "__cluster_metadata-0/00000000000000000000.log";
    let error = refused(&|disk| assert!(disk.flip_bit(&directory().join(log), 100, 3)));
    assert!(matches!(error, ExchangeError::Metadata { .. }), "{error}");
    let error = refused(&|disk| put(disk, "recovery-point-offset-checkpoint", b"7\n"));
    assert!(
        matches!(error, ExchangeError::Transfer(TransferError::Checkpoint(_))),
        "{error}"
    );
}

#[test]
fn a_target_within_the_source_is_refused() {
    let Stopped { disk, .. } = stopped();
    let exchange = Exchange::examine(disk, &request(Direction::Export)).unwrap();
    let target = directory().join("x");
    let error = exchange
        .carry_out(&target, CopyOptions::default(), &[], at(10).wall, &mut |_| {})
        .unwrap_err();
    assert!(matches!(error, ExchangeError::Within { .. }), "{error}");
}

#[test]
fn after_a_crash_at_any_call_a_second_attempt_completes() {
    let Stopped { disk, .. } = stopped();
    let first = disk.calls();
    take_over(&disk, Direction::Import).unwrap();
    let (last, whole) = (disk.calls(), content(&disk, Path::new(TARGET)));
    for crash in first + 1..=last {
        let Stopped {
            disk,
            directory_id,
            image,
        } = stopped();
        disk.crash_at_call(crash);
        assert!(
            take_over(&disk, Direction::Import).is_err() || crash == last,
            "call {crash}"
        );
        disk.restart();
        if disk.list(&taken()).is_err() {
            take_over(&disk, Direction::Import).unwrap_or_else(|error| panic!("call {crash}: {error}"));
        }
        assert_eq!(content(&disk, Path::new(TARGET)), whole, "call {crash}");
        if crash % 16 == 0 {
            assert_eq!(start(&disk, directory_id).topics, image.topics, "call {crash}");
        }
    }
}

#[test]
fn an_epoch_that_wrote_nothing_is_not_given_twice() {
    let Stopped { disk, directory_id, .. } = stopped();
    let path = directory().join("__cluster_metadata-0/quorum-state");
    let state = QuorumState {
        epoch: ControllerEpoch::new(9),
        ..QuorumState::default()
    };
    let text = state.render(KRaftVersion::Dynamic, &[]);
    replace_file(&disk, &path, text.as_bytes()).unwrap();
    take_over(&disk, Direction::Import).unwrap();
    assert_eq!(start(&disk, directory_id).epoch, ControllerEpoch::new(10));
}
