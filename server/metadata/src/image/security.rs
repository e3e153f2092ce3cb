//! Access control entries, SCRAM credentials and delegation tokens, kept as their records.

use std::collections::BTreeMap;

use model::Uuid;
use protocol::Text;
use protocol::internal_records::metadata::{
    AccessControlEntryRecord, DelegationTokenRecord, MetadataRecord, UserScramCredentialRecord,
};

use super::ReplayError;

/// Who may do what, and how they prove who they are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SecurityImage {
    pub acls: BTreeMap<Uuid, AccessControlEntryRecord>,
    /// By mechanism (1 SCRAM-SHA-256, 2 SCRAM-SHA-512) and user.
    pub scram_credentials: BTreeMap<(i8, Text), UserScramCredentialRecord>,
    /// By token id.
    pub delegation_tokens: BTreeMap<Text, DelegationTokenRecord>,
}

impl SecurityImage {
    pub(super) fn replay(&mut self, record: &MetadataRecord) -> Result<(), ReplayError> {
        match record {
            MetadataRecord::AccessControlEntry(entry) => {
                self.acls.insert(entry.id, entry.clone());
            }
            MetadataRecord::RemoveAccessControlEntry(entry) => {
                self.acls.remove(&entry.id).ok_or(ReplayError::UnknownAclId(entry.id))?;
            }
            MetadataRecord::UserScramCredential(credential) => {
                let key = (credential.mechanism, credential.name.clone());
                self.scram_credentials.insert(key, credential.clone());
            }
            MetadataRecord::RemoveUserScramCredential(credential) => {
                self.scram_credentials
                    .remove(&(credential.mechanism, credential.name.clone()));
            }
            MetadataRecord::DelegationToken(token) => {
                self.delegation_tokens.insert(token.token_id.clone(), token.clone());
            }
            MetadataRecord::RemoveDelegationToken(token) => {
                self.delegation_tokens.remove(&token.token_id);
            }
            _ => {}
        }
        Ok(())
    }
}
