//! From the changelog to a task that can go on: what the local store does not have is read from the topic.
//!
//! Where the changelog is empty the task is new: the place in the input where it begins is looked up once and is the first
//! record of the changelog, before any row is read. So a crash between the two changes nothing, and `latest` is the end of
//! the input as it was when the processor was deployed.

use std::time::Duration;

use client::{Error, FetchLimits, Isolation, Start};
use model::record_batch::Record;
use model::{ErrorCode, Offset, TopicId, TopicPartition};
use plugin::WindowAggregator;
use plugin::deployment::From;
use plugin::logs::Level;
use plugin::running::DeploymentError;
use streams::changelog::{ChangelogError, ChangelogKey, Progress};
use streams::task::Counters;
use streams::{ChangelogRecord, Restoration, RestoreError, Store, StoreError, Task, TaskEpoch, TaskOptions};
use tokio::time::{Instant, timeout_at};
use tracing::warn;

use super::changelog;
use super::local_store::LocalStore;
use super::run::{Halt, Job};
use crate::errors::describe;
use crate::plugins::{instance_settings, task_options};

/// How long a task waits for its module to be known before it backs off.
const MODULE_WAIT_MAX: Duration = Duration::from_secs(2);
/// What one fetch of the changelog may bring.
const FETCH_BYTES_MAX: usize = 4 << 20;

/// What is known of a changelog while it is read.
struct Replay {
    restoration: Restoration,
    /// A progress record has been seen, here or in the store.
    begun: bool,
    /// The only topic whose rows the state may be made of.
    input: TopicId,
}

/// Why a part of a changelog is not taken.
#[derive(Debug, thiserror::Error)]
enum TakeError {
    #[error("the state is of another input topic")]
    OtherInput,
    #[error(transparent)]
    Restore(#[from] RestoreError),
}

impl std::convert::From<ChangelogError> for TakeError {
    fn from(error: ChangelogError) -> Self {
        TakeError::Restore(error.into())
    }
}

impl Job {
    /// The task as its changelog left it, with its first record written if there was none.
    pub(super) async fn restore(&self) -> Result<Task, Halt> {
        self.changelog_topic().await?;
        let aggregator = self.aggregator().await?;
        let options = self.options()?;
        let (store, from, end) = self.store().await?;
        let replay = self.replay(options.clone(), store, from, end).await?;
        let Replay {
            mut restoration, begun, ..
        } = replay;
        if !begun {
            let (record, end) = self.begin(&options).await?;
            restoration.apply(record).map_err(halt)?;
            restoration.committed(end).map_err(halt)?;
        }
        restoration.finish(aggregator).map_err(halt)
    }

    /// Gives the changelog topic as many partitions as the input has.
    async fn changelog_topic(&self) -> Result<(), Halt> {
        let view = self.parts.broker.view();
        let name = self.changelog.topic.as_str();
        let topic = view.image.topics.by_name(name);
        // One that is made meanwhile makes this another task.
        let topic = topic.filter(|topic| topic.id == self.ids.changelog);
        let topic = topic.ok_or_else(|| Halt::Again(format!("topic {name} does not exist")))?;
        if topic.partitions.contains_key(&self.partition()) {
            return Ok(());
        }
        let input = view.image.topics.by_name(self.deployment.input.as_str());
        let count = input.map_or(0, |input| input.partitions.len());
        let count = u32::try_from(count).expect("partitions are counted by an int32");
        let parts = &self.parts;
        let created = parts
            .client
            .create_partitions(&parts.context, &self.changelog.topic, count, false)
            .await;
        match created {
            Ok(()) => self.log(
                Level::Info,
                format!("topic {name} now has {count} partitions, as the input"),
                Vec::new(),
            ),
            // Another task of the processor was faster.
            Err(error) if error.code() == ErrorCode::InvalidPartitions => {}
            Err(error) => return Err(Halt::Again(describe(&error))),
        }
        Ok(())
    }

    async fn aggregator(&self) -> Result<Box<dyn WindowAggregator>, Halt> {
        let modules = self.parts.modules.clone();
        let digest = self.deployment.module;
        let settings = instance_settings(
            &self.name,
            &self.deployment,
            self.partition(),
            self.logs.clone(),
            self.measurements.clone(),
        );
        let mut changes = self.parts.modules.changes();
        let until = Instant::now() + MODULE_WAIT_MAX;
        loop {
            let (modules, settings) = (modules.clone(), settings.clone());
            let made = self.on_pool(move || {
                let module = modules.load(&digest)?;
                Ok::<_, DeploymentError>(module.window_aggregator(settings)?)
            });
            match made.await? {
                Ok(aggregator) => return Ok(aggregator),
                // The topic of modules may be followed more slowly than that of deployments.
                Err(error @ DeploymentError::UnknownModule(_)) => {
                    let changed = timeout_at(until, changes.changed()).await;
                    self.check_commands()?;
                    if !matches!(changed, Ok(Ok(()))) {
                        return Err(Halt::Again(error.to_string()));
                    }
                }
                Err(other) => return Err(Halt::Stop(describe(&other))),
            }
        }
    }

    fn options(&self) -> Result<TaskOptions, Halt> {
        let mut options = task_options(&self.deployment).map_err(|error| Halt::Stop(error.to_string()))?;
        options.epoch = TaskEpoch::new(self.leader_epoch.get().unsigned_abs());
        Ok(options)
    }

    /// The local store, from where the changelog is to be read, and where the changelog ends.
    async fn store(&self) -> Result<(LocalStore, Offset, Offset), Halt> {
        let ids = self.ids;
        let start = self.bound(&self.changelog, Start::Earliest).await?;
        let end = self.bound(&self.changelog, Start::Latest).await?;
        let (stores, name, partition) = (self.parts.stores.clone(), self.name.clone(), self.partition());
        let opened = self.on_pool(move || {
            match stores.open(&name, partition, ids) {
                Ok(store) => match store.end() {
                    // Ahead of the changelog, or a piece of the changelog between them is gone.
                    Some(at) if at > end || at < start => {
                        warn!(plugin = %name, %partition, offset = %at, log_start = %start, log_end = %end, "a local store does not fit its changelog and is wiped");
                    }
                    _ => return Ok(store),
                },
                Err(error) => {
                    let error = describe(&error);
                    warn!(plugin = %name, %partition, error, "a local store cannot be opened and is made anew");
                }
            }
            stores.anew(&name, partition, ids).inspect_err(|_| stores.give_up())
        });
        let store = opened
            .await?
            .map_err(|error: StoreError| Halt::Again(describe(&error)))?;
        let from = store.end().unwrap_or(start);
        Ok((store, from, end))
    }

    async fn bound(&self, partition: &TopicPartition, bound: Start) -> Result<Offset, Halt> {
        let parts = &self.parts;
        let found = parts
            .client
            .position(&parts.context, partition, bound, Isolation::ReadUncommitted)
            .await;
        found.map_err(|error| Halt::Again(describe(&error)))
    }

    async fn replay(&self, options: TaskOptions, store: LocalStore, from: Offset, end: Offset) -> Result<Replay, Halt> {
        let input = self.ids.input;
        let mut replay = self
            .on_pool(move || {
                let begun = store.get(&ChangelogKey::Progress.encode())?.is_some();
                let restoration = Restoration::new(options, Box::new(store))?;
                Ok(Replay {
                    restoration,
                    begun,
                    input,
                })
            })
            .await?
            .map_err(halt)?;
        let limits = FetchLimits {
            // Batches come whole, so that no commit is taken in halves.
            records_max: usize::MAX,
            bytes_max: FETCH_BYTES_MAX,
            isolation: Isolation::ReadCommitted,
            ..FetchLimits::default()
        };
        let mut position = from;
        while position < end {
            self.check_commands()?;
            let parts = &self.parts;
            let start = Start::Offset(position);
            let fetched = parts
                .client
                .fetch(&parts.context, &self.changelog, start, &limits)
                .await;
            let fetched = fetched.map_err(|error| Halt::Again(describe(&error)))?;
            if fetched.next == position {
                return Err(Halt::Again(format!(
                    "{} ends at {position}, not at {end}",
                    self.changelog
                )));
            }
            position = fetched.next;
            let taken = self.on_pool(move || {
                replay.take(fetched.records, position)?;
                Ok(replay)
            });
            replay = taken.await?.map_err(|error| self.refusal(error))?;
        }
        Ok(replay)
    }

    fn refusal(&self, error: TakeError) -> Halt {
        match error {
            TakeError::OtherInput => Halt::Stop(format!(
                "topic {} was deleted and made anew, and the state belongs to the one before: delete the processor and \
                 deploy it anew",
                self.deployment.input
            )),
            TakeError::Restore(error) => halt(error),
        }
    }

    /// Where a new task begins, as the first record of its changelog; and the changelog's end behind it.
    async fn begin(&self, options: &TaskOptions) -> Result<(ChangelogRecord, Offset), Halt> {
        let position = self.start().await?;
        let progress = Progress {
            epoch: options.epoch,
            position,
            stream_time: None,
            windows: options.windows(),
            grace_ms: options.grace_ms(),
            emit: options.emit,
            counters: Counters::default(),
        };
        let record = ChangelogRecord {
            key: ChangelogKey::Progress.encode(),
            value: Some(progress.encode()),
        };
        let end = self.append(std::slice::from_ref(&record)).await?;
        let from = self.deployment.from;
        self.log(Level::Info, format!("begins at offset {position} ({from})"), Vec::new());
        Ok((record, end))
    }

    async fn start(&self) -> Result<Offset, Halt> {
        let start = match self.deployment.from {
            From::Earliest => Start::Earliest,
            From::Latest => Start::Latest,
            From::Time(time) => Start::Time(time),
            From::Offset(offset) => {
                let earliest = self.bound(&self.input, Start::Earliest).await?;
                return Ok(offset.max(earliest));
            }
        };
        self.bound(&self.input, start).await
    }
}

impl Replay {
    /// The store takes none of the records if one is about another input: it would hold that state under the ids of this
    /// task, and the next restore would read on behind the only record that tells them apart.
    fn take(&mut self, records: Vec<Record>, next: Offset) -> Result<(), TakeError> {
        for record in records {
            let (record, named) = changelog::read(record)?;
            if named.is_some_and(|named| !changelog::is_of(&named, self.input)) {
                return Err(TakeError::OtherInput);
            }
            self.begun |= record.key == ChangelogKey::Progress.encode();
            self.restoration.apply(record)?;
        }
        Ok(self.restoration.committed(next)?)
    }
}

fn halt(error: RestoreError) -> Halt {
    let reason = describe(&error);
    match error {
        RestoreError::Changelog(_) | RestoreError::OtherWindows => Halt::Stop(reason),
        // Who owns the partition now writes under a higher epoch; this node learns of it in a moment.
        RestoreError::Fenced { .. } => Halt::Again(reason),
        RestoreError::Store(_) => Halt::Store(reason),
    }
}

/// Whether the reading position lies before what is still there.
pub(super) fn behind(error: &Error, position: Offset) -> Option<Offset> {
    match error {
        Error::OutOfRange { log_start, .. } if position < *log_start => Some(*log_start),
        _ => None,
    }
}
