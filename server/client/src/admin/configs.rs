//! Configurations of topics, brokers and groups.

use model::{BrokerId, GroupId, TopicName};
use protocol::messages::describe_configs_request::{DescribeConfigsRequest, DescribeConfigsResource};
use protocol::messages::describe_configs_response::DescribeConfigsResourceResult;
use protocol::messages::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig, IncrementalAlterConfigsRequest,
};
use protocol::{ApiKey, Text};

use super::answer_of;
use crate::{CallContext, Client, Error, Target};

/// Whose configuration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConfigResource {
    Topic(TopicName),
    Broker(BrokerId),
    /// What holds for every broker that has no value of its own.
    BrokerDefault,
    Group(GroupId),
}

impl ConfigResource {
    fn wire(&self) -> (i8, Text) {
        match self {
            ConfigResource::Topic(name) => (2, Text::from(name.as_str())),
            ConfigResource::Broker(id) => (4, Text::from(id.to_string())),
            ConfigResource::BrokerDefault => (4, Text::default()),
            ConfigResource::Group(id) => (32, Text::from(id.as_str())),
        }
    }

    /// A broker answers for itself; the rest is known to all.
    fn described_by(&self) -> Target {
        match self {
            ConfigResource::Broker(id) => Target::Broker(*id),
            _ => Target::AnyBroker,
        }
    }

    fn shown(&self) -> String {
        match self {
            ConfigResource::Topic(name) => format!("topic {name}"),
            ConfigResource::Broker(id) => format!("broker {id}"),
            ConfigResource::BrokerDefault => "all brokers".to_owned(),
            ConfigResource::Group(id) => format!("group {id}"),
        }
    }
}

/// Where a value comes from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ConfigSource {
    Topic,
    /// Set for one broker while it runs.
    DynamicBroker,
    /// Set for all brokers while they run.
    DynamicBrokerDefault,
    /// From the broker's file.
    StaticBroker,
    Default,
    DynamicBrokerLogger,
    ClientMetrics,
    Group,
    /// A source that this release does not know.
    Unknown,
}

impl ConfigSource {
    pub(crate) fn from_wire(code: i8) -> Self {
        match code {
            1 => ConfigSource::Topic,
            2 => ConfigSource::DynamicBroker,
            3 => ConfigSource::DynamicBrokerDefault,
            4 => ConfigSource::StaticBroker,
            5 => ConfigSource::Default,
            6 => ConfigSource::DynamicBrokerLogger,
            7 => ConfigSource::ClientMetrics,
            8 => ConfigSource::Group,
            _ => ConfigSource::Unknown,
        }
    }

    /// Kafka's name, as in `DYNAMIC_TOPIC_CONFIG`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ConfigSource::Topic => "DYNAMIC_TOPIC_CONFIG",
            ConfigSource::DynamicBroker => "DYNAMIC_BROKER_CONFIG",
            ConfigSource::DynamicBrokerDefault => "DYNAMIC_DEFAULT_BROKER_CONFIG",
            ConfigSource::StaticBroker => "STATIC_BROKER_CONFIG",
            ConfigSource::Default => "DEFAULT_CONFIG",
            ConfigSource::DynamicBrokerLogger => "DYNAMIC_BROKER_LOGGER_CONFIG",
            ConfigSource::ClientMetrics => "DYNAMIC_CLIENT_METRICS_CONFIG",
            ConfigSource::Group => "DYNAMIC_GROUP_CONFIG",
            ConfigSource::Unknown => "UNKNOWN",
        }
    }
}

/// What kind of value a key takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConfigType {
    Boolean,
    String,
    Int,
    Short,
    Long,
    Double,
    List,
    Class,
    Password,
    Unknown,
}

impl ConfigType {
    fn from_wire(code: i8) -> Self {
        match code {
            1 => ConfigType::Boolean,
            2 => ConfigType::String,
            3 => ConfigType::Int,
            4 => ConfigType::Short,
            5 => ConfigType::Long,
            6 => ConfigType::Double,
            7 => ConfigType::List,
            8 => ConfigType::Class,
            9 => ConfigType::Password,
            _ => ConfigType::Unknown,
        }
    }
}

/// A key, its value and where that comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigEntry {
    pub name: String,
    /// `None` if there is none, or it is secret.
    pub value: Option<String>,
    pub source: ConfigSource,
    pub read_only: bool,
    pub sensitive: bool,
    pub kind: ConfigType,
    /// All values that were looked at, the one in force first.
    pub synonyms: Vec<ConfigSynonym>,
    pub documentation: Option<String>,
}

/// A value that holds where no stronger one is set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigSynonym {
    pub name: String,
    pub value: Option<String>,
    pub source: ConfigSource,
}

/// A change to one key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConfigChange {
    Set(String, String),
    /// Back to what holds without it.
    Unset(String),
    /// Adds to a list.
    Append(String, String),
    /// Takes out of a list.
    Subtract(String, String),
}

impl ConfigChange {
    fn wire(&self) -> AlterableConfig {
        let (name, config_operation, value) = match self {
            ConfigChange::Set(name, value) => (name, 0, Some(value)),
            ConfigChange::Unset(name) => (name, 1, None),
            ConfigChange::Append(name, value) => (name, 2, Some(value)),
            ConfigChange::Subtract(name, value) => (name, 3, Some(value)),
        };
        AlterableConfig {
            name: Text::from(name),
            config_operation,
            value: value.map(Text::from),
            ..Default::default()
        }
    }
}

impl Client {
    /// The configuration of a topic, broker or group: all keys, or those named. By name.
    ///
    /// # Errors
    /// UNKNOWN_TOPIC_OR_PARTITION and so on, and those of [`Client::call`].
    pub async fn describe_configs(
        &self,
        context: &CallContext,
        resource: &ConfigResource,
        keys: Option<&[String]>,
    ) -> Result<Vec<ConfigEntry>, Error> {
        let (resource_type, resource_name) = resource.wire();
        let wanted = DescribeConfigsResource {
            resource_type,
            resource_name,
            configuration_keys: keys.map(|keys| keys.iter().map(Text::from).collect()),
            ..Default::default()
        };
        let request = DescribeConfigsRequest {
            resources: vec![wanted],
            include_synonyms: true,
            include_documentation: true,
            ..Default::default()
        };
        self.administer(context, resource.described_by(), request, |response| {
            let response = answer_of!(response, DescribeConfigs);
            let row = response
                .results
                .first()
                .ok_or_else(|| lacking(ApiKey::DescribeConfigs, resource))?;
            Error::check(row.error_code, row.error_message.as_deref(), || {
                format!("describing the configuration of {}", resource.shown())
            })?;
            let mut entries: Vec<ConfigEntry> = row.configs.iter().map(entry).collect();
            entries.sort_by(|one, other| one.name.cmp(&other.name));
            Ok(entries)
        })
        .await
    }

    /// Changes some keys and leaves the others as they are; all changes are made or none.
    ///
    /// # Errors
    /// INVALID_CONFIG and so on, and those of [`Client::call`].
    pub async fn alter_configs(
        &self,
        context: &CallContext,
        resource: &ConfigResource,
        changes: &[ConfigChange],
        validate_only: bool,
    ) -> Result<(), Error> {
        let (resource_type, resource_name) = resource.wire();
        let altered = AlterConfigsResource {
            resource_type,
            resource_name,
            configs: changes.iter().map(ConfigChange::wire).collect(),
            ..Default::default()
        };
        let request = IncrementalAlterConfigsRequest {
            resources: vec![altered],
            validate_only,
            ..Default::default()
        };
        let target = match resource {
            ConfigResource::Broker(id) => Target::Broker(*id),
            _ => Target::Controller,
        };
        self.administer(context, target, request, |response| {
            let response = answer_of!(response, IncrementalAlterConfigs);
            let row = response
                .responses
                .first()
                .ok_or_else(|| lacking(ApiKey::IncrementalAlterConfigs, resource))?;
            Error::check(row.error_code, row.error_message.as_deref(), || {
                format!("changing the configuration of {}", resource.shown())
            })
        })
        .await
    }
}

fn lacking(api_key: ApiKey, resource: &ConfigResource) -> Error {
    Error::MalformedAnswer {
        api_key,
        lacking: resource.shown(),
    }
}

fn entry(row: &DescribeConfigsResourceResult) -> ConfigEntry {
    let owned = |text: &Option<Text>| text.as_ref().map(ToString::to_string);
    ConfigEntry {
        name: row.name.to_string(),
        value: owned(&row.value),
        source: ConfigSource::from_wire(row.config_source),
        read_only: row.read_only,
        sensitive: row.is_sensitive,
        kind: ConfigType::from_wire(row.config_type),
        synonyms: row
            .synonyms
            .iter()
            .map(|synonym| ConfigSynonym {
                name: synonym.name.to_string(),
                value: owned(&synonym.value),
                source: ConfigSource::from_wire(synonym.source),
            })
            .collect(),
        documentation: owned(&row.documentation),
    }
}
