//! Moves partitions to other log directories of the node: one thread, one copy at a time, the oldest wish first (KIP-113).
//!
//! - Pieces are copied at `replica.alter.log.dirs.io.max.bytes.per.second`, without the partition's lock. The cleaner leaves
//!   the partition alone meanwhile; retention does not.
//! - When little is missing, the rest is copied and the log exchanged under the partition's lock: producers wait for that.
//! - A move that cannot go on, because a disk fails or gets full, ends with a line in the log; the partition goes on where
//!   it is. One that waits, for the cleaner or until the controller knows of the last move, lets others go first.
//! - The thread ends before the logs are closed. What was on its way is begun anew by the next start.

use std::sync::Arc;
use std::time::{Duration, Instant};

use storage::Disk;
use storage::relocation::{CopyError, Copying, ExchangeError};
use tracing::{debug, info, warn};

use crate::background::Background;
use crate::budget::Budget;
use crate::errors::describe;
use crate::node::Broker;
use crate::partitions::{LogDisk, MoveEnd, Partition, WantedMove};

/// What is copied at a time, at most.
const PIECE_BYTES_MAX: usize = 1 << 20;
/// What is copied at a time, at least, however low the rate is.
const PIECE_BYTES_MIN: usize = 4 << 10;
/// No faster than this, whatever is configured: the disks have other work.
const BYTES_PER_SECOND_MAX: f64 = 256.0 * 1024.0 * 1024.0;
/// So much may lie unsynced in the copy of a segment.
const UNSYNCED_BYTES_MAX: usize = 16 << 20;
/// When so little is missing the exchange is tried.
const CLOSE_BYTES: u64 = 512 << 10;
/// So much may be copied while producers wait: more than [`CLOSE_BYTES`], for records come while a sync ends.
const HELD_BYTES_MAX: u64 = 16 << 20;
/// So much stays free on the disk that a log moves to.
const ROOM_BYTES_MIN: u64 = 64 << 20;
/// Before it is looked again whether a move can go on that has to wait.
const WAIT: Duration = Duration::from_millis(50);
/// Before it is looked again whether there is anything to do, if nobody says so.
const IDLE_WAIT: Duration = Duration::from_secs(1);

/// The thread.
pub(crate) struct Mover {
    thread: Background,
    budget: Budget,
}

impl Default for Mover {
    fn default() -> Self {
        Mover {
            thread: Background::new("mover"),
            budget: Budget::default(),
        }
    }
}

/// How a move's turn went.
enum Turn {
    Moved,
    /// It has to wait for something.
    NotYet,
    /// The node goes down.
    Stopped,
}

pub(crate) fn start(broker: &Arc<Broker>) {
    broker.mover().thread.start(broker, run);
}

impl Mover {
    /// There is something to do.
    pub(crate) fn wake(&self) {
        self.thread.wake();
    }

    /// Ends the thread, in the middle of a copy if need be, and waits for that.
    pub(crate) fn stop(&self) {
        self.thread.stop();
    }
}

fn run(broker: &Arc<Broker>) {
    let (mover, directories) = (broker.mover(), broker.directories());
    loop {
        directories.discard_abandoned();
        let Some(moving) = directories.next_move() else {
            if mover.thread.idle(IDLE_WAIT) {
                return;
            }
            continue;
        };
        let Some(partition) = broker.partitions().get(moving.topic_id, moving.place.partition) else {
            directories.give_up(&moving);
            continue;
        };
        partition.standing().moving = true;
        let turn = take_turn(broker, &partition, &moving);
        partition.standing().moving = false;
        let (topic, index, target) = (&moving.place.topic, moving.place.partition, moving.future.parent());
        let target = target.map(|path| path.display().to_string()).unwrap_or_default();
        match turn {
            Ok(Turn::Moved) => info!(%topic, partition = %index, directory = target, "the log has moved"),
            Ok(Turn::NotYet) => directories.postpone(&moving),
            Ok(Turn::Stopped) => return,
            Err(MoveEnd::GivenUp) => {
                debug!(%topic, partition = %index, directory = target, "the log is not moved any more");
                directories.give_up(&moving);
            }
            Err(error) => {
                let error = describe(&error);
                warn!(%topic, partition = %index, directory = target, error, "the log is not moved: it stays where it is");
                directories.give_up(&moving);
            }
        }
        if mover.thread.pause(Duration::ZERO) {
            return;
        }
    }
}

fn take_turn(broker: &Arc<Broker>, partition: &Arc<Partition>, moving: &WantedMove) -> Result<Turn, MoveEnd> {
    let mover = broker.mover();
    if partition.standing().busy || !is_known_to_controller(broker, moving) {
        return Ok(match mover.thread.pause(WAIT) {
            true => Turn::Stopped,
            false => Turn::NotYet,
        });
    }
    let Some(disk) = broker.directories().target_disk(moving) else {
        return Err(MoveEnd::DirectoryFailed);
    };
    let future = moving.future.clone();
    let copy_to = disk.clone();
    let mut copying = partition.with_replica(|replica| Copying::begin(replica.log(), copy_to, future));
    loop {
        if !catch_up(broker, partition, moving, (&mut copying, &disk))? {
            return Ok(Turn::Stopped);
        }
        let now = broker.clock().now();
        let exchanged = partition.rehouse(|replica| {
            let directories = broker.directories();
            let log = directories.exchange(moving, &mut copying, replica, HELD_BYTES_MAX, now)?;
            Ok((log, ()))
        });
        match exchanged {
            None => return Err(MoveEnd::GivenUp),
            // More has come meanwhile.
            Some(Err(MoveEnd::Exchange(ExchangeError::Copy(CopyError::Behind(_))))) => {}
            Some(Err(error)) => return Err(error),
            Some(Ok(())) => {
                if let Some(directory) = broker.directories().lies_in(&moving.place) {
                    let index = moving.place.partition;
                    broker.assignments().tell(moving.topic_id, index, directory);
                }
                return Ok(Turn::Moved);
            }
        }
    }
}

/// What the controller believes counts where a directory is missing after a crash, so one move is over before the next.
fn is_known_to_controller(broker: &Broker, moving: &WantedMove) -> bool {
    let image = broker.view().image;
    let topic = image.topics.by_id(moving.topic_id);
    let partition = topic.and_then(|topic| topic.partitions.get(&moving.place.partition));
    let known = partition.map(|partition| partition.directory_of(broker.id()));
    known.is_some() && known == broker.directories().lies_in(&moving.place)
}

/// Copies until little is missing, and syncs that. False if the thread is to end.
fn catch_up(
    broker: &Broker,
    partition: &Partition,
    moving: &WantedMove,
    (copying, disk): (&mut Copying<LogDisk>, &LogDisk),
) -> Result<bool, MoveEnd> {
    let mover = broker.mover();
    let mut unsynced = 0;
    loop {
        if !broker.directories().is_wanted(moving) {
            return Err(MoveEnd::GivenUp);
        }
        if !partition.is_writable() {
            return Err(MoveEnd::DirectoryFailed);
        }
        let rate = broker.settings().log.move_bytes_per_second;
        let rate = rate.map_or(BYTES_PER_SECOND_MAX, |rate| rate.min(BYTES_PER_SECOND_MAX));
        let piece = (rate as usize).clamp(PIECE_BYTES_MIN, PIECE_BYTES_MAX);
        let room = disk.room(disk.directory()).map_err(CopyError::from)?;
        if !disk.takes_growth() || room.available_bytes < ROOM_BYTES_MIN + piece as u64 {
            return Err(MoveEnd::NoRoom);
        }
        let progress = copying.step(piece)?;
        moving.note(&progress);
        unsynced += progress.copied;
        let is_close = progress.behind <= CLOSE_BYTES;
        if is_close || unsynced >= UNSYNCED_BYTES_MAX {
            copying.sync().map_err(CopyError::from)?;
            unsynced = 0;
        }
        let wait = mover.budget.spend(progress.copied, rate, Instant::now());
        if mover.thread.pause(wait) {
            return Ok(false);
        }
        if is_close {
            return Ok(true);
        }
    }
}
