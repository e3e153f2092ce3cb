//! Guests, settings and batches for the tests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use model::{Offset, PartitionIndex, Timestamp};
use plugin::descriptor::Task;
use plugin::host::{Host, InstanceLimits, InstanceSettings, Module};
use plugin::{Batch, BatchBuilder, Logs, Measurements, WindowAggregator};
use wasm::Engine;

static ENGINE: LazyLock<Engine> = LazyLock::new(|| Engine::new(None).expect("this machine runs WebAssembly"));

static COMPONENTS: LazyLock<PathBuf> = LazyLock::new(|| {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["run", "--quiet", "--package", "xtask", "--", "plugins"])
        .current_dir(&root)
        .status()
        .expect("cargo starts");
    assert!(status.success(), "cargo xtask plugins: {status}");
    root.join("target/plugins")
});

pub(crate) fn component(name: &str) -> Vec<u8> {
    std::fs::read(COMPONENTS.join(format!("{name}.wasm"))).expect("the plugin is built")
}

/// Modules stay loaded, as they do where they are deployed.
pub(crate) fn module(name: &str) -> Arc<dyn Module> {
    static LOADED: Mutex<BTreeMap<String, Arc<dyn Module>>> = Mutex::new(BTreeMap::new());
    let module = ENGINE.load(&component(name)).expect("the module is sound");
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    loaded.insert(name.to_owned(), Arc::clone(&module));
    module
}

pub(crate) fn engine() -> &'static Engine {
    &ENGINE
}

/// With much time for a call: a test of something else must not depend on how busy the machine is.
pub(crate) fn settings(config: &[(&str, &str)]) -> InstanceSettings {
    let config: BTreeMap<String, String> = config
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    let task = Task {
        application: "tests".into(),
        processor: "tests".into(),
        version: "1".into(),
        partition: PartitionIndex::new(3),
        inputs: vec!["input".into()],
        outputs: vec!["output".into()],
        stores: Vec::new(),
        attempt: 0,
        replaying: false,
    };
    InstanceSettings {
        task,
        config: Arc::new(config),
        limits: InstanceLimits {
            call_time: Duration::from_secs(60),
            ..InstanceLimits::PROCESSOR
        },
        logs: Arc::new(Logs::new()),
        measurements: Arc::new(Measurements::new()),
    }
}

pub(crate) fn aggregator(name: &str, config: &[(&str, &str)]) -> Box<dyn WindowAggregator> {
    module(name)
        .window_aggregator(settings(config))
        .expect("the instance starts")
}

/// With the time that a deployed one has.
pub(crate) fn prompt_settings(config: &[(&str, &str)]) -> InstanceSettings {
    InstanceSettings {
        limits: InstanceLimits::PROCESSOR,
        ..settings(config)
    }
}

pub(crate) struct Event<'a> {
    pub(crate) key: Option<&'a [u8]>,
    pub(crate) value: Option<&'a [u8]>,
    pub(crate) time: i64,
}

/// Offsets begin at 0.
pub(crate) fn batch<'a>(events: impl IntoIterator<Item = Event<'a>>) -> Batch {
    let mut builder = BatchBuilder::new(0, PartitionIndex::new(3), Offset::ZERO);
    for (offset, event) in (0..).zip(events) {
        let time = Timestamp::from_millis(event.time);
        builder
            .push(Offset::new(offset), time, event.key, event.value, std::iter::empty())
            .expect("a test is small");
    }
    builder.finish()
}

/// One row of each value, all with the same key at the same time.
pub(crate) fn rows(values: &[&str]) -> Batch {
    batch(values.iter().map(|value| Event {
        key: Some(b"k"),
        value: Some(value.as_bytes()),
        time: 5,
    }))
}
