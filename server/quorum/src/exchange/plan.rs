//! Whether a directory can change hands, what becomes of its metadata, and what has to be said: decided from what was
//! read, before anything is written.

use std::collections::BTreeMap;

use metadata::MetadataVersion;
use metadata::config_keys::{Scope, Standing, lookup};
use metadata::image::{ConfigResource, ConfigResourceType, Image};
use model::{BrokerId, ControllerEpoch, DirectoryId, LeaderEpoch, TopicPartition, Uuid};
use protocol::internal_records::metadata::MetadataRecord;
use raft::{KRaftVersion, ReplicaKey, SnapshotId, Voter, VoterEndpoint, VoterSet};
use storage::log_directory::{FolderKind, MetaProperties};
use storage::transfer::{Inventory, LeftOut, PartitionFolder};

use super::Direction;
use super::groups::{OFFSETS_TOPIC, OtherGroups};
use super::notice::Notice;
use super::source::SourceMetadata;

/// From this level on the log may name the voters (3.9-IV0).
const LEAST_WITH_VOTERS: i16 = 21;
const REMOTE_STORAGE: &str = "remote.storage.enable";
const TRANSACTION_TOPIC: &str = "__transaction_state";
const SHARE_TOPIC: &str = "__share_group_state";
/// What names of topics and keys that only we have begin with.
const OWN_TOPICS: &str = "__millstream_";
const OWN_KEYS: &str = "millstream.";

/// What was read of a node that is stopped.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Of the log directory.
    pub properties: &'a MetaProperties,
    /// Of the directory that the metadata log lies in.
    pub metadata_properties: &'a MetaProperties,
    pub metadata: &'a SourceMetadata,
    pub inventory: &'a Inventory,
    pub groups: &'a OtherGroups,
}

/// What will be done.
#[derive(Clone, Debug)]
pub struct Plan {
    pub cluster_id: String,
    pub node_id: BrokerId,
    pub directory_id: DirectoryId,
    /// The metadata as one snapshot at the end of the log that it is taken from.
    pub snapshot: SnapshotId,
    pub image: Image,
    /// This node alone, by the log directory's id.
    pub voters: VoterSet,
    /// The node stands for election in the next one.
    pub epoch: ControllerEpoch,
    pub notices: Vec<Notice>,
    direction: Direction,
}

/// Why nothing is done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the directory was not stopped in good order: start the node, let it recover, and stop it")]
    NotClean,
    #[error("meta.properties has no {0}")]
    Identity(&'static str),
    #[error(
        "the metadata log belongs to node {metadata} of cluster {metadata_cluster}, the directory to node {node} of {cluster}"
    )]
    OtherNode {
        node: BrokerId,
        cluster: String,
        metadata: BrokerId,
        metadata_cluster: String,
    },
    #[error("nothing says who votes in the controller quorum")]
    NoVoters,
    #[error(
        "node {node} is a broker of a cluster whose controllers are {voters}: only a node that is broker and controller \
         for itself can be taken over"
    )]
    NotTheController { node: BrokerId, voters: String },
    #[error("node {node} votes under directory id {voter}, its metadata directory is {directory}")]
    OtherVoterDirectory {
        node: BrokerId,
        voter: DirectoryId,
        directory: DirectoryId,
    },
    #[error("node {0} has never registered as a broker: it is a controller only, or was never started")]
    NeverRegistered(BrokerId),
    #[error("broker {0} belongs to the cluster and was not stopped before")]
    OtherBroker(BrokerId),
    #[error(
        "{partition} lies on brokers {replicas}: only partitions with this node as their one replica can be taken over"
    )]
    OtherReplicas {
        partition: TopicPartition,
        replicas: String,
    },
    #[error("{partition} lies in another log directory of the node, {directory}")]
    OtherDirectory {
        partition: TopicPartition,
        directory: DirectoryId,
    },
    #[error("the node has {0} log directories: only a node with one can be taken over")]
    LogDirectories(usize),
    #[error("the node's log directory has the id {registered}, this one has {directory}")]
    NotItsDirectory {
        registered: DirectoryId,
        directory: DirectoryId,
    },
    #[error(
        "{partition} was written to in leader epoch {log}, the metadata knows of {metadata}: it is older than the log"
    )]
    MetadataBehind {
        partition: TopicPartition,
        log: LeaderEpoch,
        metadata: LeaderEpoch,
    },
    #[error("topic {0} keeps segments in remote storage, which is not read here")]
    RemoteStorage(String),
    #[error("the metadata has no metadata.version")]
    NoMetadataVersion,
    #[error(
        "controller.quorum.voters names the voters, and metadata.version {0} is too low for them to stand in the log: \
         raise it to {LEAST_WITH_VOTERS} (3.9-IV0) or above with kafka-features first"
    )]
    OldMetadataVersion(i16),
    #[error("nothing says where the controller listens")]
    NoEndpoint,
}

/// Decides.
///
/// # Errors
/// The first reason why the directory cannot be taken over as a whole.
pub fn plan(source: &Source<'_>, direction: Direction) -> Result<Plan, Refusal> {
    let (cluster_id, node_id, directory_id) = identity(source.properties)?;
    check_metadata_directory(source, &cluster_id, node_id)?;
    let metadata = source.metadata;
    let image = &metadata.image;
    let mut notices = Vec::new();
    check_quorum(source, node_id)?;
    check_brokers(image, node_id, directory_id, &mut notices)?;
    if !source.inventory.clean {
        return Err(Refusal::NotClean);
    }
    check_partitions(source, node_id, directory_id, &mut notices)?;
    let version = image.features.metadata_version().ok_or(Refusal::NoMetadataVersion)?;
    if metadata.kraft_version == KRaftVersion::Static {
        if version.level() < LEAST_WITH_VOTERS {
            return Err(Refusal::OldMetadataVersion(version.level()));
        }
        notices.push(Notice::VotersIntoLog);
    }
    match direction {
        Direction::Import => notices_of_import(source, &mut notices),
        Direction::Export => notices_of_export(image, &mut notices),
    }
    notices_of_files(source, &mut notices);
    let voter = Voter {
        key: ReplicaKey {
            id: node_id,
            directory: directory_id,
        },
        endpoints: endpoints(metadata, node_id)?,
        kraft_versions: (KRaftVersion::Static.level(), KRaftVersion::Dynamic.level()),
    };
    Ok(Plan {
        cluster_id,
        node_id,
        directory_id,
        snapshot: SnapshotId {
            end_offset: image.end_offset,
            epoch: image.epoch,
        },
        image: image.clone(),
        voters: VoterSet::new([voter]),
        epoch: metadata.epoch,
        notices,
        direction,
    })
}

impl Plan {
    /// Whether Kafka takes over.
    #[must_use]
    pub fn is_for_kafka(&self) -> bool {
        self.direction == Direction::Export
    }

    /// The records of the snapshot.
    pub fn records(&self) -> impl Iterator<Item = MetadataRecord> + '_ {
        let keep_own = !self.is_for_kafka();
        self.image.records().filter(move |record| match record {
            MetadataRecord::Config(config) => keep_own || !config.name.starts_with(OWN_KEYS),
            _ => true,
        })
    }

    /// The level that the records are written in.
    #[must_use]
    pub fn metadata_version(&self) -> MetadataVersion {
        self.image
            .features
            .metadata_version()
            .unwrap_or(MetadataVersion::LATEST)
    }

    #[must_use]
    pub fn partition_count(&self) -> usize {
        self.image.topics.iter().map(|topic| topic.partitions.len()).sum()
    }
}

fn identity(properties: &MetaProperties) -> Result<(String, BrokerId, DirectoryId), Refusal> {
    Ok((
        properties.cluster_id.clone().ok_or(Refusal::Identity("cluster.id"))?,
        properties.node_id.ok_or(Refusal::Identity("node.id"))?,
        properties.directory_id.ok_or(Refusal::Identity("directory.id"))?,
    ))
}

fn check_metadata_directory(source: &Source<'_>, cluster_id: &str, node_id: BrokerId) -> Result<(), Refusal> {
    let (cluster, node, _) = identity(source.metadata_properties)?;
    if cluster == cluster_id && node == node_id {
        return Ok(());
    }
    Err(Refusal::OtherNode {
        node: node_id,
        cluster: cluster_id.to_owned(),
        metadata: node,
        metadata_cluster: cluster,
    })
}

/// The node must be the one voter: nobody else has a say in what its metadata is.
fn check_quorum(source: &Source<'_>, node_id: BrokerId) -> Result<(), Refusal> {
    let voters = &source.metadata.voters;
    if voters.is_empty() {
        return Err(Refusal::NoVoters);
    }
    let Some(voter) = voters.get(node_id).filter(|_| voters.len() == 1) else {
        let ids: Vec<String> = voters.iter().map(|voter| voter.key.id.to_string()).collect();
        return Err(Refusal::NotTheController {
            node: node_id,
            voters: ids.join(", "),
        });
    };
    let (_, _, directory) = identity(source.metadata_properties)?;
    if voters.is_voter(ReplicaKey { id: node_id, directory }) {
        return Ok(());
    }
    Err(Refusal::OtherVoterDirectory {
        node: node_id,
        voter: voter.key.directory,
        directory,
    })
}

fn check_brokers(
    image: &Image,
    node_id: BrokerId,
    directory_id: DirectoryId,
    notices: &mut Vec<Notice>,
) -> Result<(), Refusal> {
    let Some(own) = image.cluster.broker(node_id) else {
        return Err(Refusal::NeverRegistered(node_id));
    };
    match own.directories.as_slice() {
        // Levels before directories had ids.
        [] => {}
        [only] if *only == directory_id => {}
        [only] => {
            return Err(Refusal::NotItsDirectory {
                registered: *only,
                directory: directory_id,
            });
        }
        directories => return Err(Refusal::LogDirectories(directories.len())),
    }
    for (id, broker) in image.cluster.brokers.iter().filter(|(id, _)| **id != node_id) {
        if !broker.fenced {
            return Err(Refusal::OtherBroker(*id));
        }
        notices.push(Notice::OtherBroker(*id));
    }
    let others = image.cluster.controllers.keys().filter(|id| **id != node_id);
    notices.extend(others.map(|id| Notice::OtherController(*id)));
    Ok(())
}

fn check_partitions(
    source: &Source<'_>,
    node_id: BrokerId,
    directory_id: DirectoryId,
    notices: &mut Vec<Notice>,
) -> Result<(), Refusal> {
    let in_use = source
        .inventory
        .partitions
        .iter()
        .filter(|it| it.folder.kind == FolderKind::Partition);
    let mut folders: BTreeMap<&TopicPartition, &PartitionFolder> =
        in_use.map(|it| (&it.folder.partition, it)).collect();
    for topic in source.metadata.image.topics.iter() {
        let remote = source
            .metadata
            .image
            .configs
            .get(&ConfigResource::topic(topic.name.as_str()), REMOTE_STORAGE);
        if remote.is_some_and(|value| &**value == "true") {
            return Err(Refusal::RemoteStorage(topic.name.to_string()));
        }
        for (index, known) in &topic.partitions {
            let partition = TopicPartition {
                topic: topic.name.clone(),
                partition: *index,
            };
            if known.replicas != [node_id] || !known.adding_replicas.is_empty() {
                let all = known.replicas.iter().chain(&known.adding_replicas);
                let ids: Vec<String> = all.map(ToString::to_string).collect();
                return Err(Refusal::OtherReplicas {
                    partition,
                    replicas: ids.join(", "),
                });
            }
            // Zero and one: not known, and not assigned yet.
            let elsewhere = known
                .directories
                .iter()
                .find(|id| ![directory_id, Uuid::ZERO, Uuid::ONE].contains(id));
            if let Some(directory) = elsewhere {
                return Err(Refusal::OtherDirectory {
                    partition,
                    directory: *directory,
                });
            }
            let folder = folders
                .get(&partition)
                .filter(|folder| folder.topic_id.is_none_or(|id| id == topic.id));
            let Some(folder) = folder else {
                notices.push(Notice::FolderMissing { partition });
                continue;
            };
            if let Some(log) = folder.latest_epoch.filter(|epoch| *epoch > known.leader_epoch) {
                return Err(Refusal::MetadataBehind {
                    partition,
                    log,
                    metadata: known.leader_epoch,
                });
            }
            folders.remove(&partition);
        }
    }
    notices.extend(folders.values().map(|it| Notice::Stray {
        folder: it.folder.name.clone(),
    }));
    Ok(())
}

/// Where the controller listens, as the log says or as it registered.
fn endpoints(metadata: &SourceMetadata, node_id: BrokerId) -> Result<Vec<VoterEndpoint>, Refusal> {
    let voter = metadata.voters.get(node_id).map(|voter| voter.endpoints.clone());
    if let Some(endpoints) = voter.filter(|endpoints| !endpoints.is_empty()) {
        return Ok(endpoints);
    }
    let registered = metadata
        .image
        .cluster
        .controllers
        .get(&node_id)
        .ok_or(Refusal::NoEndpoint)?;
    let endpoints = registered.endpoints.iter().map(|endpoint| VoterEndpoint {
        name: endpoint.name.clone(),
        host: endpoint.host.clone(),
        port: endpoint.port,
    });
    Some(endpoints.collect::<Vec<_>>())
        .filter(|endpoints| !endpoints.is_empty())
        .ok_or(Refusal::NoEndpoint)
}

/// What this version keeps and does not act on.
fn notices_of_import(source: &Source<'_>, notices: &mut Vec<Notice>) {
    let image = &source.metadata.image;
    let some = |count: usize| (count > 0).then_some(count);
    notices.extend(some(image.security.acls.len()).map(Notice::Acls));
    notices.extend(some(image.client_quotas.iter().count()).map(Notice::ClientQuotas));
    notices.extend(some(image.security.scram_credentials.len()).map(Notice::ScramCredentials));
    notices.extend(some(image.security.delegation_tokens.len()).map(Notice::DelegationTokens));
    for (resource, values) in image.configs.iter() {
        let scope = scope(resource.kind);
        let without = values
            .keys()
            .filter(|key| lookup(scope, key).is_none_or(|it| it.standing != Standing::InEffect));
        notices.extend(without.map(|key| Notice::ConfigWithoutEffect {
            resource: resource.clone(),
            key: key.to_string(),
        }));
    }
    notices.extend(some(source.groups.consumer.len()).map(Notice::ConsumerGroups));
    notices.extend(some(source.groups.share.len()).map(Notice::ShareGroups));
    notices.extend(some(source.groups.streams.len()).map(Notice::StreamsGroups));
    let topic = |name: &str| image.topics.by_name(name).map(|topic| topic.name.to_string());
    notices.extend(topic(TRANSACTION_TOPIC).map(|topic| Notice::TransactionState { topic }));
    notices.extend(topic(SHARE_TOPIC).map(|topic| Notice::ShareState { topic }));
    for folder in &source.inventory.partitions {
        let partition = &folder.folder.partition;
        // Whoever coordinates groups tells apart what counts.
        if partition.topic.as_str() == OFFSETS_TOPIC {
            continue;
        }
        if folder.aborted_transactions > 0 {
            notices.push(Notice::AbortedTransactions {
                partition: partition.clone(),
                count: folder.aborted_transactions,
            });
        }
        notices.extend(
            folder
                .open_transactions
                .iter()
                .map(|transaction| Notice::OpenTransaction {
                    partition: partition.clone(),
                    transaction: *transaction,
                }),
        );
    }
}

fn notices_of_export(image: &Image, notices: &mut Vec<Notice>) {
    for (resource, values) in image.configs.iter() {
        let own = values.keys().filter(|key| key.starts_with(OWN_KEYS));
        notices.extend(own.map(|key| Notice::ConfigLeftOut {
            resource: resource.clone(),
            key: key.to_string(),
        }));
    }
    let own = image
        .topics
        .iter()
        .filter(|topic| topic.name.as_str().starts_with(OWN_TOPICS));
    notices.extend(own.map(|topic| Notice::OwnTopic {
        topic: topic.name.to_string(),
    }));
}

fn notices_of_files(source: &Source<'_>, notices: &mut Vec<Notice>) {
    let strays = source
        .inventory
        .partitions
        .iter()
        .filter(|it| it.folder.kind == FolderKind::Stray);
    notices.extend(strays.map(|it| Notice::Stray {
        folder: it.folder.name.clone(),
    }));
    let damaged = source.inventory.partitions.iter().filter(|it| it.is_quarantined);
    notices.extend(damaged.map(|it| Notice::Damaged {
        partition: it.folder.partition.clone(),
    }));
    notices.extend(source.inventory.left_out.iter().filter_map(|left_out| match left_out {
        LeftOut::Leftover(_) => None,
        LeftOut::Future(path) => Some(Notice::FutureLeftOut(path.clone())),
        LeftOut::Unknown(path) => Some(Notice::UnknownLeftOut(path.clone())),
    }));
}

fn scope(kind: ConfigResourceType) -> Scope {
    match kind {
        ConfigResourceType::Topic => Scope::Topic,
        ConfigResourceType::Broker => Scope::Broker,
        ConfigResourceType::ClientMetrics => Scope::ClientMetrics,
        ConfigResourceType::Group => Scope::Group,
    }
}

#[cfg(test)]
mod tests;
