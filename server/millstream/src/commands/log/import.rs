//! `log import`

use std::path::PathBuf;

use clap::Args;
use quorum::exchange::Direction;

use super::exchange::{ExchangeArgs, target_directory};
use crate::output::tell;

/// A node has this id if nothing is said.
const NODE_ID_DEFAULT: i32 = 1;

/// Take over the data of an Apache Kafka node that is broker and controller for itself and was stopped in good order.
///
/// What is taken over: topics with their ids, configurations, records, producers' state, committed offsets. The source
/// stays as it is. What is kept and has no effect here is told.
#[derive(Args, Debug)]
pub(crate) struct ImportArgs {
    /// The node's log directory (log.dirs).
    #[arg(value_name = "SOURCE")]
    source: PathBuf,
    /// The data directory to be made; it must not be there, or be empty.
    #[arg(long, value_name = "DIR")]
    data_dir: PathBuf,
    #[command(flatten)]
    exchange: ExchangeArgs,
}

pub(super) fn run(args: &ImportArgs) -> anyhow::Result<()> {
    let target = target_directory(&args.data_dir)?;
    let exchange = args.exchange.examine(&args.source, Direction::Import)?;
    let node_id = exchange.plan().node_id.get();
    if args.exchange.carry_out(exchange, &target, &[])? {
        let node_id = match node_id {
            NODE_ID_DEFAULT => String::new(),
            id => format!(" --set node.id={id}"),
        };
        tell(&format!(
            "start it: millstream serve --data-dir {}{node_id}",
            target.display()
        ));
        tell("what Kafka's server.properties said is not in the data: give that file with --config");
    }
    Ok(())
}
