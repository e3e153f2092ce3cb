//! The binary: reads the command line, does what it says and ends with a code that scripts can rely on.

mod cli;
mod commands;
mod config;
mod directories;
mod doors;
mod figures;
mod in_process;
mod node;
mod output;
mod plugin_host;
mod serve;
mod telemetry;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::Parser;

use cli::{Cli, ClusterArgs, Verb};

/// Something was refused or went wrong.
const EXIT_FAILED: u8 = 1;
/// The cluster could not be reached, or did not answer in time.
const EXIT_UNREACHABLE: u8 = 3;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match cli.verb {
        Verb::Serve(args) => serve::run(args).map(|()| ExitCode::SUCCESS),
        Verb::Log(verb) => commands::log::run(verb),
        verb => command(&cli.cluster, verb).map(|()| ExitCode::SUCCESS),
    };
    match result {
        Ok(code) => code,
        Err(error) if output::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

/// Runs a verb that asks a cluster.
fn command(cluster: &ClusterArgs, verb: Verb) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("starting the runtime")?;
    let result = runtime.block_on(async {
        match verb {
            Verb::Topic(verb) => commands::topic::run(cluster, verb).await,
            Verb::Group(verb) => commands::group::run(cluster, verb).await,
            Verb::Cluster(verb) => commands::cluster::run(cluster, verb).await,
            Verb::Config(verb) => commands::config::run(cluster, verb).await,
            Verb::Wasm(args) => commands::wasm::run(Duration::from_secs(cluster.timeout), args).await,
            Verb::Completions { shell } => commands::completions::run(shell),
            Verb::Serve(_) | Verb::Log(_) => unreachable!("these ask no cluster"),
        }
    });
    // Reading from standard input cannot be interrupted; do not wait for it.
    runtime.shutdown_background();
    result
}

fn fail(error: &anyhow::Error) -> ExitCode {
    output::tell_error(error);
    let unreachable = error.chain().any(|cause| {
        matches!(
            cause.downcast_ref(),
            Some(client::Error::NoBroker { .. } | client::Error::Timeout { .. })
        ) || matches!(
            cause.downcast_ref(),
            Some(commands::http::HttpError::Connect { .. } | commands::http::HttpError::Timeout { .. })
        )
    });
    ExitCode::from(if unreachable { EXIT_UNREACHABLE } else { EXIT_FAILED })
}
