//! Where the checkout is, and which files are in it.

use std::path::{Path, PathBuf};

use anyhow::Context;

/// Folders that hold nothing of ours: outputs, caches, other people's code, a node's data.
const NOT_OURS: &[&str] = &[
    ".git",
    ".cache",
    "target",
    "node_modules",
    "millstream-data",
    "__pycache__",
];

/// The folder that holds the workspace's manifest.
pub(crate) fn path() -> anyhow::Result<PathBuf> {
    let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    manifest
        .parent()
        .map(Path::to_path_buf)
        .context("xtask lies in a folder of the workspace")
}

/// Every file of the checkout, relative to `root`, in a stable order.
pub(crate) fn files(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).with_context(|| format!("list {}", folder.display()))? {
            let entry = entry?;
            if NOT_OURS.iter().any(|name| entry.file_name() == *name) {
                continue;
            }
            let kind = entry.file_type()?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                found.push(entry.path().strip_prefix(root)?.to_path_buf());
            }
        }
    }
    found.sort();
    Ok(found)
}
