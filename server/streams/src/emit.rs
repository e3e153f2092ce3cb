//! When a window gives results, and what a result says of its window.
//!
//! A result carries the headers `window.start` and `window.end` (milliseconds since 1970, in decimal) and `window.kind`
//! (`update` or `final`).

use bytes::Bytes;
use model::Timestamp;
use plugin::{FiringReason, Header, Window};

/// Header of a result: the window's first millisecond.
pub const WINDOW_START: &str = "window.start";
/// Header of a result: the first millisecond that is past the window.
pub const WINDOW_END: &str = "window.end";
/// Header of a result: whether the window may still change.
pub const WINDOW_KIND: &str = "window.kind";

/// When windows give results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emit {
    /// After every row that a window takes, with the window as it stands after that row.
    Update,
    /// Once, when the window closes.
    Final,
}

impl Emit {
    /// The value of the header `window.kind`.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            Emit::Update => "update",
            Emit::Final => "final",
        }
    }
}

/// Why an open window gives a result: stream time may or may not have passed its end.
pub(crate) fn update_reason(window: Window, stream_time: Timestamp) -> FiringReason {
    if stream_time < window.end {
        FiringReason::Early
    } else {
        FiringReason::Late
    }
}

pub(crate) fn window_headers(window: Window, emit: Emit) -> [Header; 3] {
    let number = |time: Timestamp| Some(Bytes::from(time.millis().to_string()));
    [
        Header {
            name: WINDOW_START.into(),
            value: number(window.start),
        },
        Header {
            name: WINDOW_END.into(),
            value: number(window.end),
        },
        Header {
            name: WINDOW_KIND.into(),
            value: Some(Bytes::from_static(emit.kind().as_bytes())),
        },
    ]
}
