//! What chores say: results on stdout, complaints on stderr. A closed pipe is no reason to fail.

use std::io::Write;

pub(crate) fn line(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

pub(crate) fn error(text: &str) {
    let _ = writeln!(std::io::stderr(), "xtask: {text}");
}
