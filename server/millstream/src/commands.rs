//! The verbs of the command line, a file each.

pub(crate) mod cluster;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod duration;
pub(crate) mod group;
pub(crate) mod http;
pub(crate) mod log;
pub(crate) mod offset_argument;
pub(crate) mod topic;
pub(crate) mod wasm;
