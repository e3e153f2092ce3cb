//! `GET` and `PATCH /api/v1/topics/{topic}/configs`.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use client::admin::{ConfigChange, ConfigEntry, ConfigResource, ConfigSource, ConfigType};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::parameters::{Caller, NamedTopic};
use crate::bodies::SmallBody;
use crate::gateway::Gateway;
use crate::problem::{Document, Problem};

/// A key of the configuration and the value in force.
#[derive(Serialize, ToSchema)]
pub(crate) struct Config {
    name: String,
    /// Null if there is none, or it is secret.
    #[schema(required)]
    value: Option<String>,
    /// Where the value comes from, as in `DYNAMIC_TOPIC_CONFIG` or `DEFAULT_CONFIG`.
    source: &'static str,
    /// As in `LONG`.
    #[serde(rename = "type")]
    kind: &'static str,
    read_only: bool,
    sensitive: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    documentation: Option<String>,
}

/// A topic's configuration.
#[derive(Serialize, ToSchema)]
pub(crate) struct Configs {
    configs: Vec<Config>,
}

/// Changes to a topic's configuration, all made or none.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AlterConfigs<'a> {
    /// New values by key; null takes the topic's own value away. Other keys stay as they are.
    #[serde(borrow)]
    #[schema(value_type = BTreeMap<String, serde_json::Value>)]
    configs: BTreeMap<String, &'a RawValue>,
}

/// A topic's configuration
#[utoipa::path(
    get,
    path = "/api/v1/topics/{topic}/configs",
    tag = "topics",
    operation_id = "describe_topic_configs",
    params(("topic" = String, Path, description = "The topic's name")),
    responses(
        (status = 200, description = "Every key with the value in force", body = Configs),
        (status = "default", description = "What went wrong", body = Document, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn describe(
    State(gateway): State<Gateway>,
    Caller(context): Caller,
    NamedTopic(name): NamedTopic,
) -> Result<Json<Configs>, Problem> {
    let resource = ConfigResource::Topic(name);
    let entries = gateway.client.describe_configs(&context, &resource, None).await?;
    let documented = entries.into_iter().map(|mut entry| {
        let documentation = entry.documentation.take();
        Config {
            documentation,
            ..shown(entry)
        }
    });
    Ok(Json(Configs {
        configs: documented.collect(),
    }))
}

/// Change a topic's configuration
#[utoipa::path(
    patch,
    path = "/api/v1/topics/{topic}/configs",
    tag = "topics",
    operation_id = "alter_topic_configs",
    params(("topic" = String, Path, description = "The topic's name")),
    request_body = AlterConfigs<'_>,
    responses(
        (status = 204, description = "The changes are made"),
        (status = "default", description = "What went wrong", body = Document, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn alter(
    State(gateway): State<Gateway>,
    Caller(context): Caller,
    NamedTopic(name): NamedTopic,
    body: SmallBody,
) -> Result<StatusCode, Problem> {
    let wanted: AlterConfigs<'_> = body.parse()?;
    let mut changes = Vec::new();
    for (key, value) in wanted.configs {
        changes.push(match config_text(&key, value)? {
            Some(text) => ConfigChange::Set(key, text),
            None => ConfigChange::Unset(key),
        });
    }
    let resource = ConfigResource::Topic(name);
    gateway
        .client
        .alter_configs(&context, &resource, &changes, false)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A key without its documentation.
pub(super) fn shown(entry: ConfigEntry) -> Config {
    Config {
        name: entry.name,
        value: entry.value,
        source: ConfigSource::name(entry.source),
        kind: kind_name(entry.kind),
        read_only: entry.read_only,
        sensitive: entry.sensitive,
        documentation: None,
    }
}

fn kind_name(kind: ConfigType) -> &'static str {
    match kind {
        ConfigType::Boolean => "BOOLEAN",
        ConfigType::String => "STRING",
        ConfigType::Int => "INT",
        ConfigType::Short => "SHORT",
        ConfigType::Long => "LONG",
        ConfigType::Double => "DOUBLE",
        ConfigType::List => "LIST",
        ConfigType::Class => "CLASS",
        ConfigType::Password => "PASSWORD",
        ConfigType::Unknown => "UNKNOWN",
    }
}

/// A value as Kafka takes it: a string without its quotes, a number or truth value as it is written; `None` for null.
pub(super) fn config_text(name: &str, value: &RawValue) -> Result<Option<String>, Problem> {
    let text = value.get();
    match text.as_bytes().first() {
        Some(b'"') => serde_json::from_str(text)
            .map(Some)
            .map_err(|error| Problem::invalid(format!("the value of {name} is no text: {error}"))),
        Some(b'{' | b'[') => Err(Problem::invalid(format!(
            "the value of {name} has to be a string, a number or a truth value"
        ))),
        _ if text == "null" => Ok(None),
        _ => Ok(Some(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configuration_values_may_be_written_as_what_they_are() {
        let text = |json: &str| config_text("k", serde_json::from_str(json).unwrap());
        assert_eq!(text("\"a,b\""), Ok(Some("a,b".to_owned())));
        assert_eq!(text("3600000"), Ok(Some("3600000".to_owned())));
        assert_eq!(text("0.50"), Ok(Some("0.50".to_owned())));
        assert_eq!(text("true"), Ok(Some("true".to_owned())));
        assert_eq!(text("null"), Ok(None));
        assert!(text("[1]").is_err() && text("{}").is_err());
    }
}
