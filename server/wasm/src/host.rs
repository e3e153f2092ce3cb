//! What an instance may ask of the process, a file an interface.

mod context;
mod log;
mod metrics;
mod output;
mod schemas;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use model::{PartitionIndex, Timestamp};
use plugin::descriptor::Task;
use plugin::host::{InstanceLimits, InstanceSettings};
use plugin::{Logs, Measurements, Output};
use wasmtime::component::{HasSelf, Linker};

use crate::bindings::millstream::plugin as imports;
use crate::deadline::Deadline;
use crate::limits::Limiter;

/// What belongs to one instance.
pub(crate) struct HostState {
    pub(crate) settings: InstanceSettings,
    pub(crate) limiter: Limiter,
    pub(crate) call: Call,
}

/// What belongs to the call that is running.
pub(crate) struct Call {
    pub(crate) deadline: Deadline,
    /// Where rows go; only while the plugin is asked for results.
    pub(crate) output: Option<Output>,
    /// The offset of the call's first row, or what stands for it; the seed is made from it.
    pub(crate) first_offset: i64,
    /// The latest message of level error.
    pub(crate) last_error: Option<String>,
}

impl Call {
    pub(crate) fn new(limit: Duration) -> Self {
        Call {
            deadline: Deadline::after(limit),
            output: None,
            first_offset: 0,
            last_error: None,
        }
    }
}

impl HostState {
    pub(crate) fn new(settings: InstanceSettings, start_time: Duration) -> Self {
        HostState {
            limiter: Limiter::new(settings.limits.memory_bytes),
            call: Call::new(start_time),
            settings,
        }
    }

    /// For a look at a module that nobody has deployed.
    pub(crate) fn undeployed(memory_bytes: usize, start_time: Duration) -> Self {
        let task = Task {
            application: String::new(),
            processor: String::new(),
            version: String::new(),
            partition: PartitionIndex::new(0),
            inputs: Vec::new(),
            outputs: Vec::new(),
            stores: Vec::new(),
            attempt: 0,
            replaying: false,
        };
        let settings = InstanceSettings {
            task,
            config: Arc::new(BTreeMap::new()),
            limits: InstanceLimits {
                memory_bytes,
                call_time: start_time,
            },
            logs: Arc::new(Logs::new()),
            measurements: Arc::new(Measurements::new()),
        };
        HostState::new(settings, start_time)
    }

    /// The same for the same rows of the same task, and below 2^53 for the sake of JavaScript.
    fn seed(&self) -> u64 {
        let task = &self.settings.task;
        let mut hasher = DefaultHasher::new();
        (
            &task.application,
            &task.processor,
            task.partition.get(),
            self.call.first_offset,
        )
            .hash(&mut hasher);
        hasher.finish() >> 11
    }
}

/// Everything that is offered; which kinds of plugins may import what is checked when a module is loaded.
pub(crate) fn linker(engine: &wasmtime::Engine) -> wasmtime::Result<Linker<HostState>> {
    let mut linker = Linker::new(engine);
    imports::context::add_to_linker::<HostState, HasSelf<HostState>>(&mut linker, itself)?;
    imports::log::add_to_linker::<HostState, HasSelf<HostState>>(&mut linker, itself)?;
    imports::metrics::add_to_linker::<HostState, HasSelf<HostState>>(&mut linker, itself)?;
    imports::schemas::add_to_linker::<HostState, HasSelf<HostState>>(&mut linker, itself)?;
    imports::output::add_to_linker::<HostState, HasSelf<HostState>>(&mut linker, itself)?;
    Ok(linker)
}

/// An instance's state answers all of its imports.
fn itself(state: &mut HostState) -> &mut HostState {
    state
}

/// The wall clock; before 1970 it is 1970.
fn now() -> Timestamp {
    let since = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
