//! Which leader epoch began at which offset: Kafka's `leader-epoch-checkpoint` (KIP-101, KIP-279).
//!
//! ```text
//! 0            version
//! 2            number of entries
//! 0 0          epoch, start offset; both ascending
//! 3 1200
//! ```

use model::{LeaderEpoch, Offset};

/// The epochs of a log, ascending in epoch and in start offset.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LeaderEpochs {
    entries: Vec<EpochStart>,
}

/// The first offset written under an epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EpochStart {
    pub epoch: LeaderEpoch,
    pub start_offset: Offset,
}

/// An epoch and how far it reaches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct EpochSpan {
    /// `None` where the epochs are not known.
    pub(crate) epoch: Option<LeaderEpoch>,
    /// The first offset of another epoch.
    pub(crate) until: Offset,
}

/// Where an epoch ended: the answer to OffsetForLeaderEpoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EpochEnd {
    /// The asked epoch, or the greatest one below it that this log knows.
    pub epoch: LeaderEpoch,
    /// The first offset after it.
    pub end_offset: Offset,
}

impl LeaderEpochs {
    #[must_use]
    pub fn latest(&self) -> Option<EpochStart> {
        self.entries.last().copied()
    }

    #[must_use]
    pub fn entries(&self) -> &[EpochStart] {
        &self.entries
    }

    /// Notes that `epoch` wrote at `start_offset`. Entries that contradict it (from a later epoch, or from later on in the
    /// log) go. True if anything changed.
    pub fn assign(&mut self, epoch: LeaderEpoch, start_offset: Offset) -> bool {
        if self
            .latest()
            .is_some_and(|latest| latest.epoch == epoch && latest.start_offset <= start_offset)
        {
            return false;
        }
        while self
            .latest()
            .is_some_and(|latest| latest.epoch >= epoch || latest.start_offset >= start_offset)
        {
            self.entries.pop();
        }
        self.entries.push(EpochStart { epoch, start_offset });
        true
    }

    /// The epoch under which the record at `offset` was written.
    #[must_use]
    pub fn epoch_of(&self, offset: Offset) -> Option<LeaderEpoch> {
        let after = self.entries.partition_point(|entry| entry.start_offset <= offset);
        after.checked_sub(1).map(|at| self.entries[at].epoch)
    }

    /// The epoch under which the record at `offset` was written, and how far that reaches.
    pub(crate) fn span_of(&self, offset: Offset) -> EpochSpan {
        let after = self.entries.partition_point(|entry| entry.start_offset <= offset);
        EpochSpan {
            epoch: after.checked_sub(1).map(|at| self.entries[at].epoch),
            until: self.entries.get(after).map_or(Offset::MAX, |entry| entry.start_offset),
        }
    }

    /// Where `epoch` ended in a log whose end is `log_end_offset`; `None` for epochs above the latest.
    #[must_use]
    pub fn end_of(&self, epoch: LeaderEpoch, log_end_offset: Offset) -> Option<EpochEnd> {
        let latest = self.latest()?;
        if epoch == latest.epoch {
            return Some(EpochEnd {
                epoch,
                end_offset: log_end_offset,
            });
        }
        if epoch > latest.epoch {
            return None;
        }
        let after = self.entries.partition_point(|entry| entry.epoch <= epoch);
        let end_offset = self.entries[after].start_offset;
        // An epoch before the first known one ends where that begins.
        let epoch = after.checked_sub(1).map_or(epoch, |at| self.entries[at].epoch);
        Some(EpochEnd { epoch, end_offset })
    }

    /// Forgets epochs that begin at or after `end`. True if anything changed.
    pub fn truncate_from_end(&mut self, end: Offset) -> bool {
        let before = self.entries.len();
        self.entries.retain(|entry| entry.start_offset < end);
        self.entries.len() != before
    }

    /// Forgets epochs that end at or before `start`; the one that holds `start` begins there. True if anything changed.
    pub fn truncate_from_start(&mut self, start: Offset) -> bool {
        let after = self.entries.partition_point(|entry| entry.start_offset <= start);
        let Some(current) = after.checked_sub(1) else {
            return false;
        };
        if current == 0 && self.entries[0].start_offset == start {
            return false;
        }
        self.entries.drain(..current);
        self.entries[0].start_offset = start;
        true
    }

    pub fn clear(&mut self) {
        self.entries.clear();
    }

    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!("0\n{}\n", self.entries.len());
        for entry in &self.entries {
            text.push_str(&format!("{} {}\n", entry.epoch, entry.start_offset));
        }
        text
    }

    /// `None` if `text` is no such checkpoint.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        if lines.next()? != "0" {
            return None;
        }
        let count: usize = lines.next()?.parse().ok()?;
        let mut epochs = LeaderEpochs::default();
        for line in lines {
            let (epoch, start_offset) = line.split_once(' ')?;
            let epoch = LeaderEpoch::from_wire(epoch.parse().ok()?)?;
            let start_offset = Offset::from_wire(start_offset.parse().ok()?)?;
            if epochs
                .latest()
                .is_some_and(|latest| latest.epoch >= epoch || latest.start_offset > start_offset)
            {
                return None;
            }
            epochs.entries.push(EpochStart { epoch, start_offset });
        }
        (epochs.entries.len() == count).then_some(epochs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epochs(rows: &[(i32, i64)]) -> LeaderEpochs {
        let mut epochs = LeaderEpochs::default();
        for (epoch, offset) in rows {
            epochs.assign(LeaderEpoch::new(*epoch), Offset::new(*offset));
        }
        epochs
    }

    fn end(epochs: &LeaderEpochs, epoch: i32) -> Option<(i32, i64)> {
        let end = epochs.end_of(LeaderEpoch::new(epoch), Offset::new(100))?;
        Some((end.epoch.get(), end.end_offset.get()))
    }

    #[test]
    fn an_epoch_ends_where_the_next_known_one_begins() {
        let epochs = epochs(&[(1, 5), (4, 20), (6, 50)]);
        assert_eq!(end(&epochs, 0), Some((0, 5)));
        assert_eq!(end(&epochs, 1), Some((1, 20)));
        assert_eq!(end(&epochs, 3), Some((1, 20)));
        assert_eq!(end(&epochs, 5), Some((4, 50)));
        assert_eq!(end(&epochs, 6), Some((6, 100)));
        assert_eq!(end(&epochs, 7), None);
        assert_eq!(end(&LeaderEpochs::default(), 0), None);
    }

    #[test]
    fn a_newer_truth_takes_the_place_of_what_contradicts_it() {
        let mut epochs = epochs(&[(1, 5), (4, 20), (6, 50)]);
        assert!(epochs.assign(LeaderEpoch::new(5), Offset::new(20)));
        assert_eq!(epochs.to_text(), "0\n2\n1 5\n5 20\n");
        assert!(!epochs.assign(LeaderEpoch::new(5), Offset::new(30)));
    }

    #[test]
    fn both_ends_can_be_cut() {
        let mut epochs = epochs(&[(1, 5), (4, 20), (6, 50)]);
        assert!(epochs.truncate_from_end(Offset::new(50)));
        assert!(epochs.truncate_from_start(Offset::new(30)));
        assert_eq!(epochs.to_text(), "0\n1\n4 30\n");
        assert!(!epochs.truncate_from_start(Offset::new(10)));
    }

    #[test]
    fn the_text_form_is_read_back_and_nonsense_is_refused() {
        let epochs = epochs(&[(0, 0), (3, 1200)]);
        assert_eq!(epochs.to_text(), "0\n2\n0 0\n3 1200\n");
        assert_eq!(LeaderEpochs::from_text(&epochs.to_text()), Some(epochs));
        for nonsense in [
            "",
            "1\n0\n",
            "0\n2\n0 0\n",
            "0\n1\n0 -1\n",
            "0\n2\n3 0\n2 5\n",
            "0\n1\nx y\n",
        ] {
            assert_eq!(LeaderEpochs::from_text(nonsense), None, "{nonsense:?}");
        }
    }
}
