//! Records of `__transaction_state`: one key a transactional id.

#[allow(clippy::all, unused_imports, unused_variables, unreachable_pub, reason = "generated")]
mod generated {
    use crate::generated_prelude::*;

    include!(concat!(env!("OUT_DIR"), "/transaction_coordinator.rs"));
    include!(concat!(env!("OUT_DIR"), "/transaction_coordinator_enums.rs"));
}

pub use generated::*;
pub use transaction_log_key::TransactionLogKey;
pub use transaction_log_value::TransactionLogValue;

super::prefixed::coordinator_records!();
