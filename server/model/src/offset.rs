//! Positions: a record's place in its partition, and a producer's place in its own sequence.

use std::fmt;

/// A record's position in its partition: 0, 1, 2 … in append order, never reused. Also used for ends (exclusive), where
/// it is the position of the next record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Offset(i64);

impl Offset {
    pub const ZERO: Offset = Offset(0);
    /// The greatest position a log can hold.
    pub const MAX: Offset = Offset(i64::MAX);

    /// # Panics
    /// If `value` is negative: sentinels of the wire must have become an `Option` before ([`Offset::from_wire`]).
    #[must_use]
    #[inline]
    pub const fn new(value: i64) -> Self {
        assert!(value >= 0, "an offset is not negative");
        Offset(value)
    }

    /// `None` for the negative sentinels of the wire.
    #[must_use]
    #[inline]
    pub const fn from_wire(value: i64) -> Option<Self> {
        if value < 0 { None } else { Some(Offset(value)) }
    }

    #[must_use]
    #[inline]
    pub const fn get(self) -> i64 {
        self.0
    }

    /// The position `records` further on.
    ///
    /// # Panics
    /// If the position would pass [`Offset::MAX`].
    #[must_use]
    #[inline]
    pub const fn plus(self, records: i64) -> Self {
        match self.0.checked_add(records) {
            Some(value) => Offset::new(value),
            None => panic!("an offset does not pass 2^63 - 1"),
        }
    }

    /// How many positions lie between `earlier` and this one; negative if `earlier` is greater.
    #[must_use]
    #[inline]
    pub const fn since(self, earlier: Offset) -> i64 {
        self.0 - earlier.0
    }
}

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The position of a record in one producer's stream to one partition: 0 … 2³¹−1, then 0 again (KIP-98).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Sequence(i32);

impl Sequence {
    pub const ZERO: Sequence = Sequence(0);

    /// `None` for the sentinel −1 (not idempotent) and other negative values.
    #[must_use]
    #[inline]
    pub const fn from_wire(value: i32) -> Option<Self> {
        if value < 0 { None } else { Some(Sequence(value)) }
    }

    #[must_use]
    #[inline]
    pub const fn get(self) -> i32 {
        self.0
    }

    /// The sequence `records` further on; it wraps from 2³¹−1 to 0.
    #[must_use]
    #[inline]
    pub const fn plus(self, records: i32) -> Self {
        Sequence(self.0.wrapping_add(records) & i32::MAX)
    }
}

impl fmt::Debug for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_wraps_to_zero_after_the_greatest() {
        let last = Sequence::from_wire(i32::MAX).unwrap();
        assert_eq!(last.plus(1), Sequence::ZERO);
        assert_eq!(last.plus(5).get(), 4);
    }

    #[test]
    fn negative_wire_values_are_no_offset() {
        assert_eq!(Offset::from_wire(-1), None);
        assert_eq!(Offset::from_wire(7).map(Offset::get), Some(7));
    }
}
