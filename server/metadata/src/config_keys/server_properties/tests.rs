//! The properties format, and the merge of file, environment and command line.

use super::super::BrokerSettings;
use super::*;
use proptest::prelude::*;

fn pairs(text: &str) -> Vec<(String, String)> {
    parse_properties(text).expect("a properties file").into_iter().collect()
}

fn pair(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

#[test]
fn separators_are_equals_colon_and_blanks() {
    for line in ["a=b", "a:b", "a b", "a = b", "  a\t:  b", "a   b", "a=b  "] {
        assert_eq!(pairs(line), [pair("a", "b")], "{line:?}");
    }
    assert_eq!(pairs("a"), [pair("a", "")]);
    assert_eq!(pairs("a=b=c"), [pair("a", "b=c")]);
    assert_eq!(
        pairs("listeners=A://h:1,B://h:2"),
        [pair("listeners", "A://h:1,B://h:2")]
    );
}

#[test]
fn comments_and_blank_lines_are_passed_over() {
    assert_eq!(
        pairs("# a=b\n\n  ! c=d\r\ne=f\rg=h # not a comment"),
        [pair("e", "f"), pair("g", "h # not a comment")]
    );
}

#[test]
fn a_backslash_at_the_end_joins_the_next_line() {
    assert_eq!(
        pairs("a=b,\\\n   c,\\\n# d\ne=f"),
        [pair("a", "b,c,# d"), pair("e", "f")]
    );
    assert_eq!(pairs("a=b\\\\\nc=d"), [pair("a", "b\\"), pair("c", "d")]);
    assert_eq!(pairs("a=b\\"), [pair("a", "b")]);
}

#[test]
fn escapes_are_javas() {
    assert_eq!(
        pairs("a\\ b\\=c\\:=\\t\\u00e4\\ud83d\\ude00\\q"),
        [pair("a b=c:", "\tä😀q")]
    );
    assert!(parse_properties("a=\\u12").is_err());
    assert!(parse_properties("a=\\u12x4").is_err());
}

#[test]
fn the_last_of_a_name_wins() {
    assert_eq!(pairs("a=1\na=2"), [pair("a", "2")]);
}

#[test]
fn environment_wins_over_the_file_and_the_command_line_over_both() {
    let loaded = ServerProperties::from_file("num.partitions=1\nlog.segment.bytes=2000000\nmessage.max.bytes=1")
        .and_then(|properties| {
            properties.with_environment([
                ("MILLSTREAM_LOG_SEGMENT_BYTES", "3000000"),
                ("MILLSTREAM_MESSAGE_MAX_BYTES", "2"),
                ("PATH", "/bin"),
            ])
        })
        .map(|properties| properties.with_settings(["message.max.bytes=3".parse().expect("a setting")]))
        .and_then(ServerProperties::load)
        .expect("valid");
    let values: Vec<&str> = loaded.configs.static_values.values().map(String::as_str).collect();
    assert_eq!(values, ["3000000", "3", "1"]);
    assert!(loaded.notices.is_empty());
}

#[test]
fn variables_find_their_keys() {
    for (variable, key) in [
        ("MILLSTREAM_NODE_ID", "node.id"),
        ("MILLSTREAM_ACKS_DURABILITY", "millstream.acks.durability"),
        ("MILLSTREAM_MILLSTREAM_ACKS_DURABILITY", "millstream.acks.durability"),
        ("MILLSTREAM_HTTP_LISTENERS", "millstream.http.listeners"),
        (
            "MILLSTREAM_LISTENER_NAME_INTERNAL_SSL_KEYSTORE_TYPE",
            "listener.name.internal.ssl.keystore.type",
        ),
        (
            "MILLSTREAM_LISTENER_NAME_MY_NET_MAX_CONNECTIONS",
            "listener.name.my_net.max.connections",
        ),
        ("MILLSTREAM_ZOOKEEPER_CONNECT", "zookeeper.connect"),
    ] {
        assert_eq!(key_of_variable(variable).as_deref(), Ok(key), "{variable}");
    }
    let error = key_of_variable("MILLSTREAM_LOG_SEGMNET_BYTES")
        .expect_err("misspelt")
        .to_string();
    assert!(
        error.contains("MILLSTREAM_LOG_SEGMNET_BYTES") && error.contains("log.segment.bytes?"),
        "{error}"
    );
}

#[test]
fn no_two_keys_share_a_variable() {
    let mut variables = std::collections::BTreeSet::new();
    for key in all(Scope::Broker) {
        assert!(variables.insert(key.name.replace(['.', '-'], "_")), "{}", key.name);
    }
}

#[test]
fn without_a_file_a_node_is_alone_and_on_loopback() {
    let loaded = ServerProperties::single_node().load().expect("valid");
    let settings = BrokerSettings::resolve(&loaded.configs).expect("valid");
    assert!(settings.roles.broker && settings.roles.controller);
    assert_eq!(settings.offsets_topic.replication_factor, 1);
    assert_eq!(settings.listeners.broker[0].host.as_deref(), Some("127.0.0.1"));
    assert_eq!(settings.log.directories, ["./millstream-data/log"]);
}

#[test]
fn a_lone_node_on_other_ports_finds_its_own_controller() {
    let setting = "listeners=PLAINTEXT://127.0.0.1:1,CONTROLLER://127.0.0.1:2"
        .parse()
        .expect("a setting");
    let loaded = ServerProperties::single_node()
        .with_settings([setting])
        .load()
        .expect("valid");
    let settings = BrokerSettings::resolve(&loaded.configs).expect("valid");
    assert_eq!(settings.quorum.bootstrap_servers[0].to_string(), "127.0.0.1:2");
}

#[test]
fn unknown_names_are_refused_with_a_hint() {
    let load = |text: &str| ServerProperties::from_file(text).and_then(ServerProperties::load);
    let error = load("log.segment.ms=5").expect_err("a wrong name").to_string();
    assert_eq!(
        error,
        "Unknown broker config name: log.segment.ms (did you mean log.roll.ms?)"
    );
    let error = load("bogus=5").expect_err("a wrong name").to_string();
    assert_eq!(error, "Unknown broker config name: bogus");
}

#[test]
fn a_file_written_for_kafka_works_as_it_is() {
    let text = include_str!("kafka-server.properties");
    let loaded = ServerProperties::from_file(text)
        .and_then(ServerProperties::load)
        .expect("valid");
    let settings = BrokerSettings::resolve(&loaded.configs).expect("valid");
    assert_eq!(settings.partitions, 1);
    assert_eq!(settings.connections.request_bytes_max, 104_857_600);
    let notices: Vec<String> = loaded.notices.iter().map(ToString::to_string).collect();
    assert!(
        notices.iter().any(|notice| notice.starts_with("num.io.threads")),
        "{notices:?}"
    );
}

#[test]
fn secrets_do_not_reach_a_log() {
    let text = "ssl.key.password=hush\nlistener.name.x.sasl.jaas.config=hush\nrsm.config.key=hush";
    let properties = ServerProperties::from_file(text).expect("valid");
    let settings: Setting = "ssl.key.password=hush".parse().expect("a setting");
    let shown = format!("{properties:?} {settings:?} {:?}", properties.clone().load());
    assert!(!shown.contains("hush") && shown.contains("ssl.key.password"), "{shown}");
}

/// What Java's `Properties.store` would write.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for character in text.chars() {
        match character {
            ' ' | '\\' | '=' | ':' | '#' | '!' => out.extend(['\\', character]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{c}' => out.push_str("\\f"),
            other if (' '..='~').contains(&other) => out.push(other),
            other => {
                for unit in other.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04X}"));
                }
            }
        }
    }
    out
}

proptest! {
    #[test]
    fn what_java_writes_is_read_back(name in "[^\\s\\x00]{1,12}", value in "\\PC{0,20}") {
        let line = format!("{}={}", escaped(&name), escaped(&value));
        prop_assert_eq!(pairs(&line), [(name, value.trim_end().to_owned())]);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[a\\\\=: \\n\\r\\tu0#]{0,40}") {
        let _ = parse_properties(&text);
    }
}
