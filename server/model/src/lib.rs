//! The words of the field: ids, offsets, epochs, times, error codes and record batches.
//!
//! Everything above speaks in these types. Sentinels of the wire (`-1` for "none") end at the protocol edge: a type here
//! either holds a valid value or is an `Option` of one. The crate is deterministic: no clock, no disk, no socket.

pub mod epoch;
pub mod error_code;
pub mod ids;
pub mod offset;
pub mod record_batch;
pub mod spelling;
pub mod time;

pub use epoch::{ControllerEpoch, LeaderEpoch, ProducerEpoch};
pub use error_code::ErrorCode;
pub use ids::{
    BrokerId, DirectoryId, GroupId, PartitionIndex, ProducerId, TopicId, TopicName, TopicNameError, TopicPartition,
    Uuid,
};
pub use offset::{Offset, Sequence};
pub use time::{Monotonic, Timestamp};
