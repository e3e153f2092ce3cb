//! Windows side by side: each event time lies in exactly one.

use model::Timestamp;

use super::{WindowError, check_size};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tumbling {
    size_ms: i64,
}

impl Tumbling {
    /// # Errors
    /// If the size is not positive or absurdly large.
    pub fn new(size_ms: i64) -> Result<Self, WindowError> {
        Ok(Tumbling {
            size_ms: check_size(size_ms)?,
        })
    }

    #[must_use]
    pub fn size_ms(&self) -> i64 {
        self.size_ms
    }

    pub(super) fn start(&self, event_time: Timestamp) -> i64 {
        event_time.millis() - event_time.millis().rem_euclid(self.size_ms)
    }
}
