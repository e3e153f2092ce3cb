//! Coordinators: group membership and offsets as state that is replayed from a log.
//!
//! A coordinator is one partition of an internal topic. What it decides it appends to that partition, and what it
//! promises to a client it promises only when the appended records are committed. Here are the decisions; the shell that
//! owns the partition's log, the clock and the sockets drives them through the trait [`shard::Shard`].
//!
//! The crate is deterministic: times, random bytes and the cluster's topics are arguments.

pub mod group;
pub mod pending;
pub mod routing;
pub mod shard;
mod timers;

pub use group::GroupShard;
pub use shard::{Effect, Now, Record, Shard, Token, WriteId};
