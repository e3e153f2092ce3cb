//! How long to wait before something is tried again: twice as long each time.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(100);
const GREATEST: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) struct BackOff {
    next: Duration,
}

impl Default for BackOff {
    fn default() -> Self {
        BackOff { next: FIRST }
    }
}

impl BackOff {
    pub(crate) fn next(&mut self) -> Duration {
        let wait = self.next;
        self.next = (wait * 2).min(GREATEST);
        wait
    }

    pub(crate) fn reset(&mut self) {
        self.next = FIRST;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_to_its_greatest_and_begins_anew() {
        let mut back_off = BackOff::default();
        let waits: Vec<_> = (0..10).map(|_| back_off.next().as_millis()).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000]);
        back_off.reset();
        assert_eq!(back_off.next(), FIRST);
    }
}
