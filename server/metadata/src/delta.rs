//! From one image to the next: replaying records, and telling what changed.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use model::{BrokerId, ControllerEpoch, Offset, PartitionIndex, Timestamp, TopicId, TopicName};
use protocol::internal_records::metadata::MetadataRecord;

use crate::image::{ConfigResource, ConfigResourceType, Image, ReplayError};

/// What became different between two images. Nothing in it says how: that is in the images.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delta {
    pub features: bool,
    pub brokers: BTreeSet<BrokerId>,
    pub controllers: BTreeSet<BrokerId>,
    pub topics: BTreeMap<TopicId, TopicDelta>,
    pub configs: BTreeSet<ConfigResource>,
    pub producer_ids: bool,
    pub client_quotas: bool,
    pub acls: bool,
    pub scram_credentials: bool,
    pub delegation_tokens: bool,
}

/// What became different in one topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicDelta {
    pub name: TopicName,
    pub created: bool,
    /// The topic is not in the new image. If it was created since the old one too, it is in neither.
    pub removed: bool,
    /// New or changed partitions; those of a removed topic are not listed.
    pub partitions: BTreeSet<PartitionIndex>,
}

impl Delta {
    /// Everything in `image`: the delta from an empty one.
    #[must_use]
    pub fn of_everything(image: &Image) -> Delta {
        let topics = image.topics.iter().map(|topic| {
            let delta = TopicDelta {
                name: topic.name.clone(),
                created: true,
                removed: false,
                partitions: topic.partitions.keys().copied().collect(),
            };
            (topic.id, delta)
        });
        Delta {
            features: true,
            brokers: image.cluster.brokers.keys().copied().collect(),
            controllers: image.cluster.controllers.keys().copied().collect(),
            topics: topics.collect(),
            configs: image.configs.iter().map(|(resource, _)| resource.clone()).collect(),
            producer_ids: image.next_producer_id.is_some(),
            client_quotas: true,
            acls: true,
            scram_credentials: true,
            delegation_tokens: true,
        }
    }

    /// Whether only the offset moved.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Delta::default()
    }

    /// Adds what changed after this: together they lead from before this one to behind the other.
    pub fn absorb(&mut self, later: Delta) {
        self.features |= later.features;
        self.brokers.extend(later.brokers);
        self.controllers.extend(later.controllers);
        for (id, topic) in later.topics {
            match self.topics.entry(id) {
                Entry::Vacant(entry) => {
                    entry.insert(topic);
                }
                Entry::Occupied(mut entry) => {
                    let known = entry.get_mut();
                    known.removed |= topic.removed;
                    known.partitions.extend(topic.partitions);
                    if known.removed {
                        known.partitions.clear();
                    }
                }
            }
        }
        self.configs.extend(later.configs);
        self.producer_ids |= later.producer_ids;
        self.client_quotas |= later.client_quotas;
        self.acls |= later.acls;
        self.scram_credentials |= later.scram_credentials;
        self.delegation_tokens |= later.delegation_tokens;
    }

    /// Notes what `record` is about to change in `image`.
    fn note(&mut self, record: &MetadataRecord, image: &Image) {
        match record {
            MetadataRecord::RegisterBroker(record) => self.note_broker(record.broker_id),
            MetadataRecord::UnregisterBroker(record) => self.note_broker(record.broker_id),
            MetadataRecord::BrokerRegistrationChange(record) => self.note_broker(record.broker_id),
            MetadataRecord::FenceBroker(record) => self.note_broker(record.id),
            MetadataRecord::UnfenceBroker(record) => self.note_broker(record.id),
            MetadataRecord::RegisterController(record) => {
                self.controllers.extend(BrokerId::from_wire(record.controller_id));
            }
            MetadataRecord::UnregisterController(record) => {
                self.controllers.extend(BrokerId::from_wire(record.controller_id));
            }
            MetadataRecord::Topic(record) => self.note_creation(record.topic_id, &record.name),
            MetadataRecord::Partition(record) => {
                self.note_partition(record.topic_id, record.partition_id, image);
            }
            MetadataRecord::PartitionChange(record) => {
                self.note_partition(record.topic_id, record.partition_id, image);
            }
            MetadataRecord::RemoveTopic(record) => self.note_removal(record.topic_id, image),
            MetadataRecord::ClearElr(record) => self.note_cleared_elr(&record.topic_name, image),
            MetadataRecord::Config(record) => {
                self.configs.extend(
                    ConfigResourceType::from_wire(record.resource_type).map(|kind| ConfigResource {
                        kind,
                        name: record.resource_name.clone(),
                    }),
                );
            }
            MetadataRecord::FeatureLevel(_) => self.features = true,
            MetadataRecord::ProducerIds(_) => self.producer_ids = true,
            MetadataRecord::ClientQuota(_) => self.client_quotas = true,
            MetadataRecord::AccessControlEntry(_) | MetadataRecord::RemoveAccessControlEntry(_) => self.acls = true,
            MetadataRecord::UserScramCredential(_) | MetadataRecord::RemoveUserScramCredential(_) => {
                self.scram_credentials = true;
            }
            MetadataRecord::DelegationToken(_) | MetadataRecord::RemoveDelegationToken(_) => {
                self.delegation_tokens = true;
            }
            MetadataRecord::NoOp(_)
            | MetadataRecord::ZkMigrationState(_)
            | MetadataRecord::BeginTransaction(_)
            | MetadataRecord::EndTransaction(_)
            | MetadataRecord::AbortTransaction(_) => {}
        }
    }

    fn note_broker(&mut self, id: i32) {
        self.brokers.extend(BrokerId::from_wire(id));
    }

    fn note_creation(&mut self, id: TopicId, name: &str) {
        if let Ok(name) = TopicName::new(name) {
            let delta = TopicDelta {
                name,
                created: true,
                removed: false,
                partitions: BTreeSet::new(),
            };
            self.topics.insert(id, delta);
        }
    }

    fn topic(&mut self, id: TopicId, image: &Image) -> Option<&mut TopicDelta> {
        let name = image.topics.by_id(id)?.name.clone();
        Some(self.topics.entry(id).or_insert(TopicDelta {
            name,
            created: false,
            removed: false,
            partitions: BTreeSet::new(),
        }))
    }

    fn note_partition(&mut self, id: TopicId, partition: i32, image: &Image) {
        if let Some(topic) = self.topic(id, image) {
            topic.partitions.extend(PartitionIndex::from_wire(partition));
        }
    }

    fn note_removal(&mut self, id: TopicId, image: &Image) {
        if let Some(topic) = self.topic(id, image) {
            topic.removed = true;
            topic.partitions.clear();
            let name = topic.name.clone();
            let resource = ConfigResource::topic(name.as_str());
            if !image.configs.of(&resource).is_empty() {
                self.configs.insert(resource);
            }
        }
    }

    fn note_cleared_elr(&mut self, name: &str, image: &Image) {
        for topic in image
            .topics
            .iter()
            .filter(|topic| name.is_empty() || topic.name.as_str() == name)
        {
            let changed = topic.partitions.iter().filter(|(_, partition)| {
                !partition.eligible_leader_replicas.is_empty() || !partition.last_known_leaders.is_empty()
            });
            let changed: Vec<PartitionIndex> = changed.map(|(index, _)| *index).collect();
            if !changed.is_empty()
                && let Some(delta) = self.topic(topic.id, image)
            {
                delta.partitions.extend(changed);
            }
        }
    }
}

/// Replays the log. Images come out between transactions only, so nobody sees half of one.
#[derive(Clone, Debug, Default)]
pub struct Replay {
    image: Image,
    delta: Delta,
    open: Option<OpenTransaction>,
}

/// What was before the transaction began.
#[derive(Clone, Debug)]
struct OpenTransaction {
    name: Option<String>,
    image: Image,
    delta: Delta,
}

impl Replay {
    /// Goes on from `image`, of which everything counts as changed.
    #[must_use]
    pub fn from_image(image: Image) -> Self {
        Replay {
            delta: Delta::of_everything(&image),
            image,
            open: None,
        }
    }

    /// The state after all records so far, those of an open transaction included.
    #[must_use]
    pub fn image(&self) -> &Image {
        &self.image
    }

    /// The state at the log's end without what an open transaction did: a controller that takes over aborts it.
    #[must_use]
    pub fn settled(&self) -> Image {
        let Some(open) = &self.open else {
            return self.image.clone();
        };
        Image {
            end_offset: self.image.end_offset,
            epoch: self.image.epoch,
            last_timestamp: self.image.last_timestamp,
            ..open.image.clone()
        }
    }

    /// The name of the transaction that is open, if one is.
    #[must_use]
    pub fn open_transaction(&self) -> Option<&str> {
        let open = self.open.as_ref()?;
        Some(open.name.as_deref().unwrap_or_default())
    }

    /// Takes in the next record.
    ///
    /// # Errors
    /// If it does not fit; the replay is then of no more use.
    pub fn record(&mut self, record: &MetadataRecord) -> Result<(), ReplayError> {
        match record {
            MetadataRecord::BeginTransaction(_) if self.open.is_some() => return Err(ReplayError::NestedTransaction),
            MetadataRecord::BeginTransaction(begin) => {
                self.open = Some(OpenTransaction {
                    name: begin.name.as_ref().map(|name| name.to_string()),
                    image: self.image.clone(),
                    delta: self.delta.clone(),
                });
            }
            MetadataRecord::EndTransaction(_) => {
                self.open.take().ok_or(ReplayError::NoTransaction)?;
            }
            MetadataRecord::AbortTransaction(_) => {
                let before = self.open.take().ok_or(ReplayError::NoTransaction)?;
                self.image = before.image;
                self.delta = before.delta;
            }
            _ => {
                self.delta.note(record, &self.image);
                self.image.replay(record)?;
            }
        }
        Ok(())
    }

    /// The batch that held the last records ends; control batches count too.
    pub fn batch_ended(&mut self, end_offset: Offset, epoch: ControllerEpoch, timestamp: Timestamp) {
        self.image.end_offset = end_offset;
        self.image.epoch = epoch;
        self.image.last_timestamp = timestamp;
    }

    /// What changed since the last call, and the image it led to; `None` while a transaction is open.
    pub fn take(&mut self) -> Option<(Delta, Image)> {
        if self.open.is_some() {
            return None;
        }
        Some((std::mem::take(&mut self.delta), self.image.clone()))
    }
}

#[cfg(test)]
mod tests;
