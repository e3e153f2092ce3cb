//! The last offset of each key, in a bounded piece of memory.
//!
//! ```text
//! hash 16 bytes | offset + 1, 8 bytes      an entry; 0 in the place of the offset: free
//! ```
//! The key itself is not kept: of its SHA-256 the first half stands for it. Nobody can make two keys that agree in it, so
//! nobody can make another's record go. Entries lie in one table with linear probing, full up to the load factor.

use model::Offset;
use sha2::{Digest, Sha256};

/// What an entry takes.
const ENTRY_BYTES: usize = HASH_BYTES + size_of::<i64>();
const HASH_BYTES: usize = 16;
const FREE: i64 = 0;
/// Beyond these the table would not work at all.
const LOAD_FACTOR_MIN: f64 = 0.05;
const LOAD_FACTOR_MAX: f64 = 0.98;

pub(super) struct KeyMap {
    hashes: Vec<[u8; HASH_BYTES]>,
    offsets: Vec<i64>,
    entries: usize,
    entries_max: usize,
}

impl KeyMap {
    /// A map of at most `bytes`, and no larger than `keys_max` keys need.
    pub(super) fn new(bytes: usize, load_factor: f64, keys_max: u64) -> Self {
        let load_factor = if load_factor.is_nan() { 1.0 } else { load_factor }.clamp(LOAD_FACTOR_MIN, LOAD_FACTOR_MAX);
        let needed = (keys_max as f64 / load_factor).ceil() + 2.0;
        // One slot is always free, so that every search ends.
        let slots = (bytes / ENTRY_BYTES).min(needed as usize).max(2);
        KeyMap {
            hashes: vec![[0; HASH_BYTES]; slots],
            offsets: vec![FREE; slots],
            entries: 0,
            entries_max: ((slots as f64 * load_factor) as usize).clamp(1, slots - 1),
        }
    }

    /// Notes that `key` stands at `offset`; false if it is new and there is no room.
    pub(super) fn put(&mut self, key: &[u8], offset: Offset) -> bool {
        let hash = hash(key);
        let slot = self.slot(&hash);
        if self.offsets[slot] == FREE {
            if self.entries == self.entries_max {
                return false;
            }
            self.entries += 1;
            self.hashes[slot] = hash;
        }
        self.offsets[slot] = offset.get() + 1;
        true
    }

    /// Where `key` stands last.
    pub(super) fn get(&self, key: &[u8]) -> Option<Offset> {
        let found = self.offsets[self.slot(&hash(key))];
        (found != FREE).then(|| Offset::new(found - 1))
    }

    pub(super) fn len(&self) -> usize {
        self.entries
    }

    pub(super) fn size_bytes(&self) -> usize {
        self.offsets.len() * ENTRY_BYTES
    }

    /// Where `hash` is, or would be.
    fn slot(&self, hash: &[u8; HASH_BYTES]) -> usize {
        let slots = self.offsets.len();
        let mut first = [0; 8];
        first.copy_from_slice(&hash[..8]);
        // The high half of the product spreads the hash evenly over the slots.
        let product = u128::from(u64::from_be_bytes(first)) * slots as u128;
        let mut slot = usize::try_from(product >> 64).unwrap_or(0);
        while self.offsets[slot] != FREE && self.hashes[slot] != *hash {
            slot = if slot + 1 == slots { 0 } else { slot + 1 };
        }
        slot
    }
}

fn hash(key: &[u8]) -> [u8; HASH_BYTES] {
    let digest: [u8; 32] = Sha256::digest(key).into();
    let mut hash = [0; HASH_BYTES];
    hash.copy_from_slice(&digest[..HASH_BYTES]);
    hash
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_map_holds_what_a_tree_holds(puts in vec((0u8..60, 0i64..1000), 0..200)) {
            let mut map = KeyMap::new(64 * ENTRY_BYTES, 0.98, u64::MAX);
            let mut tree = BTreeMap::new();
            for (key, offset) in puts {
                prop_assert!(map.put(&[key], Offset::new(offset)));
                tree.insert(key, Offset::new(offset));
            }
            prop_assert_eq!(map.len(), tree.len());
            for key in 0..=60 {
                prop_assert_eq!(map.get(&[key]), tree.get(&key).copied());
            }
        }
    }

    #[test]
    fn a_map_stays_within_its_bytes_and_says_when_it_is_full() {
        let mut map = KeyMap::new(1000, 0.9, u64::MAX);
        assert!(map.size_bytes() <= 1000);
        let taken = (0u32..100)
            .filter(|key| map.put(&key.to_be_bytes(), Offset::new(i64::from(*key))))
            .count();
        assert_eq!((taken, map.len()), (36, 36));
        assert!(
            map.put(&0u32.to_be_bytes(), Offset::new(7)),
            "a known key needs no room"
        );
        assert_eq!(map.get(&0u32.to_be_bytes()), Some(Offset::new(7)));
        assert_eq!(map.get(&99u32.to_be_bytes()), None);
    }

    #[test]
    fn few_keys_take_little_memory() {
        assert!(KeyMap::new(128 << 20, 0.9, 100_000).size_bytes() < 3 << 20);
        let mut map = KeyMap::new(128 << 20, 0.9, 10);
        for key in 0..10u8 {
            assert!(map.put(&[key], Offset::ZERO));
        }
    }
}
