//! The command line as a whole: what all verbs share, and the list of verbs. Each verb's own arguments stand beside it.

use std::time::Duration;

use anyhow::Context;
use clap::{Args, Parser, Subcommand, ValueEnum};
use client::{CallContext, Client, Options};

use crate::commands;
use crate::config::ServeArgs;

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  refused or failed; standard error says why
  2  the command line is wrong
  3  the cluster could not be reached or did not answer in time";

/// A streaming platform: broker, gateway and command line in one.
#[derive(Parser, Debug)]
#[command(name = "millstream", version, after_help = EXIT_CODES, propagate_version = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Verb {
    /// Run a node.
    Serve(ServeArgs),
    /// Make, look at and change topics; write and read records.
    #[command(subcommand)]
    Topic(commands::topic::Verb),
    /// Look at consumer groups and move their offsets.
    #[command(subcommand)]
    Group(commands::group::Verb),
    /// Look at the cluster.
    #[command(subcommand)]
    Cluster(commands::cluster::Verb),
    /// Look at and change configurations.
    #[command(subcommand)]
    Config(commands::config::Verb),
    /// Look at the files of log directories, without a node; make indexes anew.
    #[command(subcommand)]
    Log(commands::log::Verb),
    /// Build WebAssembly plugins, deploy them, and look at what they do.
    Wasm(commands::wasm::WasmArgs),
    /// Print a script that completes this command line in a shell.
    Completions { shell: clap_complete::Shell },
}

/// Which cluster.
#[derive(Args, Debug, Clone)]
pub(crate) struct ClusterArgs {
    /// Brokers to begin with, separated by commas.
    #[arg(
        short,
        long,
        global = true,
        value_name = "HOST:PORT",
        value_delimiter = ',',
        env = "MILLSTREAM_BOOTSTRAP",
        default_value = "127.0.0.1:9092"
    )]
    pub(crate) bootstrap: Vec<String>,
    /// How long an operation may take before it is given up.
    #[arg(long, global = true, value_name = "SECONDS", default_value = "30", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) timeout: u64,
}

impl ClusterArgs {
    pub(crate) async fn connect(&self) -> anyhow::Result<Session> {
        let options = Options {
            client_id: "millstream-cli".to_owned(),
            call_wait_max: Duration::from_secs(self.timeout),
            ..Options::default()
        };
        let client = Client::connect(&self.bootstrap, options)
            .await
            .context("connecting to the cluster")?;
        Ok(Session {
            client,
            context: CallContext::anonymous(),
        })
    }
}

/// A cluster that answers, and who asks.
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) context: CallContext,
}

/// How results are shown.
#[derive(Args, Debug, Clone, Copy)]
pub(crate) struct OutputArgs {
    /// For people, or for programs.
    #[arg(short, long, value_enum, default_value_t = OutputFormat::Table)]
    pub(crate) output: OutputFormat,
}

impl OutputArgs {
    pub(crate) fn is_json(self) -> bool {
        self.output == OutputFormat::Json
    }
}

#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputFormat {
    Table,
    Json,
}

/// Whether to go ahead with what cannot be undone.
#[derive(Args, Debug, Clone, Copy)]
pub(crate) struct ConfirmArgs {
    /// Do not ask.
    #[arg(short, long)]
    pub(crate) yes: bool,
}

impl ConfirmArgs {
    /// Asks whoever sits at the terminal; where nobody does, only `--yes` is consent.
    pub(crate) fn confirm(self, what: &str) -> anyhow::Result<()> {
        use std::io::{IsTerminal, Write};
        if self.yes {
            return Ok(());
        }
        anyhow::ensure!(
            std::io::stdin().is_terminal(),
            "{what} cannot be undone: say --yes if it is meant"
        );
        let mut terminal = std::io::stderr().lock();
        write!(terminal, "{what}? This cannot be undone. [y/N] ")?;
        terminal.flush()?;
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer)?;
        anyhow::ensure!(matches!(answer.trim(), "y" | "Y" | "yes"), "nothing was done");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_holds_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_cluster_may_be_named_behind_the_verb() {
        let cli = Cli::try_parse_from(["millstream", "topic", "list", "-b", "a:1,b:2", "-o", "json"]).unwrap();
        assert_eq!(cli.cluster.bootstrap, ["a:1", "b:2"]);
    }
}
