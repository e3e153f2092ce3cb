//! Configuration as the controller reads it: the log's dynamic values over the node's static ones, by the rules of the
//! one table of keys.

use crate::config_keys::{BrokerConfigs, Configs};
use crate::image::{ConfigResource, ConfigResourceType, TopicImage};

use super::Controller;

impl Controller {
    /// The values that are set for a resource.
    pub(super) fn configs_of(&self, resource: &ConfigResource) -> Configs {
        let values = self.image().configs.of(resource).iter();
        values
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .collect()
    }

    /// A broker's layers. The static ones are this node's, which Kafka's controller takes for those of all brokers, too.
    pub(super) fn broker_layers(&self, broker: &str) -> BrokerConfigs {
        let of_broker = ConfigResource {
            kind: ConfigResourceType::Broker,
            name: broker.into(),
        };
        BrokerConfigs {
            static_values: self.options.static_configs.clone(),
            dynamic_default: self.configs_of(&ConfigResource::all_brokers()),
            dynamic_broker: self.configs_of(&of_broker),
        }
    }

    /// The layers that topics stand on.
    pub(super) fn own_layers(&self) -> BrokerConfigs {
        self.broker_layers(&self.options.node_id.to_string())
    }

    /// The value of a topic's key: its own, else what the brokers have, else the default.
    pub(super) fn topic_value(&self, topic: &TopicImage, layers: &BrokerConfigs, key: &str) -> Option<String> {
        let overrides = self.configs_of(&ConfigResource::topic(topic.name.as_str()));
        layers.topic_value(&overrides, key)
    }
}
