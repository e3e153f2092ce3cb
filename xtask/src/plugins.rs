//! `plugins`: builds the plugins of `plugins/` as components, into `target/plugins`.
//!
//! Nothing is built if the sources are those of the last time. Tests that need guests call this, several at once.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use wit_component::ComponentEncoder;

use crate::{console, root};

/// Which sources the components were made of.
const STAMP: &str = "sources";

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    ensure!(arguments.is_empty(), "usage: plugins");
    let root = root::path()?;
    let out = root.join("target/plugins");
    fs::create_dir_all(&out).with_context(|| format!("make {}", out.display()))?;
    let lock = File::create(out.join("lock")).context("make the lock")?;
    lock.lock().context("wait for another build of the plugins")?;
    let sources = sources(&root)?;
    let stamp = out.join(STAMP);
    if fs::read_to_string(&stamp).is_ok_and(|built| built == sources) {
        return Ok(());
    }
    let cores = out.join("core");
    build(&root, &out, &cores)?;
    for core in modules(&cores)? {
        let name = core.file_name().context("a module has a name")?;
        let bytes = fs::read(&core).with_context(|| format!("read {}", core.display()))?;
        let component = component(&bytes).with_context(|| format!("make a component of {}", core.display()))?;
        fs::write(out.join(name), &component).with_context(|| format!("write {}", name.display()))?;
        console::line(&format!(
            "{} ({} KiB)",
            out.join(name).display(),
            component.len() / 1024
        ));
    }
    fs::write(&stamp, sources).context("write down what was built")
}

/// The core modules, anew: none of a plugin that is no more.
fn build(root: &Path, out: &Path, cores: &Path) -> anyhow::Result<()> {
    if cores.exists() {
        fs::remove_dir_all(cores).context("remove the last build's modules")?;
    }
    let status = Command::new(root.join("plugins/build"))
        .arg(cores)
        .env("CARGO_TARGET_DIR", out.join("build"))
        // What cargo and rustup tell this program about its own toolchain is not meant for another one.
        .env_remove("RUSTUP_TOOLCHAIN")
        .env_remove("CARGO")
        .env_remove("RUSTC")
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .status()
        .context("start plugins/build")?;
    ensure!(status.success(), "plugins/build failed: {status}");
    Ok(())
}

fn modules(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut modules = BTreeSet::new();
    for entry in fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "wasm") {
            modules.insert(path);
        }
    }
    Ok(modules.into_iter().collect())
}

/// A core module built with the SDK carries the interface that it was written for.
fn component(core: &[u8]) -> anyhow::Result<Vec<u8>> {
    ComponentEncoder::default().validate(true).module(core)?.encode()
}

/// A digest of everything that the components are made of.
fn sources(root: &Path) -> anyhow::Result<String> {
    let mut hasher = DefaultHasher::new();
    for file in root::files(root)? {
        if file.starts_with("plugins") || file.starts_with("wit") || file == Path::new("xtask/src/plugins.rs") {
            let bytes = fs::read(root.join(&file)).with_context(|| format!("read {}", file.display()))?;
            (&file, bytes).hash(&mut hasher);
        }
    }
    Ok(format!("{:016x}\n", hasher.finish()))
}
