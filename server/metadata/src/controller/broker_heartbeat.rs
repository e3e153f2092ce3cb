//! BrokerHeartbeat: a broker is alive, and says where it wants to go; the controller says where it is (KIP-631).
//!
//! ```text
//!            caught up, WantFence=false             WantShutDown, leads something
//!  fenced ───────────────────────────────▶ unfenced ─────────────────────────────▶ in controlled shutdown
//!     ▲                                        │                                              │
//!     └──── WantFence, or session over ────────┘        leads nothing, all others know it     │
//!     └───────────────────────────────────────────────────────────── may stop, fenced ────────┘
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use model::{BrokerId, DirectoryId, Monotonic, Offset};
use protocol::internal_records::metadata::MetadataRecord;
use protocol::messages::broker_heartbeat_request::BrokerHeartbeatRequest;
use protocol::messages::broker_heartbeat_response::BrokerHeartbeatResponse;

use super::broker_fencing::registration_change;
use super::{Controller, OpContext, Outcome, Refusal};
use crate::MetadataVersion;
use crate::image::{BrokerEpoch, BrokerRegistration};

/// Who was heard of when. Lost with the process: the next controller gives everyone a whole session.
#[derive(Clone, Debug, Default)]
pub struct BrokerHeartbeats {
    session_timeout: Duration,
    brokers: BTreeMap<BrokerId, Heartbeat>,
}

#[derive(Clone, Copy, Debug)]
struct Heartbeat {
    epoch: BrokerEpoch,
    last_contact: Monotonic,
    /// How far the broker has applied the metadata log.
    metadata_offset: Option<Offset>,
    /// The log's end when its controlled shutdown was decided: others must pass it before it may go.
    shutdown_offset: Option<Offset>,
}

impl BrokerHeartbeats {
    pub(super) fn new(session_timeout: Duration) -> Self {
        BrokerHeartbeats {
            session_timeout,
            brokers: BTreeMap::new(),
        }
    }

    pub(super) fn register(&mut self, id: BrokerId, epoch: BrokerEpoch, now: Monotonic) {
        let heartbeat = Heartbeat {
            epoch,
            last_contact: now,
            metadata_offset: None,
            shutdown_offset: None,
        };
        self.brokers.insert(id, heartbeat);
    }

    /// Whether that registration was heard of within the session timeout.
    #[must_use]
    pub fn has_session(&self, id: BrokerId, epoch: BrokerEpoch, now: Monotonic) -> bool {
        let heartbeat = self.brokers.get(&id).filter(|heartbeat| heartbeat.epoch == epoch);
        heartbeat.is_some_and(|heartbeat| now.since(heartbeat.last_contact) < self.session_timeout)
    }

    fn touch(&mut self, broker: &BrokerRegistration, offset: Option<Offset>, now: Monotonic) -> &mut Heartbeat {
        let heartbeat = self.brokers.entry(broker.id).or_insert(Heartbeat {
            epoch: broker.epoch,
            last_contact: now,
            metadata_offset: None,
            shutdown_offset: None,
        });
        heartbeat.last_contact = now;
        heartbeat.metadata_offset = offset.or(heartbeat.metadata_offset);
        heartbeat
    }
}

/// Where a heartbeat leads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Stay,
    Unfence,
    Fence,
    BeginShutdown,
    /// It may stop now.
    Stop,
}

impl Controller {
    /// # Errors
    /// If the broker is not registered under that epoch.
    pub fn broker_heartbeat(
        &mut self,
        request: &BrokerHeartbeatRequest,
        context: &OpContext<'_>,
    ) -> Result<Outcome<BrokerHeartbeatResponse>, Refusal> {
        let broker = self.registered(request.broker_id, request.broker_epoch)?.clone();
        // The registration is the record at the epoch's offset or just behind it, in the same batch.
        let caught_up = request.current_metadata_offset >= broker.epoch.get();
        let step = match self.next_step(&broker, request, caught_up) {
            // First what has failed leaves the registration: with the next heartbeat it is known what the broker can lead.
            Step::Unfence
                if broker
                    .directories
                    .iter()
                    .any(|id| request.offline_log_dirs.contains(id)) =>
            {
                Step::Stay
            }
            step => step,
        };
        let offset = Offset::from_wire(request.current_metadata_offset);
        let log_end = self.image().end_offset;
        let heartbeat = self.heartbeats.touch(&broker, offset, context.now);
        if step == Step::BeginShutdown {
            heartbeat.shutdown_offset = Some(log_end);
        }
        let mut records = match step {
            Step::Stay => Vec::new(),
            Step::Unfence => self.unfencing_records(&broker),
            Step::BeginShutdown => self.controlled_shutdown_records(&broker),
            Step::Fence | Step::Stop if broker.fenced => Vec::new(),
            Step::Fence | Step::Stop => self.fencing_records(&broker),
        };
        self.directory_records(&broker, request, &mut records);
        let is_fenced = match step {
            Step::Stay => broker.fenced,
            Step::Unfence | Step::BeginShutdown => false,
            Step::Fence | Step::Stop => true,
        };
        Ok(Outcome {
            records,
            response: BrokerHeartbeatResponse {
                is_caught_up: caught_up,
                is_fenced,
                should_shut_down: step == Step::Stop,
                ..BrokerHeartbeatResponse::default()
            },
        })
    }

    fn next_step(&self, broker: &BrokerRegistration, request: &BrokerHeartbeatRequest, caught_up: bool) -> Step {
        if broker.fenced {
            return match (request.want_shut_down, request.want_fence) {
                (true, _) => Step::Stop,
                (false, false) if caught_up => Step::Unfence,
                (false, _) => Step::Stay,
            };
        }
        if broker.in_controlled_shutdown {
            let others_know = self.all_active_passed(broker.id);
            return if others_know && !self.leads_something(broker.id) {
                Step::Stop
            } else {
                Step::Stay
            };
        }
        match (request.want_fence, request.want_shut_down) {
            (true, true) => Step::Stop,
            (true, false) => Step::Fence,
            (false, true) if self.leads_something(broker.id) => Step::BeginShutdown,
            (false, true) => Step::Stop,
            (false, false) => Step::Stay,
        }
    }

    /// Whether all other active brokers have applied what the controlled shutdown of `broker` decided.
    fn all_active_passed(&self, broker: BrokerId) -> bool {
        let heartbeats = &self.heartbeats.brokers;
        let Some(shutdown_offset) = heartbeats.get(&broker).and_then(|heartbeat| heartbeat.shutdown_offset) else {
            return true;
        };
        let cluster = &self.image().cluster;
        let others = heartbeats
            .iter()
            .filter(|(id, _)| **id != broker && cluster.is_active(**id));
        others
            .into_iter()
            .all(|(_, heartbeat)| heartbeat.metadata_offset >= Some(shutdown_offset))
    }

    /// Directories that went offline leave the registration, and what lies in them loses this broker as its leader; those
    /// that take nothing new are noted.
    fn directory_records(
        &self,
        broker: &BrokerRegistration,
        request: &BrokerHeartbeatRequest,
        records: &mut Vec<MetadataRecord>,
    ) {
        let online = |directory: &DirectoryId| !request.offline_log_dirs.contains(directory);
        let remaining: Vec<DirectoryId> = broker.directories.iter().copied().filter(online).collect();
        if remaining.len() < broker.directories.len() {
            let failed = broker.directories.iter().copied().filter(|id| !online(id)).collect();
            records.extend(self.directory_failure_records(broker.id, &failed));
        }
        if remaining.len() < broker.directories.len() && !remaining.is_empty() {
            records.push(registration_change(broker, |change| change.log_dirs = remaining));
        }
        let version = self.image().features.metadata_version();
        if let Some(cordoned) = &request.cordoned_log_dirs
            && version.is_some_and(MetadataVersion::has_cordoned_directories)
        {
            let mut cordoned = cordoned.clone();
            cordoned.sort_unstable();
            if broker.cordoned_directories.as_ref() != Some(&cordoned) {
                records.push(registration_change(broker, |change| {
                    change.cordoned_log_dirs = Some(cordoned)
                }));
            }
        }
    }
}
