//! Runs recorded window cases against a component: `window_cases COMPONENT CASE…`. `cargo xtask window-cases` calls it.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use model::PartitionIndex;
use plugin::descriptor::Task;
use plugin::host::{Host, InstanceLimits, InstanceSettings, Module};
use plugin::{Logs, Measurements, WindowAggregator};
use streams::window_cases::{Case, CaseError, Params, Tally};

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((component, cases)) = arguments.split_first() else {
        bail!("usage: window_cases COMPONENT CASE…");
    };
    let bytes = std::fs::read(component).with_context(|| format!("read {component}"))?;
    let module = wasm::Engine::new(None)?.load(&bytes)?;
    let mut out = std::io::stdout().lock();
    let mut tally = Tally::default();
    for path in cases {
        let text = std::fs::read_to_string(path).with_context(|| format!("read {path}"))?;
        let case = Case::parse(&text).with_context(|| format!("read {path}"))?;
        let lines = tally
            .judge(&case, &mut |params| guest(module.as_ref(), params))
            .with_context(|| format!("run {}", case.name))?;
        for line in lines {
            writeln!(out, "{line}")?;
        }
    }
    for line in tally.summary() {
        writeln!(out, "{line}")?;
    }
    ensure!(tally.failed == 0 && tally.passed > 0, "not every case passed");
    Ok(())
}

/// The guest's own settings have the names that the cases' parameters have.
fn guest(module: &dyn Module, params: &Params) -> Result<Box<dyn WindowAggregator>, CaseError> {
    let named = [
        ("aggregate", &params.aggregate),
        ("value_field", &params.value_field),
        ("rekey_field", &params.rekey_field),
    ];
    let config: BTreeMap<String, String> = named
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)))
        .collect();
    let task = Task {
        application: "window-cases".into(),
        processor: "window-cases".into(),
        version: "1".into(),
        partition: PartitionIndex::new(0),
        inputs: vec!["input".into()],
        outputs: vec!["output".into()],
        stores: Vec::new(),
        attempt: 0,
        replaying: false,
    };
    let settings = InstanceSettings {
        task,
        config: Arc::new(config),
        limits: InstanceLimits::PROCESSOR,
        logs: Arc::new(Logs::new()),
        measurements: Arc::new(Measurements::new()),
    };
    module
        .window_aggregator(settings)
        .map_err(|error| CaseError::Param("aggregate", error.to_string()))
}
