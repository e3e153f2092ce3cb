//! Moves a partition's log from one log directory of a node to another while it is written to (KIP-113).
//!
//! ```text
//!            directory A                      directory B
//!   copying  t-0                              t-0.MOVE-future          grows behind the log, segment by segment
//!   1        t-0                              t-0.MOVE-future + move   whole and on the disk
//!   2        t-0 + move                       t-0.MOVE-future + move   A says what is about to happen
//!   3        t-0 + move                       t-0 + move               from here on B's is the log
//!   4        t-0.UNIQUE-delete + move         t-0 + move
//!   5        t-0.UNIQUE-delete + move         t-0
//! ```
//! - Each step is durable before the next. Steps 1 to 5 happen under the log's lock, so nothing is acknowledged meanwhile.
//! - The copy is the same bytes: segments with their indexes and lists of batches, the producer snapshots, the leader
//!   epochs, what is quarantined and what is missing. Retention and compaction go on in the log; what they take out or
//!   write anew is taken out of the copy or copied anew.
//! - Which folder is the log after a crash is decided by [`judge`] from the notes `move` alone, and never guessed: where the
//!   other directory would have to be asked and is not there, the partition waits for it.
//! - A log moves only once the controller knows that it lies in A: where it believes the log to be counts where A is gone.
//! - A step that fails takes the note away from A before anything is appended there again. Without it, B's is a copy.

mod copying;
mod exchange;
mod note;
mod settling;

pub use copying::{CopyError, Copying, Progress};
pub use exchange::{ExchangeError, Exchanged, Sides, exchange};
pub use note::{MOVE_FILE, MoveNote, Noted, read_note};
pub use settling::{Holder, Judgement, SettleError, judge, settle};
