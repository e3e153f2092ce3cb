//! Runs the controller quorum's node: the metadata log on a disk, the raft core and the controller, behind one handle.
//!
//! ```text
//!  handlers/ ──▶ ControllerHandle ──▶ driver (one task) ──▶ node: raft + controller + metadata log
//!  broker    ──▶        │                                          │ committed images
//!            ◀── ImageStream ◀───────────── image_publisher ◀──────┘
//! ```
//!
//! [`Node`](node::Node) is synchronous and knows no clock: what it decides follows from its inputs, so the same code runs
//! on a simulated disk. The driver gives it time, entropy, and a thread for syncs. Whatever is answered is on the disk.

mod driver;
mod errors;
pub mod exchange;
mod format;
mod handle;
mod handlers;
mod image_publisher;
mod metadata_log;
mod node;
mod snapshot_file;

pub use driver::{Quorum, start};
pub use format::{FormatError, FormatRequest, Formatted, format};
pub use handle::{ControllerError, ControllerHandle};
pub use handlers::ControllerDispatch;
pub use image_publisher::{ImageStream, Published};
pub use metadata_log::{METADATA_TOPIC, MetadataLogError, MetadataLogOptions};
pub use node::{NodeError, NodeOptions};
