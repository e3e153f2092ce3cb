//! The records of `__consumer_offsets` that concern classic groups and offsets, in Kafka 4.4.0's bytes.
//!
//! A key is its type as int16 and the key's fields; a value is its version as int16 and the value's fields:
//!
//! ```text
//!   type 1  OffsetCommit   group, topic, partition → offset, leader epoch, metadata, commit time, topic id
//!   type 0  the same, as Kafka wrote it before 0.11: read, and superseded by the next commit
//!   type 2  GroupMetadata  group → protocol, generation, leader, members with subscriptions and assignments
//! ```
//!
//! Offsets are written in version 4, which carries the topic id (in version 1 if the client set a retention time, since
//! no other has the time of expiry), groups in version 3, which Kafka from 2.3 on reads.

use bytes::Bytes;
use model::{LeaderEpoch, Timestamp, Uuid};
use protocol::internal_records::group_coordinator::group_metadata_value::MemberMetadata;
use protocol::internal_records::group_coordinator::{
    GroupMetadataKey, GroupMetadataValue, Key, LegacyOffsetCommitValue, OffsetCommitKey, OffsetCommitValue,
};
use protocol::internal_records::prefixed::{decode_versioned, encode_versioned};
use protocol::{DecodeError, EncodeError, Message, Text};

use super::classic::member::MemberId;
use crate::shard::{Record, ReplayError};

/// The greatest type of key that is read here; those above belong to other kinds of groups.
const GROUP_METADATA: i16 = 2;

const OFFSET_VERSION: i16 = 4;
const OFFSET_VERSION_WITH_EXPIRY: i16 = 1;
const GROUP_VERSION: i16 = 3;

/// A record that a shard writes and replays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupRecord {
    /// No value deletes the offset.
    Offset {
        group_id: Text,
        topic: Text,
        partition: i32,
        value: Option<CommittedOffset>,
    },
    /// No value deletes the group.
    Group {
        group_id: Text,
        value: Option<GroupSnapshot>,
    },
}

/// How far a group has read a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedOffset {
    /// The next offset to read, as the client gave it: Kafka does not check that it is one.
    pub offset: i64,
    /// The leader epoch of the last record that was read, if the client knew it.
    pub leader_epoch: Option<LeaderEpoch>,
    pub metadata: Text,
    pub commit_timestamp: Timestamp,
    /// When the offset expires whatever the group does; only clients before 2.1 could ask for that.
    pub expire_timestamp: Option<Timestamp>,
    /// [`Uuid::ZERO`] if it was not known.
    pub topic_id: Uuid,
}

/// A group as a rebalance left it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSnapshot {
    /// `None` for a group that was only ever committed to.
    pub protocol_type: Option<Text>,
    pub generation: i32,
    pub protocol_name: Option<Text>,
    pub leader: Option<MemberId>,
    /// When the group came into the state it was in.
    pub state_since: Option<Timestamp>,
    pub members: Vec<MemberSnapshot>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberSnapshot {
    pub member_id: MemberId,
    pub group_instance_id: Option<Text>,
    pub client_id: Text,
    pub client_host: Text,
    /// Negative in records that have none: the session timeout counts.
    pub rebalance_timeout_ms: i32,
    pub session_timeout_ms: i32,
    /// What the member gave with the protocol that was chosen.
    pub subscription: Bytes,
    pub assignment: Bytes,
}

impl GroupRecord {
    /// # Errors
    /// If a text or byte field is longer than the format can say.
    pub fn encode(&self) -> Result<Record, EncodeError> {
        let (key, value) = match self {
            GroupRecord::Offset {
                group_id,
                topic,
                partition,
                value,
            } => {
                let key = OffsetCommitKey {
                    group: group_id.clone(),
                    topic: topic.clone(),
                    partition: *partition,
                };
                (Key::from(key), value.as_ref().map(CommittedOffset::encode))
            }
            GroupRecord::Group { group_id, value } => {
                let key = GroupMetadataKey {
                    group: group_id.clone(),
                };
                (Key::from(key), value.as_ref().map(GroupSnapshot::encode))
            }
        };
        Ok(Record {
            key: key.to_bytes()?,
            value: value.transpose()?,
        })
    }

    /// `Ok(Err(type))` for a key of a type that is not one of the above.
    ///
    /// # Errors
    /// If the record is of a known type and does not decode.
    pub fn decode(record: &Record) -> Result<Result<Self, i16>, ReplayError> {
        let (record_type, _) = record
            .key
            .split_first_chunk::<2>()
            .ok_or(ReplayError::KeyTooShort(record.key.len()))?;
        let record_type = i16::from_be_bytes(*record_type);
        if !(0..=GROUP_METADATA).contains(&record_type) {
            return Ok(Err(record_type));
        }
        let key = Key::from_bytes(record.key.clone()).map_err(|source| ReplayError::Decode { what: "key", source })?;
        let value = record.value.as_ref();
        let record = match key {
            Key::OffsetCommit(key) => GroupRecord::Offset {
                group_id: key.group,
                topic: key.topic,
                partition: key.partition,
                value: value.map(CommittedOffset::decode).transpose()?,
            },
            Key::LegacyOffsetCommit(key) => GroupRecord::Offset {
                group_id: key.group,
                topic: key.topic,
                partition: key.partition,
                value: value.map(CommittedOffset::decode_legacy).transpose()?,
            },
            Key::GroupMetadata(key) => GroupRecord::Group {
                group_id: key.group,
                value: value.map(GroupSnapshot::decode).transpose()?,
            },
            other => return Ok(Err(other.record_type())),
        };
        Ok(Ok(record))
    }
}

impl CommittedOffset {
    fn encode(&self) -> Result<Bytes, EncodeError> {
        let version = match self.expire_timestamp {
            Some(_) => OFFSET_VERSION_WITH_EXPIRY,
            None => OFFSET_VERSION,
        };
        let value = OffsetCommitValue {
            offset: self.offset,
            leader_epoch: self.leader_epoch.map_or(-1, LeaderEpoch::get),
            metadata: self.metadata.clone(),
            commit_timestamp: self.commit_timestamp.millis(),
            expire_timestamp: self.expire_timestamp.map_or(-1, Timestamp::millis),
            topic_id: self.topic_id,
            ..OffsetCommitValue::default()
        };
        encode_versioned(&value, version)
    }

    fn decode(bytes: &Bytes) -> Result<Self, ReplayError> {
        let value: OffsetCommitValue = decode_value(bytes)?;
        Ok(CommittedOffset {
            offset: value.offset,
            leader_epoch: LeaderEpoch::from_wire(value.leader_epoch),
            metadata: value.metadata,
            commit_timestamp: Timestamp::from_millis(value.commit_timestamp),
            expire_timestamp: Timestamp::from_wire(value.expire_timestamp),
            topic_id: value.topic_id,
        })
    }

    fn decode_legacy(bytes: &Bytes) -> Result<Self, ReplayError> {
        let value: LegacyOffsetCommitValue = decode_value(bytes)?;
        Ok(CommittedOffset {
            offset: value.offset,
            leader_epoch: None,
            metadata: value.metadata,
            commit_timestamp: Timestamp::from_millis(value.commit_timestamp),
            expire_timestamp: None,
            topic_id: Uuid::ZERO,
        })
    }
}

impl GroupSnapshot {
    fn encode(&self) -> Result<Bytes, EncodeError> {
        let value = GroupMetadataValue {
            protocol_type: self.protocol_type.clone().unwrap_or_default(),
            generation: self.generation,
            protocol: self.protocol_name.clone(),
            leader: self.leader.clone().map(Text::from),
            current_state_timestamp: self.state_since.map_or(-1, Timestamp::millis),
            members: self.members.iter().map(MemberSnapshot::to_wire).collect(),
            ..GroupMetadataValue::default()
        };
        encode_versioned(&value, GROUP_VERSION)
    }

    fn decode(bytes: &Bytes) -> Result<Self, ReplayError> {
        let value: GroupMetadataValue = decode_value(bytes)?;
        Ok(GroupSnapshot {
            protocol_type: Some(value.protocol_type).filter(|name| !name.is_empty()),
            generation: value.generation,
            protocol_name: value.protocol,
            leader: value.leader.map(MemberId::from),
            state_since: Timestamp::from_wire(value.current_state_timestamp),
            members: value.members.into_iter().map(MemberSnapshot::from_wire).collect(),
        })
    }
}

impl MemberSnapshot {
    fn to_wire(&self) -> MemberMetadata {
        MemberMetadata {
            member_id: self.member_id.clone().into(),
            group_instance_id: self.group_instance_id.clone(),
            client_id: self.client_id.clone(),
            client_host: self.client_host.clone(),
            rebalance_timeout: self.rebalance_timeout_ms,
            session_timeout: self.session_timeout_ms,
            subscription: self.subscription.clone(),
            assignment: self.assignment.clone(),
            ..MemberMetadata::default()
        }
    }

    /// Subscription and assignment are copied, so that a kept member does not keep the batch it was read from.
    fn from_wire(wire: MemberMetadata) -> Self {
        MemberSnapshot {
            member_id: wire.member_id.into(),
            group_instance_id: wire.group_instance_id,
            client_id: wire.client_id,
            client_host: wire.client_host,
            rebalance_timeout_ms: wire.rebalance_timeout,
            session_timeout_ms: wire.session_timeout,
            subscription: Bytes::copy_from_slice(&wire.subscription),
            assignment: Bytes::copy_from_slice(&wire.assignment),
        }
    }
}

fn decode_value<M: Message>(bytes: &Bytes) -> Result<M, ReplayError> {
    let decoded: Result<(M, i16), DecodeError> = decode_versioned(bytes.clone());
    let (value, _) = decoded.map_err(|source| ReplayError::Decode { what: "value", source })?;
    Ok(value)
}
