//! How long a call may take: processor time of the calling thread, so a busy machine kills no innocent plugin.
//!
//! The engine's ticker raises the epoch about every millisecond while calls are in flight. A tick takes at least a
//! millisecond of wall time, and a thread uses no more processor time than that: a call of `n` milliseconds need not look
//! at its clock before tick `n`, and then only as often as it could be over.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The least time between two ticks.
pub(crate) const TICK: Duration = Duration::from_millis(1);

/// The deadline of the call that is running, in processor time of its thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    limit: Duration,
    ends_at: Duration,
}

/// A call used up its time.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the call took more than {} ms of processor time", .limit.as_millis())]
pub(crate) struct Exceeded {
    limit: Duration,
}

impl Deadline {
    /// Begins now.
    pub(crate) fn after(limit: Duration) -> Self {
        Deadline {
            limit,
            ends_at: thread_time().saturating_add(limit),
        }
    }

    /// Ticks until the next look at the clock.
    ///
    /// # Errors
    /// If the time is over.
    pub(crate) fn ticks_left(&self) -> Result<u64, Exceeded> {
        let left = self.ends_at.saturating_sub(thread_time());
        if left.is_zero() {
            return Err(Exceeded { limit: self.limit });
        }
        Ok(u64::try_from(left.as_nanos().div_ceil(TICK.as_nanos())).unwrap_or(u64::MAX / 2))
    }
}

/// Processor time that this thread has used.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_does_not_bring_a_deadline_nearer_and_working_does() {
        let deadline = Deadline::after(Duration::from_millis(20));
        let begin = std::time::Instant::now();
        while begin.elapsed() < Duration::from_millis(30) {
            std::thread::park_timeout(Duration::from_millis(5));
        }
        assert!(deadline.ticks_left().unwrap() > 10);
        while let Ok(ticks) = deadline.ticks_left() {
            assert!((1..=20).contains(&ticks), "{ticks}");
        }
        let error = deadline.ticks_left().unwrap_err().to_string();
        assert_eq!(error, "the call took more than 20 ms of processor time");
    }
}
