//! Health and metrics.

use axum::Json;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, StatusCode};
use serde::Serialize;
use utoipa::ToSchema;

use crate::gateway::{Gateway, Readiness};
use crate::metrics::Metrics;
use crate::problem::{Document, Problem};

const PROMETHEUS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// How the node is.
#[derive(Serialize, ToSchema)]
pub(crate) struct Health {
    /// `live` or `ready`.
    status: &'static str,
}

/// Whether the process runs
#[utoipa::path(
    get,
    path = "/health/live",
    tag = "operations",
    operation_id = "health_live",
    responses((status = 200, description = "It runs", body = Health))
)]
pub(crate) async fn live() -> Json<Health> {
    Json(Health { status: "live" })
}

/// Whether the node serves
#[utoipa::path(
    get,
    path = "/health/ready",
    tag = "operations",
    operation_id = "health_ready",
    responses(
        (status = 200, description = "It serves", body = Health),
        (status = 503, description = "It does not serve yet, or no longer", body = Document,
            content_type = "application/problem+json"),
    )
)]
pub(crate) async fn ready(State(gateway): State<Gateway>) -> Result<Json<Health>, Problem> {
    let detail = match &*gateway.readiness.borrow() {
        Readiness::Ready => return Ok(Json(Health { status: "ready" })),
        Readiness::Starting(awaited) => format!("starting: {awaited}"),
        Readiness::Stopping => "stopping".to_owned(),
    };
    Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", detail).retryable())
}

/// Metrics in Prometheus' text form
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "operations",
    operation_id = "metrics",
    responses((status = 200, description = "Metrics", body = String, content_type = "text/plain"))
)]
pub(crate) async fn metrics(State(gateway): State<Gateway>) -> ([(HeaderName, &'static str); 1], String) {
    ([(CONTENT_TYPE, PROMETHEUS_TEXT)], Metrics::page(&gateway))
}
