//! Follows the metadata log: opens and deletes partitions, hands out leadership and settings, and shows the handlers the
//! new image when all of that is done.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use metadata::config_keys::BrokerSettings;
use metadata::image::{ConfigResource, ConfigResourceType, Image, LeaderRecoveryState, PartitionImage, TopicImage};
use metadata::{Delta, TopicDelta};
use model::{DirectoryId, LeaderEpoch, PartitionIndex, TopicId, TopicPartition};
use replication::Replica;
use storage::PartitionLog;
use tracing::{debug, error, info, warn};

use crate::coordinators::OFFSETS_TOPIC;
use crate::errors::describe;
use crate::node::{Broker, View, texts};
use crate::partitions::{LogDirectoriesError, LogDisk, Partition, PartitionParts, Placement};
use crate::settings::log_options;

/// For each directory, whatever is configured.
const RECOVERY_THREADS_MAX: usize = 64;
/// How many logs are synced at a time that a crash has left unsynced.
const SYNC_THREADS_MAX: usize = 64;

/// Takes in one step of the metadata log. Opens logs, so it may wait for the disk.
pub(crate) fn apply(broker: &Arc<Broker>, delta: &Delta, image: Arc<Image>) {
    let view = View { image: image.clone() };
    let broker_changed = delta
        .configs
        .iter()
        .any(|resource| resource.kind == ConfigResourceType::Broker);
    if broker_changed {
        refresh_settings(broker, &view);
    }
    let mut gone = Vec::new();
    // What is gone goes first: a topic of the same name may have been created since.
    for (id, topic) in delta.topics.iter().filter(|(_, topic)| topic.removed) {
        remove_topic(broker, *id, topic, &mut gone);
    }
    let mut led = Led::default();
    for (id, topic) in delta.topics.iter().filter(|(_, topic)| !topic.removed) {
        if let Some(known) = image.topics.by_id(*id) {
            lead_partitions(broker, known, &topic.partitions, &mut led);
        }
    }
    let recovered = led.open(broker, &image);
    refresh_topics(broker, &image, &delta.configs, broker_changed);
    broker.set_view(view);
    broker.recovered().add(recovered);
    broker.assignments().release();
    // While the log is still read up to this start of the broker, a topic that is not known yet is not gone.
    let has_caught_up = broker.epoch() >= 0 && broker.metadata_offset() >= broker.epoch();
    if has_caught_up {
        let now = broker.clock().monotonic();
        broker.directories().release_left(&image, broker.id(), now);
    }
    if !gone.is_empty() {
        broker.groups().topics_deleted(&gone);
    }
}

/// The broker's own values have changed while it runs.
fn refresh_settings(broker: &Arc<Broker>, view: &View) {
    match BrokerSettings::resolve(&broker.configs(view)) {
        Ok(settings) => broker.set_settings(settings),
        // The controller has checked them; what it let through and this node cannot use stays as it was.
        Err(error) => warn!(
            error = describe(&error),
            "the broker's dynamic configuration is not taken over"
        ),
    }
}

fn remove_topic(broker: &Arc<Broker>, id: TopicId, topic: &TopicDelta, gone: &mut Vec<String>) {
    if topic.name.as_str() == OFFSETS_TOPIC {
        broker.groups().stop_all();
    }
    for partition in broker.partitions().remove_topic(id) {
        partition.delete();
    }
    // Those without a leader here have a folder too.
    let before = broker.view();
    let known = before.image.topics.by_id(id);
    for (index, partition) in known.iter().flat_map(|known| &known.partitions) {
        if !partition.replicas.contains(&broker.id()) {
            continue;
        }
        let place = TopicPartition {
            topic: topic.name.clone(),
            partition: *index,
        };
        if let Err(error) = broker.directories().delete(&place, id, broker.clock().monotonic()) {
            error!(topic = %topic.name, partition = %index, error = describe(&error), "log not deleted");
        }
    }
    gone.push(topic.name.as_str().to_owned());
}

/// What a step of the metadata log gives this node to lead.
#[derive(Default)]
struct Led<'i> {
    /// Those whose logs are not open.
    unopened: Vec<(&'i Arc<TopicImage>, PartitionIndex, &'i PartitionImage)>,
    /// Those that are led after an unclean election.
    recovered: Vec<(TopicId, PartitionIndex)>,
}

impl Led<'_> {
    /// Opens the logs, several at a time: after a crash each may have gigabytes to read again. Gives those that are led after
    /// an unclean election.
    fn open(self, broker: &Arc<Broker>, image: &Image) -> Vec<(TopicId, PartitionIndex)> {
        let Led {
            unopened,
            mut recovered,
        } = self;
        let per_directory = broker.settings().log.recovery_threads.min(RECOVERY_THREADS_MAX);
        let logs = in_parallel(
            unopened.clone(),
            per_directory * broker.directories().count(),
            |(topic, index, partition)| open_log(broker, image, topic, index, partition),
        );
        // Reading takes a processor, but a sync only the disk, which does many of them at a time.
        let opened: Vec<_> = unopened.iter().map(|(_, _, partition)| *partition).zip(logs).collect();
        let replicas = in_parallel(opened, SYNC_THREADS_MAX, |(partition, log)| lead(log?, partition));
        for ((topic, index, partition), replica) in unopened.iter().zip(replicas) {
            match replica.and_then(|replica| run(broker, image, topic, *index, partition, replica)) {
                Ok(()) if partition.leader_recovery_state == LeaderRecoveryState::Recovering => {
                    recovered.push((topic.id, *index));
                }
                Ok(()) => {}
                Err(error) => {
                    error!(topic = %topic.name, partition = %index, error = describe(&error), "log not opened");
                    broker.partitions().note_unopened(&topic.name, topic.id, *index);
                }
            }
        }
        recovered
    }
}

/// What `act` makes of each item, in their order, on so many threads.
fn in_parallel<T: Send, R: Send>(items: Vec<T>, threads: usize, act: impl Fn(T) -> R + Sync) -> Vec<R> {
    let threads = threads.min(items.len());
    if threads <= 1 {
        return items.into_iter().map(act).collect();
    }
    let left = Mutex::new(items.into_iter().enumerate());
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        let mut done = Vec::new();
        while let Some((at, item)) = next() {
            done.push((at, act(item)));
        }
        done
    };
    let mut done: Vec<(usize, R)> = std::thread::scope(|scope| {
        // With fewer of them where the system gives no more.
        let worker = || {
            std::thread::Builder::new()
                .name("recovery".to_owned())
                .spawn_scoped(scope, work)
                .ok()
        };
        let workers: Vec<_> = (1..threads).map_while(|_| worker()).collect();
        let mut done = work();
        for worker in workers {
            match worker.join() {
                Ok(part) => done.extend(part),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

fn lead_partitions<'i>(
    broker: &Arc<Broker>,
    topic: &'i Arc<TopicImage>,
    changed: &BTreeSet<PartitionIndex>,
    led: &mut Led<'i>,
) {
    for index in changed {
        let Some(partition) = topic.partitions.get(index) else {
            continue;
        };
        if !partition.replicas.contains(&broker.id()) {
            continue;
        }
        if partition.leader != Some(broker.id()) {
            if topic.name.as_str() == OFFSETS_TOPIC {
                broker.groups().stop(*index);
            }
            if partition.leader.is_none() {
                look_for_leaderless(broker, topic, *index, partition);
            }
            continue;
        }
        if let Some(running) = broker.partitions().get(topic.id, *index) {
            running.set_leadership(partition.leader_epoch, partition.in_sync_replicas.len());
            if topic.name.as_str() == OFFSETS_TOPIC {
                // Nobody may have led it in between, and the groups were given up.
                broker.groups().start(running);
            }
        } else {
            led.unopened.push((topic, *index, partition));
            continue;
        }
        if partition.leader_recovery_state == LeaderRecoveryState::Recovering {
            led.recovered.push((topic.id, *index));
        }
    }
}

/// A partition of this node that nobody leads: its directory may be offline, or its log have come to lie in another one.
fn look_for_leaderless(broker: &Arc<Broker>, topic: &TopicImage, index: PartitionIndex, partition: &PartitionImage) {
    if broker.partitions().get(topic.id, index).is_some() {
        return;
    }
    let place = TopicPartition {
        topic: topic.name.clone(),
        partition: index,
    };
    match broker.directories().directory_of(&place, topic.id) {
        Ok(Some(found)) if found != partition.directory_of(broker.id()) => {
            broker.assignments().add(topic.id, index, found);
        }
        Ok(_) => {}
        Err(error) => error!(topic = %topic.name, partition = %index, error = describe(&error), "log not looked for"),
    }
    broker.partitions().note_unopened(&topic.name, topic.id, index);
}

/// Tries again to open the logs that could not be opened before: the disk may have room by now.
pub(crate) fn open_unopened(broker: &Arc<Broker>) {
    let image = broker.view().image;
    let mut failed = None;
    for (id, index) in broker.partitions().unopened() {
        let topic = image.topics.by_id(id);
        let known = topic.and_then(|topic| Some((topic, topic.partitions.get(&index)?)));
        if known.is_some_and(|(_, partition)| partition.leader.is_none()) {
            continue;
        }
        let Some((topic, partition)) = known.filter(|(_, partition)| partition.leader == Some(broker.id())) else {
            broker.partitions().forget_unopened(id, index);
            continue;
        };
        let opened = open_log(broker, &image, topic, index, partition);
        let replica = opened.and_then(|log| lead(log, partition));
        match replica.and_then(|replica| run(broker, &image, topic, index, partition, replica)) {
            Ok(()) => {
                info!(topic = %topic.name, partition = %index, "log opened after all");
                broker.recovered().add([(id, index)]);
            }
            Err(error) => failed = Some(error),
        }
    }
    broker.assignments().release();
    if let Some(error) = failed {
        let logs = broker.partitions().unopened().len();
        warn!(
            logs,
            error = describe(&error),
            "logs that are led here are still not opened"
        );
    }
}

/// Opens the log of a partition that this node is to lead. Waits for the disk.
fn open_log(
    broker: &Broker,
    image: &Image,
    topic: &TopicImage,
    index: PartitionIndex,
    partition: &PartitionImage,
) -> Result<PartitionLog<LogDisk>, LogDirectoriesError> {
    let settings = broker.topic_settings(image.configs.of(&ConfigResource::topic(topic.name.as_str())));
    let options = log_options(&settings, &broker.settings(), jitter(topic.id, index));
    let placement = placement(partition.directory_of(broker.id()), partition);
    let now = broker.clock().now();
    let directories = broker.directories();
    let place = TopicPartition {
        topic: topic.name.clone(),
        partition: index,
    };
    directories.refuse_foreign(&place, image)?;
    directories.open(&topic.name, topic.id, index, placement, options, now)
}

/// Makes what a log holds durable, and leads with it.
fn lead(log: PartitionLog<LogDisk>, partition: &PartitionImage) -> Result<Replica<LogDisk>, LogDirectoriesError> {
    Ok(Replica::lead(log, partition.leader_epoch)?)
}

/// Lets clients at a partition whose log is open.
fn run(
    broker: &Arc<Broker>,
    image: &Image,
    topic: &TopicImage,
    index: PartitionIndex,
    partition: &PartitionImage,
    replica: Replica<LogDisk>,
) -> Result<(), LogDirectoriesError> {
    let settings = broker.topic_settings(image.configs.of(&ConfigResource::topic(topic.name.as_str())));
    let least = settings.min_insync_replicas as usize;
    let assigned = partition.directory_of(broker.id());
    let running = Partition::new(PartitionParts {
        topic: topic.name.clone(),
        topic_id: topic.id,
        index,
        replica,
        in_sync_replicas: partition.in_sync_replicas.len(),
        in_sync_replicas_min: least,
        flusher: broker.flusher().clone(),
    });
    broker.partitions().add(running.clone());
    if let Err(error) = broker.directories().resume_move(&running.place(), topic.id) {
        warn!(topic = %topic.name, partition = %index, error = describe(&error), "a move of the log is not gone on with");
    }
    if let Some(lies_in) = broker.directories().directory_of(&running.place(), topic.id)?
        && lies_in != assigned
    {
        broker.assignments().add(topic.id, index, lies_in);
    }
    if topic.name.as_str() == OFFSETS_TOPIC {
        broker.groups().start(running);
    }
    Ok(())
}

fn placement(assigned: DirectoryId, partition: &PartitionImage) -> Placement {
    match assigned {
        id if !id.is_reserved() => Placement::At(id),
        // Each start of a broker elects the leaders of its partitions anew.
        _ if partition.leader_epoch == LeaderEpoch::new(0) => Placement::Anywhere,
        _ => Placement::WhereItWas,
    }
}

/// Topics whose own values changed, or all of them where the broker's did.
fn refresh_topics(broker: &Arc<Broker>, image: &Image, changed: &BTreeSet<ConfigResource>, all: bool) {
    for topic in image.topics.iter() {
        let resource = ConfigResource::topic(topic.name.as_str());
        if !all && !changed.contains(&resource) {
            continue;
        }
        let settings = broker.topic_settings(image.configs.of(&resource));
        let node = broker.settings();
        for partition in broker.partitions().topic(&topic.name) {
            let options = log_options(&settings, &node, jitter(topic.id, partition.index()));
            partition.set_in_sync_replicas_min(settings.min_insync_replicas as usize);
            partition.reconfigure(options);
        }
        debug!(topic = %topic.name, overrides = ?texts(image.configs.of(&resource)), "topic reconfigured");
    }
}

/// A draw from 0 up to 1 that a partition keeps for life.
fn jitter(topic: TopicId, partition: PartitionIndex) -> f64 {
    let mixed = topic
        .as_bytes()
        .iter()
        .fold(u64::from(partition.get().unsigned_abs()), |mixed, byte| {
            (mixed ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
    f64::from(u32::try_from(mixed >> 32).unwrap_or(0)) / (f64::from(u32::MAX) + 1.0)
}
