//! Names that are not in the table as they stand: with a listener's prefix, misspelt, gone from Kafka, or of a plugin.

use model::spelling;

use super::definition::{KeyDefinition, Standing};
use super::error::{ConfigError, cut};
use super::keys::{Scope, all, lookup};

/// Something an operator should read about a key that is accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Notice {
    /// Concerns the Java virtual machine or Java classes.
    NoMeaning(String),
    /// Kafka had the key once.
    Removed(String, &'static str),
    /// Read, but without effect so far.
    NotYet(String),
}

impl std::fmt::Display for Notice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Notice::NoMeaning(name) => write!(f, "{name} concerns the Java virtual machine and has no meaning here"),
            Notice::Removed(name, since) => write!(f, "{name} is ignored: {since}"),
            Notice::NotYet(name) => write!(f, "{name} is accepted but not yet in effect"),
        }
    }
}

/// Names that people write, and what they mean.
const KNOWN_WRONG: &[(&str, &str)] = &[
    ("auto.commit.offset", "enable.auto.commit (of consumers)"),
    ("broker.http.listeners", "millstream.http.listeners"),
    ("default.partitions", "num.partitions"),
    ("http.listeners", "millstream.http.listeners"),
    ("log.directory", "log.dirs"),
    ("log.flush.messages", "log.flush.interval.messages"),
    ("log.flush.ms", "log.flush.interval.ms"),
    ("log.max.message.bytes", "message.max.bytes"),
    ("log.retention.checkinterval.ms", "log.retention.check.interval.ms"),
    ("log.segment.ms", "log.roll.ms"),
    ("max.message.size", "message.max.bytes"),
    ("message.max.size", "message.max.bytes"),
    ("min.isr", "min.insync.replicas"),
    ("num.replicas", "default.replication.factor"),
    ("partitions", "num.partitions"),
    ("replica.lag.max.messages", "replica.lag.time.max.ms"),
    ("replication.factor", "default.replication.factor"),
];

/// Keys of Kafka's past that files may still hold. Kafka 4 warns and ignores them.
const REMOVED: &[(&str, &str)] = &[
    (
        "advertised.host.name",
        "advertised.listeners took its place in Kafka 3.0",
    ),
    ("advertised.port", "advertised.listeners took its place in Kafka 3.0"),
    (
        "broker.id.generation.enable",
        "ids are no longer generated since Kafka 4.0",
    ),
    (
        "control.plane.listener.name",
        "the controller has listeners of its own since Kafka 4.0",
    ),
    (
        "delegation.token.master.key",
        "delegation.token.secret.key took its place in Kafka 4.0",
    ),
    (
        "group.coordinator.new.enable",
        "the new coordinator is the only one since Kafka 4.0",
    ),
    ("host.name", "listeners took its place in Kafka 3.0"),
    (
        "inter.broker.protocol.version",
        "metadata.version is a feature of the cluster since Kafka 4.0",
    ),
    (
        "leader.imbalance.per.broker.percentage",
        "every leader is moved back since Kafka 4.0",
    ),
    (
        "log.message.downconversion.enable",
        "old record formats are gone since Kafka 4.0",
    ),
    (
        "log.message.format.version",
        "old record formats are gone since Kafka 4.0",
    ),
    (
        "log.message.timestamp.difference.max.ms",
        "log.message.timestamp.before.max.ms and .after.max.ms took its place",
    ),
    (
        "offsets.commit.required.acks",
        "offset commits always wait for the in-sync replicas since Kafka 4.0",
    ),
    (
        "password.encoder.secret",
        "passwords are not kept in ZooKeeper any more",
    ),
    ("port", "listeners took its place in Kafka 3.0"),
    ("reserved.broker.max.id", "ids are no longer generated since Kafka 4.0"),
    ("zookeeper.clientCnxnSocket", "there is no ZooKeeper since Kafka 4.0"),
    ("zookeeper.connect", "there is no ZooKeeper since Kafka 4.0"),
    (
        "zookeeper.connection.timeout.ms",
        "there is no ZooKeeper since Kafka 4.0",
    ),
    (
        "zookeeper.max.in.flight.requests",
        "there is no ZooKeeper since Kafka 4.0",
    ),
    (
        "zookeeper.metadata.migration.enable",
        "there is no ZooKeeper since Kafka 4.0",
    ),
    ("zookeeper.session.timeout.ms", "there is no ZooKeeper since Kafka 4.0"),
    ("zookeeper.set.acl", "there is no ZooKeeper since Kafka 4.0"),
];

/// Prefixes under which plugins and JVM tools of Kafka have settings of their own.
const FOREIGN_PREFIXES: &[&str] = &[
    "config.providers.",
    "rlmm.config.",
    "rsm.config.",
    "client.quota.callback.",
    "confluent.",
    "metrics.jmx.",
    "zookeeper.ssl.",
];

const LISTENER_PREFIX: &str = "listener.name.";

/// Keys that may also stand under a mechanism's name below a listener's: `listener.name.x.plain.sasl.jaas.config`.
const MECHANISM_KEYS: &[&str] = &[
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
];

/// Listener's name and key of `listener.name.NAME.KEY`. The key need not be a known one.
#[must_use]
pub(super) fn without_listener(name: &str) -> Option<(&str, &str)> {
    let (listener, key) = name.strip_prefix(LISTENER_PREFIX)?.split_once('.')?;
    if listener.is_empty() || key.is_empty() {
        return None;
    }
    let base = MECHANISM_KEYS
        .iter()
        .find(|each| key.strip_suffix(**each).is_some_and(|rest| rest.ends_with('.')));
    Some((listener, base.copied().unwrap_or(key)))
}

/// The key that a broker's name means, and the listener it is for if there is one.
#[must_use]
pub(super) fn broker_key(name: &str) -> Option<(&'static KeyDefinition, Option<&str>)> {
    if let Some(key) = lookup(Scope::Broker, name) {
        return Some((key, None));
    }
    let (listener, base) = without_listener(name)?;
    lookup(Scope::Broker, base).map(|key| (key, Some(listener)))
}

/// The error for a name that is not in the table.
#[must_use]
pub(super) fn unknown(scope: Scope, name: &str) -> ConfigError {
    ConfigError::Unknown {
        scope: scope.word(),
        name: cut(name),
        hint: hint(scope, name),
    }
}

/// What a name of a properties file means to an operator beyond its value.
///
/// # Errors
/// If nobody knows the name, with a hint where a known one is near.
pub(super) fn notice(name: &str) -> Result<Option<Notice>, ConfigError> {
    if let Some((key, listener)) = broker_key(name) {
        return Ok(match key.standing {
            // No listener has values of its own yet.
            Standing::InEffect if listener.is_some() => Some(Notice::NotYet(name.to_owned())),
            Standing::InEffect => None,
            Standing::NotYet => Some(Notice::NotYet(name.to_owned())),
            Standing::NoMeaning => Some(Notice::NoMeaning(name.to_owned())),
        });
    }
    if let Some((_, since)) = REMOVED.iter().find(|(removed, _)| *removed == name) {
        return Ok(Some(Notice::Removed(name.to_owned(), since)));
    }
    if FOREIGN_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
        return Ok(Some(Notice::NoMeaning(name.to_owned())));
    }
    Err(unknown(Scope::Broker, name))
}

/// "did you mean …": for names that people are known to write, for keys of another scope, and for misspellings.
#[must_use]
pub fn hint(scope: Scope, name: &str) -> Option<String> {
    if let Some((_, right)) = KNOWN_WRONG.iter().find(|(wrong, _)| *wrong == name) {
        return Some(format!("did you mean {right}?"));
    }
    if scope == Scope::Broker
        && let Some(topic_key) = lookup(Scope::Topic, name)
    {
        return Some(match topic_key.synonyms.first() {
            Some(synonym) => format!(
                "{name} is a key of topics, its default for all topics is {}",
                synonym.name
            ),
            None => format!("{name} is a key of topics"),
        });
    }
    if scope == Scope::Topic
        && let Some(topic_key) = all(Scope::Topic).find(|key| key.synonyms.iter().any(|each| each.name == name))
    {
        return Some(format!(
            "{name} is a key of brokers, that of a topic is {}",
            topic_key.name
        ));
    }
    let base = if scope == Scope::Broker {
        without_listener(name).map_or(name, |(_, base)| base)
    } else {
        name
    };
    nearest(scope, base).map(|key| format!("did you mean {key}?"))
}

/// The key nearest to `name`, if it is near enough to be meant: one change for each five characters, at most four; or
/// the same words with other separators.
fn nearest(scope: Scope, name: &str) -> Option<&'static str> {
    if name.len() > spelling::COMPARED_BYTES_MAX {
        return None;
    }
    let plain = |text: &str| -> String {
        let kept = text.chars().filter(|character| character.is_ascii_alphanumeric());
        kept.map(|character| character.to_ascii_lowercase()).collect()
    };
    let squeezed = plain(name);
    if let Some(key) = all(scope).find(|key| plain(key.name) == squeezed) {
        return Some(key.name);
    }
    let limit = (name.len() / 5).min(4);
    all(scope)
        .filter(|key| key.name.len().abs_diff(name.len()) <= limit)
        .filter_map(|key| Some((spelling::distance(name, key.name)?, key.name)))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, key)| key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_names_get_a_hint() {
        let broker = |name: &str| hint(Scope::Broker, name).unwrap_or_default();
        assert_eq!(broker("log.segment.ms"), "did you mean log.roll.ms?");
        assert_eq!(
            broker("log.retention.checkinterval.ms"),
            "did you mean log.retention.check.interval.ms?"
        );
        assert_eq!(broker("log.segmnet.bytes"), "did you mean log.segment.bytes?");
        assert_eq!(broker("num_partitions"), "did you mean num.partitions?");
        assert_eq!(broker("logDirs"), "did you mean log.dirs?");
        assert_eq!(
            broker("retention.ms"),
            "retention.ms is a key of topics, its default for all topics is log.retention.ms"
        );
        assert_eq!(
            hint(Scope::Topic, "log.cleanup.policy"),
            Some("log.cleanup.policy is a key of brokers, that of a topic is cleanup.policy".to_owned())
        );
        assert_eq!(hint(Scope::Broker, "bogus"), None);
        assert_eq!(hint(Scope::Broker, &"x".repeat(100_000)), None);
    }

    #[test]
    fn a_listener_prefix_leads_to_the_key_behind_it() {
        let (key, listener) = broker_key("listener.name.internal.ssl.keystore.type").expect("known");
        assert_eq!((key.name, listener), ("ssl.keystore.type", Some("internal")));
        let (key, _) = broker_key("listener.name.internal.plain.sasl.jaas.config").expect("known");
        assert_eq!(key.name, "sasl.jaas.config");
        assert!(broker_key("listener.name.internal.bogus").is_none());
        assert!(broker_key("listener.name..max.connections").is_none());
    }

    #[test]
    fn names_of_java_and_of_the_past_are_accepted_with_a_word() {
        let word = |name: &str| {
            notice(name)
                .ok()
                .flatten()
                .map(|notice| notice.to_string())
                .unwrap_or_default()
        };
        assert!(word("metric.reporters").contains("no meaning here"));
        assert!(word("zookeeper.connect").contains("no ZooKeeper"));
        assert!(word("rsm.config.bucket").contains("no meaning here"));
        assert_eq!(notice("num.partitions"), Ok(None));
        assert!(notice("nun.partitions").is_err());
    }
}
