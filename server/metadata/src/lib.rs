//! What the cluster knows and what its controller decides (KIP-631).
//!
//! An [`Image`] is everything that the metadata log says up to some offset. [`Replay`] turns records into the next image
//! and a [`Delta`] of what changed. [`Controller`] is the active controller's side: each operation is decided against
//! the image, becomes records, and takes effect only by their replay:
//!
//! ```text
//!  request ──decide──▶ records ──append, sync──▶ log ──replay──▶ image ──▶ brokers
//!              ▲                                                   │
//!              └───────────────────────────────────────────────────┘
//! ```
//!
//! Nothing here knows a disk or a socket. A record that cannot be replayed is an error that stops the node: going on
//! would mean to decide on a state that others do not share.

pub mod config_keys;
pub mod controller;
pub mod delta;
pub mod image;
pub mod placement;
mod record;

pub use controller::{Controller, ControllerOptions, Entropy, OpContext, Outcome, Refusal};
pub use delta::{Delta, Replay, TopicDelta};
pub use image::{Image, ReplayError};
pub use record::{MetadataVersion, RecordError, SealedRecord, seal};
