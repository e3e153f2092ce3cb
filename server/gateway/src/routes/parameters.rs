//! What handlers take from a request beside its body, with problems in place of the framework's refusals.

use axum::extract::{FromRequestParts, Path, Query};
use axum::http::StatusCode;
use axum::http::request::Parts;
use client::CallContext;
use model::{GroupId, TopicName};
use plugin::{Digest, ProcessorName};
use serde::de::DeserializeOwned;

use crate::gateway::Gateway;
use crate::guard::Ends;
use crate::problem::Problem;

/// The query, all of whose parameters are known.
pub(crate) struct Parameters<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<Gateway> for Parameters<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, gateway: &Gateway) -> Result<Self, Problem> {
        let Query(query) = Query::from_request_parts(parts, gateway).await?;
        Ok(Parameters(query))
    }
}

/// The one part of the path that is not fixed.
pub(crate) struct Named(pub(crate) String);

impl FromRequestParts<Gateway> for Named {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, gateway: &Gateway) -> Result<Self, Problem> {
        let Path(name) = Path::from_request_parts(parts, gateway).await?;
        Ok(Named(name))
    }
}

/// The topic that the path names.
pub(crate) struct NamedTopic(pub(crate) TopicName);

impl FromRequestParts<Gateway> for NamedTopic {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, gateway: &Gateway) -> Result<Self, Problem> {
        let Named(name) = Named::from_request_parts(parts, gateway).await?;
        topic_name(&name).map(NamedTopic)
    }
}

/// The processor that the path names.
pub(crate) struct NamedProcessor(pub(crate) ProcessorName);

impl FromRequestParts<Gateway> for NamedProcessor {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, gateway: &Gateway) -> Result<Self, Problem> {
        let Named(name) = Named::from_request_parts(parts, gateway).await?;
        let name = ProcessorName::new(name);
        name.map(NamedProcessor).map_err(|error| {
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            Problem::new(status, "invalid_processor_name", error.to_string())
        })
    }
}

/// The module that the path names by its digest.
pub(crate) struct NamedModule(pub(crate) Digest);

impl FromRequestParts<Gateway> for NamedModule {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, gateway: &Gateway) -> Result<Self, Problem> {
        let Named(digest) = Named::from_request_parts(parts, gateway).await?;
        digest
            .parse()
            .map(NamedModule)
            .map_err(|error: plugin::host::DigestError| {
                Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_digest", error.to_string())
            })
    }
}

/// The group that the path names.
pub(crate) struct NamedGroup(pub(crate) GroupId);

impl FromRequestParts<Gateway> for NamedGroup {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, gateway: &Gateway) -> Result<Self, Problem> {
        let Named(name) = Named::from_request_parts(parts, gateway).await?;
        let id = GroupId::new(&name);
        id.map(NamedGroup).ok_or_else(|| Problem::invalid("a group has a name"))
    }
}

/// On whose behalf the handler calls the cluster.
pub(crate) struct Caller(pub(crate) CallContext);

impl FromRequestParts<Gateway> for Caller {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &Gateway) -> Result<Self, Self::Rejection> {
        let mut context = CallContext::anonymous();
        if let Some(ends) = parts.extensions.get::<Ends>() {
            context.client_address = ends.remote;
        }
        Ok(Caller(context))
    }
}

pub(crate) fn topic_name(name: &str) -> Result<TopicName, Problem> {
    TopicName::new(name).map_err(|error| {
        Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "invalid_topic_exception",
            error.to_string(),
        )
    })
}
