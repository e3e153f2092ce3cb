//! The router against its document, and what every answer has in common.

mod coded_records;
mod deployments;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use client::{Client, Options};
use model::{BrokerId, PartitionIndex, TopicName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::fake_node::{FakeNode, NODE_ID};
use crate::fake_plugins::FakePlugins;
use crate::format::Format;
use crate::{Build, CompactionBacklog, CompactionState, GatewayParts, Limits, PartitionCompaction, Readiness};

struct Door {
    node: Arc<FakeNode>,
    plugins: Arc<FakePlugins>,
    port: u16,
    readiness: watch::Sender<Readiness>,
    stop: watch::Sender<bool>,
    serving: tokio::task::JoinHandle<std::io::Result<()>>,
}

/// The second partition of `three` is compacted.
fn compaction_of(topic: &TopicName) -> BTreeMap<PartitionIndex, PartitionCompaction> {
    let compaction = PartitionCompaction {
        state: CompactionState::Uncleanable,
        reason: Some("damaged".to_owned()),
        backlog: Some(CompactionBacklog {
            first_dirty: 3,
            cleanable_end: 7,
            clean_bytes: 10,
            dirty_bytes: 30,
            dirty_ratio: 0.75,
            held_back_bytes: 5,
        }),
        last_round: None,
    };
    let is_compacted = topic.as_str() == "three";
    let compacted = is_compacted.then_some((PartitionIndex::new(1), compaction));
    compacted.into_iter().collect()
}

impl Door {
    async fn open(limits: Limits) -> Self {
        let node = FakeNode::with(&[("one", 1), ("three", 3)]);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (readiness, ready) = watch::channel(Readiness::Starting("the test".into()));
        let (stop, stopped) = watch::channel(false);
        let plugins = FakePlugins::of(node.clone());
        let parts = GatewayParts {
            plugins: plugins.clone(),
            host: plugins.clone(),
            client: Client::in_process(node.clone(), BrokerId::new(NODE_ID), Options::default()),
            figures: std::sync::Arc::new(|| {
                vec![crate::Figure {
                    name: "millstream_test_total",
                    help: "Of the test.",
                    is_counter: true,
                    value: 7.0,
                }]
            }),
            compaction: std::sync::Arc::new(compaction_of),
            build: Build {
                version: "1".into(),
                commit: "c".into(),
            },
            readiness: ready,
            limits,
            allowed_hosts: Vec::new(),
        };
        let serving = tokio::spawn(crate::serve(vec![listener], parts, stopped));
        Door {
            node,
            plugins,
            port,
            readiness,
            stop,
            serving,
        }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.port)).await.unwrap()
    }

    /// Status, headers in lower case, and body of the answer.
    async fn call(&self, method: &str, target: &str, headers: &str, body: &str) -> (u16, String, String) {
        let length = body.len();
        let text = format!(
            "{method} {target} HTTP/1.1\r\nHost: localhost:{}\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n{body}",
            self.port
        );
        self.exchange(&text).await
    }

    async fn write(&self, topic: &str, records: &str) -> (u16, String) {
        let json = "Content-Type: application/json\r\n";
        let body = format!(r#"{{"records":[{records}]}}"#);
        let target = format!("/api/v1/topics/{topic}/records");
        let (status, _, body) = self.call("POST", &target, json, &body).await;
        (status, body)
    }

    async fn read(&self, target: &str) -> (u16, String) {
        let (status, _, body) = self.call("GET", &format!("/api/v1/topics/{target}"), "", "").await;
        (status, body)
    }

    async fn stream(&self, target: &str, headers: &str) -> TcpStream {
        self.events(&format!("/api/v1/topics/{target}"), headers).await
    }

    /// A stream of events, behind the answer's headers.
    async fn events(&self, target: &str, headers: &str) -> TcpStream {
        let mut stream = self.connect().await;
        let text = format!(
            "GET {target} HTTP/1.1\r\nHost: localhost:{}\r\nAccept: text/event-stream\r\n{headers}\r\n",
            self.port
        );
        stream.write_all(text.as_bytes()).await.unwrap();
        assert!(until(&mut stream, "\r\n\r\n").await.starts_with("HTTP/1.1 200"));
        stream
    }

    async fn exchange(&self, text: &str) -> (u16, String, String) {
        let mut stream = self.connect().await;
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head.to_ascii_lowercase(), body.to_owned())
    }
}

/// What comes until `end` has come.
async fn until(stream: &mut TcpStream, end: &str) -> String {
    let mut got = Vec::new();
    while !got.ends_with(end.as_bytes()) {
        got.push(stream.read_u8().await.expect("more comes"));
    }
    String::from_utf8(got).unwrap()
}

/// What the router holds for requests that no route is there for; it holds `/` for them, too.
const FALLBACK: &str = "/{*__private__axum_fallback}";

/// Paths and methods that the document speaks of.
fn documented() -> BTreeMap<String, BTreeSet<String>> {
    let document: serde_json::Value = serde_json::from_str(&crate::openapi_text()).unwrap();
    let paths = document["paths"].as_object().unwrap();
    let methods = |item: &serde_json::Value| {
        item.as_object()
            .unwrap()
            .keys()
            .map(|name| name.to_uppercase())
            .collect()
    };
    paths.iter().map(|(path, item)| (path.clone(), methods(item))).collect()
}

#[test]
fn every_path_of_the_router_is_documented_and_the_reverse() {
    let (router, _) = super::documented().split_for_parts();
    // The router does not list its paths in any other way.
    let shown = format!("{router:?}");
    let routed: BTreeSet<String> = shown
        .split('"')
        .filter(|part| part.starts_with('/') && *part != FALLBACK)
        .map(|path| path.replace("{*", "{"))
        .collect();
    let documented: BTreeSet<String> = documented().into_keys().collect();
    assert_eq!(routed, documented);
}

#[tokio::test]
async fn every_method_of_a_path_is_documented_and_the_reverse() {
    let door = Door::open(Limits::default()).await;
    for (path, methods) in documented() {
        let target = path.replace(['{', '}'], "");
        let (status, head, _) = door.call("PURGE", &target, "", "").await;
        assert_eq!(status, 405, "{path}");
        let allowed = head.lines().find_map(|line| line.strip_prefix("allow: ")).unwrap();
        let mut allowed: BTreeSet<String> = allowed.split(',').map(|name| name.trim().to_uppercase()).collect();
        // Comes with GET, and is not worth a word.
        allowed.remove("HEAD");
        assert_eq!(allowed, methods, "{path}");
    }
}

#[tokio::test]
async fn every_change_wants_a_content_type_that_no_page_can_send_unasked() {
    let door = Door::open(Limits::default()).await;
    for (path, methods) in documented() {
        let target = path.replace(['{', '}'], "");
        for method in methods.iter().filter(|method| *method != "GET" && *method != "DELETE") {
            for headers in [
                "",
                "Content-Type: text/plain\r\n",
                "Content-Type: application/x-www-form-urlencoded\r\n",
            ] {
                let (status, _, body) = door.call(method, &target, headers, "{}").await;
                assert_eq!(status, 415, "{method} {path} {headers}: {body}");
            }
        }
    }
}

#[tokio::test]
async fn what_the_node_does_not_serve_is_a_problem_with_kafkas_word_for_it() {
    let door = Door::open(Limits::default()).await;
    let (status, head, body) = door.call("GET", "/api/v1/groups", "", "").await;
    assert_eq!(status, 501, "{body}");
    assert!(head.contains("content-type: application/problem+json"), "{head}");
    let problem: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(problem["code"], "unsupported_version");
    let id = problem["request_id"].as_str().unwrap();
    assert!(head.contains(&format!("x-request-id: {id}")), "{head}");
}

#[tokio::test]
async fn the_node_is_ready_when_it_says_so() {
    let door = Door::open(Limits::default()).await;
    let (status, head, body) = door.call("GET", "/health/ready", "", "").await;
    assert!(
        status == 503 && head.contains("retry-after: 1") && body.contains("starting: the test"),
        "{body}"
    );
    door.readiness.send_replace(Readiness::Ready);
    assert_eq!(door.call("GET", "/health/ready", "", "").await.0, 200);
    door.readiness.send_replace(Readiness::Stopping);
    assert_eq!(door.call("GET", "/health/ready", "", "").await.0, 503);
}

#[tokio::test]
async fn figures_of_other_parts_are_on_the_page_of_metrics() {
    let door = Door::open(Limits::default()).await;
    let (_, _, metrics) = door.call("GET", "/metrics", "", "").await;
    for line in ["# TYPE millstream_test_total counter", "millstream_test_total 7"] {
        assert!(metrics.lines().any(|got| got == line), "{metrics}");
    }
}

#[tokio::test]
async fn a_topic_is_described_with_its_compaction_where_there_is_one() {
    let door = Door::open(Limits::default()).await;
    let of = async |topic: &str| {
        let (status, body) = door.read(topic).await;
        assert_eq!(status, 200, "{body}");
        let topic: serde_json::Value = serde_json::from_str(&body).unwrap();
        let partitions = topic["partitions"].as_array().unwrap().clone();
        let compaction = partitions.iter().map(|partition| partition.get("compaction").cloned());
        compaction.collect::<Vec<_>>()
    };
    assert_eq!(of("one").await, [None]);
    let three = of("three").await;
    assert_eq!((&three[0], &three[2]), (&None, &None));
    let backlog = serde_json::json!({
        "first_dirty": 3, "cleanable_end": 7, "clean_bytes": 10, "dirty_bytes": 30, "dirty_ratio": 0.75,
        "held_back_bytes": 5,
    });
    let expected = serde_json::json!({
        "state": "uncleanable", "reason": "damaged", "backlog": backlog, "last_round": null,
    });
    assert_eq!(three[1], Some(expected));
}

#[tokio::test]
async fn other_names_for_this_port_are_refused() {
    let door = Door::open(Limits::default()).await;
    let text = "GET /health/live HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
    let (status, _, body) = door.exchange(text).await;
    assert!(status == 403 && body.contains("host_not_allowed"), "{body}");
    let (status, _, body) = door
        .call("GET", "/health/live", "Origin: http://evil.example\r\n", "")
        .await;
    assert!(status == 403 && body.contains("origin_not_allowed"), "{body}");
}

#[tokio::test]
async fn bodies_have_a_largest_size_and_a_longest_time() {
    let limits = Limits {
        body_bytes_max: 100,
        body_wait_max: Duration::from_millis(50),
        ..Limits::default()
    };
    let door = Door::open(limits).await;
    let json = "Content-Type: application/json\r\n";
    let (status, _, _) = door.call("POST", "/api/v1/topics", json, &" ".repeat(101)).await;
    assert_eq!(status, 413);
    let text = format!(
        "POST /api/v1/topics HTTP/1.1\r\nHost: localhost:{}\r\nConnection: close\r\n{json}Content-Length: 10\r\n\r\n{{",
        door.port
    );
    let (status, _, body) = door.exchange(&text).await;
    assert!(status == 408 && body.contains("request_timeout"), "{body}");
}

#[tokio::test]
async fn bodies_that_together_are_too_much_are_asked_to_come_again() {
    let limits = Limits {
        bodies_bytes_max: 2048,
        ..Limits::default()
    };
    let door = Door::open(limits).await;
    let json = "Content-Type: application/json\r\n";
    for _ in 0..3 {
        let (status, _, body) = door.call("POST", "/api/v1/topics", json, &" ".repeat(4000)).await;
        assert!(status == 503 && body.contains(r#""retryable":true"#), "{body}");
    }
    let (status, _, _) = door.call("POST", "/api/v1/topics", json, &" ".repeat(2000)).await;
    assert_eq!(status, 400, "what was taken is given back");
}

#[tokio::test]
async fn the_door_closes_although_a_connection_is_kept() {
    let door = Door::open(Limits::default()).await;
    let mut kept = door.connect().await;
    let text = format!("GET /health/live HTTP/1.1\r\nHost: localhost:{}\r\n\r\n", door.port);
    kept.write_all(text.as_bytes()).await.unwrap();
    let mut first = [0; 12];
    kept.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    door.stop.send_replace(true);
    tokio::time::timeout(Duration::from_secs(4), door.serving)
        .await
        .expect("an idle connection does not hold the door open")
        .unwrap()
        .unwrap();
    let mut rest = Vec::new();
    kept.read_to_end(&mut rest).await.unwrap();
}

#[tokio::test]
async fn json_comes_back_with_every_digit() {
    let door = Door::open(Limits::default()).await;
    let value = r#"{"a":9223372036854775807,"a":1e400,"b":[0.10, "\u00e4"]}"#;
    let (status, body) = door
        .write("one", &format!(r#"{{"key":"k","value":{value},"timestamp":5}}"#))
        .await;
    assert_eq!(
        (status, body.as_str()),
        (200, r#"{"offsets":[{"partition":0,"offset":0,"timestamp":5}]}"#)
    );
    let expected = format!(
        r#"{{"records":[{{"partition":0,"offset":0,"timestamp":5,"key":"k","value":{value},"headers":[]}}],"next":"*1"}}"#
    );
    assert_eq!(door.read("one/records").await, (200, expected));
}

#[tokio::test]
async fn a_record_that_fails_does_not_take_the_others_with_it() {
    let door = Door::open(Limits::default()).await;
    let (status, body) = door
        .write("three", r#"{"value":1,"partition":2},{"value":2,"partition":9}"#)
        .await;
    assert_eq!(status, 207, "{body}");
    let answer: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(answer["offsets"][0]["offset"], 0);
    assert_eq!(answer["offsets"][1]["error"]["code"], "unknown_topic_or_partition");
    let (status, body) = door.write("three", r#"{"value":2,"partition":9}"#).await;
    assert!(status == 404 && body.contains(r#""errors":[{"index":0,"#), "{body}");
    let (status, _) = door.write("none", r#"{"value":1}"#).await;
    assert_eq!(status, 404);
}

#[tokio::test]
async fn a_long_poll_is_answered_by_the_first_record() {
    let door = Door::open(Limits::default()).await;
    let poll = door.read("three/records?from=latest&wait=20000");
    let write = async {
        door.node.polled(1).await;
        let (status, _) = door.write("three", r#"{"value":"now","partition":1}"#).await;
        assert_eq!(status, 200);
    };
    let ((status, body), ()) = tokio::join!(poll, write);
    assert!(
        status == 200 && body.contains(r#""value":"now""#) && body.contains(r#""next":"*0,1,0""#),
        "{body}"
    );
}

#[tokio::test]
async fn a_stream_is_taken_up_again_after_its_last_event() {
    let door = Door::open(Limits::default()).await;
    door.write("one", r#"{"value":1},{"value":2},{"value":3}"#).await;
    let mut stream = door.stream("one/records", "").await;
    let got = until(&mut stream, "id: *2\nevent: record\ndata: ").await;
    assert!(got.contains(r#""value":1"#), "{got}");
    let mut again = door.stream("one/records", "Last-Event-ID: *2\r\n").await;
    let got = until(&mut again, "id: *3\nevent: record\ndata: ").await;
    assert!(!got.contains("event: record\ndata: {"), "{got}");
    assert!(until(&mut again, "\n\n").await.contains(r#""value":3"#));
    door.write("one", r#"{"value":4}"#).await;
    until(&mut again, "id: *4\nevent: record\ndata: ").await;
}

#[tokio::test]
async fn a_stream_says_why_it_ends() {
    let door = Door::open(Limits::default()).await;
    let mut stream = door.stream("one/records", "").await;
    until(&mut stream, "event: ping\n").await;
    door.node.delete_topic("one");
    let got = until(&mut stream, "event: error\ndata: ").await + &until(&mut stream, "\n\n").await;
    assert!(got.contains(r#""code":"unknown_topic_or_partition""#), "{got}");
    // The last chunk of the answer.
    until(&mut stream, "0\r\n\r\n").await;
}

#[tokio::test]
async fn streams_and_polls_end_when_the_door_closes() {
    let door = Door::open(Limits::default()).await;
    let mut stream = door.stream("one/records", "").await;
    until(&mut stream, "event: ping\n").await;
    let poll = door.read("three/records?from=latest&wait=30000");
    let close = async {
        // The stream's and the poll's.
        door.node.polled(2).await;
        door.stop.send_replace(true);
    };
    let (answer, ()) = tokio::join!(tokio::time::timeout(Duration::from_secs(4), poll), close);
    let (status, body) = answer.expect("a poll ends with the door");
    assert!(status == 200 && body.contains(r#""records":[]"#), "{body}");
    until(&mut stream, "0\r\n\r\n").await;
}

#[tokio::test]
async fn what_retention_took_is_gone() {
    let door = Door::open(Limits::default()).await;
    door.write("one", r#"{"value":1},{"value":2},{"value":3}"#).await;
    door.node.set_log_start("one", 0, 2);
    let (status, body) = door.read("one/records?cursor=*1").await;
    assert!(status == 410 && body.contains(r#""log_start":2,"log_end":3"#), "{body}");
    let (status, body) = door.read("one/records?from=offset:4").await;
    assert!(status == 416 && body.contains(r#""log_start":2,"log_end":3"#), "{body}");
}

#[tokio::test]
async fn a_damaged_partition_is_told_and_hides_no_other() {
    let door = Door::open(Limits::default()).await;
    door.write(
        "three",
        r#"{"value":"whole","partition":2},{"value":"lost","partition":1}"#,
    )
    .await;
    door.node.damage("three", 1);
    let (status, body) = door.read("three/records?from=earliest").await;
    assert!(status == 200 && body.contains(r#""value":"whole""#), "{body}");
    let answer: serde_json::Value = serde_json::from_str(&body).unwrap();
    let next = answer["next"].as_str().unwrap();
    for wait in ["", "&wait=30000"] {
        let (status, body) = door.read(&format!("three/records?cursor={next}{wait}")).await;
        assert_eq!(status, 500, "{body}");
        let problem: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!(problem["kafka_error"], "CORRUPT_MESSAGE", "{body}");
        assert_eq!(problem["retryable"], false, "{body}");
        assert!(problem["detail"].as_str().unwrap().contains("three-1"), "{body}");
    }
}

#[tokio::test]
async fn a_stream_that_comes_to_damage_ends_with_it() {
    let door = Door::open(Limits::default()).await;
    door.write("three", r#"{"value":"whole","partition":2}"#).await;
    door.node.damage("three", 1);
    let mut stream = door.stream("three/records", "").await;
    let got = until(&mut stream, "event: error\ndata: ").await;
    assert!(got.contains(r#""value":"whole""#), "{got}");
    let error = until(&mut stream, "\n\n").await;
    assert!(
        error.contains(r#""code":"corrupt_message""#) && error.contains("three-1"),
        "{error}"
    );
    until(&mut stream, "0\r\n\r\n").await;
}

#[tokio::test]
async fn streams_are_bounded() {
    let limits = Limits {
        streams_max: 1,
        ..Limits::default()
    };
    let door = Door::open(limits).await;
    let first = door.stream("one/records", "").await;
    let headers = "Accept: text/event-stream\r\n";
    let (status, _, body) = door.call("GET", "/api/v1/topics/one/records", headers, "").await;
    assert!(status == 503 && body.contains("overloaded"), "{body}");
    drop(first);
}
