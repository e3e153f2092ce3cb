//! `GET /api/v1/cluster`.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::parameters::Caller;
use crate::gateway::Gateway;
use crate::problem::{Document, Problem};

/// The cluster and its brokers.
#[derive(Serialize, ToSchema)]
pub(crate) struct Cluster {
    id: String,
    /// The broker that takes requests to the controller.
    #[schema(required)]
    controller: Option<i32>,
    brokers: Vec<Broker>,
    /// The release of the node that answers.
    version: String,
}

/// A broker, and where it listens.
#[derive(Serialize, ToSchema)]
pub(crate) struct Broker {
    id: i32,
    host: String,
    port: u16,
    #[schema(required)]
    rack: Option<String>,
}

/// The cluster and its brokers
#[utoipa::path(
    get,
    path = "/api/v1/cluster",
    tag = "cluster",
    operation_id = "describe_cluster",
    responses(
        (status = 200, description = "The cluster", body = Cluster),
        (status = "default", description = "What went wrong", body = Document, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn describe(
    State(gateway): State<Gateway>,
    Caller(context): Caller,
) -> Result<Json<Cluster>, Problem> {
    let cluster = gateway.client.describe_cluster(&context).await?;
    let brokers = cluster.brokers.into_iter().map(|node| Broker {
        id: node.id.get(),
        host: node.host,
        port: node.port,
        rack: node.rack,
    });
    Ok(Json(Cluster {
        id: cluster.id,
        controller: cluster.controller.map(|id| id.get()),
        brokers: brokers.collect(),
        version: gateway.build.version.clone(),
    }))
}
