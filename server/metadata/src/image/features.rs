//! Finalized feature levels. `kraft.version` is not among them: it has control records of its own.

use std::collections::BTreeMap;

use protocol::Text;
use protocol::internal_records::metadata::FeatureLevelRecord;

use super::ReplayError;
use crate::MetadataVersion;

/// Levels by feature; a feature at level 0 is absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FeaturesImage {
    levels: BTreeMap<Text, i16>,
}

impl FeaturesImage {
    pub const ELIGIBLE_LEADER_REPLICAS: &str = "eligible.leader.replicas.version";
    pub const GROUP: &str = "group.version";
    pub const KRAFT: &str = "kraft.version";
    pub const SHARE: &str = "share.version";
    pub const STREAMS: &str = "streams.version";
    pub const TRANSACTION: &str = "transaction.version";

    /// What a node of this version supports: feature, least and greatest level.
    pub const SUPPORTED: [(&str, i16, i16); 7] = [
        (MetadataVersion::FEATURE, 7, 33),
        (Self::KRAFT, 0, 1),
        (Self::TRANSACTION, 0, 2),
        (Self::GROUP, 0, 1),
        (Self::ELIGIBLE_LEADER_REPLICAS, 0, 1),
        (Self::SHARE, 0, 2),
        (Self::STREAMS, 0, 1),
    ];

    /// The levels that a cluster formatted with [`MetadataVersion::LATEST`] begins with, in the order of their records.
    pub const INITIAL: [(&str, i16); 6] = [
        (MetadataVersion::FEATURE, 33),
        (Self::ELIGIBLE_LEADER_REPLICAS, 1),
        (Self::GROUP, 1),
        (Self::SHARE, 2),
        (Self::STREAMS, 1),
        (Self::TRANSACTION, 2),
    ];

    /// 0 where nothing is finalized.
    #[must_use]
    pub fn level(&self, feature: &str) -> i16 {
        self.levels.get(feature).copied().unwrap_or(0)
    }

    /// `None` before the first record of it.
    #[must_use]
    pub fn metadata_version(&self) -> Option<MetadataVersion> {
        MetadataVersion::from_level(self.level(MetadataVersion::FEATURE))
    }

    #[must_use]
    pub fn has_eligible_leader_replicas(&self) -> bool {
        self.level(Self::ELIGIBLE_LEADER_REPLICAS) > 0
    }

    /// Features in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&Text, i16)> {
        self.levels.iter().map(|(feature, level)| (feature, *level))
    }

    pub(super) fn set(&mut self, record: &FeatureLevelRecord) -> Result<(), ReplayError> {
        let level = record.feature_level;
        let known = Self::SUPPORTED.iter().find(|(feature, ..)| *feature == &*record.name);
        let in_range = known.is_some_and(|(_, least, greatest)| (*least..=*greatest).contains(&level));
        if level != 0 && !in_range {
            let name = record.name.to_string();
            return Err(ReplayError::FeatureLevel { name, level });
        }
        if level == 0 {
            self.levels.remove(&record.name);
        } else {
            self.levels.insert(record.name.clone(), level);
        }
        Ok(())
    }
}
