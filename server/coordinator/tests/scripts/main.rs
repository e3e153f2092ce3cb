//! Scripts of requests, times, commits and failures, and what a shard makes of them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod consumers;
mod describe;
mod golden;
mod heartbeat;
mod join;
mod leave;
mod offsets;
mod random;
mod replay;
mod retention;
mod static_members;
mod sync;
mod waits_for_commit;
mod world;
