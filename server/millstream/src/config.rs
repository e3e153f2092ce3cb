//! A node's configuration: file, environment and command line in, typed settings out. Only here is either read.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use metadata::config_keys::{BrokerSettings, Configs, ServerProperties, Setting};
use tracing::warn;

/// Below the data directory: the log directories, beside what else a node keeps.
const LOG_FOLDER: &str = "log";

/// What is added to the name of a log directory elsewhere to name the data directory.
const DATA_ENDING: &str = ".millstream";

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
    /// Where the node keeps what is not a log: modules, their native code, the stores of tasks.
    pub(crate) data_directory: PathBuf,
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
        let first = settings.log.directories.first().map(Path::new);
        let data_directory = args.data_dir.or_else(|| first.map(beside));
        Ok(NodeConfig {
            static_configs: loaded.configs.static_values,
            data_directory: data_directory.context("log.dirs names no directory")?,
            settings,
        })
    }
}

/// The data directory that goes with a log directory: its parent if it is the `log` folder of one, else one of its own
/// next to it, since Kafka takes everything in a log directory for a partition.
fn beside(log_directory: &Path) -> PathBuf {
    match log_directory.parent() {
        Some(parent) if log_directory.ends_with(LOG_FOLDER) => parent.to_owned(),
        _ => {
            let mut name = log_directory.as_os_str().to_owned();
            name.push(DATA_ENDING);
            PathBuf::from(name)
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_directory_is_never_inside_a_log_directory() {
        assert_eq!(beside(Path::new("data/log")), Path::new("data"));
        assert_eq!(
            beside(Path::new("/var/kafka-logs")),
            Path::new("/var/kafka-logs.millstream")
        );
        assert_eq!(beside(Path::new("log")), Path::new(""));
    }
}
