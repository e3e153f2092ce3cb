//! Two clocks that never mix: the wall clock stamps records and drives retention, the monotonic one drives timeouts.

use std::fmt;
use std::time::Duration;

/// Wall-clock time in milliseconds since 1970-01-01T00:00:00Z. Producers may send any value from 0 on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Timestamp(millis)
    }

    /// `None` for the negative sentinels of the wire.
    #[must_use]
    pub const fn from_wire(millis: i64) -> Option<Self> {
        if millis < 0 { None } else { Some(Timestamp(millis)) }
    }

    #[must_use]
    pub const fn millis(self) -> i64 {
        self.0
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Time on a clock that never goes back, as the duration since some start that is the same for the whole process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Monotonic(Duration);

impl Monotonic {
    #[must_use]
    pub const fn from_start(elapsed: Duration) -> Self {
        Monotonic(elapsed)
    }

    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Monotonic(Duration::from_millis(millis))
    }

    #[must_use]
    pub const fn since_start(self) -> Duration {
        self.0
    }

    /// The time `wait` later, at most the greatest the clock can tell.
    #[must_use]
    pub const fn plus(self, wait: Duration) -> Self {
        Monotonic(self.0.saturating_add(wait))
    }

    /// How long ago `earlier` was; zero if it lies ahead.
    #[must_use]
    pub const fn since(self, earlier: Monotonic) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Debug for Monotonic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
