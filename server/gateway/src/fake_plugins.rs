//! The plugins of a node for tests: they follow the topics of a [`FakeNode`], and their modules are native.
//!
//! ```text
//! a module   \0asm WORLD BEHAVIOUR [padding]        as in "\0asm serde angle"
//! refused    anything else, "\0asm core", "\0asm lacks NAME", "\0asm wasi NAME"
//! ```

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use model::{BrokerId, Offset, PartitionIndex, Timestamp, TopicName};
use plugin::deployment::{DEPLOYMENTS_TOPIC, DeploymentsKey, ModuleRecord, PLUGINS_TOPIC, PluginsKey, decode_value};
use plugin::partitioner::Topic;
use plugin::running::{Deployed, DeploymentError, Followed, ProcessorStatus, TaskPhase, TaskStatus};
use plugin::serde::{Datum, Part};
use plugin::{
    Batch, Deployment, Descriptor, Digest, Host, InstanceSettings, Logs, Measurements, Module, ModuleError, ModuleInfo,
    Parameter, Partitioner, ProcessorName, RunningPlugins, Serde, TopicPlugins, Trap, TrapKind, Validator,
    WindowAggregator, World,
};

use crate::fake_node::FakeNode;

pub(crate) struct FakePlugins {
    node: Arc<FakeNode>,
    /// What tests say of processors.
    pub(crate) phases: Mutex<BTreeMap<ProcessorName, Vec<TaskStatus>>>,
    pub(crate) logs: Mutex<BTreeMap<ProcessorName, Arc<Logs>>>,
    pub(crate) measurements: Arc<Measurements>,
    /// What [`RunningPlugins::check`] answers.
    pub(crate) refusal: Mutex<Option<DeploymentError>>,
    /// Whether nothing of the deployments is seen.
    held: AtomicBool,
    /// Whether the ends of the topics have not been seen yet.
    pub(crate) behind: AtomicBool,
    /// How often it was looked in vain whether a deployment has been seen.
    pub(crate) looks: AtomicUsize,
    /// How many instances were made.
    pub(crate) instances: Arc<Mutex<usize>>,
}

/// What the two topics hold.
#[derive(Default)]
struct State {
    modules: BTreeMap<Digest, Bytes>,
    processors: BTreeMap<ProcessorName, (Deployment, Timestamp)>,
    topics: BTreeMap<TopicName, TopicPlugins>,
}

impl FakePlugins {
    pub(crate) fn of(node: Arc<FakeNode>) -> Arc<Self> {
        Arc::new(FakePlugins {
            node,
            phases: Mutex::default(),
            logs: Mutex::default(),
            measurements: Arc::default(),
            refusal: Mutex::default(),
            held: AtomicBool::new(false),
            behind: AtomicBool::new(false),
            looks: AtomicUsize::new(0),
            instances: Arc::default(),
        })
    }

    /// Stops following the deployments, or goes on.
    pub(crate) fn hold(&self, held: bool) {
        self.held.store(held, Ordering::SeqCst);
    }

    fn state(&self) -> State {
        let mut state = State::default();
        let mut pieces: BTreeMap<(Digest, u32), Bytes> = BTreeMap::new();
        for record in self.node.records(PLUGINS_TOPIC) {
            match (PluginsKey::decode(&record.key.unwrap()).unwrap(), record.value) {
                (PluginsKey::Piece(digest, piece), Some(bytes)) => drop(pieces.insert((digest, piece), bytes)),
                (PluginsKey::Piece(digest, piece), None) => drop(pieces.remove(&(digest, piece))),
                (PluginsKey::Module(digest), None) => drop(state.modules.remove(&digest)),
                (PluginsKey::Module(digest), Some(value)) => {
                    let record: ModuleRecord = decode_value(&value).unwrap();
                    let whole: Vec<u8> = (0..record.pieces)
                        .flat_map(|piece| pieces[&(digest, piece)].to_vec())
                        .collect();
                    assert_eq!((whole.len() as u64, digest_of(&whole)), (record.size_bytes, digest));
                    state.modules.insert(digest, Bytes::from(whole));
                }
            }
        }
        for record in self.node.records(DEPLOYMENTS_TOPIC) {
            match (DeploymentsKey::decode(&record.key.unwrap()).unwrap(), record.value) {
                (DeploymentsKey::Processor(name), Some(value)) => {
                    let deployed = (decode_value(&value).unwrap(), record.timestamp);
                    state.processors.insert(name, deployed);
                }
                (DeploymentsKey::Processor(name), None) => drop(state.processors.remove(&name)),
                (DeploymentsKey::Topic(name), Some(value)) => {
                    state.topics.insert(name, decode_value(&value).unwrap());
                }
                (DeploymentsKey::Topic(name), None) => drop(state.topics.remove(&name)),
            }
        }
        state
    }

    fn native(&self, module: &[u8]) -> Result<NativeModule, ModuleError> {
        let text = std::str::from_utf8(module).unwrap_or_default();
        let text = text.strip_prefix("\0asm ").ok_or(ModuleError::NotWasm)?;
        let mut words = text.split(' ');
        let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let world = match first {
            "serde" => World::Serde,
            "partitioner" => World::Partitioner,
            "aggregator" => World::WindowAggregator,
            "core" => return Err(ModuleError::CoreModule),
            "wasi" => return Err(ModuleError::Wasi(second.to_owned())),
            _ => return Err(ModuleError::MissingExport(second.to_owned())),
        };
        let parameter = |name: &str, required, secret| Parameter {
            name: name.to_owned(),
            doc: format!("what {name} is"),
            fallback: None,
            required,
            secret,
        };
        let descriptor = Descriptor {
            name: second.to_owned(),
            version: "1.0.0".to_owned(),
            doc: "A double.".to_owned(),
            parameters: match second {
                "needy" => vec![parameter("field", true, false), parameter("token", false, true)],
                _ => Vec::new(),
            },
            ..Descriptor::default()
        };
        Ok(NativeModule {
            info: ModuleInfo {
                digest: digest_of(module),
                size_bytes: module.len() as u64,
                world,
                descriptor,
            },
            instances: self.instances.clone(),
        })
    }
}

/// Not SHA-256, but as good for telling a test's modules apart.
pub(crate) fn digest_of(module: &[u8]) -> Digest {
    let mut bytes = [0u8; 32];
    for (place, byte) in module.iter().enumerate() {
        let slot = &mut bytes[place % 32];
        *slot = slot.rotate_left(3) ^ byte.wrapping_add((place / 32) as u8);
    }
    Digest::new(bytes)
}

impl Host for FakePlugins {
    fn load(&self, module: &[u8]) -> Result<Arc<dyn Module>, ModuleError> {
        Ok(Arc::new(self.native(module)?))
    }
}

impl RunningPlugins for FakePlugins {
    fn followed(&self) -> Followed {
        let end = |topic| Offset::new(self.node.log_end(topic));
        let is_held = self.held.load(Ordering::SeqCst);
        if is_held && self.node.log_end(DEPLOYMENTS_TOPIC) > 0 {
            self.looks.fetch_add(1, Ordering::SeqCst);
        }
        Followed {
            plugins: end(PLUGINS_TOPIC),
            deployments: if is_held {
                Offset::new(0)
            } else {
                end(DEPLOYMENTS_TOPIC)
            },
        }
    }

    fn modules(&self) -> Vec<ModuleInfo> {
        let modules = self.state().modules;
        modules.values().map(|bytes| self.native(bytes).unwrap().info).collect()
    }

    fn module(&self, digest: &Digest) -> Option<ModuleInfo> {
        let bytes = self.state().modules.remove(digest)?;
        Some(self.native(&bytes).unwrap().info)
    }

    fn load(&self, digest: &Digest) -> Result<Arc<dyn Module>, DeploymentError> {
        let bytes = self.state().modules.remove(digest);
        let bytes = bytes.ok_or(DeploymentError::UnknownModule(*digest))?;
        Ok(Arc::new(self.native(&bytes)?))
    }

    fn check(&self, _: &ProcessorName, _: &Deployment) -> Result<(), DeploymentError> {
        self.refusal.lock().unwrap().clone().map_or(Ok(()), Err)
    }

    fn processors(&self) -> Vec<Deployed> {
        let processors = self.state().processors.into_iter();
        processors
            .map(|(name, (deployment, since))| Deployed {
                name,
                deployment: Arc::new(deployment),
                since,
            })
            .collect()
    }

    fn processor(&self, name: &ProcessorName) -> Option<Deployed> {
        self.processors().into_iter().find(|deployed| deployed.name == *name)
    }

    fn status(&self, name: &ProcessorName) -> Option<ProcessorStatus> {
        let tasks = self.phases.lock().unwrap().get(name).cloned();
        Some(ProcessorStatus {
            deployed: self.processor(name)?,
            tasks: tasks.unwrap_or_default(),
        })
    }

    fn logs(&self, name: &ProcessorName) -> Option<Arc<Logs>> {
        self.processor(name)?;
        Some(self.logs.lock().unwrap().entry(name.clone()).or_default().clone())
    }

    fn measurements(&self, name: &ProcessorName) -> Option<Arc<Measurements>> {
        self.processor(name)?;
        Some(self.measurements.clone())
    }

    fn topic_plugins(&self, topic: &TopicName) -> Option<Arc<TopicPlugins>> {
        self.state().topics.remove(topic).map(Arc::new)
    }

    fn is_caught_up(&self) -> bool {
        let is_behind = self.behind.load(Ordering::SeqCst);
        self.looks.fetch_add(usize::from(is_behind), Ordering::SeqCst);
        !is_behind
    }

    fn is_changelog_key(&self, key: &[u8]) -> bool {
        matches!(key.first(), Some(0 | 1))
    }

    fn users(&self, digest: &Digest) -> Vec<String> {
        let state = self.state();
        let processors = state.processors.iter();
        let processors = processors.filter(|(_, (deployment, _))| deployment.module == *digest);
        let topics = state.topics.iter().filter(|(_, plugins)| {
            [plugins.key_serde, plugins.value_serde, plugins.partitioner].contains(&Some(*digest))
        });
        processors
            .map(|(name, _)| format!("processor {name}"))
            .chain(topics.map(|(name, _)| format!("topic {name}")))
            .collect()
    }
}

/// A task that is doing something.
pub(crate) fn task(partition: i32, phase: TaskPhase) -> TaskStatus {
    TaskStatus {
        partition: PartitionIndex::new(partition),
        broker: BrokerId::new(1),
        position: Some(Offset::new(40)),
        end_offset: Some(Offset::new(42)),
        stream_time: Some(Timestamp::from_millis(1_000)),
        processed: 40,
        late: 3,
        null_keys: 2,
        rejected: 1,
        guest_calls: 5,
        traps: 4,
        phase,
    }
}

struct NativeModule {
    info: ModuleInfo,
    instances: Arc<Mutex<usize>>,
}

impl NativeModule {
    fn start(&self, wanted: World, name: &'static str, settings: &InstanceSettings) -> Result<(), ModuleError> {
        if self.info.world != wanted {
            let got = self.info.world;
            return Err(ModuleError::Kind { wanted: name, got });
        }
        if settings.config.contains_key("unwelcome") {
            return Err(ModuleError::Start("`unwelcome` is set".to_owned()));
        }
        *self.instances.lock().unwrap() += 1;
        Ok(())
    }
}

impl Module for NativeModule {
    fn info(&self) -> &ModuleInfo {
        &self.info
    }

    fn partitioner(&self, settings: InstanceSettings) -> Result<Box<dyn Partitioner>, ModuleError> {
        self.start(World::Partitioner, "partitioner", &settings)?;
        Ok(Box::new(Last))
    }

    fn serde(&self, settings: InstanceSettings) -> Result<Box<dyn Serde>, ModuleError> {
        self.start(World::Serde, "serde", &settings)?;
        let (open, close) = match self.info.descriptor.name.as_str() {
            "curly" => ('{', '}'),
            _ => ('<', '>'),
        };
        Ok(Box::new(Brackets { open, close, settings }))
    }

    fn validator(&self, _: InstanceSettings) -> Result<Box<dyn Validator>, ModuleError> {
        let got = self.info.world;
        Err(ModuleError::Kind {
            wanted: "validator",
            got,
        })
    }

    fn window_aggregator(&self, _: InstanceSettings) -> Result<Box<dyn WindowAggregator>, ModuleError> {
        let got = self.info.world;
        Err(ModuleError::Kind {
            wanted: "window aggregator",
            got,
        })
    }
}

/// Puts JSON into brackets; refuses what contains `refuse`, breaks at what contains `trap`.
struct Brackets {
    open: char,
    close: char,
    settings: InstanceSettings,
}

impl Serde for Brackets {
    fn encode(&mut self, _: &str, _: Part, items: &[Datum]) -> Result<Vec<Result<Bytes, String>>, Trap> {
        self.settings
            .measurements
            .count("encoded".to_owned(), Vec::new(), items.len() as u64);
        let text = |item: &Datum| match item {
            Datum::Json(text) => text.clone(),
            other => panic!("{other:?}"),
        };
        let texts: Vec<String> = items.iter().map(text).collect();
        if texts.iter().any(|text| text.contains("trap")) {
            return Err(Trap::new(TrapKind::Fault, "a trap was asked for"));
        }
        let encoded = texts.into_iter().map(|text| match text.contains("refuse") {
            true => Err("a refusal was asked for".to_owned()),
            false => Ok(Bytes::from(format!("{}{text}{}", self.open, self.close))),
        });
        Ok(encoded.collect())
    }

    fn decode(&mut self, _: &str, _: Part, items: &[Bytes]) -> Result<Vec<Result<Datum, String>>, Trap> {
        if items.iter().any(|item| item.windows(4).any(|four| four == b"TRAP")) {
            return Err(Trap::new(TrapKind::Fault, "a trap was stored"));
        }
        let decode = |item: &Bytes| {
            let text = std::str::from_utf8(item).map_err(|_| "no text".to_owned())?;
            let inner = text
                .strip_prefix(self.open)
                .and_then(|text| text.strip_suffix(self.close));
            let inner = inner.ok_or("no brackets")?;
            Ok(match inner {
                "text" => Datum::Text("some text".to_owned()),
                "raw" => Datum::Raw(Bytes::from_static(b"\xff\x00")),
                json => Datum::Json(json.to_owned()),
            })
        };
        Ok(items.iter().map(decode).collect())
    }

    fn json_schema(&mut self, _: &str, _: Part) -> Result<Option<String>, Trap> {
        Ok(None)
    }
}

/// The last partition for rows with a key, one that is not there for `nowhere`, no choice for others.
struct Last;

impl Partitioner for Last {
    fn partition(&mut self, topic: &Topic, rows: &Batch) -> Result<Vec<Option<PartitionIndex>>, Trap> {
        let last = PartitionIndex::new(i32::try_from(topic.partitions).unwrap() - 1);
        let choose = |key: Option<&[u8]>| match key {
            Some(b"nowhere") => Some(PartitionIndex::new(99)),
            Some(_) => Some(last),
            None => None,
        };
        Ok(rows.rows().map(|row| choose(row.key())).collect())
    }
}
