//! Dynamic configuration as the log holds it: texts by resource and key. What they mean is decided elsewhere.

use std::collections::BTreeMap;
use std::fmt;

use model::TopicName;
use protocol::Text;
use protocol::internal_records::metadata::ConfigRecord;

use super::ReplayError;

/// What can be configured.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(i8)]
pub enum ConfigResourceType {
    Topic = 2,
    /// A broker by its id, or with the empty name all of them.
    Broker = 4,
    ClientMetrics = 16,
    Group = 32,
}

impl ConfigResourceType {
    /// `None` for a type that the log does not have.
    #[must_use]
    pub const fn from_wire(value: i8) -> Option<Self> {
        match value {
            2 => Some(ConfigResourceType::Topic),
            4 => Some(ConfigResourceType::Broker),
            16 => Some(ConfigResourceType::ClientMetrics),
            32 => Some(ConfigResourceType::Group),
            _ => None,
        }
    }

    #[must_use]
    pub const fn wire(self) -> i8 {
        self as i8
    }
}

/// One thing that has configuration.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ConfigResource {
    pub kind: ConfigResourceType,
    pub name: Text,
}

impl ConfigResource {
    #[must_use]
    pub fn topic(name: &str) -> Self {
        ConfigResource {
            kind: ConfigResourceType::Topic,
            name: name.into(),
        }
    }

    /// The defaults of all brokers.
    #[must_use]
    pub fn all_brokers() -> Self {
        ConfigResource {
            kind: ConfigResourceType::Broker,
            name: Text::new(),
        }
    }
}

impl fmt::Display for ConfigResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?}", self.kind, self.name)
    }
}

/// Values by resource; a resource without values is absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConfigsImage {
    values: BTreeMap<ConfigResource, BTreeMap<Text, Text>>,
}

impl ConfigsImage {
    /// The resource's own values; empty where it has none.
    #[must_use]
    pub fn of(&self, resource: &ConfigResource) -> &BTreeMap<Text, Text> {
        static NONE: BTreeMap<Text, Text> = BTreeMap::new();
        self.values.get(resource).unwrap_or(&NONE)
    }

    #[must_use]
    pub fn get(&self, resource: &ConfigResource, key: &str) -> Option<&Text> {
        self.of(resource).get(key)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&ConfigResource, &BTreeMap<Text, Text>)> {
        self.values.iter()
    }

    pub(super) fn set(&mut self, record: &ConfigRecord) -> Result<(), ReplayError> {
        let kind = ConfigResourceType::from_wire(record.resource_type).ok_or(ReplayError::Value {
            field: "ConfigRecord.ResourceType",
            value: record.resource_type.into(),
        })?;
        let resource = ConfigResource {
            kind,
            name: record.resource_name.clone(),
        };
        match &record.value {
            Some(value) => {
                let values = self.values.entry(resource).or_default();
                values.insert(record.name.clone(), value.clone());
            }
            None => {
                if let Some(values) = self.values.get_mut(&resource) {
                    values.remove(&record.name);
                    if values.is_empty() {
                        self.values.remove(&resource);
                    }
                }
            }
        }
        Ok(())
    }

    pub(super) fn remove_topic(&mut self, topic: &TopicName) {
        self.values.remove(&ConfigResource::topic(topic.as_str()));
    }
}
