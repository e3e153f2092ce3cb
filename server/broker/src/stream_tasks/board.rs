//! What each task is doing, for all to see.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::{BrokerId, Offset, PartitionIndex};
use plugin::ProcessorName;
use plugin::running::{TaskPhase, TaskStatus};
use streams::Task;
use tokio::sync::watch;

/// The place of one task on the board.
pub(super) struct Place {
    status: Mutex<TaskStatus>,
    /// Shared with the board: counts the changes of phases.
    changes: watch::Sender<u64>,
}

impl Place {
    /// A thread that panicked left whole values behind.
    fn lock(&self) -> MutexGuard<'_, TaskStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn status(&self) -> TaskStatus {
        self.lock().clone()
    }

    pub(super) fn set_phase(&self, phase: TaskPhase) {
        self.lock().phase = phase;
        self.changes.send_modify(|changes| *changes += 1);
    }

    pub(super) fn set_end(&self, end: Offset) {
        self.lock().end_offset = Some(end);
    }

    /// Shows the task as it is now; `refused` results have been refused by their topic since it started.
    pub(super) fn show(&self, task: &Task, refused: u64) {
        let (counters, calls) = (task.counters(), task.calls());
        let mut status = self.lock();
        status.position = Some(task.position());
        status.end_offset = status.end_offset.max(Some(task.position()));
        status.stream_time = task.stream_time();
        status.processed = counters.processed;
        status.late = counters.late;
        status.null_keys = counters.null_keys;
        status.rejected = counters.rejected + refused;
        status.guest_calls = calls.guest_calls;
        status.traps = calls.traps;
    }
}

type Tasks = BTreeMap<PartitionIndex, Arc<Place>>;

/// All tasks of this node.
pub(crate) struct TaskBoard {
    broker: BrokerId,
    places: Mutex<BTreeMap<ProcessorName, Tasks>>,
    changes: watch::Sender<u64>,
    /// The generation of deployments up to which tasks have been started and stopped.
    reconciled: watch::Sender<u64>,
}

impl TaskBoard {
    pub(crate) fn new(broker: BrokerId) -> Self {
        TaskBoard {
            broker,
            places: Mutex::default(),
            changes: watch::Sender::new(0),
            reconciled: watch::Sender::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ProcessorName, Tasks>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tasks of a processor, by partition.
    pub(crate) fn of(&self, name: &ProcessorName) -> Vec<TaskStatus> {
        let places = self.lock();
        let tasks = places.get(name).into_iter().flat_map(Tasks::values);
        tasks.map(|place| place.status()).collect()
    }

    /// A fresh place for a task that starts.
    pub(super) fn place(&self, name: &ProcessorName, partition: PartitionIndex, phase: TaskPhase) -> Arc<Place> {
        let status = TaskStatus {
            partition,
            broker: self.broker,
            position: None,
            end_offset: None,
            stream_time: None,
            processed: 0,
            late: 0,
            null_keys: 0,
            rejected: 0,
            guest_calls: 0,
            traps: 0,
            phase,
        };
        let place = Arc::new(Place {
            status: Mutex::new(status),
            changes: self.changes.clone(),
        });
        self.lock()
            .entry(name.clone())
            .or_default()
            .insert(partition, place.clone());
        self.changes.send_modify(|changes| *changes += 1);
        place
    }

    /// The task runs elsewhere now.
    pub(super) fn remove(&self, name: &ProcessorName, partition: PartitionIndex) {
        let mut places = self.lock();
        if let Some(tasks) = places.get_mut(name) {
            tasks.remove(&partition);
            if tasks.is_empty() {
                places.remove(name);
            }
        }
        drop(places);
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Forgets processors that are gone.
    pub(super) fn keep_only(&self, is_deployed: impl Fn(&ProcessorName) -> bool) {
        self.lock().retain(|name, _| is_deployed(name));
    }

    pub(super) fn set_reconciled(&self, generation: u64) {
        self.reconciled.send_replace(generation);
    }

    /// Returns when what was deployed up to this generation has started, however that went.
    pub(crate) async fn settled(&self, generation: u64) {
        let mut reconciled = self.reconciled.subscribe();
        let mut changes = self.changes.subscribe();
        if reconciled
            .wait_for(|reconciled| *reconciled >= generation)
            .await
            .is_err()
        {
            return;
        }
        loop {
            changes.mark_unchanged();
            if !self.is_restoring() || changes.changed().await.is_err() {
                return;
            }
        }
    }

    fn is_restoring(&self) -> bool {
        let places = self.lock();
        let mut tasks = places.values().flat_map(Tasks::values);
        tasks.any(|place| place.lock().phase == TaskPhase::Restoring)
    }
}
