//! The cleaner over real logs, without its threads.

use std::collections::BTreeMap;
use std::path::Path;

use metadata::config_keys::{BrokerSettings, ServerProperties, Setting};
use model::record_batch::{BatchBuilder, BatchOptions};
use model::{BrokerId, LeaderEpoch, Uuid};
use protocol::{Request, Text};
use storage::log_directory::{MetaProperties, format};
use storage::{LogDirectory, Origin, RealDisk};

use super::*;
use crate::controller_client::{ControllerChannel, ControllerClient, ControllerError, ControllerFuture};
use crate::node::BrokerParts;
use crate::partitions::{LogDirectories, PartitionParts, Placement};
use crate::settings::log_options;

const DIRECTORY_ID: Uuid = Uuid::from_bytes([9; 16]);

struct NoController;

impl ControllerChannel for NoController {
    fn call(&self, _: Request, _: i16) -> ControllerFuture {
        Box::pin(std::future::ready(Err(ControllerError::NotActive)))
    }

    fn committed_end(&self) -> Option<Offset> {
        None
    }
}

fn broker(root: &Path) -> Arc<Broker> {
    let properties = MetaProperties {
        version: 1,
        cluster_id: Some("c".to_owned()),
        node_id: BrokerId::from_wire(1),
        directory_id: Some(DIRECTORY_ID),
    };
    format(&RealDisk, root, &properties).unwrap();
    let directory = LogDirectory::open(LogDisk::new(RealDisk, root), root, DIRECTORY_ID).unwrap();
    let setting = Setting {
        name: "log.dirs".to_owned(),
        value: root.to_str().unwrap().to_owned(),
    };
    let configs = ServerProperties::single_node().with_settings([setting]);
    let configs = configs.load().unwrap().configs;
    Broker::new(BrokerParts {
        cluster_id: "c".to_owned(),
        clock: crate::Clock::start(),
        settings: BrokerSettings::resolve(&configs).unwrap(),
        static_configs: configs.static_values,
        controller: ControllerClient::new(Arc::new(NoController)),
        directories: Arc::new(LogDirectories::new(vec![directory], Duration::ZERO).unwrap()),
    })
}

/// A compacted partition whose sealed segment has `keys` keys, `rounds` times each.
fn partition(broker: &Arc<Broker>, topic: &str, keys: u32, rounds: u32) -> Arc<Partition> {
    let (topic, topic_id) = (
        TopicName::new(topic).unwrap(),
        Uuid::from_bytes([topic.as_bytes()[0]; 16]),
    );
    let overrides = BTreeMap::from([(Text::from("cleanup.policy"), Text::from("compact"))]);
    let options = log_options(&broker.topic_settings(&overrides), &broker.settings(), 0.0);
    let (index, now) = (PartitionIndex::new(0), broker.clock().now());
    let mut log = broker
        .directories()
        .open(&topic, topic_id, index, Placement::Anywhere, options, now)
        .unwrap();
    let role = storage::AppendAs::Leader {
        epoch: LeaderEpoch::new(0),
        origin: Origin::Client,
    };
    for round in 0..rounds {
        let mut builder = BatchBuilder::new(BatchOptions::default());
        for key in 0..keys {
            let (key, value) = (key.to_be_bytes(), round.to_be_bytes());
            builder.append(now, Some(&key), Some(&value), &[]).unwrap();
        }
        log.append(&builder.build().unwrap(), role, now).unwrap();
    }
    log.roll(now).unwrap();
    let partition = Partition::new(PartitionParts {
        topic,
        topic_id,
        index,
        replica: replication::Replica::lead(log, LeaderEpoch::new(0)).unwrap(),
        in_sync_replicas: 1,
        in_sync_replicas_min: 1,
        flusher: broker.flusher().clone(),
    });
    broker.partitions().add(partition.clone());
    partition
}

/// Damages the first batch of the topic `bad`.
fn spoil(root: &Path) {
    let log = root.join("bad-0/00000000000000000000.log");
    let mut bytes = std::fs::read(&log).unwrap();
    bytes[70] ^= 1;
    std::fs::write(&log, bytes).unwrap();
}

fn size(partition: &Arc<Partition>) -> u64 {
    partition.with_replica(|replica| replica.log().size_bytes())
}

/// What a thread does once; the topic that it chose.
fn turn(broker: &Arc<Broker>) -> Option<String> {
    let job = broker.cleaner().take(broker)?;
    clean(broker, &job);
    broker.cleaner().give_back(&job.partition);
    Some(job.partition.topic().to_string())
}

#[test]
fn what_is_dirty_is_cleaned_once_and_recorded() {
    let temporary = tempfile::tempdir().unwrap();
    let broker = broker(temporary.path());
    let partition = partition(&broker, "a", 10, 8);
    let before = size(&partition);
    assert_eq!(turn(&broker).as_deref(), Some("a"));
    assert!(size(&partition) * 4 < before, "{before}");
    assert_eq!(turn(&broker), None);
    let text = std::fs::read_to_string(temporary.path().join("cleaner-offset-checkpoint")).unwrap();
    assert_eq!(text, "0\n1\na 0 80\n");
    let figures = broker.cleaner_figures();
    assert_eq!((figures.rounds, figures.records_removed, figures.cleaning), (1, 70, 0));
}

#[test]
fn a_log_that_cannot_be_cleaned_is_left_alone_and_others_are_not() {
    let temporary = tempfile::tempdir().unwrap();
    let broker = broker(temporary.path());
    let (bad, good) = (partition(&broker, "bad", 10, 8), partition(&broker, "good", 10, 2));
    let before = (size(&bad), size(&good));
    spoil(temporary.path());
    let mut turns: Vec<String> = std::iter::from_fn(|| turn(&broker)).take(5).collect();
    turns.sort();
    assert_eq!(turns, ["bad", "good"]);
    assert_eq!(size(&bad), before.0);
    assert!(size(&good) < before.1);
    let figures = broker.cleaner_figures();
    assert_eq!((figures.failures, figures.uncleanable, figures.rounds), (1, 1, 1));
}

#[test]
fn two_threads_do_not_take_the_same_partition() {
    let temporary = tempfile::tempdir().unwrap();
    let broker = broker(temporary.path());
    partition(&broker, "a", 10, 8);
    let job = broker.cleaner().take(&broker).unwrap();
    assert!(broker.cleaner().take(&broker).is_none());
    broker.cleaner().give_back(&job.partition);
    assert!(broker.cleaner().take(&broker).is_some());
}

#[test]
fn nothing_is_kept_of_a_topic_that_is_gone() {
    let temporary = tempfile::tempdir().unwrap();
    let broker = broker(temporary.path());
    let bad = partition(&broker, "bad", 10, 8);
    spoil(temporary.path());
    assert_eq!(turn(&broker).as_deref(), Some("bad"));
    assert_eq!(broker.cleaner_figures().uncleanable, 1);
    broker.partitions().remove_topic(bad.topic_id());
    bad.delete();
    let figures = broker.cleaner_figures();
    assert_eq!((figures.failures, figures.uncleanable), (1, 0));
}

#[test]
fn progress_says_how_much_is_dirty_and_what_the_last_round_did() {
    let temporary = tempfile::tempdir().unwrap();
    let broker = broker(temporary.path());
    let partition = partition(&broker, "a", 10, 8);
    let size = size(&partition);
    let progress = || broker.compaction(partition.topic()).remove(&partition.index()).unwrap();
    let before = progress();
    let backlog = before.backlog.unwrap();
    assert_eq!((before.state, before.last_round), (CompactionState::Due, None));
    assert_eq!((backlog.first_dirty, backlog.end), (Offset::ZERO, Offset::new(80)));
    assert_eq!((backlog.cleanable_bytes, backlog.clean_bytes), (size, 0));
    let job = broker.cleaner().take(&broker).unwrap();
    assert_eq!(progress().state, CompactionState::Cleaning);
    clean(&broker, &job);
    broker.cleaner().give_back(&job.partition);
    let after = progress();
    let (backlog, round) = (after.backlog.unwrap(), after.last_round.unwrap());
    assert_eq!(after.state, CompactionState::Idle);
    assert_eq!((backlog.first_dirty, backlog.cleanable_bytes), (Offset::new(80), 0));
    assert_eq!((round.bytes_before, round.records_removed), (size, 70));
    assert_eq!(round.bytes_after, backlog.clean_bytes);
}

#[test]
fn progress_says_why_a_log_cannot_be_cleaned_and_is_silent_of_what_is_not_compacted() {
    let temporary = tempfile::tempdir().unwrap();
    let broker = broker(temporary.path());
    let bad = partition(&broker, "bad", 10, 8);
    spoil(temporary.path());
    turn(&broker);
    let progress = broker.compaction(bad.topic()).remove(&bad.index()).unwrap();
    let CompactionState::Uncleanable(reason) = progress.state else {
        panic!("{:?}", progress.state)
    };
    assert!(reason.contains("the batch at offset 0 is damaged"), "{reason}");
    bad.delete();
    let progress = broker.compaction(bad.topic()).remove(&bad.index()).unwrap();
    assert_eq!(progress.backlog, None);
    let plain = partition(&broker, "plain", 10, 8);
    let options = log_options(&broker.topic_settings(&BTreeMap::new()), &broker.settings(), 0.0);
    plain.reconfigure(options);
    assert!(broker.compaction(plain.topic()).is_empty());
    assert!(broker.compaction(&TopicName::new("unknown").unwrap()).is_empty());
}

#[test]
fn threads_end_when_they_are_told_to() {
    let temporary = tempfile::tempdir().unwrap();
    let broker = broker(temporary.path());
    partition(&broker, "a", 10, 8);
    start(&broker);
    broker.cleaner().stop();
    assert_eq!(broker.cleaner_figures().cleaning, 0);
    assert!(broker.cleaner().take(&broker).is_none(), "nothing begins after the end");
}
