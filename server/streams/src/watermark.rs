//! Stream time: the greatest event time seen so far. It closes windows, and never goes back.

use model::Timestamp;
use plugin::Window;

/// Stream time of one task, over all keys of its partition, and the grace that windows get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watermark {
    stream_time: Option<Timestamp>,
    grace_ms: i64,
}

impl Watermark {
    pub(crate) fn new(stream_time: Option<Timestamp>, grace_ms: i64) -> Self {
        Watermark { stream_time, grace_ms }
    }

    /// `None` before the first row.
    #[must_use]
    pub fn stream_time(&self) -> Option<Timestamp> {
        self.stream_time
    }

    /// Takes a row's event time; says whether stream time moved.
    pub(crate) fn observe(&mut self, event_time: Timestamp) -> bool {
        let moves = self.stream_time.is_none_or(|stream_time| stream_time < event_time);
        if moves {
            self.stream_time = Some(event_time);
        }
        moves
    }

    /// A window is closed from stream time = end + grace on. It takes no row then, and its result is final.
    #[must_use]
    pub fn has_closed(&self, window: Window) -> bool {
        self.stream_time
            .is_some_and(|stream_time| stream_time.millis() >= window.end.millis() + self.grace_ms)
    }

    /// Windows of this size are closed iff they start below this; `None` if there cannot be one.
    pub(crate) fn closed_below(&self, size_ms: i64) -> Option<Timestamp> {
        let bound = self.stream_time?.millis() - self.grace_ms - size_ms + 1;
        (bound > 0).then(|| Timestamp::from_millis(bound))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_open_until_its_grace_is_over() {
        let window = Window {
            start: Timestamp::from_millis(0),
            end: Timestamp::from_millis(10),
        };
        let mut watermark = Watermark::new(None, 3);
        assert!(!watermark.has_closed(window));
        assert!(watermark.observe(Timestamp::from_millis(12)));
        assert!(!watermark.has_closed(window));
        assert_eq!(watermark.closed_below(10), None);
        assert!(watermark.observe(Timestamp::from_millis(13)));
        assert!(watermark.has_closed(window));
        assert_eq!(watermark.closed_below(10), Some(Timestamp::from_millis(1)));
    }

    #[test]
    fn stream_time_does_not_go_back() {
        let mut watermark = Watermark::new(Some(Timestamp::from_millis(5)), 0);
        assert!(!watermark.observe(Timestamp::from_millis(4)));
        assert!(!watermark.observe(Timestamp::from_millis(5)));
        assert_eq!(watermark.stream_time(), Some(Timestamp::from_millis(5)));
    }
}
