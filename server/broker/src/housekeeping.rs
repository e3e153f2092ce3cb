//! What a broker does now and then: retention, checkpoints, syncs that are due by count or age.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use model::{PartitionIndex, TopicId};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tracing::{error, info, warn};

use crate::errors::describe;
use crate::node::Broker;
use crate::partitions::Partition;

/// How often `flush.ms` and `flush.messages` are looked at, and recovery points that have moved far.
const SYNC_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// How often a full disk is looked at.
const ROOM_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// How often retention runs while a disk is full, if it does not run more often anyway.
const RETENTION_INTERVAL_WHEN_FULL: Duration = Duration::from_secs(10);

/// How many segments of a partition stay because of times in the future, where any does.
type FutureSegments = BTreeMap<(TopicId, PartitionIndex), usize>;

pub(crate) fn spawn(broker: &Arc<Broker>, tasks: &mut JoinSet<()>) {
    tasks.spawn(keep_retention(broker.clone()));
    tasks.spawn(keep_room(broker.clone()));
    tasks.spawn(keep_checkpoints(broker.clone()));
    tasks.spawn(keep_syncs(broker.clone()));
}

async fn keep_retention(broker: Arc<Broker>) {
    // Kafka waits a while first, so that a node that has just started has its hands free (log.initial.task.delay.ms).
    sleep(broker.settings().log.initial_task_delay).await;
    let mut future = FutureSegments::new();
    let mut last = Instant::now();
    loop {
        pause(&broker, last).await;
        last = Instant::now();
        future = match retain_all(&broker, future).await {
            Some(future) => future,
            // The node is going down.
            None => return,
        };
    }
}

/// Waits for the next retention; while a disk is full, for less long.
async fn pause(broker: &Arc<Broker>, last: Instant) {
    loop {
        let mut interval = broker.settings().log.retention_check_interval;
        sleep(ROOM_CHECK_INTERVAL.min(interval)).await;
        if broker.directories().figures().full > 0 {
            interval = interval.min(RETENTION_INTERVAL_WHEN_FULL);
        }
        if last.elapsed() >= interval {
            return;
        }
    }
}

/// Looks after full disks, whether there is room by now and what can be unlinked at once, and unlinks what is due.
async fn keep_room(broker: Arc<Broker>) {
    loop {
        sleep(ROOM_CHECK_INTERVAL).await;
        let now = broker.clock().monotonic();
        if broker.directories().has_due(now) {
            on_pool(&broker, move |broker| broker.directories().unlink_due(now)).await;
        }
        if broker.directories().figures().full > 0 {
            on_pool(&broker, |broker| broker.directories().look_for_room()).await;
        }
    }
}

/// Gives what it found of times in the future, to be held against what is found next.
async fn retain_all(broker: &Arc<Broker>, known: FutureSegments) -> Option<FutureSegments> {
    let broker = broker.clone();
    let work = tokio::task::spawn_blocking(move || {
        let mut future = FutureSegments::new();
        for partition in broker.partitions().all() {
            let key = (partition.topic_id(), partition.index());
            let segments = retain(&broker, &partition);
            if segments > 0 {
                future.insert(key, segments);
            }
            if segments > known.get(&key).copied().unwrap_or(0) {
                warn!(topic = %partition.topic(), partition = %partition.index(), segments,
                    "segments are not deleted by age: their records' times lie in the future");
            }
        }
        let segments: usize = future.values().sum();
        broker.future_segments().store(segments as u64, Ordering::Relaxed);
        future
    });
    work.await.ok()
}

fn retain(broker: &Arc<Broker>, partition: &Arc<Partition>) -> usize {
    if !partition.is_writable() {
        return 0;
    }
    let now = broker.clock().for_ages();
    let removed = partition.with_replica(|replica| {
        let high_watermark = replica.high_watermark();
        replica.log_mut().remove_expired_producers(now);
        replica.log_mut().enforce_retention(now, high_watermark)
    });
    match removed {
        Ok(removed) => {
            if removed.segments > 0 {
                let (segments, bytes) = (removed.segments, removed.size_bytes);
                info!(topic = %partition.topic(), partition = %partition.index(), segments, bytes, "segments deleted");
                broker
                    .directories()
                    .unlink_later(removed.files, broker.clock().monotonic());
            }
            removed.future_segments
        }
        Err(error) => {
            let error = describe(&error);
            error!(topic = %partition.topic(), partition = %partition.index(), error, "retention failed");
            0
        }
    }
}

async fn keep_checkpoints(broker: Arc<Broker>) {
    loop {
        sleep(broker.settings().log.recovery_point_interval).await;
        on_pool(&broker, write_checkpoints).await;
    }
}

async fn keep_syncs(broker: Arc<Broker>) {
    loop {
        sleep(SYNC_CHECK_INTERVAL).await;
        let now = broker.clock().now();
        let mut record = false;
        for partition in broker.partitions().all().iter().filter(|it| it.is_writable()) {
            let (due, moved) =
                partition.with_replica(|replica| (replica.log().sync_is_due(now), replica.log().recovery_point_due()));
            record |= moved;
            if due {
                partition.start_sync();
            }
        }
        if record {
            on_pool(&broker, write_checkpoints).await;
        }
    }
}

/// What lies in the log directories and is not in the metadata is kept for the operator.
pub(crate) fn set_strays_aside(broker: &Arc<Broker>) {
    if let Err(error) = broker.directories().set_strays_aside(&broker.view().image, broker.id()) {
        error!(error = describe(&error), "strays not set aside");
    }
    broker
        .directories()
        .abandon_leftovers(&broker.view().image, broker.id());
}

fn write_checkpoints(broker: &Arc<Broker>) {
    if let Err(error) = broker.directories().write_checkpoints(&broker.partitions().all()) {
        error!(error = describe(&error), "checkpoints not written");
    }
}

/// Runs `work` on a thread that may wait for the disk; nothing where the node is going down.
async fn on_pool(broker: &Arc<Broker>, work: impl FnOnce(&Arc<Broker>) + Send + 'static) {
    let broker = broker.clone();
    let _ = tokio::task::spawn_blocking(move || work(&broker)).await;
}
