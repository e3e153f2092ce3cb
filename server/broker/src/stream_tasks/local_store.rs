//! The local stores of this node's tasks: one fjall database, a keyspace a task (docs/decisions/0010).
//!
//! A store writes only what the changelog holds, each time together with the changelog's end and with what it is a cache
//! of: the changelog topic and the input topic, by id. So after any stop it is a sound beginning of the changelog, or is
//! seen not to be one and wiped. Nothing is opened before there is a task, and nothing is ever synced: what a loss of
//! power takes is read again from the changelog.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::ops::Bound;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use fjall::{Database, Keyspace, KeyspaceCreateOptions};
use model::{Offset, PartitionIndex, TopicId};
use plugin::ProcessorName;
use streams::{ChangelogRecord, ScanLimit, Store, StoreError};
use tracing::{info, warn};

use super::changelog::Ids;

/// Where the store says how far it goes and what of; no key of a changelog begins so.
const META: &[u8] = &[0xff];
/// What the keys of panes begin with: below them is only the progress record.
const PANES: &[u8] = &[1];

/// How much one node's stores may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoresSettings {
    /// Blocks that were read from files, for all tasks together.
    pub(crate) cache_bytes: u64,
    /// What has been written and is not in tables yet, on disk; the same records in memory are about as large. When it
    /// is full, those who have held it longest write tables.
    pub(crate) journal_bytes: u64,
    /// Of one task, in memory, before it becomes a table.
    pub(crate) memtable_bytes: u64,
    pub(crate) files_max: usize,
    pub(crate) threads: usize,
}

impl Default for StoresSettings {
    fn default() -> Self {
        StoresSettings {
            cache_bytes: 16 << 20,
            journal_bytes: 64 << 20,
            memtable_bytes: 4 << 20,
            files_max: 256,
            threads: 1,
        }
    }
}

/// All stores of this node.
pub(crate) struct Stores {
    folder: PathBuf,
    settings: StoresSettings,
    database: Mutex<Option<Database>>,
}

impl Stores {
    pub(crate) fn new(folder: PathBuf, settings: StoresSettings) -> Self {
        Stores {
            folder,
            settings,
            database: Mutex::new(None),
        }
    }

    /// The store of a task, and how far it goes; a new one where there is none, or one of something else.
    pub(super) fn open(
        &self,
        name: &ProcessorName,
        partition: PartitionIndex,
        ids: Ids,
    ) -> Result<LocalStore, StoreError> {
        let database = self.database()?;
        let keyspace = self.keyspace(&database, name, partition)?;
        let store = LocalStore::of(database, keyspace, ids)?;
        if store.is_of(ids)? {
            return Ok(store);
        }
        drop(store);
        self.anew(name, partition, ids)
    }

    /// The same, but empty.
    pub(super) fn anew(
        &self,
        name: &ProcessorName,
        partition: PartitionIndex,
        ids: Ids,
    ) -> Result<LocalStore, StoreError> {
        let database = self.database()?;
        let keyspace = self.keyspace(&database, name, partition)?;
        database.delete_keyspace(keyspace).map_err(failed)?;
        let keyspace = self.keyspace(&database, name, partition)?;
        LocalStore::of(database, keyspace, ids)
    }

    /// Removes the stores of all processors that are not among these.
    pub(super) fn keep_only(&self, names: &[ProcessorName]) -> Result<(), StoreError> {
        if names.is_empty() {
            *self.lock() = None;
            return match fs::remove_dir_all(&self.folder) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(failed(error)),
                _ => Ok(()),
            };
        }
        if self.lock().is_none() && !self.folder.exists() {
            return Ok(());
        }
        let database = self.database()?;
        for keyspace in database.list_keyspace_names() {
            let of = keyspace.rsplit_once('/').map(|(name, _)| name);
            if names.iter().any(|name| Some(name.as_str()) == of) {
                continue;
            }
            let handle = database.keyspace(&keyspace, || self.options()).map_err(failed)?;
            database.delete_keyspace(handle).map_err(failed)?;
        }
        Ok(())
    }

    /// After a failed write a database takes no other: the next task opens it anew, when the last has let go of it.
    pub(super) fn give_up(&self) {
        *self.lock() = None;
    }

    fn keyspace(
        &self,
        database: &Database,
        name: &ProcessorName,
        partition: PartitionIndex,
    ) -> Result<Keyspace, StoreError> {
        database
            .keyspace(&format!("{name}/{partition}"), || self.options())
            .map_err(failed)
    }

    fn options(&self) -> KeyspaceCreateOptions {
        KeyspaceCreateOptions::default().max_memtable_size(self.settings.memtable_bytes)
    }

    fn database(&self) -> Result<Database, StoreError> {
        let mut database = self.lock();
        if let Some(database) = database.as_ref() {
            return Ok(database.clone());
        }
        let opened = match self.open_database() {
            Err(fjall::Error::Locked) => return Err(failed(fjall::Error::Locked)),
            Err(error) => {
                // It is a cache: what cannot be read is made anew from the changelogs.
                warn!(%error, folder = %self.folder.display(), "the local stores cannot be opened and are made anew");
                fs::remove_dir_all(&self.folder).map_err(failed)?;
                self.open_database().map_err(failed)?
            }
            Ok(opened) => opened,
        };
        info!(folder = %self.folder.display(), "local stores opened");
        Ok(database.insert(opened).clone())
    }

    fn open_database(&self) -> Result<Database, fjall::Error> {
        fs::create_dir_all(&self.folder)?;
        Database::builder(&self.folder)
            .cache_size(self.settings.cache_bytes)
            .max_journaling_size(self.settings.journal_bytes)
            .max_cached_files(Some(self.settings.files_max))
            .worker_threads(self.settings.threads)
            .open()
    }

    /// The database is either there or not: a thread that panicked left nothing half done.
    fn lock(&self) -> MutexGuard<'_, Option<Database>> {
        self.database.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn failed(error: impl std::error::Error + Send + Sync + 'static) -> StoreError {
    StoreError(Box::new(error))
}

/// The store of one task.
pub(super) struct LocalStore {
    database: Database,
    keyspace: Keyspace,
    ids: Ids,
    /// The changelog's end when the store was last written; `None` for a new one.
    end: Option<Offset>,
    /// What has been applied and is not in the changelog yet.
    pending: BTreeMap<Bytes, Option<Bytes>>,
    /// No pane below this is in the keyspace: closed windows leave tombstones, which a scan from the left would meet again
    /// and again.
    empty_below: RefCell<Vec<u8>>,
}

impl LocalStore {
    fn of(database: Database, keyspace: Keyspace, ids: Ids) -> Result<Self, StoreError> {
        let meta = keyspace.get(META).map_err(failed)?;
        Ok(LocalStore {
            end: meta.and_then(|meta| read_meta(&meta)).map(|(_, end)| end),
            database,
            keyspace,
            ids,
            pending: BTreeMap::new(),
            empty_below: RefCell::new(PANES.to_vec()),
        })
    }

    /// Whether it is empty or a cache of these topics.
    fn is_of(&self, ids: Ids) -> Result<bool, StoreError> {
        let meta = self.keyspace.get(META).map_err(failed)?;
        Ok(match meta {
            Some(meta) => read_meta(&meta).is_some_and(|(found, _)| found == ids),
            None => self.keyspace.is_empty().map_err(failed)?,
        })
    }

    /// Where the changelog is to be read on.
    pub(super) fn end(&self) -> Option<Offset> {
        self.end
    }

    /// What was written so far is in tables, and no longer in memory.
    #[cfg(test)]
    pub(super) fn write_tables(&self) {
        self.keyspace.rotate_memtable_and_wait().unwrap();
    }

    /// Where the first entry of the keyspace at or above `from` may be.
    fn seek(&self, from: &[u8]) -> (Vec<u8>, bool) {
        let empty_below = self.empty_below.borrow();
        let covers = from >= PANES && from <= empty_below.as_slice();
        let start = if covers { empty_below.clone() } else { from.to_vec() };
        (start, covers)
    }
}

impl Store for LocalStore {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        if let Some(pending) = self.pending.get(key) {
            return Ok(pending.clone());
        }
        let stored = self.keyspace.get(key).map_err(failed)?;
        Ok(stored.map(|value| Bytes::copy_from_slice(&value)))
    }

    fn scan(&self, from: &[u8], to: &[u8], limit: ScanLimit) -> Result<Vec<(Bytes, Bytes)>, StoreError> {
        if from >= to {
            return Ok(Vec::new());
        }
        let (start, covers) = self.seek(from);
        let edges = (Bound::Included(from), Bound::Excluded(to));
        let mut pending = self.pending.range::<[u8], _>(edges).peekable();
        let mut entries = Vec::new();
        let mut bytes = 0;
        let mut take = |key: Bytes, value: Bytes| {
            bytes += key.len() + value.len();
            let fits = entries.len() < limit.entries && (bytes <= limit.bytes || entries.is_empty());
            if fits {
                entries.push((key, value));
            }
            fits
        };
        let mut first = covers;
        if start.as_slice() < to {
            for guard in self.keyspace.range(start.as_slice()..to) {
                let (key, value) = guard.into_inner().map_err(failed)?;
                if std::mem::take(&mut first) {
                    *self.empty_below.borrow_mut() = key.to_vec();
                }
                while let Some((before, change)) = pending.next_if(|(before, _)| before[..] < key[..]) {
                    if let Some(value) = change
                        && !take(before.clone(), value.clone())
                    {
                        return Ok(entries);
                    }
                }
                let (key, value) = match pending.next_if(|(same, _)| same[..] == key[..]) {
                    Some((_, None)) => continue,
                    Some((key, Some(value))) => (key.clone(), value.clone()),
                    None => (Bytes::copy_from_slice(&key), Bytes::copy_from_slice(&value)),
                };
                if !take(key, value) {
                    return Ok(entries);
                }
            }
            if first {
                // Nothing up to the end of this scan.
                *self.empty_below.borrow_mut() = to.to_vec();
            }
        }
        for (key, change) in pending {
            if let Some(value) = change
                && !take(key.clone(), value.clone())
            {
                break;
            }
        }
        Ok(entries)
    }

    fn apply(&mut self, changes: &[ChangelogRecord]) -> Result<(), StoreError> {
        for change in changes {
            self.pending.insert(change.key.clone(), change.value.clone());
        }
        Ok(())
    }

    fn committed(&mut self, changelog_end: Offset) -> Result<(), StoreError> {
        let mut batch = self.database.batch();
        for (key, value) in &self.pending {
            match value {
                Some(value) => {
                    let empty_below = self.empty_below.get_mut();
                    if key[..] >= *PANES && key[..] < empty_below[..] {
                        *empty_below = key.to_vec();
                    }
                    batch.insert(&self.keyspace, &key[..], &value[..]);
                }
                None => batch.remove(&self.keyspace, &key[..]),
            }
        }
        batch.insert(&self.keyspace, META, &meta(self.ids, changelog_end)[..]);
        batch.commit().map_err(failed)?;
        self.pending.clear();
        self.end = Some(changelog_end);
        Ok(())
    }
}

fn meta(ids: Ids, end: Offset) -> Bytes {
    let mut bytes = BytesMut::new();
    bytes.put_slice(ids.changelog.as_bytes());
    bytes.put_slice(ids.input.as_bytes());
    bytes.put_i64(end.get());
    bytes.freeze()
}

fn read_meta(mut bytes: &[u8]) -> Option<(Ids, Offset)> {
    let mut id = || {
        let mut id = [0; 16];
        bytes.try_copy_to_slice(&mut id).ok()?;
        Some(TopicId::from_bytes(id))
    };
    let ids = Ids {
        changelog: id()?,
        input: id()?,
    };
    let end = Offset::from_wire(bytes.try_get_i64().ok()?)?;
    bytes.is_empty().then_some((ids, end))
}

#[cfg(test)]
mod tests;
