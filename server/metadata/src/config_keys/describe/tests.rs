//! Descriptions of every kind of resource against the answers that Kafka gave.

use super::super::{BrokerSettings, Kind};
use super::*;
use std::collections::BTreeMap;

/// What Apache Kafka 4.4.0 answered, and what had been set before it was asked; made by tests/golden/ConfigGolden.java.
const GOLDEN: &str = include_str!("../../../golden/describe_configs.txt");

/// Keys of ours are answered beside Kafka's.
const OWN_PREFIX: &str = "millstream.";

struct Golden {
    broker: BrokerConfigs,
    /// By type and name.
    set: BTreeMap<(String, String), Configs>,
    /// Entries as the golden file writes them, by type and name.
    entries: BTreeMap<(String, String), Vec<String>>,
}

fn golden() -> Golden {
    let mut golden = Golden {
        broker: BrokerConfigs::default(),
        set: BTreeMap::new(),
        entries: BTreeMap::new(),
    };
    for line in GOLDEN.lines() {
        let part: Vec<&str> = line.split('\t').collect();
        match part[0] {
            "static" => {
                golden
                    .broker
                    .static_values
                    .insert(part[1].to_owned(), part[2].to_owned());
            }
            "given" => {
                let resource = (part[1].to_owned(), part[2].to_owned());
                golden
                    .set
                    .entry(resource)
                    .or_default()
                    .insert(part[3].to_owned(), part[4].to_owned());
            }
            "entry" => {
                let resource = (part[1].to_owned(), part[2].to_owned());
                golden.entries.entry(resource).or_default().push(part[3..].join("\t"));
            }
            other => panic!("unknown line {other}"),
        }
    }
    let set = |name: &str| {
        golden
            .set
            .get(&("BROKER".to_owned(), name.to_owned()))
            .cloned()
            .unwrap_or_default()
    };
    golden.broker.dynamic_default = set("");
    golden.broker.dynamic_broker = set("1");
    golden
}

fn source(source: ConfigSource) -> &'static str {
    match source {
        ConfigSource::DynamicTopic => "DYNAMIC_TOPIC_CONFIG",
        ConfigSource::DynamicBroker => "DYNAMIC_BROKER_CONFIG",
        ConfigSource::DynamicDefaultBroker => "DYNAMIC_DEFAULT_BROKER_CONFIG",
        ConfigSource::StaticBroker => "STATIC_BROKER_CONFIG",
        ConfigSource::Default => "DEFAULT_CONFIG",
        ConfigSource::ClientMetrics => "DYNAMIC_CLIENT_METRICS_CONFIG",
        ConfigSource::Group => "DYNAMIC_GROUP_CONFIG",
    }
}

fn line(entry: &ConfigEntry) -> String {
    let shown = |value: &Option<String>| value.as_ref().map_or("null".to_owned(), |value| format!("'{value}'"));
    let synonyms: Vec<String> = entry
        .synonyms
        .iter()
        .map(|each| format!("{}={}@{}", each.name, shown(&each.value), source(each.source)))
        .collect();
    [
        entry.name.clone(),
        entry.kind.map_or("UNKNOWN", Kind::name).to_owned(),
        shown(&entry.value),
        source(entry.source).to_owned(),
        if entry.read_only { "read-only" } else { "-" }.to_owned(),
        if entry.is_sensitive { "sensitive" } else { "-" }.to_owned(),
        synonyms.join("|"),
    ]
    .join("\t")
}

fn assert_described_as_kafka_does(kind: &str, name: &str, resource: Described<'_>, golden: &Golden) {
    let expected = &golden.entries[&(kind.to_owned(), name.to_owned())];
    let ours: Vec<String> = describe(resource, &golden.broker, None)
        .iter()
        .filter(|entry| !entry.name.starts_with(OWN_PREFIX))
        .map(line)
        .collect();
    for (ours, expected) in ours.iter().zip(expected) {
        assert_eq!(ours, expected, "{kind} {name}");
    }
    assert_eq!(ours.len(), expected.len(), "{kind} {name}");
}

#[test]
fn every_entry_of_every_resource_is_the_one_that_kafka_gives() {
    let golden = golden();
    let set = |kind: &str, name: &str| {
        golden
            .set
            .get(&(kind.to_owned(), name.to_owned()))
            .cloned()
            .unwrap_or_default()
    };
    assert_described_as_kafka_does("BROKER", "1", Described::Broker, &golden);
    assert_described_as_kafka_does("BROKER", "", Described::BrokerDefaults, &golden);
    for name in ["plain", "tuned"] {
        assert_described_as_kafka_does("TOPIC", name, Described::Topic(&set("TOPIC", name)), &golden);
    }
    for name in ["g", "absent"] {
        assert_described_as_kafka_does("GROUP", name, Described::Group(&set("GROUP", name)), &golden);
    }
    for name in ["m", "absent"] {
        let set = set("CLIENT_METRICS", name);
        assert_described_as_kafka_does("CLIENT_METRICS", name, Described::ClientMetrics(&set), &golden);
    }
}

#[test]
fn a_topics_values_are_those_that_its_settings_have() {
    let golden = golden();
    let overrides = &golden.set[&("TOPIC".to_owned(), "tuned".to_owned())];
    let mut broker = golden.broker.clone();
    broker.static_values.remove("custom.unknown");
    let settings = BrokerSettings::resolve(&broker).expect("what Kafka ran with");
    let topic = super::super::TopicSettings::resolve(overrides, &settings);
    assert_eq!(topic.segment_bytes, 4_194_304);
    assert_eq!(topic.segment.as_millis(), 360_000_000);
    assert!(topic.cleanup_policy.compact && topic.cleanup_policy.delete);
}

#[test]
fn the_filter_keeps_the_names_that_were_asked_for() {
    let golden = golden();
    let names = |filter: &[&str]| -> Vec<String> {
        let entries = describe(Described::Topic(&Configs::new()), &golden.broker, Some(filter));
        entries.into_iter().map(|entry| entry.name).collect()
    };
    assert_eq!(
        names(&["segment.ms", "bogus", "cleanup.policy"]),
        ["cleanup.policy", "segment.ms"]
    );
    assert!(names(&[]).len() > 30);
}

#[test]
fn what_is_secret_is_not_shown_anywhere() {
    let golden = golden();
    for entry in describe(Described::Broker, &golden.broker, None) {
        let values = entry
            .synonyms
            .iter()
            .map(|synonym| &synonym.value)
            .chain([&entry.value]);
        assert!(
            values.flatten().all(|value| !value.contains("secret")),
            "{}",
            entry.name
        );
    }
}

#[test]
fn a_groups_value_stays_within_what_the_broker_allows_now() {
    let mut broker = golden().broker;
    broker
        .static_values
        .insert("group.consumer.max.session.timeout.ms".to_owned(), "47000".to_owned());
    let set = Configs::from([("consumer.session.timeout.ms".to_owned(), "50000".to_owned())]);
    let entries = describe(Described::Group(&set), &broker, Some(&["consumer.session.timeout.ms"]));
    assert_eq!(entries[0].value.as_deref(), Some("47000"));
}
