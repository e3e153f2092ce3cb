//! The windowed processors' tasks: one for each partition of a processor's input that this node leads.
//!
//! ```text
//! supervisor: what is deployed × what this node leads ──► starts, pauses and stops runs
//! run:        restore ──► fetch ──► rows ──► streams::Task (off the async threads) ──► effects
//!                ▲                                                                       │
//!                └── anything that fails ◄── results, dead letters ──► changelog batch ──┘
//! ```
//! Invariants:
//! - of one partition of a processor at most one run exists: the next starts when the last has ended;
//! - a step's commits are carried out in order, each results first and changelog last; where one cannot be, the task is
//!   thrown away and restored;
//! - nothing that a plugin does ends more than its own task.

mod back_off;
mod board;
mod changelog;
mod commit;
mod dead_letters;
mod local_store;
mod restore;
mod rows;
mod run;
mod supervisor;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use back_off::BackOff;
pub(crate) use board::TaskBoard;
pub(crate) use local_store::{Stores, StoresSettings};
pub(crate) use supervisor::{Supervisor, TaskParts};
