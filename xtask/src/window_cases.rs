//! `cargo xtask window-cases DIR --plugin native|wasm`: the recorded window cases, each row by row and all at once.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail, ensure};
use streams::window_cases::{Case, Tally, native};

use crate::{console, plugins, root};

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (directory, plugin) = match arguments[..] {
        [directory] => (directory, "native"),
        [directory, "--plugin", plugin] | ["--plugin", plugin, directory] => (directory, plugin),
        _ => bail!("usage: window-cases DIR --plugin native|wasm"),
    };
    match plugin {
        "native" => run_native(Path::new(directory)),
        "wasm" => run_wasm(Path::new(directory)),
        other => bail!("plugin {other}: there are native and wasm"),
    }
}

fn run_native(directory: &Path) -> anyhow::Result<()> {
    let mut tally = Tally::default();
    for path in case_files(directory)? {
        let text = std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        let case = Case::parse(&text).with_context(|| format!("read {}", path.display()))?;
        let lines = tally
            .judge(&case, &mut |params| native(params))
            .with_context(|| format!("run {}", case.name))?;
        lines.iter().for_each(|line| console::line(line));
    }
    tally.summary().iter().for_each(|line| console::line(line));
    ensure!(tally.failed == 0, "{} window cases failed", tally.failed);
    ensure!(tally.passed > 0, "no case in {} was run", directory.display());
    Ok(())
}

/// The host is no part of this program, which would take minutes more to build: an example of the host's does the work.
fn run_wasm(directory: &Path) -> anyhow::Result<()> {
    plugins::run(&[])?;
    let component = root::path()?.join("target/plugins/window-aggregates.wasm");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["run", "--quiet", "--package", "wasm", "--example", "window_cases", "--"])
        .arg(component)
        .args(case_files(directory)?)
        .status()
        .context("start the runner")?;
    ensure!(status.success(), "the window cases failed: {status}");
    Ok(())
}

fn case_files(directory: &Path) -> anyhow::Result<Vec<std::path::PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).with_context(|| format!("list {}", directory.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
