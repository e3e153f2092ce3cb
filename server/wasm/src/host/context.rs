//! `context`: which task this is, and its configuration.

use wasmtime::Result;
use wasmtime::error::Error;

use super::HostState;
use crate::bindings::millstream::plugin::{context, types};

impl types::Host for HostState {}

impl context::Host for HostState {
    fn current(&mut self) -> Result<types::TaskResult> {
        let task = &self.settings.task;
        Ok(types::TaskResult {
            application: task.application.clone(),
            processor: task.processor.clone(),
            version: task.version.clone(),
            partition: task.partition.get().unsigned_abs(),
            inputs: task.inputs.clone(),
            outputs: task.outputs.clone(),
            stores: task.stores.clone(),
            attempt: task.attempt,
            replaying: task.replaying,
        })
    }

    fn config(&mut self, name: String) -> Result<Option<String>> {
        Ok(self.settings.config.get(&name).cloned())
    }

    /// A deployment has no secrets yet.
    fn secret(&mut self, _name: String) -> Result<Option<String>> {
        Ok(None)
    }

    /// The plugins that are run today are pure: who calls them owns time.
    fn stream_time(&mut self) -> Result<i64> {
        Err(Error::msg("stream-time is not told to plugins of this kind"))
    }

    fn now(&mut self) -> Result<i64> {
        Ok(super::now().millis())
    }

    fn seed(&mut self) -> Result<u64> {
        Ok(HostState::seed(self))
    }
}
