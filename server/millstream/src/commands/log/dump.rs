//! `log dump`: each kind of file in the lines that Apache Kafka's own tool prints, or as one JSON object a line.

use std::io::{BufWriter, StdoutLock, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use protocol::internal_records::prefixed::decode_versioned;
use protocol::internal_records::storage::ProducerSnapshot;
use serde_json::{Map, Value, json};
use storage::disk::read_small_file;
use storage::inspect::{check_snapshot, visit_offset_index, visit_time_index, visit_transaction_index};
use storage::log_directory::{META_PROPERTIES, MetaProperties};
use storage::{
    CLEANER_CHECKPOINT, HIGH_WATERMARK_CHECKPOINT, LOG_START_CHECKPOINT, LeaderEpochs, RECOVERY_POINT_CHECKPOINT,
    RealDisk, read_checkpoint,
};

use super::decoder::Decoder;
use super::dump_records::dump_batches;
use crate::cli::OutputArgs;
use crate::output::tell;

/// No other file than a log or an index is read that is larger.
const SMALL_FILE_BYTES_MAX: usize = 64 << 20;

/// Print what stands in files of log directories: logs, indexes, snapshots, checkpoints. A node may be running.
#[derive(Args, Debug)]
pub(crate) struct DumpArgs {
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print the records, too: a line each.
    #[arg(long, alias = "deep-iteration")]
    deep: bool,
    /// Print the records with their keys and values (as JSON, their headers, too).
    #[arg(long, alias = "print-data-log")]
    print_records: bool,
    /// Print keys and values of records of the cluster's own topics as what they mean.
    #[arg(long, value_enum)]
    decoder: Option<Decoder>,
    #[command(flatten)]
    output: OutputArgs,
}

/// Where lines go, and in what form.
pub(super) struct Sink<'a> {
    pub(super) out: BufWriter<StdoutLock<'a>>,
    pub(super) json: bool,
    pub(super) deep: bool,
    pub(super) contents: bool,
    pub(super) decoder: Option<Decoder>,
}

impl Sink<'_> {
    pub(super) fn line(&mut self, text: &str) -> std::io::Result<()> {
        self.out.write_all(text.as_bytes())?;
        self.out.write_all(b"\n")
    }

    pub(super) fn value(&mut self, value: &Value) -> std::io::Result<()> {
        serde_json::to_writer(&mut self.out, value)?;
        self.out.write_all(b"\n")
    }

    /// A row of named numbers and words: `name: value` in a line, or an object.
    fn row(&mut self, kind: &str, fields: &[(&str, Value)]) -> std::io::Result<()> {
        if self.json {
            let mut object = Map::new();
            object.insert("kind".to_owned(), json!(kind));
            object.extend(fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
            return self.value(&Value::Object(object));
        }
        let words = fields.iter().map(|(name, value)| match value {
            Value::String(text) => format!("{name}: {text}"),
            other => format!("{name}: {other}"),
        });
        self.line(&words.collect::<Vec<_>>().join(" "))
    }
}

pub(super) fn run(args: &DumpArgs) -> anyhow::Result<()> {
    let mut sink = Sink {
        out: BufWriter::new(std::io::stdout().lock()),
        json: args.output.is_json(),
        deep: args.deep || args.print_records || args.decoder.is_some(),
        contents: args.print_records || args.decoder.is_some(),
        decoder: args.decoder,
    };
    for path in &args.files {
        let dumped = dump(&mut sink, path);
        sink.out.flush()?;
        dumped.with_context(|| format!("dumping {}", path.display()))?;
    }
    Ok(())
}

fn dump(sink: &mut Sink<'_>, path: &Path) -> anyhow::Result<()> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if sink.json {
        sink.value(&json!({"kind": "file", "path": path.to_string_lossy()}))?;
    } else {
        sink.line(&format!("Dumping {}", path.display()))?;
    }
    // Files that are on their way out or in are dumped as what they are.
    let plain = [".deleted", ".cleaned", ".swap"]
        .iter()
        .find_map(|suffix| name.strip_suffix(suffix))
        .unwrap_or(name);
    match plain {
        RECOVERY_POINT_CHECKPOINT | LOG_START_CHECKPOINT | HIGH_WATERMARK_CHECKPOINT | CLEANER_CHECKPOINT => {
            offsets(sink, path, name)
        }
        "leader-epoch-checkpoint" => leader_epochs(sink, path),
        "partition.metadata" => properties(sink, path),
        META_PROPERTIES => meta_properties(sink, path),
        _ => match plain.rsplit_once('.').map(|(_, ending)| ending) {
            Some("log" | "checkpoint") => dump_batches(sink, path),
            Some("index") => offset_index(sink, path),
            Some("timeindex") => time_index(sink, path),
            Some("txnindex") => transaction_index(sink, path),
            Some("snapshot") => snapshot(sink, path),
            _ => bail!("this is no file of a log directory that has a form to print"),
        },
    }
}

/// Says what an index has at its end that is no entry.
fn tell_rest(path: &Path, left: u64) {
    if left > 0 {
        tell(&format!("the last {left} bytes of {} are no entry", path.display()));
    }
}

fn offset_index(sink: &mut Sink<'_>, path: &Path) -> anyhow::Result<()> {
    let mut entries = 0;
    let left = visit_offset_index(&RealDisk, path, |entry| {
        entries += 1;
        let fields = [
            ("offset", json!(entry.offset.get())),
            ("position", json!(entry.position)),
        ];
        sink.row("index-entry", &fields)
    })?;
    if entries == 0 && !sink.json {
        sink.line(&format!("{} is empty.", path.display()))?;
    }
    tell_rest(path, left);
    Ok(())
}

fn time_index(sink: &mut Sink<'_>, path: &Path) -> anyhow::Result<()> {
    let left = visit_time_index(&RealDisk, path, |entry| {
        let fields = [
            ("timestamp", json!(entry.timestamp)),
            ("offset", json!(entry.offset.get())),
        ];
        sink.row("time-index-entry", &fields)
    })?;
    tell_rest(path, left);
    Ok(())
}

fn transaction_index(sink: &mut Sink<'_>, path: &Path) -> anyhow::Result<()> {
    let left = visit_transaction_index(&RealDisk, path, |entry| {
        let fields = [
            ("version", json!(entry.version)),
            ("producerId", json!(entry.producer_id)),
            ("firstOffset", json!(entry.first_offset)),
            ("lastOffset", json!(entry.last_offset)),
            ("lastStableOffset", json!(entry.last_stable_offset)),
        ];
        sink.row("aborted-transaction", &fields)
    })?;
    tell_rest(path, left);
    Ok(())
}

fn snapshot(sink: &mut Sink<'_>, path: &Path) -> anyhow::Result<()> {
    let bytes = read_small_file(&RealDisk, path, SMALL_FILE_BYTES_MAX)?;
    if let Err(why) = check_snapshot(&bytes) {
        bail!("{why}");
    }
    let (snapshot, _) = decode_versioned::<ProducerSnapshot>(bytes.into())?;
    for entry in &snapshot.producer_entries {
        let has_transaction = entry.current_txn_first_offset >= 0;
        let transaction = match (sink.json, has_transaction) {
            (true, true) => json!(entry.current_txn_first_offset),
            (true, false) => Value::Null,
            (false, true) => json!(format!("OptionalLong[{}]", entry.current_txn_first_offset)),
            (false, false) => json!("OptionalLong.empty"),
        };
        let mut fields = vec![
            ("producerId", json!(entry.producer_id)),
            ("producerEpoch", json!(entry.epoch)),
            ("coordinatorEpoch", json!(entry.coordinator_epoch)),
            ("currentTxnFirstOffset", transaction),
            ("lastTimestamp", json!(entry.timestamp)),
        ];
        if entry.last_offset >= 0 {
            let first_sequence = first_sequence(entry.last_sequence, entry.offset_delta);
            fields.extend([
                ("firstSequence", json!(first_sequence)),
                ("lastSequence", json!(entry.last_sequence)),
                ("lastOffset", json!(entry.last_offset)),
                ("offsetDelta", json!(entry.offset_delta)),
                ("timestamp", json!(entry.timestamp)),
            ]);
        }
        sink.row("producer", &fields)?;
    }
    Ok(())
}

/// Sequences wrap from 2³¹−1 to 0.
fn first_sequence(last: i32, delta: i32) -> i32 {
    last.wrapping_sub(delta) & i32::MAX
}

fn offsets(sink: &mut Sink<'_>, path: &Path, name: &str) -> anyhow::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    for (partition, offset) in read_checkpoint(&RealDisk, directory, name)? {
        let fields = [
            ("topic", json!(partition.topic.as_str())),
            ("partition", json!(partition.partition.get())),
            ("offset", json!(offset.get())),
        ];
        sink.row("offset", &fields)?;
    }
    Ok(())
}

fn leader_epochs(sink: &mut Sink<'_>, path: &Path) -> anyhow::Result<()> {
    let bytes = read_small_file(&RealDisk, path, SMALL_FILE_BYTES_MAX)?;
    let epochs = std::str::from_utf8(&bytes).ok().and_then(LeaderEpochs::from_text);
    for entry in epochs.context("the leader epochs are malformed")?.entries() {
        let fields = [
            ("epoch", json!(entry.epoch.get())),
            ("startOffset", json!(entry.start_offset.get())),
        ];
        sink.row("leader-epoch", &fields)?;
    }
    Ok(())
}

fn properties(sink: &mut Sink<'_>, path: &Path) -> anyhow::Result<()> {
    let bytes = read_small_file(&RealDisk, path, SMALL_FILE_BYTES_MAX)?;
    let text = std::str::from_utf8(&bytes).context("the file is no text")?;
    let fields: Vec<(&str, Value)> = text
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(key, value)| (key.trim(), json!(value.trim())))
        .collect();
    sink.row("properties", &fields)?;
    Ok(())
}

fn meta_properties(sink: &mut Sink<'_>, path: &Path) -> anyhow::Result<()> {
    let properties = MetaProperties::read(&RealDisk, path.parent().unwrap_or(Path::new(".")))?;
    let id = properties.directory_id.map(|id| id.to_string());
    let fields = [
        ("version", json!(properties.version)),
        ("cluster.id", json!(properties.cluster_id)),
        ("node.id", json!(properties.node_id.map(model::BrokerId::get))),
        ("directory.id", json!(id)),
    ];
    sink.row("properties", &fields)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sequence_of_a_wrapped_batch_lies_before_the_wrap() {
        assert_eq!(first_sequence(9, 4), 5);
        assert_eq!(first_sequence(1, 3), i32::MAX - 1);
    }
}
