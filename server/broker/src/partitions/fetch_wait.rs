//! A consumer's wait for partitions to grow.
//!
//! Made before the partitions are looked at: what comes between look and wait is noticed by the high watermarks having
//! moved on since.

use std::sync::Arc;

use model::Offset;
use replication::WaiterId;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::Partition;

/// Where one partition stood when the wait was made.
struct Seen {
    partition: Arc<Partition>,
    high_watermark: Offset,
    appended_bytes: u64,
    /// There was more than could be read yet: it is not in the count of what comes later.
    uncommitted: bool,
    waiter: Option<WaiterId>,
}

/// Waits on all partitions of a fetch at once. Dropping it takes it out of all of them.
pub(crate) struct FetchWait {
    seen: Vec<Seen>,
    grown: Arc<Notify>,
}

impl FetchWait {
    pub(crate) fn new<'a>(partitions: impl Iterator<Item = &'a Arc<Partition>>) -> Self {
        let seen = partitions.map(|partition| Seen {
            partition: partition.clone(),
            high_watermark: partition.ends().high_watermark,
            appended_bytes: partition.appended_bytes(),
            uncommitted: partition.has_uncommitted(),
            waiter: None,
        });
        FetchWait {
            seen: seen.collect(),
            grown: Arc::new(Notify::new()),
        }
    }

    /// Returns when about `bytes` more may be there to read, something has failed, or at the deadline.
    pub(crate) async fn until_grown(mut self, bytes: usize, deadline: Instant) {
        loop {
            let grown = self.grown.clone();
            let notified = grown.notified();
            if self.register() && self.has_grown_by(bytes) {
                return;
            }
            if timeout_at(deadline, notified).await.is_err() {
                return;
            }
        }
    }

    /// Registers in every partition, at its present end; true if something has come somewhere since the look.
    fn register(&mut self) -> bool {
        let mut moved = false;
        for seen in &mut self.seen {
            if let Some(waiter) = seen.waiter.take() {
                seen.partition.forget(waiter);
            }
            let end = seen.partition.ends().high_watermark;
            seen.waiter = seen.partition.wait_for_more(end, &self.grown);
            moved |= end > seen.high_watermark || seen.waiter.is_none();
        }
        moved
    }

    /// Counts what has been appended, synced or not: a look that comes too early finds less and waits again. What had been
    /// appended before and was not yet committed has no count, so that it is looked at in any case.
    fn has_grown_by(&self, bytes: usize) -> bool {
        let grown = |seen: &Seen| seen.partition.appended_bytes().saturating_sub(seen.appended_bytes);
        let total: u64 = self.seen.iter().map(grown).sum();
        total >= bytes as u64
            || self
                .seen
                .iter()
                .any(|seen| seen.uncommitted || seen.partition.is_offline())
    }
}

impl Drop for FetchWait {
    fn drop(&mut self) {
        for seen in &mut self.seen {
            if let Some(waiter) = seen.waiter.take() {
                seen.partition.forget(waiter);
            }
        }
    }
}
