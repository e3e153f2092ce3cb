//! An image as records, in the order in which Kafka 4.4.0 writes its snapshots.

use protocol::internal_records::metadata::{
    ClientQuotaRecord, ConfigRecord, FeatureLevelRecord, MetadataRecord, ProducerIdsRecord, TopicRecord,
    client_quota_record::EntityData,
};

use super::Image;
use crate::MetadataVersion;

impl Image {
    /// Records that build this image from an empty one.
    pub fn records(&self) -> impl Iterator<Item = MetadataRecord> + '_ {
        self.feature_records()
            .chain(self.cluster_records())
            .chain(self.topic_records())
            .chain(self.config_records())
            .chain(self.quota_records())
            .chain(self.producer_id_record())
            .chain(self.security_records())
    }

    /// `metadata.version` first: it says how to read the rest.
    fn feature_records(&self) -> impl Iterator<Item = MetadataRecord> + '_ {
        let record = |(name, feature_level): (&protocol::Text, i16)| {
            MetadataRecord::from(FeatureLevelRecord {
                name: name.clone(),
                feature_level,
                ..FeatureLevelRecord::default()
            })
        };
        let is_first = |feature: &(&protocol::Text, i16)| &**feature.0 == MetadataVersion::FEATURE;
        let first = self.features.iter().filter(is_first);
        let others = self.features.iter().filter(move |feature| !is_first(feature));
        first.chain(others).map(record)
    }

    fn cluster_records(&self) -> impl Iterator<Item = MetadataRecord> + '_ {
        let version = self.features.metadata_version();
        let has_cordoned = version.is_none_or(MetadataVersion::has_cordoned_directories);
        let brokers = self.cluster.brokers.values().map(move |broker| {
            let mut record = broker.to_record();
            // The image may have them from a time when the level was higher.
            record.cordoned_log_dirs.take_if(|_| !has_cordoned);
            record.into()
        });
        brokers.chain(
            self.cluster
                .controllers
                .values()
                .map(|controller| controller.to_record().into()),
        )
    }

    fn topic_records(&self) -> impl Iterator<Item = MetadataRecord> + '_ {
        self.topics.iter().flat_map(|topic| {
            let record = TopicRecord {
                name: topic.name.as_str().into(),
                topic_id: topic.id,
                ..TopicRecord::default()
            };
            let partitions = topic.partitions.iter();
            std::iter::once(record.into())
                .chain(partitions.map(|(index, partition)| partition.to_record(topic.id, *index).into()))
        })
    }

    fn config_records(&self) -> impl Iterator<Item = MetadataRecord> + '_ {
        self.configs.iter().flat_map(|(resource, values)| {
            values.iter().map(|(name, value)| {
                ConfigRecord {
                    resource_type: resource.kind.wire(),
                    resource_name: resource.name.clone(),
                    name: name.clone(),
                    value: Some(value.clone()),
                    ..ConfigRecord::default()
                }
                .into()
            })
        })
    }

    fn quota_records(&self) -> impl Iterator<Item = MetadataRecord> + '_ {
        self.client_quotas.iter().flat_map(|(entity, quotas)| {
            quotas.iter().map(|(key, value)| {
                let parts = entity.iter().map(|(entity_type, entity_name)| EntityData {
                    entity_type: entity_type.clone(),
                    entity_name: entity_name.clone(),
                    ..EntityData::default()
                });
                ClientQuotaRecord {
                    entity: parts.collect(),
                    key: key.clone(),
                    value: *value,
                    remove: false,
                    ..ClientQuotaRecord::default()
                }
                .into()
            })
        })
    }

    fn producer_id_record(&self) -> impl Iterator<Item = MetadataRecord> + '_ {
        self.next_producer_id.into_iter().map(|next_producer_id| {
            ProducerIdsRecord {
                broker_id: -1,
                broker_epoch: -1,
                next_producer_id,
                ..ProducerIdsRecord::default()
            }
            .into()
        })
    }

    fn security_records(&self) -> impl Iterator<Item = MetadataRecord> + '_ {
        let acls = self.security.acls.values().cloned().map(MetadataRecord::from);
        let credentials = self
            .security
            .scram_credentials
            .values()
            .cloned()
            .map(MetadataRecord::from);
        let tokens = self
            .security
            .delegation_tokens
            .values()
            .cloned()
            .map(MetadataRecord::from);
        acls.chain(credentials).chain(tokens)
    }
}
