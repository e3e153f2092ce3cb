//! Syncs what nobody waits for, within [`FLUSH_INTERVAL`]: what was produced with acks=1, say.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::sleep;

use super::Partition;

/// How long bytes that nobody waits for may stay unsynced.
const FLUSH_INTERVAL: Duration = Duration::from_millis(50);

/// The partitions that have said that they have unsynced bytes; each says so once until it is synced.
#[derive(Default)]
pub(crate) struct Flusher {
    dirty: Mutex<Vec<Arc<Partition>>>,
    something: Notify,
}

impl Flusher {
    pub(crate) fn add(&self, partition: Arc<Partition>) {
        let mut dirty = self.dirty.lock().unwrap_or_else(PoisonError::into_inner);
        dirty.push(partition);
        if dirty.len() == 1 {
            self.something.notify_one();
        }
    }

    /// Runs for as long as the node does.
    pub(crate) async fn run(self: Arc<Self>) {
        loop {
            self.something.notified().await;
            sleep(FLUSH_INTERVAL).await;
            let dirty = std::mem::take(&mut *self.dirty.lock().unwrap_or_else(PoisonError::into_inner));
            for partition in dirty {
                partition.start_sync();
            }
        }
    }
}
