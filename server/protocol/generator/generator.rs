//! Generates the messages' Rust from the notation files; run by `build.rs`, without dependencies.
//!
//! `notation` reads a file into a `schema`; `structs` lists the structs that a message needs; `emit_*` write the Rust.

pub(crate) mod emit_enums;
mod emit_json;
pub(crate) mod emit_message;
mod emit_read;
mod emit_write;
pub(crate) mod names;
pub(crate) mod notation;
pub(crate) mod rust;
pub(crate) mod schema;
mod structs;
