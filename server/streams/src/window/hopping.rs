//! Windows that overlap: one begins at every multiple of the advance, and each event time lies in size ÷ advance of them.

use model::Timestamp;

use super::{WINDOWS_PER_ROW_MAX, WindowError, check_size};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hopping {
    size_ms: i64,
    advance_ms: i64,
}

impl Hopping {
    /// # Errors
    /// If the size or the advance is out of range, or a row would fall into too many windows.
    pub fn new(size_ms: i64, advance_ms: i64) -> Result<Self, WindowError> {
        let size_ms = check_size(size_ms)?;
        if !(1..=size_ms).contains(&advance_ms) {
            return Err(WindowError::Advance { advance_ms, size_ms });
        }
        let hopping = Hopping { size_ms, advance_ms };
        if hopping.per_row_max() > WINDOWS_PER_ROW_MAX {
            return Err(WindowError::Overlap { advance_ms, size_ms });
        }
        Ok(hopping)
    }

    #[must_use]
    pub fn size_ms(&self) -> i64 {
        self.size_ms
    }

    #[must_use]
    pub fn advance_ms(&self) -> i64 {
        self.advance_ms
    }

    /// Size ÷ advance, rounded up.
    pub(super) fn per_row_max(&self) -> i64 {
        (self.size_ms - 1) / self.advance_ms + 1
    }

    /// The first and the last start whose window holds `event_time`. As no advance is greater than the size, windows
    /// leave no gaps: there is always one.
    pub(super) fn starts(&self, event_time: Timestamp) -> (i64, i64) {
        let time = event_time.millis();
        let last = time - time.rem_euclid(self.advance_ms);
        // The earliest start is the first multiple of the advance above time - size.
        let after = time - self.size_ms;
        let first = if after < 0 {
            0
        } else {
            after - after.rem_euclid(self.advance_ms) + self.advance_ms
        };
        (first, last)
    }
}
