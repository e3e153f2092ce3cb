//! `topic produce`: lines of standard input become records.

use std::io::{BufRead, BufReader, Read};

use anyhow::Context;
use bytes::Bytes;
use clap::{Args, ValueEnum};
use client::{Outcome, ProduceRecord, Producer, ProducerOptions};
use model::record_batch::{Compression, RecordHeader};
use model::{PartitionIndex, Timestamp, TopicName};
use serde_json::json;
use tokio::sync::mpsc;

use crate::cli::{OutputArgs, Session};
use crate::commands::config::{key_value, topic_name};
use crate::output::{print_json, tell};

/// How many lines are read ahead of what is being written.
const LINES_AHEAD_MAX: usize = 10_000;
/// The longest line.
const LINE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Write the lines of standard input as records, one each.
#[derive(Args, Debug)]
pub(crate) struct ProduceArgs {
    #[arg(value_parser = topic_name)]
    topic: TopicName,
    /// The key of every record.
    #[arg(short, long, conflicts_with = "key_separator")]
    key: Option<String>,
    /// What stands between key and value in a line; a line without it has no key.
    #[arg(short = 'K', long, value_name = "TEXT")]
    key_separator: Option<String>,
    /// A header of every record.
    #[arg(short = 'H', long = "header", value_name = "NAME=VALUE", value_parser = key_value)]
    headers: Vec<(String, String)>,
    /// The partition; without it, by the key, or where there is no key, wherever there is room.
    #[arg(short, long, value_parser = clap::value_parser!(i32).range(0..))]
    partition: Option<i32>,
    /// The timestamp of every record in milliseconds since 1970; without it, now.
    #[arg(long, value_name = "MILLISECONDS", value_parser = clap::value_parser!(i64).range(0..))]
    timestamp: Option<i64>,
    #[arg(short = 'z', long, value_enum, default_value_t = Codec::None)]
    compression: Codec,
    /// An empty value is a tombstone.
    #[arg(short = 'Z', long)]
    tombstone: bool,
    /// Let the cluster create the topic if it does that.
    #[arg(long)]
    create: bool,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(ValueEnum, Debug, Clone, Copy)]
enum Codec {
    None,
    Gzip,
    Snappy,
    Lz4,
    Zstd,
}

impl From<Codec> for Compression {
    fn from(codec: Codec) -> Self {
        match codec {
            Codec::None => Compression::None,
            Codec::Gzip => Compression::Gzip,
            Codec::Snappy => Compression::Snappy,
            Codec::Lz4 => Compression::Lz4,
            Codec::Zstd => Compression::Zstd,
        }
    }
}

pub(crate) async fn run(session: &Session, args: ProduceArgs) -> anyhow::Result<()> {
    let options = ProducerOptions {
        compression: args.compression.into(),
        delivery_wait_max: session.client.options().call_wait_max,
        auto_create_topics: args.create,
        ..ProducerOptions::default()
    };
    let producer = Producer::new(session.client.clone(), session.context.clone(), options);
    let mut lines = read_lines();
    let (mut written, mut failed) = (0u64, 0u64);
    loop {
        let mut ready = Vec::new();
        if lines.recv_many(&mut ready, LINES_AHEAD_MAX).await == 0 {
            break;
        }
        let records = ready.into_iter().map(|line| Ok(args.record(&line?)));
        let records = records.collect::<anyhow::Result<Vec<ProduceRecord>>>()?;
        for outcome in producer.send(&args.topic, records).await? {
            match outcome {
                Ok(_) => written += 1,
                Err(_) => failed += 1,
            }
            report(&outcome, args.output)?;
        }
    }
    tell(&format!("{written} records written to {}", args.topic));
    anyhow::ensure!(failed == 0, "{failed} records could not be written");
    Ok(())
}

fn report(outcome: &Outcome, output: OutputArgs) -> anyhow::Result<()> {
    match outcome {
        Ok(written) if output.is_json() => print_json(&json!({
            "partition": written.partition.get(),
            "offset": written.offset.get(),
            "timestamp": written.timestamp.millis(),
        }))?,
        Ok(_) => {}
        Err(error) if output.is_json() => {
            print_json(&json!({"error": error.code.name(), "message": error.message.as_deref()}))?
        }
        Err(error) => {
            let fate = if error.outcome_open {
                "may not have been"
            } else {
                "was not"
            };
            tell(&format!("a record {fate} written: {error}"));
        }
    }
    Ok(())
}

impl ProduceArgs {
    fn record(&self, line: &[u8]) -> ProduceRecord {
        let separator = self.key_separator.as_deref().filter(|separator| !separator.is_empty());
        let split = separator.and_then(|separator| split_once(line, separator.as_bytes()));
        let (key, value) = match split {
            Some((key, value)) => (Some(Bytes::copy_from_slice(key)), value),
            None => (
                self.key.as_ref().map(|key| Bytes::copy_from_slice(key.as_bytes())),
                line,
            ),
        };
        let headers = self.headers.iter().map(|(name, value)| RecordHeader {
            key: Bytes::copy_from_slice(name.as_bytes()),
            value: Some(Bytes::copy_from_slice(value.as_bytes())),
        });
        ProduceRecord {
            partition: self.partition.and_then(PartitionIndex::from_wire),
            timestamp: self.timestamp.map(Timestamp::from_millis),
            key,
            value: (!(self.tombstone && value.is_empty())).then(|| Bytes::copy_from_slice(value)),
            headers: headers.collect(),
        }
    }
}

fn split_once<'a>(line: &'a [u8], separator: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = line.windows(separator.len()).position(|window| window == separator)?;
    Some((&line[..at], &line[at + separator.len()..]))
}

/// Reads standard input on a thread of its own, since that cannot be waited for otherwise.
fn read_lines() -> mpsc::Receiver<anyhow::Result<Vec<u8>>> {
    let (sender, lines) = mpsc::channel(LINES_AHEAD_MAX);
    std::thread::spawn(move || {
        let mut input = BufReader::with_capacity(256 * 1024, std::io::stdin());
        loop {
            let line = read_line(&mut input).transpose();
            let Some(line) = line else { return };
            let is_last = line.is_err();
            if sender.blocking_send(line).is_err() || is_last {
                return;
            }
        }
    });
    lines
}

/// A line without its end; `None` when there are no more.
fn read_line(input: &mut impl BufRead) -> anyhow::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let read = input
        .take(LINE_BYTES_MAX + 1)
        .read_until(b'\n', &mut line)
        .context("reading standard input")?;
    if read == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    } else {
        let limit = usize::try_from(LINE_BYTES_MAX).unwrap_or(usize::MAX);
        anyhow::ensure!(line.len() <= limit, "a line is longer than {LINE_BYTES_MAX} bytes");
    }
    Ok(Some(line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: ProduceArgs,
    }

    fn args(line: &str) -> ProduceArgs {
        Line::try_parse_from(std::iter::once("produce").chain(line.split(' ')))
            .unwrap()
            .args
    }

    #[test]
    fn a_line_is_split_at_the_first_separator() {
        let args = args("first -K :");
        let record = args.record(b"a:b:c");
        assert_eq!(
            (record.key.as_deref(), record.value.as_deref()),
            (Some(&b"a"[..]), Some(&b"b:c"[..]))
        );
        assert_eq!(args.record(b"plain").key, None);
    }

    #[test]
    fn an_empty_value_is_a_tombstone_only_if_that_is_said() {
        assert_eq!(args("first -k a -Z").record(b"").value, None);
        assert_eq!(args("first -k a").record(b"").value, Some(Bytes::new()));
    }

    #[test]
    fn lines_end_with_the_input_at_the_latest() {
        let mut input = &b"a\n\nlast"[..];
        let lines: Vec<_> = std::iter::from_fn(|| read_line(&mut input).unwrap()).collect();
        assert_eq!(lines, [b"a".to_vec(), Vec::new(), b"last".to_vec()]);
    }
}
