//! One partition of a coordinator's topic as a deterministic state machine, and how a shell drives it.
//!
//! ```text
//!   log ──replay──▶ ┌───────┐ ──Append{write, records}──▶ log ──appended(write, end)──┐
//!   request─handle─▶ │ shard │ ──Respond{token, response}─▶ client                      │
//!   clock ─on_tick─▶ └───────┘ ◀───────────committed(high watermark)────────────────────┘
//! ```
//!
//! Rules between shell and shard:
//! - Effects are carried out in the order in which they come. Each `Append` is reported once, by [`Shard::appended`] or by
//!   [`Shard::append_failed`]; requests and ticks may come in between.
//! - A write may be split over several batches, between records: every prefix of a write is a valid log.
//! - A token is the shell's name for a caller who waits. Each token that was handed in is answered exactly once, unless
//!   the shard is dropped; [`Shard::resign`] answers all that still wait.
//! - A shell that gives up waiting for a caller answers it by itself and ignores the later answer. It must not report a
//!   write as failed that could still be in the log: when that is unknown, the shard is resigned and loaded again.

use bytes::Bytes;
use model::{ErrorCode, Monotonic, Offset, Timestamp};

/// The two clocks at one moment: timestamps in records come from the wall clock, timeouts from the monotonic one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    pub wall: Timestamp,
    pub monotonic: Monotonic,
}

/// The shell's name for a caller who waits for an answer; unique within a shard's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

/// The shard's name for records that it asked the shell to append.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WriteId(pub u64);

/// A record of the partition as it stands in the log; no value deletes the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub key: Bytes,
    pub value: Option<Bytes>,
}

/// What the shell has to do for the shard.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect<Response> {
    /// Append the records, in order and behind everything appended before.
    Append { write: WriteId, records: Vec<Record> },
    /// Answer the caller.
    Respond { token: Token, response: Response },
}

/// What replaying a record did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replayed {
    Applied,
    /// A key of a type that this version does not know; it is left alone, as Kafka does.
    Unknown {
        record_type: i16,
    },
}

/// A record that cannot be what it says it is. The partition must not be served from a log that holds one.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    #[error("record key of {0} bytes has no type")]
    KeyTooShort(usize),
    #[error("cannot decode the {what} of a record")]
    Decode {
        what: &'static str,
        #[source]
        source: protocol::DecodeError,
    },
}

/// One partition of a coordinator's topic.
pub trait Shard {
    /// A request with all that is needed to decide on it.
    type Call<'a>;
    type Response;

    /// Takes in a record of the log, oldest first, while the partition is being loaded.
    ///
    /// # Errors
    /// If the record is of a known type and cannot be decoded.
    fn replay(&mut self, record: &Record) -> Result<Replayed, ReplayError>;

    /// All records up to the high watermark have been replayed: timers start, requests may come.
    fn loaded(&mut self, now: Now, effects: &mut Vec<Effect<Self::Response>>);

    fn handle(&mut self, token: Token, call: Self::Call<'_>, now: Now, effects: &mut Vec<Effect<Self::Response>>);

    /// When [`Shard::on_tick`] is due next.
    fn next_deadline(&self) -> Option<Monotonic>;

    fn on_tick(&mut self, now: Now, effects: &mut Vec<Effect<Self::Response>>);

    /// The write is in the log; `end` is the offset behind its last record.
    fn appended(&mut self, write: WriteId, end: Offset);

    /// Nothing of the write is in the log: the decision is taken back and whoever waits for it is told `error`.
    fn append_failed(&mut self, write: WriteId, error: ErrorCode, now: Now, effects: &mut Vec<Effect<Self::Response>>);

    /// Everything below `high_watermark` is committed: writes up to it take effect and their callers are answered.
    fn committed(&mut self, high_watermark: Offset, now: Now, effects: &mut Vec<Effect<Self::Response>>);

    /// The partition is led by another broker now: all callers that wait are told `error`. The shard is done.
    fn resign(&mut self, error: ErrorCode, effects: &mut Vec<Effect<Self::Response>>);
}
