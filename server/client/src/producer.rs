//! Writes records: chooses their partitions, gathers them into batches, and delivers each batch once (KIP-98).
//!
//! ```text
//!   send ──► partitioner ──► lane of its partition ──► one batch in flight ──► leader, acks=all
//!                             │ what comes meanwhile        │
//!                             └─ makes the next batch ◄─────┘
//! ```
//! Invariants:
//! - A lane has at most one batch in flight, so its sequence needs no repair and order is that of the calls.
//! - A batch is sent again with the bytes it had, so a leader that has it answers with its first offset.
//! - When the fate of a batch stays open, the producer id is given up: what follows cannot be taken for what was lost.
//! - All records of a call have one deadline. Where a partition is given up, what a call still has for it fails, too: no
//!   record is written without those that the call brought before it.
//! - What waits is bounded by [`ProducerOptions::buffer_bytes_max`]; a sender waits for room.

mod delivery;
mod lane;
pub mod partitioner;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use model::record_batch::{Compression, RecordHeader};
use model::{ErrorCode, Offset, PartitionIndex, Timestamp, TopicName, TopicPartition};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::retry::retrying;
use crate::{CallContext, Client, Error, Topic};
use delivery::Identities;
use lane::{Collector, Lane, Pending};
use partitioner::Sticky;

/// What a record costs beside its bytes: its place in queues, and in a batch.
const RECORD_OVERHEAD_BYTES: usize = 64;
/// The buffer is counted in pieces of this size.
const PERMIT_BYTES: usize = 1024;
/// How many lanes are kept when they are empty.
const LANES_IDLE_MAX: usize = 10_000;
/// How many records one call may bring.
const SEND_RECORDS_MAX: usize = 1_000_000;

/// How a producer behaves.
#[derive(Clone, Debug)]
pub struct ProducerOptions {
    pub compression: Compression,
    /// Records are gathered up to this size before compression; a record that is larger goes alone.
    pub batch_bytes_max: usize,
    /// How long a record may take from the call that brings it to the last attempt (`delivery.timeout.ms`).
    pub delivery_wait_max: Duration,
    /// How much may wait for delivery (`buffer.memory`).
    pub buffer_bytes_max: usize,
    /// Whether an unknown topic may be created, where the cluster does that.
    pub auto_create_topics: bool,
}

impl Default for ProducerOptions {
    fn default() -> Self {
        ProducerOptions {
            compression: Compression::None,
            batch_bytes_max: 512 * 1024,
            delivery_wait_max: Duration::from_secs(30),
            buffer_bytes_max: 32 * 1024 * 1024,
            auto_create_topics: false,
        }
    }
}

/// A record to be written.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ProduceRecord {
    /// `None`: by the key as Java's producer chooses, and without a key wherever there is room.
    pub partition: Option<PartitionIndex>,
    /// `None`: now.
    pub timestamp: Option<Timestamp>,
    pub key: Option<Bytes>,
    /// `None`: a tombstone.
    pub value: Option<Bytes>,
    pub headers: Vec<RecordHeader>,
}

impl ProduceRecord {
    fn size_bytes(&self) -> usize {
        let length = |field: &Option<Bytes>| field.as_ref().map_or(0, Bytes::len);
        let headers: usize = self
            .headers
            .iter()
            .map(|header| header.key.len() + length(&header.value))
            .sum();
        RECORD_OVERHEAD_BYTES + length(&self.key) + length(&self.value) + headers
    }
}

/// A record that is written: every in-sync replica has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Acknowledged {
    pub partition: PartitionIndex,
    pub offset: Offset,
    /// The record's own, or the time of the append where the topic says so.
    pub timestamp: Timestamp,
}

/// Why a record is not written, or not known to be.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{code}{}", message.as_deref().map(|message| format!(" ({message})")).unwrap_or_default())]
pub struct RecordError {
    pub code: ErrorCode,
    pub message: Option<Arc<str>>,
    /// Where it was to go; `None` if it never came to a choice.
    pub partition: Option<PartitionIndex>,
    /// Whether it may be in the log all the same.
    pub outcome_open: bool,
}

impl RecordError {
    fn not_sent_in_time(partition: PartitionIndex) -> Self {
        RecordError {
            code: ErrorCode::RequestTimedOut,
            message: Some("its time was over before it could be sent".into()),
            partition: Some(partition),
            outcome_open: false,
        }
    }
}

/// What became of one record.
pub type Outcome = Result<Acknowledged, RecordError>;

/// An idempotent producer that acts for one principal. Clones share its sequences.
#[derive(Clone)]
pub struct Producer {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    client: Client,
    context: CallContext,
    options: ProducerOptions,
    room: Arc<Semaphore>,
    lanes: Mutex<BTreeMap<TopicPartition, Arc<Lane>>>,
    sticky: Mutex<BTreeMap<TopicName, Sticky>>,
    identities: Identities,
}

impl Producer {
    #[must_use]
    pub fn new(client: Client, context: CallContext, options: ProducerOptions) -> Self {
        let permits = (options.buffer_bytes_max / PERMIT_BYTES).clamp(1, Semaphore::MAX_PERMITS);
        let inner = Inner {
            client,
            context,
            options,
            room: Arc::new(Semaphore::new(permits)),
            lanes: Mutex::default(),
            sticky: Mutex::default(),
            identities: Identities::default(),
        };
        Producer { inner: Arc::new(inner) }
    }

    /// Writes records to a topic and waits until the fate of each is known; outcomes stand in the order of the records.
    /// Records of one partition keep their order, also between calls that start one after the other. A caller that
    /// stops waiting does not take back what it has brought.
    ///
    /// # Errors
    /// If the topic is unknown or may not be looked at, or there are too many records; then none is written.
    pub async fn send(&self, topic: &TopicName, records: Vec<ProduceRecord>) -> Result<Vec<Outcome>, Error> {
        if records.len() > SEND_RECORDS_MAX {
            return Err(Error::Invalid(format!(
                "{} records in one call, at most {SEND_RECORDS_MAX} are taken",
                records.len()
            )));
        }
        let deadline = Instant::now() + self.inner.options.delivery_wait_max;
        let found = self.inner.topic(topic).await?;
        let collector = Arc::new(Collector::new(records.len(), deadline));
        for (index, record) in records.into_iter().enumerate() {
            let at = (collector.clone(), index);
            match self.inner.choose(&found, &record).and_then(|partition| {
                let hopeless = collector.hopeless(partition);
                hopeless.map_or(Ok(partition), Err)
            }) {
                Err(error) => collector.settle(index, Err(error)),
                Ok(partition) => match timeout_at(deadline, self.inner.make_room(&record)).await {
                    Ok(room) => self.inner.enqueue(&found.name, partition, record, room, at),
                    Err(_) => collector.settle(index, Err(RecordError::not_sent_in_time(partition))),
                },
            }
        }
        Ok(collector.outcomes().await)
    }
}

impl Inner {
    async fn topic(&self, name: &TopicName) -> Result<Arc<Topic>, Error> {
        if !self.options.auto_create_topics {
            return self.client.topic(&self.context, name).await;
        }
        match self.client.topic(&self.context, name).await {
            Err(error) if error.code() == ErrorCode::UnknownTopicOrPartition => {
                let ask = || self.client.ask_topic(&self.context, name, true);
                retrying(self.options.delivery_wait_max, ask).await
            }
            known => known,
        }
    }

    fn choose(&self, topic: &Topic, record: &ProduceRecord) -> Result<PartitionIndex, RecordError> {
        let count = i32::try_from(topic.partitions.len()).unwrap_or(i32::MAX);
        let unknown = |partition| RecordError {
            code: ErrorCode::UnknownTopicOrPartition,
            message: Some(format!("topic {} has {count} partitions", topic.name).into()),
            partition,
            outcome_open: false,
        };
        match (record.partition, &record.key) {
            (Some(partition), _) if topic.partition(partition).is_some() => Ok(partition),
            (Some(partition), _) => Err(unknown(Some(partition))),
            (None, Some(key)) => partitioner::for_key(key, count).ok_or_else(|| unknown(None)),
            (None, None) => {
                let mut sticky = self.sticky.lock().unwrap_or_else(PoisonError::into_inner);
                if sticky.len() >= LANES_IDLE_MAX {
                    sticky.clear();
                }
                let sticky = sticky.entry(topic.name.clone()).or_default();
                sticky.next(topic, record.size_bytes()).ok_or_else(|| unknown(None))
            }
        }
    }

    /// Waits until the buffer has room; a record that is larger than the whole of it takes all.
    async fn make_room(&self, record: &ProduceRecord) -> OwnedSemaphorePermit {
        let total = (self.options.buffer_bytes_max / PERMIT_BYTES).clamp(1, Semaphore::MAX_PERMITS);
        let wanted = record.size_bytes().div_ceil(PERMIT_BYTES).clamp(1, total);
        let wanted = u32::try_from(wanted).unwrap_or(u32::MAX);
        self.room
            .clone()
            .acquire_many_owned(wanted)
            .await
            .expect("the semaphore is never closed")
    }

    fn enqueue(
        self: &Arc<Self>,
        topic: &TopicName,
        partition: PartitionIndex,
        record: ProduceRecord,
        room: OwnedSemaphorePermit,
        (collector, index): (Arc<Collector>, usize),
    ) {
        let timestamp = record.timestamp.unwrap_or_else(now);
        let size_bytes = record.size_bytes();
        let lane = self.lane(TopicPartition {
            topic: topic.clone(),
            partition,
        });
        let pending = Pending {
            record,
            timestamp,
            size_bytes,
            collector,
            index,
            _room: room,
        };
        if lane.push(pending) {
            tokio::spawn(delivery::drive(self.clone(), lane));
        }
    }

    fn lane(&self, partition: TopicPartition) -> Arc<Lane> {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lane) = lanes.get(&partition) {
            return lane.clone();
        }
        if lanes.len() >= LANES_IDLE_MAX {
            // A lane that nobody else holds is empty; with it goes its place in the sequence, so the id goes, too.
            lanes.retain(|_, lane| Arc::strong_count(lane) > 1);
            self.identities.give_up_current();
        }
        let lane = Arc::new(Lane::new(partition.clone()));
        lanes.insert(partition, lane.clone());
        lane
    }
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
