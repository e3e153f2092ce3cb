//! New partitions: their replicas by hand or by [`crate::placement`], and CreatePartitions (KIP-195).

use std::collections::BTreeSet;

use model::{BrokerId, DirectoryId, ErrorCode, PartitionIndex, TopicId};
use protocol::internal_records::metadata::{MetadataRecord, PartitionRecord};
use protocol::messages::create_partitions_request::{CreatePartitionsRequest, CreatePartitionsTopic};
use protocol::messages::create_partitions_response::{CreatePartitionsResponse, CreatePartitionsTopicResult};

use super::{Controller, Entropy, OpContext, Outcome, PARTITIONS_PER_REQUEST_MAX, Refusal, check_batch};
use crate::image::{PartitionImage, TopicImage, wire_ids};
use crate::placement::{UsableBroker, place};

impl Controller {
    /// # Errors
    /// If the request as a whole asks for too much. What is wrong with single topics is in the response.
    pub fn create_partitions(
        &self,
        request: &CreatePartitionsRequest,
        context: &mut OpContext<'_>,
    ) -> Result<Outcome<CreatePartitionsResponse>, Refusal> {
        self.check_additional(request)?;
        let mut outcome = Outcome::of(CreatePartitionsResponse::default());
        let mut seen = BTreeSet::new();
        for topic in &request.topics {
            let repeated = request.topics.iter().filter(|other| other.name == topic.name).count() > 1;
            if !seen.insert(&topic.name) {
                continue;
            }
            let decided = if repeated {
                Err(Refusal::new(ErrorCode::InvalidRequest, "Duplicate topic name."))
            } else {
                self.add_partitions(topic, context.entropy)
            };
            let refusal = match decided {
                Ok(records) => {
                    outcome.records.extend(records);
                    Refusal::bare(ErrorCode::None)
                }
                Err(refusal) => refusal,
            };
            outcome.response.results.push(CreatePartitionsTopicResult {
                name: topic.name.clone(),
                error_code: refusal.code.code(),
                error_message: refusal.message.map(Into::into),
                ..CreatePartitionsTopicResult::default()
            });
        }
        check_batch(&outcome.records)?;
        if request.validate_only {
            outcome.records.clear();
        }
        Ok(outcome)
    }

    fn check_additional(&self, request: &CreatePartitionsRequest) -> Result<(), Refusal> {
        let additional = request.topics.iter().map(|topic| {
            let known = self.image().topics.by_name(&topic.name);
            let wanted = usize::try_from(topic.count).unwrap_or(0);
            known.map_or(0, |known| wanted.saturating_sub(known.partitions.len()))
        });
        if additional.sum::<usize>() > PARTITIONS_PER_REQUEST_MAX {
            let message = "Excessively large number of additional partitions per request.";
            return Err(Refusal::new(ErrorCode::PolicyViolation, message));
        }
        Ok(())
    }

    fn add_partitions(
        &self,
        topic: &CreatePartitionsTopic,
        entropy: &mut dyn Entropy,
    ) -> Result<Vec<MetadataRecord>, Refusal> {
        let Some(known) = self.image().topics.by_name(&topic.name) else {
            return Err(Refusal::bare(ErrorCode::UnknownTopicOrPartition));
        };
        let current = known.partitions.len();
        let wanted = usize::try_from(topic.count).unwrap_or(0);
        if wanted == current {
            let message = format!("Topic already has {current} partition(s).");
            return Err(Refusal::new(ErrorCode::InvalidPartitions, message));
        }
        if wanted < current {
            let message = format!(
                "The topic {} currently has {current} partition(s); {} would not be an increase.",
                topic.name, topic.count
            );
            return Err(Refusal::new(ErrorCode::InvalidPartitions, message));
        }
        let additional = wanted - current;
        let replication_factor = replication_factor(known);
        let assignments = match &topic.assignments {
            None => self.placed(additional, replication_factor, entropy)?,
            Some(assignments) if assignments.len() != additional => {
                let message = format!(
                    "Attempted to add {additional} additional partition(s), but only {} assignment(s) were specified.",
                    assignments.len()
                );
                return Err(Refusal::new(ErrorCode::InvalidReplicaAssignment, message));
            }
            Some(assignments) => {
                let mut checked = Vec::with_capacity(assignments.len());
                for (at, assignment) in assignments.iter().enumerate() {
                    checked.push(self.by_hand(current + at, &assignment.broker_ids, Some(replication_factor))?);
                }
                checked
            }
        };
        self.partition_records(known.id, current, assignments)
    }

    /// Replicas that the user named, if they can be.
    pub(super) fn by_hand(
        &self,
        index: usize,
        broker_ids: &[i32],
        replication_factor: Option<usize>,
    ) -> Result<Vec<BrokerId>, Refusal> {
        let refuse = |message: String| Err(Refusal::new(ErrorCode::InvalidReplicaAssignment, message));
        if broker_ids.is_empty() {
            return refuse("The manual partition assignment includes an empty replica list.".to_owned());
        }
        let mut sorted = broker_ids.to_vec();
        sorted.sort_unstable();
        let mut previous = None;
        for id in sorted {
            let broker = BrokerId::from_wire(id).and_then(|id| self.image().cluster.broker(id));
            let Some(broker) = broker else {
                let what = format!("broker {id}, but no such broker is registered.");
                return refuse(format!("The manual partition assignment includes {what}"));
            };
            if is_cordoned(broker.directories.as_slice(), broker.cordoned_directories.as_deref()) {
                let what = format!("broker {id}, but all its log directories are cordoned.");
                return refuse(format!("The manual partition assignment includes {what}"));
            }
            if previous == Some(id) {
                return refuse(format!(
                    "The manual partition assignment includes the broker {id} more than once."
                ));
            }
            previous = Some(id);
        }
        if let Some(expected) = replication_factor.filter(|expected| *expected != broker_ids.len()) {
            return refuse(format!(
                "The manual partition assignment includes a partition with {} replica(s), but this is not consistent \
                 with previous partitions, which have {expected} replica(s).",
                broker_ids.len()
            ));
        }
        let replicas: Vec<BrokerId> = broker_ids.iter().filter_map(|id| BrokerId::from_wire(*id)).collect();
        if !replicas.iter().any(|id| self.image().cluster.is_active(*id)) {
            return refuse(format!(
                "All brokers specified in the manual partition assignment for partition {index} are fenced or in \
                 controlled shutdown."
            ));
        }
        Ok(replicas)
    }

    /// Replicas that the controller chooses.
    pub(super) fn placed(
        &self,
        count: usize,
        replication_factor: usize,
        entropy: &mut dyn Entropy,
    ) -> Result<Vec<Vec<BrokerId>>, Refusal> {
        let brokers = self.image().cluster.brokers.values().map(|broker| UsableBroker {
            id: broker.id,
            rack: broker.rack.clone(),
            fenced: broker.fenced,
            cordoned: is_cordoned(&broker.directories, broker.cordoned_directories.as_deref()),
        });
        let brokers: Vec<UsableBroker> = brokers.collect();
        let refuse = |reason: String| {
            let message = format!("Unable to replicate the partition {replication_factor} time(s): {reason}");
            Refusal::new(ErrorCode::InvalidReplicationFactor, message)
        };
        let placed = place(&brokers, count, replication_factor, entropy);
        let placed = placed.map_err(|error| refuse(error.to_string()))?;
        let can_lead = |replicas: &Vec<BrokerId>| replicas.iter().any(|id| self.image().cluster.is_active(*id));
        if placed.iter().all(can_lead) {
            Ok(placed)
        } else {
            Err(refuse(
                "All brokers are currently fenced or in controlled shutdown.".to_owned(),
            ))
        }
    }

    /// The records of partitions `first` and up, each led by its first active replica.
    pub(super) fn partition_records(
        &self,
        topic_id: TopicId,
        first: usize,
        assignments: Vec<Vec<BrokerId>>,
    ) -> Result<Vec<MetadataRecord>, Refusal> {
        let numbered = assignments.into_iter().enumerate();
        numbered
            .map(|(at, replicas)| {
                let index = i32::try_from(first + at).map_err(|_| {
                    let message = "Excessively large number of partitions per request.";
                    Refusal::new(ErrorCode::PolicyViolation, message)
                })?;
                Ok(self
                    .partition_record(topic_id, PartitionIndex::new(index), replicas)
                    .into())
            })
            .collect()
    }

    fn partition_record(&self, topic_id: TopicId, index: PartitionIndex, replicas: Vec<BrokerId>) -> PartitionRecord {
        let cluster = &self.image().cluster;
        let active: Vec<BrokerId> = replicas.iter().copied().filter(|id| cluster.is_active(*id)).collect();
        let directory = |id: &BrokerId| {
            cluster
                .broker(*id)
                .map_or(DirectoryId::ONE, |broker| broker.default_directory())
        };
        PartitionRecord {
            partition_id: index.get(),
            topic_id,
            directories: replicas.iter().map(directory).collect(),
            replicas: wire_ids(&replicas),
            leader: active.first().map_or(-1, |leader| leader.get()),
            isr: wire_ids(&active),
            leader_epoch: 0,
            partition_epoch: 0,
            ..PartitionRecord::default()
        }
    }
}

fn is_cordoned(directories: &[DirectoryId], cordoned: Option<&[DirectoryId]>) -> bool {
    let cordoned = cordoned.unwrap_or_default();
    !cordoned.is_empty() && directories.iter().all(|directory| cordoned.contains(directory))
}

/// That of partition 0, as Kafka has it.
fn replication_factor(topic: &TopicImage) -> usize {
    let first: Option<&PartitionImage> = topic.partitions.values().next().map(AsRef::as_ref);
    first.map_or(1, |partition| partition.replicas.len())
}
