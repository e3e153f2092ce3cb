//! The clocks of a node, read here and handed down as arguments.
//!
//! The wall clock is for the times of records. What deletes by age goes by a reckoning of its own, which follows the wall
//! clock only where that runs like the monotonic one: a clock that is set wrong must not delete what is not old.
//!
//! ```text
//! wall clock   ──────────────┐ jumps ahead      ┌──────────── for a day: believed
//!                            └──────────────────┘
//! reckoning    ──────────────────────────────── ┘
//! ```

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use model::{Monotonic, Timestamp};
use tracing::{info, warn};

/// How far the wall clock may come to differ between two looks at it before it is taken to have been set.
const DIFFERENCE_MAX: Duration = Duration::from_mins(1);
/// How long a clock that was set must go on like that to be believed.
const DOUBT: Duration = Duration::from_hours(24);

/// Reads the machine's clocks; clones are the same clock. Monotonic time counts from when this was made.
#[derive(Clone, Debug)]
pub struct Clock {
    start: Instant,
    reckoning: Arc<Mutex<Reckoning>>,
}

impl Clock {
    #[must_use]
    pub fn start() -> Self {
        Clock {
            start: Instant::now(),
            reckoning: Arc::new(Mutex::new(Reckoning::new(wall(), Monotonic::default()))),
        }
    }

    #[must_use]
    pub fn monotonic(&self) -> Monotonic {
        Monotonic::from_start(self.start.elapsed())
    }

    /// Wall-clock time; a machine whose clock stands before 1970 reads as 1970.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        wall()
    }

    /// The time by which things are too old: never ahead of what has passed since the node started.
    #[must_use]
    pub fn for_ages(&self) -> Timestamp {
        let mut reckoning = self.reckoning.lock().unwrap_or_else(PoisonError::into_inner);
        reckoning.at(wall(), self.monotonic())
    }

    /// How far the wall clock is ahead of that time.
    #[must_use]
    pub fn doubted(&self) -> Duration {
        let (now, for_ages) = (wall(), self.for_ages());
        let ahead = now.millis().saturating_sub(for_ages.millis());
        let ahead = Duration::from_millis(u64::try_from(ahead).unwrap_or(0));
        if ahead > DIFFERENCE_MAX { ahead } else { Duration::ZERO }
    }
}

fn wall() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Where the wall clock would stand if nobody had set it.
#[derive(Debug)]
struct Reckoning {
    wall: Timestamp,
    monotonic: Monotonic,
    /// Since when the wall clock differs.
    doubted_since: Option<Monotonic>,
}

impl Reckoning {
    fn new(wall: Timestamp, monotonic: Monotonic) -> Self {
        Reckoning {
            wall,
            monotonic,
            doubted_since: None,
        }
    }

    /// Takes a look at both clocks. Where the wall clock was set back it is believed at once: by it things are younger.
    fn at(&mut self, wall: Timestamp, monotonic: Monotonic) -> Timestamp {
        let passed = i64::try_from(monotonic.since(self.monotonic).as_millis()).unwrap_or(i64::MAX);
        let expected = Timestamp::from_millis(self.wall.millis().saturating_add(passed));
        self.monotonic = monotonic;
        let difference_ms = wall.millis().saturating_sub(expected.millis());
        if difference_ms.unsigned_abs() <= u64::try_from(DIFFERENCE_MAX.as_millis()).unwrap_or(u64::MAX) {
            self.wall = wall;
            self.doubted_since = None;
            return wall;
        }
        let since = *self.doubted_since.get_or_insert_with(|| {
            warn!(
                difference_ms,
                "the wall clock was set: nothing is deleted by its time before it has stood for a day"
            );
            monotonic
        });
        if monotonic.since(since) >= DOUBT {
            info!(difference_ms, "the wall clock is believed");
            *self = Reckoning::new(wall, monotonic);
            return wall;
        }
        self.wall = expected;
        wall.min(expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;
    const START: i64 = 1_000_000 * HOUR;

    /// The reckoning when the clocks show these hours since the start, looked at in this order.
    fn reckon(looks: &[(i64, i64)]) -> Vec<i64> {
        let mut reckoning = Reckoning::new(Timestamp::from_millis(START), Monotonic::default());
        let looks = looks.iter().map(|(wall, passed)| {
            let monotonic = Monotonic::from_start(Duration::from_hours(u64::try_from(*passed).unwrap()));
            let at = reckoning.at(Timestamp::from_millis(START + wall * HOUR), monotonic);
            (at.millis() - START) / HOUR
        });
        looks.collect()
    }

    #[test]
    fn a_clock_that_runs_is_believed() {
        assert_eq!(reckon(&[(0, 0), (1, 1), (30, 30), (500, 500)]), [0, 1, 30, 500]);
    }

    #[test]
    fn a_jump_ahead_is_not_believed_for_a_day() {
        assert_eq!(
            reckon(&[(1, 1), (50, 2), (60, 12), (73, 25), (74, 26)]),
            [1, 2, 12, 25, 74]
        );
    }

    #[test]
    fn a_jump_that_is_taken_back_leaves_no_trace() {
        assert_eq!(reckon(&[(1, 1), (50, 2), (3, 3), (40, 40)]), [1, 2, 3, 40]);
    }

    #[test]
    fn two_jumps_ahead_are_doubted_from_the_first_on() {
        assert_eq!(reckon(&[(50, 1), (100, 2), (123, 25)]), [1, 2, 123]);
    }

    #[test]
    fn a_clock_that_is_set_back_is_believed_at_once_and_is_not_ahead_when_it_is_set_right() {
        assert_eq!(reckon(&[(10, 10), (-38, 12), (14, 14)]), [10, -38, 14]);
        // Unless it has stood there for a day: then that is the time.
        assert_eq!(reckon(&[(10, 10), (-38, 12), (-14, 36), (38, 38)]), [10, -38, -14, -12]);
    }

    #[test]
    fn a_minute_is_what_clocks_are_set_by() {
        let mut reckoning = Reckoning::new(Timestamp::from_millis(START), Monotonic::default());
        let mut at = |wall: i64| {
            reckoning
                .at(Timestamp::from_millis(START + wall), Monotonic::default())
                .millis()
                - START
        };
        assert_eq!(at(60_000), 60_000);
        assert_eq!(at(120_001), 60_000);
    }
}
