//! Native doubles: plugins that are part of the program, for tests and for those who need nothing of their own.

mod delay_statistics;
mod field_key;
mod json_aggregate;
mod key_partitioner;

pub use delay_statistics::DelayStatistics;
pub use field_key::FieldKey;
pub use json_aggregate::{Aggregate, JsonAggregate};
pub use key_partitioner::{KeyPartitioner, murmur2, partition_for_key};
