//! Reads all logs through, again and again, in search of damage that nobody has come upon yet.
//!
//! - One thread, at `millstream.log.scrub.bytes.per.second`; what it finds is quarantined by storage.
//! - A round goes over all partitions, segment by segment, and the next begins no sooner than a while after it. A node that
//!   starts anew begins anew, when it has opened the logs that it leads: a round over the first few would leave the others
//!   for a whole pause.
//! - The thread ends before the logs are closed.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use model::Offset;
use tracing::warn;

use crate::background::Background;
use crate::errors::describe;
use crate::node::Broker;
use crate::partitions::Partition;

/// The least time from the end of a round to the next.
const ROUND_PAUSE: Duration = Duration::from_secs(3600);
/// Bytes between two waits.
const PACE_BYTES: usize = 256 << 10;
/// Before it is looked again whether the logs are open and there is anything to read.
const EMPTY_PAUSE: Duration = Duration::from_secs(1);

/// The thread and what it has done.
pub(crate) struct Scrubber {
    thread: Background,
    bytes: AtomicU64,
    rounds: AtomicU64,
    found: AtomicU64,
}

impl Default for Scrubber {
    fn default() -> Self {
        Scrubber {
            thread: Background::new("scrubber"),
            bytes: AtomicU64::new(0),
            rounds: AtomicU64::new(0),
            found: AtomicU64::new(0),
        }
    }
}

/// What of the logs is damaged, and how far that was looked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DamageFigures {
    pub ranges: usize,
    pub partitions: usize,
    pub scrubbed_bytes: u64,
    pub scrub_rounds: u64,
    /// Segments with damage that only the search came upon.
    pub scrub_found: u64,
}

/// Starts the thread, where a rate is set.
pub(crate) fn start(broker: &Arc<Broker>) {
    let Some(rate) = broker.settings().log.scrub_bytes_per_second else {
        return;
    };
    broker.scrubber().thread.start(broker, move |broker| {
        // As retention does: a node that has just started has its hands free.
        let mut pause = broker.settings().log.initial_task_delay;
        while !broker.scrubber().thread.pause(pause) {
            pause = if broker.view().shows(broker.id(), broker.epoch()) && round(broker, rate) {
                ROUND_PAUSE
            } else {
                EMPTY_PAUSE
            };
        }
    });
}

impl Scrubber {
    pub(crate) fn figures(&self, broker: &Broker) -> DamageFigures {
        let damage: Vec<usize> = broker
            .partitions()
            .all()
            .iter()
            .map(|partition| partition.damage().len())
            .filter(|ranges| *ranges > 0)
            .collect();
        DamageFigures {
            ranges: damage.iter().sum(),
            partitions: damage.len(),
            scrubbed_bytes: self.bytes.load(Ordering::Relaxed),
            scrub_rounds: self.rounds.load(Ordering::Relaxed),
            scrub_found: self.found.load(Ordering::Relaxed),
        }
    }

    /// Ends the thread, in the middle of a segment if need be, and waits for that.
    pub(crate) fn stop(&self) {
        self.thread.stop();
    }
}

/// Goes over all partitions once; false if there was nothing to read.
fn round(broker: &Arc<Broker>, rate: u64) -> bool {
    let scrubber = broker.scrubber();
    let (mut unpaid, mut has_read) = (0, false);
    for partition in broker.partitions().all() {
        let mut from = Offset::ZERO;
        while let Some(next) = step(broker, &partition, from, rate, &mut unpaid) {
            from = next;
            has_read = true;
        }
        if scrubber.thread.is_stopping() {
            return has_read;
        }
    }
    scrubber.rounds.fetch_add(u64::from(has_read), Ordering::Relaxed);
    has_read
}

/// Checks the next segment of a partition; where the one behind it begins, `None` if there is none.
fn step(broker: &Broker, partition: &Partition, from: Offset, rate: u64, unpaid: &mut usize) -> Option<Offset> {
    if partition.is_offline() {
        return None;
    }
    let scrubber = broker.scrubber();
    let scrubbed = partition.scrub(from.max(partition.ends().log_start_offset), |bytes| {
        *unpaid += bytes;
        if *unpaid < PACE_BYTES {
            return ControlFlow::Continue(());
        }
        let wait = Duration::from_secs_f64(*unpaid as f64 / rate as f64);
        *unpaid = 0;
        if scrubber.thread.pause(wait) || partition.is_offline() {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    match scrubbed {
        Ok(scrubbed) => {
            let scrubbed = scrubbed?;
            scrubber.bytes.fetch_add(scrubbed.bytes, Ordering::Relaxed);
            scrubber.found.fetch_add(u64::from(scrubbed.found), Ordering::Relaxed);
            Some(scrubbed.next)
        }
        Err(error) => {
            warn!(topic = %partition.topic(), partition = %partition.index(), error = describe(&error), "log not scrubbed");
            None
        }
    }
}
