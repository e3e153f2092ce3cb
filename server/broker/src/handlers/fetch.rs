//! Fetch, versions 4–18: committed records from the offsets named, whole batches, waiting for more where there is too
//! little.
//!
//! - Topics go by name up to version 12, by id from 13 on (KIP-516).
//! - Sessions are not kept: every answer bears session id 0, which tells the client to ask in full (KIP-227).
//! - A partition in error, or the greatest wait, ends the waiting; a first batch larger than the limits is returned
//!   whole all the same, so that a consumer always gets on (KIP-74).
//! - There are no followers yet: a request that bears a replica id is told that it is not an assigned replica.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use model::{ErrorCode, LeaderEpoch, Offset};
use network::{Answer, RequestContext};
use protocol::messages::fetch_request::{FetchPartition, FetchRequest, FetchTopic};
use protocol::messages::fetch_response::{FetchResponse, FetchableTopicResponse, PartitionData};
use storage::Wait;
use tokio::time::Instant;

use crate::errors::Refusal;
use crate::node::Broker;
use crate::partitions::{FetchWait, Partition, Slice};

pub(crate) const VERSIONS: RangeInclusive<i16> = 4..=18;
const FIRST_WITH_TOPIC_IDS: i16 = 13;
/// The last epoch of a session, and the one of a request outside any (KIP-227).
const SESSIONLESS_EPOCH: i32 = -1;
const NEW_SESSION_EPOCH: i32 = 0;
const READ_COMMITTED: i8 = 1;

/// One partition of the request, with what is read of it.
struct Wanted {
    index: i32,
    offset: i64,
    bytes_max: usize,
    partition: Result<Arc<Partition>, Refusal>,
}

/// A fetch under way: everything that a second look at the partitions needs.
struct Fetch {
    topics: Vec<(FetchTopic, Vec<Wanted>)>,
    bytes_max: usize,
    read_committed: bool,
}

/// What one look at the partitions found.
struct Found {
    response: FetchResponse,
    bytes: usize,
    /// Some partition is in error: the client should hear of it at once.
    refused: bool,
    /// Some bytes are not in memory, and the look was not allowed to wait for the disk.
    on_disk: bool,
}

pub(crate) async fn handle(broker: &Arc<Broker>, context: &RequestContext, request: FetchRequest) -> Answer {
    if request.session_id != 0 && !matches!(request.session_epoch, SESSIONLESS_EPOCH | NEW_SESSION_EPOCH) {
        return Answer::now(FetchResponse {
            error_code: ErrorCode::FetchSessionIdNotFound.code(),
            ..FetchResponse::default()
        });
    }
    let replica_id = if context.api_version >= 15 {
        request.replica_state.replica_id
    } else {
        request.replica_id
    };
    let bytes_min = usize::try_from(request.min_bytes).unwrap_or(0);
    let wait_max = Duration::from_millis(u64::try_from(request.max_wait_ms).unwrap_or(0));
    let fetch = Arc::new(Fetch::new(broker, context, replica_id, request));
    let deadline = Instant::now() + wait_max;
    loop {
        // Registered before the look, so that nothing that comes between look and wait is missed.
        let wait = FetchWait::new(fetch.partitions());
        let found = look(&fetch).await;
        let enough = found.bytes >= bytes_min || found.refused || fetch.topics.is_empty();
        if enough || Instant::now() >= deadline {
            return Answer::now(found.response);
        }
        // Too little arrived by the deadline: what there is then is the answer.
        wait.until_grown(bytes_min - found.bytes, deadline).await;
    }
}

/// Looks from memory; where that does not do, on the pool of threads that may wait for the disk.
async fn look(fetch: &Arc<Fetch>) -> Found {
    let found = fetch.look(Wait::Refused);
    if !found.on_disk {
        return found;
    }
    let again = fetch.clone();
    match tokio::task::spawn_blocking(move || again.look(Wait::Allowed)).await {
        Ok(found) => found,
        // The pool is going down with the node.
        Err(_) => found,
    }
}

impl Fetch {
    fn new(broker: &Arc<Broker>, context: &RequestContext, replica_id: i32, request: FetchRequest) -> Self {
        let by_id = context.api_version >= FIRST_WITH_TOPIC_IDS;
        let mut topics = Vec::with_capacity(request.topics.len());
        for mut topic in request.topics {
            let wanted = std::mem::take(&mut topic.partitions)
                .into_iter()
                .map(|asked| Wanted {
                    index: asked.partition,
                    offset: asked.fetch_offset,
                    bytes_max: usize::try_from(asked.partition_max_bytes).unwrap_or(0),
                    partition: find(broker, by_id, replica_id, &topic, &asked),
                })
                .collect();
            topics.push((topic, wanted));
        }
        let asked = usize::try_from(request.max_bytes).unwrap_or(0);
        Fetch {
            topics,
            bytes_max: asked.min(broker.settings().fetch.response_bytes_max as usize),
            read_committed: request.isolation_level == READ_COMMITTED,
        }
    }

    fn partitions(&self) -> impl Iterator<Item = &Arc<Partition>> {
        self.topics
            .iter()
            .flat_map(|(_, wanted)| wanted)
            .filter_map(|wanted| wanted.partition.as_ref().ok())
    }

    fn look(&self, wait: Wait) -> Found {
        let mut found = Found {
            response: FetchResponse::default(),
            bytes: 0,
            refused: false,
            on_disk: false,
        };
        for (topic, wanted) in &self.topics {
            let mut answer = FetchableTopicResponse {
                topic: topic.topic.clone(),
                topic_id: topic.topic_id,
                ..FetchableTopicResponse::default()
            };
            for wanted in wanted {
                let data = self.read(wanted, wait, &mut found);
                answer.partitions.push(data);
            }
            found.response.responses.push(answer);
        }
        found
    }

    fn read(&self, wanted: &Wanted, wait: Wait, found: &mut Found) -> PartitionData {
        let room = self.bytes_max.saturating_sub(found.bytes).min(wanted.bytes_max);
        // The first records of an answer go out whatever their size.
        let first = found.bytes == 0;
        let slice = match &wanted.partition {
            Err(refusal) => Err(refusal.clone()),
            Ok(partition) => match Offset::from_wire(wanted.offset) {
                None => Err(ErrorCode::OffsetOutOfRange.into()),
                Some(offset) => partition.read(offset, room, first, wait),
            },
        };
        let (slice, code) = match slice {
            Ok(slice) => (slice, ErrorCode::None),
            Err(refusal) => {
                found.refused = true;
                let ends = wanted.partition.as_ref().ok().map(|partition| partition.ends());
                (
                    Slice {
                        records: Bytes::new(),
                        ends,
                        on_disk: false,
                    },
                    refusal.code,
                )
            }
        };
        found.bytes += slice.records.len();
        found.on_disk |= slice.on_disk;
        PartitionData {
            partition_index: wanted.index,
            error_code: code.code(),
            high_watermark: slice.ends.map_or(-1, |ends| ends.high_watermark.get()),
            last_stable_offset: slice.ends.map_or(-1, |ends| ends.high_watermark.get()),
            log_start_offset: slice.ends.map_or(-1, |ends| ends.log_start_offset.get()),
            aborted_transactions: self.read_committed.then(Vec::new),
            records: Some(slice.records),
            ..PartitionData::default()
        }
    }
}

fn find(
    broker: &Arc<Broker>,
    by_id: bool,
    replica_id: i32,
    topic: &FetchTopic,
    asked: &FetchPartition,
) -> Result<Arc<Partition>, Refusal> {
    let partition = if by_id {
        broker.partitions().by_id(topic.topic_id, asked.partition)?
    } else {
        broker.partitions().by_name(&topic.topic, asked.partition)?
    };
    let epoch = LeaderEpoch::from_wire(asked.current_leader_epoch);
    partition.check_leader_epoch(epoch)?;
    if replica_id >= 0 {
        let code = if epoch.is_some() {
            ErrorCode::UnknownLeaderEpoch
        } else {
            ErrorCode::NotLeaderOrFollower
        };
        return Err(code.into());
    }
    Ok(partition)
}
