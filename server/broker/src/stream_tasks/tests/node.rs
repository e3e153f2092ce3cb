//! A node in process: a broker with real logs, whose controller is the test itself, and a host of native plugins.

use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use client::{CallContext, Client, FetchLimits, ProduceRecord, Producer, ProducerOptions, Start};
use metadata::Replay;
use metadata::config_keys::{BrokerSettings, ServerProperties, Setting};
use model::record_batch::Record;
use model::{BrokerId, Offset, PartitionIndex, Timestamp, TopicId, TopicName, TopicPartition, Uuid};
use plugin::builtin::{Aggregate, JsonAggregate};
use plugin::deployment::{DEPLOYMENTS_TOPIC, ModuleRecord, PLUGINS_TOPIC, PluginsKey, encode_value};
use plugin::{
    Accumulated, Batch, CallError, Descriptor, Digest, Failure, Firing, Host, InstanceSettings, Module, ModuleError,
    ModuleInfo, Output, Pane, Partitioner, Serde, Trap, Validator, WindowAggregator, World,
};
use protocol::internal_records::metadata::register_broker_record::BrokerEndpoint;
use protocol::internal_records::metadata::{
    MetadataRecord, PartitionRecord, RegisterBrokerRecord, RemoveTopicRecord, TopicRecord,
};
use protocol::messages::allocate_producer_ids_response::AllocateProducerIdsResponse;
use protocol::{Request, Response};
use sha2::{Digest as _, Sha256};
use storage::log_directory::{self, MetaProperties};
use storage::{LogDirectory, RealDisk};

use crate::controller_client::{ControllerChannel, ControllerError, ControllerFuture};
use crate::node::BrokerParts;
use crate::partitions::{LogDirectories, LogDisk};
use crate::plugins::{Plugins, PluginsParts};
use crate::stream_tasks::changelog::Ids;
use crate::{Broker, ClientDoor, Clock, ControllerClient};

const NODE: i32 = 1;
const LOG_FOLDER: &str = "log";
const LOCKED_ATTEMPTS_MAX: usize = 2_000;
const DELETE_DELAY: Duration = Duration::from_secs(60);

const PRODUCER_IDS: i32 = 1_000;
/// No id is given out twice, also not by the controller of the next node over the same logs.
static NEXT_PRODUCER_ID: AtomicI64 = AtomicI64::new(0);

/// Gives out producer ids and nothing else.
struct Controller;

impl ControllerChannel for Controller {
    fn call(&self, request: Request, _version: i16) -> ControllerFuture {
        Box::pin(async move {
            match request {
                Request::AllocateProducerIds(_) => Ok(Response::AllocateProducerIds(AllocateProducerIdsResponse {
                    producer_id_start: NEXT_PRODUCER_ID.fetch_add(PRODUCER_IDS.into(), Ordering::Relaxed),
                    producer_id_len: PRODUCER_IDS,
                    ..AllocateProducerIdsResponse::default()
                })),
                _ => Err(ControllerError::NotActive),
            }
        })
    }

    fn committed_end(&self) -> Option<Offset> {
        None
    }
}

/// Modules are words: `count`, or what an aggregator does when a row says `poke`.
struct Doubles;

struct Double {
    info: ModuleInfo,
    word: String,
}

impl Host for Doubles {
    fn load(&self, module: &[u8]) -> Result<Arc<dyn Module>, ModuleError> {
        let info = ModuleInfo {
            digest: Digest::new(Sha256::digest(module).into()),
            size_bytes: module.len() as u64,
            world: World::WindowAggregator,
            descriptor: Descriptor::default(),
        };
        let word = String::from_utf8(module.to_vec()).map_err(|_| ModuleError::NotWasm)?;
        Ok(Arc::new(Double { info, word }))
    }
}

impl Module for Double {
    fn info(&self) -> &ModuleInfo {
        &self.info
    }

    fn partitioner(&self, _: InstanceSettings) -> Result<Box<dyn Partitioner>, ModuleError> {
        Err(self.wrong("partitioner"))
    }

    fn serde(&self, _: InstanceSettings) -> Result<Box<dyn Serde>, ModuleError> {
        Err(self.wrong("serde"))
    }

    fn validator(&self, _: InstanceSettings) -> Result<Box<dyn Validator>, ModuleError> {
        Err(self.wrong("validator"))
    }

    fn window_aggregator(&self, _: InstanceSettings) -> Result<Box<dyn WindowAggregator>, ModuleError> {
        Ok(Box::new(Counter {
            count: JsonAggregate {
                aggregate: Aggregate::Count,
                value_field: None,
                keying: None,
            },
            word: self.word.clone(),
            poked: false,
        }))
    }
}

impl Double {
    fn wrong(&self, wanted: &'static str) -> ModuleError {
        let got = self.info.world;
        ModuleError::Kind { wanted, got }
    }
}

struct Counter {
    count: JsonAggregate,
    word: String,
    poked: bool,
}

impl WindowAggregator for Counter {
    fn accumulate(&mut self, rows: &Batch, panes: &[Pane]) -> Result<Accumulated, CallError> {
        let pokes = rows.rows().any(|row| row.value() == Some(b"poke"));
        match self.word.as_str() {
            "panics" if pokes => panic!("poked"),
            "gives up" if pokes => Err(Failure::Fatal("poked".into()).into()),
            "retries" if pokes && !std::mem::replace(&mut self.poked, true) => {
                Err(Failure::Retry("poked".into()).into())
            }
            _ => self.count.accumulate(rows, panes),
        }
    }

    fn merge(&mut self, pairs: &[(Bytes, Bytes)]) -> Result<Vec<Bytes>, Trap> {
        self.count.merge(pairs)
    }

    fn fire(&mut self, firings: &[Firing], output: &mut Output) -> Result<(), CallError> {
        self.count.fire(firings, output)
    }
}

pub(crate) struct TestNode {
    pub(crate) broker: Arc<Broker>,
    pub(crate) client: Client,
    pub(super) plugins: Plugins,
    producer: Producer,
    replay: Mutex<Replay>,
}

/// The last node's threads may hold the directory for a moment longer.
fn open(log: &Path, id: Uuid) -> LogDirectory<LogDisk> {
    for _ in 0..LOCKED_ATTEMPTS_MAX {
        match LogDirectory::open(LogDisk::new(RealDisk, log), log, id) {
            Err(log_directory::DirectoryError::Locked(_)) => std::thread::sleep(Duration::from_millis(5)),
            opened => return opened.unwrap(),
        }
    }
    panic!("the last node has not let go of its directory");
}

pub(super) fn topic_name(name: &str) -> TopicName {
    TopicName::new(name).unwrap()
}

pub(super) fn partition_of(topic: &str, partition: i32) -> TopicPartition {
    TopicPartition {
        topic: topic_name(topic),
        partition: PartitionIndex::new(partition),
    }
}

fn id_of(text: &str) -> TopicId {
    let digest = Sha256::digest(text);
    TopicId::from_bytes(digest[..16].try_into().unwrap())
}

impl TestNode {
    /// A node over `folder`, which may be one that has stopped.
    pub(crate) fn start(folder: &Path) -> Self {
        let log = folder.join(LOG_FOLDER);
        let directory_id = Uuid::from_bytes([7; 16]);
        if !log.exists() {
            std::fs::create_dir_all(&log).unwrap();
            let properties = MetaProperties {
                version: 1,
                cluster_id: Some("test".to_owned()),
                node_id: BrokerId::from_wire(NODE),
                directory_id: Some(directory_id),
            };
            log_directory::format(&RealDisk, &log, &properties).unwrap();
        }
        let opened = open(&log, directory_id);
        let setting = Setting {
            name: "log.dirs".to_owned(),
            value: log.to_str().unwrap().to_owned(),
        };
        let configs = ServerProperties::single_node()
            .with_settings([setting])
            .load()
            .unwrap()
            .configs;
        let settings = BrokerSettings::resolve(&configs).unwrap();
        assert_eq!(settings.node_id.get(), NODE);
        let broker = Broker::new(BrokerParts {
            cluster_id: "test".to_owned(),
            clock: Clock::start(),
            static_configs: configs.static_values,
            settings,
            controller: ControllerClient::new(Arc::new(Controller)),
            directories: Arc::new(LogDirectories::new(vec![opened], DELETE_DELAY).unwrap()),
        });
        let door = Arc::new(ClientDoor::new(broker.clone()));
        let client = Client::in_process(door, broker.id(), client::Options::default());
        tokio::spawn(broker.flusher().clone().run());
        let parts = PluginsParts {
            client: client.clone(),
            host: Arc::new(Doubles),
            data_directory: folder.to_owned(),
        };
        let node = TestNode {
            plugins: Plugins::start(&broker, parts),
            producer: Producer::new(client.clone(), CallContext::anonymous(), ProducerOptions::default()),
            client,
            broker,
            replay: Mutex::default(),
        };
        node.tell([MetadataRecord::RegisterBroker(RegisterBrokerRecord {
            broker_id: NODE,
            broker_epoch: 1,
            fenced: false,
            // Nobody listens there: the client is in process.
            end_points: vec![BrokerEndpoint {
                name: "PLAINTEXT".into(),
                host: "localhost".into(),
                port: 9092,
                ..BrokerEndpoint::default()
            }],
            log_dirs: vec![directory_id],
            ..RegisterBrokerRecord::default()
        })]);
        node
    }

    /// As the controller: these records are committed.
    fn tell(&self, records: impl IntoIterator<Item = MetadataRecord>) {
        let mut replay = self.replay.lock().unwrap();
        for record in records {
            replay.record(&record).unwrap();
        }
        let (delta, image) = replay.take().unwrap();
        crate::metadata_listener::apply(&self.broker, &delta, Arc::new(image));
    }

    /// Makes topics, or shows those that are there again; a topic's id is made of its name.
    pub(crate) fn topics(&self, names: &[&str]) {
        for name in names {
            if self.broker.view().image.topics.by_name(name).is_none() {
                self.topic(name, id_of(name));
            }
        }
    }

    /// A topic of this name which is another than `topics` makes; the one that is there is deleted.
    pub(super) fn topic_anew(&self, name: &str) {
        let found = self.broker.view().image.topics.by_name(name).map(|topic| topic.id);
        if let Some(topic_id) = found {
            self.tell([MetadataRecord::RemoveTopic(RemoveTopicRecord {
                topic_id,
                ..RemoveTopicRecord::default()
            })]);
        }
        self.topic(name, id_of(&format!("{name}, made anew")));
    }

    fn topic(&self, name: &str, topic_id: TopicId) {
        self.tell([
            MetadataRecord::Topic(TopicRecord {
                name: name.into(),
                topic_id,
                ..TopicRecord::default()
            }),
            MetadataRecord::Partition(PartitionRecord {
                partition_id: 0,
                topic_id,
                replicas: vec![NODE],
                isr: vec![NODE],
                leader: NODE,
                leader_epoch: 0,
                directories: vec![Uuid::from_bytes([7; 16])],
                ..PartitionRecord::default()
            }),
        ]);
    }

    /// The topics of one processor called `name`, and those of all.
    pub(super) fn topics_of(&self, name: &str) {
        self.topics(&[PLUGINS_TOPIC, DEPLOYMENTS_TOPIC]);
        for ending in ["in", "out", "changelog", "dead-letter"] {
            self.topics(&[&format!("{name}-{ending}")]);
        }
    }

    /// What the task of a processor is about.
    pub(super) fn ids(&self, name: &str) -> Ids {
        let id = |ending| {
            let topic = format!("{name}-{ending}");
            self.broker.view().image.topics.by_name(&topic).unwrap().id
        };
        Ids {
            changelog: id("changelog"),
            input: id("in"),
        }
    }

    pub(crate) async fn send(&self, topic: &str, key: &str, value: Option<Bytes>) -> Offset {
        let record = ProduceRecord {
            partition: Some(PartitionIndex::new(0)),
            timestamp: Some(Timestamp::from_millis(60_000)),
            key: Some(Bytes::copy_from_slice(key.as_bytes())),
            value,
            headers: Vec::new(),
        };
        let outcomes = self.producer.send(&topic_name(topic), vec![record]).await.unwrap();
        outcomes[0].as_ref().unwrap().offset
    }

    pub(super) async fn upload(&self, word: &'static str) -> Digest {
        let digest = Digest::new(Sha256::digest(word).into());
        let key = |key: PluginsKey| String::from_utf8(key.encode().to_vec()).unwrap();
        let piece = Bytes::from_static(word.as_bytes());
        self.send(PLUGINS_TOPIC, &key(PluginsKey::Piece(digest, 0)), Some(piece))
            .await;
        let record = ModuleRecord {
            size_bytes: word.len() as u64,
            pieces: 1,
        };
        self.send(
            PLUGINS_TOPIC,
            &key(PluginsKey::Module(digest)),
            Some(encode_value(&record)),
        )
        .await;
        digest
    }

    pub(super) async fn records(&self, topic: &str) -> Vec<Record> {
        let partition = partition_of(topic, 0);
        let context = CallContext::anonymous();
        let limits = FetchLimits::default();
        let fetched = self.client.fetch(&context, &partition, Start::Earliest, &limits).await;
        fetched.unwrap().records
    }

    /// Waits until the values of a topic are these.
    pub(super) async fn await_values(&self, topic: &str, expected: &[&str]) {
        loop {
            let records = self.records(topic).await;
            let values: Vec<_> = records
                .iter()
                .map(|record| String::from_utf8_lossy(record.value.as_deref().unwrap_or_default()).into_owned())
                .collect();
            if values == expected {
                return;
            }
            assert!(values.len() <= expected.len(), "{topic} holds {values:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// As a node that ends in good order.
    pub(crate) async fn stop(self) {
        self.plugins.stop().await;
        let partitions = self.broker.partitions().all();
        self.broker.directories().close(&partitions).unwrap();
    }
}
