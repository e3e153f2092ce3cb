//! Compaction: of each key only the last record stays (KIP-58, KIP-280's default strategy, KIP-534).
//!
//! ```text
//! log start        first dirty offset        bound: high watermark, first unstable offset, age
//! |----- clean part -----|------ dirty part ------|--- left alone ---|-- active segment --|
//!                        |---- as much as the key map holds ---->|
//! ```
//! A round has four steps, and only the first and the last need the log's lock:
//! 1. [`PartitionLog::compaction_view`] and [`View::backlog`] tell how much is dirty, [`PartitionLog::begin_cleaning`]
//!    takes a snapshot of what is to be cleaned.
//! 2. [`Cleaning::map_keys`] reads the dirty part and notes where each key stands last.
//! 3. [`Cleaning::clean_group`] writes some neighbouring segments anew as one, into `.cleaned` files.
//! 4. [`PartitionLog::swap_in`] puts that in their place: `.cleaned` becomes `.swap`, the old ones `.deleted`, `.swap` the
//!    segment. A crash leaves the old segments or the new one: with a `.swap` log the next start finishes the exchange.
//!
//! - Offsets never change, and the last batch of what a group of segments held stays, emptied if need be: so a log has no
//!   gap between its segments that could be taken for a loss.
//! - Groups are swapped in from the front, each durable before the next: what outlives a crash never lacks a tombstone
//!   whose victims are still there.
//! - The last batch of each producer stays, emptied if need be, so that its sequence outlives the producer snapshots.
//! - Batches keep producer, epoch, sequence, leader epoch, timestamp type and compression.

mod batch_filter;
mod cleaner;
mod key_map;
mod plan;
mod swap;
mod transactions;

use std::io;
use std::ops::ControlFlow;

use model::Offset;

pub use cleaner::{CleanedSegment, Cleaning, Tally};
pub use plan::{Backlog, View};
pub use swap::SwapError;
pub(crate) use swap::complete_swaps;

/// The topic's settings of compaction.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CompactionOptions {
    /// `min.cleanable.dirty.ratio`
    pub dirty_ratio_min: f64,
    /// `min.compaction.lag.ms`
    pub lag_ms_min: i64,
    /// `max.compaction.lag.ms`; `None` for no limit.
    pub lag_ms_max: Option<i64>,
    /// `delete.retention.ms`
    pub delete_retention_ms: i64,
}

impl Default for CompactionOptions {
    fn default() -> Self {
        CompactionOptions {
            dirty_ratio_min: 0.5,
            lag_ms_min: 0,
            lag_ms_max: None,
            delete_retention_ms: 24 * 3_600_000,
        }
    }
}

/// What one round may use.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CleaningLimits {
    /// Memory of the key map: `log.cleaner.dedupe.buffer.size`, divided by the threads.
    pub map_bytes: usize,
    /// `log.cleaner.io.buffer.load.factor`
    pub map_load_factor: f64,
    /// What is read, and what is written, at a time: half of `log.cleaner.io.buffer.size`, divided by the threads. A batch
    /// that is larger is read whole.
    pub buffer_bytes: usize,
}

impl Default for CleaningLimits {
    fn default() -> Self {
        CleaningLimits {
            map_bytes: 128 << 20,
            map_load_factor: 0.9,
            buffer_bytes: 256 << 10,
        }
    }
}

/// Told of each piece that was read or written, in bytes; may wait, and may say that the round is to stop.
pub type Pace<'a> = dyn FnMut(usize) -> ControlFlow<()> + 'a;

/// Why a round did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum CleanError {
    #[error("the batch at offset {0} is damaged")]
    Damaged(Offset),
    #[error("the keys of the batch at offset {0} do not fit into the map: log.cleaner.dedupe.buffer.size is too small")]
    MapTooSmall(Offset),
    #[error("there are more than {0} aborted transactions")]
    TooManyAborted(usize),
    /// The pace said so.
    #[error("stopped")]
    Stopped,
    #[error("cleaning the log")]
    Io(#[from] io::Error),
}

#[cfg(test)]
mod tests;
