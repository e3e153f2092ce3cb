//! What the simulations draw from, and which of their seeds are run.

use std::ops::Range;

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

/// The first `count` seeds, the one that `STORAGE_SEED` names, or those of `STORAGE_SEEDS=from..to`.
fn seeds(count: u64) -> Range<u64> {
    let number = |text: &str| text.parse::<u64>().expect("a seed is a number");
    if let Ok(seed) = std::env::var("STORAGE_SEED") {
        return number(&seed)..number(&seed) + 1;
    }
    match std::env::var("STORAGE_SEEDS") {
        Ok(range) => {
            let (from, to) = range.split_once("..").expect("STORAGE_SEEDS is from..to");
            number(from)..number(to)
        }
        Err(_) => 0..count,
    }
}

/// Runs `run` with each of the seeds, and says which of them failed. `cargo xtask soak log` reads what it says.
pub(crate) fn each_seed(count: u64, mut run: impl FnMut(u64)) {
    for seed in seeds(count) {
        if let Err(panic) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(seed))) {
            eprintln!("failed with STORAGE_SEED={seed}");
            std::panic::resume_unwind(panic);
        }
    }
}
