//! Records of `__share_group_state`: snapshots of a share partition's state, and updates to them.

#[allow(clippy::all, unused_imports, unused_variables, unreachable_pub, reason = "generated")]
mod generated {
    use crate::generated_prelude::*;

    include!(concat!(env!("OUT_DIR"), "/share_coordinator.rs"));
    include!(concat!(env!("OUT_DIR"), "/share_coordinator_enums.rs"));
}

pub use generated::*;
pub use share_snapshot_key::ShareSnapshotKey;
pub use share_snapshot_value::ShareSnapshotValue;
pub use share_update_key::ShareUpdateKey;
pub use share_update_value::ShareUpdateValue;

super::prefixed::coordinator_records!();
