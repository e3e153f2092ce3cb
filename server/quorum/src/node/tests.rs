//! The node on a simulated disk: what is acknowledged survives any crash, what comes back is one consistent log.

use std::collections::BTreeMap;
use std::path::PathBuf;

use model::{BrokerId, PartitionIndex, TopicName};
use protocol::messages::allocate_producer_ids_request::AllocateProducerIdsRequest;
use protocol::messages::broker_heartbeat_request::BrokerHeartbeatRequest;
use protocol::messages::broker_registration_request::{self, BrokerRegistrationRequest};
use protocol::messages::create_partitions_request::{CreatePartitionsRequest, CreatePartitionsTopic};
use protocol::messages::create_topics_request::{CreatableTopic, CreateTopicsRequest};
use protocol::messages::delete_topics_request::{DeleteTopicState, DeleteTopicsRequest};
use raft::VoterEndpoint;
use storage::SimDisk;

use super::*;
use crate::format::{FormatRequest, format};

mod crashes;
mod logs;

pub(crate) const CLUSTER_ID: &str = "BdapmVWEy080AAdoE0wltw";

/// SplitMix64.
#[derive(Clone)]
pub(crate) struct Seeded(u64);

impl Entropy for Seeded {
    fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

pub(crate) fn directory() -> PathBuf {
    PathBuf::from("/data/log")
}

pub(crate) fn at(millis: u64) -> Moment {
    Moment {
        wall: Timestamp::from_millis(1_795_963_900_000 + i64::try_from(millis).unwrap()),
        monotonic: Monotonic::from_millis(millis),
    }
}

/// Formats the disk as a fresh node of one voter. Returns the directory's id.
pub(crate) fn formatted(disk: &SimDisk) -> DirectoryId {
    let directories = [directory()];
    let request = FormatRequest {
        cluster_id: CLUSTER_ID,
        node_id: BrokerId::new(1),
        log_directories: &directories,
        metadata_directory: &directories[0],
        controller_endpoints: Some(vec![VoterEndpoint {
            name: "CONTROLLER".into(),
            host: "127.0.0.1".into(),
            port: 9093,
        }]),
        now: at(0).wall,
    };
    format(disk, &request, &mut Seeded(1)).unwrap().directory_ids[0]
}

pub(crate) fn options(directory_id: DirectoryId, incarnation: u8) -> NodeOptions {
    let controller = ControllerOptions {
        cluster_id: CLUSTER_ID.to_owned(),
        local_broker: Some(BrokerId::new(1)),
        ..ControllerOptions::default()
    };
    let mut options = NodeOptions::new(controller, directory_id, Uuid::from_bytes([incarnation; 16]));
    options.endpoints = vec![Endpoint {
        name: "CONTROLLER".into(),
        host: "127.0.0.1".into(),
        port: 9093,
        security_protocol: 0,
    }];
    options
}

pub(crate) fn open(disk: &SimDisk, options: NodeOptions, now: Moment) -> Result<Node<SimDisk>, NodeError> {
    let mut node = Node::open(disk.clone(), &directory(), options, now)?;
    node.settle(now)?;
    Ok(node)
}

pub(crate) fn register(incarnation: u8) -> BrokerRegistrationRequest {
    let features = metadata::image::FeaturesImage::SUPPORTED.iter();
    BrokerRegistrationRequest {
        broker_id: 1,
        cluster_id: CLUSTER_ID.into(),
        incarnation_id: Uuid::from_bytes([incarnation; 16]),
        features: features
            .map(|(name, least, greatest)| broker_registration_request::Feature {
                name: (*name).into(),
                min_supported_version: *least,
                max_supported_version: *greatest,
                ..Default::default()
            })
            .collect(),
        log_dirs: vec![Uuid::from_bytes([100; 16])],
        rack: None,
        ..BrokerRegistrationRequest::default()
    }
}

pub(crate) fn create(name: &str, partitions: i32) -> CreateTopicsRequest {
    CreateTopicsRequest {
        topics: vec![CreatableTopic {
            name: name.into(),
            num_partitions: partitions,
            replication_factor: 1,
            ..CreatableTopic::default()
        }],
        ..CreateTopicsRequest::default()
    }
}

/// What is committed.
pub(crate) fn image_of(node: &Node<SimDisk>) -> metadata::Image {
    Image::clone(&node.latest)
}

/// Calls and syncs; the response is then acknowledged.
pub(crate) fn call<D: Disk>(
    node: &mut Node<D>,
    request: impl Into<Request>,
    now: Moment,
) -> Result<Response, NodeError> {
    let request = request.into();
    let version = match request {
        Request::DeleteTopics(_) => 6,
        _ => 0,
    };
    let called = node.call(
        &request,
        version,
        now,
        &mut Seeded(now.monotonic.since_start().as_nanos() as u64),
    )?;
    node.settle(now)?;
    let called = called.map_err(|_| NodeError::NoMetadataVersion)?;
    assert!(called.after <= node.high_watermark());
    Ok(called.response)
}

/// Registers the broker and lets it catch up.
pub(crate) fn join<D: Disk>(node: &mut Node<D>, incarnation: u8, now: Moment) -> Result<i64, NodeError> {
    let Response::BrokerRegistration(registered) = call(node, register(incarnation), now)? else {
        panic!("registration")
    };
    assert_eq!(registered.error_code, 0);
    let heartbeat = BrokerHeartbeatRequest {
        broker_id: 1,
        broker_epoch: registered.broker_epoch,
        current_metadata_offset: node.latest.end_offset.get() - 1,
        ..BrokerHeartbeatRequest::default()
    };
    let Response::BrokerHeartbeat(beat) = call(node, heartbeat, now)? else {
        panic!("heartbeat")
    };
    assert!(!beat.is_fenced);
    Ok(registered.broker_epoch)
}
