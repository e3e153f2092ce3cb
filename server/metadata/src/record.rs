//! Records on their way into the log: which version they are written in, and a check that they can be read again.
//!
//! One bad record halts every node of the cluster that reads it, at each start anew. So nothing is appended that this
//! node does not itself read back equal to what it meant.

use std::fmt;

use bytes::Bytes;
use protocol::internal_records::metadata::{BrokerRegistrationChangeRecord, MetadataRecord};
use protocol::{DecodeError, EncodeError};

/// A level of the feature `metadata.version`: which records, in which versions, all nodes understand.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct MetadataVersion(i16);

impl MetadataVersion {
    /// The feature's name.
    pub const FEATURE: &str = "metadata.version";
    /// 3.3-IV3, the lowest that Kafka 4.4.0 takes.
    pub const LEAST: MetadataVersion = MetadataVersion(7);
    /// 4.4-IV2, what Kafka 4.4.0 formats with.
    pub const LATEST: MetadataVersion = MetadataVersion(33);

    /// `None` for a level that this node does not know.
    #[must_use]
    pub const fn from_level(level: i16) -> Option<Self> {
        if level >= Self::LEAST.0 && level <= Self::LATEST.0 {
            Some(MetadataVersion(level))
        } else {
            None
        }
    }

    #[must_use]
    pub const fn level(self) -> i16 {
        self.0
    }

    /// Whether registrations say which directories take nothing new (4.3-IV0).
    #[must_use]
    pub const fn has_cordoned_directories(self) -> bool {
        self.0 >= 30
    }
}

impl fmt::Display for MetadataVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A record that must not be appended.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RecordError {
    #[error("a {name} cannot be written at metadata.version {at}, it needs {needs}")]
    NotYet {
        name: &'static str,
        at: MetadataVersion,
        needs: i16,
    },
    #[error("a {name} cannot be written")]
    Encode {
        name: &'static str,
        #[source]
        source: EncodeError,
    },
    #[error("a {name} cannot be read back")]
    Decode {
        name: &'static str,
        #[source]
        source: DecodeError,
    },
    #[error("a {0} is read back as another record")]
    Differs(&'static str),
}

/// A record's value as it stands in the log: frame and message, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct SealedRecord {
    pub record: MetadataRecord,
    pub bytes: Bytes,
}

/// Writes `record` in the version that belongs to `version` and reads it back.
///
/// # Errors
/// If the level does not have the record, or what is read is not what was meant.
pub fn seal(record: MetadataRecord, version: MetadataVersion) -> Result<SealedRecord, RecordError> {
    let name = record.name();
    let needs = first_level(&record);
    if version.level() < needs {
        return Err(RecordError::NotYet {
            name,
            at: version,
            needs,
        });
    }
    let record_version = record_version(&record, version);
    let bytes = record
        .to_bytes(record_version)
        .map_err(|source| RecordError::Encode { name, source })?;
    let (read, read_version) =
        MetadataRecord::from_bytes(bytes.clone()).map_err(|source| RecordError::Decode { name, source })?;
    if read != record || read_version != record_version {
        return Err(RecordError::Differs(name));
    }
    Ok(SealedRecord { record, bytes })
}

/// The level that brought the record's type.
fn first_level(record: &MetadataRecord) -> i16 {
    match record {
        MetadataRecord::UserScramCredential(_) | MetadataRecord::RemoveUserScramCredential(_) => 11,
        MetadataRecord::BeginTransaction(_)
        | MetadataRecord::EndTransaction(_)
        | MetadataRecord::AbortTransaction(_) => 13,
        MetadataRecord::DelegationToken(_) | MetadataRecord::RemoveDelegationToken(_) => 14,
        MetadataRecord::RegisterController(_) => 15,
        MetadataRecord::ClearElr(_) => 23,
        MetadataRecord::BrokerRegistrationChange(change) if change.cordoned_log_dirs.is_some() => 30,
        MetadataRecord::UnregisterController(_) => 33,
        _ => MetadataVersion::LEAST.level(),
    }
}

fn record_version(record: &MetadataRecord, version: MetadataVersion) -> i16 {
    match record {
        MetadataRecord::RegisterBroker(_) => match version.level() {
            30.. => 4,
            17.. => 3,
            8.. => 2,
            _ => 1,
        },
        MetadataRecord::Partition(_) | MetadataRecord::PartitionChange(_) => match version.level() {
            23.. => 2,
            17.. => 1,
            _ => 0,
        },
        MetadataRecord::BrokerRegistrationChange(change) => lowest_version(change),
        _ => 0,
    }
}

/// Registration changes go out in the lowest version that holds what they say.
fn lowest_version(change: &BrokerRegistrationChangeRecord) -> i16 {
    if change.cordoned_log_dirs.is_some() {
        3
    } else if !change.log_dirs.is_empty() {
        2
    } else {
        i16::from(change.in_controlled_shutdown != 0)
    }
}

#[cfg(test)]
mod tests {
    use model::Uuid;
    use protocol::internal_records::metadata::{
        ConfigRecord, NoOpRecord, PartitionChangeRecord, RegisterControllerRecord,
    };

    use super::*;

    #[test]
    fn a_no_op_is_the_four_bytes_that_kafka_writes() {
        let sealed = seal(NoOpRecord::default().into(), MetadataVersion::LATEST).unwrap();
        assert_eq!(&sealed.bytes[..], [1, 20, 0, 0]);
    }

    #[test]
    fn the_cluster_level_config_is_written_as_kafka_writes_it() {
        let record = ConfigRecord {
            resource_type: 4,
            name: "min.insync.replicas".into(),
            value: Some("1".into()),
            ..ConfigRecord::default()
        };
        let sealed = seal(record.into(), MetadataVersion::LATEST).unwrap();
        assert_eq!(
            &sealed.bytes[..],
            b"\x01\x04\x00\x04\x01\x14min.insync.replicas\x021\x00"
        );
    }

    #[test]
    fn registration_changes_take_the_lowest_version_that_holds_them() {
        let version =
            |change: BrokerRegistrationChangeRecord| seal(change.into(), MetadataVersion::LATEST).unwrap().bytes[2];
        let change = BrokerRegistrationChangeRecord {
            fenced: -1,
            ..Default::default()
        };
        assert_eq!(version(change.clone()), 0);
        assert_eq!(
            version(BrokerRegistrationChangeRecord {
                in_controlled_shutdown: 1,
                ..change.clone()
            }),
            1
        );
        assert_eq!(
            version(BrokerRegistrationChangeRecord {
                log_dirs: vec![Uuid::ONE],
                ..change.clone()
            }),
            2
        );
        assert_eq!(
            version(BrokerRegistrationChangeRecord {
                cordoned_log_dirs: Some(Vec::new()),
                ..change
            }),
            3
        );
    }

    #[test]
    fn a_record_that_the_level_does_not_have_is_refused() {
        let old = MetadataVersion::from_level(14).unwrap();
        let error = seal(RegisterControllerRecord::default().into(), old).unwrap_err();
        assert!(matches!(error, RecordError::NotYet { needs: 15, .. }), "{error}");
        let change = PartitionChangeRecord {
            eligible_leader_replicas: Some(vec![1]),
            ..Default::default()
        };
        assert!(seal(change.clone().into(), old).is_err());
        assert!(seal(change.into(), MetadataVersion::LATEST).is_ok());
    }
}
