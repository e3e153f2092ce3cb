//! `topic …`: this file has the verbs that administer; writing and reading records have their own.

mod compaction;
mod consume;
mod produce;
pub(crate) mod record_format;

use std::collections::BTreeMap;
use std::time::Duration;

use clap::{Args, Subcommand};
use client::admin::{ConfigChange, ConfigResource, NewTopic, OffsetSpec};
use client::{Error, Isolation, Topic};
use model::{ErrorCode, PartitionIndex, TopicName, TopicPartition};
use serde_json::json;

use self::compaction::Compaction;
use super::config::{alter, entry_json, entry_table, is_set, key_value, topic_name};
use super::offset_argument::OffsetArgument;
use crate::cli::{ClusterArgs, ConfirmArgs, OutputArgs, Session};
use crate::commands::http::DoorArgs;
use crate::output::{Table, print_json, print_line, tell};

#[derive(Subcommand, Debug)]
pub(crate) enum Verb {
    /// The topics there are.
    List {
        /// Show the cluster's own topics, too.
        #[arg(short, long)]
        internal: bool,
        #[command(flatten)]
        output: OutputArgs,
    },
    Create(CreateArgs),
    Describe(DescribeArgs),
    /// Change a topic's configuration.
    Alter {
        #[arg(value_parser = topic_name)]
        topic: TopicName,
        /// Set a key.
        #[arg(short, long, value_name = "KEY=VALUE", value_parser = key_value)]
        set: Vec<(String, String)>,
        /// Take a setting back.
        #[arg(short, long, value_name = "KEY")]
        unset: Vec<String>,
        /// Only check whether it could be done.
        #[arg(long)]
        dry_run: bool,
    },
    /// Delete topics with all their records.
    Delete {
        #[arg(required = true, value_parser = topic_name)]
        topics: Vec<TopicName>,
        #[command(flatten)]
        confirm: ConfirmArgs,
    },
    /// Give a topic more partitions. Keys go to other partitions from then on.
    AddPartitions {
        #[arg(value_parser = topic_name)]
        topic: TopicName,
        /// How many it shall have in all.
        #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
        total: u32,
        /// Only check whether it could be done.
        #[arg(long)]
        dry_run: bool,
    },
    /// Delete a topic's oldest records.
    Trim {
        #[arg(value_parser = topic_name)]
        topic: TopicName,
        /// Delete what lies before: end, an offset, -N (so many before the end), @MILLISECONDS or @-DURATION.
        #[arg(long, allow_hyphen_values = true)]
        before: OffsetArgument,
        /// Only of these partitions.
        #[arg(short, long, value_name = "PARTITION", value_delimiter = ',', value_parser = clap::value_parser!(i32).range(0..))]
        partitions: Vec<i32>,
        #[command(flatten)]
        confirm: ConfirmArgs,
        #[command(flatten)]
        output: OutputArgs,
    },
    Produce(produce::ProduceArgs),
    Consume(consume::ConsumeArgs),
}

/// A topic's partitions, their offsets, and what is configured.
#[derive(Args, Debug)]
pub(crate) struct DescribeArgs {
    #[arg(value_parser = topic_name)]
    topic: TopicName,
    /// Show the keys that have their defaults, too.
    #[arg(short, long)]
    all_configs: bool,
    /// Show how far each partition is compacted, too. The HTTP door of a node is asked; it tells of the partitions that
    /// this node leads.
    #[arg(long)]
    compaction: bool,
    #[command(flatten)]
    door: DoorArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Create topics.
#[derive(Args, Debug)]
pub(crate) struct CreateArgs {
    #[arg(required = true, value_parser = topic_name)]
    topics: Vec<TopicName>,
    /// How many partitions; without it, the cluster's default.
    #[arg(short, long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    partitions: Option<u32>,
    /// How many replicas; without it, the cluster's default.
    #[arg(short, long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..))]
    replicas: Option<u16>,
    #[arg(short, long = "config", value_name = "KEY=VALUE", value_parser = key_value)]
    configs: Vec<(String, String)>,
    /// Leave a topic that exists as it is.
    #[arg(long)]
    if_not_exists: bool,
    /// Only check whether it could be done.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) async fn run(cluster: &ClusterArgs, verb: Verb) -> anyhow::Result<()> {
    match verb {
        Verb::List { internal, output } => list(&cluster.connect().await?, internal, output).await,
        Verb::Create(args) => create(&cluster.connect().await?, args).await,
        Verb::Describe(args) => describe(cluster, args).await,
        Verb::Alter {
            topic,
            set,
            unset,
            dry_run,
        } => {
            anyhow::ensure!(
                !set.is_empty() || !unset.is_empty(),
                "nothing to change: give --set or --unset"
            );
            let set = set.into_iter().map(|(key, value)| ConfigChange::Set(key, value));
            let changes: Vec<_> = set.chain(unset.into_iter().map(ConfigChange::Unset)).collect();
            alter(
                &cluster.connect().await?,
                &ConfigResource::Topic(topic),
                &changes,
                dry_run,
            )
            .await
        }
        Verb::Delete { topics, confirm } => delete(cluster, &topics, confirm).await,
        Verb::AddPartitions { topic, total, dry_run } => {
            let Session { client, context } = cluster.connect().await?;
            client.create_partitions(&context, &topic, total, dry_run).await?;
            tell(&format!(
                "{topic} {} {total} partitions",
                if dry_run { "could have" } else { "has" }
            ));
            Ok(())
        }
        Verb::Trim {
            topic,
            before,
            partitions,
            confirm,
            output,
        } => {
            let session = cluster.connect().await?;
            trim(&session, &topic, before, &partitions, confirm, output).await
        }
        Verb::Produce(args) => produce::run(&cluster.connect().await?, args).await,
        Verb::Consume(args) => consume::run(&cluster.connect().await?, args).await,
    }
}

async fn list(session: &Session, internal: bool, output: OutputArgs) -> anyhow::Result<()> {
    let mut topics = session.client.list_topics(&session.context).await?;
    topics.retain(|topic| internal || !topic.internal);
    let replicas = |topic: &Topic| {
        topic
            .partitions
            .iter()
            .map(|partition| partition.replicas.len())
            .max()
            .unwrap_or(0)
    };
    if output.is_json() {
        let rows = topics.iter().map(|topic| {
            json!({
                "name": topic.name.as_str(),
                "id": topic.id.to_string(),
                "internal": topic.internal,
                "partitions": topic.partitions.len(),
                "replicas": replicas(topic),
            })
        });
        print_json(&rows.collect())?;
        return Ok(());
    }
    let mut table = Table::new(&["TOPIC", "PARTITIONS", "REPLICAS"]);
    for topic in &topics {
        table.row([
            topic.name.to_string(),
            topic.partitions.len().to_string(),
            replicas(topic).to_string(),
        ]);
    }
    table.print()?;
    Ok(())
}

async fn create(session: &Session, args: CreateArgs) -> anyhow::Result<()> {
    for name in &args.topics {
        let topic = NewTopic {
            partitions: args.partitions,
            replication_factor: args.replicas,
            configs: args.configs.iter().cloned().collect(),
            ..NewTopic::named(name.clone())
        };
        let created = match session
            .client
            .create_topic(&session.context, &topic, args.dry_run)
            .await
        {
            Err(error) if args.if_not_exists && error.code() == ErrorCode::TopicAlreadyExists => {
                tell(&format!("{name} exists already"));
                continue;
            }
            created => created?,
        };
        if args.output.is_json() {
            print_json(&json!({
                "name": name.as_str(),
                "id": created.id.to_string(),
                "partitions": created.partitions,
                "replicas": created.replication_factor,
                "created": !args.dry_run,
            }))?;
        } else {
            let count = created
                .partitions
                .map_or_else(String::new, |count| format!(" with {count} partitions"));
            let done = if args.dry_run { "could be created" } else { "created" };
            tell(&format!("{name} {done}{count}"));
        }
    }
    Ok(())
}

async fn describe(cluster: &ClusterArgs, args: DescribeArgs) -> anyhow::Result<()> {
    let DescribeArgs {
        topic: ref name,
        all_configs: all,
        output,
        ..
    } = args;
    let session = &cluster.connect().await?;
    let Session { client, context } = session;
    let topic = client.describe_topic(context, name).await?;
    let starts = offsets(session, &topic, OffsetSpec::Earliest).await;
    let ends = offsets(session, &topic, OffsetSpec::Latest).await;
    let mut configs = client
        .describe_configs(context, &ConfigResource::Topic(name.clone()), None)
        .await?;
    configs.retain(|entry| all || is_set(entry));
    let compaction = match args.compaction {
        true => Some(Compaction::ask(args.door, Duration::from_secs(cluster.timeout), name).await?),
        false => None,
    };
    if output.is_json() {
        let partitions: Vec<_> = topic
            .partitions
            .iter()
            .map(|partition| {
                let mut row = json!({
                    "partition": partition.index.get(),
                    "leader": partition.leader.map(|id| id.get()),
                    "leader_epoch": partition.leader_epoch.map(|epoch| epoch.get()),
                    "replicas": ids(&partition.replicas),
                    "in_sync_replicas": ids(&partition.in_sync_replicas),
                    "offline_replicas": ids(&partition.offline_replicas),
                    "start_offset": starts.get(&partition.index),
                    "end_offset": ends.get(&partition.index),
                });
                if let Some(compaction) = &compaction {
                    row["compaction"] = compaction.of(partition.index.get());
                }
                row
            })
            .collect();
        print_json(&json!({
            "name": name.as_str(),
            "id": topic.id.to_string(),
            "internal": topic.internal,
            "partitions": partitions,
            "configs": configs.iter().map(entry_json).collect::<Vec<_>>(),
        }))?;
        return Ok(());
    }
    print_line(&format!("topic {name}, id {}\n", topic.id))?;
    partition_table(&topic, &starts, &ends).print()?;
    if !configs.is_empty() {
        print_line("")?;
        entry_table(&configs).print()?;
    }
    compaction.map_or(Ok(()), |compaction| compaction.print())
}

type Offsets = BTreeMap<PartitionIndex, i64>;

async fn offsets(session: &Session, topic: &Topic, spec: OffsetSpec) -> Offsets {
    let partition = |index| TopicPartition {
        topic: topic.name.clone(),
        partition: index,
    };
    let specs = topic
        .partitions
        .iter()
        .map(|found| (partition(found.index), spec))
        .collect();
    let listed = session
        .client
        .list_offsets(&session.context, &specs, Isolation::ReadUncommitted)
        .await;
    let found = listed.into_iter().filter_map(|(partition, listed)| match listed {
        Ok(listed) => Some((partition.partition, listed?.offset.get())),
        Err(error) => {
            tell(&format!("warning: {error}"));
            None
        }
    });
    found.collect()
}

fn partition_table(topic: &Topic, starts: &Offsets, ends: &Offsets) -> Table {
    let mut table = Table::new(&["PARTITION", "LEADER", "EPOCH", "REPLICAS", "IN SYNC", "START", "END"]);
    let list = |brokers: &[model::BrokerId]| {
        ids(brokers)
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(",")
    };
    let offset = |offsets: &Offsets, index| offsets.get(index).map_or_else(|| "-".to_owned(), ToString::to_string);
    for partition in &topic.partitions {
        table.row([
            partition.index.to_string(),
            partition.leader.map_or_else(|| "none".to_owned(), |id| id.to_string()),
            partition
                .leader_epoch
                .map_or_else(|| "-".to_owned(), |epoch| epoch.to_string()),
            list(&partition.replicas),
            list(&partition.in_sync_replicas),
            offset(starts, &partition.index),
            offset(ends, &partition.index),
        ]);
    }
    table
}

fn ids(brokers: &[model::BrokerId]) -> Vec<i32> {
    brokers.iter().map(|id| id.get()).collect()
}

async fn delete(cluster: &ClusterArgs, topics: &[TopicName], confirm: ConfirmArgs) -> anyhow::Result<()> {
    let names: Vec<&str> = topics.iter().map(TopicName::as_str).collect();
    confirm.confirm(&format!("deleting {}", names.join(", ")))?;
    let Session { client, context } = cluster.connect().await?;
    for name in topics {
        client.delete_topic(&context, name).await?;
        tell(&format!("{name} deleted"));
    }
    Ok(())
}

async fn trim(
    session: &Session,
    name: &TopicName,
    before: OffsetArgument,
    only: &[i32],
    confirm: ConfirmArgs,
    output: OutputArgs,
) -> anyhow::Result<()> {
    let Session { client, context } = session;
    let topic = client.describe_topic(context, name).await?;
    let partitions = chosen_partitions(&topic, only)?;
    let mut targets = Vec::new();
    for partition in partitions {
        let offset = client
            .position(context, &partition, before.start(), Isolation::ReadUncommitted)
            .await?;
        targets.push((partition, offset));
    }
    let shown: Vec<String> = targets
        .iter()
        .map(|(partition, offset)| format!("{partition} below {offset}"))
        .collect();
    confirm.confirm(&format!("deleting the records of {}", shown.join(", ")))?;
    let mut table = Table::new(&["PARTITION", "START"]);
    let mut rows = Vec::new();
    for (partition, offset) in targets {
        let start = client.delete_records(context, &partition, Some(offset)).await?;
        table.row([partition.partition.to_string(), start.to_string()]);
        rows.push(json!({"partition": partition.partition.get(), "start_offset": start.get()}));
    }
    if output.is_json() {
        print_json(&rows.into())?;
    } else {
        table.print()?;
    }
    Ok(())
}

/// All partitions of a topic, or those that were asked for.
fn chosen_partitions(topic: &Topic, only: &[i32]) -> Result<Vec<TopicPartition>, Error> {
    let of = |index| TopicPartition {
        topic: topic.name.clone(),
        partition: index,
    };
    if only.is_empty() {
        return Ok(topic.partitions.iter().map(|partition| of(partition.index)).collect());
    }
    let chosen = only.iter().map(|index| {
        let known = PartitionIndex::from_wire(*index).filter(|index| topic.partition(*index).is_some());
        known.map(of).ok_or_else(|| {
            let count = topic.partitions.len();
            Error::Invalid(format!("topic {} has no partition {index}, it has {count}", topic.name))
        })
    });
    chosen.collect()
}
