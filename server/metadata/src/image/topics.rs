//! Topics and their partitions: who holds replicas, who is in sync, who leads.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use model::{BrokerId, DirectoryId, LeaderEpoch, PartitionIndex, TopicId, TopicName};
use protocol::internal_records::metadata::{
    ClearElrRecord, PartitionChangeRecord, PartitionRecord, RemoveTopicRecord, TopicRecord,
};

use super::{ReplayError, broker_ids, wire_ids};

/// Counts the changes of a partition's state; a change is proposed against one of these.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PartitionEpoch(i32);

impl PartitionEpoch {
    #[must_use]
    pub const fn get(self) -> i32 {
        self.0
    }
}

impl fmt::Debug for PartitionEpoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Whether the leader may have lost records that were committed (KIP-704).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LeaderRecoveryState {
    #[default]
    Recovered = 0,
    /// Elected uncleanly and not yet back to normal.
    Recovering = 1,
}

impl LeaderRecoveryState {
    /// `None` for a number that means nothing.
    #[must_use]
    pub const fn from_wire(value: i8) -> Option<Self> {
        match value {
            0 => Some(LeaderRecoveryState::Recovered),
            1 => Some(LeaderRecoveryState::Recovering),
            _ => None,
        }
    }

    #[must_use]
    pub const fn wire(self) -> i8 {
        self as i8
    }
}

/// The state of one partition. The first replica is the preferred leader.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PartitionImage {
    pub replicas: Vec<BrokerId>,
    /// Where each replica lies, in the order of `replicas`.
    pub directories: Vec<DirectoryId>,
    pub in_sync_replicas: Vec<BrokerId>,
    pub removing_replicas: Vec<BrokerId>,
    pub adding_replicas: Vec<BrokerId>,
    /// Out of sync, but they hold everything that was committed (KIP-966).
    pub eligible_leader_replicas: Vec<BrokerId>,
    /// Who led last, once nobody is left that is known to hold everything.
    pub last_known_leaders: Vec<BrokerId>,
    pub leader: Option<BrokerId>,
    pub leader_recovery_state: LeaderRecoveryState,
    pub leader_epoch: LeaderEpoch,
    pub partition_epoch: PartitionEpoch,
}

impl PartitionImage {
    fn from_record(record: &PartitionRecord) -> Result<Self, ReplayError> {
        let replicas = broker_ids(&record.replicas)?;
        let directories = match record.directories.as_slice() {
            // Records from before directories had ids.
            [] => vec![DirectoryId::ZERO; replicas.len()],
            directories => directories.to_vec(),
        };
        let partition = PartitionImage {
            replicas,
            directories,
            in_sync_replicas: broker_ids(&record.isr)?,
            removing_replicas: broker_ids(&record.removing_replicas)?,
            adding_replicas: broker_ids(&record.adding_replicas)?,
            eligible_leader_replicas: broker_ids(record.eligible_leader_replicas.as_deref().unwrap_or_default())?,
            last_known_leaders: broker_ids(record.last_known_elr.as_deref().unwrap_or_default())?,
            leader: leader(record.leader)?,
            leader_recovery_state: recovery_state(record.leader_recovery_state)?,
            leader_epoch: LeaderEpoch::from_wire(record.leader_epoch).ok_or(ReplayError::Value {
                field: "PartitionRecord.LeaderEpoch",
                value: record.leader_epoch.into(),
            })?,
            partition_epoch: PartitionEpoch(record.partition_epoch),
        };
        partition.check(record.topic_id, record.partition_id)
    }

    /// The record that sets it as it is now.
    #[must_use]
    pub fn to_record(&self, topic_id: TopicId, partition: PartitionIndex) -> PartitionRecord {
        let unless_empty = |ids: &[BrokerId]| (!ids.is_empty()).then(|| wire_ids(ids));
        PartitionRecord {
            partition_id: partition.get(),
            topic_id,
            replicas: wire_ids(&self.replicas),
            isr: wire_ids(&self.in_sync_replicas),
            removing_replicas: wire_ids(&self.removing_replicas),
            adding_replicas: wire_ids(&self.adding_replicas),
            leader: self.leader.map_or(-1, BrokerId::get),
            leader_recovery_state: self.leader_recovery_state.wire(),
            leader_epoch: self.leader_epoch.get(),
            partition_epoch: self.partition_epoch.get(),
            directories: self.directories.clone(),
            eligible_leader_replicas: unless_empty(&self.eligible_leader_replicas),
            last_known_elr: unless_empty(&self.last_known_leaders),
            ..PartitionRecord::default()
        }
    }

    /// The state after a change. Absent fields stay; the partition epoch always grows, the leader's iff one is named.
    pub(crate) fn changed_by(&self, record: &PartitionChangeRecord) -> Result<Self, ReplayError> {
        let mut next = self.clone();
        let set = |target: &mut Vec<BrokerId>, ids: &Option<Vec<i32>>| {
            if let Some(ids) = ids {
                *target = broker_ids(ids)?;
            }
            Ok::<(), ReplayError>(())
        };
        if let Some(replicas) = &record.replicas {
            next.replicas = broker_ids(replicas)?;
            next.directories = next
                .replicas
                .iter()
                .map(|replica| self.directory_of(*replica))
                .collect();
        }
        set(&mut next.in_sync_replicas, &record.isr)?;
        set(&mut next.removing_replicas, &record.removing_replicas)?;
        set(&mut next.adding_replicas, &record.adding_replicas)?;
        set(&mut next.eligible_leader_replicas, &record.eligible_leader_replicas)?;
        set(&mut next.last_known_leaders, &record.last_known_elr)?;
        if let Some(directories) = &record.directories {
            next.directories.clone_from(directories);
        }
        if record.leader != NO_LEADER_CHANGE {
            next.leader = leader(record.leader)?;
            next.leader_epoch = self.leader_epoch.next().ok_or(ReplayError::Value {
                field: "PartitionRecord.LeaderEpoch",
                value: self.leader_epoch.get().into(),
            })?;
        }
        if record.leader_recovery_state != -1 {
            next.leader_recovery_state = recovery_state(record.leader_recovery_state)?;
        }
        next.partition_epoch = PartitionEpoch(self.partition_epoch.0.wrapping_add(1));
        next.check(record.topic_id, record.partition_id)
    }

    /// Where a replica lies, as far as the controller knows: [`DirectoryId::ONE`] where nobody has said.
    #[must_use]
    pub fn directory_of(&self, replica: BrokerId) -> DirectoryId {
        let place = self.replicas.iter().position(|known| *known == replica);
        place
            .and_then(|place| self.directories.get(place).copied())
            .unwrap_or(DirectoryId::ONE)
    }

    fn check(self, topic_id: TopicId, partition: i32) -> Result<Self, ReplayError> {
        if self.directories.len() == self.replicas.len() {
            Ok(self)
        } else {
            Err(ReplayError::Directories {
                topic_id,
                partition,
                directories: self.directories.len(),
                replicas: self.replicas.len(),
            })
        }
    }
}

/// In a change: the leader stays, and with it its epoch.
pub(crate) const NO_LEADER_CHANGE: i32 = -2;

fn leader(id: i32) -> Result<Option<BrokerId>, ReplayError> {
    match id {
        -1 => Ok(None),
        id => BrokerId::from_wire(id).map(Some).ok_or(ReplayError::BrokerId(id)),
    }
}

fn recovery_state(value: i8) -> Result<LeaderRecoveryState, ReplayError> {
    LeaderRecoveryState::from_wire(value).ok_or(ReplayError::Value {
        field: "PartitionRecord.LeaderRecoveryState",
        value: value.into(),
    })
}

/// A topic and its partitions, numbered from 0 without gaps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TopicImage {
    pub name: TopicName,
    pub id: TopicId,
    pub partitions: BTreeMap<PartitionIndex, Arc<PartitionImage>>,
}

/// All topics, by name and by id.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TopicsImage {
    by_id: BTreeMap<TopicId, Arc<TopicImage>>,
    ids: BTreeMap<TopicName, TopicId>,
}

impl TopicsImage {
    #[must_use]
    pub fn by_id(&self, id: TopicId) -> Option<&Arc<TopicImage>> {
        self.by_id.get(&id)
    }

    #[must_use]
    pub fn by_name(&self, name: &str) -> Option<&Arc<TopicImage>> {
        self.by_id.get(self.ids.get(name)?)
    }

    #[must_use]
    pub fn partition(&self, name: &str, partition: PartitionIndex) -> Option<&Arc<PartitionImage>> {
        self.by_name(name)?.partitions.get(&partition)
    }

    /// In the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<TopicImage>> {
        self.ids.values().filter_map(|id| self.by_id.get(id))
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    pub(super) fn create(&mut self, record: &TopicRecord) -> Result<(), ReplayError> {
        let name = TopicName::new(&record.name).map_err(|_| ReplayError::TopicName(record.name.to_string()))?;
        let known = self.ids.get(&name).copied();
        if let Some(known) = known.or_else(|| self.by_id.contains_key(&record.topic_id).then_some(record.topic_id)) {
            return Err(ReplayError::TopicExists {
                name: name.to_string(),
                known,
                new: record.topic_id,
            });
        }
        self.ids.insert(name.clone(), record.topic_id);
        let topic = TopicImage {
            name,
            id: record.topic_id,
            partitions: BTreeMap::new(),
        };
        self.by_id.insert(record.topic_id, Arc::new(topic));
        Ok(())
    }

    pub(super) fn remove(&mut self, record: &RemoveTopicRecord) -> Result<TopicName, ReplayError> {
        let topic = self
            .by_id
            .remove(&record.topic_id)
            .ok_or(ReplayError::UnknownTopicId(record.topic_id))?;
        self.ids.remove(&topic.name);
        Ok(topic.name.clone())
    }

    pub(super) fn set_partition(&mut self, record: &PartitionRecord) -> Result<(), ReplayError> {
        let partition = PartitionImage::from_record(record)?;
        let index = PartitionIndex::from_wire(record.partition_id).ok_or(ReplayError::Value {
            field: "PartitionRecord.PartitionId",
            value: record.partition_id.into(),
        })?;
        let topic = self.topic_mut(record.topic_id)?;
        topic.partitions.insert(index, Arc::new(partition));
        Ok(())
    }

    pub(super) fn change_partition(&mut self, record: &PartitionChangeRecord) -> Result<(), ReplayError> {
        let unknown = ReplayError::UnknownPartition {
            topic_id: record.topic_id,
            partition: record.partition_id,
        };
        let Some(index) = PartitionIndex::from_wire(record.partition_id) else {
            return Err(unknown);
        };
        let topic = self.topic_mut(record.topic_id)?;
        let partition = topic.partitions.get_mut(&index).ok_or(unknown)?;
        *partition = Arc::new(partition.changed_by(record)?);
        Ok(())
    }

    /// Forgets eligible and last known leaders of one topic, or with an empty name of all.
    pub(super) fn clear_elr(&mut self, record: &ClearElrRecord) -> Result<(), ReplayError> {
        let ids: Vec<TopicId> = if record.topic_name.is_empty() {
            self.by_id.keys().copied().collect()
        } else {
            let id = self.ids.get(&*record.topic_name).copied();
            vec![id.ok_or_else(|| ReplayError::UnknownTopic(record.topic_name.to_string()))?]
        };
        for id in ids {
            let topic = self.topic_mut(id)?;
            for partition in topic.partitions.values_mut() {
                if partition.eligible_leader_replicas.is_empty() && partition.last_known_leaders.is_empty() {
                    continue;
                }
                let partition = Arc::make_mut(partition);
                partition.eligible_leader_replicas.clear();
                partition.last_known_leaders.clear();
                partition.partition_epoch = PartitionEpoch(partition.partition_epoch.0.wrapping_add(1));
            }
        }
        Ok(())
    }

    fn topic_mut(&mut self, id: TopicId) -> Result<&mut TopicImage, ReplayError> {
        self.by_id
            .get_mut(&id)
            .map(Arc::make_mut)
            .ok_or(ReplayError::UnknownTopicId(id))
    }
}
