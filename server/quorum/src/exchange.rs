//! A stopped node's directory changes hands, from Apache Kafka to us or back: what `log import` and `log export` do.
//!
//! ```text
//!  source (read, locked)                    target
//!  partitions, checkpoints ───── copied ──▶ the same files
//!  __cluster_metadata-0 ─ read ─▶ plan ───▶ one snapshot at the log's end, this node its one voter; quorum-state
//!                                  │
//!                                  └──────▶ notices: what is kept and has no effect there
//! ```
//!
//! - Nothing is written before the plan stands, and the plan is a function of what was read.
//! - The metadata is handed over as what it says, not as the bytes that say it: whatever is in the target was read and
//!   understood here (docs/decisions/0013).
//! - The node keeps its id, its cluster and its directory's id; topics keep their ids, partitions their epochs, and the
//!   next epochs are above all that were.

mod groups;
mod notice;
mod plan;
mod source;

use std::io;
use std::path::{Path, PathBuf};

use model::Timestamp;
use raft::{KRaftVersion, QuorumState};
use storage::disk::{Disk, replace_file};
use storage::log_directory::{MetaProperties, MetaPropertiesError};
use storage::transfer::{CopyOptions, Inventory, SourceLock, Staging, Tally, TransferError, lock_source, stock};

use crate::metadata_log::{
    METADATA_TOPIC, MetadataLogError, QUORUM_STATE, metadata_directory, write_partition_metadata,
};
use crate::snapshot_file::{self, Frame, SnapshotError};

pub use groups::OtherGroups;
pub use notice::Notice;
pub use plan::{Plan, Refusal, Source, plan};
pub use source::SourceMetadata;

/// Below the target: the log directory.
pub const LOG_FOLDER: &str = "log";

/// What the metadata of older releases began with; the log has it, too.
const BOOTSTRAP_CHECKPOINT: &str = "bootstrap.checkpoint";

/// Who takes over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// We, from Kafka or from another node of ours.
    Import,
    /// Kafka, from us.
    Export,
}

/// What is to be taken over.
#[derive(Clone, Debug)]
pub struct Request {
    /// A log directory.
    pub source: PathBuf,
    /// The log directory with the metadata log, if it is another one.
    pub metadata_directory: Option<PathBuf>,
    pub direction: Direction,
}

/// Why it is not.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    #[error(transparent)]
    Properties(#[from] MetaPropertiesError),
    #[error(transparent)]
    Transfer(#[from] TransferError),
    #[error("{} has no metadata log: name the directory that has it (metadata.log.dir) with --metadata-dir", .0.display())]
    NoMetadataLog(PathBuf),
    #[error("the metadata log of {}", .path.display())]
    Metadata {
        path: PathBuf,
        #[source]
        error: MetadataLogError,
    },
    #[error("{} cannot be taken over", .path.display())]
    Refused {
        path: PathBuf,
        #[source]
        refusal: Refusal,
    },
    #[error("{} lies within {}, or the other way round", .target.display(), .source_directory.display())]
    Within { target: PathBuf, source_directory: PathBuf },
    #[error("writing the metadata")]
    Snapshot(#[from] SnapshotError),
    #[error("using {}", .path.display())]
    Io {
        path: PathBuf,
        #[source]
        error: io::Error,
    },
}

/// A source that was looked at and can be taken over. No node starts on it meanwhile.
pub struct Exchange<D: Disk> {
    disk: D,
    _locks: Vec<SourceLock<D::File>>,
    source: PathBuf,
    inventory: Inventory,
    plan: Plan,
}

/// A file that is put beside the log directory.
#[derive(Clone, Debug)]
pub struct Beside<'a> {
    pub name: &'a str,
    pub text: &'a str,
}

impl<D: Disk> Exchange<D> {
    /// Locks and reads a source, and decides.
    ///
    /// # Errors
    /// If a node runs there, or it cannot be taken over; nothing has been changed then.
    pub fn examine(disk: D, request: &Request) -> Result<Self, ExchangeError> {
        let source = &request.source;
        let metadata_directory = request.metadata_directory.as_ref().unwrap_or(source);
        let properties = MetaProperties::read(&disk, source)?;
        let metadata_properties = MetaProperties::read(&disk, metadata_directory)?;
        let mut locks = vec![lock_source(&disk, source)?];
        if metadata_directory != source {
            locks.push(lock_source(&disk, metadata_directory)?);
        }
        let inventory = stock(&disk, source, &[&format!("{METADATA_TOPIC}-0"), BOOTSTRAP_CHECKPOINT])?;
        let refused = |refusal| ExchangeError::Refused {
            path: source.clone(),
            refusal,
        };
        if !inventory.clean && !inventory.partitions.is_empty() {
            // Whatever else is wrong may be so for this reason; a controller alone leaves no mark.
            return Err(refused(Refusal::NotClean));
        }
        let metadata = source::read(&disk, metadata_directory).map_err(|error| match error {
            MetadataLogError::NotFormatted => ExchangeError::NoMetadataLog(metadata_directory.clone()),
            error => ExchangeError::Metadata {
                path: metadata_directory.clone(),
                error,
            },
        })?;
        let groups = other_groups(&disk, source, &inventory)?;
        let found = Source {
            properties: &properties,
            metadata_properties: &metadata_properties,
            metadata: &metadata,
            inventory: &inventory,
            groups: &groups,
        };
        let plan = plan(&found, request.direction).map_err(refused)?;
        Ok(Exchange {
            disk,
            _locks: locks,
            source: source.clone(),
            inventory,
            plan,
        })
    }

    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Bytes of the files that will be taken along.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        let files = self.inventory.partitions.iter().flat_map(|partition| &partition.files);
        files.map(|file| file.size_bytes).sum()
    }

    /// Makes `target/log`, which must not be there, nor anything else in `target`. Paths are absolute.
    ///
    /// # Errors
    /// If something is there, or the disk fails: then there is no `target/log`, and a later attempt begins anew.
    pub fn carry_out(
        self,
        target: &Path,
        options: CopyOptions,
        beside: &[Beside<'_>],
        now: Timestamp,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Tally, ExchangeError> {
        if target.starts_with(&self.source) || self.source.starts_with(target) {
            return Err(ExchangeError::Within {
                target: target.to_owned(),
                source_directory: self.source,
            });
        }
        let names: Vec<&str> = beside.iter().map(|file| file.name).collect();
        let options = CopyOptions {
            for_kafka: self.plan.is_for_kafka(),
            ..options
        };
        let staging = Staging::begin(self.disk.clone(), target, LOG_FOLDER, &names)?;
        let tally = staging.copy(&self.source, &self.inventory, options, progress)?;
        self.write_metadata(staging.path(), now)?;
        let properties = MetaProperties {
            version: 1,
            cluster_id: Some(self.plan.cluster_id.clone()),
            node_id: Some(self.plan.node_id),
            directory_id: Some(self.plan.directory_id),
        };
        properties.write(&self.disk, staging.path())?;
        for file in beside {
            let path = target.join(file.name);
            let written = replace_file(&self.disk, &path, file.text.as_bytes());
            written.map_err(|error| ExchangeError::Io { path, error })?;
        }
        staging.finish()?;
        Ok(tally)
    }

    /// The folder of the metadata log, with a snapshot and an empty log behind it.
    fn write_metadata(&self, log_directory: &Path, now: Timestamp) -> Result<(), ExchangeError> {
        let directory = metadata_directory(log_directory);
        let io = |error| ExchangeError::Io {
            path: directory.clone(),
            error,
        };
        self.disk.create_directory(&directory).map_err(io)?;
        write_partition_metadata(&self.disk, &directory).map_err(io)?;
        let plan = &self.plan;
        let frame = Frame {
            id: plan.snapshot,
            last_timestamp: plan.image.last_timestamp,
            kraft_version: KRaftVersion::Dynamic,
            voters: &plan.voters,
            now,
        };
        snapshot_file::write(&self.disk, &directory, &frame, plan.records(), plan.metadata_version())?;
        let state = QuorumState {
            epoch: plan.epoch,
            ..QuorumState::default()
        };
        let text = state.render(KRaftVersion::Dynamic, &[]);
        replace_file(&self.disk, &directory.join(QUORUM_STATE), text.as_bytes()).map_err(io)
    }
}

fn other_groups<D: Disk>(disk: &D, source: &Path, inventory: &Inventory) -> Result<OtherGroups, ExchangeError> {
    let mut groups = OtherGroups::default();
    let of_offsets = inventory
        .partitions
        .iter()
        .filter(|it| it.folder.partition.topic.as_str() == groups::OFFSETS_TOPIC);
    for partition in of_offsets {
        groups::gather(disk, source, partition, &mut groups).map_err(|error| ExchangeError::Io {
            path: source.join(&partition.folder.name),
            error,
        })?;
    }
    Ok(groups)
}

#[cfg(test)]
mod tests;
