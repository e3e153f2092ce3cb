//! `log …`: looks at the files of log directories, without a node. Only `rebuild-index` writes, and only where no node runs.

mod decoder;
mod dump;
mod dump_records;
mod rebuild_index;
mod verify;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Subcommand;
use storage::RealDisk;
use storage::inspect::Target;

use crate::output::{is_closed_pipe, tell_error};

/// Something was found.
const EXIT_FINDINGS: u8 = 1;
/// A look at the files could not be had.
const EXIT_COULD_NOT_RUN: u8 = 2;

#[derive(Subcommand, Debug)]
pub(crate) enum Verb {
    Dump(dump::DumpArgs),
    Verify(verify::VerifyArgs),
    RebuildIndex(rebuild_index::RebuildIndexArgs),
}

pub(crate) fn run(verb: Verb) -> anyhow::Result<ExitCode> {
    match verb {
        Verb::Dump(args) => dump::run(&args).map(|()| ExitCode::SUCCESS),
        Verb::RebuildIndex(args) => rebuild_index::run(&args).map(|()| ExitCode::SUCCESS),
        Verb::Verify(args) => Ok(match verify::run(&args) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::from(EXIT_FINDINGS),
            Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
            Err(error) => {
                tell_error(&error);
                ExitCode::from(EXIT_COULD_NOT_RUN)
            }
        }),
    }
}

/// What the operator has named; a folder's name must be seen even where it was given as `.`.
fn target(path: &Path) -> anyhow::Result<Target> {
    let whole: PathBuf = std::fs::canonicalize(path).with_context(|| format!("looking at {}", path.display()))?;
    Ok(Target::of(&RealDisk, &whole)?)
}
