//! Records of topics that have plugins: what is stored, what is shown, and what fails alone.

use super::*;

const SERDE: &str = "\0asm serde angle";

impl Door {
    /// Binds a module, uploaded for that, to the topic in one role.
    async fn bind(&self, topic: &str, role: &str, module: &str) {
        let digest = self.module(module).await;
        let (status, body) = self
            .json(
                "PUT",
                &format!("topics/{topic}/plugins"),
                &format!(r#"{{"{role}":"{digest}"}}"#),
            )
            .await;
        assert!(status == 200 || status == 201, "{body}");
    }

    fn stored(&self, topic: &str) -> Vec<(Option<String>, Option<String>)> {
        let text = |bytes: Option<bytes::Bytes>| bytes.map(|bytes| String::from_utf8(bytes.to_vec()).unwrap());
        let records = self.node.records(topic).into_iter();
        records.map(|record| (text(record.key), text(record.value))).collect()
    }
}

#[tokio::test]
async fn a_value_goes_through_the_serde_and_comes_back_with_every_digit() {
    let door = Door::open(Limits::default()).await;
    door.bind("one", "value_serde", SERDE).await;
    let value = r#"{"a":9223372036854775807,"a":1e400,"b":[0.10, "\u00e4"]}"#;
    let (status, body) = door
        .write(
            "one",
            &format!(r#"{{"key":"k","value":{value},"timestamp":5}},{{"value":null,"timestamp":6}}"#),
        )
        .await;
    assert_eq!(status, 200, "{body}");
    let stored = [(Some("k".to_owned()), Some(format!("<{value}>"))), (None, None)];
    assert_eq!(door.stored("one"), stored);
    let (status, body) = door.read("one/records").await;
    let expected = format!(
        r#"{{"records":[{{"partition":0,"offset":0,"timestamp":5,"key":"k","value":{value},"headers":[]}},{{"partition":0,"offset":1,"timestamp":6,"key":null,"value":null,"headers":[]}}],"next":"*2"}}"#
    );
    assert_eq!((status, body), (200, expected.clone()));
    assert_eq!(door.read("one/records?value_format=json").await.1, expected);
    let (_, body) = door.read("one/records?value_format=text&limit=1").await;
    assert!(
        body.contains(&format!(r#""value":{}"#, serde_json::json!(format!("<{value}>")))),
        "{body}"
    );
    let (_, body) = door.read("one/records?value_format=base64&limit=1").await;
    assert!(
        !body.contains("value_error") && body.contains(r#""value":"PH"#),
        "{body}"
    );
}

#[tokio::test]
async fn text_and_base64_are_stored_as_they_are() {
    let door = Door::open(Limits::default()).await;
    door.bind("one", "value_serde", SERDE).await;
    for (format, value) in [("text", "plain"), ("base64", "cGxhaW4=")] {
        let target = format!("/api/v1/topics/one/records?value_format={format}");
        let body = format!(r#"{{"records":[{{"value":"{value}"}}]}}"#);
        let (status, _, body) = door
            .call("POST", &target, "Content-Type: application/json\r\n", &body)
            .await;
        assert_eq!(status, 200, "{body}");
    }
    assert_eq!(
        door.stored("one"),
        [(None, Some("plain".to_owned())), (None, Some("plain".to_owned()))]
    );
}

#[tokio::test]
async fn what_a_serde_refuses_or_breaks_at_fails_alone() {
    let door = Door::open(Limits::default()).await;
    door.bind("one", "value_serde", SERDE).await;
    let (status, body) = door
        .write(
            "one",
            r#"{"value":1},{"value":"refuse"},{"value":2},{"value":"trap"},{"value":3}"#,
        )
        .await;
    assert_eq!(status, 207, "{body}");
    let answer: serde_json::Value = serde_json::from_str(&body).unwrap();
    let codes: Vec<Option<&str>> = answer["offsets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["error"]["code"].as_str())
        .collect();
    assert_eq!(
        codes,
        [None, Some("refused_by_plugin"), None, Some("plugin_trapped"), None]
    );
    assert!(
        body.contains("a refusal was asked for") && body.contains("a trap was asked for"),
        "{body}"
    );
    assert_eq!(door.node.log_end("one"), 3);
    let (status, body) = door.write("one", r#"{"value":"refuse"}"#).await;
    assert!(
        status == 422 && body.contains(r#""errors":[{"index":0,"code":"refused_by_plugin""#),
        "{body}"
    );
}

#[tokio::test]
async fn what_a_serde_cannot_show_is_shown_as_it_is_stored() {
    let door = Door::open(Limits::default()).await;
    let target = "/api/v1/topics/one/records?value_format=text";
    let values = ["<1>", "no brackets", "<text>", "<raw>", "<no json>", "<TRAP>", "<2>"];
    let records: Vec<String> = values.iter().map(|value| format!(r#"{{"value":"{value}"}}"#)).collect();
    let body = format!(r#"{{"records":[{}]}}"#, records.join(","));
    assert_eq!(
        door.call("POST", target, "Content-Type: application/json\r\n", &body)
            .await
            .0,
        200
    );
    door.bind("one", "value_serde", SERDE).await;
    let (status, body) = door.read("one/records").await;
    assert_eq!(status, 200, "{body}");
    let answer: serde_json::Value = serde_json::from_str(&body).unwrap();
    let base64 = |text: &str| {
        Format::Base64
            .show(Some(text.as_bytes()))
            .value
            .unwrap()
            .get()
            .replace('"', "")
    };
    let shown = |place: usize| {
        let record = &answer["records"][place];
        let text = |field: &str| record[field].as_str().unwrap_or_default().to_owned();
        (record["value"].clone(), text("value_error"), text("value_base64"))
    };
    assert_eq!(shown(0), (1.into(), String::new(), String::new()));
    assert_eq!(shown(2), ("some text".into(), String::new(), String::new()));
    assert_eq!(shown(6), (2.into(), String::new(), String::new()));
    for (place, reason, bytes) in [
        (1, "no brackets", base64("no brackets")),
        (3, "neither JSON nor text", "/wA=".to_owned()),
        (4, "not JSON", base64("<no json>")),
        (5, "a trap was stored", base64("<TRAP>")),
    ] {
        let (value, error, shown) = shown(place);
        assert!(value.is_null() && error.contains(reason), "{place}: {error}");
        assert_eq!(shown, bytes, "{place}");
    }
}

#[tokio::test]
async fn a_key_serde_takes_keys_that_have_no_format() {
    let door = Door::open(Limits::default()).await;
    door.bind("one", "key_serde", SERDE).await;
    let (status, body) = door
        .write("one", r#"{"key":{"id":18446744073709551615},"value":1},{"value":2}"#)
        .await;
    assert_eq!(status, 200, "{body}");
    let stored = [
        (
            Some(r#"<{"id":18446744073709551615}>"#.to_owned()),
            Some("1".to_owned()),
        ),
        (None, Some("2".to_owned())),
    ];
    assert_eq!(door.stored("one"), stored);
    let (_, body) = door.read("one/records").await;
    assert!(
        body.contains(r#""key":{"id":18446744073709551615},"value":1"#),
        "{body}"
    );
    assert!(body.contains(r#""key":null,"value":2"#), "{body}");
}

#[tokio::test]
async fn a_partitioner_chooses_for_records_that_name_no_partition() {
    let door = Door::open(Limits::default()).await;
    door.bind("three", "partitioner", "\0asm partitioner last").await;
    let (status, body) = door
        .write(
            "three",
            r#"{"key":"a","value":1},{"key":"b","value":2,"partition":0},{"value":3},{"key":"nowhere","value":4}"#,
        )
        .await;
    assert_eq!(status, 207, "{body}");
    let answer: serde_json::Value = serde_json::from_str(&body).unwrap();
    let offsets = &answer["offsets"];
    assert_eq!(
        (&offsets[0]["partition"], &offsets[1]["partition"]),
        (&2.into(), &0.into()),
        "{body}"
    );
    assert!(offsets[2]["partition"].is_number());
    assert_eq!(offsets[3]["error"]["code"], "refused_by_plugin");
    assert!(body.contains("partition 99 is chosen, there are 3"), "{body}");
}

/// The next event with a record.
async fn record_of(stream: &mut TcpStream) -> String {
    loop {
        let got = until(stream, "\n\n").await;
        if got.contains("event: record") {
            return got;
        }
    }
}

#[tokio::test]
async fn a_stream_shows_what_the_serde_shows_and_follows_its_binding() {
    let door = Door::open(Limits::default()).await;
    door.bind("one", "value_serde", SERDE).await;
    door.write("one", r#"{"value":9007199254740993}"#).await;
    let mut stream = door.stream("one/records", "").await;
    let got = record_of(&mut stream).await;
    assert!(got.contains(r#""value":9007199254740993,"headers""#), "{got}");
    door.bind("one", "value_serde", "\0asm serde curly").await;
    door.write("one", r#"{"value":"a"}"#).await;
    let got = record_of(&mut stream).await;
    assert!(got.contains("id: *2\n") && got.contains(r#""value":"a""#), "{got}");
    assert_eq!(door.stored("one")[1].1.as_deref(), Some(r#"{"a"}"#));
}

#[tokio::test]
async fn instances_are_kept_from_request_to_request() {
    let door = Door::open(Limits::default()).await;
    door.bind("one", "value_serde", SERDE).await;
    let before = *door.plugins.instances.lock().unwrap();
    for _ in 0..5 {
        assert_eq!(door.write("one", r#"{"value":1},{"value":2}"#).await.0, 200);
        assert_eq!(door.read("one/records").await.0, 200);
    }
    assert_eq!(*door.plugins.instances.lock().unwrap(), before + 1);
    let (_, _, metrics) = door.call("GET", "/metrics", "", "").await;
    let line = r#"millstream_plugin_count_total{topic="one",role="value_serde",name="encoded"} 10"#;
    assert!(metrics.lines().any(|got| got == line), "{metrics}");
}

#[tokio::test]
async fn a_serde_that_cannot_run_hides_nothing_and_writes_nothing() {
    let door = Door::open(Limits::default()).await;
    door.bind("one", "value_serde", SERDE).await;
    door.write("one", r#"{"value":1}"#).await;
    // As if another node had bound what this one cannot make.
    let digest = crate::fake_plugins::digest_of(SERDE.as_bytes());
    let record = format!(r#"{{"key":"topic/one","value":{{"value_serde":"{digest}","config":{{"unwelcome":""}}}}}}"#);
    door.write(plugin::deployment::DEPLOYMENTS_TOPIC, &record).await;
    let (status, body) = door.write("one", r#"{"value":2}"#).await;
    assert!(
        status == 503 && body.contains("plugin_unavailable") && body.contains("`unwelcome` is set"),
        "{body}"
    );
    let (status, body) = door.read("one/records").await;
    assert!(
        status == 200 && body.contains(r#""value_base64":"PDE+""#) && body.contains("`unwelcome` is set"),
        "{body}"
    );
    assert_eq!(door.node.log_end("one"), 1);
}
