//! How a call into a plugin goes wrong: for one row, for the whole call, or for the instance.
//!
//! A [`Rejection`] is an answer: that row goes to the dead-letter topic, the others stand. A [`Failure`] is the plugin's
//! own verdict on the whole call. A [`Trap`] is no answer at all (a panic, an endless loop, too much memory, a reply that
//! breaks the interface): nothing of the call counts, and the caller may look for the row that caused it.

use std::borrow::Cow;

use crate::columns::ColumnsError;

/// Longest text that is kept of a plugin's reason, in bytes; reasons end up in record headers and on status pages.
pub const REASON_BYTES_MAX: usize = 4096;

/// One row that the plugin refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Index into the batch of the call.
    pub row: u32,
    pub reason: String,
}

/// What the plugin asks for when it cannot serve a call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// Back off, then redo the call.
    #[error("the plugin asks for a retry: {0}")]
    Retry(String),
    /// Stop the task.
    #[error("the plugin gave up: {0}")]
    Fatal(String),
}

/// What kind of end a call met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrapKind {
    /// A panic, an exception, an illegal instruction.
    Fault,
    /// The deadline passed. On a busy machine that need not be the row's doing.
    Interrupted,
    /// The memory limit was met.
    Memory,
    /// The call returned, but its reply breaks the interface.
    BadReply,
}

/// A call that ended without an answer. The instance may be unusable after it; who implements a plugin trait replaces it
/// before the next call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Trap {
    pub kind: TrapKind,
    pub reason: String,
}

impl Trap {
    #[must_use]
    pub fn new(kind: TrapKind, reason: impl Into<String>) -> Self {
        let mut reason = reason.into();
        shorten(&mut reason);
        Trap { kind, reason }
    }
}

impl From<ColumnsError> for Trap {
    fn from(error: ColumnsError) -> Self {
        Trap::new(TrapKind::BadReply, error.to_string())
    }
}

/// Why a call gave no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    #[error(transparent)]
    Failure(#[from] Failure),
    #[error(transparent)]
    Trap(#[from] Trap),
}

impl From<ColumnsError> for CallError {
    fn from(error: ColumnsError) -> Self {
        CallError::Trap(error.into())
    }
}

/// Cuts `reason` to [`REASON_BYTES_MAX`] bytes at a character's edge.
pub fn shorten(reason: &mut String) {
    shorten_to(reason, REASON_BYTES_MAX);
}

/// Cuts `text` to `limit` bytes at a character's edge.
pub(crate) fn shorten_to(text: &mut String, limit: usize) {
    if text.len() > limit {
        let end = text.floor_char_boundary(limit);
        text.truncate(end);
    }
}

/// The text of bytes that should be UTF-8, with what is not replaced.
#[must_use]
pub fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_reason_is_cut_at_a_characters_edge() {
        let trap = Trap::new(TrapKind::Fault, "ä".repeat(REASON_BYTES_MAX));
        assert_eq!(trap.reason.len(), REASON_BYTES_MAX);
        let odd = Trap::new(TrapKind::Fault, format!("x{}", "ä".repeat(REASON_BYTES_MAX)));
        assert_eq!(odd.reason.len(), REASON_BYTES_MAX - 1);
    }
}
