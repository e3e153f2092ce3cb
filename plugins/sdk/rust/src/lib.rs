//! Plugins for Millstream in Rust.
//!
//! A plugin is a type that implements [`Plugin`] (what it is called, how it starts) and the trait of its kind, and one
//! macro that makes the library a component of that kind:
//!
//! | kind | trait | macro |
//! |---|---|---|
//! | chooses partitions | [`Partitioner`] | [`partitioner!`] |
//! | JSON to bytes and back | [`Serde`] | [`serde!`] |
//! | refuses records at produce | [`Validator`] | [`validator!`] |
//! | folds rows into windows | [`WindowAggregator`] | [`window_aggregator!`] |
//! | the same, with its own keys or event times | and [`Keying`] | [`keyed_aggregator!`] |
//!
//! Rows come in batches and the interface moves them as columns; here they look like rows. One instance serves one task
//! and is used by one thread. It may be replaced between any two calls: what must not be lost belongs into accumulators.

pub mod bindings;
#[doc(hidden)]
pub mod glue;
pub mod host;
mod keying;
mod partitioner;
mod plugin;
mod rows;
mod serde;
mod validator;
mod window_aggregator;

pub use keying::{Assigned, Key, Keying};
pub use partitioner::{Partitioner, Topic};
pub use plugin::{Descriptor, Parameter, Plugin};
pub use rows::{Row, Rows};
pub use serde::{Datum, Part, Serde};
pub use validator::Validator;
pub use window_aggregator::{Firing, Output, Reason, Window, WindowAggregator};
