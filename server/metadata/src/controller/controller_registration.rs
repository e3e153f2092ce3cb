//! ControllerRegistration: a controller says where it listens and what it supports (KIP-919). The last word counts.

use model::ErrorCode;
use protocol::internal_records::metadata::{RegisterControllerRecord, register_controller_record};
use protocol::messages::controller_registration_request::ControllerRegistrationRequest;
use protocol::messages::controller_registration_response::ControllerRegistrationResponse;

use super::{Controller, Outcome, Refusal};

/// The level that brought registrations of controllers.
const NEEDS_METADATA_VERSION: i16 = 15;

impl Controller {
    /// # Errors
    /// If the metadata version is too old, or the id is negative.
    pub fn register_controller(
        &self,
        request: &ControllerRegistrationRequest,
    ) -> Result<Outcome<ControllerRegistrationResponse>, Refusal> {
        let version = self.image().features.metadata_version();
        if version.is_none_or(|version| version.level() < NEEDS_METADATA_VERSION) {
            let message = "The current MetadataVersion is too old to support controller registrations.";
            return Err(Refusal::new(ErrorCode::UnsupportedVersion, message));
        }
        if request.controller_id < 0 {
            let message = format!("controller id {} is negative", request.controller_id);
            return Err(Refusal::new(ErrorCode::InvalidRequest, message));
        }
        let end_points = request
            .listeners
            .iter()
            .map(|listener| register_controller_record::ControllerEndpoint {
                name: listener.name.clone(),
                host: listener.host.clone(),
                port: listener.port,
                security_protocol: listener.security_protocol,
                ..Default::default()
            });
        let features = request
            .features
            .iter()
            .map(|feature| register_controller_record::ControllerFeature {
                name: feature.name.clone(),
                min_supported_version: feature.min_supported_version,
                max_supported_version: feature.max_supported_version,
                ..Default::default()
            });
        let record = RegisterControllerRecord {
            controller_id: request.controller_id,
            incarnation_id: request.incarnation_id,
            zk_migration_ready: request.zk_migration_ready,
            end_points: end_points.collect(),
            features: features.collect(),
            ..RegisterControllerRecord::default()
        };
        Ok(Outcome {
            records: vec![record.into()],
            response: ControllerRegistrationResponse::default(),
        })
    }
}
