//! The two clocks of a node, read here and handed down as arguments.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use model::{Monotonic, Timestamp};

/// Reads the machine's clocks. Monotonic time counts from when this was made.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    #[must_use]
    pub fn start() -> Self {
        Clock { start: Instant::now() }
    }

    #[must_use]
    pub fn monotonic(&self) -> Monotonic {
        Monotonic::from_start(self.start.elapsed())
    }

    /// Wall-clock time; a machine whose clock stands before 1970 reads as 1970.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}
