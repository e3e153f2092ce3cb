//! `GET`, `PUT` and `DELETE /api/v1/topics/{topic}/plugins`: what stands between a topic and those who use it here.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use model::{TopicId, TopicName};
use plugin::{Digest, TopicPlugins};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::parameters::{Caller, NamedTopic};
use crate::bodies::SmallBody;
use crate::coders::Role;
use crate::deployments::{Kept, Writer, blocking};
use crate::fields::{check_parameters, config, optional, parsed, shown_config};
use crate::gateway::Gateway;
use crate::problem::{Document, Problem};

/// Plugins to be bound to a topic, by the SHA-256 of their modules: one of them at least.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BindTopicPlugins<'a> {
    /// Encodes keys that are written as JSON, and shows keys that are read as JSON.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    key_serde: Option<&'a RawValue>,
    /// The same for values.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    value_serde: Option<&'a RawValue>,
    /// Chooses the partition of records that name none.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    partitioner: Option<&'a RawValue>,
    /// What all of them are set to.
    #[serde(borrow, default)]
    #[schema(value_type = Option<BTreeMap<String, String>>)]
    config: Option<&'a RawValue>,
}

/// The plugins of a topic; none of them where nothing is bound.
#[derive(Serialize, ToSchema)]
#[schema(as = TopicPlugins)]
pub(crate) struct BoundTopicPlugins {
    #[serde(skip_serializing_if = "Option::is_none")]
    key_serde: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value_serde: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    partitioner: Option<String>,
    /// Without what the modules call secret.
    config: BTreeMap<String, String>,
}

impl BindTopicPlugins<'_> {
    fn read(&self, topic: TopicId) -> Result<TopicPlugins, Problem> {
        let digest = |name, written| {
            let text: Option<String> = optional(name, written)?;
            text.map(|text| parsed(name, text.parse::<Digest>())).transpose()
        };
        let plugins = TopicPlugins {
            topic_id: Some(topic),
            key_serde: digest("key_serde", self.key_serde)?,
            value_serde: digest("value_serde", self.value_serde)?,
            partitioner: digest("partitioner", self.partitioner)?,
            config: config(self.config)?,
        };
        if roles(&plugins).is_empty() {
            let reason = "name it, `value_serde` or `partitioner`; DELETE takes all of them away";
            return Err(Problem::field("key_serde", reason));
        }
        Ok(plugins)
    }
}

impl BoundTopicPlugins {
    fn show(gateway: &Gateway, plugins: &TopicPlugins) -> Self {
        let modules: Vec<_> = roles(plugins)
            .iter()
            .filter_map(|(_, digest)| gateway.plugins.module(digest))
            .collect();
        let text = |digest: &Option<Digest>| digest.map(|digest| digest.to_string());
        BoundTopicPlugins {
            key_serde: text(&plugins.key_serde),
            value_serde: text(&plugins.value_serde),
            partitioner: text(&plugins.partitioner),
            config: shown_config(&plugins.config, modules.iter().map(|module| &module.descriptor)),
        }
    }
}

fn roles(plugins: &TopicPlugins) -> Vec<(Role, Digest)> {
    let bound = Role::ALL.into_iter().map(|role| (role, role.of(plugins)));
    bound.filter_map(|(role, digest)| Some((role, digest?))).collect()
}

/// The plugins of a topic
#[utoipa::path(
    get,
    path = "/api/v1/topics/{topic}/plugins",
    tag = "modules",
    operation_id = "describe_topic_plugins",
    params(("topic" = String, Path, description = "The topic's name")),
    responses(
        (status = 200, description = "The plugins", body = BoundTopicPlugins),
        (status = "default", description = "What went wrong", body = Document, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn describe(
    State(gateway): State<Gateway>,
    Caller(context): Caller,
    NamedTopic(topic): NamedTopic,
) -> Result<Json<BoundTopicPlugins>, Problem> {
    let bound = match gateway.plugins.topic_plugins(&topic) {
        Some(bound) => bound,
        None => {
            gateway.client.describe_topic(&context, &topic).await?;
            TopicPlugins::default().into()
        }
    };
    Ok(Json(BoundTopicPlugins::show(&gateway, &bound)))
}

/// Bind plugins to a topic
///
/// They stand in the way of records that are written and read by HTTP, in place of those that were bound before. Records
/// that are there already are read by them, too.
#[utoipa::path(
    put,
    path = "/api/v1/topics/{topic}/plugins",
    tag = "modules",
    operation_id = "bind_topic_plugins",
    params(("topic" = String, Path, description = "The topic's name")),
    request_body = BindTopicPlugins<'_>,
    responses(
        (status = 200, description = "They are bound in place of others, or were bound", body = BoundTopicPlugins),
        (status = 201, description = "They are bound", body = BoundTopicPlugins),
        (status = 422, description = "They cannot be; `field` says which", body = Document,
            content_type = "application/problem+json"),
        (status = "default", description = "What went wrong", body = Document, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn bind(
    State(gateway): State<Gateway>,
    Caller(context): Caller,
    NamedTopic(topic): NamedTopic,
    body: SmallBody,
) -> Result<(StatusCode, Json<BoundTopicPlugins>), Problem> {
    let wanted = body.parse::<BindTopicPlugins<'_>>()?;
    let described = gateway.client.describe_topic(&context, &topic).await?;
    let wanted = wanted.read(described.id)?;
    let writer = Writer::new(&gateway, &context);
    let _turn = gateway.changes.deployments.lock().await;
    writer.catch_up(Kept::Modules).await?;
    writer.catch_up(Kept::Deployments).await?;
    let current = gateway.plugins.topic_plugins(&topic);
    let status = match &current {
        Some(_) => StatusCode::OK,
        None => StatusCode::CREATED,
    };
    if current.is_none_or(|current| *current != wanted) {
        for (role, digest) in roles(&wanted) {
            check(&gateway, &topic, role, digest, &wanted.config).await?;
        }
        writer.write_topic_plugins(&topic, Some(&wanted)).await?;
    }
    Ok((status, Json(BoundTopicPlugins::show(&gateway, &wanted))))
}

/// An instance is made, so that a configuration that it refuses is told now and not by every record.
async fn check(
    gateway: &Gateway,
    topic: &TopicName,
    role: Role,
    digest: Digest,
    config: &BTreeMap<String, String>,
) -> Result<(), Problem> {
    let module = gateway.plugins.module(&digest).ok_or_else(|| {
        let detail = format!("`{}`: there is no module {digest}", role.name());
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "unknown_module", detail).of_field(role.name())
    })?;
    check_parameters(config, &module.descriptor)?;
    let (plugins, topic, config) = (gateway.plugins.clone(), topic.clone(), config.clone());
    let started = blocking(move || role.start(&*plugins, &topic, digest, config)).await?;
    started.map_err(|error| Problem::from(error).of_field(role.name()))
}

/// Take the plugins of a topic away
#[utoipa::path(
    delete,
    path = "/api/v1/topics/{topic}/plugins",
    tag = "modules",
    operation_id = "unbind_topic_plugins",
    params(("topic" = String, Path, description = "The topic's name")),
    responses(
        (status = 204, description = "None is bound"),
        (status = 404, description = "None was bound", body = Document, content_type = "application/problem+json"),
        (status = "default", description = "What went wrong", body = Document, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn unbind(
    State(gateway): State<Gateway>,
    Caller(context): Caller,
    NamedTopic(topic): NamedTopic,
) -> Result<StatusCode, Problem> {
    let writer = Writer::new(&gateway, &context);
    let _turn = gateway.changes.deployments.lock().await;
    writer.catch_up(Kept::Deployments).await?;
    if gateway.plugins.topic_plugins(&topic).is_none() {
        let detail = format!("no plugins are bound to topic {topic}");
        return Err(Problem::new(StatusCode::NOT_FOUND, "no_topic_plugins", detail));
    }
    writer.write_topic_plugins(&topic, None).await?;
    Ok(StatusCode::NO_CONTENT)
}
