//! `log verify`

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use storage::RealDisk;
use storage::inspect::verify::{Looked, VerifyOptions, size_bytes, verify};
use storage::inspect::{Finding, Severity, Watcher};

use crate::cli::OutputArgs;
use crate::output::{print_json, print_line, tell};

/// Progress is told each time that so much was read.
const PROGRESS_BYTES: u64 = 512 << 20;

const EXIT_CODES: &str = "\
Exit codes:
  0  nothing was found
  1  something was found
  2  a look could not be had; standard error says why";

/// Look for damage: every checksum, offset, index entry and checkpoint. Nothing is written; a node may be running.
#[derive(Args, Debug)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct VerifyArgs {
    /// Data directories, log directories or folders of partitions.
    #[arg(required = true, value_name = "DIRECTORY")]
    paths: Vec<PathBuf>,
    /// Open the batches and read their records, too.
    #[arg(long)]
    records: bool,
    /// The logs' index.interval.bytes.
    #[arg(long, value_name = "BYTES", default_value = "4096")]
    index_interval_bytes: u32,
    /// Do not tell how far it is.
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    output: OutputArgs,
}

/// True if nothing was found.
pub(super) fn run(args: &VerifyArgs) -> anyhow::Result<bool> {
    let options = VerifyOptions {
        records: args.records,
        index_interval_bytes: args.index_interval_bytes,
    };
    let targets = args
        .paths
        .iter()
        .map(|path| super::target(path))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let mut printer = Printer {
        output: args.output,
        progress: (!args.quiet).then(|| Progress {
            total: targets
                .iter()
                .filter_map(|target| size_bytes(&RealDisk, target).ok())
                .sum(),
            read: 0,
        }),
        counts: [0; 3],
        failed: None,
    };
    let mut looked = Looked::default();
    for target in &targets {
        let one = verify(&RealDisk, target, options, &mut printer)?;
        looked.partitions += one.partitions;
        looked.segments += one.segments;
        looked.batches += one.batches;
        looked.bytes += one.bytes;
    }
    if let Some(error) = printer.failed {
        return Err(error.into());
    }
    let [leftovers, repairable, damage] = printer.counts;
    if args.output.is_json() {
        print_json(&json!({
            "kind": "summary", "partitions": looked.partitions, "segments": looked.segments,
            "batches": looked.batches, "bytes": looked.bytes, "damage": damage, "repairable": repairable,
            "leftovers": leftovers,
        }))?;
    } else {
        tell(&format!(
            "{} partitions, {} segments, {} batches, {} bytes: {damage} damaged, {repairable} repairable, {leftovers} left over",
            looked.partitions, looked.segments, looked.batches, looked.bytes
        ));
    }
    Ok(printer.counts == [0; 3])
}

struct Printer {
    output: OutputArgs,
    progress: Option<Progress>,
    /// By severity.
    counts: [u64; 3],
    /// Standard output is gone.
    failed: Option<std::io::Error>,
}

struct Progress {
    total: u64,
    read: u64,
}

impl Watcher for Printer {
    fn found(&mut self, finding: Finding) {
        let severity = match finding.fault.severity() {
            Severity::Leftover => 0,
            Severity::Repairable => 1,
            Severity::Damage => 2,
        };
        self.counts[severity] += 1;
        if self.failed.is_some() {
            return;
        }
        let printed = if self.output.is_json() {
            print_json(&to_json(&finding))
        } else {
            print_line(&to_text(&finding))
        };
        self.failed = printed.err();
    }

    fn read(&mut self, bytes: u64) {
        let Some(progress) = &mut self.progress else { return };
        let before = progress.read / PROGRESS_BYTES;
        progress.read += bytes;
        if progress.read / PROGRESS_BYTES > before {
            let (read, total) = (progress.read >> 20, progress.total >> 20);
            tell(&format!("{read} of {total} MiB"));
        }
    }
}

fn to_text(finding: &Finding) -> String {
    let Finding {
        path,
        position,
        offsets,
        fault,
    } = finding;
    let mut text = format!("{}: {}", fault.severity(), path.display());
    if let Some(position) = position {
        text.push_str(&format!(", position {position}"));
    }
    if let Some((from, to)) = offsets {
        let last = to.get() - 1;
        text.push_str(&format!(", offsets {from} to {last}"));
    }
    text.push_str(&format!(": {fault}\n    {}. {}.", fault.meaning(), fault.advice()));
    text
}

fn to_json(finding: &Finding) -> Value {
    let fault = &finding.fault;
    json!({
        "kind": "finding",
        "severity": fault.severity().to_string(),
        "fault": fault.name(),
        "path": finding.path.to_string_lossy(),
        "position": finding.position,
        "first_offset": finding.offsets.map(|(from, _)| from.get()),
        "last_offset": finding.offsets.map(|(_, to)| to.get() - 1),
        "what": fault.to_string(),
        "meaning": fault.meaning(),
        "advice": fault.advice(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Offset;
    use storage::inspect::Fault;

    fn finding() -> Finding {
        Finding {
            path: "/d/first-0/00000000000000000000.log".into(),
            position: Some(79),
            offsets: Some((Offset::new(1), Offset::new(3))),
            fault: Fault::Checksum,
        }
    }

    #[test]
    fn a_finding_says_where_what_and_what_to_do() {
        let text = to_text(&finding());
        let first =
            "damage: /d/first-0/00000000000000000000.log, position 79, offsets 1 to 2: the batch's checksum is wrong";
        assert_eq!(text.lines().next(), Some(first));
        assert!(text.contains("restore the file from a backup."), "{text}");
    }

    #[test]
    fn a_finding_for_programs_has_the_same() {
        let value = to_json(&finding());
        assert_eq!(
            (&value["fault"], &value["first_offset"], &value["last_offset"]),
            (&json!("checksum"), &json!(1), &json!(2))
        );
    }
}
