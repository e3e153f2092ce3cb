//! The controller's listener: which APIs it serves, and who answers them.
//!
//! What the controller decides goes to it as it is; the few others are a file each. The raft APIs between voters are not
//! served, since there is one voter.

use std::ops::RangeInclusive;
use std::sync::Arc;

use network::{Answer, ApiVersionRange, Dispatch, DispatchFuture, RequestContext};
use protocol::{ApiKey, Request};

use crate::handle::{ControllerError, ControllerHandle};

pub(crate) mod api_versions;
pub(crate) mod describe_cluster;
pub(crate) mod describe_quorum;

/// What the controller decides, in Kafka's versions, by ascending key.
const DECIDED: [(ApiKey, RangeInclusive<i16>); 12] = [
    (ApiKey::CreateTopics, 2..=7),
    (ApiKey::DeleteTopics, 1..=6),
    (ApiKey::CreatePartitions, 0..=3),
    (ApiKey::IncrementalAlterConfigs, 0..=1),
    (ApiKey::AlterPartition, 2..=3),
    (ApiKey::AlterPartitionReassignments, 0..=1),
    (ApiKey::ListPartitionReassignments, 0..=0),
    (ApiKey::BrokerRegistration, 0..=4),
    (ApiKey::BrokerHeartbeat, 0..=2),
    (ApiKey::AllocateProducerIds, 0..=0),
    (ApiKey::ControllerRegistration, 0..=0),
    (ApiKey::AssignReplicasToDirs, 0..=0),
];

/// The controller as connections of its listener see it.
pub struct ControllerDispatch {
    handle: ControllerHandle,
    versions: Vec<ApiVersionRange>,
}

impl ControllerDispatch {
    #[must_use]
    pub fn new(handle: ControllerHandle) -> Self {
        let own = [
            (ApiKey::ApiVersions, api_versions::VERSIONS),
            (ApiKey::DescribeQuorum, describe_quorum::VERSIONS),
            (ApiKey::DescribeCluster, describe_cluster::VERSIONS),
        ];
        let all = DECIDED.into_iter().chain(own);
        let mut versions: Vec<ApiVersionRange> = all
            .map(|(api_key, versions)| ApiVersionRange::plain(api_key, versions))
            .collect();
        versions.sort_by_key(|range| range.api_key);
        ControllerDispatch { handle, versions }
    }

    async fn answer(&self, context: RequestContext, request: Request) -> Answer {
        match &request {
            Request::ApiVersions(request) => {
                let image = self.handle.image();
                Answer::now(api_versions::answer(
                    request,
                    context.api_version,
                    &self.versions,
                    &image,
                    self.handle.kraft_version(),
                ))
            }
            Request::DescribeCluster(request) => {
                let (image, listener) = (self.handle.image(), &context.listener);
                let (cluster_id, leader) = (self.handle.cluster_id(), self.handle.node_id());
                Answer::now(describe_cluster::answer(request, &image, listener, cluster_id, leader))
            }
            _ => match self.handle.call(request.clone(), context.api_version).await {
                Ok(response) => Answer::now(response),
                Err(ControllerError::Stopped) => {
                    ControllerHandle::refused_by_stopping(&request).map_or(Answer::Close, Answer::now)
                }
                Err(ControllerError::NotServed) => Answer::Close,
            },
        }
    }
}

impl Dispatch for ControllerDispatch {
    fn api_versions(&self) -> &[ApiVersionRange] {
        &self.versions
    }

    fn dispatch(self: Arc<Self>, context: RequestContext, request: Request) -> DispatchFuture {
        Box::pin(async move { self.answer(context, request).await })
    }
}
