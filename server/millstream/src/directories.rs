//! The node's log directories at start: made and formatted where they are new, locked, checked against each other.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use metadata::config_keys::BrokerSettings;
use model::{BrokerId, Uuid};
use storage::log_directory::{META_PROPERTIES, MetaProperties};
use storage::transfer::unfinished_directory;
use storage::{LogDirectory, RealDisk};

/// How often an id is drawn until it is a fit one.
const DRAWS_MAX: usize = 100;

/// The directories, opened: each is locked against other processes for as long as it is.
pub(crate) struct Directories {
    pub(crate) cluster_id: String,
    pub(crate) opened: Vec<LogDirectory<RealDisk>>,
    /// Where the metadata log lies, and the directory's id, which is the voter's.
    pub(crate) metadata_directory: PathBuf,
    pub(crate) metadata_directory_id: Uuid,
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
        for path in &paths {
            let unfinished = unfinished_directory(path);
            if unfinished.exists() {
                bail!(
                    "{} is what an import has left that did not come to its end: run it again, or remove that folder",
                    unfinished.display()
                );
            }
            std::fs::create_dir_all(path).with_context(|| format!("making {}", path.display()))?;
        }
        if paths.iter().all(|path| !path.join(META_PROPERTIES).exists()) {
            for path in &paths {
                if let Some(data) = first_log(path)? {
                    bail!(
                        "{} holds records, but {} has no {META_PROPERTIES}: whose they are is not known. Bring the file \
                         back, or move the data away",
                        data.display(),
                        path.display()
                    );
                }
            }
            format(&paths, &metadata_directory)?;
        }
        let mut opened = Vec::new();
        for path in &paths {
            opened.push(LogDirectory::open(RealDisk, path, draw()?)?);
        }
        let cluster_id = check(&opened, settings.node_id)?;
        let metadata_directory_id = opened
            .iter()
            .find(|directory| directory.path() == metadata_directory)
            .and_then(|directory| directory.properties().directory_id)
            .context("the metadata directory has no id")?;
        Ok(Directories {
            cluster_id,
            opened,
            metadata_directory,
            metadata_directory_id,
        })
    }
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
fn check(opened: &[LogDirectory<RealDisk>], node_id: BrokerId) -> anyhow::Result<String> {
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
}
