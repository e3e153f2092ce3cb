//! The controller's half of a node: formatting it, and starting its quorum of one.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use broker::{Advertised, LogDisk};
use metadata::config_keys::{BrokerSettings, Configs};
use metadata::image::Endpoint;
use metadata::{ControllerOptions, Entropy};
use model::{Timestamp, Uuid};
use protocol::Text;
use quorum::{FormatRequest, MetadataLogOptions, NodeOptions, Quorum};
use raft::VoterEndpoint;
use storage::RealDisk;
use tracing::info;

use crate::directories::draw;

/// Entropy of the operating system.
struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn next_u64(&mut self) -> u64 {
        getrandom::u64().expect("the operating system has entropy")
    }
}

/// Founds a cluster of this one node in directories that have none.
pub(crate) fn format(
    settings: &BrokerSettings,
    directories: &[PathBuf],
    metadata_directory: &Path,
    endpoints: &[Advertised],
    now: Timestamp,
) -> anyhow::Result<()> {
    if !settings.quorum.voters.is_empty() {
        bail!("controller.quorum.voters is set: only a quorum of this node alone, without it, can be formatted");
    }
    let cluster_id = draw()?.to_string();
    let endpoints = endpoints.iter().map(|endpoint| VoterEndpoint {
        name: Text::from(endpoint.name.as_str()),
        host: Text::from(endpoint.host.as_str()),
        port: endpoint.port,
    });
    let request = FormatRequest {
        cluster_id: &cluster_id,
        node_id: settings.node_id,
        log_directories: directories,
        metadata_directory,
        controller_endpoints: Some(endpoints.collect()),
        now,
    };
    quorum::format(&RealDisk, &request, &mut SystemEntropy).context("formatting the log directories")?;
    info!(cluster_id, node_id = %settings.node_id, "formatted a new cluster of one node");
    Ok(())
}

/// What a quorum's node is started with.
pub(crate) struct QuorumParts<'a> {
    pub(crate) settings: &'a BrokerSettings,
    pub(crate) static_configs: Configs,
    pub(crate) cluster_id: &'a str,
    /// Of the directory that the metadata log lies in.
    pub(crate) disk: LogDisk,
    pub(crate) metadata_directory: &'a Path,
    pub(crate) directory_id: Uuid,
    pub(crate) endpoints: &'a [Advertised],
}

/// Reads the metadata log and leads the quorum. Blocks while it reads.
pub(crate) fn start_quorum(parts: QuorumParts<'_>) -> anyhow::Result<Quorum> {
    let QuorumParts {
        settings,
        static_configs,
        cluster_id,
        disk,
        metadata_directory,
        directory_id,
        endpoints,
    } = parts;
    let controller = ControllerOptions {
        cluster_id: cluster_id.to_owned(),
        node_id: settings.node_id,
        session_timeout: settings.heartbeat.session_timeout,
        default_partitions: i32::try_from(settings.partitions).unwrap_or(i32::MAX),
        default_replication_factor: i16::try_from(settings.replication_factor).unwrap_or(i16::MAX),
        topic_deletion_enabled: settings.delete_topics,
        min_in_sync_replicas: i32::try_from(settings.topic_defaults.min_insync_replicas).unwrap_or(i32::MAX),
        static_configs,
        local_broker: Some(settings.node_id),
        ..ControllerOptions::default()
    };
    let quorum = &settings.quorum;
    let log = MetadataLogOptions {
        segment_size_bytes: quorum.metadata_segment_bytes,
        segment_ms: millis(quorum.metadata_segment),
        retention_bytes: quorum.metadata_retention_bytes.unwrap_or(u64::MAX),
        retention_ms: quorum.metadata_retention.map_or(i64::MAX, millis),
    };
    let endpoints = endpoints.iter().map(|endpoint| Endpoint {
        name: Text::from(endpoint.name.as_str()),
        host: Text::from(endpoint.host.as_str()),
        port: endpoint.port,
        security_protocol: endpoint.security_protocol,
    });
    let options = NodeOptions {
        endpoints: endpoints.collect(),
        log,
        snapshot_after_bytes: quorum.snapshot_after_bytes,
        snapshot_after: quorum.snapshot_interval.unwrap_or(Duration::MAX),
        no_op_interval: quorum.idle_interval_max.unwrap_or(Duration::MAX),
        ..NodeOptions::new(controller, directory_id, draw()?)
    };
    quorum::start(disk, metadata_directory, options).context("starting the controller quorum")
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
