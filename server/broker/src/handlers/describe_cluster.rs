//! DescribeCluster, versions 0–2: the cluster's id and its brokers, fenced ones from version 2 on where they are asked
//! for (KIP-1073).

use std::ops::RangeInclusive;
use std::sync::Arc;

use model::{BrokerId, ErrorCode};
use network::{Answer, RequestContext};
use protocol::Text;
use protocol::messages::describe_cluster_request::DescribeClusterRequest;
use protocol::messages::describe_cluster_response::{DescribeClusterBroker, DescribeClusterResponse};

use crate::node::Broker;

pub(crate) const VERSIONS: RangeInclusive<i16> = 0..=2;
/// What a request may ask this listener for; controllers are told on theirs (KIP-919).
const ENDPOINT_TYPE_BROKERS: i8 = 1;

pub(crate) fn handle(broker: &Arc<Broker>, context: &RequestContext, request: &DescribeClusterRequest) -> Answer {
    if request.endpoint_type != ENDPOINT_TYPE_BROKERS {
        let code = match request.endpoint_type {
            2 => ErrorCode::MismatchedEndpointType,
            _ => ErrorCode::UnsupportedEndpointType,
        };
        return Answer::now(DescribeClusterResponse {
            error_code: code.code(),
            error_message: Some("this listener tells of brokers only".into()),
            ..Default::default()
        });
    }
    let view = broker.view();
    let brokers = view
        .image
        .cluster
        .brokers
        .values()
        .filter(|registration| request.include_fenced_brokers || !registration.fenced)
        .filter_map(|registration| {
            let endpoint = registration.endpoint(&context.listener)?;
            Some(DescribeClusterBroker {
                broker_id: registration.id.get(),
                host: endpoint.host.clone(),
                port: i32::from(endpoint.port),
                rack: registration.rack.clone(),
                is_fenced: registration.fenced,
                ..Default::default()
            })
        })
        .collect();
    Answer::now(DescribeClusterResponse {
        cluster_id: Text::from(broker.cluster_id()),
        controller_id: view.live_brokers().map(|it| it.id).min().map_or(-1, BrokerId::get),
        brokers,
        cluster_authorized_operations: if request.include_cluster_authorized_operations {
            crate::handlers::CLUSTER_OPERATIONS
        } else {
            i32::MIN
        },
        ..Default::default()
    })
}
