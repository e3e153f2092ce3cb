//! A partition's replica on this node: its log, how far it may be read, and who waits for it to get further.
//!
//! - Everything that changes the log passes through here; readers go by a `LogReader` beside it.
//! - One sync runs at a time and serves all that was appended before it began (group commit). It starts at once where
//!   somebody waits, and within the shell's flush interval where nobody does.
//! - After a failed sync the log is offline: nobody who waits is told of success, and nothing is appended again.

use std::io;

use model::{LeaderEpoch, Offset, Timestamp};
use storage::{
    AppendAs, AppendError, Appended, Disk, Durability, LogOptions, Origin, PartitionLog, SyncDone, SyncHandle,
};

use crate::high_watermark::counted;
use crate::waiters::{WaiterId, WaiterNumbers, Waiters};

/// What the shell is to do, in the order given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Take [`Replica::begin_sync`] to a thread that may wait for the disk.
    Sync,
    /// There are unsynced bytes for which nobody waits: sync them within the flush interval.
    SyncSoon,
    /// What this waiter waited for has come: a producer's records are below the high watermark, or a consumer has more
    /// to read than when it looked.
    Reached(WaiterId),
    /// The wait is over without success: the log is offline.
    Failed(WaiterId),
}

/// A leader's log with its high watermark.
pub struct Replica<D: Disk> {
    log: PartitionLog<D>,
    leader_epoch: LeaderEpoch,
    high_watermark: Offset,
    producers: Waiters,
    consumers: Waiters,
    numbers: WaiterNumbers,
    /// A sync is under way.
    syncing: bool,
    /// The shell has been told that there are unsynced bytes, and has not begun a sync since.
    announced: bool,
    offline: bool,
}

impl<D: Disk> Replica<D> {
    /// Leads with a log as it was opened. What a crash left in it unsynced is synced first, so that all of it is committed:
    /// it may have been acknowledged in the mode that counts the page cache.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn lead(mut log: PartitionLog<D>, leader_epoch: LeaderEpoch) -> io::Result<Self> {
        if log.synced_offset() < log.log_end_offset() {
            log.sync_now()?;
        }
        log.begin_epoch(leader_epoch);
        let high_watermark = counted(log.options().durability, log.synced_offset(), log.log_end_offset());
        Ok(Replica {
            log,
            leader_epoch,
            high_watermark,
            producers: Waiters::default(),
            consumers: Waiters::default(),
            numbers: WaiterNumbers::default(),
            syncing: false,
            announced: false,
            offline: false,
        })
    }

    #[must_use]
    pub fn log(&self) -> &PartitionLog<D> {
        &self.log
    }

    /// For what the housekeeping does to a log: retention, options, checkpoints. Appends go by [`Replica::append`].
    pub fn log_mut(&mut self) -> &mut PartitionLog<D> {
        &mut self.log
    }

    #[must_use]
    pub fn leader_epoch(&self) -> LeaderEpoch {
        self.leader_epoch
    }

    #[must_use]
    pub fn high_watermark(&self) -> Offset {
        self.high_watermark
    }

    /// The same log goes on in another place, with everything in it on the disk. No sync may be under way.
    pub fn replace_log(&mut self, log: PartitionLog<D>, effects: &mut Vec<Effect>) {
        assert_eq!(
            (log.log_start_offset(), log.log_end_offset(), self.syncing),
            (self.log.log_start_offset(), self.log.log_end_offset(), false),
            "the log in the other place is the same"
        );
        self.log = log;
        self.advance(effects);
    }

    /// Whether a sync is under way.
    #[must_use]
    pub fn is_syncing(&self) -> bool {
        self.syncing
    }

    /// The controller has elected this node again.
    pub fn set_leader_epoch(&mut self, leader_epoch: LeaderEpoch) {
        self.log.begin_epoch(leader_epoch);
        self.leader_epoch = leader_epoch;
    }

    /// Other settings hold from now on. The high watermark stays where it is if it would go back by them.
    pub fn set_options(&mut self, options: LogOptions, effects: &mut Vec<Effect>) {
        self.log.set_options(options);
        self.advance(effects);
        self.want_sync(effects);
    }

    /// Appends one batch; `origin` says whose. `wait` asks for a [`WaiterId`] that is reached once the records are committed; where
    /// they are already there is none.
    ///
    /// # Errors
    /// As [`PartitionLog::append`].
    pub fn append(
        &mut self,
        batch: &[u8],
        origin: Origin,
        now: Timestamp,
        wait: bool,
        effects: &mut Vec<Effect>,
    ) -> Result<(Appended, Option<WaiterId>), AppendError> {
        let appended = self.log.append(
            batch,
            AppendAs::Leader {
                epoch: self.leader_epoch,
                origin,
            },
            now,
        )?;
        self.advance(effects);
        // A duplicate may have been synced long ago, or not yet.
        let end = appended.last_offset.plus(1);
        let waiter = (wait && end > self.high_watermark).then(|| self.producers.add(end, &mut self.numbers));
        self.want_sync(effects);
        Ok((appended, waiter))
    }

    /// Waits until there is more to read than up to `seen`. `None` if there is already.
    pub fn wait_for_more(&mut self, seen: Offset, effects: &mut Vec<Effect>) -> Option<WaiterId> {
        if self.high_watermark > seen || self.offline {
            return None;
        }
        let waiter = self.consumers.add(seen.plus(1), &mut self.numbers);
        self.want_sync(effects);
        Some(waiter)
    }

    /// The waiter has gone.
    pub fn forget(&mut self, waiter: WaiterId) {
        if !self.producers.remove(waiter) {
            self.consumers.remove(waiter);
        }
    }

    /// What to sync, if there is anything and no other sync is under way.
    pub fn begin_sync(&mut self) -> Option<SyncHandle<D>> {
        self.announced = false;
        if self.syncing || self.offline {
            return None;
        }
        let handle = self.log.begin_sync()?;
        self.syncing = true;
        Some(handle)
    }

    /// A sync has ended.
    ///
    /// # Errors
    /// The sync's error: the log is offline from now on.
    pub fn synced(&mut self, done: SyncDone, effects: &mut Vec<Effect>) -> io::Result<()> {
        self.syncing = false;
        if let Err(error) = self.log.synced(done) {
            self.go_offline(effects);
            return Err(error);
        }
        self.advance(effects);
        self.want_sync(effects);
        Ok(())
    }

    /// Nothing more is written: whoever waits is told that it was in vain.
    pub fn go_offline(&mut self, effects: &mut Vec<Effect>) {
        self.offline = true;
        effects.extend(
            self.producers
                .take_all()
                .chain(self.consumers.take_all())
                .map(Effect::Failed),
        );
    }

    fn durability(&self) -> Durability {
        self.log.options().durability
    }

    fn advance(&mut self, effects: &mut Vec<Effect>) {
        let counted = counted(self.durability(), self.log.synced_offset(), self.log.log_end_offset());
        if counted <= self.high_watermark {
            return;
        }
        self.high_watermark = counted;
        effects.extend(self.producers.take_reached(counted).map(Effect::Reached));
        effects.extend(self.consumers.take_reached(counted).map(Effect::Reached));
    }

    /// Asks for a sync where there is something to sync that somebody waits for, or that nobody has been told of yet.
    fn want_sync(&mut self, effects: &mut Vec<Effect>) {
        let dirty = self.log.synced_offset() < self.log.log_end_offset();
        if self.durability() == Durability::Replicated || self.syncing || !dirty {
            return;
        }
        if !self.producers.is_empty() || !self.consumers.is_empty() {
            self.announced = true;
            effects.push(Effect::Sync);
        } else if !self.announced {
            self.announced = true;
            effects.push(Effect::SyncSoon);
        }
    }
}

#[cfg(test)]
mod tests;
