//! AlterPartition: the leader of a partition proposes who is in sync (KIP-497, KIP-841, KIP-903).
//!
//! A proposal counts against one partition epoch, so that none is taken twice or after the state has moved on.

use std::collections::BTreeSet;

use model::{BrokerId, ErrorCode, PartitionIndex};
use protocol::internal_records::metadata::PartitionChangeRecord;
use protocol::messages::alter_partition_request::{self as request, AlterPartitionRequest};
use protocol::messages::alter_partition_response::{self as response, AlterPartitionResponse};

use super::leader_election::PartitionChange;
use super::{Controller, Outcome, Refusal};
use crate::config_keys::BrokerConfigs;
use crate::image::{LeaderRecoveryState, PartitionImage, TopicImage, wire_ids};

impl Controller {
    /// # Errors
    /// If the broker is not registered under that epoch. What is wrong with single partitions is in the response.
    pub fn alter_partition(
        &self,
        request: &AlterPartitionRequest,
        version: i16,
    ) -> Result<Outcome<AlterPartitionResponse>, Refusal> {
        let broker = self.registered(request.broker_id, request.broker_epoch)?.id;
        let mut outcome = Outcome::of(AlterPartitionResponse::default());
        let layers = self.own_layers();
        for topic in &request.topics {
            let known = self.image().topics.by_id(topic.topic_id);
            let partitions = topic.partitions.iter().map(|proposal| {
                let decided = match known {
                    None => Err(ErrorCode::UnknownTopicId),
                    Some(known) => self.alter_one((broker, version), known, proposal, &layers),
                };
                let (error_code, partition) = match decided {
                    Err(code) => (code, PartitionImage::default()),
                    Ok((next, record)) => {
                        let moved = next.leader != Some(broker);
                        outcome.records.extend(record.map(Into::into));
                        (
                            if moved {
                                ErrorCode::NewLeaderElected
                            } else {
                                ErrorCode::None
                            },
                            next,
                        )
                    }
                };
                answer(proposal.partition_index, error_code, &partition)
            });
            let partitions = partitions.collect();
            outcome.response.topics.push(response::TopicData {
                topic_id: topic.topic_id,
                partitions,
                ..Default::default()
            });
        }
        Ok(outcome)
    }

    /// The partition after the change, and the record of it; without one it is as proposed already.
    fn alter_one(
        &self,
        (broker, version): (BrokerId, i16),
        topic: &TopicImage,
        proposal: &request::PartitionData,
        layers: &BrokerConfigs,
    ) -> Result<(PartitionImage, Option<PartitionChangeRecord>), ErrorCode> {
        let index = PartitionIndex::from_wire(proposal.partition_index);
        let partition = index.and_then(|index| topic.partitions.get(&index));
        let (Some(index), Some(partition)) = (index, partition) else {
            return Err(ErrorCode::UnknownTopicOrPartition);
        };
        check_epochs(broker, partition, proposal)?;
        let in_sync = self.proposed_in_sync(partition, proposal, version)?;
        let recovery =
            LeaderRecoveryState::from_wire(proposal.leader_recovery_state).ok_or(ErrorCode::InvalidRequest)?;
        let recovering = recovery == LeaderRecoveryState::Recovering;
        let goes_back = recovering && partition.leader_recovery_state == LeaderRecoveryState::Recovered;
        if goes_back || (recovering && in_sync.len() > 1) {
            return Err(ErrorCode::InvalidRequest);
        }
        let change = PartitionChange {
            partition,
            topic_id: topic.id,
            index,
            in_sync,
            unclean: &BTreeSet::new(),
            recovery,
            settings: self.election_settings(topic, layers),
        };
        match change.build(&|replica| self.image().cluster.is_active(replica)) {
            None => Ok((PartitionImage::clone(partition), None)),
            Some(record) => {
                let next = partition
                    .changed_by(&record)
                    .map_err(|_| ErrorCode::UnknownServerError)?;
                Ok((next, Some(record)))
            }
        }
    }

    /// The replicas proposed, if all of them may be in sync.
    fn proposed_in_sync(
        &self,
        partition: &PartitionImage,
        proposal: &request::PartitionData,
        version: i16,
    ) -> Result<Vec<BrokerId>, ErrorCode> {
        let proposed: Vec<(i32, i64)> = if version >= 3 {
            let states = proposal.new_isr_with_epochs.iter();
            states.map(|state| (state.broker_id, state.broker_epoch)).collect()
        } else {
            proposal.new_isr.iter().map(|id| (*id, -1)).collect()
        };
        let ids: Option<Vec<BrokerId>> = proposed.iter().map(|(id, _)| BrokerId::from_wire(*id)).collect();
        let ids = ids.ok_or(ErrorCode::InvalidRequest)?;
        let distinct: BTreeSet<BrokerId> = ids.iter().copied().collect();
        let are_replicas = distinct.iter().all(|id| partition.replicas.contains(id));
        let has_leader = partition.leader.is_some_and(|leader| distinct.contains(&leader));
        if distinct.len() != ids.len() || !are_replicas || !has_leader {
            return Err(ErrorCode::InvalidRequest);
        }
        let eligible = |(id, epoch): &(i32, i64)| {
            let broker = BrokerId::from_wire(*id).and_then(|id| self.image().cluster.broker(id));
            broker.is_some_and(|broker| broker.is_active() && (*epoch == -1 || *epoch == broker.epoch.get()))
        };
        if proposed.iter().all(eligible) {
            Ok(ids)
        } else {
            Err(ErrorCode::IneligibleReplica)
        }
    }
}

/// Epochs ahead of ours mean that another controller has decided since.
fn check_epochs(
    broker: BrokerId,
    partition: &PartitionImage,
    proposal: &request::PartitionData,
) -> Result<(), ErrorCode> {
    let (leader_epoch, partition_epoch) = (partition.leader_epoch.get(), partition.partition_epoch.get());
    if proposal.leader_epoch > leader_epoch || proposal.partition_epoch > partition_epoch {
        Err(ErrorCode::NotController)
    } else if proposal.leader_epoch < leader_epoch {
        Err(ErrorCode::FencedLeaderEpoch)
    } else if partition.leader != Some(broker) {
        Err(ErrorCode::InvalidRequest)
    } else if proposal.partition_epoch < partition_epoch {
        Err(ErrorCode::InvalidUpdateVersion)
    } else {
        Ok(())
    }
}

fn answer(partition_index: i32, error_code: ErrorCode, partition: &PartitionImage) -> response::PartitionData {
    let data = response::PartitionData {
        partition_index,
        error_code: error_code.code(),
        ..Default::default()
    };
    if !matches!(error_code, ErrorCode::None | ErrorCode::NewLeaderElected) {
        return data;
    }
    response::PartitionData {
        leader_id: partition.leader.map_or(-1, BrokerId::get),
        leader_epoch: partition.leader_epoch.get(),
        isr: wire_ids(&partition.in_sync_replicas),
        leader_recovery_state: partition.leader_recovery_state.wire(),
        partition_epoch: partition.partition_epoch.get(),
        ..data
    }
}
