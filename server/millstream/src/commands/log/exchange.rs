//! What `log import` and `log export` have in common: paths, progress, and how what is to be known is shown.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail};
use clap::Args;
use model::Timestamp;
use quorum::exchange::{Beside, Direction, Exchange, Plan, Request};
use serde_json::json;
use storage::RealDisk;
use storage::inspect::Target;
use storage::transfer::{CopyOptions, Tally};

use crate::cli::OutputArgs;
use crate::output::{print_json, print_line, tell};

/// Progress is told each time that so much was taken along.
const PROGRESS_BYTES: u64 = 1 << 30;

/// The arguments of both.
#[derive(Args, Debug)]
pub(super) struct ExchangeArgs {
    /// The log directory that holds the metadata log, where it is another one (metadata.log.dir).
    #[arg(long, value_name = "DIRECTORY")]
    metadata_dir: Option<PathBuf>,
    /// Give complete segments a second name in the target instead of copying them; both must be in one file system.
    #[arg(long)]
    link: bool,
    /// Only say what would be done.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    output: OutputArgs,
}

impl ExchangeArgs {
    /// Looks at the source, a log directory or a data directory with one.
    pub(super) fn examine(&self, source: &Path, direction: Direction) -> anyhow::Result<Exchange<RealDisk>> {
        let request = Request {
            source: log_directory(source)?,
            metadata_directory: self.metadata_dir.as_deref().map(log_directory).transpose()?,
            direction,
        };
        Ok(Exchange::examine(RealDisk, &request)?)
    }

    /// Makes the target and tells what there is to know. False if it was only to be said.
    pub(super) fn carry_out(
        &self,
        exchange: Exchange<RealDisk>,
        target: &Path,
        beside: &[Beside<'_>],
    ) -> anyhow::Result<bool> {
        let plan = exchange.plan().clone();
        if self.dry_run {
            self.show_notices(&plan)?;
            return Ok(false);
        }
        let options = CopyOptions {
            link_complete_logs: self.link,
            ..CopyOptions::default()
        };
        let mut progress = Progress {
            done: 0,
            total: exchange.size_bytes(),
        };
        let tally = exchange.carry_out(target, options, beside, now()?, &mut |bytes| progress.add(bytes))?;
        self.show_notices(&plan)?;
        self.show_tally(&plan, tally)?;
        Ok(true)
    }

    fn show_notices(&self, plan: &Plan) -> anyhow::Result<()> {
        for notice in &plan.notices {
            if self.output.is_json() {
                print_json(&json!({"kind": "notice", "notice": notice.name(), "what": notice.to_string()}))?;
            } else {
                print_line(&format!("note: {notice}"))?;
            }
        }
        Ok(())
    }

    /// A key of the configuration that is not handed on.
    pub(super) fn show_left_out(&self, key: &str) -> anyhow::Result<()> {
        let what = format!("{key} is left out of the configuration: Kafka does not know it");
        if self.output.is_json() {
            print_json(&json!({"kind": "notice", "notice": "config-left-out", "what": what}))?;
        } else {
            print_line(&format!("note: {what}"))?;
        }
        Ok(())
    }

    fn show_tally(&self, plan: &Plan, tally: Tally) -> anyhow::Result<()> {
        let topics = plan.image.topics.len();
        if self.output.is_json() {
            print_json(&json!({
                "kind": "summary", "cluster_id": plan.cluster_id, "node_id": plan.node_id.get(), "topics": topics,
                "partitions": plan.partition_count(), "files": tally.files, "copied_bytes": tally.copied_bytes,
                "linked_bytes": tally.linked_bytes, "notices": plan.notices.len(),
            }))?;
        } else {
            tell(&format!(
                "cluster {}, node {}: {topics} topics, {} partitions, {} files, {} bytes copied, {} linked",
                plan.cluster_id,
                plan.node_id,
                plan.partition_count(),
                tally.files,
                tally.copied_bytes,
                tally.linked_bytes
            ));
        }
        Ok(())
    }
}

/// The log directory at a path or in its `log` folder.
fn log_directory(path: &Path) -> anyhow::Result<PathBuf> {
    match super::target(path)? {
        Target::Directory(directory) => Ok(directory),
        Target::Partition { path, .. } => bail!(
            "{} is the folder of one partition: name the log directory",
            path.display()
        ),
    }
}

/// Where a directory will be, whether or not it is there: links above it are followed.
pub(super) fn target_directory(path: &Path) -> anyhow::Result<PathBuf> {
    let whole = std::path::absolute(path).with_context(|| format!("looking at {}", path.display()))?;
    let (mut there, mut below) = (whole.as_path(), Vec::new());
    let real = loop {
        if let Ok(real) = std::fs::canonicalize(there) {
            break real;
        }
        let (Some(parent), Some(name)) = (there.parent(), there.file_name()) else {
            break there.to_owned();
        };
        below.push(name);
        there = parent;
    };
    Ok(below.into_iter().rev().fold(real, |path, name| path.join(name)))
}

fn now() -> anyhow::Result<Timestamp> {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .context("the clock is before 1970")?;
    Ok(Timestamp::from_millis(
        i64::try_from(since.as_millis()).context("the clock is far off")?,
    ))
}

struct Progress {
    done: u64,
    total: u64,
}

impl Progress {
    fn add(&mut self, bytes: u64) {
        let before = self.done / PROGRESS_BYTES;
        self.done += bytes;
        if self.done / PROGRESS_BYTES > before {
            tell(&format!("{} of {} MiB", self.done >> 20, self.total >> 20));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_is_still_to_be_made_is_found_behind_links() {
        let temporary = tempfile::tempdir().unwrap();
        let real = std::fs::canonicalize(temporary.path()).unwrap();
        std::fs::create_dir(real.join("data")).unwrap();
        std::os::unix::fs::symlink(real.join("data"), real.join("link")).unwrap();
        let target = target_directory(&real.join("link/new/one")).unwrap();
        assert_eq!(target, real.join("data/new/one"));
        assert_eq!(target_directory(&real.join("link")).unwrap(), real.join("data"));
    }
}
