//! Fencing: a broker that is not heard of, shuts down or comes back changes the state of its partitions.
//!
//! The order of records is Kafka's: a fenced broker's partitions move first, an unfenced one's registration changes first.

use std::collections::BTreeSet;

use model::{BrokerId, Monotonic};
use protocol::internal_records::metadata::{BrokerRegistrationChangeRecord, MetadataRecord, PartitionChangeRecord};

use super::{Controller, Outcome};
use crate::image::{BrokerRegistration, PartitionImage};

impl Controller {
    /// Fences one broker whose session has run out. The shell asks again until nobody is found.
    #[must_use]
    pub fn fence_stale_broker(&self, now: Monotonic) -> Option<Outcome<BrokerId>> {
        let brokers = self.image().cluster.brokers.values();
        let mut unfenced = brokers.filter(|broker| !broker.fenced);
        let stale = unfenced.find(|broker| !self.heartbeats.has_session(broker.id, broker.epoch, now))?;
        Some(Outcome {
            records: self.fencing_records(stale),
            response: stale.id,
        })
    }

    pub(super) fn fencing_records(&self, broker: &BrokerRegistration) -> Vec<MetadataRecord> {
        let mut records = in_records(self.changes_without(broker.id));
        records.push(registration_change(broker, |change| change.fenced = 1));
        records
    }

    pub(super) fn unfencing_records(&self, broker: &BrokerRegistration) -> Vec<MetadataRecord> {
        let mut records = vec![registration_change(broker, |change| change.fenced = -1)];
        let leaderless = |partition: &PartitionImage| partition.leader.is_none();
        records.extend(in_records(self.partition_changes(
            &leaderless,
            None,
            Some(broker.id),
            &BTreeSet::new(),
        )));
        records
    }

    pub(super) fn controlled_shutdown_records(&self, broker: &BrokerRegistration) -> Vec<MetadataRecord> {
        let mut records = vec![registration_change(broker, |change| change.in_controlled_shutdown = 1)];
        records.extend(in_records(self.changes_without(broker.id)));
        records
    }

    /// A new incarnation registers: the old one leaves all in-sync replicas, and after an unclean stop (KIP-966) also the
    /// eligible ones.
    pub(super) fn restart_records(&self, broker: BrokerId, clean: bool) -> Vec<MetadataRecord> {
        if clean {
            return in_records(self.changes_without(broker));
        }
        let unclean = BTreeSet::from([broker]);
        let concerned = |partition: &PartitionImage| {
            partition.in_sync_replicas.contains(&broker) || partition.eligible_leader_replicas.contains(&broker)
        };
        in_records(self.partition_changes(&concerned, None, None, &unclean))
    }

    fn changes_without(&self, broker: BrokerId) -> Vec<PartitionChangeRecord> {
        let concerned = |partition: &PartitionImage| partition.in_sync_replicas.contains(&broker);
        self.partition_changes(&concerned, Some(broker), None, &BTreeSet::new())
    }

    pub(super) fn leads_something(&self, broker: BrokerId) -> bool {
        let topics = &self.image().topics;
        let mut partitions = topics.iter().flat_map(|topic| topic.partitions.values());
        partitions.any(|partition| partition.leader == Some(broker))
    }
}

pub(super) fn registration_change(
    broker: &BrokerRegistration,
    set: impl FnOnce(&mut BrokerRegistrationChangeRecord),
) -> MetadataRecord {
    let mut change = BrokerRegistrationChangeRecord {
        broker_id: broker.id.get(),
        broker_epoch: broker.epoch.get(),
        ..BrokerRegistrationChangeRecord::default()
    };
    set(&mut change);
    change.into()
}

fn in_records(changes: Vec<PartitionChangeRecord>) -> Vec<MetadataRecord> {
    changes.into_iter().map(MetadataRecord::from).collect()
}
