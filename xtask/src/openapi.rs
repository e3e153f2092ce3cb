//! `cargo xtask openapi`: writes `openapi/millstream.json` anew.
//!
//! The test that compares the committed document with the routes writes it when it is told to, so that the chores need
//! not be built with the HTTP door.

use std::process::Command;

use anyhow::{Context, bail, ensure};

use crate::root;

const TEST: &str = "openapi::tests::the_committed_document_is_the_one_that_is_served";

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    if let Some(argument) = arguments.first() {
        bail!("openapi takes no arguments, not {argument}");
    }
    let status = Command::new("cargo")
        .args([
            "test",
            "--quiet",
            "--package",
            "gateway",
            "--lib",
            "--",
            "--exact",
            TEST,
        ])
        .env("UPDATE", "1")
        .current_dir(root::path()?)
        .status()
        .context("run cargo")?;
    ensure!(status.success(), "the document was not written");
    Ok(())
}
