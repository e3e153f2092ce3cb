//! The file that says that a stop was clean: `{"version":0,"brokerEpoch":17}`, by which the controller knows that the
//! broker lost nothing (KIP-966).

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::SMALL_FILE_BYTES_MAX;
use crate::disk::{Disk, read_small_file, replace_file};

pub const CLEAN_SHUTDOWN_FILE: &str = ".kafka_cleanshutdown";

#[derive(Serialize, Deserialize)]
struct Content {
    version: i32,
    #[serde(rename = "brokerEpoch")]
    broker_epoch: i64,
}

/// Takes the file away. `None` if it was not there; -1 if it does not say the epoch.
pub(super) fn take<D: Disk>(disk: &D, directory: &Path) -> io::Result<Option<i64>> {
    let path = directory.join(CLEAN_SHUTDOWN_FILE);
    let bytes = match read_small_file(disk, &path, SMALL_FILE_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    disk.remove_file(&path)?;
    disk.sync_directory(directory)?;
    let content: Option<Content> = serde_json::from_slice(&bytes).ok();
    Ok(Some(content.map_or(-1, |content| content.broker_epoch)))
}

pub(super) fn put<D: Disk>(disk: &D, directory: &Path, broker_epoch: Option<i64>) -> io::Result<()> {
    let content = Content {
        version: 0,
        broker_epoch: broker_epoch.unwrap_or(-1),
    };
    let text = serde_json::to_string(&content).map_err(io::Error::other)?;
    replace_file(disk, &directory.join(CLEAN_SHUTDOWN_FILE), text.as_bytes())
}
