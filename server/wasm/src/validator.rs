//! The `validation` export.

use plugin::host::{InstanceSettings, ModuleError};
use plugin::validator::check_rejections;
use plugin::{Batch, Rejection, Trap, Validator};

use crate::bindings::exports::millstream::plugin::validation;
use crate::compiled_plugin::CompiledPlugin;
use crate::instance::{self, Instance, Purpose};

pub(crate) struct GuestValidator {
    instance: Instance<validation::Guest>,
}

impl GuestValidator {
    /// # Errors
    /// If the instance does not start.
    pub(crate) fn start(
        plugin: &CompiledPlugin,
        settings: InstanceSettings,
        indices: &validation::GuestIndices,
    ) -> Result<Self, ModuleError> {
        let indices = indices.clone();
        let instance = Instance::start(plugin, settings, move |store, instance| indices.load(store, instance))?;
        Ok(GuestValidator { instance })
    }
}

impl Validator for GuestValidator {
    fn validate(&mut self, topic: &str, rows: &Batch) -> Result<Vec<Rejection>, Trap> {
        let purpose = Purpose {
            first_offset: rows.columns().base_offset,
            output: None,
        };
        let (answer, _) = self.instance.call(purpose, |store, guest| {
            guest.call_validate(store, topic, instance::batch(rows))
        })?;
        let rejections = instance::rejections(answer);
        check_rejections(&rejections, rows.len())?;
        Ok(rejections)
    }
}
