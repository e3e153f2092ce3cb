//! Fields of a request's body that are read one by one, so that what is wrong with one is told by its name.

use std::collections::BTreeMap;

use plugin::Descriptor;
use plugin::deployment::{CONFIG_BYTES_MAX, CONFIG_ENTRIES_MAX};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::problem::Problem;

/// The field, if it is there and not null.
pub(crate) fn optional<'a, T: Deserialize<'a>>(
    name: &str,
    written: Option<&'a RawValue>,
) -> Result<Option<T>, Problem> {
    let Some(written) = written else { return Ok(None) };
    let read = serde_json::from_str(written.get());
    read.map(Some).map_err(|error| {
        let said = error.to_string();
        // The place is counted from the field's beginning, which helps nobody.
        let said = said.split(" at line ").next().unwrap_or_default();
        Problem::field(name, said)
    })
}

pub(crate) fn required<'a, T: Deserialize<'a>>(name: &str, written: Option<&'a RawValue>) -> Result<T, Problem> {
    optional(name, written)?.ok_or_else(|| Problem::field(name, "it has to be there"))
}

/// A text that stands for something of our own.
pub(crate) fn parsed<T, E: std::fmt::Display>(name: &str, read: Result<T, E>) -> Result<T, Problem> {
    read.map_err(|error| Problem::field(name, error.to_string()))
}

/// A plugin's configuration: texts by name, so many and so long at most.
pub(crate) fn config(written: Option<&RawValue>) -> Result<BTreeMap<String, String>, Problem> {
    let config: BTreeMap<String, String> = optional("config", written)?.unwrap_or_default();
    if config.len() > CONFIG_ENTRIES_MAX {
        return Err(Problem::field(
            "config",
            format!("it has {} entries, the limit is {CONFIG_ENTRIES_MAX}", config.len()),
        ));
    }
    let bytes: usize = config.iter().map(|(name, value)| name.len() + value.len()).sum();
    if bytes > CONFIG_BYTES_MAX {
        return Err(Problem::field(
            "config",
            format!("its names and values have {bytes} bytes, the limit is {CONFIG_BYTES_MAX}"),
        ));
    }
    Ok(config)
}

/// What a module says it cannot do without is there.
pub(crate) fn check_parameters(config: &BTreeMap<String, String>, descriptor: &Descriptor) -> Result<(), Problem> {
    let lacking = descriptor
        .parameters
        .iter()
        .find(|parameter| parameter.required && parameter.fallback.is_none() && !config.contains_key(&parameter.name));
    match lacking {
        Some(parameter) => Err(Problem::field(
            "config",
            format!(
                "module {} requires `{}`: {}",
                descriptor.name, parameter.name, parameter.doc
            ),
        )),
        None => Ok(()),
    }
}

/// The configuration as it is shown: values that a module calls secret are left out.
pub(crate) fn shown_config<'a>(
    config: &BTreeMap<String, String>,
    descriptors: impl Iterator<Item = &'a Descriptor>,
) -> BTreeMap<String, String> {
    let mut shown = config.clone();
    for parameter in descriptors.flat_map(|descriptor| &descriptor.parameters) {
        if parameter.secret {
            shown.remove(&parameter.name);
        }
    }
    shown
}
