//! Follows the metadata log: opens and deletes partitions, hands out leadership and settings, and shows the handlers the
//! new image when all of that is done.

use std::collections::BTreeSet;
use std::sync::Arc;

use metadata::config_keys::BrokerSettings;
use metadata::image::{ConfigResource, ConfigResourceType, Image, LeaderRecoveryState, PartitionImage, TopicImage};
use metadata::{Delta, TopicDelta};
use model::{DirectoryId, LeaderEpoch, PartitionIndex, TopicId, TopicPartition};
use tracing::{debug, error, info, warn};

use crate::coordinators::OFFSETS_TOPIC;
use crate::errors::describe;
use crate::node::{Broker, View, texts};
use crate::partitions::{LogDirectoriesError, Partition, PartitionParts, Placement};
use crate::settings::log_options;

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
    let mut recovered = Vec::new();
    for (id, topic) in delta.topics.iter().filter(|(_, topic)| !topic.removed) {
        if let Some(known) = image.topics.by_id(*id) {
            recovered.extend(lead_partitions(broker, &image, known, &topic.partitions));
        }
    }
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

/// Gives those that this node leads now after an unclean election.
fn lead_partitions(
    broker: &Arc<Broker>,
    image: &Image,
    topic: &Arc<TopicImage>,
    changed: &BTreeSet<PartitionIndex>,
) -> Vec<(TopicId, PartitionIndex)> {
    let mut recovered = Vec::new();
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
        } else if let Err(error) = open(broker, image, topic, *index, partition) {
            error!(topic = %topic.name, partition = %index, error = describe(&error), "log not opened");
            broker.partitions().note_unopened(&topic.name, topic.id, *index);
            continue;
        }
        if partition.leader_recovery_state == LeaderRecoveryState::Recovering {
            recovered.push((topic.id, *index));
        }
    }
    recovered
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
        match open(broker, &image, topic, index, partition) {
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

fn open(
    broker: &Arc<Broker>,
    image: &Image,
    topic: &Arc<TopicImage>,
    index: PartitionIndex,
    partition: &PartitionImage,
) -> Result<(), LogDirectoriesError> {
    let settings = broker.topic_settings(image.configs.of(&ConfigResource::topic(topic.name.as_str())));
    let options = log_options(&settings, &broker.settings(), jitter(topic.id, index));
    let least = settings.min_insync_replicas as usize;
    let now = broker.clock().now();
    let assigned = partition.directory_of(broker.id());
    let placement = placement(assigned, partition);
    let log = broker
        .directories()
        .open(&topic.name, topic.id, index, placement, options, now)?;
    let replica = replication::Replica::lead(log, partition.leader_epoch)?;
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
