//! What a broker does now and then: retention, checkpoints, syncs that are due by count or age.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;
use tracing::{error, info};

use crate::errors::describe;
use crate::node::Broker;
use crate::partitions::Partition;

/// How often `flush.ms` and `flush.messages` are looked at, and recovery points that have moved far.
const SYNC_CHECK_INTERVAL: Duration = Duration::from_secs(1);

pub(crate) fn spawn(broker: &Arc<Broker>, tasks: &mut JoinSet<()>) {
    tasks.spawn(keep_retention(broker.clone()));
    tasks.spawn(keep_checkpoints(broker.clone()));
    tasks.spawn(keep_syncs(broker.clone()));
}

async fn keep_retention(broker: Arc<Broker>) {
    // Kafka waits a while first, so that a node that has just started has its hands free (log.initial.task.delay.ms).
    sleep(broker.settings().log.initial_task_delay).await;
    loop {
        sleep(broker.settings().log.retention_check_interval).await;
        on_pool(&broker, |broker| {
            let now = broker.clock().now();
            for partition in broker.partitions().all() {
                retain(broker, &partition, now);
            }
            broker.directories().unlink_due(now);
        })
        .await;
    }
}

fn retain(broker: &Arc<Broker>, partition: &Arc<Partition>, now: model::Timestamp) {
    let removed = partition.with_replica(|replica| {
        let high_watermark = replica.high_watermark();
        replica.log_mut().remove_expired_producers(now);
        replica.log_mut().enforce_retention(now, high_watermark)
    });
    match removed {
        Ok(removed) if removed.segments == 0 => {}
        Ok(removed) => {
            let (segments, bytes) = (removed.segments, removed.size_bytes);
            info!(topic = %partition.topic(), partition = %partition.index(), segments, bytes, "segments deleted");
            broker.directories().unlink_later(removed.files, now);
        }
        Err(error) => {
            let error = describe(&error);
            error!(topic = %partition.topic(), partition = %partition.index(), error, "retention failed");
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
        for partition in broker.partitions().all() {
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
