//! From the ways in which a call into a guest ends to the traps of `plugin`.

use plugin::{ColumnsError, Trap, TrapKind};
use wasmtime::WasmBacktrace;

use crate::deadline::Exceeded;
use crate::limits::MemoryExceeded;

/// `last_error` is what the guest logged last as an error during the call: where languages put the text of a panic.
pub(crate) fn from_error(error: &wasmtime::Error, last_error: Option<&str>) -> Trap {
    let mut reason = error.root_cause().to_string();
    if let Some(last_error) = last_error {
        reason = format!("{last_error} ({reason})");
    }
    if let Some(backtrace) = error.downcast_ref::<WasmBacktrace>() {
        reason = format!("{reason}\n{backtrace}");
    }
    Trap::new(kind(error), reason.trim_end())
}

fn kind(error: &wasmtime::Error) -> TrapKind {
    if error.is::<Exceeded>() {
        return TrapKind::Interrupted;
    }
    if error.is::<MemoryExceeded>() {
        return TrapKind::Memory;
    }
    if error.is::<ColumnsError>() {
        return TrapKind::BadReply;
    }
    match error.downcast_ref::<wasmtime::Trap>() {
        Some(wasmtime::Trap::Interrupt) => TrapKind::Interrupted,
        Some(_) => TrapKind::Fault,
        // The guest ran well, but what it handed over could not be read, or it asked for what it may not have.
        None => TrapKind::BadReply,
    }
}
