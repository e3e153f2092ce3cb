//! A refused operation as the response of its API.

use metadata::Refusal;
use model::ErrorCode;
use protocol::messages::allocate_producer_ids_response::AllocateProducerIdsResponse;
use protocol::messages::alter_partition_reassignments_response::AlterPartitionReassignmentsResponse;
use protocol::messages::alter_partition_response::AlterPartitionResponse;
use protocol::messages::assign_replicas_to_dirs_response::AssignReplicasToDirsResponse;
use protocol::messages::broker_heartbeat_response::BrokerHeartbeatResponse;
use protocol::messages::broker_registration_response::BrokerRegistrationResponse;
use protocol::messages::controller_registration_response::ControllerRegistrationResponse;
use protocol::messages::create_partitions_response::{CreatePartitionsResponse, CreatePartitionsTopicResult};
use protocol::messages::create_topics_response::{CreatableTopicResult, CreateTopicsResponse};
use protocol::messages::delete_topics_response::{DeletableTopicResult, DeleteTopicsResponse};
use protocol::messages::incremental_alter_configs_response::{
    AlterConfigsResourceResponse, IncrementalAlterConfigsResponse,
};
use protocol::messages::list_partition_reassignments_response::ListPartitionReassignmentsResponse;
use protocol::{Request, Response, Text};

/// The response that refuses all of `request`; `None` for an API that the controller does not decide.
pub(crate) fn refused(request: &Request, refusal: &Refusal) -> Option<Response> {
    let code = refusal.code.code();
    let message = || refusal.message.as_deref().map(Text::from);
    Some(match request {
        Request::BrokerRegistration(_) => BrokerRegistrationResponse {
            error_code: code,
            ..BrokerRegistrationResponse::default()
        }
        .into(),
        Request::BrokerHeartbeat(_) => BrokerHeartbeatResponse {
            error_code: code,
            ..BrokerHeartbeatResponse::default()
        }
        .into(),
        Request::ControllerRegistration(_) => ControllerRegistrationResponse {
            error_code: code,
            error_message: message(),
            ..ControllerRegistrationResponse::default()
        }
        .into(),
        Request::AllocateProducerIds(_) => AllocateProducerIdsResponse {
            error_code: code,
            ..AllocateProducerIdsResponse::default()
        }
        .into(),
        Request::AlterPartition(_) => AlterPartitionResponse {
            error_code: code,
            ..AlterPartitionResponse::default()
        }
        .into(),
        Request::AlterPartitionReassignments(_) => AlterPartitionReassignmentsResponse {
            error_code: code,
            error_message: message(),
            ..AlterPartitionReassignmentsResponse::default()
        }
        .into(),
        Request::ListPartitionReassignments(_) => ListPartitionReassignmentsResponse {
            error_code: code,
            error_message: message(),
            ..ListPartitionReassignmentsResponse::default()
        }
        .into(),
        Request::AssignReplicasToDirs(_) => AssignReplicasToDirsResponse {
            error_code: code,
            ..AssignReplicasToDirsResponse::default()
        }
        .into(),
        Request::CreateTopics(request) => {
            let result = |topic: &protocol::messages::create_topics_request::CreatableTopic| CreatableTopicResult {
                name: topic.name.clone(),
                error_code: code,
                error_message: message(),
                ..CreatableTopicResult::default()
            };
            CreateTopicsResponse {
                topics: request.topics.iter().map(result).collect(),
                ..CreateTopicsResponse::default()
            }
            .into()
        }
        Request::DeleteTopics(request) => {
            let by_name = request
                .topic_names
                .iter()
                .map(|name| (Some(name.clone()), model::Uuid::ZERO));
            let by_state = request.topics.iter().map(|topic| (topic.name.clone(), topic.topic_id));
            let result = |(name, topic_id)| DeletableTopicResult {
                name,
                topic_id,
                error_code: code,
                error_message: message(),
                ..DeletableTopicResult::default()
            };
            DeleteTopicsResponse {
                responses: by_name.chain(by_state).map(result).collect(),
                ..DeleteTopicsResponse::default()
            }
            .into()
        }
        Request::CreatePartitions(request) => {
            let result = |topic: &protocol::messages::create_partitions_request::CreatePartitionsTopic| {
                CreatePartitionsTopicResult {
                    name: topic.name.clone(),
                    error_code: code,
                    error_message: message(),
                    ..CreatePartitionsTopicResult::default()
                }
            };
            CreatePartitionsResponse {
                results: request.topics.iter().map(result).collect(),
                ..CreatePartitionsResponse::default()
            }
            .into()
        }
        Request::IncrementalAlterConfigs(request) => {
            let result = |resource: &protocol::messages::incremental_alter_configs_request::AlterConfigsResource| {
                AlterConfigsResourceResponse {
                    error_code: code,
                    error_message: message(),
                    resource_type: resource.resource_type,
                    resource_name: resource.resource_name.clone(),
                    ..AlterConfigsResourceResponse::default()
                }
            };
            IncrementalAlterConfigsResponse {
                responses: request.resources.iter().map(result).collect(),
                ..IncrementalAlterConfigsResponse::default()
            }
            .into()
        }
        _ => return None,
    })
}

/// What is told to those who wait when the controller stops.
pub(crate) fn stopping() -> Refusal {
    Refusal {
        code: ErrorCode::NotController,
        message: None,
    }
}
