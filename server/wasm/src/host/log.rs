//! `log`: into the deployment's ring.

use plugin::logs;
use wasmtime::Result;

use super::HostState;
use crate::bindings::millstream::plugin::log;

impl log::Host for HostState {
    fn log(&mut self, level: log::Level, message: String, fields: Vec<(String, String)>) -> Result<()> {
        let level = match level {
            log::Level::Trace => logs::Level::Trace,
            log::Level::Debug => logs::Level::Debug,
            log::Level::Info => logs::Level::Info,
            log::Level::Warn => logs::Level::Warn,
            log::Level::Error => logs::Level::Error,
        };
        if level == logs::Level::Error {
            let end = message.floor_char_boundary(logs::TEXT_BYTES_MAX.min(message.len()));
            self.call.last_error = Some(message[..end].to_owned());
        }
        let partition = self.settings.task.partition;
        self.settings.logs.push(super::now(), partition, level, message, fields);
        Ok(())
    }
}
