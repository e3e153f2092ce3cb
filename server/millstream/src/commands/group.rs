//! `group list|describe|seek|delete`

use std::collections::{BTreeMap, BTreeSet};

use clap::{Args, Subcommand};
use client::Isolation;
use client::admin::{CommittedOffset, GroupDescription, OffsetSpec};
use model::{GroupId, Offset, TopicName, TopicPartition};
use serde_json::{Value, json};

use super::config::{group_id, topic_name};
use super::offset_argument::OffsetArgument;
use crate::cli::{ClusterArgs, ConfirmArgs, OutputArgs, Session};
use crate::output::{Table, print_json, print_line, tell};

/// The state of a group without members.
const STATE_EMPTY: &str = "Empty";

#[derive(Subcommand, Debug)]
pub(crate) enum Verb {
    /// The groups there are.
    List(OutputArgs),
    /// A group's members, and how far it has come.
    Describe {
        #[arg(value_parser = group_id)]
        group: GroupId,
        #[command(flatten)]
        output: OutputArgs,
    },
    Seek(SeekArgs),
    /// Delete groups without members, with their offsets.
    Delete {
        #[arg(required = true, value_parser = group_id)]
        groups: Vec<GroupId>,
        #[command(flatten)]
        confirm: ConfirmArgs,
    },
}

/// Move the offsets of a group that has no members at present.
#[derive(Args, Debug)]
pub(crate) struct SeekArgs {
    #[arg(value_parser = group_id)]
    group: GroupId,
    /// Where to: earliest, latest, N, -N (so many before the end), @MILLISECONDS or @-DURATION.
    #[arg(long, allow_hyphen_values = true)]
    to: OffsetArgument,
    /// Only in these topics, also ones that the group has not read yet; without it, in all that it has offsets for.
    #[arg(short, long = "topic", value_name = "TOPIC", value_parser = topic_name)]
    topics: Vec<TopicName>,
    /// Only show what would be done.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) async fn run(cluster: &ClusterArgs, verb: Verb) -> anyhow::Result<()> {
    match verb {
        Verb::List(output) => list(&cluster.connect().await?, output).await,
        Verb::Describe { group, output } => describe(&cluster.connect().await?, &group, output).await,
        Verb::Seek(args) => seek(&cluster.connect().await?, args).await,
        Verb::Delete { groups, confirm } => {
            let names: Vec<&str> = groups.iter().map(GroupId::as_str).collect();
            confirm.confirm(&format!("deleting {}", names.join(", ")))?;
            let Session { client, context } = cluster.connect().await?;
            for group in &groups {
                client.delete_group(&context, group).await?;
                tell(&format!("{group} deleted"));
            }
            Ok(())
        }
    }
}

async fn list(session: &Session, output: OutputArgs) -> anyhow::Result<()> {
    let groups = session.client.list_groups(&session.context).await?;
    if output.is_json() {
        let rows = groups.iter().map(|group| {
            json!({
                "id": group.id.as_str(),
                "state": group.state,
                "type": group.kind,
                "protocol_type": group.protocol_type,
                "coordinator": group.coordinator.get(),
            })
        });
        print_json(&rows.collect())?;
        return Ok(());
    }
    let mut table = Table::new(&["GROUP", "STATE", "TYPE", "COORDINATOR"]);
    for group in &groups {
        table.row([
            group.id.to_string(),
            dash(&group.state),
            dash(&group.kind),
            group.coordinator.to_string(),
        ]);
    }
    table.print()?;
    Ok(())
}

fn dash(text: &str) -> String {
    if text.is_empty() {
        "-".to_owned()
    } else {
        text.to_owned()
    }
}

/// A partition that a group reads, has read, or both.
struct Progress {
    partition: TopicPartition,
    committed: Option<Offset>,
    end: Option<Offset>,
    member: Option<String>,
}

impl Progress {
    fn lag(&self) -> Option<i64> {
        Some(self.end?.since(self.committed?).max(0))
    }
}

async fn describe(session: &Session, id: &GroupId, output: OutputArgs) -> anyhow::Result<()> {
    let Session { client, context } = session;
    let group = client.describe_group(context, id).await?;
    let offsets = client.group_offsets(context, id, None, false).await?;
    let progress = progress(session, &group, &offsets).await;
    if output.is_json() {
        print_json(&group_json(&group, &progress))?;
        return Ok(());
    }
    let coordinator = group.coordinator.map_or_else(|| "-".to_owned(), |id| id.to_string());
    print_line(&format!(
        "group {id}, state {}, assignor {}, coordinator {coordinator}, {} members\n",
        group.state,
        dash(&group.assignor),
        group.members.len()
    ))?;
    let mut table = Table::new(&["TOPIC", "PARTITION", "OFFSET", "END", "LAG", "MEMBER"]);
    let number = |value: Option<i64>| value.map_or_else(|| "-".to_owned(), |value| value.to_string());
    for row in &progress {
        table.row([
            row.partition.topic.to_string(),
            row.partition.partition.to_string(),
            number(row.committed.map(Offset::get)),
            number(row.end.map(Offset::get)),
            number(row.lag()),
            row.member.clone().unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    table.print()?;
    Ok(())
}

async fn progress(
    session: &Session,
    group: &GroupDescription,
    offsets: &BTreeMap<TopicPartition, CommittedOffset>,
) -> Vec<Progress> {
    let mut readers: BTreeMap<&TopicPartition, &str> = BTreeMap::new();
    for member in &group.members {
        readers.extend(
            member
                .assignment
                .iter()
                .map(|partition| (partition, member.id.as_str())),
        );
    }
    let partitions: BTreeSet<TopicPartition> = offsets.keys().chain(readers.keys().copied()).cloned().collect();
    let specs = partitions
        .iter()
        .map(|partition| (partition.clone(), OffsetSpec::Latest))
        .collect();
    let mut ends = session
        .client
        .list_offsets(&session.context, &specs, Isolation::ReadUncommitted)
        .await;
    let rows = partitions.into_iter().map(|partition| Progress {
        committed: offsets.get(&partition).map(|committed| committed.offset),
        end: ends
            .remove(&partition)
            .and_then(Result::ok)
            .flatten()
            .map(|listed| listed.offset),
        member: readers.get(&partition).map(|id| (*id).to_owned()),
        partition,
    });
    rows.collect()
}

fn group_json(group: &GroupDescription, progress: &[Progress]) -> Value {
    let members: Vec<Value> = group
        .members
        .iter()
        .map(|member| {
            json!({
                "id": member.id,
                "instance_id": member.instance_id,
                "client_id": member.client_id,
                "client_host": member.client_host,
                "partitions": member.assignment.len(),
            })
        })
        .collect();
    let partitions: Vec<Value> = progress
        .iter()
        .map(|row| {
            json!({
                "topic": row.partition.topic.as_str(),
                "partition": row.partition.partition.get(),
                "offset": row.committed.map(Offset::get),
                "end_offset": row.end.map(Offset::get),
                "lag": row.lag(),
                "member": row.member,
            })
        })
        .collect();
    json!({
        "id": group.id.as_str(),
        "state": group.state,
        "protocol_type": group.protocol_type,
        "assignor": group.assignor,
        "coordinator": group.coordinator.map(|id| id.get()),
        "members": members,
        "partitions": partitions,
    })
}

async fn seek(session: &Session, args: SeekArgs) -> anyhow::Result<()> {
    let Session { client, context } = session;
    let before = client.group_offsets(context, &args.group, None, false).await?;
    let partitions = partitions_to_move(session, &args, &before).await?;
    anyhow::ensure!(
        !partitions.is_empty(),
        "group {} has no offsets: name topics with --topic",
        args.group
    );
    let mut targets = BTreeMap::new();
    for partition in partitions {
        let offset = client
            .position(context, &partition, args.to.start(), Isolation::ReadUncommitted)
            .await?;
        targets.insert(partition, offset);
    }
    show_move(&before, &targets, args.output)?;
    if args.dry_run {
        tell("nothing was changed");
        return Ok(());
    }
    if let Ok(group) = client.describe_group(context, &args.group).await {
        let is_empty = group.state == STATE_EMPTY || group.members.is_empty();
        anyhow::ensure!(
            is_empty,
            "group {} is {}: its members must stop first",
            args.group,
            group.state
        );
    }
    for (_, outcome) in client.alter_group_offsets(context, &args.group, &targets).await? {
        outcome?;
    }
    tell(&format!("{} partitions moved", targets.len()));
    Ok(())
}

async fn partitions_to_move(
    session: &Session,
    args: &SeekArgs,
    before: &BTreeMap<TopicPartition, CommittedOffset>,
) -> anyhow::Result<BTreeSet<TopicPartition>> {
    if args.topics.is_empty() {
        return Ok(before.keys().cloned().collect());
    }
    let mut partitions = BTreeSet::new();
    for name in &args.topics {
        let topic = session.client.describe_topic(&session.context, name).await?;
        let of = |index| TopicPartition {
            topic: name.clone(),
            partition: index,
        };
        partitions.extend(topic.partitions.iter().map(|partition| of(partition.index)));
    }
    Ok(partitions)
}

fn show_move(
    before: &BTreeMap<TopicPartition, CommittedOffset>,
    targets: &BTreeMap<TopicPartition, Offset>,
    output: OutputArgs,
) -> anyhow::Result<()> {
    let from = |partition| before.get(partition).map(|committed| committed.offset.get());
    if output.is_json() {
        let rows = targets.iter().map(|(partition, to)| {
            json!({
                "topic": partition.topic.as_str(),
                "partition": partition.partition.get(),
                "from": from(partition),
                "to": to.get(),
            })
        });
        print_json(&rows.collect())?;
        return Ok(());
    }
    let mut table = Table::new(&["TOPIC", "PARTITION", "FROM", "TO"]);
    for (partition, to) in targets {
        table.row([
            partition.topic.to_string(),
            partition.partition.to_string(),
            from(partition).map_or_else(|| "-".to_owned(), |offset| offset.to_string()),
            to.to_string(),
        ]);
    }
    table.print()?;
    Ok(())
}
