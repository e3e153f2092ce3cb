//! `cluster info`

use clap::Subcommand;
use serde_json::json;

use crate::cli::{ClusterArgs, OutputArgs};
use crate::output::{Table, print_json, print_line};

#[derive(Subcommand, Debug)]
pub(crate) enum Verb {
    /// The cluster's id, its brokers and which of them takes requests to the controller.
    Info(OutputArgs),
}

pub(crate) async fn run(cluster: &ClusterArgs, verb: Verb) -> anyhow::Result<()> {
    match verb {
        Verb::Info(output) => info(cluster, output).await,
    }
}

async fn info(cluster: &ClusterArgs, output: OutputArgs) -> anyhow::Result<()> {
    let session = cluster.connect().await?;
    let found = session.client.describe_cluster(&session.context).await?;
    if output.is_json() {
        let brokers: Vec<_> = found
            .brokers
            .iter()
            .map(|node| json!({"id": node.id.get(), "host": node.host, "port": node.port, "rack": node.rack}))
            .collect();
        let controller = found.controller.map(|id| id.get());
        print_json(&json!({"cluster_id": found.id, "controller": controller, "brokers": brokers}))?;
        return Ok(());
    }
    print_line(&format!("cluster {}\n", found.id))?;
    let mut table = Table::new(&["BROKER", "ADDRESS", "RACK", "CONTROLLER"]);
    for node in &found.brokers {
        table.row([
            node.id.to_string(),
            node.address(),
            node.rack.clone().unwrap_or_else(|| "-".to_owned()),
            if found.controller == Some(node.id) { "yes" } else { "-" }.to_owned(),
        ]);
    }
    table.print()?;
    Ok(())
}
