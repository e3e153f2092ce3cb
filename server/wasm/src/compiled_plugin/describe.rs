//! Asks a module what it is, before anybody has deployed it: every import traps, and what it says is held to bounds.

use plugin::descriptor::{Descriptor, Parameter};
use plugin::host::{InstanceLimits, ModuleError};
use wasmtime::component::{Component, Linker};

use super::Indices;
use crate::bindings::exports::millstream::plugin as exports;
use crate::engine::Shared;
use crate::host::HostState;
use crate::instance::{self, START_TIME};

/// Longest name or version, in bytes.
const NAME_BYTES_MAX: usize = 255;
/// Longest text, in bytes.
const DOC_BYTES_MAX: usize = 64 << 10;
/// Most parameters, and most names in a list.
const ENTRIES_MAX: usize = 256;

pub(super) fn describe(
    shared: &Shared,
    component: &Component,
    lifecycle: &exports::lifecycle::GuestIndices,
    indices: &Indices,
) -> Result<Descriptor, ModuleError> {
    let failed = |error: wasmtime::Error| ModuleError::Describe(crate::trap::from_error(&error, None).reason);
    let mut linker = Linker::new(&shared.wasmtime);
    linker.define_unknown_imports_as_traps(component).map_err(failed)?;
    let state = HostState::undeployed(InstanceLimits::PROCESSOR.memory_bytes, START_TIME);
    let mut store = instance::store(shared, state);
    instance::begin_call(&mut store).map_err(failed)?;
    let _running = shared.running();
    let instance = linker.instantiate(&mut store, component).map_err(failed)?;
    indices
        .check(&mut store, &instance)
        .map_err(|error| ModuleError::Interface(format!("{error:#}")))?;
    let lifecycle = lifecycle.load(&mut store, &instance).map_err(failed)?;
    let descriptor = lifecycle.call_describe(&mut store).map_err(failed)?;
    check(descriptor).map_err(ModuleError::Describe)
}

fn check(descriptor: exports::lifecycle::Descriptor) -> Result<Descriptor, String> {
    let names = |what: &str, names: Vec<String>| {
        count(what, names.len())?;
        names
            .into_iter()
            .map(|name| text(what, name, NAME_BYTES_MAX))
            .collect::<Result<Vec<_>, _>>()
    };
    count("parameters", descriptor.parameters.len())?;
    let parameters = descriptor.parameters.into_iter().map(|parameter| {
        Ok(Parameter {
            name: text("a parameter's name", parameter.name, NAME_BYTES_MAX)?,
            doc: text("a parameter's text", parameter.doc, DOC_BYTES_MAX)?,
            fallback: parameter
                .fallback
                .map(|fallback| text("a parameter's fallback", fallback, DOC_BYTES_MAX))
                .transpose()?,
            required: parameter.required,
            secret: parameter.secret,
        })
    });
    Ok(Descriptor {
        name: text("the name", descriptor.name, NAME_BYTES_MAX)?,
        version: text("the version", descriptor.version, NAME_BYTES_MAX)?,
        doc: text("the text", descriptor.doc, DOC_BYTES_MAX)?,
        parameters: parameters.collect::<Result<_, String>>()?,
        inputs: names("inputs", descriptor.inputs)?,
        outputs: names("outputs", descriptor.outputs)?,
        stores: names("stores", descriptor.stores)?,
    })
}

fn count(what: &str, entries: usize) -> Result<(), String> {
    if entries <= ENTRIES_MAX {
        Ok(())
    } else {
        Err(format!("{what}: {entries} entries, the limit is {ENTRIES_MAX}"))
    }
}

fn text(what: &str, text: String, limit: usize) -> Result<String, String> {
    if text.len() <= limit {
        Ok(text)
    } else {
        Err(format!("{what} has {} bytes, the limit is {limit}", text.len()))
    }
}
