//! Looks at the files of a log from outside, for the operator: what stands in them, whether it holds together, and their
//! indexes made anew.
//!
//! - No node is needed, and none is disturbed: [`verify`] and the readers only read, and take no lock. Only [`rebuild`]
//!   writes, under the lock of the log directory, and never into a log.
//! - Every byte may be foreign. What is read at a time is bounded by names: a length field in a file decides nothing.
//! - What is found is handed out as it is found, so that a directory full of damage needs no memory.

mod batch_file;
mod finding;
#[cfg(test)]
mod fixture;
mod index_check;
pub mod rebuild;
mod slots;
mod snapshot_check;
mod target;
pub mod verify;

pub use batch_file::{BATCH_BYTES_MAX, BatchAt, BatchFile, ReadBatchError, Step, Stretch, Unreadable};
pub use finding::{Fault, Finding, Severity};
pub use slots::{
    OffsetIndexEntry, TimeIndexEntry, TransactionIndexEntry, visit_offset_index, visit_time_index,
    visit_transaction_index,
};
pub use snapshot_check::check_snapshot;
pub use target::{LockedDirectory, Target, TargetError, lock};

/// Who is told what a look at files brings, as it goes.
pub trait Watcher {
    /// Something is not as it should be.
    fn found(&mut self, finding: Finding);

    /// So many bytes of logs were read since the last call.
    fn read(&mut self, bytes: u64);
}
