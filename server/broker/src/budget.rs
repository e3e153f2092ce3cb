//! A rate of bytes that several threads share.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The least rate; a budget of nothing would stop a thread for ever.
const BYTES_PER_SECOND_MIN: f64 = 1.0;
/// No single wait is longer, so that a rate that was raised soon counts.
const WAIT_MAX: Duration = Duration::from_secs(10);

#[derive(Default)]
pub(crate) struct Budget {
    /// When everything that was spent has been paid for.
    paid_until: Mutex<Option<Instant>>,
}

impl Budget {
    /// Spends `bytes`, and tells how long to wait for it.
    pub(crate) fn spend(&self, bytes: usize, bytes_per_second: f64, now: Instant) -> Duration {
        let cost = Duration::from_secs_f64((bytes as f64 / bytes_per_second.max(BYTES_PER_SECOND_MIN)).min(86_400.0));
        let mut paid_until = self.paid_until.lock().unwrap_or_else(PoisonError::into_inner);
        let until = paid_until.map_or(now, |until| until.max(now)) + cost;
        let wait = until.saturating_duration_since(now).min(WAIT_MAX);
        *paid_until = Some(now + wait);
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_spend_is_paid_one_after_the_other() {
        let (budget, now) = (Budget::default(), Instant::now());
        let seconds = |bytes, at: u64| budget.spend(bytes, 100.0, now + Duration::from_secs(at)).as_secs();
        assert_eq!((seconds(100, 0), seconds(200, 0)), (1, 3));
        assert_eq!(seconds(100, 2), 2);
        assert_eq!(seconds(100, 60), 1, "what was not spent is not saved up");
        assert_eq!(seconds(1_000_000, 60), 10);
    }
}
