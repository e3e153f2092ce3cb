//! The rules between a broker's values that go beyond each value's own check.

use super::error::ConfigError;
use super::group_checks;
use super::layers::{BrokerConfigs, BrokerValues};
use super::{Scope, Value, lookup};

/// # Errors
/// The first rule that does not hold.
pub(super) fn check_rules(configs: &BrokerConfigs, values: &BrokerValues) -> Result<(), ConfigError> {
    check_ids(configs)?;
    check_log(values)?;
    check_replication(values)?;
    check_connections(values)?;
    check_cordoned(values)?;
    group_checks::check_broker_bounds(values)
}

fn refuse<T>(message: String) -> Result<T, ConfigError> {
    Err(ConfigError::plain(format!("requirement failed: {message}")))
}

fn check_ids(configs: &BrokerConfigs) -> Result<(), ConfigError> {
    let id = |name: &str| configs.static_values.get(name).map(|text| text.trim());
    match (id("node.id"), id("broker.id")) {
        (Some(node), Some(broker)) if node != broker => Err(ConfigError::plain(
            "`node.id` and `broker.id` must be set to the same value, and `node.id` alone is enough".to_owned(),
        )),
        _ => Ok(()),
    }
}

fn check_log(values: &BrokerValues) -> Result<(), ConfigError> {
    for name in ["log.retention.ms", "log.retention.minutes", "log.retention.hours"] {
        if values.texts().contains_key(name) && values.integer_if_set(name)? == Some(0) {
            return refuse("log.retention.ms must be unlimited (-1) or, greater than or equal to 1".to_owned());
        }
    }
    for (name, least) in [("log.roll.ms", 1), ("log.roll.jitter.ms", 0)] {
        if values.integer_if_set(name)?.is_some_and(|value| value < least) {
            return refuse(format!("{name} must be greater than or equal to {least}"));
        }
    }
    let threads = values.integer("log.cleaner.threads")?;
    let buffer = values.integer("log.cleaner.dedupe.buffer.size")?;
    if threads < 1 || buffer / threads <= CLEANER_BUFFER_BYTES_MIN {
        return refuse("log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.".to_owned());
    }
    for name in [
        "offsets.topic.compression.codec",
        "share.coordinator.state.topic.compression.codec",
    ] {
        let codec = values.integer(name)?;
        if !(0..=4).contains(&codec) {
            return Err(ConfigError::invalid(
                name,
                &codec.to_string(),
                "Unknown compression type id".to_owned(),
            ));
        }
    }
    Ok(())
}

/// For each thread that Kafka's cleaner would have.
const CLEANER_BUFFER_BYTES_MIN: i64 = 1024 * 1024;

fn check_replication(values: &BrokerValues) -> Result<(), ConfigError> {
    let wait = values.integer("replica.fetch.wait.max.ms")?;
    if wait > values.integer("replica.socket.timeout.ms")? {
        return refuse("replica.socket.timeout.ms should always be at least replica.fetch.wait.max.ms".to_owned());
    }
    if wait > values.integer("replica.lag.time.max.ms")? {
        return refuse(
            "replica.fetch.wait.max.ms should always be less than or equal to replica.lag.time.max.ms".to_owned(),
        );
    }
    Ok(())
}

fn check_connections(values: &BrokerValues) -> Result<(), ConfigError> {
    let overrides = values.text("max.connections.per.ip.overrides")?.unwrap_or_default();
    if values.integer("max.connections.per.ip")? == 0 && overrides.is_empty() {
        return refuse(
            "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides property is set."
                .to_owned(),
        );
    }
    let queued = values.integer("queued.max.request.bytes")?;
    if queued > 0 && queued < values.integer("socket.request.max.bytes")? {
        return refuse("queued.max.request.bytes must be larger or equal to socket.request.max.bytes".to_owned());
    }
    let (delay, idle) = ("connection.failed.authentication.delay.ms", "connections.max.idle.ms");
    let (delay_ms, idle_ms) = (values.integer(delay)?, values.integer(idle)?);
    if idle_ms > 0 && delay_ms >= idle_ms {
        return refuse(format!(
            "{delay}={delay_ms} should always be less than {idle}={idle_ms}"
        ));
    }
    Ok(())
}

fn check_cordoned(values: &BrokerValues) -> Result<(), ConfigError> {
    let cordoned = values.list("cordoned.log.dirs")?;
    if cordoned.iter().any(|entry| entry == "*") {
        if cordoned.len() == 1 {
            return Ok(());
        }
        return refuse("When cordoned.log.dirs is set to *, it must not contain other values".to_owned());
    }
    let directories = log_directories(values)?;
    let missing = cordoned.iter().filter(|entry| !directories.contains(entry));
    let missing: Vec<&str> = missing.map(String::as_str).collect();
    if missing.is_empty() {
        return Ok(());
    }
    refuse(format!(
        "All entries in cordoned.log.dirs must be present in log.dirs or log.dir. Missing entries : {}",
        missing.join(", ")
    ))
}

/// `log.dirs`, or the older `log.dir` where it is not set.
pub(super) fn log_directories(values: &BrokerValues) -> Result<Vec<String>, ConfigError> {
    match values.get("log.dirs")? {
        Some(Value::List(directories)) => Ok(directories),
        _ => values.list("log.dir"),
    }
}

/// What stays on local disks is at most what stays at all (KIP-405). Kafka asks this of dynamic changes only.
///
/// # Errors
/// If more is to stay on local disks.
pub(super) fn check_local_retention(values: &BrokerValues) -> Result<(), ConfigError> {
    let key = lookup(Scope::Topic, "retention.ms");
    let retention = key.and_then(|key| values.by_synonyms(key.synonyms));
    let retention = retention.and_then(|text| text.trim().parse().ok()).unwrap_or(-1);
    for (local, whole, name) in [
        ("log.local.retention.ms", retention, "log.retention.ms"),
        (
            "log.local.retention.bytes",
            values.integer("log.retention.bytes")?,
            "log.retention.bytes",
        ),
    ] {
        let value = values.integer(local)?;
        if value != -2 && whole >= 0 && (value == -1 || value > whole) {
            let reason = format!("Value must not be more than {name} property value: {whole}");
            return Err(ConfigError::invalid(local, &value.to_string(), reason));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Apache Kafka 4.4.0 says to static configurations; made by tests/golden/StaticConfigs.java.
    const GOLDEN: &str = include_str!("../../golden/static_configs.txt");

    /// Where we refuse what Kafka takes, and why.
    const STRICTER: &[(&str, &str)] = &[
        ("listeners=PLAINTEXT://127.0.0.1:99999", "no port is as great"),
        ("default.replication.factor=", "no topic has no replicas"),
        (
            "listener.name.plaintext.max.connections=x",
            "values for one listener are checked like all others",
        ),
        (
            "listener.name.plaintext.ssl.client.auth=x",
            "values for one listener are checked like all others",
        ),
        ("request.timeout.ms=-1", "no time is negative"),
    ];

    fn configs(case: &str) -> BrokerConfigs {
        let mut configs = BrokerConfigs::default();
        let base = "process.roles=broker,controller|node.id=1|controller.listener.names=CONTROLLER|\
                    listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093|\
                    controller.quorum.bootstrap.servers=127.0.0.1:9093";
        for part in base.split('|').chain(case.split('|')) {
            match part.split_once('=') {
                Some((name, value)) => configs.static_values.insert(name.to_owned(), value.to_owned()),
                None => configs.static_values.remove(part),
            };
        }
        configs
    }

    #[test]
    fn a_node_starts_with_what_kafka_starts_with() {
        let mut wrong = Vec::new();
        for line in GOLDEN.lines() {
            let (case, verdict) = line.split_once('\t').expect("a case and a verdict");
            let ours = super::super::BrokerSettings::resolve(&configs(case));
            let is_stricter = STRICTER.iter().any(|(prefix, _)| case.starts_with(prefix));
            if ours.is_ok() != (verdict == "ok" && !is_stricter) {
                wrong.push(format!(
                    "{case}\n  kafka {verdict}\n  ours  {:?}",
                    ours.err().map(|error| error.to_string())
                ));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn values_are_refused_in_kafkas_words() {
        for line in GOLDEN.lines().filter(|line| line.contains("\tInvalid value ")) {
            let (case, verdict) = line.split_once('\t').expect("a case and a verdict");
            // Kafka speaks of broker.id where node.id is set, and looks for Java classes.
            if case == "node.id=x" || verdict.contains("Class cannot be found") {
                continue;
            }
            let error = super::super::BrokerSettings::resolve(&configs(case)).expect_err(case);
            assert!(error.to_string().starts_with(verdict), "{case}: {error}");
        }
    }
}
