//! What AlterConfigs and IncrementalAlterConfigs do to a resource's values (KIP-339): operations in, changed values out.
//!
//! Nothing is applied here: the caller writes what comes out as records, and the image replays them. Whether the
//! resource exists, and who may change it, the caller has asked before.

use super::broker_rules::check_local_retention;
use super::definition::{KeyDefinition, Kind, UpdateMode};
use super::error::{AlterError, ConfigError};
use super::group_checks::{MetricsError, check_client_metrics, check_group};
use super::keys::{Scope, lookup};
use super::layers::{BrokerConfigs, Configs};
use super::names;
use super::{BrokerSettings, topic_settings};
use std::collections::BTreeSet;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    Set,
    /// Back to what holds without it.
    Delete,
    /// To a list, entries that are not in it yet.
    Append,
    /// From a list.
    Subtract,
}

impl Operation {
    /// By the number on the wire.
    #[must_use]
    pub const fn from_code(code: i8) -> Option<Self> {
        match code {
            0 => Some(Operation::Set),
            1 => Some(Operation::Delete),
            2 => Some(Operation::Append),
            3 => Some(Operation::Subtract),
            _ => None,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Operation::Set => "SET",
            Operation::Delete => "DELETE",
            Operation::Append => "APPEND",
            Operation::Subtract => "SUBTRACT",
        }
    }
}

/// One operation on one key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change<'a> {
    pub name: &'a str,
    pub operation: Operation,
    /// Only a deletion may come without.
    pub value: Option<&'a str>,
}

/// The kind of resource that changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    Topic,
    /// The broker whose layers are given.
    Broker,
    /// The defaults of all brokers; the broker's own layers are what they are checked with.
    BrokerDefaults,
    Group,
    ClientMetrics,
}

impl Target {
    const fn scope(self) -> Scope {
        match self {
            Target::Topic => Scope::Topic,
            Target::Broker | Target::BrokerDefaults => Scope::Broker,
            Target::Group => Scope::Group,
            Target::ClientMetrics => Scope::ClientMetrics,
        }
    }

    /// Kafka appends to the lists of topics and brokers, not to those of groups and client metrics.
    const fn has_lists(self) -> bool {
        matches!(self.scope(), Scope::Topic | Scope::Broker)
    }

    /// Whether a resource may have that name at all.
    ///
    /// # Errors
    /// If it has none where one is needed.
    pub fn check_name(self, name: &str) -> Result<(), AlterError> {
        match self {
            Target::Group if name.is_empty() => Err(AlterError::Request(
                "Default group resources are not allowed.".to_owned(),
            )),
            Target::ClientMetrics if name.is_empty() => {
                Err(AlterError::Request("Subscription name can't be empty".to_owned()))
            }
            _ => Ok(()),
        }
    }
}

/// A new value of a key, `None` where it is deleted.
pub type Changed = (String, Option<String>);

/// The values that the operations change, by ascending name.
///
/// # Errors
/// If the operations contradict each other or what they lead to cannot stand.
pub fn alter(
    target: Target,
    current: &Configs,
    changes: &[Change<'_>],
    broker: &BrokerConfigs,
) -> Result<Vec<Changed>, AlterError> {
    check_request(changes)?;
    let mut next = current.clone();
    for change in changes {
        match applied(target, current, change)? {
            Some(value) => next.insert(change.name.to_owned(), value),
            None => next.remove(change.name),
        };
    }
    check_names(target, changes)?;
    check(target, &next, broker)?;
    let mut changed: Vec<Changed> = changes
        .iter()
        .map(|change| (change.name.to_owned(), next.get(change.name).cloned()))
        .filter(|(name, value)| target.scope() == Scope::Broker || current.get(name) != value.as_ref())
        .collect();
    changed.sort();
    Ok(changed)
}

/// The values that change when `next` takes the place of all of `current` (the older AlterConfigs).
///
/// # Errors
/// If `next` cannot stand.
pub fn replace(
    target: Target,
    current: &Configs,
    next: &[(&str, Option<&str>)],
    broker: &BrokerConfigs,
) -> Result<Vec<Changed>, AlterError> {
    let set = next.iter().map(|(name, value)| Change {
        name,
        operation: Operation::Set,
        value: *value,
    });
    let gone = current.keys().filter(|name| !next.iter().any(|(each, _)| each == name));
    let deleted = gone.map(|name| Change {
        name,
        operation: Operation::Delete,
        value: None,
    });
    let changes: Vec<Change<'_>> = set.chain(deleted).collect();
    alter(target, current, &changes, broker)
}

/// Whether a topic may be created with these overrides, or have them.
///
/// # Errors
/// The first name or value that cannot stand, or the rule between two that is broken.
pub fn check_topic(overrides: &Configs, broker: &BrokerConfigs) -> Result<(), AlterError> {
    if let Some(name) = overrides
        .keys()
        .find(|name| lookup(Scope::Topic, name).is_none_or(KeyDefinition::is_own))
    {
        return Err(names::unknown(Scope::Topic, name).into());
    }
    check(Target::Topic, overrides, broker)
}

/// Whether a broker may run with these values; that every name is known is not asked.
///
/// # Errors
/// The first value or rule that does not hold.
pub fn check_broker(configs: &BrokerConfigs) -> Result<(), ConfigError> {
    BrokerSettings::resolve(configs).map(|_| ())
}

/// Each key once, each with a value but for deletions.
fn check_request(changes: &[Change<'_>]) -> Result<(), AlterError> {
    let mut seen = BTreeSet::new();
    if !changes.iter().all(|change| seen.insert(change.name)) {
        return Err(AlterError::Request("Error due to duplicate config keys".to_owned()));
    }
    let without: Vec<&str> = changes
        .iter()
        .filter(|change| change.operation != Operation::Delete && change.value.is_none())
        .map(|change| change.name)
        .collect();
    if without.is_empty() {
        return Ok(());
    }
    Err(AlterError::Request(format!(
        "Null value not supported for : {}",
        without.join(", ")
    )))
}

/// The value after the operation.
fn applied(target: Target, current: &Configs, change: &Change<'_>) -> Result<Option<String>, AlterError> {
    let value = change.value.unwrap_or_default();
    let joins = match change.operation {
        Operation::Set => return Ok(Some(value.to_owned())),
        Operation::Delete => return Ok(None),
        Operation::Append => true,
        Operation::Subtract => false,
    };
    let key = lookup(target.scope(), change.name);
    let is_list = key.is_some_and(|key| key.kind == Kind::List);
    if !is_list || !target.has_lists() {
        return Err(no_list(target, key.is_some(), change));
    }
    // What the table says counts as the list's first content, not what the broker's file says: as with Kafka.
    let text = current.get(change.name).map(String::as_str);
    let text = text.or(key.and_then(|key| key.default_text())).unwrap_or_default();
    let mut entries: Vec<&str> = text
        .split(',')
        .map(str::trim)
        .filter(|_| !text.trim().is_empty())
        .collect();
    for entry in value.split(',').map(str::trim) {
        if !joins {
            entries.retain(|each| *each != entry);
        } else if !entries.contains(&entry) {
            entries.push(entry);
        }
    }
    Ok(Some(entries.join(",")))
}

fn no_list(target: Target, is_known: bool, change: &Change<'_>) -> AlterError {
    let name = change.name;
    AlterError::Config(match (target.scope(), is_known) {
        (Scope::Broker, false) => format!("Unknown config name: {name}"),
        (Scope::Broker, true) => format!(
            "Config value {} is not allowed for config key: {name}",
            change.operation.name().to_ascii_lowercase()
        ),
        _ => format!(
            "Can't {} to key {name} because its type is not LIST.",
            change.operation.name()
        ),
    })
}

/// Whether the names that get a value are known. Kafka lets any name of a broker pass; we only those that are near
/// nothing, since a slip of the hand would be stored for good.
fn check_names(target: Target, changes: &[Change<'_>]) -> Result<(), AlterError> {
    let scope = target.scope();
    let given = changes.iter().filter(|change| change.operation != Operation::Delete);
    let mut unknown: Vec<&str> = given
        .map(|change| change.name)
        .filter(|name| match scope {
            Scope::Broker => names::broker_key(name).is_none() && names::hint(scope, name).is_some(),
            Scope::ClientMetrics => false,
            Scope::Topic | Scope::Group => lookup(scope, name).is_none_or(KeyDefinition::is_own),
        })
        .collect();
    unknown.sort_unstable();
    match unknown.first() {
        None => Ok(()),
        Some(name) if scope == Scope::Broker => Err(AlterError::Request(names::unknown(scope, name).to_string())),
        Some(name) => Err(names::unknown(scope, name).into()),
    }
}

fn check(target: Target, next: &Configs, broker: &BrokerConfigs) -> Result<(), AlterError> {
    match target {
        Target::Topic => Ok(check_topic_values(next, broker)?),
        Target::Group => Ok(check_group(next, &broker.values())?),
        Target::ClientMetrics => check_client_metrics(next).map_err(|error| match error {
            MetricsError::Request(message) => AlterError::Request(message),
            MetricsError::Config(message) => AlterError::Config(message),
        }),
        Target::Broker => {
            check_dynamic(next, false)?;
            check_layers(BrokerConfigs {
                dynamic_broker: next.clone(),
                ..broker.clone()
            })
        }
        Target::BrokerDefaults => {
            check_dynamic(next, true)?;
            check_layers(BrokerConfigs {
                dynamic_default: next.clone(),
                ..broker.clone()
            })
        }
    }
}

fn check_layers(layers: BrokerConfigs) -> Result<(), AlterError> {
    check_broker(&layers)
        .and_then(|()| check_local_retention(&layers.values()))
        .map_err(|error| AlterError::Request(error.to_string()))
}

fn check_topic_values(overrides: &Configs, broker: &BrokerConfigs) -> Result<(), ConfigError> {
    for (name, text) in overrides {
        if let Some(key) = lookup(Scope::Topic, name) {
            key.parse(text)?;
        }
    }
    let values = broker.values();
    let defaults = topic_settings::default_texts(&values)?;
    let number = |name: &str| {
        let text = overrides.get(name).or_else(|| defaults.get(name));
        text.and_then(|text| text.trim().parse::<i64>().ok()).unwrap_or(-1)
    };
    let (least, most) = (number("min.compaction.lag.ms"), number("max.compaction.lag.ms"));
    if least > most {
        return Err(ConfigError::plain(format!(
            "conflict topic config setting min.compaction.lag.ms ({least}) > max.compaction.lag.ms ({most})"
        )));
    }
    let is_remote = overrides
        .get("remote.storage.enable")
        .is_some_and(|text| text.trim().eq_ignore_ascii_case("true"));
    if !is_remote {
        return Ok(());
    }
    if !values.boolean("remote.log.storage.system.enable")? {
        return Err(ConfigError::plain(
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage."
                .to_owned(),
        ));
    }
    for (local, whole) in [
        ("local.retention.ms", "retention.ms"),
        ("local.retention.bytes", "retention.bytes"),
    ] {
        let (value, limit) = (number(local), number(whole));
        if value == -2 || limit == -1 {
            continue;
        }
        if value == -1 || value > limit {
            let reason = if value == -1 {
                format!("Value must not be -1 as {whole} value is set as {limit}.")
            } else {
                format!("Value must not be more than property: {whole} value.")
            };
            return Err(ConfigError::invalid(local, &value.to_string(), reason));
        }
    }
    Ok(())
}

/// The TLS keys that may change while the broker runs, but only for one listener.
const SECURITY_KEYS: &[&str] = &[
    "ssl.key.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.type",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.type",
];

/// The keys that may be set for one listener of all brokers.
const CLUSTER_LISTENER_KEYS: &[&str] = &["max.connections", "max.connection.creation.rate", "num.network.threads"];

/// Whether the values of a dynamic layer may be there at all, and are of their types.
fn check_dynamic(layer: &Configs, is_for_all: bool) -> Result<(), AlterError> {
    let refuse = |message: &str, found: Vec<&String>| {
        if found.is_empty() {
            return Ok(());
        }
        let found: Vec<&str> = found.into_iter().map(String::as_str).collect();
        Err(AlterError::Request(format!("{message}: [{}]", found.join(", "))))
    };
    let mode = |name: &str| lookup(Scope::Broker, name).map(|key| key.update);
    refuse(
        "Cannot update these configs dynamically",
        layer
            .keys()
            .filter(|name| mode(name) == Some(UpdateMode::ReadOnly))
            .collect(),
    )?;
    refuse(
        "These security configs can be dynamically updated only per-listener using the listener prefix",
        layer
            .keys()
            .filter(|name| SECURITY_KEYS.contains(&name.as_str()))
            .collect(),
    )?;
    for (name, text) in layer {
        if let Some((key, _)) = names::broker_key(name) {
            key.parse_named(name, text)
                .map_err(|error| AlterError::Request(error.to_string()))?;
        }
    }
    let is_of_one_broker = |name: &String| match names::without_listener(name) {
        Some((_, base)) => !CLUSTER_LISTENER_KEYS.contains(&base),
        None => mode(name) == Some(UpdateMode::PerBroker),
    };
    if is_for_all {
        refuse(
            "Cannot update these configs at default cluster level, broker id must be specified",
            layer.keys().filter(|name| is_of_one_broker(name)).collect(),
        )?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "alter/tests.rs"]
mod tests;
