//! The task that owns the node: takes operations as they come, syncs what they appended together, answers what is synced.
//!
//! ```text
//!  operations ──▶ decide, append ──▶ decide, append ──▶ …
//!                       └── sync (on a thread that may block) ──▶ answer all it covers, publish their images
//! ```
//!
//! While a sync runs, further operations are decided and appended; the next sync covers them all.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use metadata::Entropy;
use model::{Monotonic, Offset, Timestamp};
use protocol::Response;
use raft::SnapshotId;
use storage::{Disk, SyncDone};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::errors::refused;
use crate::handle::{Command, ControllerError, ControllerHandle};
use crate::image_publisher::Publisher;
use crate::metadata_log::WrittenSnapshot;
use crate::node::{Moment, Node, NodeError, NodeOptions, disk_refused};
use crate::snapshot_file::SnapshotError;

/// Operations that wait to be decided; more make their senders wait.
const COMMANDS_MAX: usize = 1024;
/// Operations decided before the sync is looked at again.
const COMMANDS_PER_ROUND: usize = 256;
/// Operations that wait for their commit; with more, none is taken on.
const WAITING_MAX: usize = 8192;
/// How often the node is told the time.
const TICK: Duration = Duration::from_millis(100);

/// A running node of the quorum.
pub struct Quorum {
    handle: ControllerHandle,
    task: JoinHandle<Result<(), NodeError>>,
}

/// Opens the node on this thread, which may take as long as reading the metadata log does, and starts its task. When this
/// returns the node leads and its first image is committed.
///
/// # Errors
/// If the log cannot be read or written, or the voter set is not this node alone.
pub fn start<D: Disk>(disk: D, log_directory: &Path, options: NodeOptions) -> Result<Quorum, NodeError> {
    let clock = Clock(Instant::now());
    let (node_id, cluster_id) = (
        options.controller.node_id,
        Arc::from(options.controller.cluster_id.as_str()),
    );
    let mut node = Node::open(disk, log_directory, options, clock.now())?;
    node.settle(clock.now())?;
    let kraft_version = node.kraft_version();
    let publisher = Publisher::new();
    let (commands, received) = mpsc::channel(COMMANDS_MAX);
    let mut driver = Driver {
        clock,
        node,
        publisher: publisher.clone(),
        waiting: VecDeque::new(),
        snapshot_answers: Vec::new(),
        sync: None,
        snapshot: None,
    };
    driver.answer_committed();
    let task = tokio::spawn(driver.run(received));
    let handle = ControllerHandle {
        commands,
        publisher,
        node_id,
        cluster_id,
        kraft_version,
    };
    Ok(Quorum { handle, task })
}

impl Quorum {
    #[must_use]
    pub fn handle(&self) -> ControllerHandle {
        self.handle.clone()
    }

    /// Resolves when the node has ended by itself, which is always an error.
    pub async fn ended(&mut self) -> NodeError {
        match (&mut self.task).await {
            Ok(Err(error)) => error,
            Ok(Ok(())) | Err(_) => NodeError::Panicked,
        }
    }

    /// Stops the node in good order. Operations that still wait are refused.
    ///
    /// # Errors
    /// If the log could not be closed.
    pub async fn stop(self) -> Result<(), NodeError> {
        // If the task has ended already, its result says why.
        let _ended = self.handle.commands.send(Command::Stop).await;
        self.task.await.map_err(|_| NodeError::Panicked)?
    }
}

struct Clock(Instant);

impl Clock {
    fn now(&self) -> Moment {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Moment {
            wall: Timestamp::from_millis(i64::try_from(wall.as_millis()).unwrap_or(i64::MAX)),
            monotonic: Monotonic::from_start(self.0.elapsed()),
        }
    }
}

/// The operating system's.
struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn next_u64(&mut self) -> u64 {
        getrandom::u64().expect("the operating system has entropy")
    }
}

/// An answer that waits for its commit.
struct Waiting {
    after: Offset,
    response: Response,
    /// What is answered instead if the disk does not take it.
    refused_by_disk: Option<Response>,
    answer: oneshot::Sender<Result<Response, ControllerError>>,
}

type Running<T> = Option<JoinHandle<T>>;

struct Driver<D: Disk> {
    clock: Clock,
    node: Node<D>,
    publisher: Publisher,
    waiting: VecDeque<Waiting>,
    snapshot_answers: Vec<oneshot::Sender<Option<SnapshotId>>>,
    sync: Running<SyncDone>,
    snapshot: Running<Result<WrittenSnapshot, SnapshotError>>,
}

impl<D: Disk> Driver<D> {
    async fn run(mut self, mut commands: mpsc::Receiver<Command>) -> Result<(), NodeError> {
        let ended = self.serve(&mut commands).await;
        self.publisher.end();
        ended?;
        // A sync or snapshot that is running still writes to the log's folder.
        if let Some(sync) = self.sync.take() {
            let done = sync.await.map_err(|_| NodeError::Panicked)?;
            self.node.synced(done, self.clock.now())?;
        }
        if let Some(snapshot) = self.snapshot.take() {
            let done = snapshot.await.map_err(|_| NodeError::Panicked)?;
            self.node.snapshot_done(done, self.clock.now());
        }
        self.node.settle(self.clock.now())?;
        self.answer_committed();
        self.node.stop(self.clock.now())
    }

    async fn serve(&mut self, commands: &mut mpsc::Receiver<Command>) -> Result<(), NodeError> {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            self.begin_work();
            tokio::select! {
                command = commands.recv(), if self.waiting.len() < WAITING_MAX => {
                    let Some(mut command) = command else { return Ok(()) };
                    for _ in 0..COMMANDS_PER_ROUND {
                        if !self.take_on(command)? {
                            return Ok(());
                        }
                        let Ok(next) = commands.try_recv() else { break };
                        command = next;
                    }
                }
                done = ended(&mut self.sync) => {
                    self.sync = None;
                    self.node.synced(done?, self.clock.now())?;
                }
                done = ended(&mut self.snapshot) => {
                    self.snapshot = None;
                    let written = self.node.snapshot_done(done?, self.clock.now());
                    for answer in self.snapshot_answers.drain(..) {
                        // Whoever asked may have gone.
                        let _gone = answer.send(written);
                    }
                }
                _ = tick.tick() => self.node.tick(self.clock.now())?,
            }
            self.answer_committed();
        }
    }

    /// Starts the sync and the snapshot that are due.
    fn begin_work(&mut self) {
        if self.sync.is_none() {
            self.sync = self
                .node
                .begin_sync()
                .map(|handle| tokio::task::spawn_blocking(|| handle.run()));
        }
        if self.snapshot.is_none() {
            let job = self.node.begin_snapshot(self.clock.now());
            self.snapshot = job.map(|job| tokio::task::spawn_blocking(|| job.run()));
            if self.snapshot.is_none() && self.sync.is_none() {
                // Nothing to write: everything committed is in the newest snapshot.
                for answer in self.snapshot_answers.drain(..) {
                    let _gone = answer.send(None);
                }
            }
        }
    }

    /// False when the node is to stop.
    fn take_on(&mut self, command: Command) -> Result<bool, NodeError> {
        match command {
            Command::Stop => return Ok(false),
            Command::Snapshot { answer } => {
                self.node.request_snapshot();
                self.snapshot_answers.push(answer);
            }
            Command::Call {
                request,
                version,
                answer,
            } => match self
                .node
                .call(&request, version, self.clock.now(), &mut SystemEntropy)?
            {
                Ok(called) => self.waiting.push_back(Waiting {
                    refused_by_disk: refused(&request, &disk_refused()),
                    after: called.after,
                    response: called.response,
                    answer,
                }),
                Err(refusal) => {
                    let response = refused(&request, &refusal).ok_or(ControllerError::NotServed);
                    // Whoever asked may have gone.
                    let _gone = answer.send(response);
                }
            },
        }
        Ok(true)
    }

    /// Answers and publishes what the last sync covered, images first: who is answered finds what was said.
    fn answer_committed(&mut self) {
        for (delta, image) in self.node.take_committed() {
            self.publisher.publish(&delta, image);
        }
        if let Some(end) = self.node.take_refused_after() {
            let (kept, refused): (VecDeque<_>, VecDeque<_>) =
                self.waiting.drain(..).partition(|waiting| waiting.after <= end);
            self.waiting = kept;
            for waiting in refused {
                let _gone = waiting
                    .answer
                    .send(waiting.refused_by_disk.ok_or(ControllerError::NotServed));
            }
        }
        let high_watermark = self.node.high_watermark();
        while self
            .waiting
            .front()
            .is_some_and(|waiting| waiting.after <= high_watermark)
            && let Some(waiting) = self.waiting.pop_front()
        {
            let _gone = waiting.answer.send(Ok(waiting.response));
        }
    }
}

/// The outcome of a running job; for ever pending without one.
async fn ended<T>(running: &mut Running<T>) -> Result<T, NodeError> {
    match running {
        Some(job) => job.await.map_err(|_| NodeError::Panicked),
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
