//! Modules, processors and the plugins of topics, as they are deployed.

use std::sync::atomic::Ordering;

use plugin::ProcessorName;
use plugin::deployment::{DEPLOYMENTS_TOPIC, PIECE_BYTES_MAX, PLUGINS_TOPIC};
use plugin::logs::Level;
use plugin::running::{DeploymentError, TaskPhase};

use super::*;
use crate::fake_node::admin::{Created, INTERNAL_REPLICATION};
use crate::fake_plugins::{digest_of, task};

const WASM: &str = "Content-Type: application/wasm\r\n";
const JSON: &str = "Content-Type: application/json\r\n";
const AGGREGATOR: &str = "\0asm aggregator delays";

impl Door {
    pub(super) async fn upload(&self, module: &str) -> (u16, String) {
        let (status, _, body) = self.call("POST", "/api/v1/modules", WASM, module).await;
        (status, body)
    }

    /// Uploads a module that is not there yet; its digest.
    pub(super) async fn module(&self, module: &str) -> String {
        let (status, body) = self.upload(module).await;
        assert_eq!(status, 201, "{body}");
        digest_of(module.as_bytes()).to_string()
    }

    pub(super) async fn json(&self, method: &str, target: &str, body: &str) -> (u16, serde_json::Value) {
        let headers = if body.is_empty() && method == "GET" { "" } else { JSON };
        let (status, _, body) = self.call(method, &format!("/api/v1/{target}"), headers, body).await;
        (status, serde_json::from_str(&body).unwrap_or_default())
    }

    async fn deploy(&self, name: &str, spec: &serde_json::Value) -> (u16, serde_json::Value) {
        self.json("PUT", &format!("processors/{name}"), &spec.to_string()).await
    }
}

fn spec(module: &str) -> serde_json::Value {
    serde_json::json!({
        "module": module, "input": "three", "from": "earliest", "output": "results", "emit": "update",
        "window": {"type": "hopping", "size_ms": 3_600_000, "advance_ms": 900_000, "grace_ms": 0},
    })
}

fn name(name: &str) -> ProcessorName {
    ProcessorName::new(name).unwrap()
}

#[tokio::test]
async fn a_module_is_there_when_its_upload_is_answered_and_is_written_once() {
    let door = Door::open(Limits::default()).await;
    let module = format!("{AGGREGATOR} {}", "x".repeat(2 * PIECE_BYTES_MAX));
    let digest = door.module(&module).await;
    let written = door.node.records(PLUGINS_TOPIC);
    assert_eq!(written.len(), 4, "three pieces and the record that it is whole");
    assert!(
        written
            .iter()
            .all(|record| record.value.as_ref().unwrap().len() <= PIECE_BYTES_MAX)
    );
    let (status, again) = door.upload(&module).await;
    assert_eq!((status, door.node.log_end(PLUGINS_TOPIC)), (200, 4), "{again}");
    let (status, got) = door.json("GET", &format!("modules/{digest}"), "").await;
    assert_eq!(
        (status, got["sha256"].as_str(), got["size"].as_u64()),
        (200, Some(&*digest), Some(module.len() as u64))
    );
    let expected = serde_json::json!({
        "sha256": digest, "size": module.len(), "world": "window-aggregator", "name": "delays", "version": "1.0.0",
        "doc": "A double.", "parameters": [],
    });
    let (_, all) = door.json("GET", "modules", "").await;
    assert_eq!(all, serde_json::json!({"modules": [expected]}));
    let topic = Created {
        name: PLUGINS_TOPIC.to_owned(),
        partitions: 1,
        replication_factor: INTERNAL_REPLICATION,
        configs: vec![
            "cleanup.policy=compact".to_owned(),
            format!("max.message.bytes={}", (1 << 20) + (64 << 10)),
        ],
    };
    assert_eq!(door.node.created(), [topic]);
}

#[tokio::test]
async fn a_module_that_cannot_run_is_refused_by_name_and_nothing_is_written() {
    let door = Door::open(Limits::default()).await;
    for (module, code, named) in [
        ("", "not_wasm", "\\\\0asm"),
        ("MZ", "not_wasm", "\\\\0asm"),
        ("\0asm core", "core_module", "component"),
        (
            "\0asm lacks millstream:plugin/coding",
            "missing_export",
            "millstream:plugin/coding",
        ),
        (
            "\0asm wasi wasi:clocks/wall-clock",
            "wasi_import",
            "wasi:clocks/wall-clock",
        ),
    ] {
        let (status, body) = door.upload(module).await;
        assert_eq!(status, 422, "{body}");
        assert!(
            body.contains(&format!(r#""code":"{code}""#)) && body.contains(named),
            "{body}"
        );
    }
    for kind in [
        "application/octet-stream",
        "application/json",
        "text/plain",
        "application/wasm+x",
    ] {
        let header = format!("Content-Type: {kind}\r\n");
        let (status, _, body) = door.call("POST", "/api/v1/modules", &header, AGGREGATOR).await;
        assert!(
            status == 415 && body.contains("unsupported_media_type"),
            "{kind}: {body}"
        );
    }
    let text = format!(
        "POST /api/v1/modules HTTP/1.1\r\nHost: localhost:{}\r\nConnection: close\r\n{WASM}Content-Length: {}\r\n\r\n",
        door.port,
        (64 << 20) + 1
    );
    let (status, _, body) = door.exchange(&text).await;
    assert!(status == 413 && body.contains("body_too_large"), "{body}");
    assert!(door.node.created().is_empty());
}

#[tokio::test]
async fn two_uploads_of_one_module_at_once_both_succeed() {
    let door = Door::open(Limits::default()).await;
    let module = format!("{AGGREGATOR} {}", "x".repeat(PIECE_BYTES_MAX));
    let (one, other) = tokio::join!(door.upload(&module), door.upload(&module));
    let mut statuses = [one.0, other.0];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 201], "{} {}", one.1, other.1);
    assert_eq!(door.node.log_end(PLUGINS_TOPIC), 3);
}

#[tokio::test]
async fn an_upload_that_broke_off_is_made_whole_by_the_next() {
    let door = Door::open(Limits::default()).await;
    door.module("\0asm aggregator other").await;
    let piece = format!(
        r#"{{"key":"{}/000000","value":"\u0000asm aggr"}}"#,
        digest_of(AGGREGATOR.as_bytes())
    );
    let body = format!(r#"{{"records":[{piece}]}}"#);
    let target = format!("/api/v1/topics/{PLUGINS_TOPIC}/records?value_format=text");
    assert_eq!(door.call("POST", &target, JSON, &body).await.0, 200);
    let digest = digest_of(AGGREGATOR.as_bytes()).to_string();
    assert_eq!(door.json("GET", &format!("modules/{digest}"), "").await.0, 404);
    assert_eq!(door.module(AGGREGATOR).await, digest);
    assert_eq!(door.json("GET", &format!("modules/{digest}"), "").await.0, 200);
}

#[tokio::test]
async fn modules_arrive_so_many_at_a_time() {
    let limits = Limits {
        uploads_max: 1,
        body_wait_max: Duration::from_millis(20),
        ..Limits::default()
    };
    let door = Door::open(limits).await;
    let mut slow = door.connect().await;
    let text = format!(
        "POST /api/v1/modules HTTP/1.1\r\nHost: localhost:{}\r\n{WASM}Content-Length: 10\r\n\r\n\0",
        door.port
    );
    slow.write_all(text.as_bytes()).await.unwrap();
    // Until the slow one has been given the place, others are served.
    let refused = loop {
        let (status, body) = door.upload(AGGREGATOR).await;
        if status >= 300 {
            break (status, body);
        }
    };
    assert!(refused.0 == 503 && refused.1.contains("overloaded"), "{}", refused.1);
    drop(slow);
    let served = loop {
        let (status, _) = door.upload(AGGREGATOR).await;
        if status != 503 {
            break status;
        }
    };
    assert_eq!(served / 100, 2, "its place is given back");
}

#[tokio::test]
async fn a_module_that_is_used_stays_and_says_by_what() {
    let door = Door::open(Limits::default()).await;
    let (digest, serde) = (door.module(AGGREGATOR).await, door.module("\0asm serde angle").await);
    assert_eq!(door.deploy("delays", &spec(&digest)).await.0, 201);
    let binding = format!(r#"{{"value_serde":"{serde}"}}"#);
    assert_eq!(door.json("PUT", "topics/one/plugins", &binding).await.0, 201);
    for (digest, user) in [(&digest, "processor delays"), (&serde, "topic one")] {
        let (status, body) = door.json("DELETE", &format!("modules/{digest}"), "").await;
        assert_eq!((status, body["code"].as_str()), (409, Some("module_in_use")));
        assert!(body["detail"].as_str().unwrap().contains(user), "{body}");
    }
    assert_eq!(door.json("DELETE", "processors/delays", "").await.0, 204);
    assert_eq!(door.json("DELETE", "topics/one/plugins", "").await.0, 204);
    for digest in [&digest, &serde] {
        assert_eq!(door.json("DELETE", &format!("modules/{digest}"), "").await.0, 204);
        let (status, body) = door.json("DELETE", &format!("modules/{digest}"), "").await;
        assert_eq!((status, body["code"].as_str()), (404, Some("unknown_module")));
    }
    let left = door.node.records(PLUGINS_TOPIC);
    let tombstones = left.iter().filter(|record| record.value.is_none()).count();
    assert_eq!(tombstones, 4, "each module's record and its one piece");
    assert_eq!(door.json("GET", "modules/abc", "").await.1["code"], "invalid_digest");
}

#[tokio::test]
async fn a_processor_gets_the_topics_that_it_needs() {
    let door = Door::open(Limits::default()).await;
    let digest = door.module(AGGREGATOR).await;
    let (status, body) = door.deploy("delays", &spec(&digest)).await;
    let mut expected = spec(&digest);
    for (field, value) in [
        ("name", "delays"),
        ("state", "running"),
        ("dead_letter_topic", "delays-dead-letter"),
        ("changelog_topic", "delays-changelog"),
    ] {
        expected[field] = value.into();
    }
    expected["version"] = 1.into();
    expected["config"] = serde_json::json!({});
    assert_eq!((status, &body), (201, &expected));
    assert_eq!(door.json("GET", "processors/delays", "").await, (200, expected.clone()));
    assert_eq!(
        door.json("GET", "processors", "").await.1,
        serde_json::json!({"processors": [expected]})
    );
    let created = door.node.created();
    let created: BTreeMap<&str, &Created> = created.iter().map(|topic| (topic.name.as_str(), topic)).collect();
    for topic in ["results", "delays-dead-letter", "delays-changelog"] {
        assert_eq!(
            (created[topic].partitions, created[topic].replication_factor),
            (3, 1),
            "{topic}"
        );
    }
    assert!(
        created["delays-changelog"]
            .configs
            .contains(&"cleanup.policy=compact".to_owned())
    );
    for topic in ["results", "delays-dead-letter"] {
        assert_eq!(created[topic].configs, ["retention.ms=-1"], "{topic}");
    }
    assert!(created.contains_key(DEPLOYMENTS_TOPIC));
}

#[tokio::test]
async fn what_changes_nothing_keeps_its_version_and_writes_nothing() {
    let door = Door::open(Limits::default()).await;
    let digest = door.module(AGGREGATOR).await;
    let mut spec = spec(&digest);
    assert_eq!(door.deploy("delays", &spec).await.0, 201);
    let (status, body) = door.deploy("delays", &spec).await;
    assert_eq!(
        (status, &body["version"], door.node.log_end(DEPLOYMENTS_TOPIC)),
        (200, &1.into(), 1)
    );
    spec["config"] = serde_json::json!({"field": "delay"});
    let (status, body) = door.deploy("delays", &spec).await;
    assert_eq!(
        (status, &body["version"], door.node.log_end(DEPLOYMENTS_TOPIC)),
        (200, &2.into(), 2)
    );
    assert_eq!(body["config"]["field"], "delay");
    // Tumbling windows advance by their size, whether that is said or not.
    spec["window"] = serde_json::json!({"type": "tumbling", "size_ms": 5, "grace_ms": 0});
    assert_eq!(door.deploy("delays", &spec).await.1["version"], 3);
    spec["window"]["advance_ms"] = 5.into();
    assert_eq!(door.deploy("delays", &spec).await.1["version"], 3);
}

#[tokio::test]
async fn a_topic_that_grew_or_went_is_mended_by_the_same_request() {
    let door = Door::open(Limits::default()).await;
    let digest = door.module(AGGREGATOR).await;
    let mut spec = spec(&digest);
    spec["input"] = "one".into();
    assert_eq!(door.deploy("delays", &spec).await.0, 201);
    assert_eq!(
        door.json("POST", "topics/one/partitions", r#"{"count":4}"#).await.0,
        204
    );
    door.node.delete_topic("results");
    assert_eq!(door.deploy("delays", &spec).await.0, 200);
    for topic in ["delays-changelog", "delays-dead-letter", "results"] {
        assert_eq!(door.node.partitions(topic), Some(4), "{topic}");
    }
}

#[tokio::test]
async fn each_field_that_cannot_be_is_named() {
    let door = Door::open(Limits::default()).await;
    let (digest, serde) = (door.module(AGGREGATOR).await, door.module("\0asm serde angle").await);
    let needy = door.module("\0asm aggregator needy").await;
    let long = serde_json::json!({"x": "y".repeat(64 << 10)});
    let many: BTreeMap<String, String> = (0..257).map(|number| (number.to_string(), String::new())).collect();
    let cases: Vec<(&str, serde_json::Value, &str)> = vec![
        ("/module", serde_json::Value::Null, "module"),
        ("/module", "abc".into(), "module"),
        ("/module", 5.into(), "module"),
        ("/module", "0".repeat(64).into(), "module"),
        ("/module", serde.into(), "module"),
        ("/module", needy.into(), "config"),
        ("/input", "a/b".into(), "input"),
        ("/input", "absent".into(), "input"),
        ("/input", "p-changelog".into(), "input"),
        ("/from", "first".into(), "from"),
        ("/from", "offset:-1".into(), "from"),
        ("/output", serde_json::json!([]), "output"),
        ("/output", "three".into(), "output"),
        ("/output", "__consumer_offsets".into(), "output"),
        ("/output", "p-dead-letter".into(), "output"),
        ("/window", serde_json::Value::Null, "window"),
        ("/window", 5.into(), "window"),
        ("/window", serde_json::json!(["tumbling", 5, null, 0]), "window"),
        ("/window", serde_json::json!({"size": 5}), "window"),
        ("/window/type", "sliding".into(), "window.type"),
        ("/window/size_ms", 0.into(), "window.size_ms"),
        ("/window/size_ms", 1.5.into(), "window.size_ms"),
        ("/window/size_ms", "5".into(), "window.size_ms"),
        ("/window/advance_ms", serde_json::Value::Null, "window.advance_ms"),
        ("/window/advance_ms", 0.into(), "window.advance_ms"),
        ("/window/advance_ms", 3_600_001.into(), "window.advance_ms"),
        ("/window/type", "tumbling".into(), "window.advance_ms"),
        ("/window/grace_ms", serde_json::Value::Null, "window.grace_ms"),
        ("/window/grace_ms", (-1).into(), "window.grace_ms"),
        ("/emit", "both".into(), "emit"),
        ("/config", serde_json::json!({"a": 1}), "config"),
        ("/config", long, "config"),
        ("/config", serde_json::to_value(many).unwrap(), "config"),
    ];
    for (place, value, field) in cases {
        let mut spec = spec(&digest);
        spec["config"] = serde_json::Value::Null;
        *spec.pointer_mut(place).unwrap() = value.clone();
        let (status, body) = door.deploy("p", &spec).await;
        assert_eq!(
            (status, body["field"].as_str()),
            (422, Some(field)),
            "{place} {value:.80}: {body}"
        );
        assert!(
            body["detail"].as_str().unwrap().contains(&format!("`{field}`")),
            "{body}"
        );
    }
    for (bad, named) in [
        (r#"{"modul":"x"}"#, "modul"),
        (r#"{"module":"x","module":"y"}"#, "module"),
        ("[]", "object"),
        ("", ""),
    ] {
        let (status, body) = door.json("PUT", "processors/p", bad).await;
        assert_eq!(status, 400, "{bad}: {body}");
        assert!(body["detail"].as_str().unwrap().contains(named), "{body}");
    }
    assert_eq!(door.node.log_end(DEPLOYMENTS_TOPIC), 0);
    assert_eq!(
        door.node.partitions("p-changelog"),
        None,
        "nothing is created for what cannot be"
    );
}

#[tokio::test]
async fn only_names_that_topics_can_be_named_after_are_names() {
    let door = Door::open(Limits::default()).await;
    let digest = door.module(AGGREGATOR).await;
    for bad in ["a%2Fb", "a%20b", "%2E%2E", "__own", &"x".repeat(201), "%C3%A4", "a%00"] {
        let (status, body) = door.deploy(bad, &spec(&digest)).await;
        assert_eq!(
            (status, body["code"].as_str()),
            (422, Some("invalid_processor_name")),
            "{bad}: {body}"
        );
    }
    for good in ["a.b_c-D9", &"x".repeat(200)] {
        assert_eq!(door.deploy(good, &spec(&digest)).await.0, 201, "{good}");
    }
    for (method, target) in [
        ("GET", ""),
        ("DELETE", ""),
        ("POST", "/pause"),
        ("POST", "/resume"),
        ("GET", "/status"),
        ("GET", "/logs"),
    ] {
        let (status, body) = door.json(method, &format!("processors/absent{target}"), "").await;
        assert_eq!(
            (status, body["code"].as_str()),
            (404, Some("unknown_processor")),
            "{method} {target}"
        );
    }
}

#[tokio::test]
async fn changes_at_once_are_made_one_after_the_other() {
    let door = Door::open(Limits::default()).await;
    let digest = door.module(AGGREGATOR).await;
    let deploy = async |size: i64| {
        let mut spec = spec(&digest);
        spec["window"] = serde_json::json!({"type": "tumbling", "size_ms": size, "grace_ms": 0});
        let (status, body) = door.deploy("delays", &spec).await;
        assert!(status == 200 || status == 201, "{body}");
        body["version"].as_u64().unwrap()
    };
    let (one, two, three, four) = tokio::join!(deploy(1), deploy(2), deploy(3), deploy(4));
    let versions = BTreeSet::from([one, two, three, four]);
    assert_eq!(versions, BTreeSet::from([1, 2, 3, 4]));
    assert_eq!(door.json("GET", "processors/delays", "").await.1["version"], 4);
}

#[tokio::test]
async fn an_answer_waits_until_the_node_has_seen_the_change() {
    let door = Arc::new(Door::open(Limits::default()).await);
    let digest = door.module(AGGREGATOR).await;
    door.plugins.hold(true);
    let asking = tokio::spawn({
        let (door, spec) = (door.clone(), spec(&digest));
        async move { door.deploy("delays", &spec).await }
    });
    while door.plugins.looks.load(Ordering::SeqCst) < 3 {
        assert!(!asking.is_finished(), "answered before the node has seen it");
        tokio::task::yield_now().await;
    }
    door.plugins.hold(false);
    assert_eq!(asking.await.unwrap().0, 201);
}

#[tokio::test]
async fn just_after_a_start_nothing_goes_past_the_plugins_that_are_not_known_yet() {
    let door = Arc::new(Door::open(Limits::default()).await);
    door.plugins.behind.store(true, Ordering::SeqCst);
    for (method, target, body) in [
        ("GET", "processors", ""),
        ("GET", "modules", ""),
        ("GET", "topics/one/plugins", ""),
        ("POST", "topics/one/records", r#"{"records":[{"value":1}]}"#),
    ] {
        door.plugins.looks.store(0, Ordering::SeqCst);
        let asking = tokio::spawn({
            let door = door.clone();
            async move { door.json(method, target, body).await }
        });
        while door.plugins.looks.load(Ordering::SeqCst) < 3 {
            assert!(
                !asking.is_finished(),
                "{target} answered before it is known what is deployed"
            );
            tokio::task::yield_now().await;
        }
        assert_eq!(door.node.log_end("one"), 0, "{target}");
        door.plugins.behind.store(false, Ordering::SeqCst);
        assert_eq!(asking.await.unwrap().0, 200, "{target}");
        door.plugins.behind.store(true, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn what_is_deployed_is_not_deleted_with_its_topic() {
    let door = Door::open(Limits::default()).await;
    let digest = door.module(AGGREGATOR).await;
    let (status, body) = door.json("DELETE", &format!("topics/{PLUGINS_TOPIC}"), "").await;
    assert_eq!((status, body["code"].as_str()), (409, Some("internal_topic")), "{body}");
    let (_, topic) = door.json("GET", "topics", "").await;
    let topic = topic["topics"]
        .as_array()
        .unwrap()
        .iter()
        .find(|topic| topic["name"] == PLUGINS_TOPIC);
    assert_eq!(topic.unwrap()["internal"], true);
    assert_eq!(door.json("GET", &format!("modules/{digest}"), "").await.0, 200);
}

#[tokio::test]
async fn somebodys_topic_is_not_taken_for_a_changelog() {
    let door = Door::open(Limits::default()).await;
    let digest = door.module(AGGREGATOR).await;
    for (policy, key, status) in [
        ("delete", None, 409),
        ("compact", Some("a"), 409),
        ("compact", Some("\0"), 201),
    ] {
        let topic = serde_json::json!({
            "name": "delays-changelog", "partitions": 3, "configs": {"cleanup.policy": policy},
        });
        assert_eq!(door.json("POST", "topics", &topic.to_string()).await.0, 201);
        if let Some(key) = key {
            let records = serde_json::json!({"records": [{"key": key, "value": "precious", "partition": 2}]});
            let written = door
                .json("POST", "topics/delays-changelog/records", &records.to_string())
                .await;
            assert_eq!(written.0, 200, "{}", written.1);
        }
        let (got, body) = door.deploy("delays", &spec(&digest)).await;
        assert_eq!(got, status, "{policy} {key:?}: {body}");
        if status == 409 {
            assert_eq!(body["code"], "changelog_exists");
            assert_eq!(door.node.partitions("results"), None, "nothing is made for it");
            door.node.delete_topic("delays-changelog");
        }
    }
}

#[tokio::test]
async fn what_would_orphan_state_is_a_conflict_that_says_what_to_do() {
    let door = Door::open(Limits::default()).await;
    let digest = door.module(AGGREGATOR).await;
    assert_eq!(door.deploy("delays", &spec(&digest)).await.0, 201);
    let refuse = |refusal| *door.plugins.refusal.lock().unwrap() = Some(refusal);
    refuse(DeploymentError::OrphansState(
        "its windows have another size".to_owned(),
    ));
    let mut changed = spec(&digest);
    changed["window"]["size_ms"] = 1_800_000.into();
    let (status, body) = door.deploy("delays", &changed).await;
    assert_eq!((status, body["code"].as_str()), (409, Some("orphans_state")));
    let detail = body["detail"].as_str().unwrap();
    assert!(
        detail.contains("another size") && detail.contains("delete the processor"),
        "{detail}"
    );
    refuse(DeploymentError::Field {
        field: "window.size_ms",
        reason: "too small".to_owned(),
    });
    let (status, body) = door.deploy("delays", &changed).await;
    assert_eq!((status, body["field"].as_str()), (422, Some("window.size_ms")));
    assert_eq!(door.json("GET", "processors/delays", "").await.1["version"], 1);
}

#[tokio::test]
async fn pausing_keeps_the_version_and_a_paused_processor_is_changed_paused() {
    let door = Door::open(Limits::default()).await;
    let digest = door.module(AGGREGATOR).await;
    let mut spec = spec(&digest);
    door.deploy("delays", &spec).await;
    for (how, state) in [
        ("pause", "paused"),
        ("pause", "paused"),
        ("resume", "running"),
        ("pause", "paused"),
    ] {
        let (status, body) = door.json("POST", &format!("processors/delays/{how}"), "").await;
        assert_eq!(
            (status, &body["state"], &body["version"]),
            (200, &state.into(), &1.into())
        );
    }
    spec["emit"] = "final".into();
    let (_, body) = door.deploy("delays", &spec).await;
    assert_eq!((&body["state"], &body["version"]), (&"paused".into(), &2.into()));
    assert_eq!(door.json("POST", "processors/delays/resume", "{}").await.0, 200);
    let (status, _) = door.json("POST", "processors/delays/resume", r#"{"version":1}"#).await;
    assert_eq!(status, 400);
}

#[tokio::test]
async fn a_processor_has_failed_when_a_task_has_stopped() {
    let door = Door::open(Limits::default()).await;
    let digest = door.module(AGGREGATOR).await;
    door.deploy("delays", &spec(&digest)).await;
    let (_, body) = door.json("GET", "processors/delays/status", "").await;
    assert_eq!(body, serde_json::json!({"state": "running", "version": 1, "tasks": []}));
    let reason = "it broke at everything".to_owned();
    let tasks = vec![task(0, TaskPhase::Running), task(1, TaskPhase::Stopped { reason })];
    door.plugins.phases.lock().unwrap().insert(name("delays"), tasks);
    let (status, body) = door.json("GET", "processors/delays/status", "").await;
    assert_eq!((status, &body["state"]), (200, &"failed".into()));
    let expected = serde_json::json!({
        "partition": 1, "broker": 1, "position": 40, "end_offset": 42, "lag": 2, "stream_time": 1000, "late": 3,
        "rejected": 1, "state": "stopped", "reason": "it broke at everything", "processed": 40, "null_keys": 2,
        "guest_calls": 5, "traps": 4,
    });
    assert_eq!(body["tasks"][1], expected);
    assert!(body["tasks"][0].get("reason").is_none());
    let (_, _, metrics) = door.call("GET", "/metrics", "", "").await;
    for line in [
        r#"millstream_processor_lag_records{processor="delays"} 4"#,
        r#"millstream_processor_processed_total{processor="delays"} 80"#,
        r#"millstream_processor_late_total{processor="delays"} 6"#,
        r#"millstream_processor_rejected_total{processor="delays"} 2"#,
        r#"millstream_processor_traps_total{processor="delays"} 8"#,
        r#"millstream_processor_tasks{processor="delays",state="stopped"} 1"#,
    ] {
        assert!(metrics.lines().any(|got| got == line), "{line}\n{metrics}");
    }
}

#[tokio::test]
async fn a_deleted_processor_takes_its_state_with_it_unless_that_is_kept() {
    let door = Door::open(Limits::default()).await;
    let digest = door.module(AGGREGATOR).await;
    for (query, kept) in [("", None), ("?keep_state=false", None), ("?keep_state=true", Some(3))] {
        assert_eq!(door.deploy("delays", &spec(&digest)).await.0, 201);
        assert_eq!(
            door.json("DELETE", &format!("processors/delays{query}"), "").await.0,
            204
        );
        assert_eq!(door.json("GET", "processors/delays", "").await.0, 404);
        assert_eq!(door.node.partitions("delays-changelog"), kept, "{query}");
        assert_eq!(door.node.partitions("delays-dead-letter"), Some(3));
        assert_eq!(door.node.partitions("results"), Some(3));
    }
    assert_eq!(door.json("DELETE", "processors/delays?keep=true", "").await.0, 400);
}

#[tokio::test]
async fn secrets_are_taken_and_not_shown() {
    let door = Door::open(Limits::default()).await;
    let digest = door.module("\0asm aggregator needy").await;
    let mut spec = spec(&digest);
    spec["config"] = serde_json::json!({"field": "delay", "token": "hush"});
    let (status, body) = door.deploy("delays", &spec).await;
    assert_eq!((status, &body["config"]), (201, &serde_json::json!({"field": "delay"})));
    assert_eq!(door.deploy("delays", &spec).await.1["version"], 1);
    spec["config"]["token"] = "other".into();
    assert_eq!(door.deploy("delays", &spec).await.1["version"], 2);
}

fn log(door: &Door, at: i64, message: &str) {
    let logs = door
        .plugins
        .logs
        .lock()
        .unwrap()
        .entry(name("delays"))
        .or_default()
        .clone();
    let (time, partition) = (model::Timestamp::from_millis(at), model::PartitionIndex::new(2));
    logs.push(
        time,
        partition,
        Level::Warn,
        message.to_owned(),
        vec![("row".to_owned(), "7".to_owned())],
    );
}

#[tokio::test]
async fn logs_are_read_on_from_where_they_were_left() {
    let door = Door::open(Limits::default()).await;
    let digest = door.module(AGGREGATOR).await;
    door.deploy("delays", &spec(&digest)).await;
    let (status, body) = door.json("GET", "processors/delays/logs", "").await;
    assert_eq!(
        (status, body),
        (200, serde_json::json!({"entries": [], "left_out": 0, "next": 0}))
    );
    (0..5).for_each(|number| log(&door, number, &format!("m{number}")));
    let messages = |body: &serde_json::Value| -> Vec<String> {
        let entries = body["entries"].as_array().unwrap();
        entries
            .iter()
            .map(|entry| entry["message"].as_str().unwrap().to_owned())
            .collect()
    };
    let (_, body) = door.json("GET", "processors/delays/logs?limit=2", "").await;
    assert_eq!(
        (messages(&body), &body["next"]),
        (vec!["m3".to_owned(), "m4".to_owned()], &5.into())
    );
    let expected = serde_json::json!({
        "sequence": 4, "time": 4, "partition": 2, "level": "warn", "message": "m4",
        "fields": [{"name": "row", "value": "7"}],
    });
    assert_eq!(body["entries"][1], expected);
    let (_, body) = door.json("GET", "processors/delays/logs?from=1&limit=2", "").await;
    assert_eq!(
        (messages(&body), &body["next"]),
        (vec!["m1".to_owned(), "m2".to_owned()], &3.into())
    );
    let (_, body) = door.json("GET", "processors/delays/logs?from=5", "").await;
    assert_eq!((messages(&body).len(), &body["next"]), (0, &5.into()));
    let (_, body) = door.json("GET", "processors/delays/logs?from=99", "").await;
    assert_eq!(messages(&body).len(), 5, "the program has started anew");
    for bad in ["limit=0", "limit=2001", "from=-1", "form=1"] {
        assert_eq!(
            door.json("GET", &format!("processors/delays/logs?{bad}"), "").await.0,
            400,
            "{bad}"
        );
    }
}

#[tokio::test]
async fn a_stream_of_logs_goes_on_after_its_last_event_and_says_why_it_ends() {
    let door = Door::open(Limits::default()).await;
    let digest = door.module(AGGREGATOR).await;
    door.deploy("delays", &spec(&digest)).await;
    log(&door, 0, "first");
    log(&door, 1, "second\nline");
    let mut stream = door
        .events("/api/v1/processors/delays/logs", "Last-Event-ID: 1\r\n")
        .await;
    let got = until(&mut stream, "\n\n").await;
    assert!(
        got.contains("id: 2\nevent: log\ndata: {\"sequence\":1,") && got.contains(r"second\nline"),
        "{got}"
    );
    log(&door, 2, "third");
    let got = until(&mut stream, "\n\n").await;
    assert!(got.contains("id: 3\n") && got.contains("third"), "{got}");
    assert_eq!(door.json("DELETE", "processors/delays", "").await.0, 204);
    let got = until(&mut stream, "\n\n").await;
    assert!(
        got.contains("event: error\n") && got.contains("unknown_processor"),
        "{got}"
    );
    until(&mut stream, "0\r\n\r\n").await;
}

#[tokio::test]
async fn plugins_are_bound_to_a_topic_and_taken_away() {
    let door = Door::open(Limits::default()).await;
    let (serde, aggregator) = (door.module("\0asm serde angle").await, door.module(AGGREGATOR).await);
    assert_eq!(
        door.json("GET", "topics/one/plugins", "").await,
        (200, serde_json::json!({"config": {}}))
    );
    assert_eq!(door.json("GET", "topics/absent/plugins", "").await.0, 404);
    assert_eq!(
        door.json("DELETE", "topics/one/plugins", "").await.1["code"],
        "no_topic_plugins"
    );
    let binding = format!(r#"{{"value_serde":"{serde}","config":{{"a":"b"}}}}"#);
    let expected = serde_json::json!({"value_serde": serde, "config": {"a": "b"}});
    assert_eq!(
        door.json("PUT", "topics/one/plugins", &binding).await,
        (201, expected.clone())
    );
    assert_eq!(
        door.json("PUT", "topics/one/plugins", &binding).await,
        (200, expected.clone())
    );
    assert_eq!(door.node.log_end(DEPLOYMENTS_TOPIC), 1);
    assert_eq!(door.json("GET", "topics/one/plugins", "").await, (200, expected));
    let unknown = "0".repeat(64);
    for (bad, field, code) in [
        ("{}".to_owned(), "key_serde", "invalid_field"),
        (r#"{"config":{"a":"b"}}"#.to_owned(), "key_serde", "invalid_field"),
        (
            format!(r#"{{"value_serde":"{unknown}"}}"#),
            "value_serde",
            "unknown_module",
        ),
        (format!(r#"{{"key_serde":"{aggregator}"}}"#), "key_serde", "wrong_world"),
        (format!(r#"{{"partitioner":"{serde}"}}"#), "partitioner", "wrong_world"),
        (
            format!(r#"{{"value_serde":"{serde}","config":{{"unwelcome":""}}}}"#),
            "value_serde",
            "not_started",
        ),
        (
            format!(r#"{{"value_serde":"{serde}","config":{{"a":1}}}}"#),
            "config",
            "invalid_field",
        ),
    ] {
        let (status, body) = door.json("PUT", "topics/three/plugins", &bad).await;
        assert_eq!(
            (status, body["field"].as_str(), body["code"].as_str()),
            (422, Some(field), Some(code)),
            "{bad}: {body}"
        );
    }
    let (status, _) = door.json("PUT", "topics/absent/plugins", &binding).await;
    assert_eq!(status, 404);
    assert_eq!(
        door.json("PUT", "topics/one/plugins", r#"{"validator":"x"}"#).await.0,
        400
    );
    assert_eq!(door.json("DELETE", "topics/one/plugins", "").await.0, 204);
    assert_eq!(
        door.json("GET", "topics/one/plugins", "").await.1,
        serde_json::json!({"config": {}})
    );
}
