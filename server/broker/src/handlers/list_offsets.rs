//! ListOffsets, versions 1–11: the offset at a time, or at a named place of the log.
//!
//! Named places are negative times: −1 latest, −2 earliest, −3 (from version 7) the record with the greatest time, −4
//! (8) the earliest that is on this node's disk, −5 (9) the latest that is in tiered storage, −6 (11) the earliest
//! that is to go there (KIP-405, KIP-1005). Without tiered storage −4 is −2, and −5 and −6 find nothing.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use model::{ErrorCode, LeaderEpoch, Timestamp};
use network::{Answer, RequestContext};
use protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use protocol::messages::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsResponse, ListOffsetsTopicResponse,
};

use crate::errors::Refusal;
use crate::node::Broker;
use crate::partitions::FoundOffset;

pub(crate) const VERSIONS: RangeInclusive<i16> = 1..=11;

const FIRST_WITH_LEADER_EPOCHS: i16 = 4;

const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;
const EARLIEST_LOCAL: i64 = -4;
const LATEST_TIERED: i64 = -5;
const EARLIEST_PENDING_UPLOAD: i64 = -6;

/// The first version that knows each named place.
const PLACES: [(i64, i16); 6] = [
    (LATEST, 1),
    (EARLIEST, 1),
    (MAX_TIMESTAMP, 7),
    (EARLIEST_LOCAL, 8),
    (LATEST_TIERED, 9),
    (EARLIEST_PENDING_UPLOAD, 11),
];

/// Look-ups by time read the disk, so all of a request's run on the pool of threads that may wait for it.
pub(crate) async fn handle(broker: &Arc<Broker>, context: &RequestContext, request: ListOffsetsRequest) -> Answer {
    let broker = broker.clone();
    let version = context.api_version;
    let answered = tokio::task::spawn_blocking(move || answer(&broker, version, &request)).await;
    // The pool is going down with the node.
    answered.map_or(Answer::Close, Answer::now)
}

fn answer(broker: &Arc<Broker>, version: i16, request: &ListOffsetsRequest) -> ListOffsetsResponse {
    let mut seen = BTreeSet::new();
    let mut twice = BTreeSet::new();
    for topic in &request.topics {
        for partition in &topic.partitions {
            if !seen.insert((&*topic.name, partition.partition_index)) {
                twice.insert((&*topic.name, partition.partition_index));
            }
        }
    }
    let topics = request.topics.iter().map(|topic| ListOffsetsTopicResponse {
        name: topic.name.clone(),
        partitions: topic
            .partitions
            .iter()
            .map(|asked| {
                let found = if twice.contains(&(&*topic.name, asked.partition_index)) {
                    Err(ErrorCode::InvalidRequest.into())
                } else {
                    find(broker, version, topic, asked)
                };
                render(version, asked.partition_index, found)
            })
            .collect(),
        ..Default::default()
    });
    ListOffsetsResponse {
        topics: topics.collect(),
        ..Default::default()
    }
}

fn find(
    broker: &Arc<Broker>,
    version: i16,
    topic: &ListOffsetsTopic,
    asked: &ListOffsetsPartition,
) -> Result<Option<FoundOffset>, Refusal> {
    let partition = broker.partitions().by_name(&topic.name, asked.partition_index)?;
    partition.check_leader_epoch(LeaderEpoch::from_wire(asked.current_leader_epoch))?;
    if let Some(time) = Timestamp::from_wire(asked.timestamp) {
        return partition.offset_at(time);
    }
    if !PLACES
        .iter()
        .any(|(place, since)| *place == asked.timestamp && version >= *since)
    {
        return Err(ErrorCode::UnsupportedVersion.into());
    }
    match asked.timestamp {
        LATEST => Ok(Some(partition.latest())),
        EARLIEST | EARLIEST_LOCAL => Ok(Some(partition.earliest())),
        MAX_TIMESTAMP => partition.offset_of_greatest_time(),
        _ => Ok(None),
    }
}

fn render(
    version: i16,
    partition_index: i32,
    found: Result<Option<FoundOffset>, Refusal>,
) -> ListOffsetsPartitionResponse {
    let mut response = ListOffsetsPartitionResponse {
        partition_index,
        ..Default::default()
    };
    match found {
        Ok(None) => {}
        Ok(Some(found)) => {
            response.offset = found.offset.get();
            response.timestamp = found.time.map_or(-1, Timestamp::millis);
            if version >= FIRST_WITH_LEADER_EPOCHS {
                response.leader_epoch = found.leader_epoch.map_or(-1, LeaderEpoch::get);
            }
        }
        Err(refusal) => response.error_code = refusal.code.code(),
    }
    response
}
