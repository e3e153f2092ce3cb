//! `log rebuild-index`

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use storage::RealDisk;
use storage::inspect::rebuild::{Audience, RebuildOptions, Rebuilt, Tally, rebuild};
use storage::inspect::{Finding, Watcher};

use crate::cli::OutputArgs;
use crate::output::{print_json, print_line, tell};

/// Make the indexes and the missing producer snapshots of stopped nodes anew, from their logs.
#[derive(Args, Debug)]
pub(crate) struct RebuildIndexArgs {
    /// Data directories, log directories or folders of partitions.
    #[arg(required = true, value_name = "DIRECTORY")]
    paths: Vec<PathBuf>,
    /// The logs' index.interval.bytes.
    #[arg(long, value_name = "BYTES", default_value = "4096")]
    index_interval_bytes: u32,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn run(args: &RebuildIndexArgs) -> anyhow::Result<()> {
    let options = RebuildOptions {
        index_interval_bytes: args.index_interval_bytes,
    };
    let mut printer = Printer {
        output: args.output,
        failed: None,
    };
    let mut tally = Tally::default();
    for path in &args.paths {
        let one = rebuild(&RealDisk, &super::target(path)?, options, &mut printer)?;
        tally.partitions += one.partitions;
        tally.segments += one.segments;
        tally.files_changed += one.files_changed;
        tally.bytes_unreadable += one.bytes_unreadable;
    }
    if let Some(error) = printer.failed {
        return Err(error.into());
    }
    if args.output.is_json() {
        print_json(&json!({
            "kind": "summary", "partitions": tally.partitions, "segments": tally.segments,
            "files_changed": tally.files_changed, "bytes_unreadable": tally.bytes_unreadable,
        }))?;
    } else {
        tell(&format!(
            "{} partitions, {} segments: {} files are new",
            tally.partitions, tally.segments, tally.files_changed
        ));
        if tally.bytes_unreadable > 0 {
            tell(&format!(
                "{} bytes are no sound batches and have no entries: millstream log verify says where",
                tally.bytes_unreadable
            ));
        }
    }
    Ok(())
}

struct Printer {
    output: OutputArgs,
    /// Standard output is gone; the work goes on.
    failed: Option<std::io::Error>,
}

impl Watcher for Printer {
    fn found(&mut self, _finding: Finding) {}

    fn read(&mut self, _bytes: u64) {}
}

impl Audience for Printer {
    fn rebuilt(&mut self, file: Rebuilt) {
        if self.failed.is_some() {
            return;
        }
        let printed = if self.output.is_json() {
            let path = file.path.to_string_lossy();
            print_json(&json!({"kind": "file", "path": path, "changed": file.changed}))
        } else if file.changed {
            print_line(&format!("made anew: {}", file.path.display()))
        } else {
            Ok(())
        };
        self.failed = printed.err();
    }
}
