//! Produce, versions 3–13 (0–2 are advertised for librdkafka's feature test and refused): appends one batch to each
//! partition named.
//!
//! From version 13 on topics go by id (KIP-516). acks=0 is answered by silence, and by the end of the connection where
//! anything failed; acks=1 after the append; acks=all when the high watermark has passed what was appended, or with
//! REQUEST_TIMED_OUT. Transactional batches are refused: there is no transaction coordinator here.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use model::record_batch::BatchHeader;
use model::{ErrorCode, Offset};
use network::{Answer, RequestContext};
use protocol::messages::produce_request::{PartitionProduceData, ProduceRequest, TopicProduceData};
use protocol::messages::produce_response::{
    BatchIndexAndErrorMessage, PartitionProduceResponse, ProduceResponse, TopicProduceResponse,
};
use storage::Origin;
use tokio::time::{Instant, timeout_at};

use crate::errors::Refusal;
use crate::node::Broker;
use crate::partitions::{Committed, Partition};

pub(crate) const VERSIONS: RangeInclusive<i16> = 3..=13;
pub(crate) const ADVERTISED: RangeInclusive<i16> = 0..=13;
/// From here on an unverified transaction is told that it can be aborted (KIP-890).
const FIRST_WITH_ABORTABLE_ERROR: i16 = 11;
const FIRST_WITH_TOPIC_IDS: i16 = 13;
const ACKS_ALL: i16 = -1;

/// How a partition's batch fared; `durable` resolves once the high watermark has passed it.
struct Outcome {
    response: PartitionProduceResponse,
    durable: Option<Durable>,
}

struct Durable {
    partition: Arc<Partition>,
    reached: Committed,
}

pub(crate) fn handle(broker: &Arc<Broker>, context: &RequestContext, request: ProduceRequest) -> Answer {
    let acks = request.acks;
    // Counts from here: the answers of a connection are waited for one after the other.
    let deadline = Instant::now() + Duration::from_millis(u64::try_from(request.timeout_ms).unwrap_or(0));
    let mut failed = false;
    let mut waits = Vec::new();
    let mut response = ProduceResponse::default();
    for (topic_at, topic) in request.topic_data.into_iter().enumerate() {
        let mut answer = TopicProduceResponse {
            name: topic.name.clone(),
            topic_id: topic.topic_id,
            ..Default::default()
        };
        for (partition_at, data) in topic.partition_data.iter().enumerate() {
            let outcome = append(broker, context, acks, request.transactional_id.is_some(), &topic, data);
            failed |= outcome.response.error_code != ErrorCode::None.code();
            if let Some(durable) = outcome.durable {
                waits.push((topic_at, partition_at, durable));
            }
            answer.partition_responses.push(outcome.response);
        }
        response.responses.push(answer);
    }
    match acks {
        0 if failed => Answer::Close,
        0 => Answer::Nothing,
        _ if waits.is_empty() => Answer::now(response),
        _ => Answer::Later(Box::pin(await_durable(response, waits, deadline))),
    }
}

/// Fills in what became of the batches that wait for the high watermark.
async fn await_durable(
    mut response: ProduceResponse,
    waits: Vec<(usize, usize, Durable)>,
    deadline: Instant,
) -> Answer {
    for (topic_at, partition_at, durable) in waits {
        let error = match timeout_at(deadline, durable.reached).await {
            Ok(Ok(Ok(()))) => continue,
            Ok(Ok(Err(code))) => code,
            // The partition went away with everything that waited for it.
            Ok(Err(_)) => ErrorCode::NotLeaderOrFollower,
            Err(_) => ErrorCode::RequestTimedOut,
        };
        let at = &mut response.responses[topic_at].partition_responses[partition_at];
        *at = failure(at.index, &Refusal::from(error));
        drop(durable.partition);
    }
    Answer::now(response)
}

fn append(
    broker: &Arc<Broker>,
    context: &RequestContext,
    acks: i16,
    transactional: bool,
    topic: &TopicProduceData,
    data: &PartitionProduceData,
) -> Outcome {
    match try_append(broker, context, acks, transactional, topic, data) {
        Ok(outcome) => outcome,
        Err(refusal) => Outcome {
            response: failure(data.index, &refusal),
            durable: None,
        },
    }
}

fn try_append(
    broker: &Arc<Broker>,
    context: &RequestContext,
    acks: i16,
    transactional: bool,
    topic: &TopicProduceData,
    data: &PartitionProduceData,
) -> Result<Outcome, Refusal> {
    if !matches!(acks, ACKS_ALL | 0 | 1) {
        return Err(ErrorCode::InvalidRequiredAcks.into());
    }
    let partition = if context.api_version >= FIRST_WITH_TOPIC_IDS {
        broker.partitions().by_id(topic.topic_id, data.index)?
    } else {
        broker.partitions().by_name(&topic.name, data.index)?
    };
    if partition.is_internal() {
        return Err(Refusal::new(
            ErrorCode::InvalidTopicException,
            "records of an internal topic are the node's own",
        ));
    }
    let Some(records) = data.records.clone() else {
        return Err(Refusal::new(
            ErrorCode::InvalidRequest,
            "the request has no records for this partition",
        ));
    };
    refuse_transactions(context.api_version, transactional, &records)?;
    let wait_for_all = acks == ACKS_ALL;
    let (appended, reached) = partition.append(&records, Origin::Client, broker.clock().now(), wait_for_all)?;
    let response = PartitionProduceResponse {
        index: data.index,
        base_offset: appended.first_offset.get(),
        log_append_time_ms: appended.log_append_time.map_or(-1, |time| time.millis()),
        log_start_offset: partition.ends().log_start_offset.get(),
        ..Default::default()
    };
    let durable = reached.map(|reached| Durable { partition, reached });
    Ok(Outcome { response, durable })
}

/// A batch of a transaction that nobody has verified is not appended (KIP-890).
fn refuse_transactions(version: i16, transactional: bool, records: &[u8]) -> Result<(), Refusal> {
    let marked = BatchHeader::parse(records).is_ok_and(|header| header.attributes.is_transactional());
    match (marked, transactional) {
        (false, _) => Ok(()),
        (true, false) => Err(ErrorCode::TransactionalIdAuthorizationFailed.into()),
        (true, true) if version < FIRST_WITH_ABORTABLE_ERROR => Err(ErrorCode::InvalidTxnState.into()),
        (true, true) => Err(ErrorCode::TransactionAbortable.into()),
    }
}

fn failure(index: i32, refusal: &Refusal) -> PartitionProduceResponse {
    PartitionProduceResponse {
        index,
        error_code: refusal.code.code(),
        base_offset: -1,
        log_append_time_ms: -1,
        log_start_offset: refusal.log_start_offset.map_or(-1, Offset::get),
        record_errors: refusal
            .record_errors
            .iter()
            .map(|(batch_index, message)| BatchIndexAndErrorMessage {
                batch_index: *batch_index,
                batch_index_error_message: Some(message.as_str().into()),
                ..Default::default()
            })
            .collect(),
        error_message: refusal.message.as_deref().map(Into::into),
        ..Default::default()
    }
}
