//! The host with real guests: those of `plugins/`, built once by `cargo xtask plugins`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod agreement;
mod cache;
mod deadlines;
mod evil;
mod fixtures;
mod poison;
mod refusals;
mod serde;
mod validator;
