//! DescribeCluster 0–2 of a controller: the registered controllers on the listener asked by (KIP-919).

use std::ops::RangeInclusive;

use metadata::Image;
use metadata::image::ControllerRegistration;
use model::{BrokerId, ErrorCode};
use protocol::messages::describe_cluster_request::DescribeClusterRequest;
use protocol::messages::describe_cluster_response::{DescribeClusterBroker, DescribeClusterResponse};

pub(crate) const VERSIONS: RangeInclusive<i16> = 0..=2;
const ENDPOINT_TYPE_CONTROLLER: i8 = 2;

pub(crate) fn answer(
    request: &DescribeClusterRequest,
    image: &Image,
    listener: &str,
    cluster_id: &str,
    leader: BrokerId,
) -> DescribeClusterResponse {
    if request.endpoint_type != ENDPOINT_TYPE_CONTROLLER {
        let message =
            "The request was sent to an endpoint of type CONTROLLER, but we wanted an endpoint of type BROKER";
        return DescribeClusterResponse {
            error_code: ErrorCode::MismatchedEndpointType.code(),
            error_message: Some(message.into()),
            ..DescribeClusterResponse::default()
        };
    }
    let node = |controller: &ControllerRegistration| {
        let endpoint = controller
            .endpoints
            .iter()
            .find(|endpoint| &*endpoint.name == listener)?;
        Some(DescribeClusterBroker {
            broker_id: controller.id.get(),
            host: endpoint.host.clone(),
            port: endpoint.port.into(),
            rack: None,
            ..DescribeClusterBroker::default()
        })
    };
    DescribeClusterResponse {
        endpoint_type: ENDPOINT_TYPE_CONTROLLER,
        cluster_id: cluster_id.into(),
        controller_id: leader.get(),
        brokers: image
            .cluster
            .controllers
            .values()
            .filter_map(|controller| node(controller))
            .collect(),
        ..DescribeClusterResponse::default()
    }
}
