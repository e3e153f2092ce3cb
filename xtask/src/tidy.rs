//! `tidy`: the rules of the house that a program can check, also run as a test.
//!
//! - `layers`: which crate may use which, and what keeps the deterministic ones deterministic.
//! - `files`: heads, names and sizes of files, and words that have no place in them.
//! - `evidence`: the tests that the page on compatibility names are there.

mod evidence;
mod files;
mod layers;

use std::path::Path;

use anyhow::bail;

use crate::{console, root};

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    if let Some(argument) = arguments.first() {
        bail!("tidy takes no arguments, not {argument}");
    }
    let findings = check(&root::path()?)?;
    for finding in &findings {
        console::error(finding);
    }
    match findings.len() {
        0 => Ok(()),
        count => bail!("{count} findings"),
    }
}

/// Everything that is not in order, each finding with the file it was found in.
fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut findings = layers::check(root)?;
    findings.extend(files::check(root)?);
    findings.extend(evidence::check(root)?);
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_house_is_tidy() {
        let findings = check(&root::path().unwrap()).unwrap();
        assert!(findings.is_empty(), "\n{}\n", findings.join("\n"));
    }
}
