//! AlterPartitionReassignments and ListPartitionReassignments (KIP-455): which brokers keep a partition's replicas.
//!
//! A replica stays with the broker that has it: nobody copies one to another broker yet. So a partition that is given to the
//! brokers that have it already is done with at once, as in Kafka, which is how its tools begin a move between the
//! directories of a broker. Other brokers are refused.

use model::{BrokerId, ErrorCode, PartitionIndex};
use protocol::messages::alter_partition_reassignments_request::{
    AlterPartitionReassignmentsRequest, ReassignablePartition,
};
use protocol::messages::alter_partition_reassignments_response::{
    AlterPartitionReassignmentsResponse, ReassignablePartitionResponse, ReassignableTopicResponse,
};
use protocol::messages::list_partition_reassignments_request::ListPartitionReassignmentsRequest;
use protocol::messages::list_partition_reassignments_response::{
    ListPartitionReassignmentsResponse, OngoingPartitionReassignment, OngoingTopicReassignment,
};

use super::{Controller, Outcome, Refusal};
use crate::image::{PartitionImage, TopicImage, wire_ids};

impl Controller {
    /// What is wrong with single partitions is in the response.
    #[must_use]
    pub fn alter_partition_reassignments(
        &self,
        request: &AlterPartitionReassignmentsRequest,
    ) -> Outcome<AlterPartitionReassignmentsResponse> {
        let topics = request.topics.iter().map(|topic| {
            let partitions = topic.partitions.iter().map(|partition| {
                let refusal = self.reassign(&topic.name, partition, request.allow_replication_factor_change);
                let refusal = refusal.err().unwrap_or(Refusal::bare(ErrorCode::None));
                ReassignablePartitionResponse {
                    partition_index: partition.partition_index,
                    error_code: refusal.code.code(),
                    error_message: refusal.message.map(Into::into),
                    ..ReassignablePartitionResponse::default()
                }
            });
            ReassignableTopicResponse {
                name: topic.name.clone(),
                partitions: partitions.collect(),
                ..ReassignableTopicResponse::default()
            }
        });
        Outcome::of(AlterPartitionReassignmentsResponse {
            allow_replication_factor_change: request.allow_replication_factor_change,
            responses: topics.collect(),
            ..AlterPartitionReassignmentsResponse::default()
        })
    }

    fn reassign(&self, topic: &str, wanted: &ReassignablePartition, factor_may_change: bool) -> Result<(), Refusal> {
        let unknown =
            |what: String| Refusal::new(ErrorCode::UnknownTopicOrPartition, format!("Unable to find {what}."));
        let known = self.image().topics.by_name(topic);
        let known = known.ok_or_else(|| unknown(format!("a topic named {topic}")))?;
        let index = wanted.partition_index;
        let partition = PartitionIndex::from_wire(index).and_then(|index| known.partitions.get(&index));
        let partition = partition.ok_or_else(|| unknown(format!("partition {topic}:{index}")))?;
        let Some(replicas) = &wanted.replicas else {
            let message = "No partition reassignment is in progress.";
            return Err(Refusal::new(ErrorCode::NoReassignmentInProgress, message));
        };
        self.check_registered(replicas)?;
        if !factor_may_change && replicas.len() != partition.replicas.len() {
            let (from, to) = (partition.replicas.len(), replicas.len());
            let message = format!("The replication factor is changed from {from} to {to}");
            return Err(Refusal::new(ErrorCode::InvalidReplicationFactor, message));
        }
        if *replicas != wire_ids(&partition.replicas) {
            let message = "Replicas are not moved to other brokers by this version.";
            return Err(Refusal::new(ErrorCode::InvalidReplicaAssignment, message));
        }
        Ok(())
    }

    fn check_registered(&self, replicas: &[i32]) -> Result<(), Refusal> {
        let refuse = |what: String| Err(Refusal::new(ErrorCode::InvalidReplicaAssignment, what));
        if replicas.is_empty() {
            return refuse("The manual partition assignment includes an empty replica list.".to_owned());
        }
        for (at, id) in replicas.iter().enumerate() {
            let broker = BrokerId::from_wire(*id).and_then(|id| self.image().cluster.broker(id));
            if broker.is_none() {
                let what = format!("broker {id}, but no such broker is registered.");
                return refuse(format!("The manual partition assignment includes {what}"));
            }
            if replicas[..at].contains(id) {
                let what = format!("the broker {id} more than once.");
                return refuse(format!("The manual partition assignment includes {what}"));
            }
        }
        Ok(())
    }

    /// Those that the metadata speaks of: this controller begins none.
    #[must_use]
    pub fn list_partition_reassignments(
        &self,
        request: &ListPartitionReassignmentsRequest,
    ) -> Outcome<ListPartitionReassignmentsResponse> {
        let is_asked = |topic: &TopicImage, index: PartitionIndex| match &request.topics {
            None => true,
            Some(topics) => topics
                .iter()
                .any(|asked| *asked.name == *topic.name.as_str() && asked.partition_indexes.contains(&index.get())),
        };
        let topics = self.image().topics.iter().filter_map(|topic| {
            let ongoing = topic.partitions.iter().filter(|(index, partition)| {
                is_asked(topic, **index)
                    && !(partition.adding_replicas.is_empty() && partition.removing_replicas.is_empty())
            });
            let partitions: Vec<OngoingPartitionReassignment> = ongoing
                .map(|(index, partition)| ongoing_one(*index, partition))
                .collect();
            (!partitions.is_empty()).then(|| OngoingTopicReassignment {
                name: topic.name.as_str().into(),
                partitions,
                ..OngoingTopicReassignment::default()
            })
        });
        Outcome::of(ListPartitionReassignmentsResponse {
            topics: topics.collect(),
            ..ListPartitionReassignmentsResponse::default()
        })
    }
}

fn ongoing_one(index: PartitionIndex, partition: &PartitionImage) -> OngoingPartitionReassignment {
    OngoingPartitionReassignment {
        partition_index: index.get(),
        replicas: wire_ids(&partition.replicas),
        adding_replicas: wire_ids(&partition.adding_replicas),
        removing_replicas: wire_ids(&partition.removing_replicas),
        ..OngoingPartitionReassignment::default()
    }
}
