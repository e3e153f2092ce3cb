//! Formatting: gives log directories their identity and a controller its first checkpoint, as Kafka's `storage format
//! --standalone` does (KIP-853).
//!
//! The checkpoint is written before the identity of its directory, so a directory that says whose it is has everything.

use std::io;
use std::path::{Path, PathBuf};

use metadata::controller::bootstrap_records;
use metadata::{Entropy, MetadataVersion};
use model::{BrokerId, DirectoryId, Timestamp};
use raft::{KRaftVersion, ReplicaKey, SnapshotId, Voter, VoterEndpoint, VoterSet};
use storage::Disk;
use storage::log_directory::{self, DirectoryError, MetaProperties};

use crate::metadata_log::metadata_directory;
use crate::snapshot_file::{self, Frame, SnapshotError};

/// What to format.
#[derive(Clone, Debug)]
pub struct FormatRequest<'a> {
    pub cluster_id: &'a str,
    pub node_id: BrokerId,
    /// All log directories, the metadata directory among them.
    pub log_directories: &'a [PathBuf],
    pub metadata_directory: &'a Path,
    /// Where the controller listens, by listener name: its node becomes the one voter. `None` for a node that is only a
    /// broker.
    pub controller_endpoints: Option<Vec<VoterEndpoint>>,
    pub now: Timestamp,
}

/// What was made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Formatted {
    /// The ids given to the log directories, in their order.
    pub directory_ids: Vec<DirectoryId>,
}

/// Why a node cannot be formatted.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    #[error("the metadata directory {0} is none of the log directories")]
    NotALogDirectory(PathBuf),
    #[error("directory {0} has been formatted before")]
    AlreadyFormatted(PathBuf),
    #[error("a controller needs an endpoint to be reached at")]
    NoEndpoint,
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    #[error("writing the first checkpoint")]
    Snapshot(#[from] SnapshotError),
    #[error("formatting {path}")]
    Io {
        path: PathBuf,
        #[source]
        error: io::Error,
    },
}

/// Formats all directories of a node. None may have been formatted before.
///
/// # Errors
/// If one has, or the disk fails.
pub fn format<D: Disk>(
    disk: &D,
    request: &FormatRequest<'_>,
    entropy: &mut dyn Entropy,
) -> Result<Formatted, FormatError> {
    if !request
        .log_directories
        .iter()
        .any(|directory| directory == request.metadata_directory)
    {
        return Err(FormatError::NotALogDirectory(request.metadata_directory.to_owned()));
    }
    for directory in request.log_directories {
        if is_formatted(disk, directory)? {
            return Err(FormatError::AlreadyFormatted(directory.clone()));
        }
    }
    let mut directory_ids = Vec::with_capacity(request.log_directories.len());
    for directory in request.log_directories {
        let id = entropy.uuid();
        if directory == request.metadata_directory
            && let Some(endpoints) = &request.controller_endpoints
        {
            write_checkpoint(disk, request, endpoints, id)?;
        }
        let properties = MetaProperties {
            version: 1,
            cluster_id: Some(request.cluster_id.to_owned()),
            node_id: Some(request.node_id),
            directory_id: Some(id),
        };
        log_directory::format(disk, directory, &properties)?;
        directory_ids.push(id);
    }
    Ok(Formatted { directory_ids })
}

fn is_formatted<D: Disk>(disk: &D, directory: &Path) -> Result<bool, FormatError> {
    use storage::log_directory::MetaPropertiesError;
    match MetaProperties::read(disk, directory) {
        Ok(_) => Ok(true),
        Err(MetaPropertiesError::Missing(_)) => Ok(false),
        Err(error) => Err(DirectoryError::from(error).into()),
    }
}

fn write_checkpoint<D: Disk>(
    disk: &D,
    request: &FormatRequest<'_>,
    endpoints: &[VoterEndpoint],
    directory_id: DirectoryId,
) -> Result<(), FormatError> {
    if endpoints.is_empty() {
        return Err(FormatError::NoEndpoint);
    }
    let directory = metadata_directory(request.metadata_directory);
    let made = disk
        .create_directory(&directory)
        .and_then(|()| disk.sync_directory(request.metadata_directory));
    made.map_err(|error| FormatError::Io {
        path: directory.clone(),
        error,
    })?;
    let voters = VoterSet::new([Voter {
        key: ReplicaKey {
            id: request.node_id,
            directory: directory_id,
        },
        endpoints: endpoints.to_vec(),
        kraft_versions: (KRaftVersion::Static.level(), KRaftVersion::Dynamic.level()),
    }]);
    let frame = Frame {
        id: SnapshotId::BOOTSTRAP,
        last_timestamp: request.now,
        kraft_version: KRaftVersion::Dynamic,
        voters: &voters,
        now: request.now,
    };
    let records = bootstrap_records().into_iter();
    snapshot_file::write(disk, &directory, &frame, records, MetadataVersion::LATEST)?;
    Ok(())
}
