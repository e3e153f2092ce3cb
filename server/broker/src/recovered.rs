//! Tells the controller that a partition which it had elected uncleanly is back to normal (KIP-704): its leader here has
//! opened the log and synced what it found.
//!
//! A partition is told of once for each leadership. Where the controller has moved on meanwhile its answer is let be: the
//! change is on its way to this broker and brings the partition here again, if it still has to be told of.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use metadata::image::{Image, LeaderRecoveryState};
use model::{BrokerId, ErrorCode, PartitionIndex, TopicId};
use protocol::messages::alter_partition_request::{AlterPartitionRequest, BrokerState, PartitionData, TopicData};
use protocol::messages::alter_partition_response::AlterPartitionResponse;
use protocol::{Request, Response};
use tokio::sync::Notify;
use tokio::time::sleep;
use tracing::{info, warn};

use crate::node::Broker;

/// How long to wait before the controller is asked again.
const RETRY_WAIT: Duration = Duration::from_secs(1);
/// Partitions of one request.
const PARTITIONS_MAX: usize = 1000;

type Place = (TopicId, PartitionIndex);

/// The partitions that are still to be told of; no more than this broker leads.
#[derive(Default)]
pub(crate) struct Recovered {
    pending: Mutex<BTreeSet<Place>>,
    something: Notify,
}

impl Recovered {
    pub(crate) fn add(&self, places: impl IntoIterator<Item = Place>) {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        pending.extend(places);
        if !pending.is_empty() {
            self.something.notify_one();
        }
    }

    fn take(&self) -> Vec<Place> {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let next = pending.iter().nth(PARTITIONS_MAX).copied();
        let rest = next.map(|next| pending.split_off(&next)).unwrap_or_default();
        std::mem::replace(&mut *pending, rest).into_iter().collect()
    }
}

/// Tells the controller for as long as the task lives. One request is under way at a time.
pub(crate) async fn keep_telling(broker: Arc<Broker>) {
    loop {
        let places = broker.recovered().take();
        if places.is_empty() {
            broker.recovered().something.notified().await;
            continue;
        }
        let image = broker.view().image;
        let Some(request) = request(broker.id(), broker.epoch(), &image, &places) else {
            continue;
        };
        let again = match broker.controller().call(Request::from(request)).await {
            Ok(Response::AlterPartition(response)) => refused_for_now(&response, &places),
            Ok(_) => places,
            Err(error) => {
                warn!(%error, partitions = places.len(), "the controller was not told what has recovered");
                places
            }
        };
        if !again.is_empty() {
            broker.recovered().add(again);
            sleep(RETRY_WAIT).await;
        }
    }
}

/// `None` where nothing of it has to be told any more.
fn request(broker: BrokerId, broker_epoch: i64, image: &Image, places: &[Place]) -> Option<AlterPartitionRequest> {
    let mut topics: Vec<TopicData> = Vec::new();
    for (topic_id, index) in places {
        let partition = image
            .topics
            .by_id(*topic_id)
            .and_then(|topic| topic.partitions.get(index));
        let Some(partition) = partition.filter(|partition| {
            partition.leader == Some(broker) && partition.leader_recovery_state == LeaderRecoveryState::Recovering
        }) else {
            continue;
        };
        let in_sync = partition.in_sync_replicas.iter().map(|id| BrokerState {
            broker_id: id.get(),
            broker_epoch: if *id == broker { broker_epoch } else { -1 },
            ..Default::default()
        });
        let data = PartitionData {
            partition_index: index.get(),
            leader_epoch: partition.leader_epoch.get(),
            new_isr_with_epochs: in_sync.collect(),
            leader_recovery_state: LeaderRecoveryState::Recovered.wire(),
            partition_epoch: partition.partition_epoch.get(),
            ..Default::default()
        };
        match topics.last_mut().filter(|topic| topic.topic_id == *topic_id) {
            Some(topic) => topic.partitions.push(data),
            None => topics.push(TopicData {
                topic_id: *topic_id,
                partitions: vec![data],
                ..Default::default()
            }),
        }
    }
    (!topics.is_empty()).then(|| AlterPartitionRequest {
        broker_id: broker.get(),
        broker_epoch,
        topics,
        ..Default::default()
    })
}

/// Those of `places` that the controller may take yet without a change of theirs.
fn refused_for_now(response: &AlterPartitionResponse, places: &[Place]) -> Vec<Place> {
    if response.error_code != ErrorCode::None.code() {
        warn!(
            code = response.error_code,
            "the controller does not take what has recovered"
        );
        return places.to_vec();
    }
    let mut again = Vec::new();
    for topic in &response.topics {
        for partition in &topic.partitions {
            let Some(index) = PartitionIndex::from_wire(partition.partition_index) else {
                continue;
            };
            match ErrorCode::from_code(partition.error_code) {
                Some(ErrorCode::None) => info!(topic_id = %topic.topic_id, partition = %index, "has recovered"),
                // Another controller knows of more, or this broker is fenced for a while.
                Some(ErrorCode::NotController | ErrorCode::IneligibleReplica) => again.push((topic.topic_id, index)),
                code => info!(topic_id = %topic.topic_id, partition = %index, ?code, "recovery not taken"),
            }
        }
    }
    again
}

#[cfg(test)]
mod tests;
