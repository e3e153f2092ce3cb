//! `log export`

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use metadata::config_keys::ServerProperties;
use quorum::exchange::{Beside, Direction, LOG_FOLDER};

use super::exchange::{ExchangeArgs, target_directory};
use super::server_properties::{Written, write};
use crate::output::tell;

/// The file that Kafka is started with.
const SERVER_PROPERTIES: &str = "server.properties";

/// Leave a directory that Apache Kafka 4.4.0 starts from, of the data of a node that was stopped in good order.
///
/// Made are TARGET/log (its log.dirs) and TARGET/server.properties. The source stays as it is. The state of processors
/// beside the logs is not taken along: it is restored from the changelog topics, which are.
#[derive(Args, Debug)]
pub(crate) struct ExportArgs {
    /// The node's data directory, or its log directory.
    #[arg(value_name = "DATA_DIR")]
    source: PathBuf,
    /// The directory to be made; it must not be there, or be empty.
    target: PathBuf,
    /// The properties file that the node was started with: what Kafka knows of it goes into TARGET/server.properties.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    exchange: ExchangeArgs,
}

pub(super) fn run(args: &ExportArgs) -> anyhow::Result<()> {
    let target = target_directory(&args.target)?;
    let log_directory = target.join(LOG_FOLDER);
    let log_directory = log_directory
        .to_str()
        .with_context(|| format!("{} is not UTF-8", log_directory.display()))?;
    let given = match &args.config {
        Some(file) => read(file)?,
        None => ServerProperties::default(),
    };
    let exchange = args.exchange.examine(&args.source, Direction::Export)?;
    let Written { text, left_out } = write(exchange.plan(), &given, log_directory);
    let beside = [Beside {
        name: SERVER_PROPERTIES,
        text: &text,
    }];
    let is_made = args.exchange.carry_out(exchange, &target, &beside)?;
    for key in left_out {
        args.exchange.show_left_out(&key)?;
    }
    if is_made {
        tell(&format!(
            "start it: bin/kafka-server-start.sh {}",
            target.join(SERVER_PROPERTIES).display()
        ));
    }
    Ok(())
}

fn read(file: &Path) -> anyhow::Result<ServerProperties> {
    let text = std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    ServerProperties::from_file(&text).with_context(|| format!("in {}", file.display()))
}
