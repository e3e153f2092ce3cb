//! BrokerRegistration: a broker process joins the cluster, fenced until it has caught up (KIP-631, KIP-858, KIP-966).
//!
//! Its epoch is the offset that the log writes next. The same incarnation asking again keeps epoch and fencing; another
//! one is refused as long as the first is heard of.

use std::collections::BTreeSet;

use model::{BrokerId, DirectoryId, ErrorCode};
use protocol::internal_records::metadata::{RegisterBrokerRecord, register_broker_record};
use protocol::messages::broker_registration_request::BrokerRegistrationRequest;
use protocol::messages::broker_registration_response::BrokerRegistrationResponse;

use super::{Controller, OpContext, Outcome, Refusal};
use crate::image::{BrokerRegistration, SupportedRange};

impl Controller {
    /// # Errors
    /// If the broker belongs to another cluster, its id is taken, or it cannot live up to the finalized features.
    pub fn register_broker(
        &self,
        request: &BrokerRegistrationRequest,
        context: &OpContext<'_>,
    ) -> Result<Outcome<BrokerRegistrationResponse>, Refusal> {
        if *request.cluster_id != *self.options.cluster_id {
            let message = format!(
                "Expected cluster ID {}, but got cluster ID {}",
                self.options.cluster_id, request.cluster_id
            );
            return Err(Refusal::new(ErrorCode::InconsistentClusterId, message));
        }
        let Some(id) = BrokerId::from_wire(request.broker_id) else {
            let message = format!("broker id {} is negative", request.broker_id);
            return Err(Refusal::new(ErrorCode::InvalidRequest, message));
        };
        let existing = self.image().cluster.broker(id);
        let same = existing.filter(|broker| broker.incarnation_id == request.incarnation_id);
        if let Some(existing) = existing
            && same.is_none()
            && !existing.in_controlled_shutdown
            && self.heartbeats.has_session(id, existing.epoch, context.now)
        {
            let message = "Another broker is registered with that broker id. If the broker was recently restarted this \
                           should self-resolve once the heartbeat manager expires the broker's session.";
            return Err(Refusal::new(ErrorCode::DuplicateBrokerRegistration, message));
        }
        if request.is_migrating_zk_broker {
            let message = "Controller does not support registering ZK brokers.";
            return Err(Refusal::new(ErrorCode::BrokerIdNotRegistered, message));
        }
        self.check_directories(id, &request.log_dirs)?;
        self.check_supports_features(&supported(request))?;
        let mut record = registration_record(request);
        let mut records = Vec::new();
        match same {
            Some(same) => {
                record.broker_epoch = same.epoch.get();
                record.fenced = same.fenced;
                record.in_controlled_shutdown = same.in_controlled_shutdown;
            }
            None => {
                record.broker_epoch = self.image().end_offset.get();
                if let Some(existing) = existing {
                    let clean = existing.epoch.get() == request.previous_broker_epoch;
                    records = self.restart_records(id, clean);
                }
            }
        }
        let broker_epoch = record.broker_epoch;
        records.push(record.into());
        Ok(Outcome {
            records,
            response: BrokerRegistrationResponse {
                broker_epoch,
                ..BrokerRegistrationResponse::default()
            },
        })
    }

    fn check_directories(&self, id: BrokerId, directories: &[DirectoryId]) -> Result<(), Refusal> {
        let refuse = |message: String| Err(Refusal::new(ErrorCode::InvalidRegistration, message));
        if directories.is_empty() {
            return refuse("No directories specified in request".to_owned());
        }
        if directories.iter().any(DirectoryId::is_reserved) {
            return refuse("Reserved directory ID in request".to_owned());
        }
        let set: BTreeSet<&DirectoryId> = directories.iter().collect();
        if set.len() != directories.len() {
            return refuse("Duplicate directory ID in request".to_owned());
        }
        let others = self.image().cluster.brokers.values().filter(|broker| broker.id != id);
        let shared = |broker: &BrokerRegistration| broker.directories.iter().copied().find(|id| set.contains(id));
        for other in others {
            if let Some(directory) = shared(other) {
                return refuse(format!(
                    "Broker {} is already registered with directory {directory}",
                    other.id
                ));
            }
        }
        Ok(())
    }
}

fn supported(request: &BrokerRegistrationRequest) -> Vec<SupportedRange> {
    let range = |feature: &protocol::messages::broker_registration_request::Feature| SupportedRange {
        feature: feature.name.clone(),
        least: feature.min_supported_version,
        greatest: feature.max_supported_version,
    };
    request.features.iter().map(range).collect()
}

fn registration_record(request: &BrokerRegistrationRequest) -> RegisterBrokerRecord {
    let end_points = request
        .listeners
        .iter()
        .map(|listener| register_broker_record::BrokerEndpoint {
            name: listener.name.clone(),
            host: listener.host.clone(),
            port: listener.port,
            security_protocol: listener.security_protocol,
            ..Default::default()
        });
    let features = request
        .features
        .iter()
        .map(|feature| register_broker_record::BrokerFeature {
            name: feature.name.clone(),
            min_supported_version: feature.min_supported_version,
            max_supported_version: feature.max_supported_version,
            ..Default::default()
        });
    RegisterBrokerRecord {
        broker_id: request.broker_id,
        incarnation_id: request.incarnation_id,
        end_points: end_points.collect(),
        features: features.collect(),
        rack: request.rack.clone(),
        log_dirs: request.log_dirs.clone(),
        ..RegisterBrokerRecord::default()
    }
}
