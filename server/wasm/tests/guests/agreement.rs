//! Native doubles and guests give the same answers: one suite for both.

use model::{Offset, PartitionIndex, TopicName};
use plugin::builtin::{DelayStatistics, FieldKey, KeyPartitioner};
use plugin::partitioner::{Partitioner, Topic};
use plugin::{Batch, OutputBounds, WindowAggregator};
use proptest::prelude::*;
use streams::window_cases::{Case, CaseError, Params, Tally};
use streams::{Commit, Effect, Emit, Hopping, MemoryStore, Task, TaskOptions, TaskState, Windows};

use crate::fixtures::{Event, aggregator, batch, module, settings};

/// The cases whose operators are built.
const CASES: &[&str] = &[
    "001_tumbling_boundaries",
    "002_tumbling_grace_limit",
    "003_tumbling_other_key_moves_time",
    "004_tumbling_null_key_value",
    "005_tumbling_final",
    "006_tumbling_zero_negative_skip",
    "007_tumbling_rekey",
    "008_hopping_overlap",
    "009_hopping_partly_late",
    "010_hopping_near_zero",
    "030_quirk_final_lost",
    "033_stock_stats",
    "036_random_tumbling_update_120",
    "037_random_hopping_final_80",
];

fn guest(params: &Params) -> Result<Box<dyn WindowAggregator>, CaseError> {
    let named = [
        ("aggregate", &params.aggregate),
        ("value_field", &params.value_field),
        ("rekey_field", &params.rekey_field),
    ];
    let config: Vec<(&str, &str)> = named
        .into_iter()
        .filter_map(|(name, value)| Some((name, value.as_deref()?)))
        .collect();
    Ok(aggregator("window-aggregates", &config))
}

#[test]
fn every_built_window_case_passes_with_a_guest() {
    let mut tally = Tally::default();
    for name in CASES {
        let path = format!("{}/../../tests/cases/windows/{name}.json", env!("CARGO_MANIFEST_DIR"));
        let case =
            Case::parse(&std::fs::read_to_string(path).expect("the case is recorded")).expect("the case is sound");
        let lines = tally
            .judge(&case, &mut |params| guest(params))
            .expect("the case is sound");
        assert_eq!(lines, [format!("pass {name}")]);
    }
    assert!(tally.guest_calls > 0);
}

/// What a task with this plugin makes of the rows, cut into calls of `rows`.
fn commits(plugin: Box<dyn WindowAggregator>, events: &Batch, rows: usize, emit: Emit) -> Vec<Commit> {
    let windows = Windows::Hopping(Hopping::new(60, 20).unwrap());
    let options = TaskOptions::new(windows, 10, emit).unwrap();
    let mut task = Task::restore(options, plugin, Box::new(MemoryStore::new()), []).unwrap();
    let mut effects = Vec::new();
    for start in (0..events.len()).step_by(rows) {
        let end = events.len().min(start + rows);
        let next = Offset::new(i64::try_from(end).unwrap());
        task.on_rows(&events.slice(start..end), next, &mut effects);
    }
    assert_eq!(*task.state(), TaskState::Running);
    effects.into_iter().map(comparable).collect()
}

/// Without what may differ: the words of reasons, and the order of fields in results.
fn comparable(effect: Effect) -> Commit {
    let Effect::Commit(mut commit) = effect else {
        panic!("{effect:?}");
    };
    commit.dead_letters.iter_mut().for_each(|letter| letter.reason.clear());
    for result in &mut commit.results {
        let value: serde_json::Value = serde_json::from_slice(result.value.as_deref().unwrap()).unwrap();
        let fields: std::collections::BTreeMap<_, _> = value.as_object().unwrap().iter().collect();
        result.value = Some(format!("{fields:?}").into());
    }
    commit
}

fn any_value() -> impl Strategy<Value = String> {
    let number = prop_oneof![
        (-1_000..1_000i64).prop_map(|n| n.to_string()),
        (-1e6..1e6f64).prop_map(|n| n.to_string())
    ];
    let time = 0..200i64;
    let origin = prop_oneof![Just("\"JFK\""), Just("\"LAX\""), Just("7"), Just("null")];
    prop_oneof![
        9 => (number, time, origin)
            .prop_map(|(delay, time, origin)| format!(r#"{{"delay":{delay},"at":{time},"origin":{origin}}}"#)),
        1 => prop_oneof![Just("{}"), Just("[1]"), Just("no json"), Just(r#"{"delay":"1","at":5}"#)].prop_map(str::to_owned),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn delay_statistics_of_the_guest_are_those_of_its_twin(
        values in prop::collection::vec(prop::option::weighted(0.95, any_value()), 1..80),
        rows in 1..40usize,
        updates: bool,
        fields: bool,
    ) {
        let events = batch(values.iter().zip(0..).map(|(value, time)| Event {
            key: Some(b"key"),
            value: value.as_ref().map(String::as_bytes),
            time: time * 3,
        }));
        let keying = fields.then(|| FieldKey { key_field: Some("origin".into()), time_field: Some("at".into()) });
        let native = DelayStatistics { value_field: "delay".into(), keying };
        let config: &[_] = if fields { &[("key_field", "origin"), ("time_field", "at")] } else { &[] };
        let emit = if updates { Emit::Update } else { Emit::Final };
        prop_assert_eq!(
            commits(aggregator("delay-statistics", config), &events, rows, emit),
            commits(Box::new(native), &events, rows, emit)
        );
    }

    #[test]
    fn the_partitions_of_the_guest_are_those_of_kafkas_clients(
        keys in prop::collection::vec(prop::option::of(prop::collection::vec(any::<u8>(), 0..40)), 0..50),
        partitions in 1..100u32,
    ) {
        let rows = batch(keys.iter().map(|key| Event { key: key.as_deref(), value: None, time: 0 }));
        let topic = Topic { name: TopicName::new("t").unwrap(), partitions, offline: vec![PartitionIndex::new(0)] };
        let mut guest = module("key-partitioner").partitioner(settings(&[])).unwrap();
        prop_assert_eq!(guest.partition(&topic, &rows), KeyPartitioner.partition(&topic, &rows));
    }
}

#[test]
fn with_a_separator_only_the_head_of_the_key_counts() {
    let mut guest = module("key-partitioner")
        .partitioner(settings(&[("separator", ":")]))
        .unwrap();
    let rows = batch(
        [&b"customer-7:order-1"[..], b"customer-7:order-2", b"customer-7"].map(|key| Event {
            key: Some(key),
            value: None,
            time: 0,
        }),
    );
    let topic = Topic {
        name: TopicName::new("t").unwrap(),
        partitions: 1_000,
        offline: vec![],
    };
    let chosen = guest.partition(&topic, &rows).unwrap();
    assert!(
        chosen[0].is_some() && chosen.iter().all(|partition| *partition == chosen[0]),
        "{chosen:?}"
    );
}

#[test]
fn event_times_are_read_from_dates() {
    let texts = [
        "\"2001-01-14 21:55\"",
        "\"2001/01/14T21:55:30.250Z\"",
        "\"Jan 1 2000\"",
        "979509300000",
        "\"soon\"",
    ];
    let values = texts.map(|text| format!(r#"{{"delay":1,"date":{text}}}"#));
    let rows = batch(values.iter().map(|value| Event {
        key: Some(b"k"),
        value: Some(value.as_bytes()),
        time: 1,
    }));
    let mut guest = aggregator("delay-statistics", &[("time_field", "date")]);
    let keys = guest.keying().unwrap().assign(&rows).unwrap();
    let times: Vec<i64> = (0..4).map(|row| keys.timestamp(row).unwrap().millis()).collect();
    assert_eq!(
        times,
        [979_509_300_000, 979_509_330_250, 946_684_800_000, 979_509_300_000]
    );
    assert_eq!(keys.rejections().len(), 1);
    assert_eq!(keys.rejections()[0].row, 4);
}

#[test]
fn accumulators_merge_as_their_twins_do() {
    let state = |count: u64, minimum: f64, sum: f64| {
        let parts = [count.to_le_bytes(), minimum.to_le_bytes(), sum.to_le_bytes()];
        bytes::Bytes::from(parts.concat())
    };
    let pairs = [
        (state(2, -1.0, 4.0), state(1, -3.0, -3.0)),
        (state(1, 0.5, 0.5), state(1, 2.0, 2.0)),
    ];
    let mut native = DelayStatistics {
        value_field: "delay".into(),
        keying: None,
    };
    let mut guest = aggregator("delay-statistics", &[]);
    assert_eq!(guest.merge(&pairs), native.merge(&pairs));
    let mut output = plugin::Output::new(OutputBounds { outputs: 1, origins: 0 });
    assert_eq!(guest.fire(&[], &mut output), Ok(()));
    assert!(output.rows().is_empty());
}
