//! The node's log directories at start: made and formatted where they are new, locked, checked against each other.
//!
//! A directory whose disk does not let it be used is left out, unless the metadata log lies in it or it is the only one; one
//! that is somebody else's stops the start.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use broker::LogDisk;
use metadata::config_keys::BrokerSettings;
use model::{BrokerId, Uuid};
use storage::log_directory::{DirectoryError, META_PROPERTIES, MetaProperties, MetaPropertiesError};
use storage::transfer::unfinished_directory;
use storage::{CheckpointError, LogDirectory, RealDisk};
use tracing::error;

/// How often an id is drawn until it is a fit one.
const DRAWS_MAX: usize = 100;

/// The directories, opened: each is locked against other processes for as long as it is.
pub(crate) struct Directories {
    pub(crate) cluster_id: String,
    pub(crate) opened: Vec<LogDirectory<LogDisk>>,
    /// Those that their disks do not let be used.
    pub(crate) missing: Vec<PathBuf>,
    /// Where the metadata log lies, and the directory's id, which is the voter's.
    pub(crate) metadata_directory: PathBuf,
    pub(crate) metadata_directory_id: Uuid,
    pub(crate) metadata_disk: LogDisk,
}

impl Directories {
    /// Opens what is there; `format` founds a cluster in directories of which none has been formatted yet.
    pub(crate) fn open(
        settings: &BrokerSettings,
        format: impl FnOnce(&[PathBuf], &Path) -> anyhow::Result<()>,
    ) -> anyhow::Result<Self> {
        let mut paths: Vec<PathBuf> = settings.log.directories.iter().map(PathBuf::from).collect();
        let metadata_directory = PathBuf::from(&settings.log.metadata_directory);
        if !paths.contains(&metadata_directory) {
            paths.push(metadata_directory.clone());
        }
        let mut missing = Vec::new();
        let mut usable = Vec::new();
        for path in paths {
            let unfinished = unfinished_directory(&path);
            if unfinished.exists() {
                bail!(
                    "{} is what an import has left that did not come to its end: run it again, or remove that folder",
                    unfinished.display()
                );
            }
            match std::fs::create_dir_all(&path).and_then(|()| std::fs::read_dir(&path)) {
                Ok(_) => usable.push(path),
                Err(error) => leave_out(path, &metadata_directory, error.into(), &mut missing)?,
            }
        }
        if usable.iter().all(|path| !path.join(META_PROPERTIES).exists()) {
            if let Some(path) = missing.first() {
                bail!(
                    "{} cannot be used: a cluster is founded with all directories at once",
                    path.display()
                );
            }
            for path in &usable {
                check_empty(path)?;
            }
            format(&usable, &metadata_directory)?;
        }
        let mut opened = Vec::new();
        for path in usable {
            let disk = LogDisk::new(RealDisk, &path);
            let directory = LogDirectory::open(disk.clone(), &path, draw()?);
            match directory {
                Ok(directory) => {
                    if let Err(error) = disk.set_reserve(settings.log.reserve_bytes) {
                        error!(directory = %path.display(), %error, "no room is held back for a full disk");
                    }
                    opened.push(directory);
                }
                Err(error) if is_of_disk(&error) => leave_out(path, &metadata_directory, error.into(), &mut missing)?,
                Err(error) => return Err(error.into()),
            }
        }
        let cluster_id = check(&opened, settings.node_id)?;
        let holds_metadata = opened.iter().find(|directory| directory.path() == metadata_directory);
        let metadata_disk = holds_metadata.map(|directory| directory.disk().clone());
        let metadata_directory_id = holds_metadata
            .and_then(|directory| directory.properties().directory_id)
            .context("the metadata directory has no id")?;
        Ok(Directories {
            cluster_id,
            opened,
            missing,
            metadata_directory,
            metadata_directory_id,
            metadata_disk: metadata_disk.context("the metadata directory is not open")?,
        })
    }
}

/// A directory without identity must hold no records.
fn check_empty(path: &Path) -> anyhow::Result<()> {
    if let Some(data) = first_log(path)? {
        bail!(
            "{} holds records, but {} has no {META_PROPERTIES}: whose they are is not known. Bring the file back, or move \
             the data away",
            data.display(),
            path.display()
        );
    }
    Ok(())
}

/// Does without a directory, unless the node cannot.
fn leave_out(
    path: PathBuf,
    metadata_directory: &Path,
    error: anyhow::Error,
    missing: &mut Vec<PathBuf>,
) -> anyhow::Result<()> {
    if path == metadata_directory {
        return Err(error).with_context(|| format!("using {}, which holds the metadata log", path.display()));
    }
    error!(directory = %path.display(), error = format!("{error:#}"), "the log directory cannot be used and is offline");
    missing.push(path);
    Ok(())
}

/// Whether the disk is at fault rather than what is on it.
fn is_of_disk(error: &DirectoryError) -> bool {
    matches!(
        error,
        DirectoryError::Io(_)
            | DirectoryError::MetaProperties(MetaPropertiesError::Io { .. })
            | DirectoryError::Checkpoint(CheckpointError::Io { .. })
    )
}

/// A log with records in it, if there is one: such a directory is never founded anew.
fn first_log(directory: &Path) -> anyhow::Result<Option<PathBuf>> {
    let list = |path: &Path| {
        let entries = std::fs::read_dir(path).with_context(|| format!("listing {}", path.display()))?;
        let paths: Result<Vec<_>, _> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
        paths.with_context(|| format!("listing {}", path.display()))
    };
    for folder in list(directory)? {
        // What belongs to root, like lost+found, is no log.
        if !folder.is_dir() || folder.ends_with("lost+found") {
            continue;
        }
        for file in list(&folder)? {
            let is_log = file.extension().is_some_and(|ending| ending == "log");
            if is_log && std::fs::metadata(&file).is_ok_and(|metadata| metadata.len() > 0) {
                return Ok(Some(file));
            }
        }
    }
    Ok(None)
}

/// All directories must be of the same cluster and of this node, each with an id of its own. Gives the cluster's id.
fn check(opened: &[LogDirectory<LogDisk>], node_id: BrokerId) -> anyhow::Result<String> {
    let mut cluster_id = None;
    let mut ids = Vec::new();
    for directory in opened {
        let MetaProperties {
            cluster_id: cluster,
            node_id: node,
            directory_id,
            ..
        } = directory.properties().clone();
        let path = directory.path().display();
        if let Some(node) = node.filter(|node| *node != node_id) {
            bail!("{path} belongs to node {node}, the configuration says node.id={node_id}");
        }
        let cluster = cluster.with_context(|| format!("{path} names no cluster"))?;
        match &cluster_id {
            Some(known) if *known != cluster => bail!("{path} belongs to cluster {cluster}, others to {known}"),
            _ => cluster_id = Some(cluster),
        }
        let id = directory_id.with_context(|| format!("{path} has no id"))?;
        if id.is_reserved() || ids.contains(&id) {
            bail!("the id {id} of {path} is reserved or another directory's");
        }
        ids.push(id);
    }
    cluster_id.context("there are no log directories")
}

/// A new id.
pub(crate) fn draw() -> anyhow::Result<Uuid> {
    let draws = (0..DRAWS_MAX).map_while(|_| {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).ok().map(|()| bytes)
    });
    Uuid::from_entropy(draws).context("no random bytes from the system")
}

#[cfg(test)]
mod tests {
    use metadata::config_keys::{ServerProperties, Setting};
    use storage::log_directory;

    use super::*;

    #[test]
    fn only_records_keep_a_directory_from_being_founded() {
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path();
        assert_eq!(first_log(path).unwrap(), None);
        std::fs::create_dir_all(path.join("__cluster_metadata-0")).unwrap();
        std::fs::write(
            path.join("__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"),
            "x",
        )
        .unwrap();
        std::fs::create_dir_all(path.join("lost+found")).unwrap();
        std::fs::create_dir_all(path.join("t-0")).unwrap();
        let log = path.join("t-0/00000000000000000000.log");
        std::fs::write(&log, "").unwrap();
        assert_eq!(first_log(path).unwrap(), None, "what a start that was cut short leaves");
        std::fs::write(&log, "batch").unwrap();
        assert_eq!(first_log(path).unwrap(), Some(log));
    }

    fn open(folders: &[&Path]) -> anyhow::Result<Directories> {
        let names: Vec<&str> = folders.iter().map(|folder| folder.to_str().unwrap()).collect();
        let setting = Setting {
            name: "log.dirs".to_owned(),
            value: names.join(","),
        };
        let configs = ServerProperties::single_node()
            .with_settings([setting])
            .load()
            .unwrap()
            .configs;
        let settings = BrokerSettings::resolve(&configs).unwrap();
        Directories::open(&settings, |paths, _| {
            for path in paths {
                let properties = MetaProperties {
                    version: 1,
                    cluster_id: Some("c".to_owned()),
                    node_id: Some(settings.node_id),
                    directory_id: Some(draw()?),
                };
                log_directory::format(&RealDisk, path, &properties)?;
            }
            Ok(())
        })
    }

    fn ids(found: &Directories) -> Vec<Option<Uuid>> {
        let opened = found.opened.iter();
        opened.map(|directory| directory.properties().directory_id).collect()
    }

    #[test]
    fn a_directory_that_cannot_be_used_is_left_out_unless_the_metadata_log_lies_there() {
        let temporary = tempfile::tempdir().unwrap();
        let (first, second) = (temporary.path().join("1"), temporary.path().join("2"));
        let known = ids(&open(&[&first, &second]).unwrap());
        std::fs::rename(&second, temporary.path().join("away")).unwrap();
        std::fs::write(&second, "no directory").unwrap();
        let found = open(&[&first, &second]).unwrap();
        assert_eq!(
            (ids(&found), found.missing.as_slice()),
            (known[..1].to_vec(), &[second.clone()][..])
        );
        drop(found);
        let refused = open(&[&second, &first]).err().unwrap();
        assert!(
            format!("{refused:#}").contains("which holds the metadata log"),
            "{refused:#}"
        );
        std::fs::remove_file(&second).unwrap();
        std::fs::rename(temporary.path().join("away"), &second).unwrap();
        let found = open(&[&first, &second]).unwrap();
        assert_eq!((ids(&found), found.missing.len()), (known, 0));
    }

    #[test]
    fn a_cluster_is_founded_with_all_directories_or_not_at_all() {
        let temporary = tempfile::tempdir().unwrap();
        let (first, second) = (temporary.path().join("1"), temporary.path().join("2"));
        std::fs::write(&second, "no directory").unwrap();
        let refused = open(&[&first, &second]).err().unwrap();
        assert!(refused.to_string().contains("all directories at once"), "{refused:#}");
    }

    #[test]
    fn an_empty_directory_among_others_is_refused_since_its_disk_may_not_be_mounted() {
        let temporary = tempfile::tempdir().unwrap();
        let (first, second) = (temporary.path().join("1"), temporary.path().join("2"));
        open(&[&first]).unwrap();
        let refused = open(&[&first, &second]).err().unwrap();
        assert!(refused.to_string().contains("was not formatted"), "{refused:#}");
        assert!(!second.join(META_PROPERTIES).exists());
    }
}
