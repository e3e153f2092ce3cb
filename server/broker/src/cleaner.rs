//! The cleaner's threads: each takes the dirtiest compacted partition that no other has, and cleans it.
//!
//! - A partition's lock is held to choose and to swap a segment in, never while one is written.
//! - All threads share `log.cleaner.io.max.bytes.per.second`, and the key maps share `log.cleaner.dedupe.buffer.size`.
//! - A partition that cannot be cleaned is left alone until the node starts anew; that is told once, and shown with its
//!   progress. What is kept of a partition lies with the partition.
//! - Threads end before the logs are closed. `log.cleaner.enable=false` keeps them from starting.

mod standing;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use model::{Offset, PartitionIndex, TopicName};
use storage::compaction::{Backlog, CleanError, CleanedSegment, Cleaning, CleaningLimits, SwapError, Tally, View};
use tracing::{debug, error, info, warn};

use crate::budget::Budget;
use crate::errors::describe;
use crate::node::Broker;
use crate::partitions::{LogDisk, Partition};
pub(crate) use standing::Standing;
pub use standing::{CompactionProgress, CompactionRound, CompactionState};

/// No more threads, whatever is configured.
const THREADS_MAX: usize = 64;
/// Bytes between two looks at the budget and at whether to stop.
const PACE_BYTES: usize = 256 << 10;

/// The threads and what they share.
#[derive(Default)]
pub(crate) struct Cleaner {
    state: Mutex<State>,
    /// Told when the threads are to end.
    stopped: Condvar,
    budget: Budget,
    totals: Totals,
}

#[derive(Default)]
struct State {
    stopping: bool,
    threads: Vec<JoinHandle<()>>,
    dirty_ratio_max: f64,
}

#[derive(Default)]
struct Totals {
    rounds: AtomicU64,
    failures: AtomicU64,
    bytes_read: AtomicU64,
    bytes_written: AtomicU64,
    records_removed: AtomicU64,
}

/// What compaction has done since the node started, and where it stands.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct CleanerFigures {
    pub rounds: u64,
    pub failures: u64,
    /// For the key map and to be written anew.
    pub bytes_read: u64,
    pub bytes_written: u64,
    pub records_removed: u64,
    /// Partitions that are being cleaned now.
    pub cleaning: usize,
    pub uncleanable: usize,
    /// The greatest dirty share among the partitions, when they were looked at last.
    pub dirty_ratio_max: f64,
}

/// A partition that a thread has taken.
struct Job {
    partition: Arc<Partition>,
    backlog: Backlog,
}

/// Why a round ended early.
#[derive(Debug, thiserror::Error)]
enum RoundError {
    #[error(transparent)]
    Clean(#[from] CleanError),
    #[error(transparent)]
    Swap(#[from] SwapError),
    #[error("recording how far the log is clean")]
    Checkpoint(#[from] crate::partitions::LogDirectoriesError),
}

/// Starts the threads, where the cleaner is enabled.
pub(crate) fn start(broker: &Arc<Broker>) {
    if broker.settings().log.cleaner_enabled {
        broker.cleaner().grow(broker);
    }
}

impl Cleaner {
    pub(crate) fn figures(&self, broker: &Broker) -> CleanerFigures {
        let total = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut figures = CleanerFigures {
            rounds: total(&self.totals.rounds),
            failures: total(&self.totals.failures),
            bytes_read: total(&self.totals.bytes_read),
            bytes_written: total(&self.totals.bytes_written),
            records_removed: total(&self.totals.records_removed),
            cleaning: 0,
            uncleanable: 0,
            dirty_ratio_max: self.lock().dirty_ratio_max,
        };
        for partition in broker.partitions().all() {
            let standing = partition.standing();
            figures.cleaning += usize::from(standing.busy);
            figures.uncleanable += usize::from(standing.uncleanable.is_some());
        }
        figures
    }

    /// How far each partition of a topic that this node leads is compacted; those that are not compacted are left out.
    /// May wait for the disk.
    pub(crate) fn progress(&self, broker: &Broker, topic: &TopicName) -> BTreeMap<PartitionIndex, CompactionProgress> {
        let partitions = broker.partitions().topic(topic);
        let progress = partitions
            .iter()
            .filter_map(|partition| Some((partition.index(), progress(broker, partition)?)));
        progress.collect()
    }

    /// Ends the threads, in the middle of a round if need be, and waits for that.
    pub(crate) fn stop(&self) {
        let threads = {
            let mut state = self.lock();
            state.stopping = true;
            std::mem::take(&mut state.threads)
        };
        self.stopped.notify_all();
        for thread in threads {
            if thread.join().is_err() {
                error!("a thread of the cleaner has broken off");
            }
        }
    }

    /// As many threads as the settings want; those that are too many end by themselves.
    fn grow(&self, broker: &Arc<Broker>) {
        let mut state = self.lock();
        state.threads.retain(|thread| !thread.is_finished());
        let wanted = threads(broker);
        while state.threads.len() < wanted && !state.stopping {
            let (number, cleaned) = (state.threads.len(), broker.clone());
            let name = format!("cleaner-{number}");
            match std::thread::Builder::new()
                .name(name)
                .spawn(move || run(&cleaned, number))
            {
                Ok(thread) => state.threads.push(thread),
                Err(error) => {
                    error!(%error, "a thread of the cleaner does not start");
                    return;
                }
            }
        }
    }

    /// The dirtiest partition that is due and that nobody has.
    fn take(&self, broker: &Broker) -> Option<Job> {
        let now = broker.clock().for_ages();
        let mut best: Option<Job> = None;
        let mut dirty_ratio_max = 0f64;
        for partition in broker.partitions().all() {
            if !partition.is_writable() || !partition.standing().is_free(Instant::now()) {
                continue;
            }
            let Some(view) = view(&partition) else { continue };
            match view.backlog(cleaned_to(broker, &partition), now) {
                Ok(backlog) => {
                    dirty_ratio_max = dirty_ratio_max.max(backlog.dirty_ratio());
                    let is_dirtiest = best
                        .as_ref()
                        .is_none_or(|best| backlog.dirty_ratio() > best.backlog.dirty_ratio());
                    if backlog.is_due(view.options()) && is_dirtiest {
                        best = Some(Job { partition, backlog });
                    }
                }
                Err(error) => self.give_up(&partition, &error),
            }
        }
        let mut state = self.lock();
        state.dirty_ratio_max = dirty_ratio_max;
        let stopping = state.stopping;
        drop(state);
        best.filter(|best| {
            let mut standing = best.partition.standing();
            // Another thread may have chosen the same meanwhile.
            let taken = !stopping && standing.is_free(Instant::now());
            standing.busy |= taken;
            taken
        })
    }

    fn give_back(&self, partition: &Partition) {
        partition.standing().busy = false;
    }

    fn give_up(&self, partition: &Partition, error: &(dyn std::error::Error + 'static)) {
        self.totals.failures.fetch_add(1, Ordering::Relaxed);
        let error = describe(error);
        partition.standing().uncleanable = Some(error.clone());
        error!(topic = %partition.topic(), partition = %partition.index(), error, "the log cannot be cleaned and is left alone");
    }

    fn rest(&self, partition: &Partition, wait: Duration, error: &(dyn std::error::Error + 'static)) {
        partition.standing().resting = Some((Instant::now() + wait, describe(error)));
    }

    /// Waits, at most so long; true if the threads are to end.
    fn pause(&self, wait: Duration) -> bool {
        let state = self.lock();
        let waited = self.stopped.wait_timeout_while(state, wait, |state| !state.stopping);
        waited.unwrap_or_else(PoisonError::into_inner).0.stopping
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn view(partition: &Arc<Partition>) -> Option<View<LogDisk>> {
    partition.with_replica(|replica| replica.log().compaction_view(replica.high_watermark()))
}

/// Up to where a partition is clean. The checkpoint is asked once.
fn cleaned_to(broker: &Broker, partition: &Partition) -> Option<Offset> {
    let known = partition.standing().cleaned_to;
    known.unwrap_or_else(|| {
        let recorded = broker.directories().cleaned_to(&partition.place());
        *partition.standing().cleaned_to.get_or_insert(recorded)
    })
}

/// How far a partition is compacted; `None` if it is not to be.
fn progress(broker: &Broker, partition: &Arc<Partition>) -> Option<CompactionProgress> {
    let (is_compacted, is_damaged) =
        partition.with_replica(|replica| (replica.log().options().compact, !replica.log().damage().is_empty()));
    if !is_compacted {
        return None;
    }
    let now = broker.clock().for_ages();
    let view = view(partition).filter(|_| partition.is_writable());
    let backlog = view
        .as_ref()
        .map(|view| view.backlog(cleaned_to(broker, partition), now));
    let is_due = view.zip(backlog.as_ref()).is_some_and(|(view, backlog)| {
        let backlog = backlog.as_ref().ok();
        backlog.is_some_and(|backlog| backlog.is_due(view.options()))
    });
    let standing = partition.standing();
    let state = match (&standing.uncleanable, &standing.resting, &backlog) {
        _ if standing.busy => CompactionState::Cleaning,
        (Some(reason), ..) => CompactionState::Uncleanable(reason.clone()),
        (_, _, Some(Err(error))) => CompactionState::Uncleanable(describe(error)),
        (_, _, None) if is_damaged => CompactionState::Uncleanable("records are damaged".to_owned()),
        (_, _, None) => CompactionState::Uncleanable("the log is offline".to_owned()),
        _ if !broker.settings().log.cleaner_enabled => CompactionState::Disabled,
        (_, Some((_, reason)), _) => CompactionState::Failed(reason.clone()),
        _ if is_due => CompactionState::Due,
        _ => CompactionState::Idle,
    };
    Some(CompactionProgress {
        state,
        backlog: backlog.and_then(Result::ok),
        last_round: standing.last_round,
    })
}

fn threads(broker: &Broker) -> usize {
    broker.settings().log.cleaner_threads.clamp(1, THREADS_MAX)
}

/// One thread. The first one starts others when the settings want more.
fn run(broker: &Arc<Broker>, number: usize) {
    let cleaner = broker.cleaner();
    while number < threads(broker) {
        if number == 0 {
            cleaner.grow(broker);
        }
        match cleaner.take(broker) {
            Some(job) => {
                clean(broker, &job);
                cleaner.give_back(&job.partition);
                if cleaner.pause(Duration::ZERO) {
                    return;
                }
            }
            None if cleaner.pause(broker.settings().log.cleaner_backoff) => return,
            None => {}
        }
    }
}

/// One round over one partition, and what becomes of its failure.
fn clean(broker: &Arc<Broker>, job: &Job) {
    let partition = &job.partition;
    let cleaner = broker.cleaner();
    let (topic, index) = (partition.topic(), partition.index());
    let began = Instant::now();
    match round(broker, job) {
        Ok(tally) => {
            cleaner.totals.rounds.fetch_add(1, Ordering::Relaxed);
            let removed = tally.records_before.saturating_sub(tally.records_after);
            cleaner.totals.records_removed.fetch_add(removed, Ordering::Relaxed);
            let (before, after) = (tally.bytes_before, tally.bytes_after);
            let (keys, map_bytes, duration) = (tally.keys, tally.map_bytes, began.elapsed());
            let mut standing = partition.standing();
            standing.resting = None;
            standing.last_round = Some(CompactionRound {
                ended: broker.clock().now(),
                duration,
                bytes_before: before,
                bytes_after: after,
                records_removed: removed,
            });
            drop(standing);
            let millis = duration.as_millis();
            info!(%topic, partition = %index, keys, map_bytes, removed, before, after, millis, "log cleaned");
        }
        // The node goes down, or the partition is gone.
        Err(RoundError::Clean(CleanError::Stopped)) => {}
        Err(RoundError::Swap(error @ SwapError::Changed)) => {
            debug!(%topic, partition = %index, %error, "log not cleaned");
            cleaner.rest(partition, broker.settings().log.cleaner_backoff, &error);
        }
        Err(error) if may_pass(&error) => {
            cleaner.totals.failures.fetch_add(1, Ordering::Relaxed);
            warn!(%topic, partition = %index, error = describe(&error), "log not cleaned: it will be tried again");
            cleaner.rest(partition, broker.settings().log.cleaner_backoff, &error);
        }
        // Deleted meanwhile, with its folder.
        Err(_) if !partition.is_writable() => {}
        Err(error) => cleaner.give_up(partition, &error),
    }
}

/// A full disk may have room again, and what could not be recorded is only cleaned once more.
fn may_pass(error: &RoundError) -> bool {
    match error {
        RoundError::Clean(CleanError::Io(error)) => storage::disk::is_full(error),
        RoundError::Checkpoint(_) => true,
        _ => false,
    }
}

fn round(broker: &Arc<Broker>, job: &Job) -> Result<Tally, RoundError> {
    let (partition, cleaner) = (&job.partition, broker.cleaner());
    let now = broker.clock().for_ages();
    let limits = limits(broker);
    let mut cleaning = partition.with_replica(|replica| replica.log().begin_cleaning(&job.backlog, limits, now));
    let mut pending = 0;
    let mut pace = |bytes: usize| {
        pending += bytes;
        if pending < PACE_BYTES {
            return ControlFlow::Continue(());
        }
        let wait = broker
            .settings()
            .log
            .cleaner_bytes_per_second
            .map_or(Duration::ZERO, |rate| {
                cleaner.budget.spend(pending, rate, Instant::now())
            });
        pending = 0;
        if cleaner.pause(wait) || !partition.is_writable() || partition.standing().moving {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    };
    let done = work(broker, partition, &mut cleaning, &mut pace);
    let tally = cleaning.tally();
    let read = tally.bytes_mapped + tally.bytes_before;
    cleaner.totals.bytes_read.fetch_add(read, Ordering::Relaxed);
    cleaner
        .totals
        .bytes_written
        .fetch_add(tally.bytes_after, Ordering::Relaxed);
    done?;
    broker
        .directories()
        .write_cleaned_to(&partition.place(), cleaning.end())?;
    partition.standing().cleaned_to = Some(Some(cleaning.end()));
    Ok(tally)
}

fn work(
    broker: &Arc<Broker>,
    partition: &Arc<Partition>,
    cleaning: &mut Cleaning<LogDisk>,
    pace: &mut dyn FnMut(usize) -> ControlFlow<()>,
) -> Result<(), RoundError> {
    cleaning.map_keys(pace)?;
    while let Some(cleaned) = cleaning.clean_group(pace)? {
        swap(broker, partition, cleaned)?;
    }
    Ok(())
}

fn swap(broker: &Broker, partition: &Arc<Partition>, cleaned: CleanedSegment<LogDisk>) -> Result<(), RoundError> {
    let removed = partition.with_replica(|replica| {
        // Its folder may be another's by now.
        if !partition.is_writable() {
            return Err(RoundError::Clean(CleanError::Stopped));
        }
        Ok(replica.log_mut().swap_in(cleaned)?)
    })?;
    broker
        .directories()
        .unlink_later(removed.files, broker.clock().monotonic());
    Ok(())
}

/// What each of the threads may use.
fn limits(broker: &Broker) -> CleaningLimits {
    let settings = &broker.settings().log;
    let threads = threads(broker);
    let map_bytes = usize::try_from(settings.cleaner_dedupe_buffer_bytes).unwrap_or(usize::MAX) / threads;
    CleaningLimits {
        map_bytes,
        map_load_factor: settings.cleaner_load_factor,
        buffer_bytes: (settings.cleaner_io_buffer_bytes / threads / 2).max(1),
    }
}
