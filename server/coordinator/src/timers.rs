//! Deadlines by key: one per key, in order of time, ties in the order in which they were set.

use std::collections::BTreeMap;

use model::Monotonic;

/// A deadline and the number of its setting, which tells a timer from its successor under the same key.
type Due = (Monotonic, u64);

#[derive(Debug)]
pub(crate) struct Timers<Key> {
    by_due: BTreeMap<Due, Key>,
    by_key: BTreeMap<Key, Due>,
    settings: u64,
}

impl<Key: Ord + Clone> Timers<Key> {
    pub(crate) fn new() -> Self {
        Timers {
            by_due: BTreeMap::new(),
            by_key: BTreeMap::new(),
            settings: 0,
        }
    }

    /// Sets the key's deadline, in place of the one it had.
    pub(crate) fn set(&mut self, key: Key, deadline: Monotonic) {
        self.cancel(&key);
        self.settings += 1;
        let due = (deadline, self.settings);
        self.by_due.insert(due, key.clone());
        self.by_key.insert(key, due);
    }

    pub(crate) fn cancel(&mut self, key: &Key) {
        if let Some(due) = self.by_key.remove(key) {
            self.by_due.remove(&due);
        }
    }

    pub(crate) fn next(&self) -> Option<Monotonic> {
        self.by_due.keys().next().map(|(deadline, _)| *deadline)
    }

    /// What is due at `now`, as it stands before any of it is acted on: what the actions set waits for the next tick.
    pub(crate) fn due(&self, now: Monotonic) -> Vec<(Key, Due)> {
        self.by_due
            .range(..=(now, u64::MAX))
            .map(|(due, key)| (key.clone(), *due))
            .collect()
    }

    /// Takes a timer out; false if it has been cancelled or set again since.
    pub(crate) fn take(&mut self, key: &Key, due: Due) -> bool {
        if self.by_key.get(key) != Some(&due) {
            return false;
        }
        self.cancel(key);
        true
    }

    pub(crate) fn clear(&mut self) {
        self.by_due.clear();
        self.by_key.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_that_was_set_again_while_due_does_not_fire() {
        let mut timers = Timers::new();
        timers.set("a", Monotonic::from_millis(5));
        timers.set("b", Monotonic::from_millis(5));
        let due = timers.due(Monotonic::from_millis(5));
        assert_eq!(due.iter().map(|(key, _)| *key).collect::<Vec<_>>(), ["a", "b"]);
        timers.set("b", Monotonic::from_millis(9));
        assert!(timers.take(&due[0].0, due[0].1));
        assert!(!timers.take(&due[1].0, due[1].1));
        assert_eq!(timers.next(), Some(Monotonic::from_millis(9)));
    }
}
