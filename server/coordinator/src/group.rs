//! Consumer groups: who is a member, what the members were assigned, and how far they have read.
//!
//! [`GroupShard`] is one partition of `__consumer_offsets`. Two kinds of state live in it:
//! - Replicated state (offsets, and which groups exist) follows "decide, append, then replay": a record takes effect
//!   when it is committed, on the leader by [`shard`] and after a failover by replay, through the same function.
//! - A rebalance of the classic protocol (who has joined, who waits, which timers run) is local: a coordinator that
//!   takes over does not know it, and does not need to. What a rebalance ends in, the generation with its members and
//!   assignments, is written as one record before any member learns its assignment.
//!
//! One file holds one request or decision: the classic protocol in [`classic`], offsets beside it.

pub(crate) mod classic;
pub mod config;
mod delete_groups;
mod describe_groups;
mod error_map;
pub mod fan_out;
mod list_groups;
pub mod offset_commit;
mod offset_delete;
mod offset_expiry;
mod offset_fetch;
mod offsets;
pub mod records;
pub mod request;
pub mod shard;
mod topic_deletion;
mod writes;

pub use config::GroupConfig;
pub use request::{GroupCall, GroupRequest, GroupResponse, TopicLookup};
pub use shard::GroupShard;
