//! What the simulations draw from, and which of their seeds are run.

/// Splitmix64: the same numbers for the same seed, everywhere.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) % bound.max(1)
    }
}

/// The first `count` seeds, or the one that `STORAGE_SEED` names.
pub(crate) fn seeds(count: u64) -> Vec<u64> {
    match std::env::var("STORAGE_SEED") {
        Ok(seed) => vec![seed.parse().expect("STORAGE_SEED is a number")],
        Err(_) => (0..count).collect(),
    }
}
