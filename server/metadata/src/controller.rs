//! The active controller: decides operations against the image, and hands out the records that make them so.
//!
//! One file an operation. Each decision is a method that returns an [`Outcome`]: the records, which the shell appends as
//! one batch and gives back to [`Controller::replay`], and the response, which may leave once they are committed. Only
//! the heartbeats of brokers are kept outside the image: they are worth nothing to the next controller.

use std::time::Duration;

use model::{BrokerId, ControllerEpoch, ErrorCode, Monotonic, Offset, Timestamp, Uuid};
use protocol::internal_records::metadata::MetadataRecord;

use crate::config_keys::Configs;
use crate::delta::{Delta, Replay};
use crate::image::{BrokerEpoch, BrokerRegistration, Image, ReplayError};
use crate::{MetadataVersion, RecordError, SealedRecord, seal};

mod activation;
mod broker_fencing;
mod broker_heartbeat;
mod broker_registration;
mod config_layers;
mod configs;
mod controller_registration;
mod directory_assignment;
mod features;
mod in_sync_changes;
mod leader_election;
mod partition_creation;
mod partition_reassignment;
mod producer_ids;
mod topic_creation;
mod topic_deletion;

pub use activation::bootstrap_records;
pub use broker_heartbeat::BrokerHeartbeats;
pub use producer_ids::PRODUCER_ID_BLOCK;

/// How many records one operation of a user may make, and how many one batch holds.
pub const RECORDS_PER_OPERATION_MAX: usize = 10_000;
/// How many partitions one request may create.
pub const PARTITIONS_PER_REQUEST_MAX: usize = 10_000;

/// Where unpredictable numbers come from.
pub trait Entropy {
    fn next_u64(&mut self) -> u64;

    /// A number below `bound`, which is not 0.
    fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap_or(u64::MAX);
        usize::try_from(self.next_u64() % bound).unwrap_or(0)
    }

    /// An id that nobody else has.
    fn uuid(&mut self) -> Uuid {
        loop {
            let (high, low) = (self.next_u64(), self.next_u64());
            // Version and variant bits as RFC 4122 wants them for random ids; they also keep it out of the reserved ones.
            let high = (high & 0xffff_ffff_ffff_0fff) | 0x4000;
            let low = (low & 0x3fff_ffff_ffff_ffff) | 0x8000_0000_0000_0000;
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(&high.to_be_bytes());
            bytes[8..].copy_from_slice(&low.to_be_bytes());
            if let Some(id) = Uuid::from_entropy([bytes]) {
                return id;
            }
        }
    }
}

/// What an operation may look at besides the state.
pub struct OpContext<'a> {
    pub now: Monotonic,
    pub entropy: &'a mut dyn Entropy,
}

/// A decision: what to append, as one batch, and what to answer once it is committed. Without records the answer holds
/// at once.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome<R> {
    pub records: Vec<MetadataRecord>,
    pub response: R,
}

impl<R> Outcome<R> {
    fn of(response: R) -> Self {
        Outcome {
            records: Vec::new(),
            response,
        }
    }
}

/// An operation, or one item of it, that is not done. Code and wording follow Kafka 4.4.0.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code:?}: {}", message.as_deref().unwrap_or("no details"))]
pub struct Refusal {
    pub code: ErrorCode,
    pub message: Option<String>,
}

impl Refusal {
    fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Refusal {
            code,
            message: Some(message.into()),
        }
    }

    fn bare(code: ErrorCode) -> Self {
        Refusal { code, message: None }
    }
}

/// What the configuration of the node gives the controller.
#[derive(Clone, Debug)]
pub struct ControllerOptions {
    pub cluster_id: String,
    pub node_id: BrokerId,
    /// `broker.session.timeout.ms`.
    pub session_timeout: Duration,
    /// `num.partitions`.
    pub default_partitions: i32,
    /// `default.replication.factor`.
    pub default_replication_factor: i16,
    /// `delete.topic.enable`.
    pub topic_deletion_enabled: bool,
    /// The static `min.insync.replicas`: the cluster's first value when eligible leader replicas are on.
    pub min_in_sync_replicas: i32,
    /// The node's properties: what stands where nothing is set dynamically.
    pub static_configs: Configs,
    /// The finalized level of `kraft.version`, which the quorum knows.
    pub kraft_version: i16,
    /// The broker under this id runs in the controller's own process: when the controller starts, that broker's earlier
    /// incarnation is gone for certain, and need not be waited for.
    pub local_broker: Option<BrokerId>,
}

impl Default for ControllerOptions {
    fn default() -> Self {
        ControllerOptions {
            cluster_id: String::new(),
            node_id: BrokerId::new(1),
            session_timeout: Duration::from_secs(9),
            default_partitions: 1,
            default_replication_factor: 1,
            topic_deletion_enabled: true,
            min_in_sync_replicas: 1,
            static_configs: Configs::new(),
            kraft_version: 1,
            local_broker: None,
        }
    }
}

/// The controller and the state it decides on.
pub struct Controller {
    options: ControllerOptions,
    replay: Replay,
    heartbeats: BrokerHeartbeats,
}

impl Controller {
    /// Takes over a log that has been replayed to its end. Brokers get a whole session from `now` on to be heard of.
    #[must_use]
    pub fn new(options: ControllerOptions, replay: Replay, now: Monotonic) -> Self {
        let mut heartbeats = BrokerHeartbeats::new(options.session_timeout);
        let brokers = replay.image().cluster.brokers.values();
        for broker in brokers.filter(|broker| Some(broker.id) != options.local_broker) {
            heartbeats.register(broker.id, broker.epoch, now);
        }
        Controller {
            options,
            replay,
            heartbeats,
        }
    }

    /// The state that decisions are made on: everything appended, committed or not.
    #[must_use]
    pub fn image(&self) -> &Image {
        self.replay.image()
    }

    #[must_use]
    pub fn options(&self) -> &ControllerOptions {
        &self.options
    }

    /// Checks and writes the records of a decision, for the level in force when it was made.
    ///
    /// # Errors
    /// If a record would not be read as it was meant: then nothing of the decision may be appended.
    pub fn seal(&self, records: Vec<MetadataRecord>) -> Result<Vec<SealedRecord>, RecordError> {
        let version = self.metadata_version_of(&records);
        records.into_iter().map(|record| seal(record, version)).collect()
    }

    /// The level in force, or in the batch that founds the cluster the one it sets.
    fn metadata_version_of(&self, records: &[MetadataRecord]) -> MetadataVersion {
        let in_batch = records.iter().find_map(|record| match record {
            MetadataRecord::FeatureLevel(level) if &*level.name == MetadataVersion::FEATURE => {
                MetadataVersion::from_level(level.feature_level)
            }
            _ => None,
        });
        let in_force = self.image().features.metadata_version();
        in_force.or(in_batch).unwrap_or(MetadataVersion::LATEST)
    }

    /// Takes in the records of a batch with which the log ends, or is about to end, at `end_offset`.
    ///
    /// # Errors
    /// If a record does not fit. The state is of no use then but for [`Controller::restore`].
    pub fn replay(
        &mut self,
        records: &[SealedRecord],
        end_offset: Offset,
        epoch: ControllerEpoch,
        timestamp: Timestamp,
        now: Monotonic,
    ) -> Result<(), ReplayError> {
        for sealed in records {
            self.replay.record(&sealed.record)?;
            if let MetadataRecord::RegisterBroker(record) = &sealed.record
                && let (Some(id), Some(epoch)) = (
                    BrokerId::from_wire(record.broker_id),
                    BrokerEpoch::from_wire(record.broker_epoch),
                )
            {
                self.heartbeats.register(id, epoch, now);
            }
        }
        self.replay.batch_ended(end_offset, epoch, timestamp);
        Ok(())
    }

    /// The state as it is, to go back to if an append fails. Cheap.
    #[must_use]
    pub fn checkpoint(&self) -> Replay {
        self.replay.clone()
    }

    /// Goes back to a state taken before.
    pub fn restore(&mut self, checkpoint: Replay) {
        self.replay = checkpoint;
    }

    /// A batch of the quorum's own is in the log.
    pub fn control_batch(&mut self, end_offset: Offset, epoch: ControllerEpoch, timestamp: Timestamp) {
        self.replay.batch_ended(end_offset, epoch, timestamp);
    }

    /// What changed since the last call, for the brokers.
    pub fn take_delta(&mut self) -> Option<(Delta, Image)> {
        self.replay.take()
    }

    /// The broker under that id, if `epoch` is its registration's.
    fn registered(&self, id: i32, epoch: i64) -> Result<&BrokerRegistration, Refusal> {
        let broker = BrokerId::from_wire(id).and_then(|id| self.image().cluster.broker(id));
        let Some(broker) = broker else {
            let message = format!("No broker registration found for broker id {id}");
            return Err(Refusal::new(ErrorCode::StaleBrokerEpoch, message));
        };
        if broker.epoch.get() != epoch {
            let message = format!("Expected broker epoch {}, but got broker epoch {epoch}", broker.epoch);
            return Err(Refusal::new(ErrorCode::StaleBrokerEpoch, message));
        }
        Ok(broker)
    }
}

/// Refuses what would not fit into one batch.
fn check_batch(records: &[MetadataRecord]) -> Result<(), Refusal> {
    if records.len() > RECORDS_PER_OPERATION_MAX {
        let message = "Unable to perform excessively large batch operation.";
        return Err(Refusal::new(ErrorCode::PolicyViolation, message));
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests;
