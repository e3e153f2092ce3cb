//! Puts what the UI's build made (`web-ui/dist`) into the crate, as a table of files.
//!
//! Without Node there is no such build: the table is then empty, and the door says so.

use std::collections::hash_map::DefaultHasher;
use std::fmt::Write;
use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Endings of the compressed neighbours of files.
const COMPRESSED: &str = "gz";

fn main() -> io::Result<()> {
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let dist = manifest.join("../../web-ui/dist");
    // The folder is there in every checkout. Where the crate is built without one, the crate itself is watched.
    let watched = if dist.is_dir() {
        dist.as_path()
    } else {
        manifest.as_path()
    };
    println!("cargo::rerun-if-changed={}", watched.display());
    let mut files = Vec::new();
    if dist.join("index.html").is_file() {
        gather(&dist, &mut files)?;
    }
    files.sort();
    let mut table = String::from("&[\n");
    for file in &files {
        write_file(&mut table, &dist, file)?;
    }
    table.push_str("]\n");
    fs::write(out.join("web_ui_files.rs"), table)
}

fn gather(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_hidden = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if path.is_dir() {
            gather(&path, files)?;
        } else if !is_hidden && path.extension().is_none_or(|ending| ending != COMPRESSED) {
            files.push(path);
        }
    }
    Ok(())
}

fn write_file(table: &mut String, dist: &Path, file: &Path) -> io::Result<()> {
    let name = file.strip_prefix(dist).expect("it was found in there");
    let name = name.to_string_lossy().replace('\\', "/");
    let mut small = file.as_os_str().to_owned();
    small.push(".");
    small.push(COMPRESSED);
    let small = PathBuf::from(small);
    let mut hasher = DefaultHasher::new();
    hasher.write(&fs::read(file)?);
    let hash = hasher.finish();
    let gzip = if small.is_file() {
        format!("Some(include_bytes!({:?}))", small.display().to_string())
    } else {
        "None".to_owned()
    };
    let plain = file.display().to_string();
    let _ = writeln!(
        table,
        "    File {{ name: {name:?}, hash: \"{hash:016x}\", plain: include_bytes!({plain:?}), gzip: {gzip} }},"
    );
    Ok(())
}
