//! What a plugin may ask of its host.

use crate::bindings::millstream::plugin::{context, log, metrics};

/// The deployment's setting of this name.
#[must_use]
pub fn config(name: &str) -> Option<String> {
    context::config(name)
}

/// The time of day, in milliseconds since 1970. What is computed from it is not the same when it is computed again.
#[must_use]
pub fn now() -> i64 {
    context::now()
}

/// For a random generator: the same for the same rows of the same task.
#[must_use]
pub fn seed() -> u64 {
    context::seed()
}

/// How urgent a message is. The latest error of a call that traps is shown as its reason.
pub use log::Level;

/// Logs a message; only so many bytes a second are kept.
pub fn log(level: Level, message: &str) {
    log::log(level, message, &[]);
}

/// From now on a panic logs its text before it ends the instance. Plugins that use the traits of this crate do it anyway.
pub fn report_panics() {
    std::panic::set_hook(Box::new(|info| log(Level::Error, &info.to_string())));
}

/// Adds to a counter.
pub fn count(name: &str, delta: u64) {
    metrics::count(name, delta, &[]);
}
