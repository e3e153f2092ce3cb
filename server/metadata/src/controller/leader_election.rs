//! Changes of one partition's state: who is in sync, who is eligible, who leads (KIP-101, KIP-704, KIP-966).
//!
//! A change starts from the partition as it is and from the in-sync replicas that it shall have, and works out the rest:
//! with eligible leader replicas on, who leaves the in-sync replicas below the minimum stays eligible; a leader is taken
//! from the in-sync, else the eligible, else the one last known leader (uncleanly), else with unclean elections allowed
//! from any live replica.

use std::collections::BTreeSet;

use model::{BrokerId, PartitionIndex, TopicId};
use protocol::internal_records::metadata::PartitionChangeRecord;

use super::Controller;
use crate::config_keys::BrokerConfigs;
use crate::image::{LeaderRecoveryState, PartitionImage, TopicImage, wire_ids};

/// What is known and wanted about one partition's change.
pub(super) struct PartitionChange<'a> {
    pub(super) partition: &'a PartitionImage,
    pub(super) topic_id: TopicId,
    pub(super) index: PartitionIndex,
    /// The in-sync replicas wanted.
    pub(super) in_sync: Vec<BrokerId>,
    /// Replicas that came back without having stopped cleanly: they may have lost records.
    pub(super) unclean: &'a BTreeSet<BrokerId>,
    pub(super) recovery: LeaderRecoveryState,
    pub(super) settings: ElectionSettings,
}

/// What configuration says about elections in a topic.
#[derive(Clone, Copy, Debug)]
pub(super) struct ElectionSettings {
    pub(super) eligible_leader_replicas: bool,
    pub(super) min_in_sync_replicas: usize,
    pub(super) unclean_allowed: bool,
}

/// Who was chosen.
struct Elected {
    leader: Option<BrokerId>,
    unclean: bool,
}

impl PartitionChange<'_> {
    /// The record of the change; `None` if nothing changes. `acceptable` says whether a replica could lead now.
    pub(super) fn build(mut self, acceptable: &dyn Fn(BrokerId) -> bool) -> Option<PartitionChangeRecord> {
        let partition = self.partition;
        let mut record = PartitionChangeRecord {
            partition_id: self.index.get(),
            topic_id: self.topic_id,
            ..PartitionChangeRecord::default()
        };
        let mut eligible = self.eligible();
        let elected = self.elect(&eligible, acceptable);
        if elected.leader != partition.leader {
            record.leader = elected.leader.map_or(-1, BrokerId::get);
            if let Some(leader) = elected.leader {
                if elected.unclean {
                    self.in_sync = vec![leader];
                    self.recovery = LeaderRecoveryState::Recovering;
                    eligible.clear();
                } else if !self.in_sync.contains(&leader) {
                    self.in_sync = vec![leader];
                    eligible.retain(|replica| *replica != leader);
                }
            }
        }
        // Without eligible leader replicas the last in-sync replica stays: it alone is known to hold everything.
        if (!self.in_sync.is_empty() || self.settings.eligible_leader_replicas)
            && self.in_sync != partition.in_sync_replicas
        {
            record.isr = Some(wire_ids(&self.in_sync));
        }
        if eligible != partition.eligible_leader_replicas {
            record.eligible_leader_replicas = Some(wire_ids(&eligible));
        }
        record.last_known_elr = self.last_known_leaders(&record);
        if self.recovery != partition.leader_recovery_state {
            record.leader_recovery_state = self.recovery.wire();
        }
        let empty = PartitionChangeRecord {
            partition_id: record.partition_id,
            topic_id: record.topic_id,
            ..PartitionChangeRecord::default()
        };
        (record != empty).then_some(record)
    }

    /// Who holds everything that was committed without being in sync.
    fn eligible(&self) -> Vec<BrokerId> {
        let partition = self.partition;
        let enough = self.settings.min_in_sync_replicas.min(partition.replicas.len());
        if !self.settings.eligible_leader_replicas {
            return partition.eligible_leader_replicas.clone();
        }
        if self.in_sync.len() >= enough {
            return Vec::new();
        }
        let before = partition
            .eligible_leader_replicas
            .iter()
            .chain(&partition.in_sync_replicas);
        let stays = |replica: &&BrokerId| !self.in_sync.contains(replica) && !self.unclean.contains(replica);
        let eligible: BTreeSet<BrokerId> = before.filter(stays).copied().collect();
        let mut eligible: Vec<BrokerId> = eligible.into_iter().collect();
        if same_members(&eligible, &partition.eligible_leader_replicas) {
            eligible.clone_from(&partition.eligible_leader_replicas);
        }
        eligible
    }

    fn elect(&self, eligible: &[BrokerId], acceptable: &dyn Fn(BrokerId) -> bool) -> Elected {
        let partition = self.partition;
        let can_lead = |replica: BrokerId| {
            let holds_all = self.in_sync.contains(&replica)
                || (self.settings.eligible_leader_replicas && eligible.contains(&replica));
            holds_all && acceptable(replica)
        };
        let current = partition.leader.filter(|leader| can_lead(*leader));
        if let Some(leader) = current.or_else(|| partition.replicas.iter().copied().find(|id| can_lead(*id))) {
            return Elected {
                leader: Some(leader),
                unclean: false,
            };
        }
        let last_known = self.last_known_alone(eligible).filter(|leader| acceptable(*leader));
        let any = || partition.replicas.iter().copied().find(|id| acceptable(*id));
        let leader = last_known.or_else(|| if self.settings.unclean_allowed { any() } else { None });
        Elected { leader, unclean: true }
    }

    /// The last known leader, when nobody is left who is known to hold everything.
    fn last_known_alone(&self, eligible: &[BrokerId]) -> Option<BrokerId> {
        match self.partition.last_known_leaders.as_slice() {
            [only] if self.settings.eligible_leader_replicas && eligible.is_empty() && self.in_sync.is_empty() => {
                Some(*only)
            }
            _ => None,
        }
    }

    /// Noted when the in-sync replicas become empty, and forgotten with the next leader.
    fn last_known_leaders(&self, record: &PartitionChangeRecord) -> Option<Vec<i32>> {
        if !self.settings.eligible_leader_replicas {
            return None;
        }
        let partition = self.partition;
        let becomes_empty = record.isr.as_ref().is_some_and(Vec::is_empty);
        let known = partition.last_known_leaders.as_slice();
        if becomes_empty && (known.len() != 1 || known.first().copied() != partition.leader) {
            return Some(partition.leader.iter().map(|leader| leader.get()).collect());
        }
        let keeps_leader = partition.leader.is_some() && record.leader != -1;
        ((record.leader >= 0 || keeps_leader) && !known.is_empty()).then(Vec::new)
    }
}

fn same_members(left: &[BrokerId], right: &[BrokerId]) -> bool {
    let set = |ids: &[BrokerId]| ids.iter().copied().collect::<BTreeSet<_>>();
    set(left) == set(right)
}

impl Controller {
    pub(super) fn election_settings(&self, topic: &TopicImage, layers: &BrokerConfigs) -> ElectionSettings {
        let value = |key| self.topic_value(topic, layers, key);
        let minimum = value("min.insync.replicas").and_then(|text| text.trim().parse().ok());
        let unclean = value("unclean.leader.election.enable");
        ElectionSettings {
            eligible_leader_replicas: self.image().features.has_eligible_leader_replicas(),
            min_in_sync_replicas: minimum.unwrap_or(1),
            unclean_allowed: unclean.is_some_and(|text| text.trim().eq_ignore_ascii_case("true")),
        }
    }

    /// Whether what a broker has of the partition lies in a directory of its that works.
    fn has_online_replica(&self, replica: BrokerId, partition: &PartitionImage) -> bool {
        let directory = partition.directory_of(replica);
        self.image().cluster.has_online_directory(replica, directory)
    }

    /// The change that gives a partition as it is about to be a leader, if one can be had.
    pub(super) fn election(
        &self,
        topic: &TopicImage,
        index: PartitionIndex,
        partition: &PartitionImage,
    ) -> Option<PartitionChangeRecord> {
        let change = PartitionChange {
            partition,
            topic_id: topic.id,
            index,
            in_sync: partition.in_sync_replicas.clone(),
            unclean: &BTreeSet::new(),
            recovery: partition.leader_recovery_state,
            settings: self.election_settings(topic, &self.own_layers()),
        };
        change.build(&|replica| self.image().cluster.is_active(replica) && self.has_online_replica(replica, partition))
    }

    /// Changes to the partitions that `concerned` picks, so that they can do without `leaving` and with `arriving`.
    pub(super) fn partition_changes(
        &self,
        concerned: &dyn Fn(&PartitionImage) -> bool,
        leaving: Option<BrokerId>,
        arriving: Option<BrokerId>,
        unclean: &BTreeSet<BrokerId>,
    ) -> Vec<PartitionChangeRecord> {
        self.partition_changes_at(&|_, _, partition| concerned(partition), leaving, arriving, unclean)
    }

    /// As [`Controller::partition_changes`], where the partition's place tells whether it is concerned.
    pub(super) fn partition_changes_at(
        &self,
        concerned: &dyn Fn(TopicId, PartitionIndex, &PartitionImage) -> bool,
        leaving: Option<BrokerId>,
        arriving: Option<BrokerId>,
        unclean: &BTreeSet<BrokerId>,
    ) -> Vec<PartitionChangeRecord> {
        let image = self.image();
        let acceptable = |replica: BrokerId, partition: &PartitionImage| {
            Some(replica) != leaving
                && !unclean.contains(&replica)
                && (Some(replica) == arriving || image.cluster.is_active(replica))
                && self.has_online_replica(replica, partition)
        };
        let stays = |replica: &BrokerId| Some(*replica) != leaving && !unclean.contains(replica);
        let mut changes = Vec::new();
        let layers = self.own_layers();
        for topic in image.topics.iter() {
            let partitions = topic.partitions.iter();
            let mut concerned = partitions
                .filter(|(index, partition)| concerned(topic.id, **index, partition))
                .peekable();
            if concerned.peek().is_none() {
                continue;
            }
            let settings = self.election_settings(topic, &layers);
            for (index, partition) in concerned {
                let change = PartitionChange {
                    partition,
                    topic_id: topic.id,
                    index: *index,
                    in_sync: partition.in_sync_replicas.iter().copied().filter(stays).collect(),
                    unclean,
                    recovery: partition.leader_recovery_state,
                    settings,
                };
                changes.extend(change.build(&|replica| acceptable(replica, partition)));
            }
        }
        changes
    }
}
