//! One way in: typed calls to any node of a cluster, and what is built on them — a producer, a fetcher, a group member
//! and administration.
//!
//! A [`Client`] lives inside a node ([`Client::in_process`]: calls for that node reach its dispatch without being
//! encoded) or outside ([`Client::connect`]). Everything here works against any broker from Kafka 3.0 on, ours included,
//! and acts as the principal of the [`CallContext`] that it is given.

pub mod admin;
pub mod call;
mod error;
pub mod fetcher;
pub mod group_member;
pub mod producer;
mod retry;
pub mod routing;

#[cfg(test)]
mod fake_node;

pub use call::{CallContext, Client, Options, Target};
pub use error::Error;
pub use fetcher::{Chunk, FetchLimits, Fetched, Isolation, OutOfRange, Start, Tail, TailOptions};
pub use group_member::{GroupEvent, GroupMember, GroupMemberOptions};
pub use producer::{Acknowledged, Outcome, ProduceRecord, Producer, ProducerOptions, RecordError};
pub use routing::{Node, Partition, Topic};
