//! Records of `__cluster_metadata` (KIP-631).

#[allow(clippy::all, unused_imports, unused_variables, unreachable_pub, reason = "generated")]
mod generated {
    use crate::generated_prelude::*;

    include!(concat!(env!("OUT_DIR"), "/metadata.rs"));
    include!(concat!(env!("OUT_DIR"), "/metadata_enums.rs"));
}

pub use abort_transaction_record::AbortTransactionRecord;
pub use access_control_entry_record::AccessControlEntryRecord;
pub use begin_transaction_record::BeginTransactionRecord;
pub use broker_registration_change_record::BrokerRegistrationChangeRecord;
pub use clear_elr_record::ClearElrRecord;
pub use client_quota_record::ClientQuotaRecord;
pub use config_record::ConfigRecord;
pub use delegation_token_record::DelegationTokenRecord;
pub use end_transaction_record::EndTransactionRecord;
pub use feature_level_record::FeatureLevelRecord;
pub use fence_broker_record::FenceBrokerRecord;
pub use generated::*;
pub use no_op_record::NoOpRecord;
pub use partition_change_record::PartitionChangeRecord;
pub use partition_record::PartitionRecord;
pub use producer_ids_record::ProducerIdsRecord;
pub use register_broker_record::RegisterBrokerRecord;
pub use register_controller_record::RegisterControllerRecord;
pub use remove_access_control_entry_record::RemoveAccessControlEntryRecord;
pub use remove_delegation_token_record::RemoveDelegationTokenRecord;
pub use remove_topic_record::RemoveTopicRecord;
pub use remove_user_scram_credential_record::RemoveUserScramCredentialRecord;
pub use topic_record::TopicRecord;
pub use unfence_broker_record::UnfenceBrokerRecord;
pub use unregister_broker_record::UnregisterBrokerRecord;
pub use unregister_controller_record::UnregisterControllerRecord;
pub use user_scram_credential_record::UserScramCredentialRecord;
pub use zk_migration_state_record::ZkMigrationStateRecord;

super::framed::framed_records!(MetadataRecord);
