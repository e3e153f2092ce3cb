//! Runs users' WebAssembly components behind the traits of `plugin`, and lets none of them hurt the process.
//!
//! An [`Engine`] is the [`plugin::Host`] of a process. It compiles a module once, keeps the native code in a folder, and
//! makes instances. An instance has its own memory, sees only what `host/` gives it, and is replaced after a trap. The
//! thread that calls it does the work: there are no threads here but the ticker that makes deadlines noticed.

mod bindings;
mod compiled_plugin;
mod deadline;
mod engine;
mod host;
mod instance;
mod limits;
mod partitioner;
mod serde;
mod trap;
mod validator;
mod window_aggregator;

pub use engine::{Engine, EngineError};
