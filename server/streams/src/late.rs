//! Lateness is a matter between a row and a window: a row can be late for its older windows and in time for the newer.

use model::Timestamp;
use plugin::Window;

use crate::watermark::Watermark;
use crate::window::Windows;

/// The windows of one row, told apart.
pub(crate) struct Admission {
    /// Earliest first.
    pub open: Vec<Window>,
    /// How many have closed before this row came.
    pub late: u32,
}

/// `watermark` has already taken the row's time.
pub(crate) fn admit(event_time: Timestamp, windows: &Windows, watermark: &Watermark) -> Admission {
    let mut admission = Admission {
        open: Vec::new(),
        late: 0,
    };
    for window in windows.of(event_time) {
        if watermark.has_closed(window) {
            admission.late += 1;
        } else {
            admission.open.push(window);
        }
    }
    admission
}
