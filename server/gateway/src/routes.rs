//! Every route, once: [`documented`] is both the router and the OpenAPI document.

mod cluster;
mod configs;
mod consume;
mod docs;
mod groups;
mod modules;
mod operations;
mod outgoing;
mod parameters;
mod processor_logs;
mod processor_spec;
mod processor_status;
mod processors;
mod produce;
mod stream;
mod topic_plugins;
mod topics;

use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::MethodRouter;
use axum::{Router, middleware};
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt};
use utoipa_axum::routes;

use crate::gateway::Gateway;
use crate::guard;
use crate::openapi;
use crate::problem::Problem;

pub(crate) use processor_status::{TaskState, lag};

/// The routes and what the document says of them. A route that is added in any other way is not documented, and a test
/// finds it.
pub(crate) fn documented() -> OpenApiRouter<Gateway> {
    let routes = [
        routes!(cluster::describe),
        routes!(topics::list, topics::create),
        routes!(topics::describe, topics::delete),
        routes!(topics::add_partitions),
        routes!(configs::describe, configs::alter),
        routes!(consume::consume, produce::produce, produce::truncate),
        routes!(groups::list),
        routes!(groups::describe, groups::delete),
        routes!(modules::list, modules::upload),
        routes!(modules::describe, modules::delete),
        routes!(processors::list),
        routes!(processors::describe, processors::deploy, processors::delete),
        routes!(processors::pause),
        routes!(processors::resume),
        routes!(processor_status::status),
        routes!(processor_logs::logs),
        routes!(topic_plugins::describe, topic_plugins::bind, topic_plugins::unbind),
        routes!(operations::live),
        routes!(operations::ready),
        routes!(operations::metrics),
        routes!(docs::document),
        routes!(docs::page),
        routes!(docs::asset),
    ];
    let guarded = |router: MethodRouter<Gateway>| router.route_layer(middleware::from_fn(guard::want_content_type));
    routes
        .into_iter()
        .fold(OpenApiRouter::with_openapi(openapi::frame()), |router, routes| {
            router.routes(routes.map(guarded))
        })
}

/// The router as it is served.
pub(crate) fn router(gateway: Gateway) -> Router {
    let (router, _) = documented().split_for_parts();
    router
        .fallback(no_route)
        .layer(middleware::from_fn_with_state(gateway.clone(), guard::finish))
        .with_state(gateway)
}

async fn no_route(request: Request) -> Result<Response, Problem> {
    let detail = format!("nothing is served at {}", request.uri().path());
    Err(Problem::of_status(StatusCode::NOT_FOUND, detail))
}

#[cfg(test)]
mod tests;
