//! A controller whose decisions are appended and replayed at once, as the shell does it.

use model::PartitionIndex;
use protocol::Text;
use protocol::internal_records::metadata::{ConfigRecord, NoOpRecord};
use protocol::messages::broker_heartbeat_request::BrokerHeartbeatRequest;
use protocol::messages::broker_heartbeat_response::BrokerHeartbeatResponse;
use protocol::messages::broker_registration_request::{self, BrokerRegistrationRequest};
use protocol::messages::controller_registration_request::ControllerRegistrationRequest;
use protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig, CreateTopicsRequest};

use super::*;
use crate::config_keys::ServerProperties;
use crate::image::{ConfigResource, FeaturesImage, PartitionImage};

mod brokers;
mod configs;
mod golden;
mod in_sync;
mod partitions;
mod reassignment;
mod replaying;
mod topics;

/// SplitMix64.
pub(crate) struct Seeded(pub(crate) u64);

impl Entropy for Seeded {
    fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// The controller, its clock, its entropy, and everything it has appended.
struct Cluster {
    controller: Controller,
    now: Monotonic,
    entropy: Seeded,
    log: Vec<MetadataRecord>,
}

const CLUSTER_ID: &str = "BdapmVWEy080AAdoE0wltw";

impl Cluster {
    fn founded() -> Self {
        let options = ControllerOptions {
            cluster_id: CLUSTER_ID.to_owned(),
            static_configs: ServerProperties::single_node().load().unwrap().configs.static_values,
            ..ControllerOptions::default()
        };
        let mut replay = Replay::default();
        replay.batch_ended(Offset::new(3), ControllerEpoch::new(1), Timestamp::from_millis(1));
        let controller = Controller::new(options, replay, Monotonic::default());
        let mut cluster = Cluster {
            controller,
            now: Monotonic::default(),
            entropy: Seeded(1),
            log: Vec::new(),
        };
        let outcome = cluster.controller.activate(&bootstrap_records());
        cluster.append(outcome);
        cluster
    }

    /// With brokers 0 and up, unfenced.
    fn with_brokers(count: i32) -> Self {
        let mut cluster = Cluster::founded();
        for id in 0..count {
            cluster.join(id);
        }
        cluster
    }

    fn append<R>(&mut self, outcome: Outcome<R>) -> R {
        let sealed = self.controller.seal(outcome.records.clone()).unwrap();
        let count = i64::try_from(sealed.len()).unwrap();
        if count > 0 {
            let end = self.image().end_offset.plus(count);
            let at = Timestamp::from_millis(1);
            self.controller
                .replay(&sealed, end, ControllerEpoch::new(1), at, self.now)
                .unwrap();
        }
        self.log.extend(outcome.records);
        outcome.response
    }

    fn image(&self) -> &Image {
        self.controller.image()
    }

    fn op<R>(
        &mut self,
        decide: impl FnOnce(&mut Controller, &mut OpContext<'_>) -> Result<Outcome<R>, Refusal>,
    ) -> Result<R, Refusal> {
        let mut context = OpContext {
            now: self.now,
            entropy: &mut self.entropy,
        };
        let outcome = decide(&mut self.controller, &mut context)?;
        Ok(self.append(outcome))
    }

    fn pass(&mut self, millis: u64) {
        self.now = self.now.plus(Duration::from_millis(millis));
    }

    fn register(&mut self, request: &BrokerRegistrationRequest) -> Result<i64, Refusal> {
        let response = self.op(|controller, context| controller.register_broker(request, context))?;
        Ok(response.broker_epoch)
    }

    fn heartbeat(&mut self, request: &BrokerHeartbeatRequest) -> Result<BrokerHeartbeatResponse, Refusal> {
        self.op(|controller, context| controller.broker_heartbeat(request, context))
    }

    /// Registers a broker and lets it catch up.
    fn join(&mut self, id: i32) -> i64 {
        let epoch = self.register(&registration(id, 1)).unwrap();
        let response = self.heartbeat(&self.alive(id)).unwrap();
        assert!(!response.is_fenced);
        epoch
    }

    /// The heartbeat of a broker that has applied everything.
    fn alive(&self, id: i32) -> BrokerHeartbeatRequest {
        BrokerHeartbeatRequest {
            broker_id: id,
            broker_epoch: self.epoch_of(id),
            current_metadata_offset: self.image().end_offset.get() - 1,
            want_fence: false,
            ..BrokerHeartbeatRequest::default()
        }
    }

    fn epoch_of(&self, id: i32) -> i64 {
        self.image().cluster.broker(BrokerId::new(id)).unwrap().epoch.get()
    }

    fn create(&mut self, topics: Vec<CreatableTopic>) -> Vec<(ErrorCode, Option<String>)> {
        let request = CreateTopicsRequest {
            topics,
            ..CreateTopicsRequest::default()
        };
        let response = self
            .op(|controller, context| controller.create_topics(&request, context))
            .unwrap();
        let results = response.topics.into_iter();
        results
            .map(|topic| (code(topic.error_code), topic.error_message.map(|text| text.to_string())))
            .collect()
    }

    fn partition(&self, topic: &str, index: i32) -> &PartitionImage {
        self.image()
            .topics
            .partition(topic, PartitionIndex::new(index))
            .unwrap()
    }

    /// The state of a partition in one line: leader, in-sync, eligible, last known, epochs.
    fn state(&self, topic: &str, index: i32) -> String {
        let partition = self.partition(topic, index);
        format!(
            "leader {:?} isr {:?} elr {:?} last {:?} {:?} epochs {} {:?}",
            partition.leader,
            partition.in_sync_replicas,
            partition.eligible_leader_replicas,
            partition.last_known_leaders,
            partition.leader_recovery_state,
            partition.leader_epoch,
            partition.partition_epoch,
        )
    }
}

fn code(wire: i16) -> ErrorCode {
    ErrorCode::from_code(wire).unwrap()
}

fn registration(id: i32, incarnation: u8) -> BrokerRegistrationRequest {
    let features = FeaturesImage::SUPPORTED.iter();
    BrokerRegistrationRequest {
        broker_id: id,
        cluster_id: CLUSTER_ID.into(),
        incarnation_id: Uuid::from_bytes([incarnation; 16]),
        features: features
            .map(|(name, least, greatest)| broker_registration_request::Feature {
                name: (*name).into(),
                min_supported_version: *least,
                max_supported_version: *greatest,
                ..Default::default()
            })
            .collect(),
        log_dirs: vec![Uuid::from_bytes([u8::try_from(id).unwrap() + 100; 16])],
        ..BrokerRegistrationRequest::default()
    }
}

fn topic(name: &str, partitions: i32, replication_factor: i16) -> CreatableTopic {
    CreatableTopic {
        name: name.into(),
        num_partitions: partitions,
        replication_factor,
        ..CreatableTopic::default()
    }
}

fn with_configs(topic: CreatableTopic, configs: &[(&str, Option<&str>)]) -> CreatableTopic {
    let config = |(name, value): &(&str, Option<&str>)| CreatableTopicConfig {
        name: (*name).into(),
        value: value.map(Text::from),
        ..CreatableTopicConfig::default()
    };
    CreatableTopic {
        configs: configs.iter().map(config).collect(),
        ..topic
    }
}
