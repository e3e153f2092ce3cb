//! What DescribeConfigs answers: every key of a resource with the value in effect, where it comes from, and all the
//! places where it could come from (KIP-226, KIP-569).

use super::definition::{DefaultValue, KeyDefinition, Kind};
use super::group_checks;
use super::keys::{Scope, all, lookup};
use super::layers::{BrokerConfigs, BrokerValues, Configs, broker_chain};
use super::names;
use super::topic_settings;

/// Where a value comes from. The number is the one on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConfigSource {
    DynamicTopic,
    DynamicBroker,
    DynamicDefaultBroker,
    StaticBroker,
    Default,
    ClientMetrics,
    Group,
}

impl ConfigSource {
    #[must_use]
    pub const fn code(self) -> i8 {
        match self {
            ConfigSource::DynamicTopic => 1,
            ConfigSource::DynamicBroker => 2,
            ConfigSource::DynamicDefaultBroker => 3,
            ConfigSource::StaticBroker => 4,
            ConfigSource::Default => 5,
            ConfigSource::ClientMetrics => 7,
            ConfigSource::Group => 8,
        }
    }
}

/// One place where a value could come from, under the name that it has there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigSynonym {
    pub name: String,
    /// `None` if it may not be shown.
    pub value: Option<String>,
    pub source: ConfigSource,
}

/// One key of a resource.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigEntry {
    pub name: String,
    /// `None` if there is none or it may not be shown.
    pub value: Option<String>,
    pub source: ConfigSource,
    pub read_only: bool,
    pub is_sensitive: bool,
    /// The strongest first; the answer carries them only if it was asked to.
    pub synonyms: Vec<ConfigSynonym>,
    /// `None` for a key that nobody knows.
    pub kind: Option<Kind>,
    pub documentation: Option<&'static str>,
}

/// A resource whose keys are described, with what was set on it.
#[derive(Clone, Copy, Debug)]
pub enum Described<'a> {
    Topic(&'a Configs),
    /// The broker whose layers are given.
    Broker,
    /// The defaults of all brokers: only what was set there.
    BrokerDefaults,
    Group(&'a Configs),
    ClientMetrics(&'a Configs),
}

/// The entries of a resource by ascending name; `names` keeps those that are in it, an empty list keeps all.
#[must_use]
pub fn describe(resource: Described<'_>, broker: &BrokerConfigs, names: Option<&[&str]>) -> Vec<ConfigEntry> {
    let mut entries = match resource {
        Described::Topic(overrides) => topic_entries(overrides, broker),
        Described::Broker => broker_entries(broker),
        Described::BrokerDefaults => broker_default_entries(broker),
        Described::Group(overrides) => group_entries(overrides, broker),
        Described::ClientMetrics(overrides) => client_metrics_entries(overrides),
    };
    if let Some(names) = names.filter(|names| !names.is_empty()) {
        entries.retain(|entry| names.contains(&entry.name.as_str()));
    }
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    entries
}

fn topic_entries(overrides: &Configs, broker: &BrokerConfigs) -> Vec<ConfigEntry> {
    let values = broker.values();
    let defaults = topic_settings::default_texts(&values).unwrap_or_default();
    let known = shown_keys(Scope::Topic, overrides).map(|key| {
        let mut synonyms = match key.synonyms.first() {
            Some(first) => broker_synonyms(first.name, key.is_sensitive(), broker),
            None => Vec::new(),
        };
        let text = overrides.get(key.name).or_else(|| defaults.get(key.name));
        let value = text.map(|text| key.canonical(text)).or_else(|| default_value(key));
        if overrides.contains_key(key.name) {
            synonyms.insert(0, own_synonym(key.name, value.clone(), ConfigSource::DynamicTopic));
        }
        entry(key, value, synonyms, false)
    });
    known
        .chain(unknown_entries(Scope::Topic, overrides, ConfigSource::DynamicTopic))
        .collect()
}

fn broker_entries(broker: &BrokerConfigs) -> Vec<ConfigEntry> {
    let values = broker.values();
    let texts = values.texts();
    // The keys that only exist when they are set: listener's prefixes, quotas, and names that nobody knows.
    let others = texts.keys().filter(|name| lookup(Scope::Broker, name).is_none());
    let described = |name: &str| {
        let key = names::broker_key(name).map(|(key, _)| key);
        let is_sensitive = key.is_none_or(KeyDefinition::is_sensitive);
        let synonyms = broker_synonyms(name, is_sensitive, broker);
        let source = synonyms.first().map_or(ConfigSource::Default, |first| first.source);
        let text = texts.get(name).map(|text| text.trim().to_owned());
        let value = match key {
            Some(key) => text.map(|text| key.canonical(&text)).or_else(|| default_value(key)),
            None => text,
        };
        ConfigEntry {
            name: name.to_owned(),
            value: value.filter(|_| !is_sensitive),
            source,
            read_only: !is_dynamic(name),
            is_sensitive,
            synonyms,
            kind: key.map(|key| key.kind),
            documentation: key.map(|key| key.documentation),
        }
    };
    let known =
        shown_keys(Scope::Broker, texts).filter(|key| !is_only_dynamic(key.name) || texts.contains_key(key.name));
    known
        .map(|key| described(key.name))
        .chain(others.map(|name| described(name)))
        .collect()
}

fn broker_default_entries(broker: &BrokerConfigs) -> Vec<ConfigEntry> {
    let described = |(name, text): (&String, &String)| {
        let key = names::broker_key(name).map(|(key, _)| key);
        let is_sensitive = key.is_none_or(KeyDefinition::is_sensitive);
        let mut synonyms = broker_synonyms(name, is_sensitive, broker);
        synonyms.retain(|synonym| synonym.source == ConfigSource::DynamicDefaultBroker);
        ConfigEntry {
            name: name.clone(),
            value: Some(text.clone()).filter(|_| !is_sensitive),
            source: synonyms.first().map_or(ConfigSource::Default, |first| first.source),
            read_only: !is_dynamic(name),
            is_sensitive,
            synonyms,
            kind: key.map(|key| key.kind),
            documentation: key.map(|key| key.documentation),
        }
    };
    broker.dynamic_default.iter().map(described).collect()
}

fn group_entries(overrides: &Configs, broker: &BrokerConfigs) -> Vec<ConfigEntry> {
    let values = broker.values();
    let known = shown_keys(Scope::Group, overrides).map(|key| {
        let mut synonyms = match key.synonyms.first() {
            Some(first) => broker_synonyms(first.name, key.is_sensitive(), broker),
            None => default_value(key)
                .map(|value| own_synonym(key.name, Some(value), ConfigSource::Default))
                .into_iter()
                .collect(),
        };
        let value = match overrides.get(key.name) {
            Some(text) => Some(group_checks::clamped(key, &key.canonical(text), &values)),
            None => group_default(key, &values),
        };
        if overrides.contains_key(key.name) {
            synonyms.insert(0, own_synonym(key.name, value.clone(), ConfigSource::Group));
        }
        entry(key, value, synonyms, false)
    });
    known
        .chain(unknown_entries(Scope::Group, overrides, ConfigSource::Group))
        .collect()
}

/// The broker's value of a group's key. The list of assignors stands for its first.
fn group_default(key: &KeyDefinition, values: &BrokerValues) -> Option<String> {
    let text = values
        .by_synonyms(key.synonyms)
        .or_else(|| key.default_text().map(str::to_owned))?;
    if key.name == "streams.assignor.name" {
        return text.split(',').next().map(|first| first.trim().to_owned());
    }
    Some(key.canonical(&text))
}

fn client_metrics_entries(overrides: &Configs) -> Vec<ConfigEntry> {
    let known = shown_keys(Scope::ClientMetrics, overrides).map(|key| {
        let set = overrides.get(key.name).map(|text| key.canonical(text));
        let synonyms = match &set {
            Some(text) => vec![own_synonym(key.name, Some(text.clone()), ConfigSource::ClientMetrics)],
            None => Vec::new(),
        };
        entry(key, set.or_else(|| default_value(key)), synonyms, false)
    });
    known
        .chain(unknown_entries(
            Scope::ClientMetrics,
            overrides,
            ConfigSource::ClientMetrics,
        ))
        .collect()
}

/// The keys that a description has: all but internal ones that nobody set.
fn shown_keys(scope: Scope, set: &Configs) -> impl Iterator<Item = &'static KeyDefinition> {
    all(scope).filter(move |key| !key.internal || set.contains_key(key.name))
}

/// What was set under names that this version does not know: their values are not shown, they might be secrets.
fn unknown_entries(scope: Scope, set: &Configs, source: ConfigSource) -> impl Iterator<Item = ConfigEntry> {
    set.keys()
        .filter(move |name| lookup(scope, name).is_none())
        .map(move |name| ConfigEntry {
            name: name.clone(),
            value: None,
            source,
            read_only: false,
            is_sensitive: true,
            synonyms: vec![own_synonym(name, None, source)],
            kind: None,
            documentation: None,
        })
}

fn entry(
    key: &'static KeyDefinition,
    value: Option<String>,
    synonyms: Vec<ConfigSynonym>,
    read_only: bool,
) -> ConfigEntry {
    ConfigEntry {
        name: key.name.to_owned(),
        value: value.filter(|_| !key.is_sensitive()),
        source: synonyms.first().map_or(ConfigSource::Default, |first| first.source),
        read_only,
        is_sensitive: key.is_sensitive(),
        synonyms,
        kind: Some(key.kind),
        documentation: Some(key.documentation),
    }
}

fn own_synonym(name: &str, value: Option<String>, source: ConfigSource) -> ConfigSynonym {
    ConfigSynonym {
        name: name.to_owned(),
        value,
        source,
    }
}

fn default_value(key: &KeyDefinition) -> Option<String> {
    match key.default {
        DefaultValue::Text(text) => Some(text.to_owned()),
        DefaultValue::Required | DefaultValue::Unset => None,
    }
}

/// Everything set under a broker key's names, layer by layer. Kafka leaves out what stands before the first value under
/// the very name that was asked for, so a chain of which only a weaker name is set comes out empty; so do we.
fn broker_synonyms(name: &str, is_sensitive: bool, broker: &BrokerConfigs) -> Vec<ConfigSynonym> {
    let chain = broker_chain(name);
    let shown = |value: &str| Some(value.to_owned()).filter(|_| !is_sensitive);
    let mut found = Vec::new();
    let layers = [
        (&broker.dynamic_broker, ConfigSource::DynamicBroker),
        (&broker.dynamic_default, ConfigSource::DynamicDefaultBroker),
    ];
    for (layer, source) in layers {
        let set = chain.iter().filter_map(|name| Some((name, layer.get(*name)?)));
        found.extend(set.map(|(name, value)| own_synonym(name, shown(value), source)));
    }
    let set = chain.iter().filter_map(|name| Some((name, broker.static_value(name)?)));
    found.extend(set.map(|(name, value)| own_synonym(name, shown(value.trim()), ConfigSource::StaticBroker)));
    let defaults = chain.iter().filter_map(|name| {
        let key = lookup(Scope::Broker, name).filter(|key| !is_only_dynamic(key.name))?;
        Some((name, key.default_text()?))
    });
    found.extend(defaults.map(|(name, value)| own_synonym(name, shown(value), ConfigSource::Default)));
    let first = found
        .iter()
        .position(|synonym| synonym.name == name)
        .unwrap_or(found.len());
    found.drain(..first);
    found
}

/// Whether the key may be set while the broker runs, under exactly this name.
fn is_dynamic(name: &str) -> bool {
    lookup(Scope::Broker, name).is_some_and(|key| key.update != super::UpdateMode::ReadOnly)
}

/// Quotas of replication can only be set dynamically; they have no static value and are not shown unset.
pub(super) fn is_only_dynamic(name: &str) -> bool {
    matches!(
        name,
        "leader.replication.throttled.rate"
            | "follower.replication.throttled.rate"
            | "replica.alter.log.dirs.io.max.bytes.per.second"
    )
}

#[cfg(test)]
#[path = "describe/tests.rs"]
mod tests;
