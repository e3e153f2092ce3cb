//! One running instance, and its replacement after a trap.
//!
//! After any trap the instance is dead, whatever the trap was: its memory may be half changed. It is dropped at once and
//! made anew at the next call; what must outlive it is kept by the caller.

use std::time::Duration;

use plugin::host::{InstanceSettings, ModuleError};
use plugin::{Batch, Output, Rejection, Trap, TrapKind};
use wasmtime::component::Instance as WasmtimeInstance;
use wasmtime::{Store, UpdateDeadline};

use crate::bindings::millstream::plugin::types;
use crate::compiled_plugin::CompiledPlugin;
use crate::engine::Shared;
use crate::host::{Call, HostState};
use crate::limits::{HANDLES_MAX, HOST_CALL_BYTES_MAX};
use crate::trap;

/// Processor time that an instance may take to start: runtimes of some languages initialise much.
pub(crate) const START_TIME: Duration = Duration::from_secs(1);

/// `G` is the instance's exports that calls need.
pub(crate) struct Instance<G> {
    plugin: CompiledPlugin,
    settings: InstanceSettings,
    load: Box<Load<G>>,
    running: Option<Running<G>>,
}

/// Finds the exports in an instance that was just made.
type Load<G> = dyn Fn(&mut Store<HostState>, &WasmtimeInstance) -> wasmtime::Result<G> + Send;

struct Running<G> {
    store: Store<HostState>,
    guest: G,
}

/// What a call is made for.
#[derive(Default)]
pub(crate) struct Purpose {
    pub(crate) first_offset: i64,
    pub(crate) output: Option<Output>,
}

impl<G> Instance<G> {
    /// # Errors
    /// If the instance traps at its start or refuses its settings.
    pub(crate) fn start(
        plugin: &CompiledPlugin,
        settings: InstanceSettings,
        load: impl Fn(&mut Store<HostState>, &WasmtimeInstance) -> wasmtime::Result<G> + Send + 'static,
    ) -> Result<Self, ModuleError> {
        let mut instance = Instance {
            plugin: plugin.clone(),
            settings,
            load: Box::new(load),
            running: None,
        };
        let running = instance.make().map_err(|trap| ModuleError::Start(trap.reason))?;
        instance.running = Some(running);
        Ok(instance)
    }

    /// Makes one call; gives what it returned, and the output with the rows that it gave out.
    ///
    /// # Errors
    /// If the call traps, or the instance had to be made anew and did not start.
    pub(crate) fn call<R>(
        &mut self,
        purpose: Purpose,
        call: impl FnOnce(&mut Store<HostState>, &G) -> wasmtime::Result<R>,
    ) -> Result<(R, Option<Output>), Trap> {
        let mut running = match self.running.take() {
            Some(running) => running,
            None => self.make()?,
        };
        let store = &mut running.store;
        store.data_mut().call = Call {
            output: purpose.output,
            first_offset: purpose.first_offset,
            ..Call::new(self.settings.limits.call_time)
        };
        let _in_flight = self.plugin.shared.running();
        let returned = begin_call(store).and_then(|()| call(store, &running.guest));
        let returned = returned.map_err(|error| trap::from_error(&error, store.data().call.last_error.as_deref()))?;
        let output = store.data_mut().call.output.take();
        if !store.data().limiter.wants_recycling() {
            self.running = Some(running);
        }
        Ok((returned, output))
    }

    fn make(&self) -> Result<Running<G>, Trap> {
        let mut store = store(&self.plugin.shared, HostState::new(self.settings.clone(), START_TIME));
        let _in_flight = self.plugin.shared.running();
        match self.initialise(&mut store) {
            Ok(Ok(guest)) => Ok(Running { store, guest }),
            Ok(Err(reason)) => Err(Trap::new(TrapKind::Fault, format!("init: {reason}"))),
            Err(error) => Err(trap::from_error(&error, store.data().call.last_error.as_deref())),
        }
    }

    fn initialise(&self, store: &mut Store<HostState>) -> wasmtime::Result<Result<G, String>> {
        begin_call(store)?;
        let instance = self.plugin.ready.instantiate(&mut *store)?;
        let lifecycle = self.plugin.lifecycle.load(&mut *store, &instance)?;
        let guest = (self.load)(store, &instance)?;
        let task = &self.settings.task;
        let (inputs, outputs, stores) = (texts(&task.inputs), texts(&task.outputs), texts(&task.stores));
        let task = types::TaskParam {
            application: &task.application,
            processor: &task.processor,
            version: &task.version,
            partition: task.partition.get().unsigned_abs(),
            inputs: &inputs,
            outputs: &outputs,
            stores: &stores,
            attempt: task.attempt,
            replaying: task.replaying,
        };
        let started = lifecycle.call_init(&mut *store, task)?;
        Ok(started.map(|()| guest))
    }
}

fn texts(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

/// A store with all limits set.
pub(crate) fn store(shared: &Shared, state: HostState) -> Store<HostState> {
    let mut store = Store::new(&shared.wasmtime, state);
    store.limiter(|state| &mut state.limiter);
    store.set_max_component_handles(HANDLES_MAX);
    store.epoch_deadline_callback(|store| {
        let ticks = store.data().call.deadline.ticks_left()?;
        Ok(UpdateDeadline::Continue(ticks))
    });
    store
}

/// Gives the call that is about to begin its time and its bytes.
pub(crate) fn begin_call(store: &mut Store<HostState>) -> wasmtime::Result<()> {
    let ticks = store.data().call.deadline.ticks_left()?;
    store.set_epoch_deadline(ticks);
    store.set_hostcall_fuel(HOST_CALL_BYTES_MAX);
    Ok(())
}

/// A batch as the guest gets it: nothing is copied before it is copied into the guest's memory.
pub(crate) fn batch(rows: &Batch) -> types::Batch<'_> {
    let columns = rows.columns();
    types::Batch {
        input: columns.input,
        partition: columns.partition,
        base_offset: columns.base_offset,
        offset_deltas: &columns.offset_deltas,
        timestamps: &columns.timestamps,
        spans: &columns.spans,
        header_index: &columns.header_index,
        header_spans: &columns.header_spans,
        arena: &columns.arena,
    }
}

/// Reasons are cut to what a record's header may hold.
pub(crate) fn rejections(guests: Vec<types::Rejection>) -> Vec<Rejection> {
    let rejection = |guest: types::Rejection| {
        let mut reason = guest.reason;
        plugin::error::shorten(&mut reason);
        Rejection { row: guest.row, reason }
    };
    guests.into_iter().map(rejection).collect()
}
