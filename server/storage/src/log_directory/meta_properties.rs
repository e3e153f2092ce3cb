//! `meta.properties`: a Java properties file with the identity of a log directory.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use model::{BrokerId, DirectoryId};

use super::SMALL_FILE_BYTES_MAX;
use crate::disk::{Disk, read_small_file, replace_file};

pub const META_PROPERTIES: &str = "meta.properties";

/// Whose a log directory is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MetaProperties {
    /// 1; 0 in directories of old, in which the node's id stands under another name.
    pub version: i32,
    pub cluster_id: Option<String>,
    pub node_id: Option<BrokerId>,
    pub directory_id: Option<DirectoryId>,
}

/// Why the identity of a directory is of no use.
#[derive(Debug, thiserror::Error)]
pub enum MetaPropertiesError {
    #[error("{} has no meta.properties: it was not formatted", .0.display())]
    Missing(PathBuf),
    #[error("{} is formatted already", .0.display())]
    AlreadyFormatted(PathBuf),
    #[error("meta.properties of {} has no valid {key}", .path.display())]
    Invalid { path: PathBuf, key: &'static str },
    #[error("using meta.properties of {}", .path.display())]
    Io {
        path: PathBuf,
        #[source]
        error: io::Error,
    },
}

impl MetaProperties {
    /// # Errors
    /// If the file is missing, or one of its values is malformed.
    pub fn read<D: Disk>(disk: &D, directory: &Path) -> Result<Self, MetaPropertiesError> {
        let bytes = match read_small_file(disk, &directory.join(META_PROPERTIES), SMALL_FILE_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(MetaPropertiesError::Missing(directory.to_owned()));
            }
            Err(error) => {
                return Err(MetaPropertiesError::Io {
                    path: directory.to_owned(),
                    error,
                });
            }
        };
        Self::parse(&String::from_utf8_lossy(&bytes)).map_err(|key| MetaPropertiesError::Invalid {
            path: directory.to_owned(),
            key,
        })
    }

    fn parse(text: &str) -> Result<Self, &'static str> {
        let values: BTreeMap<&str, &str> = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.starts_with(['#', '!']))
            .filter_map(|line| line.split_once(['=', ':']))
            .map(|(key, value)| (key.trim(), value.trim()))
            .collect();
        let version: i32 = match values.get("version") {
            Some(text) => text
                .parse()
                .ok()
                .filter(|version| (0..=1).contains(version))
                .ok_or("version")?,
            None => 0,
        };
        let id_key = if version == 0 { "broker.id" } else { "node.id" };
        let node_id = match values.get(id_key) {
            Some(text) => Some(text.parse().ok().and_then(BrokerId::from_wire).ok_or(id_key)?),
            // A file that is cut short would pass for one of the first version.
            None => return Err(id_key),
        };
        let directory_id: Option<DirectoryId> = match values.get("directory.id") {
            Some(text) => Some(text.parse().map_err(|_| "directory.id")?),
            None => None,
        };
        if directory_id.is_some_and(|id| id.is_reserved()) {
            return Err("directory.id");
        }
        let cluster_id = values.get("cluster.id").map(|text| (*text).to_owned());
        if version == 1 && cluster_id.is_none() {
            return Err("cluster.id");
        }
        Ok(MetaProperties {
            version,
            cluster_id,
            node_id,
            directory_id,
        })
    }

    /// Puts the file into `directory`; durable when this returns.
    ///
    /// # Errors
    /// As the disk says.
    pub fn write<D: Disk>(&self, disk: &D, directory: &Path) -> Result<(), MetaPropertiesError> {
        replace_file(disk, &directory.join(META_PROPERTIES), self.to_text().as_bytes()).map_err(|error| {
            MetaPropertiesError::Io {
                path: directory.to_owned(),
                error,
            }
        })
    }

    fn to_text(&self) -> String {
        let mut text = String::from("#\n");
        let id_key = if self.version == 0 { "broker.id" } else { "node.id" };
        let mut put = |key: &str, value: Option<String>| {
            if let Some(value) = value {
                text.push_str(&format!("{key}={value}\n"));
            }
        };
        put("cluster.id", self.cluster_id.clone());
        put("directory.id", self.directory_id.map(|id| id.to_string()));
        put(id_key, self.node_id.map(|id| id.to_string()));
        put("version", Some(self.version.to_string()));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_kafkas_is_read() {
        let text = "#\n#Sun Nov 29 12:00:00 UTC 2026\ncluster.id=4L6g3nShT-eMCtK--X86sw\n\
                    directory.id=Xhmg2cGWRmmcYdWSzLUqhg\nnode.id=1\nversion=1\n";
        let properties = MetaProperties::parse(text).unwrap();
        assert_eq!(properties.node_id.map(BrokerId::get), Some(1));
        assert_eq!(
            properties.directory_id.map(|id| id.to_string()).as_deref(),
            Some("Xhmg2cGWRmmcYdWSzLUqhg")
        );
        assert_eq!(MetaProperties::parse(&properties.to_text()), Ok(properties));
    }

    #[test]
    fn values_out_of_range_are_refused_by_name() {
        for (text, key) in [
            ("version=2\n", "version"),
            ("version=1\ncluster.id=x\n", "node.id"),
            ("#\ncluster.id=4L6g3nS", "broker.id"),
            ("version=1\nnode.id=1\n", "cluster.id"),
            ("version=1\nnode.id=-1\ncluster.id=x\n", "node.id"),
            (
                "version=1\nnode.id=1\ncluster.id=x\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAQ\n",
                "directory.id",
            ),
        ] {
            assert_eq!(MetaProperties::parse(text), Err(key), "{text}");
        }
    }
}
