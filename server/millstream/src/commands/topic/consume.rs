//! `topic consume`: records as lines, from given positions or as a member of a group.

use std::collections::BTreeSet;
use std::io::Write;

use anyhow::Context;
use clap::Args;
use client::group_member::Reset;
use client::{GroupEvent, GroupMember, GroupMemberOptions, Isolation, OutOfRange, TailOptions};
use model::record_batch::Record;
use model::{GroupId, TopicName, TopicPartition};

use super::chosen_partitions;
use super::record_format::{RecordFormat, envelope};
use crate::cli::Session;
use crate::commands::config::{group_id, topic_name};
use crate::commands::offset_argument::OffsetArgument;
use crate::output::tell;

/// Print the records of topics, also those that are still to come.
#[derive(Args, Debug)]
pub(crate) struct ConsumeArgs {
    #[arg(required = true, value_parser = topic_name)]
    topics: Vec<TopicName>,
    /// Where to begin: start, end, N, -N (so many before the end), @MILLISECONDS or @-DURATION. In a group: where it has
    /// no offset yet, start or end.
    #[arg(short, long, default_value = "start", allow_hyphen_values = true)]
    offset: OffsetArgument,
    /// Only these partitions.
    #[arg(short, long, value_name = "PARTITION", value_delimiter = ',', value_parser = clap::value_parser!(i32).range(0..))]
    partitions: Vec<i32>,
    /// Stop after so many records.
    #[arg(short = 'n', long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Stop at the end of what is there.
    #[arg(short, long)]
    exit: bool,
    /// How a record is printed: %t topic, %p partition, %o offset, %T timestamp, %k key, %v or %s value, %h headers,
    /// %K and %S lengths; %k{hex}, %v{base64}; \n, \t, \xHH.
    #[arg(short, long, default_value = r"%v\n", conflicts_with = "json")]
    format: RecordFormat,
    /// Print one JSON object a line with everything of the record.
    #[arg(short, long)]
    json: bool,
    /// Read as a member of this group, and commit what was printed.
    #[arg(short, long, value_name = "ID", value_parser = group_id, conflicts_with = "partitions")]
    group: Option<GroupId>,
    /// Leave out transactions that are open or were aborted.
    #[arg(long)]
    read_committed: bool,
}

pub(crate) async fn run(session: &Session, args: ConsumeArgs) -> anyhow::Result<()> {
    let mut printer = Printer::new(&args);
    match &args.group {
        Some(group) => consume_in_group(session, &args, group.clone(), &mut printer).await,
        None => consume_from(session, &args, &mut printer).await,
    }
}

impl ConsumeArgs {
    fn tail_options(&self) -> TailOptions {
        TailOptions {
            isolation: if self.read_committed {
                Isolation::ReadCommitted
            } else {
                Isolation::ReadUncommitted
            },
            ..TailOptions::default()
        }
    }
}

async fn consume_from(session: &Session, args: &ConsumeArgs, printer: &mut Printer) -> anyhow::Result<()> {
    let Session { client, context } = session;
    let mut starts = Vec::new();
    for name in &args.topics {
        let topic = client.describe_topic(context, name).await?;
        let partitions = chosen_partitions(&topic, &args.partitions)?;
        starts.extend(partitions.into_iter().map(|partition| (partition, args.offset.start())));
    }
    let mut unfinished: BTreeSet<TopicPartition> = starts.iter().map(|(partition, _)| partition.clone()).collect();
    let mut tail = client.tail(context, starts, args.tail_options()).await?;
    loop {
        let chunk = tokio::select! {
            chunk = tail.next() => chunk.context("the reader has stopped")??,
            signal = tokio::signal::ctrl_c() => return Ok(signal?),
        };
        printer.print(&chunk.partition, &chunk.records)?;
        if chunk.next >= chunk.end {
            unfinished.remove(&chunk.partition);
        }
        if printer.is_done() || (args.exit && unfinished.is_empty()) {
            return Ok(());
        }
    }
}

async fn consume_in_group(
    session: &Session,
    args: &ConsumeArgs,
    group: GroupId,
    printer: &mut Printer,
) -> anyhow::Result<()> {
    let reset = match args.offset {
        OffsetArgument::Start => Reset::Earliest,
        OffsetArgument::End => Reset::Latest,
        _ => anyhow::bail!("in a group --offset is start or end; `group seek` moves the group's offsets"),
    };
    let mut options = GroupMemberOptions::new(group, args.topics.iter().cloned().collect());
    options.reset = reset;
    options.tail = TailOptions {
        out_of_range: if reset == Reset::Earliest {
            OutOfRange::ToEarliest
        } else {
            OutOfRange::ToLatest
        },
        ..args.tail_options()
    };
    let mut member = GroupMember::new(session.client.clone(), session.context.clone(), options);
    let result = read_as_member(args, &mut member, printer).await;
    let left = member.leave().await.context("leaving the group");
    result.and(left)
}

async fn read_as_member(args: &ConsumeArgs, member: &mut GroupMember, printer: &mut Printer) -> anyhow::Result<()> {
    let mut unfinished = BTreeSet::new();
    loop {
        let event = tokio::select! {
            event = member.next() => event?,
            signal = tokio::signal::ctrl_c() => return Ok(signal?),
        };
        match event {
            GroupEvent::Assigned(partitions) => {
                let shown: Vec<String> = partitions.iter().map(ToString::to_string).collect();
                tell(&format!(
                    "reading {}",
                    if shown.is_empty() {
                        "nothing".to_owned()
                    } else {
                        shown.join(", ")
                    }
                ));
                unfinished = partitions;
            }
            GroupEvent::Records {
                partition,
                records,
                next,
                end,
            } => {
                let printed = printer.print(&partition, &records);
                if let Some(first_left) = records.get(*printed.as_ref().unwrap_or(&0)) {
                    member.take_back(&partition, first_left.offset);
                }
                printed?;
                if next >= end {
                    unfinished.remove(&partition);
                }
            }
        }
        if printer.is_done() || (args.exit && unfinished.is_empty()) {
            return Ok(());
        }
    }
}

/// Prints records up to a count.
struct Printer {
    form: Form,
    left: Option<u64>,
    buffer: Vec<u8>,
}

enum Form {
    Format(RecordFormat),
    Json,
}

impl Printer {
    fn new(args: &ConsumeArgs) -> Self {
        let form = if args.json {
            Form::Json
        } else {
            Form::Format(args.format.clone())
        };
        Printer {
            form,
            left: args.count,
            buffer: Vec::new(),
        }
    }

    fn is_done(&self) -> bool {
        self.left == Some(0)
    }

    /// Prints records until there are enough, and says how many those were.
    fn print(&mut self, partition: &TopicPartition, records: &[Record]) -> anyhow::Result<usize> {
        let wanted = self
            .left
            .map_or(usize::MAX, |left| usize::try_from(left).unwrap_or(usize::MAX));
        let records = &records[..records.len().min(wanted)];
        let index = partition.partition.get();
        for record in records {
            match &self.form {
                Form::Format(format) => format.write(&mut self.buffer, &partition.topic, index, record),
                Form::Json => {
                    serde_json::to_writer(&mut self.buffer, &envelope(&partition.topic, index, record))?;
                    self.buffer.push(b'\n');
                }
            }
        }
        let mut out = std::io::stdout().lock();
        out.write_all(&self.buffer)?;
        out.flush()?;
        self.buffer.clear();
        if let Some(left) = &mut self.left {
            *left -= u64::try_from(records.len()).unwrap_or(*left);
        }
        Ok(records.len())
    }
}
