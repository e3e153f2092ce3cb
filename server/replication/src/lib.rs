//! What keeps a partition the same wherever it is stored, and tells what of it may be seen: the leader's side.
//!
//! Deterministic and synchronous: appends, finished syncs and time come in, effects go out, and the shell carries them
//! out in order. There is one replica a partition so far, so the high watermark follows this node's own disk.

mod high_watermark;
pub mod replica;
pub mod waiters;

pub use replica::{Effect, Replica};
pub use waiters::WaiterId;
