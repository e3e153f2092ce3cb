//! Where a broker's values come from: what was set for this broker, what was set for all brokers, the file, the
//! defaults; and the chains of names by which one key answers for another.

use super::alter::check_broker;
use super::definition::Synonym;
use super::error::ConfigError;
use super::keys::{Scope, all, lookup};
use super::names;
use super::value::Value;
use std::collections::BTreeMap;
use std::fmt;

/// Names and texts as a resource's configuration records hold them.
pub type Configs = BTreeMap<String, String>;

/// The three layers that a broker's value may come from, before the default (KIP-226).
#[derive(Clone, PartialEq, Eq, Default)]
pub struct BrokerConfigs {
    /// The properties file with environment and command line merged in.
    pub static_values: Configs,
    /// What was set for all brokers: resource BROKER with the empty name.
    pub dynamic_default: Configs,
    /// What was set for this broker.
    pub dynamic_broker: Configs,
}

impl fmt::Debug for BrokerConfigs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BrokerConfigs")
            .field("static_values", &without_secrets(&self.static_values))
            .field("dynamic_default", &without_secrets(&self.dynamic_default))
            .field("dynamic_broker", &without_secrets(&self.dynamic_broker))
            .finish()
    }
}

/// The values of a node as they may be logged. What nobody knows might be a secret as well.
pub(super) fn without_secrets(configs: &Configs) -> BTreeMap<&str, &str> {
    configs
        .iter()
        .map(|(name, text)| {
            let is_open = names::broker_key(name).is_some_and(|(key, _)| !key.is_sensitive());
            (name.as_str(), if is_open { text.as_str() } else { "[hidden]" })
        })
        .collect()
}

impl BrokerConfigs {
    #[must_use]
    pub fn from_static(static_values: Configs) -> Self {
        BrokerConfigs {
            static_values,
            ..BrokerConfigs::default()
        }
    }

    /// What is set, whatever the layer. A dynamic value takes the place of the key's synonyms below it, so that a
    /// `log.retention.ms` set later wins over a `log.retention.minutes` of the file.
    #[must_use]
    pub fn merged(&self) -> Configs {
        let mut merged = self.static_values.clone();
        for layer in [&self.dynamic_default, &self.dynamic_broker] {
            for (name, text) in layer {
                for synonym in synonym_group(name) {
                    merged.remove(*synonym);
                }
                merged.insert(name.clone(), text.clone());
            }
        }
        merged
    }

    /// The value of a broker's key as text: this broker's, all brokers', the file's, the default.
    #[must_use]
    pub fn broker_value(&self, name: &str) -> Option<String> {
        let set = self.values().texts.remove(name);
        let by_default = || names::broker_key(name).and_then(|(key, _)| key.default_text());
        set.or_else(|| by_default().map(str::to_owned))
    }

    /// The layers without dynamic values that a node cannot run with, and the names of those: what a cluster's metadata
    /// holds may come from another version, and must not stop a node that runs or starts.
    #[must_use]
    pub fn usable(&self) -> (BrokerConfigs, Vec<String>) {
        if check_broker(self).is_ok() {
            return (self.clone(), Vec::new());
        }
        let mut kept = BrokerConfigs::from_static(self.static_values.clone());
        let mut dropped = Vec::new();
        for (name, text) in &self.dynamic_default {
            kept.dynamic_default.insert(name.clone(), text.clone());
            if check_broker(&kept).is_err() {
                kept.dynamic_default.remove(name);
                dropped.push(name.clone());
            }
        }
        for (name, text) in &self.dynamic_broker {
            kept.dynamic_broker.insert(name.clone(), text.clone());
            if check_broker(&kept).is_err() {
                kept.dynamic_broker.remove(name);
                dropped.push(name.clone());
            }
        }
        (kept, dropped)
    }

    /// `node.id` and the older `broker.id` stand for each other.
    #[must_use]
    pub fn static_value(&self, name: &str) -> Option<&str> {
        let other = match name {
            "broker.id" => "node.id",
            "node.id" => "broker.id",
            _ => return self.static_values.get(name).map(String::as_str),
        };
        let found = self.static_values.get(name).or_else(|| self.static_values.get(other));
        found.map(String::as_str)
    }

    /// One snapshot of values to read keys from.
    #[must_use]
    pub(super) fn values(&self) -> BrokerValues {
        let mut texts = self.merged();
        for name in ["broker.id", "node.id"] {
            if let Some(text) = self.static_value(name) {
                texts.entry(name.to_owned()).or_insert_with(|| text.to_owned());
            }
        }
        BrokerValues { texts }
    }
}

/// Effective broker values by name, read as types.
#[derive(Clone, Debug)]
pub(super) struct BrokerValues {
    texts: Configs,
}

impl BrokerValues {
    pub(super) fn texts(&self) -> &Configs {
        &self.texts
    }

    /// The value of a key of the table, or its default; `None` if it has neither.
    ///
    /// # Errors
    /// If what is set is no value of the key.
    pub(super) fn get(&self, name: &'static str) -> Result<Option<Value>, ConfigError> {
        let key = lookup(Scope::Broker, name).expect("only names of the table are asked for");
        match self.texts.get(name).map(String::as_str).or(key.default_text()) {
            Some(text) => key.parse(text).map(Some),
            None => Ok(None),
        }
    }

    pub(super) fn boolean(&self, name: &'static str) -> Result<bool, ConfigError> {
        match self.get(name)? {
            Some(Value::Boolean(value)) => Ok(value),
            _ => Err(ConfigError::Missing(name)),
        }
    }

    /// Any of the integer types.
    pub(super) fn integer(&self, name: &'static str) -> Result<i64, ConfigError> {
        self.integer_if_set(name)?.ok_or(ConfigError::Missing(name))
    }

    pub(super) fn integer_if_set(&self, name: &'static str) -> Result<Option<i64>, ConfigError> {
        let number = self.get(name)?.and_then(|value| value.number());
        Ok(number.and_then(|number| i64::try_from(number).ok()))
    }

    pub(super) fn int(&self, name: &'static str) -> Result<i32, ConfigError> {
        let value = self.integer(name)?;
        i32::try_from(value).map_err(|_| ConfigError::Missing(name))
    }

    pub(super) fn double(&self, name: &'static str) -> Result<f64, ConfigError> {
        match self.get(name)? {
            Some(Value::Double(value)) => Ok(value),
            _ => Err(ConfigError::Missing(name)),
        }
    }

    pub(super) fn text(&self, name: &'static str) -> Result<Option<String>, ConfigError> {
        match self.get(name)? {
            Some(Value::Text(text)) => Ok(Some(text)),
            _ => Ok(None),
        }
    }

    /// The entries, none if the key is not set.
    pub(super) fn list(&self, name: &'static str) -> Result<Vec<String>, ConfigError> {
        match self.get(name)? {
            Some(Value::List(entries)) => Ok(entries),
            _ => Ok(Vec::new()),
        }
    }

    /// A non-negative count or size.
    pub(super) fn size(&self, name: &'static str) -> Result<usize, ConfigError> {
        let value = self.integer(name)?;
        usize::try_from(value)
            .map_err(|_| ConfigError::invalid(name, &value.to_string(), "Value must be at least 0".to_owned()))
    }

    /// The text that a topic's or group's key has by default, in the unit of that key, by its chain of synonyms.
    pub(super) fn by_synonyms(&self, synonyms: &[Synonym]) -> Option<String> {
        let set = synonyms
            .iter()
            .find_map(|synonym| self.texts.get(synonym.name).map(|text| (synonym, text.as_str())));
        let by_default = || {
            synonyms.iter().rev().find_map(|synonym| {
                let key = lookup(Scope::Broker, synonym.name)?;
                key.default_text().map(|text| (synonym, text))
            })
        };
        set.or_else(by_default)
            .map(|(synonym, text)| converted(text, synonym.factor))
    }

    /// Every set text against its key's type and check, and every required key.
    ///
    /// # Errors
    /// The first value, by name, that cannot stand.
    pub(super) fn check_each(&self) -> Result<(), ConfigError> {
        for (name, text) in &self.texts {
            if let Some((key, _)) = names::broker_key(name) {
                key.parse_named(name, text)?;
            }
        }
        for key in all(Scope::Broker) {
            if key.default == super::definition::DefaultValue::Required && !self.texts.contains_key(key.name) {
                return Err(ConfigError::Missing(key.name));
            }
        }
        Ok(())
    }
}

fn converted(text: &str, factor: i64) -> String {
    if factor == 1 {
        return text.to_owned();
    }
    match text.trim().parse::<i32>() {
        Ok(value) => i64::from(value).saturating_mul(factor).to_string(),
        Err(_) => text.to_owned(),
    }
}

/// The broker keys that stand for the same thing, the strongest first; a key without others stands alone.
///
/// For a key with a listener's prefix the second is the key without it.
#[must_use]
pub(super) fn broker_chain(name: &str) -> Vec<&str> {
    match name {
        "log.flush.interval.ms" => vec![name, "log.flush.scheduler.interval.ms"],
        _ => {
            let group = synonym_group(name);
            if !group.is_empty() {
                return group.to_vec();
            }
            match names::without_listener(name) {
                Some((_, base)) => vec![name, base],
                None => vec![name],
            }
        }
    }
}

fn synonym_group(name: &str) -> &'static [&'static str] {
    const RETENTION: &[&str] = &["log.retention.ms", "log.retention.minutes", "log.retention.hours"];
    const ROLL: &[&str] = &["log.roll.ms", "log.roll.hours"];
    const JITTER: &[&str] = &["log.roll.jitter.ms", "log.roll.jitter.hours"];
    const FLUSH: &[&str] = &["log.flush.interval.ms", "log.flush.scheduler.interval.ms"];
    if name == "log.flush.interval.ms" {
        return FLUSH;
    }
    [RETENTION, ROLL, JITTER]
        .into_iter()
        .find(|group| group.contains(&name))
        .unwrap_or(&[])
}
