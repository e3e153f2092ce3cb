//! `accept NAME [ARGS…]`: runs `tests/acceptance/NAME.*`, which ends with `N passed, N failed`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};

use crate::{console, root};

const FOLDER: &str = "tests/acceptance";

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let root = root::path()?;
    let scripts = scripts(&root)?;
    let Some((name, rest)) = arguments.split_first() else {
        for script in &scripts {
            console::line(&name_of(script));
        }
        return Ok(());
    };
    let script = scripts.iter().find(|script| name_of(script) == *name);
    let Some(script) = script else {
        bail!("{FOLDER} has no script called {name}");
    };
    let status = Command::new(script)
        .args(rest)
        .current_dir(&root)
        .status()
        .with_context(|| format!("start {}", script.display()))?;
    ensure!(status.success(), "{name}: {status}");
    Ok(())
}

/// A script is a file that may be executed; what it imports may not.
fn scripts(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    use std::os::unix::fs::PermissionsExt;
    let mut scripts = Vec::new();
    for entry in std::fs::read_dir(root.join(FOLDER)).with_context(|| format!("list {FOLDER}"))? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        if metadata.is_file() && metadata.permissions().mode() & 0o111 != 0 {
            scripts.push(entry.path());
        }
    }
    scripts.sort();
    Ok(scripts)
}

fn name_of(script: &Path) -> String {
    script
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_known_by_their_name_without_extension() {
        let names: Vec<String> = scripts(&root::path().unwrap())
            .unwrap()
            .iter()
            .map(|script| name_of(script))
            .collect();
        assert!(names.contains(&"kill9".to_owned()), "{names:?}");
    }

    #[test]
    fn an_unknown_name_is_an_error_that_names_it() {
        let error = run(&["no-such-script".to_owned()]).unwrap_err();
        assert!(error.to_string().contains("no-such-script"), "{error}");
    }
}
