//! IncrementalAlterConfigs: dynamic configuration of topics, brokers, groups and client metrics (KIP-339).
//!
//! Each resource is changed as a whole or not at all. Lists can be appended to and taken from. While eligible leader
//! replicas are on, the cluster's `min.insync.replicas` stays set and no single broker has its own (KIP-966).

use model::ErrorCode;
use protocol::Text;
use protocol::internal_records::metadata::{ClearElrRecord, ConfigRecord, MetadataRecord};
use protocol::messages::incremental_alter_configs_request::{AlterConfigsResource, IncrementalAlterConfigsRequest};
use protocol::messages::incremental_alter_configs_response::{
    AlterConfigsResourceResponse, IncrementalAlterConfigsResponse,
};

use super::{Controller, Outcome, Refusal, check_batch};
use crate::config_keys::{Change, Operation, Target, alter};
use crate::image::{ConfigResource, ConfigResourceType};

const MIN_IN_SYNC_REPLICAS: &str = "min.insync.replicas";
/// The log's strings are 32-bit, but Kafka keeps values within its 16-bit ones.
const VALUE_BYTES_MAX: usize = 32_767;

impl Controller {
    /// # Errors
    /// If the request asks for too much at once. What is wrong with single resources is in the response.
    pub fn incremental_alter_configs(
        &self,
        request: &IncrementalAlterConfigsRequest,
    ) -> Result<Outcome<IncrementalAlterConfigsResponse>, Refusal> {
        let mut outcome = Outcome::of(IncrementalAlterConfigsResponse::default());
        for resource in &request.resources {
            let same = |other: &&AlterConfigsResource| {
                (other.resource_type, &other.resource_name) == (resource.resource_type, &resource.resource_name)
            };
            let decided = if request.resources.iter().filter(same).count() > 1 {
                Err(Refusal::new(
                    ErrorCode::InvalidRequest,
                    "Each resource must appear at most once.",
                ))
            } else {
                self.alter_resource(resource)
            };
            let refusal = match decided {
                Ok(records) => {
                    outcome.records.extend(records);
                    Refusal::bare(ErrorCode::None)
                }
                Err(refusal) => refusal,
            };
            outcome.response.responses.push(AlterConfigsResourceResponse {
                error_code: refusal.code.code(),
                error_message: refusal.message.map(Into::into),
                resource_type: resource.resource_type,
                resource_name: resource.resource_name.clone(),
                ..AlterConfigsResourceResponse::default()
            });
        }
        check_batch(&outcome.records)?;
        if request.validate_only {
            outcome.records.clear();
        }
        Ok(outcome)
    }

    fn alter_resource(&self, request: &AlterConfigsResource) -> Result<Vec<MetadataRecord>, Refusal> {
        let resource = self.resource(request)?;
        let mut changes = Vec::with_capacity(request.configs.len());
        for config in &request.configs {
            let Some(operation) = Operation::from_code(config.config_operation) else {
                let message = format!("config operation {} is not known", config.config_operation);
                return Err(Refusal::new(ErrorCode::InvalidRequest, message));
            };
            changes.push(Change {
                name: &config.name,
                operation,
                value: config.value.as_deref(),
            });
        }
        let (target, layers) = match (resource.kind, resource.name.is_empty()) {
            (ConfigResourceType::Topic, _) => (Target::Topic, self.own_layers()),
            (ConfigResourceType::Broker, true) => (Target::BrokerDefaults, self.own_layers()),
            (ConfigResourceType::Broker, false) => (Target::Broker, self.broker_layers(&resource.name)),
            (ConfigResourceType::ClientMetrics, _) => (Target::ClientMetrics, self.own_layers()),
            (ConfigResourceType::Group, _) => (Target::Group, self.own_layers()),
        };
        let altered = target
            .check_name(&resource.name)
            .and_then(|()| alter(target, &self.configs_of(&resource), &changes, &layers));
        let altered = altered.map_err(|error| Refusal::new(error.code(), error.to_string()))?;
        let mut records = Vec::with_capacity(altered.len());
        for (name, value) in altered {
            if value.as_ref().is_some_and(|value| value.len() > VALUE_BYTES_MAX) {
                let message = "The configuration value cannot be added because it exceeds the maximum value size of \
                               32767 bytes.";
                return Err(Refusal::new(ErrorCode::InvalidConfig, message));
            }
            self.check_eligible_leader_replicas(&resource, &name, value.is_some())?;
            records.push(config_record(&resource, name, value));
        }
        if self.image().features.has_eligible_leader_replicas() {
            records.extend(clear_eligible(&resource, &records));
        }
        Ok(records)
    }

    fn resource(&self, request: &AlterConfigsResource) -> Result<ConfigResource, Refusal> {
        let invalid = |message: String| Err(Refusal::new(ErrorCode::InvalidRequest, message));
        let Some(kind) = ConfigResourceType::from_wire(request.resource_type) else {
            return invalid(format!("Unknown resource type {}.", request.resource_type));
        };
        let name = &request.resource_name;
        match kind {
            ConfigResourceType::Topic if name.is_empty() => {
                return invalid("Default topic resources are not allowed.".to_owned());
            }
            ConfigResourceType::Topic if self.image().topics.by_name(name).is_none() => {
                let message = format!("The topic '{name}' does not exist.");
                return Err(Refusal::new(ErrorCode::UnknownTopicOrPartition, message));
            }
            ConfigResourceType::Broker if !name.is_empty() => {
                let id = name.parse().ok().and_then(model::BrokerId::from_wire);
                let Some(id) = id else {
                    return invalid(format!("Node id must be an integer, but it is: {name}"));
                };
                let cluster = &self.image().cluster;
                if cluster.broker(id).is_none() && !cluster.controllers.contains_key(&id) {
                    let message = format!("No node with id {id} found.");
                    return Err(Refusal::new(ErrorCode::BrokerIdNotRegistered, message));
                }
            }
            _ => {}
        }
        Ok(ConfigResource {
            kind,
            name: name.clone(),
        })
    }

    fn check_eligible_leader_replicas(
        &self,
        resource: &ConfigResource,
        key: &str,
        is_set: bool,
    ) -> Result<(), Refusal> {
        let concerned = resource.kind == ConfigResourceType::Broker
            && key == MIN_IN_SYNC_REPLICAS
            && self.image().features.has_eligible_leader_replicas();
        let message = match (resource.name.is_empty(), is_set) {
            _ if !concerned => return Ok(()),
            (true, true) => return Ok(()),
            (true, false) => "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.",
            (false, _) => "Broker-level min.insync.replicas cannot be altered while ELR is enabled.",
        };
        Err(Refusal::new(ErrorCode::InvalidConfig, message))
    }
}

fn config_record(resource: &ConfigResource, name: String, value: Option<String>) -> MetadataRecord {
    ConfigRecord {
        resource_type: resource.kind.wire(),
        resource_name: resource.name.clone(),
        name: name.into(),
        value: value.map(Into::into),
        ..ConfigRecord::default()
    }
    .into()
}

/// Who was eligible under another minimum may not be: a changed minimum clears them, of one topic or of all.
fn clear_eligible(resource: &ConfigResource, records: &[MetadataRecord]) -> Option<MetadataRecord> {
    let changes_minimum = records.iter().any(|record| match record {
        MetadataRecord::Config(config) => &*config.name == MIN_IN_SYNC_REPLICAS,
        _ => false,
    });
    let topic_name = match resource.kind {
        ConfigResourceType::Topic => resource.name.clone(),
        ConfigResourceType::Broker => Text::new(),
        _ => return None,
    };
    changes_minimum.then(|| {
        ClearElrRecord {
            topic_name,
            ..ClearElrRecord::default()
        }
        .into()
    })
}
