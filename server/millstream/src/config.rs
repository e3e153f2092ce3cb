//! A node's configuration: file, environment and command line in, typed settings out. Only here is either read.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use metadata::config_keys::{BrokerSettings, Configs, ServerProperties, Setting};
use tracing::warn;

/// Below the data directory: the log directories, beside what else a node keeps.
const LOG_FOLDER: &str = "log";

/// The arguments of `serve`.
#[derive(Args, Debug)]
pub(crate) struct ServeArgs {
    /// A properties file, as Kafka's server.properties. Without one the node is broker and controller for itself.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where the node keeps its data; its `log` folder becomes log.dirs.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Sets a key, over file and environment.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<Setting>,
}

/// What a node is told when it starts.
pub(crate) struct NodeConfig {
    pub(crate) static_configs: Configs,
    pub(crate) settings: BrokerSettings,
}

impl NodeConfig {
    pub(crate) fn load(args: ServeArgs) -> anyhow::Result<Self> {
        let mut properties = match &args.config {
            Some(file) => {
                let text = std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
                ServerProperties::from_file(&text).with_context(|| format!("in {}", file.display()))?
            }
            None => ServerProperties::single_node(),
        };
        properties = properties
            .with_environment(std::env::vars())
            .context("in the environment")?;
        if let Some(directory) = &args.data_dir {
            properties = properties.with_settings([log_directory(directory)?]);
        }
        let loaded = properties.with_settings(args.settings).load()?;
        for notice in &loaded.notices {
            warn!("{notice}");
        }
        let settings = BrokerSettings::resolve(&loaded.configs)?;
        if !settings.roles.broker || !settings.roles.controller {
            bail!("process.roles must be broker,controller: nodes of one role are not supported yet");
        }
        Ok(NodeConfig {
            static_configs: loaded.configs.static_values,
            settings,
        })
    }
}

fn log_directory(directory: &Path) -> anyhow::Result<Setting> {
    let path = directory.join(LOG_FOLDER);
    let value = path
        .to_str()
        .with_context(|| format!("{} is not UTF-8", path.display()))?
        .to_owned();
    Ok(Setting {
        name: "log.dirs".to_owned(),
        value,
    })
}
