//! From a request to its handler: the one table of what this broker serves.

use std::sync::Arc;

use network::{Answer, ApiVersionRange, Dispatch, DispatchFuture, RequestContext};
use protocol::{ApiKey, Request};

use crate::handlers::{
    alter_replica_log_dirs, api_versions, delete_records, describe_cluster, describe_configs, describe_log_dirs,
    describe_topic_partitions, fetch, find_coordinator, forwarded, groups, init_producer_id, list_offsets, metadata,
    offset_for_leader_epoch, produce,
};
use crate::node::Broker;

/// A broker as its clients see it.
pub struct ClientDoor {
    broker: Arc<Broker>,
    versions: Vec<ApiVersionRange>,
}

impl ClientDoor {
    #[must_use]
    pub fn new(broker: Arc<Broker>) -> Self {
        let plain = ApiVersionRange::plain;
        let mut versions = vec![
            ApiVersionRange {
                api_key: ApiKey::Produce,
                served: produce::VERSIONS,
                advertised: produce::ADVERTISED,
            },
            plain(ApiKey::Fetch, fetch::VERSIONS),
            plain(ApiKey::ListOffsets, list_offsets::VERSIONS),
            plain(ApiKey::Metadata, metadata::VERSIONS),
            plain(ApiKey::FindCoordinator, find_coordinator::VERSIONS),
            plain(ApiKey::ApiVersions, api_versions::VERSIONS),
            plain(ApiKey::CreateTopics, forwarded::CREATE_TOPICS),
            plain(ApiKey::DeleteTopics, forwarded::DELETE_TOPICS),
            plain(ApiKey::DeleteRecords, delete_records::VERSIONS),
            plain(ApiKey::InitProducerId, init_producer_id::VERSIONS),
            plain(ApiKey::OffsetForLeaderEpoch, offset_for_leader_epoch::VERSIONS),
            plain(ApiKey::DescribeConfigs, describe_configs::VERSIONS),
            plain(ApiKey::CreatePartitions, forwarded::CREATE_PARTITIONS),
            plain(ApiKey::IncrementalAlterConfigs, forwarded::INCREMENTAL_ALTER_CONFIGS),
            plain(
                ApiKey::AlterPartitionReassignments,
                forwarded::ALTER_PARTITION_REASSIGNMENTS,
            ),
            plain(
                ApiKey::ListPartitionReassignments,
                forwarded::LIST_PARTITION_REASSIGNMENTS,
            ),
            plain(ApiKey::DescribeQuorum, forwarded::DESCRIBE_QUORUM),
            plain(ApiKey::DescribeCluster, describe_cluster::VERSIONS),
            plain(ApiKey::AlterReplicaLogDirs, alter_replica_log_dirs::VERSIONS),
            plain(ApiKey::DescribeLogDirs, describe_log_dirs::VERSIONS),
            plain(ApiKey::DescribeTopicPartitions, describe_topic_partitions::VERSIONS),
        ];
        versions.extend(groups::VERSIONS.map(|(api_key, range)| plain(api_key, range)));
        versions.sort_by_key(|range| range.api_key.code());
        ClientDoor { broker, versions }
    }
}

impl Dispatch for ClientDoor {
    fn api_versions(&self) -> &[ApiVersionRange] {
        &self.versions
    }

    fn dispatch(self: Arc<Self>, context: RequestContext, request: Request) -> DispatchFuture {
        Box::pin(async move { self.answer(&context, request).await })
    }
}

impl ClientDoor {
    async fn answer(&self, context: &RequestContext, request: Request) -> Answer {
        let broker = &self.broker;
        match request {
            Request::Produce(request) => produce::handle(broker, context, request),
            Request::Fetch(request) => fetch::handle(broker, context, request).await,
            Request::ListOffsets(request) => list_offsets::handle(broker, context, request).await,
            Request::Metadata(request) => metadata::handle(broker, context, request).await,
            Request::ApiVersions(request) => api_versions::handle(broker, context, &request, &self.versions),
            Request::FindCoordinator(request) => find_coordinator::handle(broker, context, request).await,
            Request::DeleteRecords(request) => delete_records::handle(broker, request).await,
            Request::InitProducerId(request) => init_producer_id::handle(broker, &request).await,
            Request::OffsetForLeaderEpoch(request) => offset_for_leader_epoch::handle(broker, &request),
            Request::DescribeConfigs(request) => describe_configs::handle(broker, &request),
            Request::DescribeCluster(request) => describe_cluster::handle(broker, context, &request),
            Request::AlterReplicaLogDirs(request) => alter_replica_log_dirs::handle(broker, request).await,
            Request::DescribeLogDirs(request) => describe_log_dirs::handle(broker, request).await,
            Request::DescribeTopicPartitions(request) => describe_topic_partitions::handle(broker, context, &request),
            Request::CreateTopics(_)
            | Request::DeleteTopics(_)
            | Request::CreatePartitions(_)
            | Request::IncrementalAlterConfigs(_)
            | Request::AlterPartitionReassignments(_)
            | Request::ListPartitionReassignments(_)
            | Request::DescribeQuorum(_) => forwarded::handle(broker, context, request).await,
            // The connection has let through only what is in the table, and all that is left of it is the groups'.
            request => groups::handle(broker, context, request).await,
        }
    }
}
