//! One partition's log on a disk: segments, indexes, producers, epochs, checkpoints, recovery.
//!
//! Files are byte for byte what Apache Kafka 4.4.0 writes and reads. The crate is deterministic and synchronous: time is an
//! argument and the disk a trait, so that the same code runs on a machine's disk and on a simulated one that fails.

mod batch_bases;
mod checkpoint;
pub mod compaction;
pub mod disk;
mod file_names;
pub mod inspect;
mod leader_epochs;
pub mod log_directory;
mod log_reader;
mod offset_index;
mod options;
mod partition_log;
mod producer_state;
mod quarantine;
mod recovery;
pub mod relocation;
mod retention;
mod scan;
mod scrub;
mod segment;
mod survey;
mod time_index;
pub mod transfer;

pub use checkpoint::{
    CLEANER_CHECKPOINT, CheckpointError, HIGH_WATERMARK_CHECKPOINT, LOG_START_CHECKPOINT, Offsets,
    RECOVERY_POINT_CHECKPOINT, read_checkpoint, write_checkpoint,
};
pub use disk::{Disk, File, GuardedDisk, RealDisk, SimDisk};
pub use leader_epochs::{EpochEnd, EpochStart, LeaderEpochs};
pub use log_directory::LogDirectory;
pub use log_reader::{DamagedRange, LogReader, Read, ReadError, ReadRequest, TimestampOffset};
pub use options::{CompressionPolicy, Durability, LogOptions};
pub use partition_log::{AppendAs, AppendError, Appended, Origin, PartitionLog, SyncDone, SyncHandle};
pub use producer_state::{ActiveProducer, DuplicateBatch, ProducerError, ProducerStates};
pub use recovery::{OpenError, Recovery, Start};
pub use retention::{DeleteRecordsError, Removed};
pub use scrub::Scrubbed;
pub use segment::Wait;
