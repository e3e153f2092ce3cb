//! Modules on their way in: pieces in files until the last word of their upload comes.
//!
//! ```text
//! modules/incoming/DIGEST/000000      a piece, as its record has it
//! modules/DIGEST.wasm.partial         the pieces one behind the other, being checked
//! modules/DIGEST.wasm                 a module whose bytes have its digest
//! ```
//! At most one piece is in memory at a time. What is begun and never ended is bounded: the upload that was touched
//! longest ago makes room.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use plugin::Digest;
use plugin::deployment::{ModuleRecord, PIECE_BYTES_MAX};
use plugin::host::MODULE_BYTES_MAX;
use sha2::{Digest as _, Sha256};

const INCOMING_FOLDER: &str = "incoming";
/// Most uploads that are under way.
const UPLOADS_MAX: usize = 16;
/// Most pieces of a module: even small pieces make a module of the greatest size.
const PIECES_MAX: u32 = 16_384;
const READ_BYTES: usize = 64 << 10;

/// Why pieces make no module.
#[derive(Debug, thiserror::Error)]
pub(super) enum AssemblyError {
    #[error("its upload says {pieces} pieces of {size_bytes} bytes in all, which is more than a module may have")]
    Limits { pieces: u32, size_bytes: u64 },
    #[error("piece {0} is missing")]
    Missing(u32),
    #[error("a piece of {0} bytes is too large or has no place in a module")]
    Piece(usize),
    #[error("the pieces have {got} bytes, the upload says {expected}")]
    Size { got: u64, expected: u64 },
    #[error("the bytes have another digest, {0}")]
    Digest(Digest),
    #[error("the folder of modules cannot be used")]
    Disk(#[from] io::Error),
}

/// The folder of uploads.
pub(super) struct Incoming {
    modules: PathBuf,
    /// The latest last.
    uploads: Vec<Digest>,
}

impl Incoming {
    pub(super) fn new(modules: PathBuf) -> Self {
        Incoming {
            modules,
            uploads: Vec::new(),
        }
    }

    /// Forgets all uploads.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        self.uploads.clear();
        absent_is_fine(fs::remove_dir_all(self.modules.join(INCOMING_FOLDER)))
    }

    pub(super) fn keep(&mut self, digest: Digest, piece: u32, bytes: &[u8]) -> Result<(), AssemblyError> {
        if bytes.len() > PIECE_BYTES_MAX || piece >= PIECES_MAX {
            return Err(AssemblyError::Piece(bytes.len()));
        }
        self.touch(digest)?;
        let folder = self.folder(digest);
        fs::create_dir_all(&folder)?;
        Ok(fs::write(piece_path(&folder, piece), bytes)?)
    }

    fn touch(&mut self, digest: Digest) -> io::Result<()> {
        self.uploads.retain(|upload| *upload != digest);
        while self.uploads.len() >= UPLOADS_MAX {
            let oldest = self.uploads.remove(0);
            tracing::warn!(module = %oldest, "an upload that was never ended makes room for another");
            absent_is_fine(fs::remove_dir_all(self.folder(oldest)))?;
        }
        self.uploads.push(digest);
        Ok(())
    }

    pub(super) fn forget(&mut self, digest: Digest) -> io::Result<()> {
        self.uploads.retain(|upload| *upload != digest);
        absent_is_fine(fs::remove_dir_all(self.folder(digest)))
    }

    /// Makes the module of its pieces, and checks that they are what the digest says.
    pub(super) fn assemble(&mut self, digest: Digest, record: &ModuleRecord, to: &Path) -> Result<(), AssemblyError> {
        let ModuleRecord { size_bytes, pieces } = *record;
        if size_bytes > MODULE_BYTES_MAX as u64 || pieces > PIECES_MAX {
            return Err(AssemblyError::Limits { pieces, size_bytes });
        }
        let partial = to.with_extension("wasm.partial");
        let written = self.write(digest, record, &partial);
        if written.is_err() {
            absent_is_fine(fs::remove_file(&partial))?;
        }
        written?;
        fs::rename(&partial, to)?;
        Ok(self.forget(digest)?)
    }

    fn write(&self, digest: Digest, record: &ModuleRecord, partial: &Path) -> Result<(), AssemblyError> {
        let mut file = File::create(partial)?;
        let mut hasher = Sha256::new();
        let mut got = 0;
        for piece in 0..record.pieces {
            let bytes = match fs::read(piece_path(&self.folder(digest), piece)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(AssemblyError::Missing(piece)),
                read => read?,
            };
            hasher.update(&bytes);
            got += bytes.len() as u64;
            file.write_all(&bytes)?;
        }
        if got != record.size_bytes {
            let expected = record.size_bytes;
            return Err(AssemblyError::Size { got, expected });
        }
        match Digest::new(hasher.finalize().into()) {
            found if found == digest => Ok(file.sync_data()?),
            other => Err(AssemblyError::Digest(other)),
        }
    }

    fn folder(&self, digest: Digest) -> PathBuf {
        self.modules.join(INCOMING_FOLDER).join(digest.to_string())
    }
}

fn piece_path(folder: &Path, piece: u32) -> PathBuf {
    folder.join(format!("{piece:06}"))
}

/// Whether the file has these bytes; false where there is none.
pub(super) fn has_digest(path: &Path, digest: Digest) -> io::Result<bool> {
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        opened => opened?,
    };
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; READ_BYTES];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            read => hasher.update(&buffer[..read]),
        }
    }
    Ok(Digest::new(hasher.finalize().into()) == digest)
}

pub(super) fn absent_is_fine(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(bytes: &[u8]) -> Digest {
        Digest::new(Sha256::digest(bytes).into())
    }

    fn folder() -> (tempfile::TempDir, Incoming) {
        let folder = tempfile::tempdir().unwrap();
        let incoming = Incoming::new(folder.path().to_owned());
        (folder, incoming)
    }

    fn record(size_bytes: u64, pieces: u32) -> ModuleRecord {
        ModuleRecord { size_bytes, pieces }
    }

    #[test]
    fn pieces_in_any_order_and_between_those_of_others_make_the_module() {
        let (folder, mut incoming) = folder();
        let (one, other) = (digest(b"abcdef"), digest(b"other"));
        for (digest, piece, bytes) in [
            (one, 2, "ef"),
            (other, 0, "oth"),
            (one, 0, "ab"),
            (one, 0, "ab"),
            (one, 1, "cd"),
        ] {
            incoming.keep(digest, piece, bytes.as_bytes()).unwrap();
        }
        let to = folder.path().join("one.wasm");
        incoming.assemble(one, &record(6, 3), &to).unwrap();
        assert_eq!(fs::read(&to).unwrap(), b"abcdef");
        assert!(has_digest(&to, one).unwrap());
        assert!(!has_digest(&to, other).unwrap());
        assert!(!folder.path().join(INCOMING_FOLDER).join(one.to_string()).exists());
    }

    #[test]
    fn what_is_missing_damaged_or_too_much_makes_no_module() {
        let (folder, mut incoming) = folder();
        let one = digest(b"abcd");
        let to = folder.path().join("one.wasm");
        incoming.keep(one, 0, b"ab").unwrap();
        let missing = incoming.assemble(one, &record(4, 2), &to);
        assert!(matches!(missing, Err(AssemblyError::Missing(1))), "{missing:?}");
        incoming.keep(one, 1, b"cX").unwrap();
        let damaged = incoming.assemble(one, &record(4, 2), &to);
        assert!(matches!(damaged, Err(AssemblyError::Digest(_))), "{damaged:?}");
        let short = incoming.assemble(one, &record(5, 2), &to);
        assert!(
            matches!(short, Err(AssemblyError::Size { got: 4, expected: 5 })),
            "{short:?}"
        );
        let large = incoming.assemble(one, &record(MODULE_BYTES_MAX as u64 + 1, 2), &to);
        assert!(matches!(large, Err(AssemblyError::Limits { .. })), "{large:?}");
        assert!(incoming.keep(one, 0, &vec![0; PIECE_BYTES_MAX + 1]).is_err());
        assert!(!to.exists() && !to.with_extension("wasm.partial").exists());
    }

    #[test]
    fn uploads_that_never_end_make_room() {
        let (folder, mut incoming) = folder();
        for number in 0..=UPLOADS_MAX {
            incoming.keep(digest(&[number as u8]), 0, b"x").unwrap();
        }
        let uploads = fs::read_dir(folder.path().join(INCOMING_FOLDER)).unwrap();
        assert_eq!(uploads.count(), UPLOADS_MAX);
    }
}
