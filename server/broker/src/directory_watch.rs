//! What becomes of a log directory that fails: its partitions are offline, the controller is told, and where none is left
//! that takes records, or the controllers' log lay in it, the node cannot go on.
//!
//! A directory that became read-only is not told to the controller: its partitions are led on, for those who read.

use std::sync::Arc;

use storage::disk::FailureKind;
use tokio::sync::watch;
use tokio::time::timeout;
use tracing::{error, warn};

use crate::lifecycle;
use crate::node::Broker;
use crate::partitions::FailedDirectory;

/// Watches for as long as the task lives. `fail` is told why the node cannot go on.
pub(crate) async fn keep_watch(broker: Arc<Broker>, fail: watch::Sender<Option<String>>) {
    loop {
        broker.directories().failed().await;
        let work = broker.clone();
        // The locks of partitions may be held by appends that wait for a disk.
        let Ok(failed) = tokio::task::spawn_blocking(move || take_offline(&work)).await else {
            return;
        };
        let fatal = failed.iter().find_map(|failed| why_fatal(&broker, failed));
        if let Some(why) = fatal {
            fail.send_replace(Some(why));
            return;
        }
        if failed.iter().any(|failed| failed.failure.kind == FailureKind::Dead)
            && timeout(
                broker.settings().log.directory_failure_timeout,
                lifecycle::tell_of_failure(&broker),
            )
            .await
            .is_err()
        {
            let why = "the controller could not be told in time that a log directory has failed";
            fail.send_replace(Some(why.to_owned()));
            return;
        }
    }
}

fn take_offline(broker: &Arc<Broker>) -> Vec<FailedDirectory> {
    let failed = broker.directories().take_failures();
    for failed in &failed {
        let mut partitions = 0;
        for partition in broker.partitions().all() {
            if partition.log_directory() == failed.path {
                partition.directory_failed();
                partitions += 1;
            }
        }
        let (directory, cause) = (failed.path.display(), &failed.failure.cause);
        match failed.failure.kind {
            FailureKind::Dead => error!(%directory, cause, partitions, "the log directory is offline"),
            FailureKind::ReadOnly => {
                warn!(%directory, cause, partitions, "the log directory takes no records any more")
            }
        }
    }
    failed
}

/// Why the node cannot go on without this directory, if it cannot.
fn why_fatal(broker: &Broker, failed: &FailedDirectory) -> Option<String> {
    let (directory, cause) = (failed.path.display(), &failed.failure.cause);
    if failed.holds_metadata {
        return Some(format!(
            "the log directory {directory}, which holds the metadata log, has failed: {cause}"
        ));
    }
    let is_last = !broker.directories().has_writable();
    is_last.then(|| format!("the last log directory, {directory}, has failed: {cause}"))
}
