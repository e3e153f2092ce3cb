//! Changes of every kind against the answers that Kafka gave.

use super::*;
use model::ErrorCode;
use proptest::prelude::*;

/// Changes and what Apache Kafka 4.4.0 said to each; made by tests/golden/ConfigGolden.java from the cases' own columns.
const GOLDEN: &str = include_str!("../../../golden/alter_configs.txt");

/// Where we answer otherwise, and why.
const DEVIATIONS: &[(&str, &str)] = &[
    (
        "SET retention.ms=5",
        "a key of topics is refused on a broker, with a hint",
    ),
    (
        "SET log.cleaner.threads=",
        "there are no thread pools whose size could change too fast",
    ),
    (
        "SET num.io.threads=",
        "there are no thread pools whose size could change too fast",
    ),
    (
        "SET num.network.threads=",
        "there are no thread pools whose size could change too fast",
    ),
    (
        "SET num.replica.fetchers=",
        "there are no thread pools whose size could change too fast",
    ),
    (
        "SET background.threads=",
        "there are no thread pools whose size could change too fast",
    ),
    ("SET metric.reporters=", "no Java class is loaded"),
    (
        "SET min.insync.replicas=2",
        "the controller refuses this, since it depends on a feature of the cluster",
    ),
];

/// Messages that are Java's own accidents.
const OTHER_WORDS: &[&str] = &[
    "begin 0, end -1",
    "org.apache.kafka.common.config.ConfigException",
    "/ by zero",
];

fn node() -> BrokerConfigs {
    let pairs = [
        ("advertised.listeners", "PLAINTEXT://127.0.0.1:9092"),
        ("controller.listener.names", "CONTROLLER"),
        ("controller.quorum.bootstrap.servers", "127.0.0.1:9093"),
        ("listeners", "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093"),
        ("log.dirs", "/kafka/data"),
        ("node.id", "1"),
        ("process.roles", "broker,controller"),
    ];
    BrokerConfigs::from_static(
        pairs
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect(),
    )
}

fn parsed<'a>(ops: &'a str) -> Vec<Change<'a>> {
    ops.split('|')
        .map(|op| {
            let (operation, rest) = op.split_once(' ').expect("an operation and a key");
            let (name, value) = match rest.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (rest, None),
            };
            let operation = match operation {
                "SET" => Operation::Set,
                "DELETE" => Operation::Delete,
                "APPEND" => Operation::Append,
                _ => Operation::Subtract,
            };
            Change { name, operation, value }
        })
        .collect()
}

fn configs(text: &str) -> Configs {
    let pairs = text.split('|').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn target(kind: &str, name: &str) -> Target {
    match (kind, name) {
        ("TOPIC", _) => Target::Topic,
        ("BROKER", "") => Target::BrokerDefaults,
        ("BROKER", _) => Target::Broker,
        ("GROUP", _) => Target::Group,
        _ => Target::ClientMetrics,
    }
}

/// What DescribeConfigs would show of the values that are set.
fn shown(target: Target, set: &Configs) -> Configs {
    set.iter()
        .map(|(name, text)| {
            let key = match target.scope() {
                Scope::Broker => names::broker_key(name).map(|(key, _)| key),
                scope => lookup(scope, name),
            };
            let value = match key {
                Some(key) if !key.is_sensitive() => key.canonical(text),
                _ => "null".to_owned(),
            };
            (name.clone(), value)
        })
        .collect()
}

fn after(target: Target, initial: &Configs, ops: &str) -> Result<Configs, AlterError> {
    let mut broker = node();
    match target {
        Target::Broker => broker.dynamic_broker = initial.clone(),
        Target::BrokerDefaults => broker.dynamic_default = initial.clone(),
        _ => {}
    }
    let mut set = initial.clone();
    for (name, value) in alter(target, initial, &parsed(ops), &broker)? {
        match value {
            Some(value) => set.insert(name, value),
            None => set.remove(&name),
        };
    }
    Ok(shown(target, &set))
}

#[test]
fn every_change_ends_as_kafka_ends_it() {
    let mut wrong = Vec::new();
    for line in GOLDEN.lines() {
        let part: Vec<&str> = line.split('\t').collect();
        let [_, kind, name, initial, ops, code, message, set] = part[..] else {
            panic!("a line of eight columns: {line}")
        };
        if kind == "BROKER" && DEVIATIONS.iter().any(|(deviation, _)| ops.starts_with(deviation)) {
            continue;
        }
        let target = target(kind, name);
        let initial = configs(initial);
        let ours = target.check_name(name).and_then(|()| after(target, &initial, ops));
        let (our_code, our_message, our_set) = match &ours {
            Ok(set) => (0, String::new(), set.clone()),
            Err(error) => (error.code().code(), error.to_string(), shown(target, &initial)),
        };
        let same_words = our_message.starts_with(message) || OTHER_WORDS.iter().any(|words| message.contains(words));
        if our_code.to_string() != code || !same_words || our_set != configs(set) {
            wrong.push(format!(
                "{kind} {name} {ops}\n  kafka {code} {message} {set}\n  ours  {our_code} {our_message} {our_set:?}"
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        GOLDEN.lines().count(),
        wrong.join("\n")
    );
}

#[test]
fn unknown_names_come_with_a_hint() {
    let error = after(Target::Topic, &Configs::new(), "SET retention.m=1").expect_err("misspelt");
    assert_eq!(error.code(), ErrorCode::InvalidConfig);
    assert_eq!(
        error.to_string(),
        "Unknown topic config name: retention.m (did you mean retention.ms?)"
    );
    let error = after(Target::Broker, &Configs::new(), "SET retention.ms=1").expect_err("a topic's");
    assert_eq!(error.code(), ErrorCode::InvalidRequest);
}

#[test]
fn replacing_deletes_what_is_not_named() {
    let current = configs("retention.ms=5|segment.ms=6|flush.ms=7");
    let next = [("retention.ms", Some("5")), ("segment.ms", Some("8"))];
    let changed = replace(Target::Topic, &current, &next, &node()).expect("valid");
    let expected = [
        ("flush.ms".to_owned(), None),
        ("segment.ms".to_owned(), Some("8".to_owned())),
    ];
    assert_eq!(changed, expected);
    let error = replace(Target::Topic, &current, &[("retention.ms", None)], &node()).expect_err("no value");
    assert_eq!(error.code(), ErrorCode::InvalidRequest);
}

#[test]
fn a_topic_with_remote_storage_keeps_less_on_its_disks_than_in_all() {
    let mut broker = node();
    broker
        .static_values
        .insert("remote.log.storage.system.enable".to_owned(), "true".to_owned());
    let check = |text: &str| check_topic(&configs(text), &broker).map_err(|error| error.to_string());
    assert_eq!(
        check("remote.storage.enable=true|retention.ms=10|local.retention.ms=10"),
        Ok(())
    );
    let error = check("remote.storage.enable=true|retention.ms=10|local.retention.ms=11").expect_err("too much");
    assert!(error.contains("local.retention.ms"), "{error}");
}

#[test]
fn a_change_that_changes_nothing_is_no_record_of_a_topic_but_one_of_a_broker() {
    let current = configs("retention.ms=5");
    let changes = parsed("SET retention.ms=5");
    assert_eq!(alter(Target::Topic, &current, &changes, &node()), Ok(Vec::new()));
    let current = configs("log.retention.ms=5");
    let changes = parsed("SET log.retention.ms=5");
    let changed = alter(Target::BrokerDefaults, &current, &changes, &node());
    assert_eq!(changed.map(|changed| changed.len()), Ok(1));
}

proptest! {
    /// What a successful change leads to can be changed again by nothing.
    #[test]
    fn what_was_accepted_is_accepted_again(
        key in proptest::sample::select(super::super::all(Scope::Topic).collect::<Vec<_>>()),
        value in prop_oneof!["[0-9]{1,12}", "-1", "true", "compact,delete", "zstd", "[a-z,:* ]{0,12}"],
    ) {
        let change = [Change { name: key.name, operation: Operation::Set, value: Some(&value) }];
        if let Ok(changed) = alter(Target::Topic, &Configs::new(), &change, &node()) {
            let set: Configs = changed.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
            prop_assert_eq!(check_topic(&set, &node()), Ok(()));
        }
    }
}
