//! Every configuration key in one typed table, and what follows from it: values, defaults, descriptions, changes.
//!
//! The keys, types, defaults and checks are those of Apache Kafka 4.4.0; our own begin with `millstream.`. Texts come in
//! (a properties file, the environment, the metadata log), typed settings go out: nothing outside this module looks up
//! a key by its name to act on it.

mod alter;
mod broker_rules;
mod broker_settings;
mod check;
mod compatibility;
mod definition;
mod describe;
mod error;
mod group_checks;
mod keys;
mod layers;
mod listeners;
mod names;
mod server_properties;
mod topic_settings;
mod value;

pub use alter::{Change, Changed, Operation, Target, alter, check_broker, check_topic, replace};
pub use broker_settings::{
    BrokerHeartbeatSettings, BrokerSettings, ConnectionSettings, FetchSettings, GroupSettings, InternalTopicSettings,
    LogSettings, NodeRoles, QuorumSettings, ReplicationSettings, TransactionSettings, Voter,
};
pub use check::Check;
pub use compatibility::compatibility_table;
pub use definition::{DefaultValue, Importance, KeyDefinition, Kind, Standing, UpdateMode};
pub use describe::{ConfigEntry, ConfigSource, ConfigSynonym, Described, describe};
pub use error::{AlterError, ConfigError};
pub use keys::{Scope, all, lookup};
pub use layers::{BrokerConfigs, Configs};
pub use listeners::{Address, Endpoint, Listener, ListenerSettings, SecurityProtocol};
pub use names::{Notice, hint};
pub use server_properties::{Loaded, ServerProperties, Setting};
pub use topic_settings::{
    AckDurability, CleanupPolicy, CompressionType, ProduceValidation, TimestampType, TopicSettings,
};
pub use value::{Value, parse};
