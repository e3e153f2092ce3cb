//! The `server.properties` with which Apache Kafka serves an exported directory.
//!
//! Where the node listens is taken from what it registered, the rest from the file that it was started with, if there is
//! one. Keys under `millstream.` stay away: Kafka does not know them.

use std::collections::BTreeMap;

use metadata::config_keys::ServerProperties;
use metadata::image::Endpoint;
use quorum::exchange::Plan;
use raft::VoterEndpoint;

const OWN_KEYS: &str = "millstream.";
/// What a node needs whose internal topics have one replica.
const ONE_REPLICA: [(&str, &str); 5] = [
    ("offsets.topic.replication.factor", "1"),
    ("share.coordinator.state.topic.min.isr", "1"),
    ("share.coordinator.state.topic.replication.factor", "1"),
    ("transaction.state.log.min.isr", "1"),
    ("transaction.state.log.replication.factor", "1"),
];
/// Where the quorum's members and the data are is what was exported, whatever the file said.
const REPLACED: [&str; 4] = ["controller.quorum.voters", "log.dir", "metadata.log.dir", "broker.id"];
/// Internal topics whose number of partitions is also a key: the key follows the topic that is there.
const PARTITION_COUNTS: [(&str, &str); 3] = [
    ("__consumer_offsets", "offsets.topic.num.partitions"),
    ("__share_group_state", "share.coordinator.state.topic.num.partitions"),
    ("__transaction_state", "transaction.state.log.num.partitions"),
];
const PROTOCOLS: [&str; 4] = ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"];

/// A file and what did not go into it.
pub(super) struct Written {
    pub(super) text: String,
    pub(super) left_out: Vec<String>,
}

pub(super) fn write(plan: &Plan, given: &ServerProperties, log_directory: &str) -> Written {
    let mut values: BTreeMap<String, String> = ONE_REPLICA.iter().map(|(key, value)| pair(key, *value)).collect();
    values.extend(listeners(plan));
    let mut left_out = Vec::new();
    for (key, value) in given.values() {
        if key.starts_with(OWN_KEYS) {
            left_out.push(key.clone());
        } else {
            values.insert(key.clone(), value.clone());
        }
    }
    for key in REPLACED {
        values.remove(key);
    }
    for (topic, key) in PARTITION_COUNTS {
        if let Some(topic) = plan.image.topics.by_name(topic) {
            values.extend([pair(key, topic.partitions.len().to_string())]);
        }
    }
    values.extend([
        pair("log.dirs", log_directory),
        pair("node.id", plan.node_id.to_string()),
        pair("process.roles", "broker,controller"),
    ]);
    let line = |(key, value): (&String, &String)| format!("{}={}\n", escape(key, true), escape(value, false));
    Written {
        text: values.iter().map(line).collect(),
        left_out,
    }
}

fn pair(key: &str, value: impl Into<String>) -> (String, String) {
    (key.to_owned(), value.into())
}

/// Everything that says where the node is found: as it registered.
fn listeners(plan: &Plan) -> BTreeMap<String, String> {
    let brokers: &[Endpoint] = plan.image.cluster.broker(plan.node_id).map_or(&[], |it| &it.endpoints);
    let controllers: &[VoterEndpoint] = plan.voters.get(plan.node_id).map_or(&[], |it| &it.endpoints);
    let registered = plan.image.cluster.controllers.get(&plan.node_id);
    let protocol_of = |name: &str| {
        let endpoints = registered.map(|it| it.endpoints.as_slice()).unwrap_or_default();
        endpoints
            .iter()
            .find(|it| &*it.name == name)
            .map_or(0, |it| it.security_protocol)
    };
    let broker = brokers
        .iter()
        .map(|it| (&*it.name, &*it.host, it.port, it.security_protocol));
    let controller = controllers
        .iter()
        .map(|it| (&*it.name, &*it.host, it.port, protocol_of(&it.name)));
    let (mut bound, mut protocols) = (Vec::new(), Vec::new());
    for (name, host, port, protocol) in broker.clone().chain(controller.clone()) {
        bound.push(format!("{name}://{}:{port}", bind_host(host)));
        protocols.push(format!("{name}:{}", protocol_name(protocol)));
    }
    // Who listens at one address only is found there.
    let elsewhere = controller.clone().filter(|(_, host, ..)| bind_host(host).is_empty());
    let advertised = broker.clone().chain(elsewhere);
    let advertised: Vec<String> = advertised
        .map(|(name, host, port, _)| format!("{name}://{}:{port}", bracketed(host)))
        .collect();
    let names: Vec<&str> = controller.clone().map(|(name, ..)| name).collect();
    let addresses: Vec<String> = controller
        .map(|(_, host, port, _)| format!("{}:{port}", bracketed(host)))
        .collect();
    let mut values = BTreeMap::from([
        pair("advertised.listeners", advertised.join(",")),
        pair("controller.listener.names", names.join(",")),
        pair(
            "controller.quorum.bootstrap.servers",
            addresses.first().cloned().unwrap_or_default(),
        ),
        pair("listener.security.protocol.map", protocols.join(",")),
        pair("listeners", bound.join(",")),
    ]);
    if let Some(first) = brokers.first() {
        values.extend([pair("inter.broker.listener.name", &*first.name)]);
    }
    values
}

fn protocol_name(number: i16) -> &'static str {
    usize::try_from(number)
        .ok()
        .and_then(|number| PROTOCOLS.get(number))
        .unwrap_or(&PROTOCOLS[0])
}

/// A node that is reached at its own machine only listens there; the name by which others reach one need not be one of its
/// own addresses.
fn bind_host(host: &str) -> String {
    let is_local = host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|it| it.is_loopback());
    if is_local { bracketed(host) } else { String::new() }
}

fn bracketed(host: &str) -> String {
    if host.contains(':') {
        format!("[{host}]")
    } else {
        host.to_owned()
    }
}

/// As a properties file of Java has it.
fn escape(text: &str, is_key: bool) -> String {
    let mut escaped = String::new();
    for (at, character) in text.chars().enumerate() {
        match character {
            '\\' => escaped.push_str("\\\\"),
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\t' => escaped.push_str("\\t"),
            '\u{c}' => escaped.push_str("\\f"),
            ' ' if is_key || at == 0 => escaped.push_str("\\ "),
            '=' | ':' | '#' | '!' if is_key => escaped.extend(['\\', character]),
            ' '..='~' => escaped.push(character),
            other => {
                for unit in other.encode_utf16(&mut [0; 2]) {
                    escaped.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_survive_a_properties_file() {
        let text = format!("{}={}\n", escape("a:b =c", true), escape(" \u{fc}\u{1f30a}\t\\", false));
        let read = ServerProperties::from_file(&text).unwrap();
        let pairs: Vec<(&str, &str)> = read
            .values()
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect();
        assert_eq!(pairs, [("a:b =c", " \u{fc}\u{1f30a}\t\\")]);
    }

    #[test]
    fn a_host_that_others_reach_need_not_be_an_own_address() {
        assert_eq!(bind_host("127.0.0.1"), "127.0.0.1");
        assert_eq!(bind_host("::1"), "[::1]");
        assert_eq!(bind_host("broker.example"), "");
    }
}
