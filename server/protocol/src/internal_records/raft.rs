//! The quorum's state as it is on disk, there in JSON with the field names of the schema.

#[allow(clippy::all, unused_imports, unused_variables, unreachable_pub, reason = "generated")]
mod generated {
    use crate::generated_prelude::*;

    include!(concat!(env!("OUT_DIR"), "/raft.rs"));
}

pub use generated::*;
pub use quorum_state_data::QuorumStateData;
