//! Where a task keeps its state between calls: the changelog's last word for each key, in the order of the keys' bytes.
//!
//! The changelog is the truth and a store a cache of it. A store on disk therefore writes only what the changelog holds:
//! it keeps what [`Store::apply`] gives it in memory until [`Store::committed`], and then writes it together with the
//! changelog's end. A store that is ahead of the changelog is wiped and restored.

use std::collections::BTreeMap;
use std::ops::Bound;

use bytes::Bytes;
use model::Offset;

use crate::changelog::ChangelogRecord;

/// A store that could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("the task's local store failed")]
pub struct StoreError(#[source] pub Box<dyn std::error::Error + Send + Sync>);

/// How much one scan may bring: so many entries, and no more bytes of keys and values than this. The first entry always
/// comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanLimit {
    pub entries: usize,
    pub bytes: usize,
}

/// The state of one task.
pub trait Store: Send {
    /// # Errors
    /// If the store cannot be read.
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError>;

    /// The first entries from `from` (inclusive) to `to` (exclusive), in the order of their keys, within `limit`.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn scan(&self, from: &[u8], to: &[u8], limit: ScanLimit) -> Result<Vec<(Bytes, Bytes)>, StoreError>;

    /// Takes changes, all or none; reads see them at once.
    ///
    /// # Errors
    /// If the store cannot take them.
    fn apply(&mut self, changes: &[ChangelogRecord]) -> Result<(), StoreError>;

    /// All that was applied so far is in the changelog, which ends at `changelog_end`.
    ///
    /// # Errors
    /// If the store cannot write what it held back.
    fn committed(&mut self, changelog_end: Offset) -> Result<(), StoreError>;
}

/// A store that is restored from the changelog at each start.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    entries: BTreeMap<Bytes, Bytes>,
}

impl MemoryStore {
    #[must_use]
    pub fn new() -> Self {
        MemoryStore::default()
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl Store for MemoryStore {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        Ok(self.entries.get(key).cloned())
    }

    fn scan(&self, from: &[u8], to: &[u8], limit: ScanLimit) -> Result<Vec<(Bytes, Bytes)>, StoreError> {
        if from >= to {
            return Ok(Vec::new());
        }
        let edges = (Bound::Included(from), Bound::Excluded(to));
        let mut entries = Vec::new();
        let mut bytes = 0;
        for (key, value) in self.entries.range::<[u8], _>(edges).take(limit.entries) {
            bytes += key.len() + value.len();
            if bytes > limit.bytes && !entries.is_empty() {
                break;
            }
            entries.push((key.clone(), value.clone()));
        }
        Ok(entries)
    }

    fn apply(&mut self, changes: &[ChangelogRecord]) -> Result<(), StoreError> {
        for change in changes {
            match &change.value {
                Some(value) => self.entries.insert(change.key.clone(), value.clone()),
                None => self.entries.remove(&change.key),
            };
        }
        Ok(())
    }

    fn committed(&mut self, _changelog_end: Offset) -> Result<(), StoreError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_stops_at_its_limits_and_brings_at_least_one_entry() {
        let mut store = MemoryStore::new();
        let record = |key: &'static [u8]| ChangelogRecord {
            key: key.into(),
            value: Some(Bytes::from(vec![0; 10])),
        };
        store.apply(&[record(b"a"), record(b"b"), record(b"c")]).unwrap();
        let keys = |entries, bytes| {
            let found = store.scan(b"a", b"c", ScanLimit { entries, bytes }).unwrap();
            found.into_iter().map(|(key, _)| key).collect::<Vec<_>>()
        };
        assert_eq!(keys(9, 100), ["a", "b"]);
        assert_eq!(keys(1, 100), ["a"]);
        assert_eq!(keys(9, 21), ["a"]);
        assert_eq!(keys(9, 0), ["a"]);
    }
}
