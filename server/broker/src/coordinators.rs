//! The coordinators on this node: shells around the shards of `coordinator`.

mod group_coordinator;
mod groups;
mod loading;

pub(crate) use groups::{Caller, Groups, OFFSETS_TOPIC};
