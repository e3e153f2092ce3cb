//! Native code of modules, in files that only this program writes.
//!
//! Loading native code is as trusting as running a program, so a file is loaded only if it is ours: it lies in a folder
//! that only our user may enter, belongs to our user alone, is named for the module and for everything the code depends
//! on (`precompile_compatibility_hash`), and holds the checksum of its own contents. Whatever else is found there is
//! ignored and written anew.

#![allow(
    unsafe_code,
    reason = "wasmtime's deserialize is unsafe; the argument stands where it is called"
)]

use std::fs::{self, File, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use plugin::host::Digest;
use sha2::{Digest as _, Sha256};
use wasmtime::component::Component;

/// Beginning of each file; another layout gets another number.
const MAGIC: &[u8; 8] = b"MSCWASM1";
const CHECKSUM_BYTES: usize = 32;
const ENDING: &str = "cwasm";
/// Most bytes that all files together may take; the oldest make room.
const CACHE_BYTES_MAX: u64 = 1 << 30;
/// Largest file that is read.
const FILE_BYTES_MAX: u64 = 512 << 20;

pub(crate) struct Cache {
    folder: PathBuf,
    /// What native code depends on beside the module: this version of wasmtime, its settings, this processor.
    compatibility: u64,
}

impl Cache {
    /// # Errors
    /// If the folder cannot be made, or others may enter it and that cannot be changed.
    pub(crate) fn open(folder: PathBuf, engine: &wasmtime::Engine) -> io::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700))?;
        let mut hasher = DefaultHasher::new();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        Ok(Cache {
            folder,
            compatibility: hasher.finish(),
        })
    }

    /// The module's native code, if it is here and sound.
    pub(crate) fn load(&self, engine: &wasmtime::Engine, digest: Digest) -> Option<Component> {
        let path = self.path(digest);
        let bytes = match read_own(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "cannot read a compiled module, compiling it anew");
                return None;
            }
        };
        let Some(code) = contents(&bytes) else {
            tracing::warn!(path = %path.display(), "a compiled module is damaged, compiling it anew");
            return None;
        };
        // SAFETY: `deserialize` must only be given what `serialize` gave. `code` was read from a file in a folder that
        // only our user may enter, which belongs to our user and which nobody else may write, and it has the checksum
        // that `store` wrote with it. So it is what `store` wrote, unless somebody acts as our user, who could replace
        // this program as well. wasmtime itself refuses the code of another version or other settings.
        let component = unsafe { Component::deserialize(engine, code) };
        component
            .inspect_err(|error| tracing::warn!(path = %path.display(), %error, "cannot load a compiled module"))
            .ok()
    }

    /// Keeps the module's native code. A cache that cannot be written costs time and nothing else.
    pub(crate) fn store(&self, digest: Digest, component: &Component) {
        let path = self.path(digest);
        let written = component
            .serialize()
            .map_err(|error| io::Error::other(error.to_string()))
            .and_then(|code| self.write(&path, &code));
        if let Err(error) = written {
            tracing::warn!(path = %path.display(), %error, "cannot keep a compiled module");
        }
    }

    /// No sync: after a crash a damaged file is seen by its checksum.
    fn write(&self, path: &Path, code: &[u8]) -> io::Result<()> {
        self.make_room(code.len() as u64)?;
        let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&temporary)?;
        file.write_all(MAGIC)?;
        file.write_all(&Sha256::digest(code))?;
        file.write_all(code)?;
        drop(file);
        fs::rename(&temporary, path)
    }

    /// Removes the oldest files until `bytes` more would fit.
    fn make_room(&self, bytes: u64) -> io::Result<()> {
        let mut files: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let metadata = entry.metadata()?;
            if metadata.is_file() {
                files.push((metadata.modified()?, metadata.len(), entry.path()));
            }
        }
        files.sort();
        let mut total = bytes + files.iter().map(|(_, size, _)| size).sum::<u64>();
        for (_, size, path) in files {
            if total <= CACHE_BYTES_MAX {
                break;
            }
            fs::remove_file(path)?;
            total -= size;
        }
        Ok(())
    }

    fn path(&self, digest: Digest) -> PathBuf {
        self.folder
            .join(format!("{digest}-{:016x}.{ENDING}", self.compatibility))
    }
}

/// The file's bytes, if it is a plain file that only our user may touch.
fn read_own(path: &Path) -> io::Result<Vec<u8>> {
    let no_link = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).map_err(io::Error::other)?;
    let file: File = OpenOptions::new().read(true).custom_flags(no_link).open(path)?;
    let metadata = file.metadata()?;
    let ours = metadata.uid() == rustix::process::geteuid().as_raw();
    if !metadata.is_file() || !ours || metadata.mode() & 0o077 != 0 {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "not a file of ours alone",
        ));
    }
    if metadata.len() > FILE_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "larger than any of ours"));
    }
    let mut bytes = Vec::new();
    (&file).take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn contents(bytes: &[u8]) -> Option<&[u8]> {
    let (checksum, code) = bytes.strip_prefix(MAGIC)?.split_at_checked(CHECKSUM_BYTES)?;
    (Sha256::digest(code)[..] == *checksum).then_some(code)
}
