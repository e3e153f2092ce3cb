//! Random operations with power lost at a random call of the disk, again and again on the same disk.

use storage::disk::{File, OpenMode};

use super::*;

/// Runs of one seed each.
const SEEDS: u64 = 120;
/// How often the power is lost in a run.
const CRASHES: usize = 6;
const OPERATIONS_MAX: u64 = 40;

/// What was acknowledged: topics with their ids and partition counts, and the producer ids given out.
#[derive(Default)]
struct Acknowledged {
    topics: BTreeMap<String, (Uuid, usize)>,
    /// A deletion or growth that was not acknowledged may have happened all the same.
    unsure: BTreeMap<String, (Option<usize>, bool)>,
    next_producer_id: i64,
    epoch: i32,
}

fn operate(
    node: &mut Node<SimDisk>,
    random: &mut Seeded,
    known: &mut Acknowledged,
    broker_epoch: i64,
    now: Moment,
) -> Result<(), NodeError> {
    let name = format!("t{}", random.below(8));
    match random.below(6) {
        0 | 1 if !known.topics.contains_key(&name) => {
            let partitions = 1 + random.below(3);
            let response = call(node, create(&name, partitions as i32), now)?;
            let Response::CreateTopics(response) = response else {
                panic!("creation")
            };
            if response.topics[0].error_code == 0 {
                known
                    .topics
                    .insert(name.clone(), (response.topics[0].topic_id, partitions));
                known.unsure.remove(&name);
            }
        }
        2 if known.topics.contains_key(&name) => {
            known.unsure.entry(name.clone()).or_default().1 = true;
            let topic = DeleteTopicState {
                name: Some(name.as_str().into()),
                ..DeleteTopicState::default()
            };
            let request = DeleteTopicsRequest {
                topics: vec![topic],
                ..DeleteTopicsRequest::default()
            };
            let Response::DeleteTopics(response) = call(node, request, now)? else {
                panic!("deletion")
            };
            assert_eq!(response.responses[0].error_code, 0);
            known.topics.remove(&name);
            known.unsure.remove(&name);
        }
        3 if known.topics.contains_key(&name) => {
            let count = known.topics[&name].1 + 1;
            known.unsure.entry(name.clone()).or_default().0 = Some(count);
            let topic = CreatePartitionsTopic {
                name: name.as_str().into(),
                count: count as i32,
                assignments: None,
                ..CreatePartitionsTopic::default()
            };
            let request = CreatePartitionsRequest {
                topics: vec![topic],
                ..CreatePartitionsRequest::default()
            };
            let Response::CreatePartitions(response) = call(node, request, now)? else {
                panic!("growth")
            };
            assert_eq!(response.results[0].error_code, 0);
            known.topics.get_mut(&name).unwrap().1 = count;
            known.unsure.remove(&name);
        }
        4 => {
            let request = AllocateProducerIdsRequest {
                broker_id: 1,
                broker_epoch,
                ..AllocateProducerIdsRequest::default()
            };
            let Response::AllocateProducerIds(response) = call(node, request, now)? else {
                panic!("allocation")
            };
            assert!(
                response.producer_id_start >= known.next_producer_id,
                "producer ids were given out twice"
            );
            known.next_producer_id = response.producer_id_start + i64::from(response.producer_id_len);
        }
        5 => {
            node.request_snapshot();
            if let Some(job) = node.begin_snapshot(now) {
                let done = job.run();
                node.snapshot_done(done, now);
            }
            node.log.clean(node.high_watermark, now.wall)?;
        }
        _ => node.tick(now).and_then(|()| node.settle(now))?,
    }
    Ok(())
}

fn check(node: &Node<SimDisk>, known: &mut Acknowledged, seed: u64) {
    let epoch = node.raft.epoch().get();
    assert!(epoch > known.epoch, "seed {seed}: epoch {epoch} after {}", known.epoch);
    known.epoch = epoch;
    let image = &node.latest;
    let unsure = std::mem::take(&mut known.unsure);
    for (name, (id, partitions)) in known.topics.clone() {
        let (grown, deleted) = unsure.get(&name).copied().unwrap_or_default();
        let Some(topic) = image.topics.by_name(&name) else {
            assert!(deleted, "seed {seed}: topic {name} is gone");
            known.topics.remove(&name);
            continue;
        };
        assert_eq!(topic.id, id, "seed {seed}: topic {name} is another one");
        let found = topic.partitions.len();
        assert!(
            found == partitions || Some(found) == grown,
            "seed {seed}: {name} has {found} of {partitions} partitions"
        );
        known.topics.insert(name, (id, found));
    }
    for topic in image.topics.iter() {
        // Creations that were not acknowledged may have happened.
        let entry = (topic.id, topic.partitions.len());
        known.topics.insert(topic.name.to_string(), entry);
    }
    assert!(
        image.next_producer_id.unwrap_or(0) >= known.next_producer_id,
        "seed {seed}: producer ids went back"
    );
}

/// Returns how often the power was lost.
fn run(seed: u64) -> usize {
    let disk = SimDisk::new(seed);
    disk.reorder_on_crash(seed % 2 == 1);
    let directory_id = formatted(&disk);
    let mut random = Seeded(seed);
    let mut known = Acknowledged::default();
    let mut options = options(directory_id, 0);
    // Small enough for segments to roll and for old log to go.
    options.log.segment_size_bytes = 2048;
    options.log.retention_bytes = 4096;
    let mut millis = 0;
    let mut crashes = 0;
    for crash in 0..CRASHES {
        disk.crash_at_call(disk.calls() + 1 + random.next_u64() % 200);
        options.incarnation_id = Uuid::from_bytes([crash as u8 + 1; 16]);
        let mut live = |random: &mut Seeded, known: &mut Acknowledged| -> Result<(), NodeError> {
            millis += 1;
            let mut node = open(&disk, options.clone(), at(millis))?;
            check(&node, known, seed);
            let broker_epoch = join(&mut node, crash as u8 + 1, at(millis))?;
            for _ in 0..random.next_u64() % OPERATIONS_MAX {
                millis += 100;
                operate(&mut node, random, known, broker_epoch, at(millis))?;
            }
            node.stop(at(millis))
        };
        let ended = live(&mut random, &mut known);
        assert!(ended.is_ok() || disk.has_crashed(), "seed {seed}: {ended:?}");
        crashes += usize::from(disk.has_crashed());
        disk.restart();
    }
    let mut node = open(&disk, options, at(millis + 1)).unwrap_or_else(|error| panic!("seed {seed}: {error:?}"));
    check(&node, &mut known, seed);
    // Still of use.
    join(&mut node, 200, at(millis + 2)).unwrap();
    call(&mut node, create("after", 1), at(millis + 3)).unwrap();
    assert!(node.latest.topics.partition("after", PartitionIndex::new(0)).is_some());
    crashes
}

#[test]
fn what_was_acknowledged_survives_power_loss_at_any_call_of_the_disk() {
    let crashes: usize = (0..SEEDS).map(run).sum();
    // Otherwise nothing was shown.
    assert!(crashes > CRASHES * SEEDS as usize / 2, "{crashes} crashes");
}

#[test]
fn an_operation_whose_sync_fails_is_not_answered_and_stops_the_node() {
    let disk = SimDisk::new(1);
    let directory_id = formatted(&disk);
    let mut node = open(&disk, options(directory_id, 1), at(1)).unwrap();
    join(&mut node, 1, at(2)).unwrap();
    let request = Request::from(create("t", 1));
    let called = node.call(&request, 7, at(3), &mut Seeded(1)).unwrap().unwrap();
    assert!(called.after > node.high_watermark());
    let handle = node.begin_sync().unwrap();
    disk.crash_at_call(disk.calls() + 1);
    let done = handle.run();
    assert!(node.synced(done, at(3)).is_err());
    assert!(called.after > node.high_watermark());
}

#[test]
fn a_full_disk_refuses_the_operation_and_the_node_goes_on() {
    let disk = SimDisk::new(1);
    let directory_id = formatted(&disk);
    let mut node = open(&disk, options(directory_id, 1), at(1)).unwrap();
    join(&mut node, 1, at(2)).unwrap();
    let end = node.latest.end_offset;
    disk.inject(storage::disk::Fault {
        operation: storage::disk::Operation::Write,
        skip: 0,
        error: std::io::ErrorKind::StorageFull,
        lasting: false,
    });
    let request = Request::from(create("t", 1));
    let refusal = node.call(&request, 7, at(3), &mut Seeded(1)).unwrap().unwrap_err();
    assert_eq!(refusal.code, ErrorCode::KafkaStorageError);
    disk.clear_faults();
    call(&mut node, create("t", 1), at(4)).unwrap();
    assert_eq!(node.latest.end_offset, end.plus(2));
    assert!(
        node.latest
            .topics
            .by_name(TopicName::new("t").unwrap().as_str())
            .is_some()
    );
}

#[test]
fn a_full_disk_takes_no_new_topics_but_lets_others_be_deleted() {
    let sim = SimDisk::new(1);
    let directory_id = formatted(&sim);
    sim.set_capacity(Some(1 << 20));
    let disk = storage::GuardedDisk::new(sim, &directory());
    disk.set_reserve(16 << 10).unwrap();
    let mut node = Node::open(disk.clone(), &directory(), options(directory_id, 1), at(1)).unwrap();
    node.settle(at(1)).unwrap();
    join(&mut node, 1, at(2)).unwrap();
    call(&mut node, create("t", 1), at(3)).unwrap();
    let stuffing = disk.open(&directory().join("stuffing"), OpenMode::Create).unwrap();
    let room = disk.room(&directory()).unwrap().available_bytes;
    stuffing.allocate(room - 10).unwrap();
    // The first that meets the full disk is lucky; from then on what is left is for others.
    call(&mut node, create("u", 1), at(4)).unwrap();
    let refusal = node
        .call(&Request::from(create("v", 1)), 7, at(5), &mut Seeded(1))
        .unwrap()
        .unwrap_err();
    assert_eq!(refusal.code, ErrorCode::KafkaStorageError);
    let gone = DeleteTopicsRequest {
        topics: vec![DeleteTopicState {
            name: Some("t".into()),
            ..DeleteTopicState::default()
        }],
        ..DeleteTopicsRequest::default()
    };
    call(&mut node, gone, at(6)).unwrap();
    assert!(node.latest.topics.by_name("t").is_none() && node.latest.topics.by_name("u").is_some());
    stuffing.truncate(0).unwrap();
    call(&mut node, create("v", 1), at(7)).unwrap();
}

#[test]
fn decisions_behind_a_sync_are_one_batch_and_are_taken_back_if_it_cannot_be_written() {
    let disk = SimDisk::new(1);
    let directory_id = formatted(&disk);
    let mut node = open(&disk, options(directory_id, 1), at(1)).unwrap();
    join(&mut node, 1, at(2)).unwrap();
    let decide = |node: &mut Node<SimDisk>, name: &str| {
        let request = Request::from(create(name, 1));
        node.call(&request, 7, at(3), &mut Seeded(1 + name.len() as u64))
            .unwrap()
            .unwrap()
            .after
    };
    let first = decide(&mut node, "a");
    let second = decide(&mut node, "bb");
    let third = decide(&mut node, "ccc");
    assert_eq!((second, third), (first.plus(2), first.plus(4)));
    assert_eq!(node.log.log_end_offset(), first);
    disk.inject(storage::disk::Fault {
        operation: storage::disk::Operation::Write,
        skip: 0,
        error: std::io::ErrorKind::StorageFull,
        lasting: false,
    });
    let handle = node.begin_sync().unwrap();
    node.synced(handle.run(), at(4)).unwrap();
    assert_eq!(node.take_refused_after(), Some(first));
    assert_eq!(node.high_watermark(), first);
    let names = |node: &Node<SimDisk>| -> Vec<String> {
        node.latest.topics.iter().map(|topic| topic.name.to_string()).collect()
    };
    assert_eq!(names(&node), ["a"]);
    disk.clear_faults();
    let (one, two) = (decide(&mut node, "bb"), decide(&mut node, "ccc"));
    assert_eq!((one, two), (second, third));
    node.settle(at(5)).unwrap();
    assert_eq!(names(&node), ["a", "bb", "ccc"]);
    drop(node);
    disk.restart();
    let node = open(&disk, options(directory_id, 2), at(6)).unwrap();
    assert_eq!(names(&node), ["a", "bb", "ccc"]);
}
