//! Which windows an event time falls into.
//!
//! Windows are aligned to the epoch: each starts at a multiple of the advance, none below zero. The windows of one
//! processor are all equally long, so they end, and close, in the order in which they start.
//!
//! ```text
//! tumbling, size 5      |0 ───── 5|5 ──── 10|10 ─── 15|
//! hopping, 5 by 2       |0 ───── 5|
//!                           |2 ───── 7|
//!                               |4 ───── 9|
//! ```

mod hopping;
mod tumbling;

pub use hopping::Hopping;
pub use tumbling::Tumbling;

use model::Timestamp;
use plugin::Window;

/// Greatest size, grace and event time, in milliseconds: the sum of any three is a valid time.
pub const TIME_MS_MAX: i64 = i64::MAX / 4;

/// Most windows that one row may fall into.
pub const WINDOWS_PER_ROW_MAX: i64 = 1000;

/// Why there can be no such windows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    #[error("a window of {0} ms: the size must be from 1 to {TIME_MS_MAX} ms")]
    Size(i64),
    #[error("an advance of {advance_ms} ms: it must be from 1 ms to the window's size, {size_ms} ms")]
    Advance { advance_ms: i64, size_ms: i64 },
    #[error(
        "windows of {size_ms} ms advancing by {advance_ms} ms put each row into more than {WINDOWS_PER_ROW_MAX} of them"
    )]
    Overlap { advance_ms: i64, size_ms: i64 },
    #[error("a grace of {0} ms: it must be from 0 to {TIME_MS_MAX} ms")]
    Grace(i64),
}

/// How event time is cut into windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Windows {
    Tumbling(Tumbling),
    Hopping(Hopping),
}

impl Windows {
    #[must_use]
    pub fn size_ms(&self) -> i64 {
        match self {
            Windows::Tumbling(tumbling) => tumbling.size_ms(),
            Windows::Hopping(hopping) => hopping.size_ms(),
        }
    }

    /// How far apart the starts of neighbouring windows are.
    #[must_use]
    pub fn advance_ms(&self) -> i64 {
        match self {
            Windows::Tumbling(tumbling) => tumbling.size_ms(),
            Windows::Hopping(hopping) => hopping.advance_ms(),
        }
    }

    /// Most windows that one row falls into.
    #[must_use]
    pub fn per_row_max(&self) -> usize {
        match self {
            Windows::Tumbling(_) => 1,
            Windows::Hopping(hopping) => usize::try_from(hopping.per_row_max()).expect("at most WINDOWS_PER_ROW_MAX"),
        }
    }

    /// The windows that hold `event_time`, which is neither negative nor above [`TIME_MS_MAX`], earliest first.
    pub fn of(&self, event_time: Timestamp) -> impl Iterator<Item = Window> {
        let (first, last) = match self {
            Windows::Tumbling(tumbling) => (tumbling.start(event_time), tumbling.start(event_time)),
            Windows::Hopping(hopping) => hopping.starts(event_time),
        };
        let windows = *self;
        let mut next = Some(first);
        std::iter::from_fn(move || {
            let start = next.take_if(|start| *start <= last)?;
            next = start.checked_add(windows.advance_ms());
            Some(windows.starting_at(Timestamp::from_millis(start)))
        })
    }

    #[must_use]
    pub fn starting_at(&self, start: Timestamp) -> Window {
        Window {
            start,
            end: Timestamp::from_millis(start.millis().saturating_add(self.size_ms())),
        }
    }
}

/// Checks a grace period.
pub(crate) fn check_grace(grace_ms: i64) -> Result<i64, WindowError> {
    if (0..=TIME_MS_MAX).contains(&grace_ms) {
        Ok(grace_ms)
    } else {
        Err(WindowError::Grace(grace_ms))
    }
}

fn check_size(size_ms: i64) -> Result<i64, WindowError> {
    if (1..=TIME_MS_MAX).contains(&size_ms) {
        Ok(size_ms)
    } else {
        Err(WindowError::Size(size_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn starts(windows: &Windows, at: i64) -> Vec<i64> {
        windows
            .of(Timestamp::from_millis(at))
            .map(|window| window.start.millis())
            .collect()
    }

    #[test]
    fn a_tumbling_window_holds_its_start_and_not_its_end() {
        let windows = Windows::Tumbling(Tumbling::new(5_000).unwrap());
        assert_eq!(starts(&windows, 4_999), [0]);
        assert_eq!(starts(&windows, 5_000), [5_000]);
    }

    #[test]
    fn no_hopping_window_starts_below_zero() {
        let windows = Windows::Hopping(Hopping::new(5_000, 2_000).unwrap());
        assert_eq!(starts(&windows, 0), [0]);
        assert_eq!(starts(&windows, 4_000), [0, 2_000, 4_000]);
        assert_eq!(starts(&windows, 5_000), [2_000, 4_000]);
    }

    #[test]
    fn windows_that_cannot_be_are_refused() {
        assert_eq!(Tumbling::new(0), Err(WindowError::Size(0)));
        assert_eq!(
            Hopping::new(5, 6),
            Err(WindowError::Advance {
                advance_ms: 6,
                size_ms: 5
            })
        );
        assert_eq!(
            Hopping::new(1001, 1),
            Err(WindowError::Overlap {
                advance_ms: 1,
                size_ms: 1001
            })
        );
        assert_eq!(check_grace(-1), Err(WindowError::Grace(-1)));
    }

    proptest! {
        #[test]
        fn the_windows_of_a_time_are_all_aligned_ones_that_hold_it(size in 1..60i64, advance in 1..60i64, at in 0..300i64) {
            let advance = advance.min(size);
            let windows = Windows::Hopping(Hopping::new(size, advance).unwrap());
            let expected: Vec<i64> = (0..=at).filter(|start| start % advance == 0 && at < start + size).collect();
            prop_assert!(expected.len() <= windows.per_row_max());
            prop_assert_eq!(starts(&windows, at), expected);
        }

        #[test]
        fn the_greatest_times_do_not_overflow(size in 1..=TIME_MS_MAX) {
            let windows = Windows::Tumbling(Tumbling::new(size).unwrap());
            for window in windows.of(Timestamp::from_millis(TIME_MS_MAX)) {
                prop_assert_eq!(window.end.millis() - window.start.millis(), size);
            }
        }
    }
}
