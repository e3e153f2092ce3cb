//! Refuses records before they are appended.

use crate::bindings::exports::millstream::plugin::validation;
use crate::bindings::millstream::plugin::types::{Batch, Rejection};
use crate::plugin::{Adapter, Plugin, with};
use crate::rows::{Row, Rows};

pub trait Validator: Plugin {
    /// # Errors
    /// Why the row may not enter the topic; its producer gets to see the text.
    fn validate(&mut self, topic: &str, row: &Row<'_>) -> Result<(), String>;
}

impl<P: Validator> validation::Guest for Adapter<P> {
    fn validate(topic: String, rows: Batch) -> Vec<Rejection> {
        with(|plugin: &mut P| {
            let rows = Rows::new(rows);
            let refused = (0u32..).zip(rows.iter()).filter_map(|(index, row)| {
                let reason = plugin.validate(&topic, &row).err()?;
                Some(Rejection { row: index, reason })
            });
            refused.collect()
        })
    }
}

/// Makes the library a component of the world `validator`.
#[macro_export]
macro_rules! validator {
    ($plugin:ty) => {
        type MillstreamPlugin = $crate::glue::Adapter<$plugin>;
        $crate::__world!(MillstreamPlugin, VALIDATOR,
            lifecycle __export_millstream_plugin_lifecycle_0_1_0_cabi
            validation __export_millstream_plugin_validation_0_1_0_cabi
        );
    };
}
