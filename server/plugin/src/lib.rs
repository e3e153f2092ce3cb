//! What a plugin is to the rest of the house: one object-safe trait a plugin kind, and rows in columns over one arena.
//!
//! The crate mirrors the component interface in `wit/`, so a WebAssembly component and a native double in [`builtin`] are
//! told apart by nobody. A call takes many rows, never one. What comes back from a plugin is hostile until it has been
//! checked here: [`batch`], [`output`] and the `check` methods of the replies are that check.

pub mod batch;
pub mod builtin;
pub mod columns;
pub mod deployment;
pub mod descriptor;
pub mod error;
pub mod host;
pub mod keying;
pub mod logs;
pub mod measurements;
pub mod output;
pub mod partitioner;
pub mod running;
pub mod serde;
pub mod transform;
pub mod validator;
pub mod window_aggregator;

pub use batch::{Batch, BatchBuilder, BatchColumns, BatchFull, Row};
pub use columns::{ColumnsError, NULL};
pub use deployment::{Deployment, ProcessorName, TopicPlugins};
pub use descriptor::{Descriptor, Parameter, Task};
pub use error::{CallError, Failure, Rejection, Trap, TrapKind};
pub use host::{Digest, Host, InstanceLimits, InstanceSettings, Module, ModuleError, ModuleInfo, World};
pub use keying::{Keying, Keys, KeysColumns};
pub use logs::Logs;
pub use measurements::Measurements;
pub use output::{Header, Output, OutputBounds, OutputRow, RowsColumns};
pub use partitioner::Partitioner;
pub use running::RunningPlugins;
pub use serde::Serde;
pub use transform::Transform;
pub use validator::Validator;
pub use window_aggregator::{Accumulated, Firing, FiringReason, Pane, Window, WindowAggregator};
