//! `completions SHELL`

use std::io::Write;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;

pub(crate) fn run(shell: Shell) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "millstream", &mut script);
    std::io::stdout().lock().write_all(&script)?;
    Ok(())
}
