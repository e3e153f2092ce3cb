//! Time, windows, lateness and emission over records: what a windowed processor does, without Wasm and without Kafka.
//!
//! One [`Task`] serves one partition: rows go in, [`Effect`]s come out. The crate is deterministic: time is what records
//! say, the disk is a [`Store`], the plugin a [`plugin::WindowAggregator`]. So the same code runs in the broker, in the
//! simulator and beside a foreign cluster.

pub mod changelog;
pub mod emit;
mod late;
pub mod store;
pub mod task;
pub mod watermark;
pub mod window;
#[cfg(feature = "window-cases")]
pub mod window_cases;

pub use changelog::{ChangelogRecord, TaskEpoch};
pub use emit::Emit;
pub use store::{MemoryStore, ScanLimit, Store, StoreError};
pub use task::{
    Calls, Commit, Counters, DeadLetter, DeadLetterSource, Effect, InvalidTimestamps, Limits, Refusal, Refused,
    Restoration, RestoreError, ResultRow, StoredPane, Task, TaskOptions, TaskState,
};
pub use watermark::Watermark;
pub use window::{Hopping, Tumbling, WindowError, Windows};
