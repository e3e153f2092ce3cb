//! One run of a task: restores, then reads, folds and commits until it is told to stop or cannot go on.
//!
//! ```text
//! restoring ──► running ◄──► paused
//!     ▲            │
//!     └ backing off┘         stopped: only a new run begins anew
//! ```

use std::sync::Arc;
use std::time::Duration;

use client::{FetchLimits, Fetched, Isolation, Start};
use model::{LeaderEpoch, Offset, PartitionIndex, TopicPartition};
use plugin::logs::Level;
use plugin::running::TaskPhase;
use plugin::{Deployment, Logs, Measurements, ProcessorName};
use streams::{Effect, Task};
use tokio::sync::watch;
use tracing::{error, info, warn};

use super::back_off::BackOff;
use super::board::Place;
use super::changelog::Ids;
use super::restore::behind;
use super::rows::{Step, rows_per_step, steps};
use super::supervisor::TaskParts;
use crate::errors::describe;

/// How long one fetch waits for new rows.
const FETCH_WAIT: Duration = Duration::from_secs(5);
/// What one fetch may bring.
const FETCH_BYTES_MAX: usize = 1 << 20;
const FETCH_RECORDS_MAX: usize = 10_000;
/// How often a paused task looks how far its input has grown.
const PAUSED_LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// What a run is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Run,
    Pause,
    /// With a reason the task shows as stopped.
    Stop(Option<String>),
}

/// Why a run does not go on as it is.
#[derive(Debug)]
pub(super) enum Halt {
    /// It was told to stop.
    Asked(Option<String>),
    /// Something that may pass: restore and try again.
    Again(String),
    /// The local store failed: restore without what it holds.
    Store(String),
    /// For good.
    Stop(String),
}

/// A call of a task.
type Call = Box<dyn FnOnce(&mut Task, &mut Vec<Effect>) + Send>;

/// What a call asked for beside its commits.
#[derive(Default)]
struct Asked {
    /// The changelog's end behind the last commit.
    end: Option<Offset>,
    back_off: Option<(Duration, String)>,
    stop: Option<String>,
    store_failed: Option<String>,
}

/// What one run needs.
pub(super) struct Job {
    pub(super) parts: Arc<TaskParts>,
    pub(super) name: ProcessorName,
    pub(super) deployment: Arc<Deployment>,
    pub(super) input: TopicPartition,
    pub(super) changelog: TopicPartition,
    pub(super) ids: Ids,
    pub(super) leader_epoch: LeaderEpoch,
    pub(super) logs: Arc<Logs>,
    pub(super) measurements: Arc<Measurements>,
    pub(super) place: Arc<Place>,
    pub(super) commands: watch::Receiver<Command>,
}

impl Job {
    pub(super) fn partition(&self) -> PartitionIndex {
        self.input.partition
    }

    /// Returns when the run has ended; the board says how.
    pub(super) async fn run(mut self) {
        let mut back_off = BackOff::default();
        let version = self.deployment.version;
        self.log(Level::Info, format!("version {version} starts"), Vec::new());
        loop {
            let halt = match self.go(&mut back_off).await {
                Halt::Store(reason) => self.wipe(reason).await,
                halt => halt,
            };
            let halt = match halt {
                Halt::Again(reason) => {
                    let wait = back_off.next();
                    warn!(plugin = %self.name, partition = %self.partition(), reason, wait_ms = wait.as_millis(), "task backs off");
                    self.log(
                        Level::Warn,
                        format!("backs off for {} ms: {reason}", wait.as_millis()),
                        Vec::new(),
                    );
                    self.place.set_phase(TaskPhase::BackingOff { reason });
                    match self.pause_for(wait).await {
                        Ok(()) => continue,
                        Err(halt) => halt,
                    }
                }
                halt => halt,
            };
            match halt {
                Halt::Asked(None) => {
                    info!(plugin = %self.name, partition = %self.partition(), "task ended");
                    self.log(Level::Info, format!("version {version} ends"), Vec::new());
                }
                Halt::Asked(Some(reason)) | Halt::Stop(reason) | Halt::Again(reason) | Halt::Store(reason) => {
                    self.stop(reason);
                }
            }
            return;
        }
    }

    /// From a restore to the next trouble.
    async fn go(&mut self, back_off: &mut BackOff) -> Halt {
        self.place.set_phase(TaskPhase::Restoring);
        let task = match self.restore().await {
            Ok(task) => task,
            Err(halt) => return halt,
        };
        let position = task.position();
        info!(plugin = %self.name, partition = %self.partition(), offset = %position, "task restored");
        self.log(
            Level::Info,
            format!("restored, goes on at offset {position}"),
            Vec::new(),
        );
        match self.work(task, back_off).await {
            Ok(never) => match never {},
            Err(halt) => halt,
        }
    }

    /// The local store is a cache of the changelog: one that fails is emptied, and the task tried again after a wait, which
    /// grows while nothing is done in between. Where it cannot even be emptied, its database is opened anew.
    async fn wipe(&self, reason: String) -> Halt {
        warn!(plugin = %self.name, partition = %self.partition(), reason, "a local store failed and is wiped");
        let (stores, name) = (self.parts.stores.clone(), self.name.clone());
        let (partition, ids) = (self.partition(), self.ids);
        let wiped = self.on_pool(move || {
            let wiped = stores.anew(&name, partition, ids).inspect_err(|_| stores.give_up());
            wiped.map(drop)
        });
        match wiped.await {
            Err(halt) => halt,
            Ok(Err(error)) => Halt::Again(describe(&error)),
            Ok(Ok(())) => Halt::Again(reason),
        }
    }

    async fn work(&mut self, task: Task, back_off: &mut BackOff) -> Result<std::convert::Infallible, Halt> {
        let mut refused = 0;
        self.place.show(&task, refused);
        self.wait_while_paused(task.position()).await?;
        self.place.set_phase(TaskPhase::Running);
        let resume: Call = Box::new(|task, effects| task.resume(effects));
        let mut task = self.advance(task, resume, &mut refused).await?;
        let rows_max = rows_per_step(&task.options().windows());
        loop {
            self.wait_while_paused(task.position()).await?;
            let position = task.position();
            let Some(fetched) = self.fetch(position).await? else {
                continue;
            };
            let fetched = match fetched {
                Ok(fetched) => fetched,
                Err(error) => {
                    let Some(start) = behind(&error, position) else {
                        return Err(Halt::Again(describe(&error)));
                    };
                    let lost = start.since(position);
                    warn!(plugin = %self.name, partition = %self.partition(), offset = %position, lost, "rows were deleted before they were read");
                    let text = format!("{lost} rows from offset {position} on were deleted before they were read");
                    self.log(Level::Error, text, Vec::new());
                    let over = steps(self.partition(), position, Vec::new(), start, rows_max);
                    task = self.fold(task, over, &mut refused).await?;
                    continue;
                }
            };
            self.place.set_end(fetched.end);
            let Fetched { records, next, .. } = fetched;
            let cut = steps(self.partition(), position, records, next, rows_max);
            task = self.fold(task, cut, &mut refused).await?;
            back_off.reset();
        }
    }

    /// Step by step; a command is heard between two of them.
    async fn fold(&mut self, mut task: Task, steps: Vec<Step>, refused: &mut u64) -> Result<Task, Halt> {
        for Step { batch, next } in steps {
            self.wait_while_paused(task.position()).await?;
            let on_rows: Call = Box::new(move |task, effects| task.on_rows(&batch, next, effects));
            task = self.advance(task, on_rows, refused).await?;
            if task.position() < next {
                // It has backed off inside the step: what is left is read anew.
                break;
            }
        }
        Ok(task)
    }

    /// One call of the task off the async threads, and all that it asks for.
    async fn advance(&mut self, mut task: Task, call: Call, refused: &mut u64) -> Result<Task, Halt> {
        let mut call = call;
        loop {
            let (called, effects) = self.call(task, call).await?;
            let asked = self.execute(effects, refused).await?;
            task = self.note(called, asked.end).await?;
            self.place.show(&task, *refused);
            if let Some(reason) = asked.store_failed {
                return Err(Halt::Store(reason));
            }
            if let Some(reason) = asked.stop {
                return Err(Halt::Stop(reason));
            }
            let Some((wait, reason)) = asked.back_off else {
                return Ok(task);
            };
            warn!(plugin = %self.name, partition = %self.partition(), reason, "the plugin backs off");
            self.log(
                Level::Warn,
                format!("backs off for {} ms: {reason}", wait.as_millis()),
                Vec::new(),
            );
            self.place.set_phase(TaskPhase::BackingOff { reason });
            self.pause_for(wait).await?;
            self.place.set_phase(TaskPhase::Running);
            call = Box::new(|task, effects| task.resume(effects));
        }
    }

    async fn call(&self, mut task: Task, call: Call) -> Result<(Task, Vec<Effect>), Halt> {
        self.on_pool(move || {
            let mut effects = Vec::new();
            call(&mut task, &mut effects);
            (task, effects)
        })
        .await
    }

    async fn execute(&self, effects: Vec<Effect>, refused: &mut u64) -> Result<Asked, Halt> {
        let mut asked = Asked::default();
        for effect in effects {
            match effect {
                Effect::Commit(commit) => {
                    let committed = self.carry_out(commit).await?;
                    *refused += committed.refused;
                    asked.end = Some(committed.end);
                }
                Effect::BackOff { wait, reason, .. } => asked.back_off = Some((wait, reason)),
                Effect::Stop { reason } => asked.stop = Some(reason),
                Effect::StoreFailed { reason } => asked.store_failed = Some(reason),
            }
        }
        Ok(asked)
    }

    /// The store takes the changes of the whole step, so all of its commits must be in the changelog.
    async fn note(&self, mut task: Task, end: Option<Offset>) -> Result<Task, Halt> {
        let Some(end) = end else { return Ok(task) };
        let stores = self.parts.stores.clone();
        let written = self.on_pool(move || {
            let written = task.on_committed(end).inspect_err(|_| stores.give_up());
            written.map(|()| task)
        });
        written.await?.map_err(|error| Halt::Again(describe(&error)))
    }

    /// `None`: a command came first.
    async fn fetch(&mut self, position: Offset) -> Result<Option<Result<Fetched, client::Error>>, Halt> {
        let limits = FetchLimits {
            records_max: FETCH_RECORDS_MAX,
            bytes_max: FETCH_BYTES_MAX,
            wait: FETCH_WAIT,
            isolation: Isolation::ReadCommitted,
        };
        let parts = self.parts.clone();
        let input = self.input.clone();
        let fetch = parts
            .client
            .fetch(&parts.context, &input, Start::Offset(position), &limits);
        tokio::select! {
            fetched = fetch => Ok(Some(fetched)),
            changed = self.commands.changed() => match changed {
                Ok(()) => Ok(None),
                Err(_) => Err(Halt::Asked(None)),
            },
        }
    }

    async fn wait_while_paused(&mut self, position: Offset) -> Result<(), Halt> {
        self.check_commands()?;
        if *self.commands.borrow_and_update() != Command::Pause {
            return Ok(());
        }
        info!(plugin = %self.name, partition = %self.partition(), offset = %position, "task paused");
        self.log(Level::Info, format!("paused at offset {position}"), Vec::new());
        self.place.set_phase(TaskPhase::Paused);
        while *self.commands.borrow_and_update() == Command::Pause {
            if let Ok(end) = self.input_end().await {
                self.place.set_end(end);
            }
            // Whether time or a command ends the wait is looked at above.
            let _ = tokio::time::timeout(PAUSED_LOOK_INTERVAL, self.commands.changed()).await;
            self.check_commands()?;
        }
        self.log(Level::Info, "resumed".to_owned(), Vec::new());
        self.place.set_phase(TaskPhase::Running);
        Ok(())
    }

    async fn input_end(&self) -> Result<Offset, client::Error> {
        let parts = &self.parts;
        let (context, isolation) = (&parts.context, Isolation::ReadCommitted);
        parts
            .client
            .position(context, &self.input, Start::Latest, isolation)
            .await
    }

    async fn pause_for(&mut self, wait: Duration) -> Result<(), Halt> {
        let until = tokio::time::Instant::now() + wait;
        loop {
            self.check_commands()?;
            tokio::select! {
                () = tokio::time::sleep_until(until) => return Ok(()),
                changed = self.commands.changed() => changed.map_err(|_| Halt::Asked(None))?,
            }
        }
    }

    pub(super) fn check_commands(&self) -> Result<(), Halt> {
        match (&*self.commands.borrow(), self.commands.has_changed()) {
            (Command::Stop(reason), _) => Err(Halt::Asked(reason.clone())),
            (_, Err(_)) => Err(Halt::Asked(None)),
            _ => Ok(()),
        }
    }

    /// Runs something that computes or waits for the disk on a thread for that, no more at a time than there are cores.
    ///
    /// # Errors
    /// If it panics: then the task stops, and nothing else.
    pub(super) async fn on_pool<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Halt> {
        let permit = self.parts.cores.clone().acquire_owned().await;
        let worked = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            work()
        });
        worked.await.map_err(|error| match error.try_into_panic() {
            Ok(panic) => Halt::Stop(format!("the task panicked: {}", panic_text(&*panic))),
            Err(_) => Halt::Asked(None),
        })
    }

    fn stop(&self, reason: String) {
        error!(plugin = %self.name, partition = %self.partition(), reason, "task stopped");
        self.log(Level::Error, format!("stopped: {reason}"), Vec::new());
        self.place.set_phase(TaskPhase::Stopped { reason });
    }

    pub(super) fn log(&self, level: Level, message: String, fields: Vec<(String, String)>) {
        let now = self.parts.broker.clock().now();
        self.logs.push(now, self.partition(), level, message, fields);
    }
}

/// What a panic says.
pub(super) fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("for no reason given")
}
