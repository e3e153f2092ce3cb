//! What is deployed, as the topic of deployments says: processors by name, and plugins by topic.
//!
//! Logs and measurements belong to the name of a processor: they outlive its versions, not its deletion.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use model::record_batch::Record;
use model::{Offset, TopicName};
use plugin::deployment::{DEPLOYMENTS_TOPIC, Deployment, DeploymentsKey, ProcessorName, TopicPlugins, decode_value};
use plugin::running::Deployed;
use plugin::{Digest, Logs, Measurements};
use tokio::sync::watch;
use tracing::{info, warn};

use super::follower::Follower;
use crate::stream_tasks::TaskBoard;

/// How long a new deployment is given to find where its tasks begin before it counts as followed all the same.
const SETTLE_WAIT_MAX: Duration = Duration::from_secs(5);

/// A processor, and what is kept under its name.
#[derive(Clone)]
pub(crate) struct Processor {
    pub(crate) deployed: Deployed,
    pub(crate) logs: Arc<Logs>,
    pub(crate) measurements: Arc<Measurements>,
}

#[derive(Default)]
struct State {
    processors: BTreeMap<ProcessorName, Processor>,
    topics: BTreeMap<TopicName, Arc<TopicPlugins>>,
    /// The end of the topic has been seen: what is not here is not deployed.
    complete: bool,
}

pub(crate) struct Deployments {
    state: RwLock<State>,
    followed: AtomicI64,
    /// Counts the changes.
    generation: watch::Sender<u64>,
    board: Arc<TaskBoard>,
}

impl Deployments {
    pub(super) fn new(board: Arc<TaskBoard>) -> Self {
        Deployments {
            state: RwLock::default(),
            followed: AtomicI64::new(0),
            generation: watch::Sender::new(0),
            board,
        }
    }

    pub(super) fn followed_to(&self) -> Offset {
        Offset::new(self.followed.load(Ordering::Acquire))
    }

    /// Changes with every change of what is deployed.
    pub(crate) fn generations(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }

    /// Every processor; `None` while the topic has not been read to its end.
    pub(crate) fn all(&self) -> Option<Vec<Processor>> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.complete.then(|| state.processors.values().cloned().collect())
    }

    pub(crate) fn processors(&self) -> Vec<Processor> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.processors.values().cloned().collect()
    }

    pub(crate) fn processor(&self, name: &ProcessorName) -> Option<Processor> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.processors.get(name).cloned()
    }

    pub(super) fn topic(&self, topic: &TopicName) -> Option<Arc<TopicPlugins>> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.topics.get(topic).cloned()
    }

    /// What uses a module, in words; of the plugins of topics those count of which `is_bound` says so.
    pub(super) fn users(&self, digest: &Digest, is_bound: impl Fn(&TopicName, &TopicPlugins) -> bool) -> Vec<String> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let processors = state.processors.values().filter_map(|processor| {
            let Deployed { name, deployment, .. } = &processor.deployed;
            (deployment.module == *digest).then(|| format!("processor {name}"))
        });
        let bound = state.topics.iter().filter(|(topic, plugins)| is_bound(topic, plugins));
        let topics = bound.flat_map(|(topic, plugins)| {
            let roles = [
                ("key serde", plugins.key_serde),
                ("value serde", plugins.value_serde),
                ("partitioner", plugins.partitioner),
            ];
            let used = roles.into_iter().filter(|(_, module)| *module == Some(*digest));
            used.map(move |(role, _)| format!("{role} of topic {topic}"))
        });
        processors.chain(topics).collect()
    }
}

impl State {
    fn apply(&mut self, record: &Record) -> Result<(), plugin::deployment::RecordError> {
        let key = DeploymentsKey::decode(record.key.as_deref().unwrap_or_default())?;
        match (key, &record.value) {
            (DeploymentsKey::Processor(name), None) => {
                info!(plugin = %name, "processor deleted");
                self.processors.remove(&name);
            }
            (DeploymentsKey::Processor(name), Some(value)) => {
                let deployment: Arc<Deployment> = Arc::new(decode_value(value)?);
                info!(plugin = %name, version = deployment.version, paused = deployment.paused, "processor deployed");
                let deployed = Deployed {
                    name: name.clone(),
                    deployment,
                    since: record.timestamp,
                };
                match self.processors.entry(name) {
                    std::collections::btree_map::Entry::Occupied(mut known) => known.get_mut().deployed = deployed,
                    std::collections::btree_map::Entry::Vacant(place) => {
                        place.insert(Processor {
                            deployed,
                            logs: Arc::default(),
                            measurements: Arc::default(),
                        });
                    }
                }
            }
            (DeploymentsKey::Topic(topic), None) => {
                self.topics.remove(&topic);
            }
            (DeploymentsKey::Topic(topic), Some(value)) => {
                self.topics.insert(topic, Arc::new(decode_value(value)?));
            }
        }
        Ok(())
    }
}

impl Follower for Deployments {
    fn reset(&self) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        // Without the topic nothing is deployed, and that is all there is to know.
        *state = State {
            complete: true,
            ..State::default()
        };
        drop(state);
        self.generation.send_modify(|generation| *generation += 1);
    }

    fn take(&self, records: Vec<Record>, at_end: bool) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let changed = !records.is_empty() || (at_end && !state.complete);
        for record in &records {
            if let Err(error) = state.apply(record) {
                warn!(topic = DEPLOYMENTS_TOPIC, offset = %record.offset, %error, "a record is passed over");
            }
        }
        state.complete |= at_end;
        drop(state);
        if changed {
            self.generation.send_modify(|generation| *generation += 1);
        }
    }

    /// A processor that begins at the end of its input must have found that end before those who deployed it write on.
    async fn settled(&self) {
        if self.all().is_none() {
            return;
        }
        let generation = *self.generation.borrow();
        let settled = self.board.settled(generation);
        if tokio::time::timeout(SETTLE_WAIT_MAX, settled).await.is_err() {
            info!("some tasks take long to start");
        }
    }

    fn followed(&self, next: Offset) {
        self.followed.store(next.get(), Ordering::Release);
    }
}
