//! Brings batches to their leaders: once each, in the order of the lane, and tells the fate of every record.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use model::record_batch::{BatchBuilder, BatchError, BatchOptions, BatchProducer};
use model::{ErrorCode, Offset, ProducerEpoch, ProducerId, Sequence, Timestamp};
use protocol::messages::init_producer_id_request::InitProducerIdRequest;
use protocol::messages::produce_request::{PartitionProduceData, ProduceRequest, TopicProduceData};
use protocol::messages::produce_response::{PartitionProduceResponse, ProduceResponse};
use protocol::{ApiKey, Request, Response, Text};
use tokio::time::{Instant, timeout};

use super::lane::{Lane, Pending, Place};
use super::{Acknowledged, Inner, RecordError};
use crate::retry::Retry;
use crate::routing::unexpected;
use crate::{CallContext, Client, Error, Target};

/// All in-sync replicas have to have a batch before it is acknowledged.
const ACKS_ALL: i16 = -1;
/// How long a topic that was known may be unknown: a broker that has just become leader may not have heard of it yet.
const UNKNOWN_TOPIC_WAIT_MAX: Duration = Duration::from_secs(5);

/// How long a leader that cannot write may go on like that: a full disk stays full, and who waits is better told.
const STORAGE_ERROR_WAIT_MAX: Duration = Duration::from_secs(2);

/// A producer id and its epoch, as the cluster gave them out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Identity {
    pub(super) id: ProducerId,
    pub(super) epoch: ProducerEpoch,
}

/// The identity in use; a new one is asked for when the last was given up.
#[derive(Default)]
pub(super) struct Identities {
    current: Mutex<Option<Identity>>,
    asking: tokio::sync::Mutex<()>,
}

impl Identities {
    async fn current(&self, client: &Client, context: &CallContext) -> Result<Identity, Error> {
        let known = || *self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(identity) = known() {
            return Ok(identity);
        }
        let _asking = self.asking.lock().await;
        if let Some(identity) = known() {
            return Ok(identity);
        }
        let identity = init_producer_id(client, context).await?;
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Some(identity);
        Ok(identity)
    }

    fn give_up(&self, identity: Identity) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if *current == Some(identity) {
            *current = None;
        }
    }

    pub(super) fn give_up_current(&self) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

async fn init_producer_id(client: &Client, context: &CallContext) -> Result<Identity, Error> {
    let request = InitProducerIdRequest {
        transactional_id: None,
        transaction_timeout_ms: i32::MAX,
        ..Default::default()
    };
    let response = client.call(context, Target::AnyBroker, Request::from(request)).await?;
    let Response::InitProducerId(response) = response else {
        return Err(unexpected(ApiKey::InitProducerId));
    };
    Error::check(response.error_code, None, || "asking for a producer id".to_owned())?;
    match (
        ProducerId::from_wire(response.producer_id),
        ProducerEpoch::from_wire(response.producer_epoch),
    ) {
        (Some(id), Some(epoch)) => Ok(Identity { id, epoch }),
        _ => Err(Error::MalformedAnswer {
            api_key: ApiKey::InitProducerId,
            lacking: "a producer id".to_owned(),
        }),
    }
}

/// A batch that is in the log.
struct Appended {
    base_offset: Offset,
    append_time: Option<Timestamp>,
}

/// Why a batch is not in the log, or not known to be.
struct Failure {
    code: ErrorCode,
    message: Option<Arc<str>>,
    is_retriable: bool,
    outcome_open: bool,
    /// Records that are to blame, by their place in the batch.
    records: BTreeMap<usize, Option<Arc<str>>>,
    reach: Reach,
}

/// What fails with a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reach {
    Batch,
    /// Also what its calls still have for the partition.
    Calls,
    /// Also whatever waits for the partition.
    Lane,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let message = match &error {
            Error::Refused { what, message, .. } => message.as_ref().unwrap_or(what).as_str().into(),
            other => other.to_string().into(),
        };
        Failure {
            code: error.code(),
            message: Some(message),
            is_retriable: error.is_retriable(),
            outcome_open: error.leaves_outcome_open(),
            records: BTreeMap::new(),
            reach: Reach::Batch,
        }
    }
}

impl From<BatchError> for Failure {
    fn from(error: BatchError) -> Self {
        Failure {
            code: ErrorCode::InvalidRecord,
            message: Some(error.to_string().into()),
            is_retriable: false,
            outcome_open: false,
            records: BTreeMap::new(),
            reach: Reach::Batch,
        }
    }
}

/// Empties a lane; at most one task does at a time.
pub(super) async fn drive(producer: Arc<Inner>, lane: Arc<Lane>) {
    let mut place = lane.place.lock().await;
    while let Some(batch) = lane.take_batch(producer.options.batch_bytes_max) {
        let batch = without_hopeless(&lane, batch);
        if !batch.is_empty() {
            deliver(&producer, &lane, &mut place, batch).await;
        }
    }
}

/// What is still worth sending; the rest is refused.
fn without_hopeless(lane: &Lane, batch: Vec<Pending>) -> Vec<Pending> {
    let mut hopeful = Vec::with_capacity(batch.len());
    for pending in batch {
        match pending.collector.hopeless(lane.partition.partition) {
            Some(error) => pending.settle(Err(error)),
            None => hopeful.push(pending),
        }
    }
    hopeful
}

/// Delivers a batch, in parts where the leader finds it too large or some of its records invalid.
async fn deliver(producer: &Inner, lane: &Lane, place: &mut Option<Place>, batch: Vec<Pending>) {
    let mut parts = vec![batch];
    while let Some(mut part) = parts.pop() {
        let failure = match append(producer, lane, place, &part).await {
            Ok(appended) => {
                acknowledge(lane, &appended, part);
                continue;
            }
            Err(failure) => failure,
        };
        if failure.reach != Reach::Batch {
            give_up(lane, &failure, part, parts.into_iter().flatten());
            return;
        }
        let settled = !failure.outcome_open;
        if settled && failure.code == ErrorCode::MessageTooLarge && part.len() > 1 {
            let second = part.split_off(part.len() / 2);
            parts.push(second);
            parts.push(part);
        } else if settled && !failure.records.is_empty() && failure.records.len() < part.len() {
            let (bad, good): (Vec<_>, Vec<_>) = part
                .into_iter()
                .enumerate()
                .partition(|(at, _)| failure.records.contains_key(at));
            for (at, pending) in bad {
                refuse(lane, &failure, failure.records.get(&at).cloned().flatten(), pending);
            }
            parts.push(good.into_iter().map(|(_, pending)| pending).collect());
        } else {
            for (at, pending) in part.into_iter().enumerate() {
                refuse(lane, &failure, failure.records.get(&at).cloned().flatten(), pending);
            }
        }
    }
}

/// Refuses a batch, and what fails with it: the rest of it that was not sent, and what waits behind it.
fn give_up(lane: &Lane, failure: &Failure, sent: Vec<Pending>, not_sent: impl Iterator<Item = Pending>) {
    let partition = lane.partition.partition;
    let error = RecordError {
        code: failure.code,
        message: failure.message.clone(),
        partition: Some(partition),
        outcome_open: false,
    };
    for pending in sent {
        pending.collector.give_up(partition, &error);
        refuse(lane, failure, None, pending);
    }
    let reaches_all = failure.reach == Reach::Lane;
    let waiting = lane.take_waiting(|pending| reaches_all || pending.collector.hopeless(partition).is_some());
    for pending in not_sent.chain(waiting) {
        pending.collector.give_up(partition, &error);
        pending.settle(Err(error.clone()));
    }
}

fn acknowledge(lane: &Lane, appended: &Appended, batch: Vec<Pending>) {
    for (distance, pending) in (0i64..).zip(batch) {
        let acknowledged = Acknowledged {
            partition: lane.partition.partition,
            offset: appended.base_offset.plus(distance),
            timestamp: appended.append_time.unwrap_or(pending.timestamp),
        };
        pending.settle(Ok(acknowledged));
    }
}

fn refuse(lane: &Lane, failure: &Failure, message: Option<Arc<str>>, pending: Pending) {
    let error = RecordError {
        code: failure.code,
        message: message.or_else(|| failure.message.clone()),
        partition: Some(lane.partition.partition),
        outcome_open: failure.outcome_open,
    };
    pending.settle(Err(error));
}

/// Attempts to append a batch until that is done, refused for good, or takes too long.
async fn append(
    producer: &Inner,
    lane: &Lane,
    place: &mut Option<Place>,
    batch: &[Pending],
) -> Result<Appended, Failure> {
    let start = Instant::now();
    let deadline = batch.iter().map(|pending| pending.collector.deadline).min();
    let mut retry = Retry::within(deadline.unwrap_or(start).saturating_duration_since(start));
    let mut storage_retry: Option<Retry> = None;
    // The bytes of the batch, and the place in the sequence that stands in them.
    let mut sealed: Option<(Place, Bytes)> = None;
    let mut outcome_open = false;
    loop {
        let mut failure = match attempt(producer, lane, place, &mut sealed, batch, retry.remaining()).await {
            Ok(appended) => {
                if let Some((at, _)) = sealed {
                    let count =
                        i32::try_from(batch.len()).expect("a batch holds fewer records than an int32 can count");
                    *place = Some(Place {
                        next: at.next.plus(count),
                        ..at
                    });
                }
                return Ok(appended);
            }
            Err(failure) => failure,
        };
        outcome_open |= failure.outcome_open;
        let sequence_lost = is_sequence_lost(failure.code);
        let unknown_for_long = matches!(
            failure.code,
            ErrorCode::UnknownTopicOrPartition | ErrorCode::UnknownTopicId
        ) && start.elapsed() > UNKNOWN_TOPIC_WAIT_MAX;
        let again = (failure.is_retriable || (sequence_lost && !outcome_open)) && !unknown_for_long;
        if sequence_lost || (outcome_open && !again) {
            give_up_identity(producer, place, sealed.take());
        }
        let is_storage = failure.code == ErrorCode::KafkaStorageError;
        let paused = if is_storage {
            let wait = STORAGE_ERROR_WAIT_MAX.min(retry.remaining());
            again && storage_retry.get_or_insert_with(|| Retry::within(wait)).pause().await
        } else {
            again && retry.pause().await
        };
        if !paused {
            if outcome_open {
                give_up_identity(producer, place, sealed.take());
            }
            failure.outcome_open = outcome_open;
            failure.reach = match () {
                () if is_storage || unknown_for_long => Reach::Lane,
                () if again => Reach::Calls,
                () => Reach::Batch,
            };
            return Err(failure);
        }
        tracing::debug!(
            topic = %lane.partition.topic, partition = %lane.partition.partition, code = %failure.code,
            "sending a batch again"
        );
    }
}

/// What is sent from now on must not continue a sequence in which something may be missing.
fn give_up_identity(producer: &Inner, place: &mut Option<Place>, sealed: Option<(Place, Bytes)>) {
    if let Some((at, _)) = sealed {
        producer.identities.give_up(at.identity);
    }
    *place = None;
}

/// The leader does not know the producer as it knows itself.
fn is_sequence_lost(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::OutOfOrderSequenceNumber
            | ErrorCode::UnknownProducerId
            | ErrorCode::InvalidProducerEpoch
            | ErrorCode::InvalidProducerIdMapping
    )
}

/// One attempt. Seals the batch if that has not been done.
async fn attempt(
    producer: &Inner,
    lane: &Lane,
    place: &Option<Place>,
    sealed: &mut Option<(Place, Bytes)>,
    batch: &[Pending],
    left: Duration,
) -> Result<Appended, Failure> {
    let Inner {
        client,
        context,
        options,
        ..
    } = producer;
    let records = match sealed {
        Some((_, records)) => records.clone(),
        None => {
            let asked = timeout(left, producer.identities.current(client, context)).await;
            let identity = asked.map_err(|_| late("a producer id", left))??;
            let at = place.filter(|place| place.identity == identity).unwrap_or(Place {
                identity,
                next: Sequence::ZERO,
            });
            let records = seal(batch, at, options.compression)?;
            *sealed = Some((at, records.clone()));
            records
        }
    };
    let topic = timeout(left, client.topic(context, &lane.partition.topic)).await;
    let topic = topic.map_err(|_| late("the topic", left))??;
    let wait = left.min(client.options().call_wait_max);
    let partition = PartitionProduceData {
        index: lane.partition.partition.get(),
        records: Some(records),
        ..Default::default()
    };
    let data = TopicProduceData {
        name: Text::from(lane.partition.topic.as_str()),
        topic_id: topic.id,
        partition_data: vec![partition],
        ..Default::default()
    };
    let request = ProduceRequest {
        acks: ACKS_ALL,
        timeout_ms: i32::try_from(wait.as_millis()).unwrap_or(i32::MAX),
        topic_data: vec![data],
        ..Default::default()
    };
    let target = Target::LeaderOf(lane.partition.clone());
    let response = client
        .call_within(context, target.clone(), Request::from(request), wait)
        .await?;
    let Response::Produce(response) = response else {
        return Err(unexpected(ApiKey::Produce).into());
    };
    let row = only_row(lane, response)?;
    if row.error_code == ErrorCode::None.code() {
        return appended(lane, &row);
    }
    let error = Error::refused(
        row.error_code,
        row.error_message.as_deref(),
        format!("writing to {}", lane.partition),
    );
    client.doubt(&target, &error);
    Err(refused(error, &row))
}

/// Nothing was sent: the time was over before.
fn late(what: &str, waited: Duration) -> Failure {
    Failure {
        outcome_open: false,
        ..Failure::from(Error::Timeout {
            what: format!("asking for {what}"),
            waited,
        })
    }
}

fn seal(batch: &[Pending], at: Place, compression: model::record_batch::Compression) -> Result<Bytes, BatchError> {
    let producer = BatchProducer {
        id: at.identity.id,
        epoch: at.identity.epoch,
        base_sequence: Some(at.next),
    };
    let mut builder = BatchBuilder::new(BatchOptions {
        compression,
        producer: Some(producer),
        ..BatchOptions::default()
    });
    for (delta, pending) in (0i32..).zip(batch) {
        let record = &pending.record;
        let headers = record
            .headers
            .iter()
            .map(|header| (&header.key[..], header.value.as_deref()));
        builder.append_at(
            delta,
            pending.timestamp,
            record.key.as_deref(),
            record.value.as_deref(),
            headers,
        )?;
    }
    builder.build()
}

fn only_row(lane: &Lane, response: ProduceResponse) -> Result<PartitionProduceResponse, Error> {
    let index = lane.partition.partition.get();
    let rows = response
        .responses
        .into_iter()
        .flat_map(|topic| topic.partition_responses);
    rows.into_iter()
        .find(|row| row.index == index)
        .ok_or_else(|| Error::MalformedAnswer {
            api_key: ApiKey::Produce,
            lacking: format!("partition {}", lane.partition),
        })
}

fn appended(lane: &Lane, row: &PartitionProduceResponse) -> Result<Appended, Failure> {
    let lacking = || Error::MalformedAnswer {
        api_key: ApiKey::Produce,
        lacking: format!("the offset of what was written to {}", lane.partition),
    };
    Ok(Appended {
        base_offset: Offset::from_wire(row.base_offset).ok_or_else(lacking)?,
        append_time: Timestamp::from_wire(row.log_append_time_ms),
    })
}

fn refused(error: Error, row: &PartitionProduceResponse) -> Failure {
    let mut failure = Failure::from(error);
    // The batch is whole here: it was damaged on its way.
    failure.is_retriable |= failure.code == ErrorCode::CorruptMessage;
    // A leader that loses its office while it waits for the followers has appended already; and a duplicate that is
    // too old to be placed is in the log.
    failure.outcome_open |= matches!(
        failure.code,
        ErrorCode::NotLeaderOrFollower | ErrorCode::KafkaStorageError | ErrorCode::DuplicateSequenceNumber
    );
    if !failure.outcome_open {
        let to_blame = row.record_errors.iter().filter_map(|record| {
            let message = record.batch_index_error_message.as_deref().map(Arc::from);
            Some((usize::try_from(record.batch_index).ok()?, message))
        });
        failure.records = to_blame.collect();
    }
    failure
}
