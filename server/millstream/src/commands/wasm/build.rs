//! `wasm build DIR`: a plugin written in Rust becomes a component, by cargo and then by what its SDK left in the module.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};
use clap::Args;
use serde_json::Value;
use wit_component::ComponentEncoder;

use crate::output::{print_line, tell};

const TARGET: &str = "wasm32-unknown-unknown";
/// How the sections of a module are called that hold its interface.
const INTERFACE: &[u8] = b"component-type";
/// With this set cargo makes the standard library itself.
const BUILD_STD: &str = "CARGO_UNSTABLE_BUILD_STD";

/// Build a plugin written in Rust; prints where the component is.
#[derive(Args, Debug)]
pub(crate) struct BuildArgs {
    /// The folder with the plugin's Cargo.toml.
    #[arg(value_name = "DIR", default_value = ".")]
    folder: PathBuf,
    /// Where to write the component; without it, beside what cargo makes.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(super) fn run(args: &BuildArgs) -> anyhow::Result<()> {
    let manifest = args.folder.join("Cargo.toml");
    ensure!(manifest.is_file(), "{} has no Cargo.toml", args.folder.display());
    ensure_standard_library(&args.folder)?;
    let core = compile(&args.folder)?;
    let bytes = std::fs::read(&core).with_context(|| format!("reading {}", core.display()))?;
    let component = component(&bytes).with_context(|| format!("making a component of {}", core.display()))?;
    let file = args.output.clone().unwrap_or_else(|| beside(&core));
    std::fs::write(&file, &component).with_context(|| format!("writing {}", file.display()))?;
    tell(&format!("{} KiB", component.len().div_ceil(1024)));
    print_line(&file.display().to_string())?;
    Ok(())
}

/// `a_b.wasm` gives `a-b.component.wasm`.
fn beside(core: &Path) -> PathBuf {
    let stem = core.file_stem().unwrap_or_default().to_string_lossy().replace('_', "-");
    core.with_file_name(format!("{stem}.component.wasm"))
}

/// A core module that was built with the SDK carries the interface that it was written for.
fn component(core: &[u8]) -> anyhow::Result<Vec<u8>> {
    let carries = core.windows(INTERFACE.len()).any(|bytes| bytes == INTERFACE);
    ensure!(
        carries,
        "it does not say for which interface it was made: is it built with millstream-sdk?"
    );
    ComponentEncoder::default().validate(true).module(core)?.encode()
}

/// The compiler that cargo will use in the folder, asked there since a toolchain file may choose another.
fn ensure_standard_library(folder: &Path) -> anyhow::Result<()> {
    if std::env::var_os(BUILD_STD).is_some() {
        return Ok(());
    }
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let said = Command::new(&compiler)
        .args(["--print", "target-libdir", "--target", TARGET])
        .current_dir(folder)
        .output()
        .with_context(|| format!("starting {}: is Rust installed?", compiler.display()))?;
    let library = PathBuf::from(String::from_utf8_lossy(&said.stdout).trim());
    ensure!(
        said.status.success() && library.is_dir(),
        "Rust's standard library for {TARGET} is not installed: run `rustup target add {TARGET}` in {}",
        folder.display()
    );
    Ok(())
}

/// The core module that cargo made of the package's library.
fn compile(folder: &Path) -> anyhow::Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let child = Command::new(&cargo)
        .args(["build", "--release", "--target", TARGET])
        .arg("--message-format=json-render-diagnostics")
        .current_dir(folder)
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("starting {}: is Rust installed?", cargo.display()))?;
    let ended = child.wait_with_output().context("waiting for cargo")?;
    ensure!(ended.status.success(), "cargo could not build {}", folder.display());
    let made: Vec<PathBuf> = String::from_utf8_lossy(&ended.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter_map(|message| module_of(&message))
        .collect();
    match <[PathBuf; 1]>::try_from(made) {
        Ok([module]) => Ok(module),
        Err(made) if made.is_empty() => bail!(
            "{} makes no WebAssembly module: its Cargo.toml needs `crate-type = [\"cdylib\"]` below [lib]",
            folder.display()
        ),
        Err(made) => bail!(
            "{} makes {} modules: name the folder of one plugin",
            folder.display(),
            made.len()
        ),
    }
}

/// The module that a message of cargo's tells of.
fn module_of(message: &Value) -> Option<PathBuf> {
    if message["reason"] != "compiler-artifact" {
        return None;
    }
    let files = message["filenames"].as_array()?;
    let mut files = files.iter().filter_map(Value::as_str).map(PathBuf::from);
    files.find(|file| file.extension().is_some_and(|ending| ending == "wasm"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_cargo_says_it_made_is_taken() {
        let made = json!({"reason": "compiler-artifact", "filenames": ["/t/a_b.d", "/t/a_b.wasm"]});
        assert_eq!(module_of(&made), Some(PathBuf::from("/t/a_b.wasm")));
        let library = json!({"reason": "compiler-artifact", "filenames": ["/t/liba.rlib"]});
        assert_eq!(module_of(&library), None);
        assert_eq!(
            module_of(&json!({"reason": "build-finished", "filenames": ["a.wasm"]})),
            None
        );
    }

    #[test]
    fn components_stand_beside_their_modules() {
        assert_eq!(beside(Path::new("/t/a_b.wasm")), PathBuf::from("/t/a-b.component.wasm"));
    }

    #[test]
    fn a_module_without_an_interface_is_no_plugin() {
        let error = component(b"\0asm\x01\0\0\0").unwrap_err().to_string();
        assert!(error.contains("millstream-sdk"), "{error}");
        assert!(component(b"component-type, but no module").is_err());
    }

    #[test]
    fn a_folder_without_a_manifest_is_told() {
        let args = BuildArgs {
            folder: std::env::temp_dir().join("no-such-plugin"),
            output: None,
        };
        assert!(run(&args).unwrap_err().to_string().contains("no Cargo.toml"));
    }
}
