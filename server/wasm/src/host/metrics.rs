//! `metrics`: into the deployment's measurements.

use wasmtime::Result;

use super::HostState;
use crate::bindings::millstream::plugin::metrics;

impl metrics::Host for HostState {
    fn count(&mut self, name: String, delta: u64, labels: Vec<(String, String)>) -> Result<()> {
        self.settings.measurements.count(name, labels, delta);
        Ok(())
    }

    fn gauge(&mut self, name: String, value: f64, labels: Vec<(String, String)>) -> Result<()> {
        self.settings.measurements.gauge(name, labels, value);
        Ok(())
    }

    fn observe(&mut self, name: String, value: f64, labels: Vec<(String, String)>) -> Result<()> {
        self.settings.measurements.observe(name, labels, value);
        Ok(())
    }
}
