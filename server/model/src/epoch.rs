//! Epochs: each grows by one per election (or per producer session) and fences everything older.

use std::fmt;

macro_rules! epoch {
    ($(#[$doc:meta])* $name:ident, $int:ty) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name($int);

        impl $name {
            pub const ZERO: $name = $name(0);

            /// # Panics
            /// If `value` is negative: sentinels of the wire must have become an `Option` before.
            #[must_use]
            #[inline]
            pub const fn new(value: $int) -> Self {
                assert!(value >= 0, "an epoch is not negative");
                $name(value)
            }

            /// `None` for the negative sentinels of the wire.
            #[must_use]
            #[inline]
            pub const fn from_wire(value: $int) -> Option<Self> {
                if value < 0 { None } else { Some($name(value)) }
            }

            #[must_use]
            #[inline]
            pub const fn get(self) -> $int {
                self.0
            }

            /// The epoch after this one; `None` where the integer is used up.
            #[must_use]
            #[inline]
            pub const fn next(self) -> Option<Self> {
                match self.0.checked_add(1) {
                    Some(value) => Some($name(value)),
                    None => None,
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

epoch!(
    /// How often the leader of a partition (or of the controller quorum) has been elected (KIP-101, KIP-595).
    LeaderEpoch, i32
);
epoch!(
    /// The leader epoch of the controller quorum.
    ControllerEpoch, i32
);
epoch!(
    /// The session of a producer id; a higher one fences the lower (KIP-98).
    ProducerEpoch, i16
);
