//! The state that the metadata log describes, up to and without an offset.
//!
//! An image is a handful of `Arc`s, so it is cheap to clone and to hand to other threads; replaying a record copies only
//! the part that it changes, and only if somebody else still holds that part.

use std::sync::Arc;

use model::{BrokerId, ControllerEpoch, Offset, Timestamp, TopicId};
use protocol::internal_records::metadata::MetadataRecord;

mod client_quotas;
mod cluster;
mod configs;
mod features;
mod security;
mod snapshot;
mod topics;

pub use client_quotas::{ClientQuotasImage, QuotaEntity};
pub use cluster::{BrokerEpoch, BrokerRegistration, ClusterImage, ControllerRegistration, Endpoint, SupportedRange};
pub use configs::{ConfigResource, ConfigResourceType, ConfigsImage};
pub use features::FeaturesImage;
pub use security::SecurityImage;
pub use topics::{LeaderRecoveryState, PartitionEpoch, PartitionImage, TopicImage, TopicsImage};

/// Everything the cluster knows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Image {
    /// The first offset that is not in it.
    pub end_offset: Offset,
    /// Epoch and append time of the last batch in it.
    pub epoch: ControllerEpoch,
    pub last_timestamp: Timestamp,
    pub features: Arc<FeaturesImage>,
    pub cluster: Arc<ClusterImage>,
    pub topics: Arc<TopicsImage>,
    pub configs: Arc<ConfigsImage>,
    pub client_quotas: Arc<ClientQuotasImage>,
    /// The first producer id that is in no block given out yet.
    pub next_producer_id: Option<i64>,
    pub security: Arc<SecurityImage>,
}

/// A record that does not fit what is known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    #[error("broker id {0} is negative")]
    BrokerId(i32),
    #[error("broker epoch {0} is negative")]
    BrokerEpoch(i64),
    #[error("broker {broker} is not registered under epoch {epoch}")]
    UnknownBroker { broker: BrokerId, epoch: i64 },
    #[error("controller {0} is not registered")]
    UnknownController(BrokerId),
    #[error("{field} is {value}, which means nothing")]
    Value { field: &'static str, value: i64 },
    #[error("topic name {0:?} is none")]
    TopicName(String),
    #[error("topic {name} exists with id {known}, a record gives it {new}")]
    TopicExists { name: String, known: TopicId, new: TopicId },
    #[error("topic id {0} is not known")]
    UnknownTopicId(TopicId),
    #[error("topic {0} is not known")]
    UnknownTopic(String),
    #[error("partition {partition} of topic id {topic_id} is not known")]
    UnknownPartition { topic_id: TopicId, partition: i32 },
    #[error("partition {partition} of topic id {topic_id} has {directories} directories for {replicas} replicas")]
    Directories {
        topic_id: TopicId,
        partition: i32,
        directories: usize,
        replicas: usize,
    },
    #[error("feature {name} gets level {level}, which this node does not know")]
    FeatureLevel { name: String, level: i16 },
    #[error("next producer id {next} is not above {current}")]
    ProducerId { next: i64, current: i64 },
    #[error("access control entry {0} is not known")]
    UnknownAclId(model::Uuid),
    #[error("a transaction begins within a transaction")]
    NestedTransaction,
    #[error("a transaction ends that did not begin")]
    NoTransaction,
}

impl Image {
    /// Takes in one record other than those that frame transactions, which are [`crate::Replay`]'s.
    ///
    /// # Errors
    /// If the record does not fit; the image is then of no more use.
    pub(crate) fn replay(&mut self, record: &MetadataRecord) -> Result<(), ReplayError> {
        match record {
            MetadataRecord::RegisterBroker(record) => Arc::make_mut(&mut self.cluster).register_broker(record),
            MetadataRecord::UnregisterBroker(record) => Arc::make_mut(&mut self.cluster).unregister_broker(record),
            MetadataRecord::BrokerRegistrationChange(record) => {
                Arc::make_mut(&mut self.cluster).change_registration(record)
            }
            MetadataRecord::FenceBroker(record) => {
                Arc::make_mut(&mut self.cluster).set_fenced(record.id, record.epoch, true)
            }
            MetadataRecord::UnfenceBroker(record) => {
                Arc::make_mut(&mut self.cluster).set_fenced(record.id, record.epoch, false)
            }
            MetadataRecord::RegisterController(record) => Arc::make_mut(&mut self.cluster).register_controller(record),
            MetadataRecord::UnregisterController(record) => {
                Arc::make_mut(&mut self.cluster).unregister_controller(record)
            }
            MetadataRecord::Topic(record) => Arc::make_mut(&mut self.topics).create(record),
            MetadataRecord::Partition(record) => Arc::make_mut(&mut self.topics).set_partition(record),
            MetadataRecord::PartitionChange(record) => Arc::make_mut(&mut self.topics).change_partition(record),
            MetadataRecord::ClearElr(record) => Arc::make_mut(&mut self.topics).clear_elr(record),
            MetadataRecord::RemoveTopic(record) => {
                let name = Arc::make_mut(&mut self.topics).remove(record)?;
                Arc::make_mut(&mut self.configs).remove_topic(&name);
                Ok(())
            }
            MetadataRecord::Config(record) => Arc::make_mut(&mut self.configs).set(record),
            MetadataRecord::FeatureLevel(record) => Arc::make_mut(&mut self.features).set(record),
            MetadataRecord::ClientQuota(record) => {
                Arc::make_mut(&mut self.client_quotas).set(record);
                Ok(())
            }
            MetadataRecord::ProducerIds(record) => self.set_next_producer_id(record.next_producer_id),
            MetadataRecord::AccessControlEntry(_)
            | MetadataRecord::RemoveAccessControlEntry(_)
            | MetadataRecord::UserScramCredential(_)
            | MetadataRecord::RemoveUserScramCredential(_)
            | MetadataRecord::DelegationToken(_)
            | MetadataRecord::RemoveDelegationToken(_) => Arc::make_mut(&mut self.security).replay(record),
            // The log may hold the state of a migration from ZooKeeper that ended before version 4; it says nothing now.
            MetadataRecord::NoOp(_) | MetadataRecord::ZkMigrationState(_) => Ok(()),
            MetadataRecord::BeginTransaction(_)
            | MetadataRecord::EndTransaction(_)
            | MetadataRecord::AbortTransaction(_) => Ok(()),
        }
    }

    fn set_next_producer_id(&mut self, next: i64) -> Result<(), ReplayError> {
        match self.next_producer_id {
            Some(current) if next <= current => Err(ReplayError::ProducerId { next, current }),
            _ if next < 0 => Err(ReplayError::ProducerId { next, current: 0 }),
            _ => {
                self.next_producer_id = Some(next);
                Ok(())
            }
        }
    }

    /// Whether nothing has been replayed into it but no-ops.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let position = Image {
            end_offset: self.end_offset,
            epoch: self.epoch,
            last_timestamp: self.last_timestamp,
            ..Image::default()
        };
        *self == position
    }
}

/// Ids of the wire as ids of the field.
pub(crate) fn broker_ids(ids: &[i32]) -> Result<Vec<BrokerId>, ReplayError> {
    ids.iter().map(|id| broker_id(*id)).collect()
}

pub(crate) fn broker_id(id: i32) -> Result<BrokerId, ReplayError> {
    BrokerId::from_wire(id).ok_or(ReplayError::BrokerId(id))
}

/// The reverse of [`broker_ids`].
pub(crate) fn wire_ids(ids: &[BrokerId]) -> Vec<i32> {
    ids.iter().map(|id| id.get()).collect()
}
