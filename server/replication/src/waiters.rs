//! Those who wait for a partition to reach an offset: producers for durability, consumers for something to read.
//!
//! The shell keeps whatever it needs to wake a waiter under the [`WaiterId`]; each id comes out once, either when its
//! offset is reached or when the waiter takes it back. How many there can be is bounded by the connections and by the
//! requests that each may have under way.

use std::collections::BTreeSet;

use model::Offset;

/// Tells one waiter of a partition from the others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct WaiterId {
    offset: Offset,
    number: u64,
}

/// The waiters of one partition, by the offset that they wait for.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    waiting: BTreeSet<WaiterId>,
}

/// Numbers waiters, so that no two of a partition have the same id whatever they wait for.
#[derive(Debug, Default)]
pub(crate) struct WaiterNumbers(u64);

impl Waiters {
    /// Waits until `offset` (exclusive end) is reached.
    pub(crate) fn add(&mut self, offset: Offset, numbers: &mut WaiterNumbers) -> WaiterId {
        let number = numbers.0;
        let id = WaiterId { offset, number };
        numbers.0 += 1;
        self.waiting.insert(id);
        id
    }

    /// Gives up waiting; false if the offset has been reached meanwhile.
    pub(crate) fn remove(&mut self, id: WaiterId) -> bool {
        self.waiting.remove(&id)
    }

    /// Takes out all who waited for `end` or less, by ascending offset and, within one offset, in the order they came.
    pub(crate) fn take_reached(&mut self, end: Offset) -> impl Iterator<Item = WaiterId> + use<> {
        let later = self.waiting.split_off(&WaiterId {
            offset: end.plus(1),
            number: 0,
        });
        std::mem::replace(&mut self.waiting, later).into_iter()
    }

    /// Takes out everybody: the partition has been deleted or has lost its leader.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = WaiterId> + use<> {
        std::mem::take(&mut self.waiting).into_iter()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_wait_for_what_is_reached_come_out_in_order() {
        let (mut waiters, mut numbers) = (Waiters::default(), WaiterNumbers::default());
        let ids: Vec<WaiterId> = [5, 3, 9, 3, 8]
            .iter()
            .map(|offset| waiters.add(Offset::new(*offset), &mut numbers))
            .collect();
        assert_eq!(waiters.take_reached(Offset::new(2)).count(), 0);
        let reached: Vec<WaiterId> = waiters.take_reached(Offset::new(8)).collect();
        assert_eq!(reached, [ids[1], ids[3], ids[0], ids[4]]);
        assert_eq!(waiters.take_all().collect::<Vec<_>>(), [ids[2]]);
        assert!(waiters.is_empty());
    }

    #[test]
    fn who_gives_up_is_not_woken() {
        let (mut waiters, mut numbers) = (Waiters::default(), WaiterNumbers::default());
        let id = waiters.add(Offset::new(1), &mut numbers);
        assert!(waiters.remove(id));
        assert_eq!(waiters.take_reached(Offset::new(10)).count(), 0);
        assert!(!waiters.remove(id));
    }
}
