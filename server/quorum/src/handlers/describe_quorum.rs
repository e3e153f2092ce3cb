//! DescribeQuorum 0–2: the voters and how far they are (KIP-836, KIP-853). Only the leader knows; the leader itself
//! counts as having fetched just now.

use std::ops::RangeInclusive;

use model::{ErrorCode, Offset, Timestamp};
use protocol::messages::describe_quorum_request::{self, DescribeQuorumRequest};
use protocol::messages::describe_quorum_response::{
    DescribeQuorumResponse, Listener, Node, PartitionData, ReplicaState, TopicData,
};
use raft::{NotLeader, QuorumDescription, Voter};

use crate::metadata_log::METADATA_TOPIC;

pub(crate) const VERSIONS: RangeInclusive<i16> = 0..=2;

pub(crate) fn answer(
    request: &DescribeQuorumRequest,
    description: Result<QuorumDescription, NotLeader>,
    now: Timestamp,
) -> DescribeQuorumResponse {
    let is_metadata = |topic: &describe_quorum_request::TopicData| {
        &*topic.topic_name == METADATA_TOPIC
            && matches!(topic.partitions.as_slice(), [partition] if partition.partition_index == 0)
    };
    if !matches!(request.topics.as_slice(), [topic] if is_metadata(topic)) {
        let topics = request.topics.iter().map(unknown).collect();
        return DescribeQuorumResponse {
            error_message: None,
            topics,
            ..DescribeQuorumResponse::default()
        };
    }
    let (partition, nodes) = match description {
        Ok(description) => (
            described(&description, now),
            description.voters.iter().map(node).collect(),
        ),
        Err(NotLeader) => (refused(0, ErrorCode::NotLeaderOrFollower), Vec::new()),
    };
    DescribeQuorumResponse {
        error_message: None,
        topics: vec![TopicData {
            topic_name: METADATA_TOPIC.into(),
            partitions: vec![partition],
            ..TopicData::default()
        }],
        nodes,
        ..DescribeQuorumResponse::default()
    }
}

fn described(description: &QuorumDescription, now: Timestamp) -> PartitionData {
    let voter = |voter: &Voter| ReplicaState {
        replica_id: voter.key.id.get(),
        replica_directory_id: voter.key.directory,
        log_end_offset: description.log_end.get(),
        last_fetch_timestamp: now.millis(),
        last_caught_up_timestamp: now.millis(),
        ..ReplicaState::default()
    };
    PartitionData {
        error_message: None,
        leader_id: description.leader.get(),
        leader_epoch: description.epoch.get(),
        high_watermark: description.high_watermark.map_or(-1, Offset::get),
        current_voters: description.voters.iter().map(voter).collect(),
        ..PartitionData::default()
    }
}

fn node(voter: &Voter) -> Node {
    let listener = |endpoint: &raft::VoterEndpoint| Listener {
        name: endpoint.name.clone(),
        host: endpoint.host.clone(),
        port: endpoint.port,
        ..Listener::default()
    };
    Node {
        node_id: voter.key.id.get(),
        listeners: voter.endpoints.iter().map(listener).collect(),
        ..Node::default()
    }
}

fn unknown(topic: &describe_quorum_request::TopicData) -> TopicData {
    let partitions = topic.partitions.iter();
    TopicData {
        topic_name: topic.topic_name.clone(),
        partitions: partitions
            .map(|partition| refused(partition.partition_index, ErrorCode::UnknownTopicOrPartition))
            .collect(),
        ..TopicData::default()
    }
}

fn refused(partition_index: i32, code: ErrorCode) -> PartitionData {
    PartitionData {
        partition_index,
        error_code: code.code(),
        error_message: None,
        ..PartitionData::default()
    }
}
