//! Control records: what a log says about itself. Key: int16 0 and int16 type.
//!
//! The values of the quorum's control records begin with a field `Version` and have no prefix; the value of a
//! transaction marker has its version before it (KIP-98, KIP-595, KIP-630, KIP-853).

use bytes::Bytes;

use super::prefixed::{decode_versioned, encode_versioned};
use crate::json::to_json;
use crate::messages::control_record_type_schema::ControlRecordTypeSchema;
pub use crate::messages::end_txn_marker::EndTxnMarker;
pub use crate::messages::kraft_version_record::KRaftVersionRecord;
pub use crate::messages::leader_change_message::LeaderChangeMessage;
pub use crate::messages::snapshot_footer_record::SnapshotFooterRecord;
pub use crate::messages::snapshot_header_record::SnapshotHeaderRecord;
pub use crate::messages::voters_record::VotersRecord;
use crate::{DecodeError, DecodeProblem, EncodeError, Message, Reader, Writer};

/// Keys and all values but [`LeaderChangeMessage`] have this version only; of that one Kafka 4.4.0 writes and reads it.
const VERSION: i16 = 0;

/// A control record of any type.
#[derive(Clone, Debug, PartialEq)]
pub enum ControlRecord {
    Abort(EndTxnMarker),
    Commit(EndTxnMarker),
    LeaderChange(LeaderChangeMessage),
    SnapshotHeader(SnapshotHeaderRecord),
    SnapshotFooter(SnapshotFooterRecord),
    KRaftVersion(KRaftVersionRecord),
    KRaftVoters(VotersRecord),
}

impl ControlRecord {
    #[must_use]
    pub fn control_type(&self) -> i16 {
        match self {
            ControlRecord::Abort(_) => 0,
            ControlRecord::Commit(_) => 1,
            ControlRecord::LeaderChange(_) => 2,
            ControlRecord::SnapshotHeader(_) => 3,
            ControlRecord::SnapshotFooter(_) => 4,
            ControlRecord::KRaftVersion(_) => 5,
            ControlRecord::KRaftVoters(_) => 6,
        }
    }

    pub fn key_bytes(&self) -> Result<Bytes, EncodeError> {
        encode_versioned(
            &ControlRecordTypeSchema {
                r#type: self.control_type(),
            },
            VERSION,
        )
    }

    pub fn value_bytes(&self) -> Result<Bytes, EncodeError> {
        match self {
            ControlRecord::Abort(marker) | ControlRecord::Commit(marker) => encode_versioned(marker, VERSION),
            ControlRecord::LeaderChange(message) => bare(message, message.version),
            ControlRecord::SnapshotHeader(record) => bare(record, record.version),
            ControlRecord::SnapshotFooter(record) => bare(record, record.version),
            ControlRecord::KRaftVersion(record) => bare(record, record.version),
            ControlRecord::KRaftVoters(record) => bare(record, record.version),
        }
    }

    /// The value as JSON, for people, as Apache Kafka's tools show it.
    #[must_use]
    pub fn value_json(&self) -> String {
        match self {
            ControlRecord::Abort(marker) | ControlRecord::Commit(marker) => to_json(marker, VERSION),
            ControlRecord::LeaderChange(message) => to_json(message, message.version),
            ControlRecord::SnapshotHeader(record) => to_json(record, record.version),
            ControlRecord::SnapshotFooter(record) => to_json(record, record.version),
            ControlRecord::KRaftVersion(record) => to_json(record, record.version),
            ControlRecord::KRaftVoters(record) => to_json(record, record.version),
        }
    }

    pub fn from_bytes(key: Bytes, value: Bytes) -> Result<ControlRecord, DecodeError> {
        let (key, _) = decode_versioned::<ControlRecordTypeSchema>(key)?;
        Ok(match key.r#type {
            0 => ControlRecord::Abort(decode_versioned(value)?.0),
            1 => ControlRecord::Commit(decode_versioned(value)?.0),
            2 => ControlRecord::LeaderChange(read_bare(value)?),
            3 => ControlRecord::SnapshotHeader(read_bare(value)?),
            4 => ControlRecord::SnapshotFooter(read_bare(value)?),
            5 => ControlRecord::KRaftVersion(read_bare(value)?),
            6 => ControlRecord::KRaftVoters(read_bare(value)?),
            other => {
                let problem = DecodeProblem::UnknownType(other.into());
                return Err(Reader::new(value).error("ControlRecordTypeSchema.Type", problem));
            }
        })
    }
}

/// The message, which begins with its own version.
fn bare<M: Message>(message: &M, version: i16) -> Result<Bytes, EncodeError> {
    let mut writer = Writer::new();
    message.encode(&mut writer, version)?;
    Ok(writer.into_bytes())
}

fn read_bare<M: Message>(bytes: Bytes) -> Result<M, DecodeError> {
    let version = Reader::new(bytes.clone()).i16(M::NAME)?;
    let mut reader = Reader::new(bytes);
    let message = M::decode(&mut reader, version)?;
    reader.finish(M::NAME)?;
    Ok(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leader_change_is_written_as_kafka_writes_it() {
        use crate::messages::leader_change_message::Voter;
        let voter = |id| Voter {
            voter_id: id,
            ..Voter::default()
        };
        let message = LeaderChangeMessage {
            leader_id: 1,
            voters: vec![voter(1)],
            granting_voters: vec![voter(1)],
            ..LeaderChangeMessage::default()
        };
        let record = ControlRecord::LeaderChange(message);
        let (key, value) = (record.key_bytes().unwrap(), record.value_bytes().unwrap());
        assert_eq!(&key[..], [0, 0, 0, 2]);
        assert_eq!(&value[..], [0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 1, 0, 2, 0, 0, 0, 1, 0, 0]);
        assert_eq!(ControlRecord::from_bytes(key, value), Ok(record));
    }

    #[test]
    fn a_transaction_marker_has_its_version_before_the_coordinator_epoch() {
        let record = ControlRecord::Commit(EndTxnMarker { coordinator_epoch: 5 });
        let (key, value) = (record.key_bytes().unwrap(), record.value_bytes().unwrap());
        assert_eq!((&key[..], &value[..]), (&[0, 0, 0, 1][..], &[0, 0, 0, 0, 0, 5][..]));
        assert_eq!(ControlRecord::from_bytes(key, value), Ok(record));
    }

    #[test]
    fn an_unknown_control_type_is_refused() {
        let error = ControlRecord::from_bytes(Bytes::from_static(&[0, 0, 0, 9]), Bytes::new()).unwrap_err();
        assert_eq!(error.problem, DecodeProblem::UnknownType(9));
    }
}
