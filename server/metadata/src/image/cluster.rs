//! Who has registered: brokers with their epochs and fencing, controllers with their listeners.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use model::{BrokerId, DirectoryId, Uuid};
use protocol::Text;
use protocol::internal_records::metadata::{
    BrokerRegistrationChangeRecord, RegisterBrokerRecord, RegisterControllerRecord, UnregisterBrokerRecord,
    UnregisterControllerRecord, register_broker_record, register_controller_record,
};

use super::{ReplayError, broker_id};

/// One registration of a broker: the offset that the log would write next when it came. It fences earlier ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BrokerEpoch(i64);

impl BrokerEpoch {
    /// `None` for the negative sentinels of the wire.
    #[must_use]
    pub const fn from_wire(value: i64) -> Option<Self> {
        if value < 0 { None } else { Some(BrokerEpoch(value)) }
    }

    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }
}

impl fmt::Display for BrokerEpoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for BrokerEpoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Where a node listens under one listener name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Endpoint {
    pub name: Text,
    pub host: Text,
    pub port: u16,
    /// 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL.
    pub security_protocol: i16,
}

/// The levels of one feature that a node supports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SupportedRange {
    pub feature: Text,
    pub least: i16,
    pub greatest: i16,
}

/// A broker as it registered, with what the controller has since decided about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BrokerRegistration {
    pub id: BrokerId,
    pub epoch: BrokerEpoch,
    /// Per process: a broker that restarts has another one.
    pub incarnation_id: Uuid,
    pub endpoints: Vec<Endpoint>,
    pub features: Vec<SupportedRange>,
    pub rack: Option<Text>,
    /// Fenced brokers lead nothing and are not shown to clients.
    pub fenced: bool,
    pub in_controlled_shutdown: bool,
    /// In ascending order.
    pub directories: Vec<DirectoryId>,
    /// `None` before the broker said it has caught up.
    pub cordoned_directories: Option<Vec<DirectoryId>>,
    is_migrating_zk_broker: bool,
}

impl BrokerRegistration {
    /// Whether it may lead and be in sync.
    #[must_use]
    pub fn is_active(&self) -> bool {
        !self.fenced && !self.in_controlled_shutdown
    }

    #[must_use]
    pub fn endpoint(&self, listener: &str) -> Option<&Endpoint> {
        self.endpoints.iter().find(|endpoint| &*endpoint.name == listener)
    }

    /// Where a new replica lies as far as the controller can tell: in the only directory, else unassigned.
    #[must_use]
    pub fn default_directory(&self) -> DirectoryId {
        match self.directories.as_slice() {
            [] => Uuid::ZERO,
            [only] => *only,
            _ => Uuid::ONE,
        }
    }

    /// Whether what lies in `directory` can be reached. Of what nobody has said yet it is taken to be so (KIP-858).
    #[must_use]
    pub fn has_online_directory(&self, directory: DirectoryId) -> bool {
        match directory {
            Uuid::ZERO | Uuid::ONE => true,
            id if id.is_reserved() => false,
            // Brokers of old name none.
            id => self.directories.is_empty() || self.directories.contains(&id),
        }
    }

    /// The record that registers it as it is now.
    #[must_use]
    pub fn to_record(&self) -> RegisterBrokerRecord {
        RegisterBrokerRecord {
            broker_id: self.id.get(),
            is_migrating_zk_broker: self.is_migrating_zk_broker,
            incarnation_id: self.incarnation_id,
            broker_epoch: self.epoch.get(),
            end_points: self.endpoints.iter().map(broker_endpoint).collect(),
            features: self.features.iter().map(broker_feature).collect(),
            rack: self.rack.clone(),
            fenced: self.fenced,
            in_controlled_shutdown: self.in_controlled_shutdown,
            log_dirs: self.directories.clone(),
            cordoned_log_dirs: self.cordoned_directories.clone(),
            ..RegisterBrokerRecord::default()
        }
    }
}

/// A controller as it registered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ControllerRegistration {
    pub id: BrokerId,
    pub incarnation_id: Uuid,
    pub endpoints: Vec<Endpoint>,
    pub features: Vec<SupportedRange>,
    zk_migration_ready: bool,
}

impl ControllerRegistration {
    /// The record that registers it as it is now.
    #[must_use]
    pub fn to_record(&self) -> RegisterControllerRecord {
        let endpoint = |endpoint: &Endpoint| register_controller_record::ControllerEndpoint {
            name: endpoint.name.clone(),
            host: endpoint.host.clone(),
            port: endpoint.port,
            security_protocol: endpoint.security_protocol,
            ..Default::default()
        };
        let feature = |range: &SupportedRange| register_controller_record::ControllerFeature {
            name: range.feature.clone(),
            min_supported_version: range.least,
            max_supported_version: range.greatest,
            ..Default::default()
        };
        RegisterControllerRecord {
            controller_id: self.id.get(),
            incarnation_id: self.incarnation_id,
            zk_migration_ready: self.zk_migration_ready,
            end_points: self.endpoints.iter().map(endpoint).collect(),
            features: self.features.iter().map(feature).collect(),
            ..RegisterControllerRecord::default()
        }
    }
}

fn broker_endpoint(endpoint: &Endpoint) -> register_broker_record::BrokerEndpoint {
    register_broker_record::BrokerEndpoint {
        name: endpoint.name.clone(),
        host: endpoint.host.clone(),
        port: endpoint.port,
        security_protocol: endpoint.security_protocol,
        ..Default::default()
    }
}

fn broker_feature(range: &SupportedRange) -> register_broker_record::BrokerFeature {
    register_broker_record::BrokerFeature {
        name: range.feature.clone(),
        min_supported_version: range.least,
        max_supported_version: range.greatest,
        ..Default::default()
    }
}

/// The nodes of the cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterImage {
    pub brokers: BTreeMap<BrokerId, Arc<BrokerRegistration>>,
    pub controllers: BTreeMap<BrokerId, Arc<ControllerRegistration>>,
}

impl ClusterImage {
    #[must_use]
    pub fn broker(&self, id: BrokerId) -> Option<&BrokerRegistration> {
        self.brokers.get(&id).map(Arc::as_ref)
    }

    /// Whether a broker is registered, unfenced and not shutting down.
    #[must_use]
    pub fn is_active(&self, id: BrokerId) -> bool {
        self.broker(id).is_some_and(BrokerRegistration::is_active)
    }

    /// Whether a broker is registered and has that directory.
    #[must_use]
    pub fn has_online_directory(&self, id: BrokerId, directory: DirectoryId) -> bool {
        self.broker(id)
            .is_some_and(|broker| broker.has_online_directory(directory))
    }

    pub(super) fn register_broker(&mut self, record: &RegisterBrokerRecord) -> Result<(), ReplayError> {
        let id = broker_id(record.broker_id)?;
        let epoch = record.broker_epoch;
        let registration = BrokerRegistration {
            id,
            epoch: BrokerEpoch::from_wire(epoch).ok_or(ReplayError::BrokerEpoch(epoch))?,
            incarnation_id: record.incarnation_id,
            endpoints: record
                .end_points
                .iter()
                .map(|endpoint| Endpoint {
                    name: endpoint.name.clone(),
                    host: endpoint.host.clone(),
                    port: endpoint.port,
                    security_protocol: endpoint.security_protocol,
                })
                .collect(),
            features: ranges(record.features.iter().map(|feature| {
                let levels = (feature.min_supported_version, feature.max_supported_version);
                (&feature.name, levels)
            })),
            rack: record.rack.clone(),
            fenced: record.fenced,
            in_controlled_shutdown: record.in_controlled_shutdown,
            directories: sorted(&record.log_dirs),
            cordoned_directories: record.cordoned_log_dirs.as_deref().map(sorted),
            is_migrating_zk_broker: record.is_migrating_zk_broker,
        };
        self.brokers.insert(id, Arc::new(registration));
        Ok(())
    }

    pub(super) fn unregister_broker(&mut self, record: &UnregisterBrokerRecord) -> Result<(), ReplayError> {
        let id = self.of_epoch(record.broker_id, record.broker_epoch)?.id;
        self.brokers.remove(&id);
        Ok(())
    }

    pub(super) fn set_fenced(&mut self, id: i32, epoch: i64, fenced: bool) -> Result<(), ReplayError> {
        self.of_epoch(id, epoch)?.fenced = fenced;
        Ok(())
    }

    pub(super) fn change_registration(&mut self, record: &BrokerRegistrationChangeRecord) -> Result<(), ReplayError> {
        let registration = self.of_epoch(record.broker_id, record.broker_epoch)?;
        match record.fenced {
            0 => {}
            -1 => registration.fenced = false,
            1 => registration.fenced = true,
            other => return Err(value("BrokerRegistrationChangeRecord.Fenced", other)),
        }
        match record.in_controlled_shutdown {
            0 => {}
            1 => registration.in_controlled_shutdown = true,
            other => return Err(value("BrokerRegistrationChangeRecord.InControlledShutdown", other)),
        }
        if !record.log_dirs.is_empty() {
            registration.directories = sorted(&record.log_dirs);
        }
        if let Some(cordoned) = &record.cordoned_log_dirs {
            registration.cordoned_directories = Some(sorted(cordoned));
        }
        Ok(())
    }

    fn of_epoch(&mut self, id: i32, epoch: i64) -> Result<&mut BrokerRegistration, ReplayError> {
        let broker = broker_id(id)?;
        self.brokers
            .get_mut(&broker)
            .map(Arc::make_mut)
            .filter(|registration| registration.epoch.get() == epoch)
            .ok_or(ReplayError::UnknownBroker { broker, epoch })
    }

    pub(super) fn register_controller(&mut self, record: &RegisterControllerRecord) -> Result<(), ReplayError> {
        let id = broker_id(record.controller_id)?;
        let registration = ControllerRegistration {
            id,
            incarnation_id: record.incarnation_id,
            endpoints: record
                .end_points
                .iter()
                .map(|endpoint| Endpoint {
                    name: endpoint.name.clone(),
                    host: endpoint.host.clone(),
                    port: endpoint.port,
                    security_protocol: endpoint.security_protocol,
                })
                .collect(),
            features: ranges(record.features.iter().map(|feature| {
                let levels = (feature.min_supported_version, feature.max_supported_version);
                (&feature.name, levels)
            })),
            zk_migration_ready: record.zk_migration_ready,
        };
        self.controllers.insert(id, Arc::new(registration));
        Ok(())
    }

    pub(super) fn unregister_controller(&mut self, record: &UnregisterControllerRecord) -> Result<(), ReplayError> {
        let id = broker_id(record.controller_id)?;
        match self.controllers.remove(&id) {
            Some(_) => Ok(()),
            None => Err(ReplayError::UnknownController(id)),
        }
    }
}

fn value(field: &'static str, value: i8) -> ReplayError {
    ReplayError::Value {
        field,
        value: value.into(),
    }
}

/// Ranges by feature: their order on the wire means nothing, and Kafka's differs from record to record.
fn ranges<'a>(features: impl Iterator<Item = (&'a Text, (i16, i16))>) -> Vec<SupportedRange> {
    let range = |(feature, (least, greatest)): (&Text, (i16, i16))| SupportedRange {
        feature: feature.clone(),
        least,
        greatest,
    };
    let mut ranges: Vec<SupportedRange> = features.map(range).collect();
    ranges.sort_unstable_by(|one, other| one.feature.cmp(&other.feature));
    ranges
}

fn sorted(directories: &[DirectoryId]) -> Vec<DirectoryId> {
    let mut directories = directories.to_vec();
    directories.sort_unstable();
    directories
}
