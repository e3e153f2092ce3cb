//! The shell around one shard of `__consumer_offsets`: carries out its effects in order, keeps its clock, and answers
//! its callers.
//!
//! Everything that touches the shard runs under one lock, with the appends that it asks for, so that the log has the
//! order of the decisions. Nothing under the lock waits: the commit of an append is awaited by a task of its own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use coordinator::group::{GroupCall, GroupConfig, GroupResponse};
use coordinator::{Effect, GroupShard, Now, Record, Shard, Token, WriteId};
use model::record_batch::{BatchBuilder, BatchOptions};
use model::{ErrorCode, Offset, Timestamp};
use storage::Origin;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};
use tracing::{error, warn};

use super::loading::{LoadError, load};
use crate::clock::Clock;
use crate::errors::describe;
use crate::partitions::{Committed, Partition};

/// How much of a write goes into one batch; a write that is larger is split between records.
const BATCH_BYTES_MAX: usize = 512 * 1024;

enum Phase {
    Loading,
    Active(Box<GroupShard>),
    /// The log could not be read, or the partition is another broker's.
    Over,
}

struct State {
    phase: Phase,
    callers: BTreeMap<Token, oneshot::Sender<GroupResponse>>,
    next_token: u64,
}

/// One partition of the groups' topic that this node leads.
pub(crate) struct GroupCoordinator {
    partition: Arc<Partition>,
    clock: Clock,
    state: Mutex<State>,
    /// The next deadline may have changed.
    rescheduled: Notify,
}

impl GroupCoordinator {
    /// Begins to load the partition; requests are told to come again until that is done.
    pub(crate) fn start(partition: Arc<Partition>, config: GroupConfig, clock: Clock) -> (Arc<Self>, JoinHandle<()>) {
        let state = State {
            phase: Phase::Loading,
            callers: BTreeMap::new(),
            next_token: 0,
        };
        let coordinator = Arc::new(GroupCoordinator {
            partition,
            clock,
            state: Mutex::new(state),
            rescheduled: Notify::new(),
        });
        let task = tokio::spawn(coordinator.clone().run(config));
        (coordinator, task)
    }

    /// Takes a request; the answer comes now or when what it waits for has come to pass, and never where the partition is
    /// given up meanwhile.
    ///
    /// # Errors
    /// If the groups are still being loaded, or are another broker's.
    pub(crate) fn hand_in(
        self: &Arc<Self>,
        call: GroupCall<'_>,
    ) -> Result<oneshot::Receiver<GroupResponse>, ErrorCode> {
        let now = self.now();
        let mut state = self.lock();
        let token = Token(state.next_token);
        let State {
            phase,
            callers,
            next_token,
        } = &mut *state;
        let shard = match phase {
            Phase::Loading => return Err(ErrorCode::CoordinatorLoadInProgress),
            Phase::Over => return Err(ErrorCode::NotCoordinator),
            Phase::Active(shard) => shard,
        };
        *next_token += 1;
        let (sender, answer) = oneshot::channel();
        callers.insert(token, sender);
        let mut effects = Vec::new();
        shard.handle(token, call, now, &mut effects);
        self.carry_out(&mut state, effects);
        Ok(answer)
    }

    /// Topics are gone: so are the offsets that groups have committed to them.
    pub(crate) fn topics_deleted(self: &Arc<Self>, topics: &[String]) {
        let mut state = self.lock();
        let Phase::Active(shard) = &mut state.phase else { return };
        let mut effects = Vec::new();
        shard.topics_deleted(topics.iter().map(String::as_str), &mut effects);
        self.carry_out(&mut state, effects);
    }

    /// The partition is another broker's or gone: whoever waits is told to look for the coordinator again.
    pub(crate) fn resign(self: &Arc<Self>) {
        let mut state = self.lock();
        if let Phase::Active(shard) = &mut state.phase {
            let mut effects = Vec::new();
            shard.resign(ErrorCode::NotCoordinator, &mut effects);
            self.carry_out(&mut state, effects);
        }
        state.phase = Phase::Over;
        state.callers.clear();
        self.rescheduled.notify_one();
    }

    /// Loads, then ticks until the partition is given up.
    async fn run(self: Arc<Self>, config: GroupConfig) {
        let partition = self.partition.clone();
        let loaded = tokio::task::spawn_blocking(move || load(&partition, GroupShard::new(config))).await;
        match loaded {
            Ok(Ok(shard)) => self.activate(shard),
            Ok(Err(error)) => return self.give_up(&error),
            // The pool is going down with the node.
            Err(_) => return,
        }
        while let Some(deadline) = self.next_wait() {
            match deadline {
                Some(deadline) => tokio::select! {
                    () = sleep_until(deadline) => self.tick(),
                    () = self.rescheduled.notified() => {}
                },
                None => self.rescheduled.notified().await,
            }
        }
    }

    fn activate(self: &Arc<Self>, mut shard: GroupShard) {
        let mut state = self.lock();
        if !matches!(state.phase, Phase::Loading) {
            return;
        }
        let mut effects = Vec::new();
        shard.loaded(self.now(), &mut effects);
        state.phase = Phase::Active(Box::new(shard));
        self.carry_out(&mut state, effects);
    }

    fn give_up(&self, error: &LoadError) {
        error!(partition = %self.partition.index(), error = describe(error), "groups not loaded");
        self.lock().phase = Phase::Over;
    }

    /// `None` when it is over; else when the next tick is due, if ever.
    fn next_wait(&self) -> Option<Option<Instant>> {
        let now = self.clock.monotonic();
        match &self.lock().phase {
            Phase::Over => None,
            Phase::Loading => Some(None),
            Phase::Active(shard) => Some(shard.next_deadline().map(|due| Instant::now() + due.since(now))),
        }
    }

    fn tick(self: &Arc<Self>) {
        let mut state = self.lock();
        let Phase::Active(shard) = &mut state.phase else { return };
        let mut effects = Vec::new();
        shard.on_tick(self.now(), &mut effects);
        self.carry_out(&mut state, effects);
    }

    /// Does what the shard asks for, in order; what comes of an append may ask for more.
    fn carry_out(self: &Arc<Self>, state: &mut State, effects: Vec<Effect<GroupResponse>>) {
        let mut effects = std::collections::VecDeque::from(effects);
        while let Some(effect) = effects.pop_front() {
            match effect {
                Effect::Respond { token, response } => {
                    // The caller's connection may be gone.
                    if let Some(caller) = state.callers.remove(&token) {
                        let _ = caller.send(response);
                    }
                }
                Effect::Append { write, records } => {
                    let Phase::Active(shard) = &mut state.phase else { return };
                    let mut more = Vec::new();
                    self.append(shard, write, &records, &mut more);
                    effects.extend(more);
                }
            }
        }
        self.rescheduled.notify_one();
    }

    fn append(
        self: &Arc<Self>,
        shard: &mut GroupShard,
        write: WriteId,
        records: &[Record],
        effects: &mut Vec<Effect<GroupResponse>>,
    ) {
        let now = self.now();
        match append(&self.partition, records, now.wall) {
            Ok((end, committed)) => {
                shard.appended(write, end);
                match committed {
                    None => shard.committed(end, now, effects),
                    Some(committed) => self.await_commit(committed),
                }
            }
            Err(code) => shard.append_failed(write, code, now, effects),
        }
    }

    fn await_commit(self: &Arc<Self>, committed: Committed) {
        let coordinator = self.clone();
        tokio::spawn(async move {
            match committed.await {
                Ok(Ok(())) => coordinator.committed(),
                // What is in the log is not known any more: this shard cannot go on.
                Ok(Err(_)) | Err(_) => coordinator.resign(),
            }
        });
    }

    fn committed(self: &Arc<Self>) {
        let high_watermark = self.partition.ends().high_watermark;
        let mut state = self.lock();
        let Phase::Active(shard) = &mut state.phase else { return };
        let mut effects = Vec::new();
        shard.committed(high_watermark, self.now(), &mut effects);
        self.carry_out(&mut state, effects);
    }

    fn now(&self) -> Now {
        Now {
            // Offsets expire by it.
            wall: self.clock.for_ages(),
            monotonic: self.clock.monotonic(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Appends the records of one write, in as many batches as it takes. Gives the offset behind the last record, and what
/// resolves when it is committed.
fn append(
    partition: &Arc<Partition>,
    records: &[Record],
    now: Timestamp,
) -> Result<(Offset, Option<Committed>), ErrorCode> {
    let mut outcome = Err(ErrorCode::UnknownServerError);
    let mut left = records;
    while !left.is_empty() {
        let mut builder = BatchBuilder::new(BatchOptions::default());
        let mut taken = 0;
        for record in left {
            let size = record.key.len() + record.value.as_ref().map_or(0, bytes::Bytes::len);
            if taken > 0 && builder.uncompressed_bytes() + size > BATCH_BYTES_MAX {
                break;
            }
            builder
                .append(now, Some(&record.key), record.value.as_deref(), &[])
                .map_err(|_| ErrorCode::UnknownServerError)?;
            taken += 1;
        }
        left = &left[taken..];
        let batch = builder.build().map_err(|_| ErrorCode::UnknownServerError)?;
        let appended = partition.append(&batch, Origin::Coordinator, now, true);
        let (appended, committed) = appended.map_err(|refusal| {
            warn!(topic = %partition.topic(), partition = %partition.index(), code = %refusal.code, "write refused");
            refusal.code
        })?;
        outcome = Ok((appended.last_offset.plus(1), committed));
    }
    outcome
}
