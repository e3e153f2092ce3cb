//! DescribeConfigs, versions 1–4: every key of topics, of this broker, of groups and of client metrics, with the value
//! in effect, its source and synonyms (KIP-133, KIP-226, KIP-569).

use std::ops::RangeInclusive;
use std::sync::Arc;

use metadata::config_keys::{ConfigEntry, Configs, Described, describe};
use metadata::image::{ConfigResource, ConfigResourceType};
use model::{ErrorCode, TopicName};
use network::Answer;
use protocol::Text;
use protocol::messages::describe_configs_request::{DescribeConfigsRequest, DescribeConfigsResource};
use protocol::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResponse, DescribeConfigsResult, DescribeConfigsSynonym,
};

use crate::errors::Refusal;
use crate::node::{Broker, View, texts};

pub(crate) const VERSIONS: RangeInclusive<i16> = 1..=4;

pub(crate) fn handle(broker: &Arc<Broker>, request: &DescribeConfigsRequest) -> Answer {
    let view = broker.view();
    let results = request.resources.iter().map(|resource| {
        let (code, message, entries) = match entries(broker, &view, resource) {
            Ok(entries) => (ErrorCode::None, None, entries),
            Err(refusal) => (refusal.code, refusal.message, Vec::new()),
        };
        DescribeConfigsResult {
            error_code: code.code(),
            error_message: message.map(Text::from),
            resource_type: resource.resource_type,
            resource_name: resource.resource_name.clone(),
            configs: entries.into_iter().map(|entry| render(entry, request)).collect(),
            ..Default::default()
        }
    });
    Answer::now(DescribeConfigsResponse {
        results: results.collect(),
        ..Default::default()
    })
}

fn entries(broker: &Arc<Broker>, view: &View, resource: &DescribeConfigsResource) -> Result<Vec<ConfigEntry>, Refusal> {
    let unknown = || {
        let message = format!("resource type {} has no configuration here", resource.resource_type);
        Refusal::new(ErrorCode::InvalidRequest, message)
    };
    let kind = ConfigResourceType::from_wire(resource.resource_type).ok_or_else(unknown)?;
    let name = &resource.resource_name;
    let own = || {
        texts(view.image.configs.of(&ConfigResource {
            kind,
            name: name.clone(),
        }))
    };
    let wanted: Option<Vec<&str>> = resource
        .configuration_keys
        .as_ref()
        .map(|keys| keys.iter().map(|key| &**key).collect());
    let described = |described: Described<'_>| describe(described, &broker.configs(view), wanted.as_deref());
    match kind {
        ConfigResourceType::Topic => {
            check_topic(view, name)?;
            let overrides: Configs = own();
            Ok(described(Described::Topic(&overrides)))
        }
        ConfigResourceType::Broker if name.is_empty() => Ok(described(Described::BrokerDefaults)),
        ConfigResourceType::Broker => {
            let id = broker.id().to_string();
            if **name != *id {
                let message = format!("this is broker {id}: its configuration, or with an empty name that of all");
                return Err(Refusal::new(ErrorCode::InvalidRequest, message));
            }
            Ok(described(Described::Broker))
        }
        ConfigResourceType::Group if name.is_empty() => {
            Err(Refusal::new(ErrorCode::InvalidRequest, "a group has a name"))
        }
        ConfigResourceType::Group => Ok(described(Described::Group(&own()))),
        ConfigResourceType::ClientMetrics if name.is_empty() => Err(Refusal::new(
            ErrorCode::InvalidRequest,
            "a subscription of client metrics has a name",
        )),
        ConfigResourceType::ClientMetrics => Ok(described(Described::ClientMetrics(&own()))),
    }
}

fn check_topic(view: &View, name: &str) -> Result<(), Refusal> {
    if view.image.topics.by_name(name).is_some() {
        return Ok(());
    }
    match TopicName::new(name) {
        Ok(_) => Err(ErrorCode::UnknownTopicOrPartition.into()),
        Err(error) => Err(Refusal::new(ErrorCode::InvalidTopicException, error.to_string())),
    }
}

fn render(entry: ConfigEntry, request: &DescribeConfigsRequest) -> DescribeConfigsResourceResult {
    let synonyms = entry.synonyms.into_iter().map(|synonym| DescribeConfigsSynonym {
        name: Text::from(synonym.name),
        value: synonym.value.map(Text::from),
        source: synonym.source.code(),
        ..Default::default()
    });
    DescribeConfigsResourceResult {
        name: Text::from(entry.name),
        value: entry.value.map(Text::from),
        read_only: entry.read_only,
        config_source: entry.source.code(),
        is_sensitive: entry.is_sensitive,
        synonyms: if request.include_synonyms {
            synonyms.collect()
        } else {
            Vec::new()
        },
        config_type: entry.kind.map_or(0, |kind| kind.code()),
        documentation: entry
            .documentation
            .filter(|_| request.include_documentation)
            .map(Text::from),
        ..Default::default()
    }
}
