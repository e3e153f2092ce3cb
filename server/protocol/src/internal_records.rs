//! The records that Kafka's own logs and files are made of, as it writes them itself.

pub mod control;
pub mod group_coordinator;
pub mod metadata;
pub mod prefixed;
pub mod raft;
pub mod share_coordinator;
pub mod storage;
pub mod transaction_coordinator;

mod framed;
