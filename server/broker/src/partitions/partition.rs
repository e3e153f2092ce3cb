//! One partition on this node: the shell around its replica.
//!
//! The lock is held for an append to the page cache and for bookkeeping, never for a sync. Reads go by the log's reader
//! and take no lock at all; the high watermark that bounds them is published beside it.

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use bytes::Bytes;
use model::record_batch::DecompressionLimit;
use model::{ErrorCode, LeaderEpoch, Offset, PartitionIndex, Timestamp, TopicName, TopicPartition, Uuid};
use replication::{Effect, Replica, WaiterId};
use storage::disk::FailureKind;
use storage::{
    DamagedRange, DeleteRecordsError, Disk, LogOptions, LogReader, Origin, PartitionLog, ReadError, ReadRequest,
    Scrubbed, SyncHandle, Wait,
};
use tokio::sync::{Notify, oneshot};
use tracing::error;

use super::{Flusher, LogDisk};
use crate::cleaner::Standing;
use crate::errors::{Refusal, describe};

/// The least time between the beginnings of two syncs of a log where producers do not wait for one another. On a disk that
/// syncs faster, this lets more of them share a sync, which costs the node more CPU than the append of a small batch does.
/// A lone producer that sends again only when it has been answered never waits for it.
const SYNC_INTERVAL_MIN: Duration = Duration::from_millis(1);

/// Where a partition begins and how far it may be read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    pub(crate) log_start_offset: Offset,
    pub(crate) high_watermark: Offset,
}

/// What a fetch gets of one partition.
pub(crate) struct Slice {
    pub(crate) records: Bytes,
    pub(crate) ends: Option<Ends>,
    /// Nothing was read, because the disk would have had to be waited for.
    pub(crate) on_disk: bool,
}

/// A place in the log, as ListOffsets tells it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoundOffset {
    pub(crate) offset: Offset,
    pub(crate) time: Option<Timestamp>,
    pub(crate) leader_epoch: Option<LeaderEpoch>,
}

/// What became of an append.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Appended {
    pub(crate) first_offset: Offset,
    pub(crate) last_offset: Offset,
    /// Where the topic's timestamps are the broker's.
    pub(crate) log_append_time: Option<Timestamp>,
}

/// Resolves once what was appended is committed, or cannot be any more.
pub(crate) type Committed = oneshot::Receiver<Result<(), ErrorCode>>;

/// Who is woken when a waiter's turn comes.
enum Waiting {
    Producer(oneshot::Sender<Result<(), ErrorCode>>),
    Consumer(Arc<Notify>),
}

struct State {
    replica: Replica<LogDisk>,
    waiting: BTreeMap<WaiterId, Waiting>,
    effects: Vec<Effect>,
    /// The next sync has its thread already and begins after [`SYNC_INTERVAL_MIN`].
    gathering: bool,
}

/// Where the log lies, for those who take no lock. Whoever holds an old one still reads what was there then.
struct Home {
    reader: LogReader<LogDisk>,
    /// Of the directory.
    disk: LogDisk,
}

impl Home {
    fn of(replica: &Replica<LogDisk>) -> Self {
        Home {
            reader: replica.log().reader(),
            disk: replica.log().disk().clone(),
        }
    }
}

/// A partition that this node leads.
pub(crate) struct Partition {
    topic: TopicName,
    topic_id: Uuid,
    index: PartitionIndex,
    internal: bool,
    state: Mutex<State>,
    home: ArcSwap<Home>,
    high_watermark: AtomicI64,
    leader_epoch: AtomicI64,
    appended_bytes: AtomicU64,
    in_sync_replicas: AtomicU64,
    in_sync_replicas_min: AtomicU64,
    /// Deleted, or the node is going down.
    closed: AtomicBool,
    flusher: Arc<Flusher>,
    /// Told when a sync has ended.
    sync_ended: Condvar,
    /// What the cleaner keeps of it.
    standing: Mutex<Standing>,
}

/// What a partition is made of.
pub(crate) struct PartitionParts {
    pub(crate) topic: TopicName,
    pub(crate) topic_id: Uuid,
    pub(crate) index: PartitionIndex,
    pub(crate) replica: Replica<LogDisk>,
    pub(crate) in_sync_replicas: usize,
    pub(crate) in_sync_replicas_min: usize,
    pub(crate) flusher: Arc<Flusher>,
}

impl Partition {
    pub(crate) fn new(parts: PartitionParts) -> Arc<Self> {
        let PartitionParts {
            topic,
            topic_id,
            index,
            replica,
            in_sync_replicas,
            in_sync_replicas_min,
            flusher,
        } = parts;
        Arc::new(Partition {
            internal: crate::handlers::is_internal(&topic),
            topic,
            topic_id,
            index,
            home: ArcSwap::from_pointee(Home::of(&replica)),
            high_watermark: AtomicI64::new(replica.high_watermark().get()),
            leader_epoch: AtomicI64::new(replica.leader_epoch().get().into()),
            appended_bytes: AtomicU64::new(0),
            in_sync_replicas: AtomicU64::new(in_sync_replicas as u64),
            in_sync_replicas_min: AtomicU64::new(in_sync_replicas_min as u64),
            closed: AtomicBool::new(false),
            state: Mutex::new(State {
                replica,
                waiting: BTreeMap::new(),
                effects: Vec::new(),
                gathering: false,
            }),
            flusher,
            sync_ended: Condvar::new(),
            standing: Mutex::default(),
        })
    }

    pub(crate) fn topic(&self) -> &TopicName {
        &self.topic
    }

    pub(crate) fn topic_id(&self) -> Uuid {
        self.topic_id
    }

    pub(crate) fn index(&self) -> PartitionIndex {
        self.index
    }

    pub(crate) fn place(&self) -> TopicPartition {
        TopicPartition {
            topic: self.topic.clone(),
            partition: self.index,
        }
    }

    /// Where the next record will be.
    pub(crate) fn log_end_offset(&self) -> Offset {
        self.home.load().reader.log_end_offset()
    }

    /// Everything below is on the disk for good.
    pub(crate) fn recovery_point(&self) -> Offset {
        self.home.load().reader.synced_offset()
    }

    /// What the cleaner keeps of it; its lock is held for moments only, and no other is taken under it.
    pub(crate) fn standing(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it belongs to a topic of the brokers themselves.
    pub(crate) fn is_internal(&self) -> bool {
        self.internal
    }

    /// How many bytes have been appended since this node opened it.
    pub(crate) fn appended_bytes(&self) -> u64 {
        self.appended_bytes.load(Ordering::Acquire)
    }

    /// How large its log is.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.lock().replica.log().size_bytes()
    }

    /// Whether there are records that nobody may read yet, but soon will.
    pub(crate) fn has_uncommitted(&self) -> bool {
        self.home.load().reader.log_end_offset() > self.ends().high_watermark && self.is_writable()
    }

    pub(crate) fn ends(&self) -> Ends {
        Ends {
            log_start_offset: self.home.load().reader.log_start_offset(),
            high_watermark: Offset::new(self.high_watermark.load(Ordering::Acquire)),
        }
    }

    /// Whether nothing can be read of it any more.
    pub(crate) fn is_offline(&self) -> bool {
        let home = self.home.load();
        let failed = match home.disk.failure_kind() {
            Some(FailureKind::Dead) => true,
            // The disk is sound, it only takes nothing.
            Some(FailureKind::ReadOnly) => false,
            None => home.reader.is_offline(),
        };
        failed || self.closed.load(Ordering::Acquire)
    }

    /// Whether anything can be written to it, a full disk left aside.
    pub(crate) fn is_writable(&self) -> bool {
        self.home.load().disk.failure_kind().is_none() && !self.is_offline()
    }

    /// The directory that it lies in.
    pub(crate) fn log_directory(&self) -> PathBuf {
        self.home.load().disk.directory().to_owned()
    }

    /// Whether the disk has room for what `origin` appends. On a full one the groups go on with a part of the reserve.
    fn has_room_for(&self, origin: Origin) -> bool {
        let home = self.home.load();
        let disk = &home.disk;
        disk.takes_growth() || (origin != Origin::Client && disk.has_half_of_reserve())
    }

    /// # Errors
    /// FENCED_LEADER_EPOCH where the caller knows an older leader, UNKNOWN_LEADER_EPOCH where it knows a newer one
    /// (KIP-320).
    pub(crate) fn check_leader_epoch(&self, known: Option<LeaderEpoch>) -> Result<(), Refusal> {
        let current = self.leader_epoch.load(Ordering::Acquire);
        match known.map(|epoch| i64::from(epoch.get())) {
            Some(epoch) if epoch < current => Err(ErrorCode::FencedLeaderEpoch.into()),
            Some(epoch) if epoch > current => Err(ErrorCode::UnknownLeaderEpoch.into()),
            _ => Ok(()),
        }
    }

    /// Appends one producer's batch. With `wait_for_all` the second half resolves when it is committed; there is none
    /// where it is committed already.
    pub(crate) fn append(
        self: &Arc<Self>,
        records: &[u8],
        origin: Origin,
        now: Timestamp,
        wait_for_all: bool,
    ) -> Result<(Appended, Option<Committed>), Refusal> {
        if !self.is_writable() || !self.has_room_for(origin) {
            return Err(ErrorCode::KafkaStorageError.into());
        }
        let (in_sync, least) = (
            self.in_sync_replicas.load(Ordering::Acquire),
            self.in_sync_replicas_min.load(Ordering::Acquire),
        );
        if wait_for_all && in_sync < least {
            return Err(ErrorCode::NotEnoughReplicas.into());
        }
        let size = records.len() as u64;
        let mut state = self.lock();
        let State {
            replica,
            waiting,
            effects,
            ..
        } = &mut *state;
        let appended = replica.append(records, origin, now, wait_for_all, effects);
        let (appended, waiter) = match appended {
            Ok(done) => done,
            Err(error) => {
                self.carry_out(state);
                return Err(Refusal::from(error));
            }
        };
        let committed = waiter.map(|waiter| {
            let (sender, committed) = oneshot::channel();
            waiting.insert(waiter, Waiting::Producer(sender));
            committed
        });
        self.appended_bytes.fetch_add(size, Ordering::AcqRel);
        self.carry_out(state);
        let appended = Appended {
            first_offset: appended.first_offset,
            last_offset: appended.last_offset,
            log_append_time: appended.log_append_time,
        };
        Ok((appended, committed))
    }

    /// Whole batches from `from` on, up to the high watermark.
    pub(crate) fn read(&self, from: Offset, bytes_max: usize, first: bool, wait: Wait) -> Result<Slice, Refusal> {
        if self.is_offline() {
            return Err(ErrorCode::KafkaStorageError.into());
        }
        let ends = self.ends();
        let request = ReadRequest {
            from,
            max_bytes: bytes_max,
            up_to: ends.high_watermark,
            min_one: first,
            wait,
        };
        match self.home.load().reader.read(request) {
            Ok(read) => Ok(Slice {
                records: read.bytes,
                ends: Some(ends),
                on_disk: false,
            }),
            Err(storage::ReadError::WouldBlock) => Ok(Slice {
                records: Bytes::new(),
                ends: Some(ends),
                on_disk: true,
            }),
            Err(error) => Err(error.into()),
        }
    }

    /// What is known to be damaged.
    pub(crate) fn damage(&self) -> Arc<Vec<DamagedRange>> {
        self.home.load().reader.damage()
    }

    /// As [`LogReader::scrub`].
    pub(crate) fn scrub(
        &self,
        from: Offset,
        pace: impl FnMut(usize) -> ControlFlow<()>,
    ) -> Result<Option<Scrubbed>, ReadError> {
        self.home.load().reader.scrub(from, pace)
    }

    /// The record after the last committed one.
    pub(crate) fn latest(&self) -> FoundOffset {
        let offset = self.ends().high_watermark;
        FoundOffset {
            offset,
            time: None,
            leader_epoch: self.epoch_of(offset),
        }
    }

    pub(crate) fn earliest(&self) -> FoundOffset {
        let offset = self.home.load().reader.log_start_offset();
        FoundOffset {
            offset,
            time: None,
            leader_epoch: self.epoch_of(offset),
        }
    }

    /// The first committed record whose time is `time` or later.
    pub(crate) fn offset_at(&self, time: Timestamp) -> Result<Option<FoundOffset>, Refusal> {
        let found = self
            .home
            .load()
            .reader
            .offset_for_timestamp(time, DecompressionLimit::DEFAULT, Wait::Allowed)?;
        Ok(self.committed(found))
    }

    /// The committed record with the greatest time, the first where there are several.
    pub(crate) fn offset_of_greatest_time(&self) -> Result<Option<FoundOffset>, Refusal> {
        let found = self
            .home
            .load()
            .reader
            .offset_of_max_timestamp(DecompressionLimit::DEFAULT, Wait::Allowed)?;
        Ok(self.committed(found))
    }

    /// Where an epoch ended, and the epoch that this speaks of: the greatest known that is not above the one asked for.
    pub(crate) fn end_of_epoch(&self, epoch: LeaderEpoch) -> Option<(LeaderEpoch, Offset)> {
        self.home
            .load()
            .reader
            .end_of_epoch(epoch)
            .map(|end| (end.epoch, end.end_offset))
    }

    /// Makes everything below `offset` unreadable (DeleteRecords); `None` is the high watermark. Gives the log's new
    /// start.
    pub(crate) fn delete_records_before(&self, offset: Option<Offset>) -> Result<Offset, Refusal> {
        let mut state = self.lock();
        let high_watermark = state.replica.high_watermark();
        let offset = offset.unwrap_or(high_watermark);
        let start = state.replica.log_mut().delete_records_before(offset, high_watermark);
        start.map_err(|error| match error {
            DeleteRecordsError::AboveHighWatermark { .. } => ErrorCode::OffsetOutOfRange.into(),
            DeleteRecordsError::Io(_) => Refusal::new(ErrorCode::KafkaStorageError, describe(&error)),
        })
    }

    /// Registers for a wake-up when the high watermark has passed `seen`; `None` if it has, or never will.
    pub(crate) fn wait_for_more(self: &Arc<Self>, seen: Offset, grown: &Arc<Notify>) -> Option<WaiterId> {
        if self.is_offline() {
            return None;
        }
        let mut state = self.lock();
        let State {
            replica,
            waiting,
            effects,
            ..
        } = &mut *state;
        let waiter = replica.wait_for_more(seen, effects)?;
        waiting.insert(waiter, Waiting::Consumer(grown.clone()));
        self.carry_out(state);
        Some(waiter)
    }

    /// A waiter has gone.
    pub(crate) fn forget(&self, waiter: WaiterId) {
        let mut state = self.lock();
        state.waiting.remove(&waiter);
        state.replica.forget(waiter);
    }

    /// Starts a sync if something is unsynced and no sync is under way.
    pub(crate) fn start_sync(self: &Arc<Self>) {
        let handle = self.lock().replica.begin_sync();
        if let Some(handle) = handle {
            let partition = self.clone();
            tokio::task::spawn_blocking(move || partition.sync_until_clean(handle));
        }
    }

    /// What the housekeeping does to the log, under the lock.
    pub(crate) fn with_replica<T>(self: &Arc<Self>, act: impl FnOnce(&mut Replica<LogDisk>) -> T) -> T {
        let mut state = self.lock();
        let done = act(&mut state.replica);
        self.carry_out(state);
        done
    }

    /// The controller has elected this node again, or the in-sync replicas have changed.
    pub(crate) fn set_leadership(&self, leader_epoch: LeaderEpoch, in_sync_replicas: usize) {
        self.lock().replica.set_leader_epoch(leader_epoch);
        self.leader_epoch.store(leader_epoch.get().into(), Ordering::Release);
        self.in_sync_replicas.store(in_sync_replicas as u64, Ordering::Release);
    }

    /// Other settings hold from now on.
    pub(crate) fn reconfigure(self: &Arc<Self>, options: LogOptions) {
        let mut state = self.lock();
        let State { replica, effects, .. } = &mut *state;
        replica.set_options(options, effects);
        self.carry_out(state);
    }

    pub(crate) fn set_in_sync_replicas_min(&self, least: usize) {
        self.in_sync_replicas_min.store(least as u64, Ordering::Release);
    }

    /// The topic is gone: nothing more is appended or read, and whoever waits is told.
    pub(crate) fn delete(self: &Arc<Self>) {
        self.closed.store(true, Ordering::Release);
        let mut state = self.lock();
        let State { replica, effects, .. } = &mut *state;
        replica.go_offline(effects);
        self.carry_out(state);
    }

    /// The directory has failed: whoever waits for something to be written is told that it was in vain.
    pub(crate) fn directory_failed(self: &Arc<Self>) {
        let mut state = self.lock();
        let State { replica, effects, .. } = &mut *state;
        replica.go_offline(effects);
        self.carry_out(state);
    }

    /// Closes the log in good order, after a sync that is under way. Nothing is appended any more. In a directory that has
    /// failed there is no order to be had: the next start looks the log over.
    pub(crate) fn close(self: &Arc<Self>) -> io::Result<()> {
        let has_failed = self.home.load().disk.failure_kind().is_some();
        self.closed.store(true, Ordering::Release);
        let mut state = self.lock();
        while state.replica.is_syncing() {
            state = self.sync_ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let State { replica, effects, .. } = &mut *state;
        let closed = match has_failed {
            true => Ok(()),
            false => replica.log_mut().close().map(|_| ()),
        };
        replica.go_offline(effects);
        self.carry_out(state);
        closed
    }

    /// Syncs, and again for as long as somebody waits for what came meanwhile.
    fn sync_until_clean(self: Arc<Self>, handle: SyncHandle<LogDisk>) {
        let mut next = Some(handle);
        while let Some(handle) = next.take() {
            let begun = Instant::now();
            let done = handle.run();
            let mut state = self.lock();
            let State { replica, effects, .. } = &mut *state;
            if let Err(error) = replica.synced(done, effects) {
                error!(topic = %self.topic, partition = %self.index, %error, "sync failed: the log is offline");
            }
            let again = effects.contains(&Effect::Sync);
            effects.retain(|effect| *effect != Effect::Sync);
            state.gathering = again;
            self.sync_ended.notify_all();
            self.carry_out(state);
            if again {
                thread::sleep(SYNC_INTERVAL_MIN.saturating_sub(begun.elapsed()));
                let mut state = self.lock();
                state.gathering = false;
                next = state.replica.begin_sync();
            }
        }
    }

    /// Lets the log go on in another place: `change` makes that of the log, while nothing is appended and no sync runs.
    /// `None` where the partition is closed by then.
    pub(crate) fn rehouse<T, E>(
        self: &Arc<Self>,
        change: impl FnOnce(&mut Replica<LogDisk>) -> Result<(PartitionLog<LogDisk>, T), E>,
    ) -> Option<Result<T, E>> {
        let mut state = self.lock();
        while state.replica.is_syncing() {
            state = self.sync_ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if self.closed.load(Ordering::Acquire) {
            return None;
        }
        let State { replica, effects, .. } = &mut *state;
        let changed = change(replica).map(|(log, outcome)| {
            replica.replace_log(log, effects);
            self.home.store(Arc::new(Home::of(replica)));
            outcome
        });
        if replica.log().is_offline() {
            replica.go_offline(effects);
        }
        self.carry_out(state);
        Some(changed)
    }

    /// Does what the replica asked for, and lets go of the lock before anybody is woken.
    fn carry_out(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        self.high_watermark
            .store(state.replica.high_watermark().get(), Ordering::Release);
        let effects = std::mem::take(&mut state.effects);
        let mut woken = Vec::new();
        let mut sync = None;
        let mut soon = false;
        for effect in &effects {
            match effect {
                Effect::Sync if state.gathering => {}
                Effect::Sync => sync = sync.or_else(|| state.replica.begin_sync()),
                Effect::SyncSoon => soon = true,
                Effect::Reached(waiter) => woken.extend(state.waiting.remove(waiter).map(|it| (it, Ok(())))),
                Effect::Failed(waiter) => {
                    let code = if self.closed.load(Ordering::Acquire) {
                        ErrorCode::NotLeaderOrFollower
                    } else {
                        ErrorCode::KafkaStorageError
                    };
                    woken.extend(state.waiting.remove(waiter).map(|it| (it, Err(code))));
                }
            }
        }
        drop(state);
        if let Some(handle) = sync {
            let partition = self.clone();
            tokio::task::spawn_blocking(move || partition.sync_until_clean(handle));
        }
        if soon {
            self.flusher.add(self.clone());
        }
        // The newest first: a connection waits for its oldest answer, and finds the others ready when it wakes.
        for (waiting, result) in woken.into_iter().rev() {
            match waiting {
                // The request may have given up meanwhile.
                Waiting::Producer(sender) => drop(sender.send(result)),
                Waiting::Consumer(grown) => grown.notify_one(),
            }
        }
    }

    fn epoch_of(&self, offset: Offset) -> Option<LeaderEpoch> {
        self.home.load().reader.epoch_of(offset)
    }

    fn committed(&self, found: Option<storage::TimestampOffset>) -> Option<FoundOffset> {
        let end = self.ends().high_watermark;
        found.filter(|found| found.offset < end).map(|found| FoundOffset {
            offset: found.offset,
            time: Some(found.timestamp),
            leader_epoch: found.leader_epoch,
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
