//! Client quotas by entity (KIP-546).

use std::collections::BTreeMap;

use protocol::Text;
use protocol::internal_records::metadata::ClientQuotaRecord;

/// Entity types and names, as `user` and `alice`; `None` is the type's default.
pub type QuotaEntity = BTreeMap<Text, Option<Text>>;

/// Quotas by entity and key; an entity without quotas is absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClientQuotasImage {
    quotas: BTreeMap<QuotaEntity, BTreeMap<Text, f64>>,
}

impl ClientQuotasImage {
    pub fn iter(&self) -> impl Iterator<Item = (&QuotaEntity, &BTreeMap<Text, f64>)> {
        self.quotas.iter()
    }

    #[must_use]
    pub fn of(&self, entity: &QuotaEntity) -> Option<&BTreeMap<Text, f64>> {
        self.quotas.get(entity)
    }

    pub(super) fn set(&mut self, record: &ClientQuotaRecord) {
        let entity = entity(record);
        if !record.remove {
            let quotas = self.quotas.entry(entity).or_default();
            quotas.insert(record.key.clone(), record.value);
        } else if let Some(quotas) = self.quotas.get_mut(&entity) {
            quotas.remove(&record.key);
            if quotas.is_empty() {
                self.quotas.remove(&entity);
            }
        }
    }
}

pub(crate) fn entity(record: &ClientQuotaRecord) -> QuotaEntity {
    let parts = record.entity.iter();
    parts
        .map(|part| (part.entity_type.clone(), part.entity_name.clone()))
        .collect()
}
