//! The table: every key of every scope, one file an area.

mod client_metrics;
mod group;
mod groups;
mod log;
mod network;
mod node;
mod own;
mod replication;
mod security;
mod tiered;
mod topic;
mod transactions;

use super::definition::KeyDefinition;
use std::collections::BTreeMap;
use std::sync::LazyLock;

const COMPRESSION_TYPES: &[&str] = &["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"];
const TIMESTAMP_TYPES: &[&str] = &["CreateTime", "LogAppendTime"];
const CLEANUP_POLICIES: &[&str] = &["compact", "delete"];

/// What a key belongs to; names are unique within a scope.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Scope {
    /// A node, static or dynamic.
    Broker,
    Topic,
    /// A consumer, share or streams group.
    Group,
    /// A client metrics subscription.
    ClientMetrics,
}

impl Scope {
    /// As messages name it.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Scope::Broker => "broker",
            Scope::Topic => "topic",
            Scope::Group => "group",
            Scope::ClientMetrics => "client metrics",
        }
    }

    const fn areas(self) -> &'static [&'static [KeyDefinition]] {
        match self {
            Scope::Broker => &[
                node::KEYS,
                network::KEYS,
                log::KEYS,
                replication::KEYS,
                groups::KEYS,
                transactions::KEYS,
                security::KEYS,
                tiered::KEYS,
                own::BROKER_KEYS,
            ],
            Scope::Topic => &[topic::KEYS, own::TOPIC_KEYS],
            Scope::Group => &[group::KEYS],
            Scope::ClientMetrics => &[client_metrics::KEYS],
        }
    }
}

type ByName = BTreeMap<&'static str, &'static KeyDefinition>;

static BROKER: LazyLock<ByName> = LazyLock::new(|| by_name(Scope::Broker));
static TOPIC: LazyLock<ByName> = LazyLock::new(|| by_name(Scope::Topic));
static GROUP: LazyLock<ByName> = LazyLock::new(|| by_name(Scope::Group));
static CLIENT_METRICS: LazyLock<ByName> = LazyLock::new(|| by_name(Scope::ClientMetrics));

fn by_name(scope: Scope) -> ByName {
    let keys = scope.areas().iter().flat_map(|area| area.iter());
    keys.map(|key| (key.name, key)).collect()
}

fn index(scope: Scope) -> &'static ByName {
    match scope {
        Scope::Broker => &BROKER,
        Scope::Topic => &TOPIC,
        Scope::Group => &GROUP,
        Scope::ClientMetrics => &CLIENT_METRICS,
    }
}

/// The key of that exact name.
#[must_use]
pub fn lookup(scope: Scope, name: &str) -> Option<&'static KeyDefinition> {
    index(scope).get(name).copied()
}

/// All keys of a scope by ascending name.
pub fn all(scope: Scope) -> impl Iterator<Item = &'static KeyDefinition> {
    index(scope).values().copied()
}

#[cfg(test)]
mod tests {
    use super::super::check::Check;
    use super::super::definition::{DefaultValue, Importance, UpdateMode};
    use super::*;

    /// What Apache Kafka 4.4.0's classes say of each key; made by tests/golden/ConfigKeys.java.
    const GOLDEN: &str = include_str!("../../golden/config_keys.tsv");

    const SCOPES: [Scope; 4] = [Scope::Broker, Scope::Topic, Scope::Group, Scope::ClientMetrics];

    #[test]
    fn no_name_stands_twice_in_a_scope() {
        for scope in SCOPES {
            let rows: usize = scope.areas().iter().map(|area| area.len()).sum();
            assert_eq!(rows, all(scope).count(), "{scope:?}");
        }
    }

    #[test]
    fn every_default_passes_its_own_check_and_is_canonical() {
        for key in SCOPES.into_iter().flat_map(all) {
            if let DefaultValue::Text(text) = key.default {
                let value = key.parse(text).unwrap_or_else(|error| panic!("{}: {error}", key.name));
                assert_eq!(value.to_text(), text, "{}", key.name);
            }
        }
    }

    #[test]
    fn every_synonym_is_a_broker_key() {
        for key in SCOPES.into_iter().flat_map(all) {
            for synonym in key.synonyms {
                assert!(lookup(Scope::Broker, synonym.name).is_some(), "{}", synonym.name);
            }
        }
    }

    #[test]
    fn every_key_says_what_it_is_for() {
        for key in SCOPES.into_iter().flat_map(all) {
            assert!(key.documentation.ends_with('.'), "{}", key.name);
        }
    }

    /// One of our rows as the golden file writes it.
    fn row(scope: Scope, key: &KeyDefinition) -> String {
        let is_quota = super::super::describe::is_only_dynamic(key.name);
        let default = match key.default {
            DefaultValue::Required => "=(required)".to_owned(),
            DefaultValue::Unset => "-".to_owned(),
            DefaultValue::Text(text) => format!("={text}"),
        };
        let importance = match key.importance {
            Importance::High => "high",
            Importance::Medium => "medium",
            Importance::Low => "low",
        };
        let mode = match key.update {
            _ if scope != Scope::Broker => "-",
            UpdateMode::ReadOnly => "read-only",
            UpdateMode::PerBroker => "per-broker",
            UpdateMode::ClusterWide => "cluster-wide",
        };
        let synonyms: Vec<String> = match scope {
            Scope::Broker => {
                let chain = super::super::layers::broker_chain(key.name);
                let alone = chain.len() == 1;
                chain.into_iter().filter(|_| !alone).map(str::to_owned).collect()
            }
            _ => {
                let named = |each: &super::super::definition::Synonym| match each.factor {
                    1 => each.name.to_owned(),
                    factor => format!("{}*{factor}", each.name),
                };
                key.synonyms.iter().map(named).collect()
            }
        };
        let synonyms = if synonyms.is_empty() {
            "-".to_owned()
        } else {
            synonyms.join(",")
        };
        let scope = match scope {
            Scope::Broker if is_quota => "broker-dynamic",
            Scope::Broker => "broker",
            Scope::Topic => "topic",
            Scope::Group => "group",
            Scope::ClientMetrics => "client-metrics",
        };
        [
            scope,
            key.name,
            &key.kind.name().to_ascii_lowercase(),
            &default,
            importance,
            mode,
            if key.internal { "internal" } else { "-" },
            &synonyms,
        ]
        .join("\t")
    }

    /// The range that the golden file gives, for the checks that are ranges.
    fn range(check: Check) -> Option<String> {
        match check {
            Check::AtLeast(least) => Some(format!("[{least},...]")),
            Check::Between(least, most) => Some(format!("[{least},...,{most}]")),
            Check::BetweenOr(least, most, other) => Some(format!("[{least},...,{most}] or {other}")),
            Check::DoubleBetween(least, most) => Some(format!("[{least},...,{most}]")),
            Check::OneOf(allowed) | Check::EntriesOf(allowed) | Check::SomeEntriesOf(allowed) => {
                Some(format!("[{}]", allowed.join(", ")))
            }
            _ => None,
        }
    }

    #[test]
    fn every_row_of_kafkas_is_ours_and_the_other_way_round() {
        let mut expected = std::collections::BTreeSet::new();
        let mut checks = BTreeMap::new();
        for line in GOLDEN.lines() {
            let mut part: Vec<&str> = line.split('\t').collect();
            if part[0] == "quota" || part[0] == "ip" {
                continue;
            }
            let check = part.remove(4);
            checks.insert((part[0], part[1]), check);
            expected.insert(part.join("\t"));
        }
        let mut ours = std::collections::BTreeSet::new();
        for scope in SCOPES {
            for key in all(scope).filter(|key| !key.name.starts_with("millstream.")) {
                let row = row(scope, key);
                let scope_word = row.split('\t').next().unwrap_or_default();
                if let (Some(range), Some(check)) = (range(key.check), checks.get(&(scope_word, key.name))) {
                    assert_eq!(range, *check, "{}", key.name);
                }
                ours.insert(row);
            }
        }
        assert_eq!(ours, expected);
    }
}
