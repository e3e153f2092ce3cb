//! `config describe|set|unset`: the keys of a topic, a broker, all brokers or a group.

use clap::{Args, Subcommand};
use client::admin::{ConfigChange, ConfigEntry, ConfigResource, ConfigSource};
use model::{BrokerId, GroupId, TopicName};
use serde_json::json;

use crate::cli::{ClusterArgs, OutputArgs, Session};
use crate::output::{Table, print_json, tell};

#[derive(Subcommand, Debug)]
pub(crate) enum Verb {
    /// Show keys, their values and where these come from.
    Describe {
        #[command(flatten)]
        resource: ResourceArgs,
        /// Keys to show; without any, those that have been set.
        keys: Vec<String>,
        /// Show the keys that have their defaults, too.
        #[arg(short, long)]
        all: bool,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Set keys.
    Set {
        #[command(flatten)]
        resource: ResourceArgs,
        #[arg(required = true, value_name = "KEY=VALUE", value_parser = key_value)]
        settings: Vec<(String, String)>,
        /// Only check whether it could be done.
        #[arg(long)]
        dry_run: bool,
    },
    /// Take settings back, so that the defaults hold again.
    Unset {
        #[command(flatten)]
        resource: ResourceArgs,
        #[arg(required = true, value_name = "KEY")]
        keys: Vec<String>,
        /// Only check whether it could be done.
        #[arg(long)]
        dry_run: bool,
    },
}

/// Whose keys.
#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub(crate) struct ResourceArgs {
    #[arg(long, value_name = "NAME", value_parser = topic_name)]
    topic: Option<TopicName>,
    #[arg(long, value_name = "ID", value_parser = clap::value_parser!(i32).range(0..))]
    broker: Option<i32>,
    /// What holds for every broker without a value of its own.
    #[arg(long)]
    all_brokers: bool,
    #[arg(long, value_name = "ID", value_parser = group_id)]
    group: Option<GroupId>,
}

impl ResourceArgs {
    fn resource(&self) -> ConfigResource {
        match (&self.topic, self.broker, &self.group) {
            (Some(name), _, _) => ConfigResource::Topic(name.clone()),
            (_, Some(id), _) => ConfigResource::Broker(BrokerId::new(id)),
            (_, _, Some(id)) => ConfigResource::Group(id.clone()),
            (None, None, None) => ConfigResource::BrokerDefault,
        }
    }
}

pub(crate) fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("KEY=VALUE is expected".to_owned()),
    }
}

pub(crate) fn topic_name(text: &str) -> Result<TopicName, String> {
    TopicName::new(text).map_err(|error| error.to_string())
}

pub(crate) fn group_id(text: &str) -> Result<GroupId, String> {
    GroupId::new(text).ok_or_else(|| "a group's name is not empty".to_owned())
}

pub(crate) async fn run(cluster: &ClusterArgs, verb: Verb) -> anyhow::Result<()> {
    let session = cluster.connect().await?;
    match verb {
        Verb::Describe {
            resource,
            keys,
            all,
            output,
        } => {
            let keys = (!keys.is_empty()).then_some(keys);
            let Session { client, context } = &session;
            let mut entries = client
                .describe_configs(context, &resource.resource(), keys.as_deref())
                .await?;
            if !all && keys.is_none() {
                entries.retain(is_set);
            }
            show(&entries, output)
        }
        Verb::Set {
            resource,
            settings,
            dry_run,
        } => {
            let changes: Vec<_> = settings
                .into_iter()
                .map(|(key, value)| ConfigChange::Set(key, value))
                .collect();
            alter(&session, &resource.resource(), &changes, dry_run).await
        }
        Verb::Unset {
            resource,
            keys,
            dry_run,
        } => {
            let changes: Vec<_> = keys.into_iter().map(ConfigChange::Unset).collect();
            alter(&session, &resource.resource(), &changes, dry_run).await
        }
    }
}

pub(crate) fn is_set(entry: &ConfigEntry) -> bool {
    !matches!(entry.source, ConfigSource::Default | ConfigSource::StaticBroker)
}

pub(crate) async fn alter(
    session: &Session,
    resource: &ConfigResource,
    changes: &[ConfigChange],
    dry_run: bool,
) -> anyhow::Result<()> {
    session
        .client
        .alter_configs(&session.context, resource, changes, dry_run)
        .await?;
    tell(if dry_run { "could be changed" } else { "changed" });
    Ok(())
}

fn show(entries: &[ConfigEntry], output: OutputArgs) -> anyhow::Result<()> {
    if output.is_json() {
        print_json(&entries.iter().map(entry_json).collect())?;
        return Ok(());
    }
    entry_table(entries).print()?;
    Ok(())
}

pub(crate) fn entry_table(entries: &[ConfigEntry]) -> Table {
    let mut table = Table::new(&["KEY", "VALUE", "SOURCE"]);
    for entry in entries {
        let value = match &entry.value {
            Some(value) => value.clone(),
            None if entry.sensitive => "(hidden)".to_owned(),
            None => "-".to_owned(),
        };
        table.row([entry.name.clone(), value, entry.source.name().to_owned()]);
    }
    table
}

pub(crate) fn entry_json(entry: &ConfigEntry) -> serde_json::Value {
    json!({
        "name": entry.name,
        "value": entry.value,
        "source": entry.source.name(),
        "read_only": entry.read_only,
        "sensitive": entry.sensitive,
    })
}
