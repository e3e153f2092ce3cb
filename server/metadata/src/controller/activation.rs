//! What a controller writes first: the records that found the cluster, and the end of what its predecessor left undone.

use protocol::internal_records::metadata::{
    AbortTransactionRecord, BeginTransactionRecord, ConfigRecord, EndTransactionRecord, FeatureLevelRecord,
    MetadataRecord,
};

use super::{Controller, Outcome};
use crate::image::{ConfigResourceType, FeaturesImage};

/// The transaction that founds a cluster has this name in Kafka's logs too.
const BOOTSTRAP: &str = "Bootstrap records";
const MIN_IN_SYNC_REPLICAS: &str = "min.insync.replicas";

/// The feature records that formatting puts into the first checkpoint.
#[must_use]
pub fn bootstrap_records() -> Vec<MetadataRecord> {
    let record = |(name, feature_level): (&str, i16)| {
        MetadataRecord::from(FeatureLevelRecord {
            name: name.into(),
            feature_level,
            ..FeatureLevelRecord::default()
        })
    };
    FeaturesImage::INITIAL.into_iter().map(record).collect()
}

impl Controller {
    /// What to append on taking over; `bootstrap` are the data records of the checkpoint that formatting wrote.
    #[must_use]
    pub fn activate(&self, bootstrap: &[MetadataRecord]) -> Outcome<()> {
        let mut records = Vec::new();
        let mut is_empty = self.image().is_empty();
        if let Some(open) = self.replay.open_transaction() {
            is_empty |= open == BOOTSTRAP;
            records.push(
                AbortTransactionRecord {
                    reason: Some("Controller failover".into()),
                    ..AbortTransactionRecord::default()
                }
                .into(),
            );
        }
        if is_empty {
            records.extend(self.founding_records(bootstrap));
        }
        Outcome { records, response: () }
    }

    fn founding_records(&self, bootstrap: &[MetadataRecord]) -> Vec<MetadataRecord> {
        let begin = BeginTransactionRecord {
            name: Some(BOOTSTRAP.into()),
            ..BeginTransactionRecord::default()
        };
        let mut records = vec![MetadataRecord::from(begin)];
        records.extend(bootstrap.iter().cloned());
        let has_elr = bootstrap.iter().any(|record| match record {
            MetadataRecord::FeatureLevel(level) => {
                &*level.name == FeaturesImage::ELIGIBLE_LEADER_REPLICAS && level.feature_level > 0
            }
            _ => false,
        });
        if has_elr {
            let config = ConfigRecord {
                resource_type: ConfigResourceType::Broker.wire(),
                name: MIN_IN_SYNC_REPLICAS.into(),
                value: Some(self.options.min_in_sync_replicas.to_string().into()),
                ..ConfigRecord::default()
            };
            records.push(config.into());
        }
        records.push(EndTransactionRecord::default().into());
        records
    }
}
