//! The high watermark: the end of what every in-sync replica has, so that no election can take it back.
//!
//! ```text
//!   log start        high watermark        synced        log end
//!   ├── readable ───────┤                    │              │
//!                       └─ min over the in-sync replicas of what each counts as its own:
//!                          `fsync`: the synced offset, `replicated`: the log end
//! ```
//! It never moves back.

use model::Offset;
use storage::Durability;

/// What this node counts of its own log: what fdatasync has returned for, so that an acknowledged record survives the loss
/// of power, or as with Kafka what stands in the page cache, which survives the end of the process.
pub(crate) fn counted(durability: Durability, synced: Offset, log_end: Offset) -> Offset {
    match durability {
        Durability::Fsync => synced,
        Durability::Replicated => log_end,
    }
}
