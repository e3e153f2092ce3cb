//! The plugins between a topic and those who read and write it by HTTP.
//!
//! A call takes the items of many records, never one, and runs on a thread that may wait. Instances are kept for the next
//! request, so many for each topic and role; they are made for one binding and dropped when it changes. A call that traps
//! is made again with each half of its items until the bad one is alone: the others are served.

mod parts;
mod pool;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use client::Topic;
use model::{Offset, PartitionIndex, Timestamp, TopicName};
use plugin::measurements::{Measurement, SeriesName};
use plugin::partitioner;
use plugin::running::DeploymentError;
use plugin::serde::{Datum, Part};
use plugin::{Batch, BatchBuilder, Digest, Partitioner, RunningPlugins, Serde, TopicPlugins};
use tokio::sync::Semaphore;

use crate::deployments::blocking;
pub(crate) use parts::ItemError;
use parts::in_parts;
use pool::{Binding, Pool};

/// How many calls into plugins are made at the same time, over all topics.
const CALLS_MAX: usize = 8;
/// For how many topics and roles instances are kept; past it, those that nobody uses are dropped.
const POOLS_MAX: usize = 64;

/// What a plugin does for a topic.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Role {
    KeySerde,
    ValueSerde,
    Partitioner,
}

impl Role {
    pub(crate) const ALL: [Role; 3] = [Role::KeySerde, Role::ValueSerde, Role::Partitioner];

    /// The name of the field that binds it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Role::KeySerde => "key_serde",
            Role::ValueSerde => "value_serde",
            Role::Partitioner => "partitioner",
        }
    }

    pub(crate) const fn of(self, plugins: &TopicPlugins) -> Option<Digest> {
        match self {
            Role::KeySerde => plugins.key_serde,
            Role::ValueSerde => plugins.value_serde,
            Role::Partitioner => plugins.partitioner,
        }
    }

    pub(crate) const fn serde_of(part: Part) -> Self {
        match part {
            Part::Key => Role::KeySerde,
            Part::Value => Role::ValueSerde,
        }
    }

    const fn part(self) -> Part {
        match self {
            Role::KeySerde => Part::Key,
            Role::ValueSerde | Role::Partitioner => Part::Value,
        }
    }

    /// Makes an instance and drops it: whether that can be done. Waits for the disk, and may compile.
    pub(crate) fn start(
        self,
        plugins: &dyn RunningPlugins,
        topic: &TopicName,
        digest: Digest,
        config: BTreeMap<String, String>,
    ) -> Result<(), DeploymentError> {
        let binding = Binding {
            digest,
            config: Arc::new(config),
        };
        match self {
            Role::KeySerde | Role::ValueSerde => Pool::<dyn Serde>::new(topic, binding).make(plugins).map(drop),
            Role::Partitioner => Pool::<dyn Partitioner>::new(topic, binding).make(plugins).map(drop),
        }
    }
}

/// A topic, and what a plugin does for it.
type Place = (TopicName, Role);

/// What the plugins of one topic and role have measured.
pub(crate) type Measured = (Place, Vec<(SeriesName, Measurement)>);

pub(crate) struct Coders {
    plugins: Arc<dyn RunningPlugins>,
    calls: Arc<Semaphore>,
    serdes: Pools<dyn Serde>,
    partitioners: Pools<dyn Partitioner>,
}

struct Pools<T: ?Sized>(Mutex<BTreeMap<Place, Arc<Pool<T>>>>);

/// A plugin as it was bound at one time: who asks in several steps asks the same one.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    topic: TopicName,
    role: Role,
    binding: Binding,
}

/// A plugin that is bound and cannot be called at all.
#[derive(Debug, thiserror::Error)]
#[error("the {} of topic {topic} cannot be run: {reason}", role.name())]
pub(crate) struct Unusable {
    topic: TopicName,
    role: Role,
    reason: String,
}

impl Coders {
    pub(crate) fn new(plugins: Arc<dyn RunningPlugins>) -> Self {
        Coders {
            plugins,
            calls: Arc::new(Semaphore::new(CALLS_MAX)),
            serdes: Pools(Mutex::default()),
            partitioners: Pools(Mutex::default()),
        }
    }

    /// What is bound to the topic in this role now.
    pub(crate) fn bound(&self, topic: &TopicName, role: Role) -> Option<Bound> {
        let plugins = self.plugins.topic_plugins(topic)?;
        let binding = Binding {
            digest: role.of(&plugins)?,
            config: Arc::new(plugins.config.clone()),
        };
        Some(Bound {
            topic: topic.clone(),
            role,
            binding,
        })
    }

    /// The bytes to be stored for what was sent, in order.
    pub(crate) async fn encode(
        &self,
        bound: &Bound,
        items: Vec<Datum>,
    ) -> Result<Vec<Result<Bytes, ItemError>>, Unusable> {
        let (topic, part) = (bound.topic.clone(), bound.role.part());
        let encode = move |serde: &mut (dyn Serde + 'static)| {
            let sizes: Vec<usize> = items.iter().map(datum_bytes).collect();
            in_parts(&sizes, |range| serde.encode(topic.as_str(), part, &items[range]))
        };
        self.call(&self.serdes, bound, encode).await
    }

    /// What readers see of what is stored, in order.
    pub(crate) async fn decode(
        &self,
        bound: &Bound,
        items: Vec<Bytes>,
    ) -> Result<Vec<Result<Datum, ItemError>>, Unusable> {
        let (topic, part) = (bound.topic.clone(), bound.role.part());
        let decode = move |serde: &mut (dyn Serde + 'static)| {
            let sizes: Vec<usize> = items.iter().map(Bytes::len).collect();
            in_parts(&sizes, |range| serde.decode(topic.as_str(), part, &items[range]))
        };
        self.call(&self.serdes, bound, decode).await
    }

    /// The partitions that rows go to, in order, where the plugin makes a choice.
    pub(crate) async fn partition(
        &self,
        bound: &Bound,
        topic: &Topic,
        rows: Vec<NewRow>,
    ) -> Result<Vec<Result<Option<PartitionIndex>, ItemError>>, Unusable> {
        let offline = topic.partitions.iter().filter(|partition| partition.leader.is_none());
        let told = partitioner::Topic {
            name: topic.name.clone(),
            partitions: u32::try_from(topic.partitions.len()).unwrap_or(u32::MAX),
            offline: offline.map(|partition| partition.index).collect(),
        };
        let choose = move |partitioner: &mut (dyn Partitioner + 'static)| {
            let sizes: Vec<usize> = rows.iter().map(NewRow::size_bytes).collect();
            in_parts(&sizes, |range| {
                let chosen = partitioner.partition(&told, &batch(&rows, range))?;
                Ok(chosen
                    .into_iter()
                    .map(|choice| within(choice, told.partitions))
                    .collect())
            })
        };
        self.call(&self.partitioners, bound, choose).await
    }

    pub(crate) fn measured(&self) -> Vec<Measured> {
        let mut measured = self.serdes.measured();
        measured.extend(self.partitioners.measured());
        measured
    }

    async fn call<T: ?Sized + pool::Instance, R: Send + 'static>(
        &self,
        pools: &Pools<T>,
        bound: &Bound,
        work: impl FnOnce(&mut T) -> R + Send + 'static,
    ) -> Result<R, Unusable> {
        let pool = pools.of(bound);
        let place = pool.room().acquire_owned().await;
        let turn = self.calls.clone().acquire_owned().await;
        let plugins = self.plugins.clone();
        // Who no longer waits for the answer leaves the call to its end, and its place with it.
        let done = blocking(move || {
            let _held = (place, turn);
            pool.with(&*plugins, work)
        });
        let reason = match done.await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => error.to_string(),
            Err(problem) => problem.detail().to_owned(),
        };
        Err(Unusable {
            topic: bound.topic.clone(),
            role: bound.role,
            reason,
        })
    }
}

impl<T: ?Sized + pool::Instance> Pools<T> {
    /// The pool of this binding; one of another binding is let go.
    fn of(&self, bound: &Bound) -> Arc<Pool<T>> {
        let place = (bound.topic.clone(), bound.role);
        let mut pools = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = pools.get(&place).filter(|pool| *pool.binding() == bound.binding) {
            return pool.clone();
        }
        if pools.len() >= POOLS_MAX {
            pools.retain(|_, pool| Arc::strong_count(pool) > 1);
        }
        let pool = Arc::new(Pool::new(&place.0, bound.binding.clone()));
        pools.insert(place, pool.clone());
        pool
    }

    fn measured(&self) -> Vec<Measured> {
        let pools = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let pools = pools.iter();
        pools.map(|(place, pool)| (place.clone(), pool.measured())).collect()
    }
}

/// A row that is about to be written.
#[derive(Clone, Debug)]
pub(crate) struct NewRow {
    pub(crate) timestamp: Timestamp,
    pub(crate) key: Option<Bytes>,
    pub(crate) value: Option<Bytes>,
    pub(crate) headers: Vec<model::record_batch::RecordHeader>,
}

impl NewRow {
    fn size_bytes(&self) -> usize {
        let length = |bytes: &Option<Bytes>| bytes.as_ref().map_or(0, Bytes::len);
        let headers = self.headers.iter();
        let headers: usize = headers.map(|header| header.key.len() + length(&header.value)).sum();
        length(&self.key) + length(&self.value) + headers
    }
}

/// Rows have no offsets yet: they are counted from 0.
fn batch(rows: &[NewRow], range: Range<usize>) -> Batch {
    let mut builder = BatchBuilder::new(0, PartitionIndex::new(0), Offset::new(0));
    for (offset, row) in (0..).zip(&rows[range]) {
        let headers = row.headers.iter();
        let headers = headers.map(|header| (&header.key[..], header.value.as_deref()));
        builder
            .push(
                Offset::new(offset),
                row.timestamp,
                row.key.as_deref(),
                row.value.as_deref(),
                headers,
            )
            .expect("the rows of a request are fewer and smaller than a batch may have");
    }
    builder.finish()
}

fn within(choice: Option<PartitionIndex>, partitions: u32) -> Result<Option<PartitionIndex>, String> {
    match choice {
        Some(chosen) if u32::try_from(chosen.get()).is_ok_and(|chosen| chosen < partitions) => Ok(choice),
        Some(chosen) => Err(format!("partition {chosen} is chosen, there are {partitions}")),
        None => Ok(None),
    }
}

fn datum_bytes(datum: &Datum) -> usize {
    match datum {
        Datum::Json(text) | Datum::Text(text) => text.len(),
        Datum::Raw(bytes) => bytes.len(),
    }
}
