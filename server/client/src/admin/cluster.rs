//! The cluster as a whole.

use model::BrokerId;
use protocol::messages::describe_cluster_request::DescribeClusterRequest;

use super::answer_of;
use crate::{CallContext, Client, Error, Node, Target};

/// Who belongs to the cluster.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cluster {
    pub id: String,
    /// The broker that requests to the controller go to.
    pub controller: Option<BrokerId>,
    /// In the order of their ids.
    pub brokers: Vec<Node>,
}

impl Client {
    /// # Errors
    /// Those of [`Client::call`], and what the broker refuses.
    pub async fn describe_cluster(&self, context: &CallContext) -> Result<Cluster, Error> {
        let request = DescribeClusterRequest::default();
        self.administer(context, Target::AnyBroker, request, |response| {
            let response = answer_of!(response, DescribeCluster);
            Error::check(response.error_code, response.error_message.as_deref(), || {
                "describing the cluster".to_owned()
            })?;
            let mut brokers: Vec<Node> = response
                .brokers
                .iter()
                .filter_map(|row| {
                    Some(Node {
                        id: BrokerId::from_wire(row.broker_id)?,
                        host: row.host.to_string(),
                        port: u16::try_from(row.port).ok()?,
                        rack: row.rack.as_ref().map(ToString::to_string),
                    })
                })
                .collect();
            brokers.sort_by_key(|node| node.id);
            Ok(Cluster {
                id: response.cluster_id.to_string(),
                controller: BrokerId::from_wire(response.controller_id),
                brokers,
            })
        })
        .await
    }
}
