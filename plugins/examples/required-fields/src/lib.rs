//! Refuses records whose value is no JSON object with certain fields; the producer is told which field is missing.

use millstream_sdk::{Descriptor, Plugin, Row, Validator, host, validator};
use serde_json::{Map, Value};

struct RequiredFields {
    fields: Vec<String>,
}

impl Plugin for RequiredFields {
    fn describe() -> Descriptor {
        let doc = "Refuses records whose value is no JSON object with certain fields.";
        Descriptor::new("required-fields", "0.1.0", doc).required("fields", "Names, separated by commas.")
    }

    fn start() -> Result<Self, String> {
        let fields = host::config("fields").ok_or("the setting fields is missing")?;
        let fields = fields.split(',').map(|name| name.trim().to_owned());
        Ok(RequiredFields {
            fields: fields.filter(|name| !name.is_empty()).collect(),
        })
    }
}

impl Validator for RequiredFields {
    /// Tombstones pass.
    fn validate(&mut self, _topic: &str, row: &Row<'_>) -> Result<(), String> {
        let Some(value) = row.value() else { return Ok(()) };
        let value: Map<String, Value> =
            serde_json::from_slice(value).map_err(|error| format!("the value is no JSON object: {error}"))?;
        match self.fields.iter().find(|name| !value.contains_key(*name)) {
            None => Ok(()),
            Some(name) => Err(format!("the field {name:?} is missing")),
        }
    }
}

validator!(RequiredFields);
