//! The bounds that a broker sets for what groups may have (KIP-848, KIP-932, KIP-1071).

use super::check::Check;
use super::definition::KeyDefinition;
use super::error::ConfigError;
use super::layers::{BrokerValues, Configs};
use super::lookup;
use super::{Scope, Value};

/// A group's key and the broker keys of its least and greatest value.
const BOUNDS: &[(&str, Option<&str>, &str)] = &[
    (
        "consumer.assignment.interval.ms",
        Some("group.consumer.min.assignment.interval.ms"),
        "group.consumer.max.assignment.interval.ms",
    ),
    (
        "consumer.heartbeat.interval.ms",
        Some("group.consumer.min.heartbeat.interval.ms"),
        "group.consumer.max.heartbeat.interval.ms",
    ),
    (
        "consumer.session.timeout.ms",
        Some("group.consumer.min.session.timeout.ms"),
        "group.consumer.max.session.timeout.ms",
    ),
    (
        "share.assignment.interval.ms",
        Some("group.share.min.assignment.interval.ms"),
        "group.share.max.assignment.interval.ms",
    ),
    (
        "share.delivery.count.limit",
        Some("group.share.min.delivery.count.limit"),
        "group.share.max.delivery.count.limit",
    ),
    (
        "share.heartbeat.interval.ms",
        Some("group.share.min.heartbeat.interval.ms"),
        "group.share.max.heartbeat.interval.ms",
    ),
    (
        "share.partition.max.record.locks",
        Some("group.share.min.partition.max.record.locks"),
        "group.share.max.partition.max.record.locks",
    ),
    (
        "share.record.lock.duration.ms",
        Some("group.share.min.record.lock.duration.ms"),
        "group.share.max.record.lock.duration.ms",
    ),
    (
        "share.session.timeout.ms",
        Some("group.share.min.session.timeout.ms"),
        "group.share.max.session.timeout.ms",
    ),
    (
        "streams.assignment.interval.ms",
        Some("group.streams.min.assignment.interval.ms"),
        "group.streams.max.assignment.interval.ms",
    ),
    (
        "streams.heartbeat.interval.ms",
        Some("group.streams.min.heartbeat.interval.ms"),
        "group.streams.max.heartbeat.interval.ms",
    ),
    (
        "streams.num.standby.replicas",
        None,
        "group.streams.max.standby.replicas",
    ),
    ("streams.num.warmup.replicas", None, "group.streams.max.warmup.replicas"),
    (
        "streams.session.timeout.ms",
        Some("group.streams.min.session.timeout.ms"),
        "group.streams.max.session.timeout.ms",
    ),
];

/// A session must outlast a heartbeat.
const SESSIONS: &[(&str, &str)] = &[
    ("consumer.heartbeat.interval.ms", "consumer.session.timeout.ms"),
    ("share.heartbeat.interval.ms", "share.session.timeout.ms"),
    ("streams.heartbeat.interval.ms", "streams.session.timeout.ms"),
];

/// # Errors
/// The first value that is outside of what the broker allows, or that does not fit another.
pub(super) fn check_group(configs: &Configs, broker: &BrokerValues) -> Result<(), ConfigError> {
    for (name, text) in configs {
        if let Some(key) = lookup(Scope::Group, name) {
            if matches!(key.check, Check::Entries) && has_repetition(text) {
                return Err(ConfigError::plain(format!(
                    "{name} must not contain duplicate tag keys."
                )));
            }
            key.parse(text)?;
        }
    }
    for (name, least, most) in BOUNDS {
        let Some(value) = number(configs, name) else { continue };
        let most = broker.integer(most)?;
        match least {
            Some(least) => {
                let least = broker.integer(least)?;
                if !(least..=most).contains(&value) {
                    return Err(ConfigError::plain(format!(
                        "{name} must be in the range {least} to {most} inclusive."
                    )));
                }
            }
            None if value > most => {
                return Err(ConfigError::plain(format!(
                    "{name} must be less than or equal to {most}"
                )));
            }
            None => {}
        }
    }
    if let Some(least) = minimum(configs, broker)? {
        return Err(least);
    }
    check_assignor(configs, broker)?;
    check_dead_letters(configs)?;
    check_sessions(configs, broker)
}

/// The interval of task offsets has a least value only.
fn minimum(configs: &Configs, broker: &BrokerValues) -> Result<Option<ConfigError>, ConfigError> {
    let name = "streams.task.offset.interval.ms";
    let least = broker.integer("group.streams.min.task.offset.interval.ms")?;
    let is_below = number(configs, name).is_some_and(|value| value < least);
    Ok(is_below.then(|| ConfigError::plain(format!("{name} must be greater than or equal to {least}"))))
}

fn check_assignor(configs: &Configs, broker: &BrokerValues) -> Result<(), ConfigError> {
    let name = "streams.assignor.name";
    let Some(assignor) = configs.get(name).map(|text| text.trim()) else {
        return Ok(());
    };
    let registered = broker.list("group.streams.assignors")?;
    if registered.iter().any(|each| each == assignor) {
        return Ok(());
    }
    Err(ConfigError::plain(format!(
        "{name} '{assignor}' is not a registered task assignor. Registered assignors are: [{}].",
        registered.join(", ")
    )))
}

fn check_dead_letters(configs: &Configs) -> Result<(), ConfigError> {
    let name = "errors.deadletterqueue.topic.name";
    if configs.get(name).is_some_and(|topic| topic.trim().starts_with("__")) {
        return Err(ConfigError::plain(format!(
            "{name}: DLQ topic name must not start with '__'"
        )));
    }
    Ok(())
}

fn check_sessions(configs: &Configs, broker: &BrokerValues) -> Result<(), ConfigError> {
    for (heartbeat, session) in SESSIONS {
        if !configs.contains_key(*heartbeat) && !configs.contains_key(*session) {
            continue;
        }
        let value = |name: &str| {
            let key = lookup(Scope::Group, name)?;
            let text = configs
                .get(name)
                .cloned()
                .or_else(|| broker.by_synonyms(key.synonyms))?;
            text.trim().parse::<i64>().ok()
        };
        if let (Some(interval), Some(timeout)) = (value(heartbeat), value(session))
            && timeout <= interval
        {
            return Err(ConfigError::plain(format!(
                "{session} must be greater than {heartbeat}"
            )));
        }
    }
    Ok(())
}

/// The same bounds for the broker's own values, which hold for groups without any.
///
/// # Errors
/// The first bound that a value or another bound breaks.
pub(super) fn check_broker_bounds(broker: &BrokerValues) -> Result<(), ConfigError> {
    for (name, least, most) in BOUNDS {
        let own = lookup(Scope::Group, name).and_then(|key| key.synonyms.first());
        let Some(own) = own.map(|synonym| synonym.name) else {
            continue;
        };
        let pairs = [(*least, Some(*most)), (*least, Some(own)), (Some(own), Some(*most))];
        for (less, more) in pairs {
            let (Some(less), Some(more)) = (less, more) else {
                continue;
            };
            if broker.integer(less)? > broker.integer(more)? {
                return Err(ConfigError::plain(format!(
                    "{more} must be greater than or equal to {less}"
                )));
            }
        }
    }
    for group in ["consumer", "share", "streams"] {
        let of = |rest: &str| lookup(Scope::Broker, &format!("group.{group}.{rest}")).map(|key| key.name);
        if let (Some(heartbeat), Some(session)) = (of("heartbeat.interval.ms"), of("session.timeout.ms"))
            && broker.integer(heartbeat)? >= broker.integer(session)?
        {
            return Err(ConfigError::plain(format!("{heartbeat} must be less than {session}")));
        }
    }
    let (sessions, size) = ("group.share.max.share.sessions", "group.share.max.size");
    if broker.integer(sessions)? < broker.integer(size)? {
        return Err(ConfigError::plain(format!(
            "{sessions} must be greater than or equal to {size}"
        )));
    }
    let protocols = broker.list("group.coordinator.rebalance.protocols")?;
    if !protocols.iter().any(|protocol| protocol == "classic") {
        return Err(ConfigError::plain(
            "Disabling the 'classic' protocol is not supported.".to_owned(),
        ));
    }
    check_assignors(broker)
}

/// The assignors there are, by the broker key that lists them. Java classes of others cannot be loaded.
const ASSIGNORS: &[(&str, &[&str])] = &[
    (
        "group.consumer.assignors",
        &[
            "uniform",
            "range",
            "org.apache.kafka.coordinator.group.assignor.UniformAssignor",
            "org.apache.kafka.coordinator.group.assignor.RangeAssignor",
        ],
    ),
    (
        "group.share.assignors",
        &["simple", "org.apache.kafka.coordinator.group.assignor.SimpleAssignor"],
    ),
    ("group.streams.assignors", &["sticky"]),
];

fn check_assignors(broker: &BrokerValues) -> Result<(), ConfigError> {
    for (name, known) in ASSIGNORS {
        for assignor in broker.list(name)? {
            if !known.contains(&assignor.as_str()) {
                let reason = format!("the assignors there are: {}", known.join(", "));
                return Err(ConfigError::invalid(name, &assignor, reason));
            }
        }
    }
    Ok(())
}

/// A stored value moved into the broker's bounds, which may have changed since it was set.
pub(super) fn clamped(key: &KeyDefinition, text: &str, broker: &BrokerValues) -> String {
    let Some((_, least, most)) = BOUNDS.iter().find(|(name, ..)| *name == key.name) else {
        return text.to_owned();
    };
    let Ok(value) = text.trim().parse::<i64>() else {
        return text.to_owned();
    };
    let most = broker.integer(most).unwrap_or(i64::MAX);
    let least = least.map_or(i64::MIN, |least| broker.integer(least).unwrap_or(i64::MIN));
    value.min(most).max(least).to_string()
}

fn number(configs: &Configs, name: &str) -> Option<i64> {
    let key = lookup(Scope::Group, name)?;
    let value = configs.get(name).and_then(|text| key.parse(text).ok())?;
    value.number().and_then(|number| i64::try_from(number).ok())
}

fn has_repetition(text: &str) -> bool {
    let mut seen = std::collections::BTreeSet::new();
    text.split(',').map(str::trim).any(|entry| !seen.insert(entry))
}

/// What `match` of a client metrics subscription may name (KIP-714).
const MATCH_PARAMETERS: &[&str] = &[
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
];

/// Milliseconds between two pushes of a client.
const PUSH_INTERVAL_MS: std::ops::RangeInclusive<i64> = 100..=3_600_000;

/// Why a client metrics subscription cannot stand.
pub(super) enum MetricsError {
    Request(String),
    Config(String),
}

/// # Errors
/// If the interval is out of range, or `match` has a parameter that clients do not have or a pattern that cannot be read.
pub(super) fn check_client_metrics(configs: &Configs) -> Result<(), MetricsError> {
    for (name, text) in configs {
        let Some(key) = lookup(Scope::ClientMetrics, name) else {
            return Err(MetricsError::Request(format!(
                "Unknown client metrics configuration: {name}"
            )));
        };
        let value = key
            .parse(text)
            .map_err(|error| MetricsError::Config(error.to_string()))?;
        match (name.as_str(), value) {
            ("interval.ms", value) => {
                let interval = value.number().and_then(|number| i64::try_from(number).ok());
                if !interval.is_some_and(|interval| PUSH_INTERVAL_MS.contains(&interval)) {
                    return Err(MetricsError::Request(format!(
                        "Invalid value {text} for interval.ms, interval must be between {} and {} (1 hour)",
                        PUSH_INTERVAL_MS.start(),
                        PUSH_INTERVAL_MS.end()
                    )));
                }
            }
            ("match", Value::List(entries)) => check_patterns(&entries)?,
            _ => {}
        }
    }
    Ok(())
}

fn check_patterns(entries: &[String]) -> Result<(), MetricsError> {
    for entry in entries {
        let illegal = || MetricsError::Config(format!("Illegal client matching pattern: {entry}"));
        let (parameter, pattern) = entry.split_once('=').ok_or_else(illegal)?;
        if !MATCH_PARAMETERS.contains(&parameter.trim()) {
            return Err(illegal());
        }
        if pattern.is_empty() || pattern.contains('=') || !is_balanced(pattern) {
            return Err(illegal());
        }
    }
    Ok(())
}

/// Whether brackets and parentheses close. The whole of a pattern is only read where it is used.
fn is_balanced(pattern: &str) -> bool {
    let (mut depth, mut in_class, mut escaped) = (0i32, false, false);
    for character in pattern.chars() {
        if std::mem::take(&mut escaped) {
            continue;
        }
        match character {
            '\\' => escaped = true,
            '[' => in_class = true,
            ']' => in_class = false,
            '(' if !in_class => depth += 1,
            ')' if !in_class => depth -= 1,
            _ => {}
        }
        if depth < 0 {
            return false;
        }
    }
    depth == 0 && !in_class && !escaped
}
