//! Which tasks run: what is deployed, times the partitions of its input that this node leads.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use client::{CallContext, Client, Producer, ProducerOptions};
use model::{LeaderEpoch, PartitionIndex, TopicId, TopicPartition};
use plugin::running::{Deployed, TaskPhase};
use plugin::{Deployment, ProcessorName};
use tokio::sync::{Semaphore, watch};
use tokio::task::{Id, JoinError, JoinHandle, JoinSet};
use tracing::{error, warn};

use super::board::{Place, TaskBoard};
use super::changelog::Ids;
use super::local_store::Stores;
use super::run::{Command, Job, panic_text};
use crate::errors::describe;
use crate::node::{Broker, View};
use crate::plugins::{Deployments, Modules, Processor};

/// How long results may take to be acknowledged before the step is done again.
const DELIVERY_WAIT_MAX: Duration = Duration::from_secs(15);
/// What of all tasks together may wait for acknowledgement.
const DELIVERY_BYTES_MAX: usize = 16 << 20;

/// What tasks share.
pub(crate) struct TaskParts {
    pub(super) broker: Arc<Broker>,
    pub(super) client: Client,
    pub(super) context: CallContext,
    pub(super) producer: Producer,
    pub(super) modules: Arc<Modules>,
    pub(super) deployments: Arc<Deployments>,
    pub(super) board: Arc<TaskBoard>,
    pub(super) stores: Arc<Stores>,
    /// One permit for each core: so many tasks compute at a time.
    pub(super) cores: Arc<Semaphore>,
}

impl TaskParts {
    pub(crate) fn new(
        broker: Arc<Broker>,
        client: Client,
        context: CallContext,
        modules: Arc<Modules>,
        deployments: Arc<Deployments>,
        board: Arc<TaskBoard>,
        stores: Arc<Stores>,
    ) -> Self {
        let options = ProducerOptions {
            delivery_wait_max: DELIVERY_WAIT_MAX,
            buffer_bytes_max: DELIVERY_BYTES_MAX,
            ..ProducerOptions::default()
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        TaskParts {
            producer: Producer::new(client.clone(), context.clone(), options),
            broker,
            client,
            context,
            modules,
            deployments,
            board,
            stores,
            cores: Arc::new(Semaphore::new(cores)),
        }
    }
}

/// Starts and stops tasks for as long as the node runs.
pub(crate) struct Supervisor {
    stop: watch::Sender<bool>,
    supervising: JoinHandle<()>,
}

impl Supervisor {
    pub(crate) fn start(parts: TaskParts) -> Self {
        let (stop, stopped) = watch::channel(false);
        let supervising = tokio::spawn(Supervision::new(Arc::new(parts)).run(stopped));
        Supervisor { stop, supervising }
    }

    /// Stops every task after its step; after `wait` they are cut off.
    pub(crate) async fn stop(self, wait: Duration) {
        self.stop.send_replace(true);
        let mut supervising = self.supervising;
        if tokio::time::timeout(wait, &mut supervising).await.is_err() {
            warn!("some tasks take too long to stop and are cut off");
            supervising.abort();
            let _ = supervising.await;
        }
    }
}

type Key = (ProcessorName, PartitionIndex);

/// What one task is to be; where any of it changes, it is another task.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Identity {
    /// Not paused: pausing makes no other task.
    deployment: Deployment,
    input: TopicId,
    changelog: Option<TopicId>,
    leader_epoch: LeaderEpoch,
}

#[derive(Clone)]
struct Wanted {
    processor: Processor,
    identity: Identity,
}

impl Wanted {
    fn deployed(&self) -> &Deployed {
        &self.processor.deployed
    }

    fn command(&self) -> Command {
        if self.deployed().deployment.paused {
            Command::Pause
        } else {
            Command::Run
        }
    }
}

struct Run {
    wanted: Wanted,
    commands: watch::Sender<Command>,
    place: Arc<Place>,
    /// It was told to stop, and makes room for another when it has.
    is_stopping: bool,
    has_ended: bool,
}

impl Run {
    fn stop(&mut self, reason: Option<String>) {
        self.is_stopping = true;
        self.commands.send_replace(Command::Stop(reason));
    }
}

struct Supervision {
    parts: Arc<TaskParts>,
    runs: BTreeMap<Key, Run>,
    tasks: JoinSet<()>,
    keys: BTreeMap<Id, Key>,
    /// The processors whose local stores are kept; `None` before that has been looked at.
    kept: Option<Vec<ProcessorName>>,
}

impl Supervision {
    fn new(parts: Arc<TaskParts>) -> Self {
        Supervision {
            parts,
            runs: BTreeMap::new(),
            tasks: JoinSet::new(),
            keys: BTreeMap::new(),
            kept: None,
        }
    }

    async fn run(mut self, mut stopped: watch::Receiver<bool>) {
        let mut deployments = self.parts.deployments.generations();
        let mut views = self.parts.broker.views();
        loop {
            let generation = *deployments.borrow_and_update();
            let view = views.borrow_and_update().clone();
            if let Some(processors) = self.parts.deployments.all() {
                self.reconcile(&processors, &view);
                self.tidy(&processors).await;
                self.parts.board.set_reconciled(generation);
            }
            let changed = tokio::select! {
                changed = deployments.changed() => changed,
                changed = views.changed() => changed,
                Some(ended) = self.tasks.join_next_with_id() => { self.take_end(ended); Ok(()) }
                _ = stopped.wait_for(|stopped| *stopped) => break,
            };
            if changed.is_err() {
                break;
            }
        }
        for run in self.runs.values() {
            run.commands.send_replace(Command::Stop(None));
        }
        while self.tasks.join_next().await.is_some() {}
    }

    /// Brings what runs closer to what is wanted; what has to end first makes room when it has.
    fn reconcile(&mut self, processors: &[Processor], view: &View) {
        let wanted = self.wanted(processors, view);
        let names: BTreeMap<_, _> = processors
            .iter()
            .map(|processor| (&processor.deployed.name, &processor.deployed.deployment))
            .collect();
        let mut gone = Vec::new();
        for (key, run) in &mut self.runs {
            if wanted.contains_key(key) {
                continue;
            }
            let missing = names.get(&key.0).filter(|deployment| {
                let input = deployment.input.as_str();
                view.image.topics.by_name(input).is_none()
            });
            let reason = missing.map(|deployment| format!("topic {} was deleted", deployment.input));
            match (run.has_ended, reason) {
                (false, reason) => run.stop(reason),
                (true, Some(_)) => {}
                (true, None) => gone.push(key.clone()),
            }
        }
        for key in gone {
            self.runs.remove(&key);
            self.parts.board.remove(&key.0, key.1);
        }
        self.parts.board.keep_only(|name| names.contains_key(name));
        for (key, wanted) in wanted {
            self.bring_about(key, wanted);
        }
    }

    fn bring_about(&mut self, key: Key, wanted: Wanted) {
        let Some(run) = self.runs.get_mut(&key) else {
            return self.start(key, wanted);
        };
        let is_same = run.wanted.identity == wanted.identity;
        if run.has_ended {
            let is_asked_anew = run.wanted.deployed().since != wanted.deployed().since
                || run.wanted.deployed().deployment != wanted.deployed().deployment;
            if run.is_stopping || !is_same || is_asked_anew {
                self.start(key, wanted);
            }
        } else if run.is_stopping {
            // It starts anew when it has ended.
        } else if is_same {
            let command = wanted.command();
            run.wanted = wanted;
            run.commands.send_if_modified(|current| {
                let changes = *current != command;
                *current = command;
                changes
            });
        } else {
            run.stop(None);
        }
    }

    fn start(&mut self, key: Key, wanted: Wanted) {
        let (name, partition) = key.clone();
        let place = self.parts.board.place(&name, partition, TaskPhase::Restoring);
        let (commands, heard) = watch::channel(wanted.command());
        let Processor {
            deployed,
            logs,
            measurements,
        } = wanted.processor.clone();
        let of = |topic| TopicPartition { topic, partition };
        let job = Job {
            parts: self.parts.clone(),
            input: of(deployed.deployment.input.clone()),
            ids: Ids {
                changelog: wanted.identity.changelog.unwrap_or_default(),
                input: wanted.identity.input,
            },
            changelog: of(name.changelog_topic()),
            leader_epoch: wanted.identity.leader_epoch,
            deployment: deployed.deployment,
            name,
            logs,
            measurements,
            place: place.clone(),
            commands: heard,
        };
        let task = self.tasks.spawn(job.run());
        self.keys.insert(task.id(), key.clone());
        let run = Run {
            wanted,
            commands,
            place,
            is_stopping: false,
            has_ended: false,
        };
        self.runs.insert(key, run);
    }

    fn take_end(&mut self, ended: Result<(Id, ()), JoinError>) {
        let id = match &ended {
            Ok((id, ())) => *id,
            Err(error) => error.id(),
        };
        let run = self.keys.remove(&id).and_then(|key| self.runs.get_mut(&key));
        let Some(run) = run else { return };
        run.has_ended = true;
        if let Err(error) = ended {
            let reason = match error.try_into_panic() {
                Ok(panic) => format!("the task panicked: {}", panic_text(&*panic)),
                Err(_) => "the task was cut off".to_owned(),
            };
            error!(plugin = %run.wanted.deployed().name, reason, "task stopped");
            run.place.set_phase(TaskPhase::Stopped { reason });
        }
    }

    fn wanted(&self, processors: &[Processor], view: &View) -> BTreeMap<Key, Wanted> {
        let topics = &view.image.topics;
        let mut wanted = BTreeMap::new();
        for processor in processors {
            let Deployed { name, deployment, .. } = &processor.deployed;
            let Some(input) = topics.by_name(deployment.input.as_str()) else {
                self.show_missing(processor);
                continue;
            };
            let changelog = topics.by_name(name.changelog_topic().as_str()).map(|topic| topic.id);
            for (index, partition) in &input.partitions {
                if partition.leader != Some(self.parts.broker.id()) {
                    continue;
                }
                let identity = Identity {
                    deployment: Deployment {
                        paused: false,
                        ..Deployment::clone(deployment)
                    },
                    input: input.id,
                    changelog,
                    leader_epoch: partition.leader_epoch,
                };
                let processor = processor.clone();
                wanted.insert((name.clone(), *index), Wanted { processor, identity });
            }
        }
        wanted
    }

    /// A processor without an input has no task that could say so.
    fn show_missing(&self, processor: &Processor) {
        let Deployed { name, deployment, .. } = &processor.deployed;
        if self.parts.board.of(name).is_empty() {
            let reason = format!("topic {} does not exist", deployment.input);
            let phase = TaskPhase::Stopped { reason };
            self.parts.board.place(name, PartitionIndex::new(0), phase);
        }
    }

    /// Removes the local stores of processors that are gone, when their tasks have let go of them.
    async fn tidy(&mut self, processors: &[Processor]) {
        let deployed = processors.iter().map(|processor| &processor.deployed.name);
        let mut names: Vec<ProcessorName> = deployed
            .chain(self.runs.keys().map(|(name, _)| name))
            .cloned()
            .collect();
        names.sort();
        names.dedup();
        let has_lost = match &self.kept {
            None => true,
            Some(kept) => kept.iter().any(|name| !names.contains(name)),
        };
        self.kept = Some(names.clone());
        if !has_lost {
            return;
        }
        let stores = self.parts.stores.clone();
        let kept = tokio::task::spawn_blocking(move || stores.keep_only(&names)).await;
        if let Ok(Err(error)) = kept {
            warn!(
                error = describe(&error),
                "local stores of deleted processors not removed"
            );
        }
    }
}
