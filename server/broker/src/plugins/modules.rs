//! The modules of the cluster: files named by digest, and what is known of each.
//!
//! The files are a cache of the topic: one that is there is taken if its bytes have the digest, one that is missing is
//! made of the topic's pieces. A module is loaded while something uses it and not longer.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

use model::Offset;
use model::record_batch::Record;
use plugin::deployment::{ModuleRecord, PLUGINS_TOPIC, PluginsKey, RecordError, decode_value};
use plugin::running::DeploymentError;
use plugin::{Digest, Host, Module, ModuleError, ModuleInfo};
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;
use tracing::{info, warn};

use super::follower::Follower;
use super::incoming::{AssemblyError, Incoming, absent_is_fine, has_digest};

const ENDING: &str = "wasm";

pub(crate) struct Modules {
    folder: PathBuf,
    host: Arc<dyn Host>,
    known: RwLock<BTreeMap<Digest, Known>>,
    reading: Mutex<Reading>,
    followed: AtomicI64,
    /// Changes when modules come or go.
    changes: watch::Sender<()>,
}

struct Known {
    info: Result<ModuleInfo, ModuleError>,
    loaded: Option<Weak<dyn Module>>,
}

/// The reader's own state.
struct Reading {
    incoming: Incoming,
    /// Files whose bytes have been checked since the start.
    checked: BTreeSet<Digest>,
    /// The files of modules that the topic no longer has are removed when its end is seen first.
    tidied: bool,
}

/// Why a record of the topic has no effect.
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("module {0}")]
    Module(Digest, #[source] AssemblyError),
}

impl Modules {
    pub(super) fn new(folder: PathBuf, host: Arc<dyn Host>) -> Self {
        Modules {
            host,
            known: RwLock::default(),
            reading: Mutex::new(Reading {
                incoming: Incoming::new(folder.clone()),
                checked: BTreeSet::new(),
                tidied: false,
            }),
            folder,
            followed: AtomicI64::new(0),
            changes: watch::Sender::new(()),
        }
    }

    pub(super) fn followed_to(&self) -> Offset {
        Offset::new(self.followed.load(Ordering::Acquire))
    }

    /// Changes when modules come or go.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    pub(super) fn infos(&self) -> Vec<ModuleInfo> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known
            .values()
            .filter_map(|known| known.info.as_ref().ok().cloned())
            .collect()
    }

    pub(super) fn info(&self, digest: &Digest) -> Option<ModuleInfo> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.get(digest).and_then(|known| known.info.as_ref().ok().cloned())
    }

    /// Makes a module ready to run, unless it is. Waits for the disk and may compile.
    pub(crate) fn load(&self, digest: &Digest) -> Result<Arc<dyn Module>, DeploymentError> {
        {
            let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
            let known = known.get(digest).ok_or(DeploymentError::UnknownModule(*digest))?;
            if let Some(module) = known.loaded.as_ref().and_then(Weak::upgrade) {
                return Ok(module);
            }
            known.info.as_ref().map_err(Clone::clone)?;
        }
        let module = self.read(digest)?;
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get_mut(digest) {
            known.loaded = Some(Arc::downgrade(&module));
        }
        Ok(module)
    }

    fn read(&self, digest: &Digest) -> Result<Arc<dyn Module>, ModuleError> {
        let path = self.path(digest);
        let bytes = fs::read(&path).map_err(|error| ModuleError::Start(format!("{}: {error}", path.display())))?;
        if Digest::new(Sha256::digest(&bytes).into()) != *digest {
            let reason = format!(
                "{} is damaged: the next start of the node makes it anew",
                path.display()
            );
            return Err(ModuleError::Start(reason));
        }
        self.host.load(&bytes)
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        self.folder.join(format!("{digest}.{ENDING}"))
    }

    /// What a thread that panicked left behind is put right by the next piece or the next start.
    fn reading(&self) -> MutexGuard<'_, Reading> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn apply(&self, reading: &mut Reading, record: &Record) -> Result<(), Refused> {
        let key = PluginsKey::decode(record.key.as_deref().unwrap_or_default())?;
        match (key, &record.value) {
            (PluginsKey::Piece(_, _), None) => Ok(()),
            (PluginsKey::Piece(digest, piece), Some(bytes)) => {
                let kept = self.keep(reading, digest, piece, bytes);
                kept.map_err(|error| Refused::Module(digest, error))
            }
            (PluginsKey::Module(digest), None) => {
                let removed = self.remove(reading, digest);
                removed.map_err(|error| Refused::Module(digest, error.into()))
            }
            (PluginsKey::Module(digest), Some(value)) => {
                let record: ModuleRecord = decode_value(value)?;
                let made = self.make(reading, digest, &record);
                made.map_err(|error| Refused::Module(digest, error))
            }
        }
    }

    fn keep(&self, reading: &mut Reading, digest: Digest, piece: u32, bytes: &[u8]) -> Result<(), AssemblyError> {
        if self.is_sound(reading, digest)? {
            return Ok(());
        }
        reading.incoming.keep(digest, piece, bytes)
    }

    /// Whether the module's file is there, each file being read once.
    fn is_sound(&self, reading: &mut Reading, digest: Digest) -> std::io::Result<bool> {
        let path = self.path(&digest);
        if reading.checked.contains(&digest) {
            return Ok(true);
        }
        if has_digest(&path, digest)? {
            reading.checked.insert(digest);
            return Ok(true);
        }
        absent_is_fine(fs::remove_file(path))?;
        Ok(false)
    }

    fn make(&self, reading: &mut Reading, digest: Digest, record: &ModuleRecord) -> Result<(), AssemblyError> {
        if !self.is_sound(reading, digest)? {
            fs::create_dir_all(&self.folder)?;
            reading.incoming.assemble(digest, record, &self.path(&digest))?;
            reading.checked.insert(digest);
        }
        let loaded = self.read(&digest);
        let known = match &loaded {
            Ok(module) => {
                let info = module.info();
                info!(module = %digest, plugin = info.descriptor.name, world = %info.world, "module is known");
                Known {
                    info: Ok(info.clone()),
                    loaded: Some(Arc::downgrade(module)),
                }
            }
            Err(error) => {
                warn!(module = %digest, %error, "module cannot be run here");
                Known {
                    info: Err(error.clone()),
                    loaded: None,
                }
            }
        };
        self.known
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(digest, known);
        Ok(())
    }

    fn remove(&self, reading: &mut Reading, digest: Digest) -> std::io::Result<()> {
        info!(module = %digest, "module deleted");
        self.known
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&digest);
        reading.checked.remove(&digest);
        reading.incoming.forget(digest)?;
        absent_is_fine(fs::remove_file(self.path(&digest)))
    }

    /// Removes what the topic does not speak of. A module whose pieces have come and whose last word has not yet is spoken
    /// of: its pieces were passed over because its file is there.
    fn tidy(&self, checked: &BTreeSet<Digest>) -> std::io::Result<()> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        for entry in entries {
            let path = entry?.path();
            let digest = path.file_stem().and_then(|stem| stem.to_str()?.parse::<Digest>().ok());
            let is_module = path.extension().is_some_and(|ending| ending == ENDING);
            let is_kept = |digest| known.contains_key(&digest) || checked.contains(&digest);
            if is_module && !digest.is_some_and(is_kept) {
                absent_is_fine(fs::remove_file(path))?;
            }
        }
        Ok(())
    }
}

impl Follower for Modules {
    fn reset(&self) {
        let mut reading = self.reading();
        reading.checked.clear();
        reading.tidied = false;
        if let Err(error) = reading.incoming.clear() {
            warn!(%error, "unfinished uploads not removed");
        }
        self.known.write().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn take(&self, records: Vec<Record>, at_end: bool) {
        let mut reading = self.reading();
        for record in records {
            if let Err(error) = self.apply(&mut reading, &record) {
                let error = crate::errors::describe(&error);
                warn!(topic = PLUGINS_TOPIC, offset = %record.offset, error, "a record is passed over");
            }
        }
        if at_end && !reading.tidied {
            reading.tidied = true;
            if let Err(error) = self.tidy(&reading.checked) {
                warn!(%error, "files of modules that are gone not removed");
            }
        }
        drop(reading);
        self.changes.send_replace(());
    }

    fn followed(&self, next: Offset) {
        self.followed.store(next.get(), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use plugin::deployment::encode_value;

    use super::*;

    /// Takes no module, so that it can be told whether it was asked.
    struct Refusing;

    impl Host for Refusing {
        fn load(&self, _: &[u8]) -> Result<Arc<dyn Module>, ModuleError> {
            Err(ModuleError::NotWasm)
        }
    }

    fn record(key: PluginsKey, value: Bytes) -> Record {
        Record {
            offset: Offset::new(0),
            timestamp: model::Timestamp::from_millis(0),
            key: Some(key.encode()),
            value: Some(value),
            headers: Vec::new(),
        }
    }

    #[test]
    fn a_module_whose_upload_is_half_read_at_the_end_of_the_topic_keeps_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let digest = Digest::new(Sha256::digest("ab").into());
        let gone = Digest::new(Sha256::digest("gone").into());
        let modules = Modules::new(folder.path().to_owned(), Arc::new(Refusing));
        fs::write(modules.path(&digest), "ab").unwrap();
        fs::write(modules.path(&gone), "gone").unwrap();
        modules.reset();
        let piece = |piece, byte| record(PluginsKey::Piece(digest, piece), Bytes::from_static(byte));
        modules.take(vec![piece(0, b"a")], true);
        assert!(!modules.path(&gone).exists());
        let module = ModuleRecord {
            size_bytes: 2,
            pieces: 2,
        };
        let last = record(PluginsKey::Module(digest), encode_value(&module));
        modules.take(vec![piece(1, b"b"), last], true);
        let loaded = modules.load(&digest).map(|_| ());
        assert!(
            matches!(loaded, Err(DeploymentError::Module(ModuleError::NotWasm))),
            "{loaded:?}"
        );
    }
}
