//! A deadline is processor time of the call, not time that passes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use model::Timestamp;
use plugin::host::InstanceLimits;
use plugin::{Accumulated, CallError, Pane, TrapKind, Window, WindowAggregator};
use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

use crate::fixtures::{module, prompt_settings, rows};

/// Threads that want the same processor as the guest.
const RIVALS: usize = 19;

/// Ends the rivals, also where the test ends early.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn spin(guest: &mut dyn WindowAggregator, rounds: u64) -> Result<Accumulated, CallError> {
    let pane = Pane {
        window: Window {
            start: Timestamp::from_millis(0),
            end: Timestamp::from_millis(10),
        },
        key: Bytes::from_static(b"k"),
        accumulator: None,
        rows: vec![0],
        each: false,
    };
    guest.accumulate(&rows(&[&format!("spin {rounds}")]), &[pane])
}

fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
}

#[test]
fn a_guest_that_lost_the_processor_for_long_is_not_interrupted() {
    let mut guest = module("evil").window_aggregator(prompt_settings(&[])).unwrap();
    let limit = InstanceLimits::PROCESSOR.call_time;
    // Spins so many rounds, and tells how many would have taken 20 ms of processor time: far below the limit,
    // for a machine under this one that is busy makes calls several times as long.
    let mut measured = |rounds: u64| {
        let before = thread_time();
        assert_eq!(spin(&mut *guest, rounds).err(), None);
        rounds * 20_000 / u64::try_from((thread_time() - before).as_micros()).unwrap().max(1)
    };
    let mut rounds = measured(1_000_000);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let stopping = Stop(&stop);
        let mut here = CpuSet::new();
        here.set(sched_getcpu());
        sched_setaffinity(None, &here).unwrap();
        for _ in 0..RIVALS {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        // With so many rivals the call takes several times its limit; once is enough to see. The first measure may have
        // been of a slow call, so each measures anew.
        let waited = (0..20).any(|_| {
            let begin = Instant::now();
            rounds = measured(rounds);
            begin.elapsed() > 2 * limit
        });
        drop(stopping);
        assert!(waited, "the rivals took no time");
    });
}

#[test]
fn a_call_that_works_too_long_is_interrupted_soon_after_its_limit() {
    for limit in [Duration::from_millis(10), Duration::from_millis(100)] {
        let mut settings = prompt_settings(&[]);
        settings.limits.call_time = limit;
        let mut guest = module("evil").window_aggregator(settings).unwrap();
        let before = thread_time();
        let Err(CallError::Trap(trap)) = spin(&mut *guest, u64::MAX) else {
            panic!("it ended");
        };
        let used = thread_time() - before;
        assert_eq!(trap.kind, TrapKind::Interrupted);
        assert!(
            (limit..limit + Duration::from_secs(1)).contains(&used),
            "{used:?} of {limit:?}"
        );
    }
}

#[test]
fn deadlines_work_after_the_ticker_has_slept() {
    let mut guest = module("evil").window_aggregator(prompt_settings(&[])).unwrap();
    for _ in 0..2 {
        let Err(CallError::Trap(trap)) = spin(&mut *guest, u64::MAX) else {
            panic!("it ended");
        };
        assert_eq!(trap.kind, TrapKind::Interrupted);
        // Longer than the ticker stays awake without calls; there is nothing to see from outside when it falls asleep.
        let asleep = Instant::now() + Duration::from_millis(400);
        while Instant::now() < asleep {
            std::thread::park_timeout(asleep - Instant::now());
        }
    }
}
