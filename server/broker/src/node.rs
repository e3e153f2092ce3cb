//! The broker as its handlers see it: who it is, what it knows of the cluster, and the parts that do the work.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use metadata::config_keys::{BrokerConfigs, BrokerSettings, Configs, TopicSettings};
use metadata::image::{BrokerRegistration, ConfigResource, ConfigResourceType, FeaturesImage, Image, PartitionImage};
use model::{BrokerId, ErrorCode, PartitionIndex, ProducerId, TopicName};
use protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig, CreateTopicsRequest};
use protocol::{Request, Response, Text};
use tokio::sync::watch;
use tracing::{info, warn};

use crate::assignments::Assignments;
use crate::cleaner::{Cleaner, CleanerFigures, CompactionProgress};
use crate::clock::Clock;
use crate::controller_client::ControllerClient;
use crate::coordinators::{Groups, OFFSETS_TOPIC};
use crate::mover::Mover;
use crate::partitions::{DirectoryFigures, Flusher, LogDirectories, Partitions};
use crate::producer_ids::ProducerIds;
use crate::recovered::Recovered;
use crate::scrubber::{DamageFigures, Scrubber};

/// How long the controller may take to create a topic that a client has asked about.
const CREATION_WAIT_MS: i32 = 30_000;
/// How long a client's request is held back for a topic that was created on its behalf to show here.
const CREATION_FOLLOW_WAIT: Duration = Duration::from_secs(5);

/// One moment of the cluster.
#[derive(Clone, Default)]
pub struct View {
    pub image: Arc<Image>,
}

impl View {
    /// The brokers that are not fenced.
    pub(crate) fn live_brokers(&self) -> impl Iterator<Item = &BrokerRegistration> {
        self.image
            .cluster
            .brokers
            .values()
            .map(AsRef::as_ref)
            .filter(|registration| !registration.fenced)
    }

    /// Whether what a broker has of a partition lies in a directory of its that works.
    pub(crate) fn has_online_replica(&self, broker: BrokerId, partition: &PartitionImage) -> bool {
        let directory = partition.directory_of(broker);
        self.image.cluster.has_online_directory(broker, directory)
    }

    /// Whether that incarnation of a broker is unfenced. Its own logs are open where it shows this to itself.
    pub(crate) fn shows(&self, id: BrokerId, epoch: i64) -> bool {
        self.live_broker(id)
            .is_some_and(|registration| registration.epoch.get() == epoch)
    }

    pub(crate) fn live_broker(&self, id: BrokerId) -> Option<&BrokerRegistration> {
        self.image
            .cluster
            .broker(id)
            .filter(|registration| !registration.fenced)
    }
}

/// What a broker is made of.
pub struct BrokerParts {
    pub cluster_id: String,
    pub clock: Clock,
    /// What the configuration file, the environment and the command line say.
    pub static_configs: Configs,
    pub settings: BrokerSettings,
    pub controller: ControllerClient,
    pub directories: Arc<LogDirectories>,
}

/// The state that all handlers share.
pub struct Broker {
    id: BrokerId,
    cluster_id: String,
    clock: Clock,
    static_configs: Configs,
    settings: ArcSwap<BrokerSettings>,
    controller: ControllerClient,
    directories: Arc<LogDirectories>,
    partitions: Partitions,
    flusher: Arc<Flusher>,
    groups: Groups,
    producer_ids: ProducerIds,
    recovered: Recovered,
    assignments: Assignments,
    /// Segments that retention leaves because of times in the future, when it ran last.
    future_segments: AtomicU64,
    cleaner: Cleaner,
    scrubber: Scrubber,
    mover: Mover,
    /// Set once, when the controller has registered this incarnation.
    epoch: AtomicI64,
    view: watch::Sender<View>,
}

impl Broker {
    pub(crate) fn new(parts: BrokerParts) -> Arc<Self> {
        let BrokerParts {
            cluster_id,
            clock,
            static_configs,
            settings,
            controller,
            directories,
        } = parts;
        Arc::new(Broker {
            id: settings.node_id,
            cluster_id,
            groups: Groups::new(crate::settings::group_config(&settings), clock.clone()),
            clock,
            static_configs,
            settings: ArcSwap::from_pointee(settings),
            controller,
            directories,
            partitions: Partitions::default(),
            flusher: Arc::default(),
            producer_ids: ProducerIds::default(),
            recovered: Recovered::default(),
            assignments: Assignments::default(),
            future_segments: AtomicU64::new(0),
            cleaner: Cleaner::default(),
            scrubber: Scrubber::default(),
            mover: Mover::default(),
            epoch: AtomicI64::new(-1),
            view: watch::Sender::new(View::default()),
        })
    }

    pub(crate) fn id(&self) -> BrokerId {
        self.id
    }

    pub(crate) fn cluster_id(&self) -> &str {
        &self.cluster_id
    }

    pub(crate) fn settings(&self) -> Arc<BrokerSettings> {
        self.settings.load_full()
    }

    pub(crate) fn set_settings(&self, settings: BrokerSettings) {
        self.settings.store(Arc::new(settings));
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(crate) fn controller(&self) -> &ControllerClient {
        &self.controller
    }

    pub(crate) fn directories(&self) -> &LogDirectories {
        &self.directories
    }

    pub(crate) fn partitions(&self) -> &Partitions {
        &self.partitions
    }

    pub(crate) fn flusher(&self) -> &Arc<Flusher> {
        &self.flusher
    }

    pub(crate) fn groups(&self) -> &Groups {
        &self.groups
    }

    pub(crate) fn recovered(&self) -> &Recovered {
        &self.recovered
    }

    pub(crate) fn assignments(&self) -> &Assignments {
        &self.assignments
    }

    pub(crate) fn cleaner(&self) -> &Cleaner {
        &self.cleaner
    }

    pub(crate) fn mover(&self) -> &Mover {
        &self.mover
    }

    pub(crate) fn scrubber(&self) -> &Scrubber {
        &self.scrubber
    }

    /// What of the logs is damaged, and how far that was looked for.
    #[must_use]
    pub fn damage_figures(&self) -> DamageFigures {
        self.scrubber.figures(self)
    }

    pub(crate) fn future_segments(&self) -> &AtomicU64 {
        &self.future_segments
    }

    /// How retention stands with clocks: the segments that it leaves because of times in the future, and by how much this
    /// machine's clock is ahead of what is believed of it.
    #[must_use]
    pub fn retention_figures(&self) -> (u64, Duration) {
        (self.future_segments.load(Ordering::Relaxed), self.clock.doubted())
    }

    /// What the disks of the log directories have done since the node started.
    #[must_use]
    pub fn directory_figures(&self) -> DirectoryFigures {
        self.directories.figures()
    }

    /// What compaction has done since the node started.
    #[must_use]
    pub fn cleaner_figures(&self) -> CleanerFigures {
        self.cleaner.figures(self)
    }

    /// How far each partition of a topic that this node leads is compacted; those that are not compacted are left out.
    /// May wait for the disk.
    #[must_use]
    pub fn compaction(&self, topic: &TopicName) -> BTreeMap<PartitionIndex, CompactionProgress> {
        self.cleaner.progress(self, topic)
    }

    /// The features that this node can live with: name, least and greatest level.
    pub(crate) fn supported_features(&self) -> &'static [(&'static str, i16, i16)] {
        &FeaturesImage::SUPPORTED
    }

    /// The broker epoch; -1 before it is registered.
    pub(crate) fn epoch(&self) -> i64 {
        self.epoch.load(Ordering::Acquire)
    }

    pub(crate) fn set_epoch(&self, epoch: i64) {
        self.epoch.store(epoch, Ordering::Release);
    }

    pub(crate) fn view(&self) -> View {
        self.view.borrow().clone()
    }

    pub(crate) fn set_view(&self, view: View) {
        self.view.send_replace(view);
    }

    /// The view as it changes.
    pub(crate) fn views(&self) -> watch::Receiver<View> {
        self.view.subscribe()
    }

    /// The greatest metadata offset that this broker has applied; -1 before the first.
    pub(crate) fn metadata_offset(&self) -> i64 {
        self.view.borrow().image.end_offset.get() - 1
    }

    /// Waits until the view is as wished, at most `wait`.
    pub(crate) async fn await_view(&self, wait: Duration, wished: impl Fn(&View) -> bool) {
        let mut views = self.view.subscribe();
        let reached = async { views.wait_for(|view| wished(view)).await.is_ok() };
        if tokio::time::timeout(wait, reached).await.is_err() {
            warn!(
                wait_ms = wait.as_millis(),
                "this broker has not followed the controller in time"
            );
        }
    }

    /// The layers of this broker's configuration.
    pub(crate) fn configs(&self, view: &View) -> BrokerConfigs {
        let own = ConfigResource {
            kind: ConfigResourceType::Broker,
            name: Text::from(self.id.to_string()),
        };
        BrokerConfigs {
            static_values: self.static_configs.clone(),
            dynamic_default: texts(view.image.configs.of(&ConfigResource::all_brokers())),
            dynamic_broker: texts(view.image.configs.of(&own)),
        }
    }

    /// What holds for a topic with these overrides.
    pub(crate) fn topic_settings(&self, overrides: &BTreeMap<Text, Text>) -> TopicSettings {
        TopicSettings::resolve(&texts(overrides), &self.settings.load())
    }

    pub(crate) async fn next_producer_id(&self) -> Result<ProducerId, ErrorCode> {
        self.producer_ids
            .next(&self.controller, self.id.get(), self.epoch())
            .await
    }

    /// Asks the controller for topics that clients have asked about; what comes of it shows when they ask again.
    pub(crate) async fn create_missing_topics(&self, names: Vec<TopicName>) {
        let topics = names.iter().map(|name| CreatableTopic {
            name: Text::from(name.as_str()),
            num_partitions: -1,
            replication_factor: -1,
            ..CreatableTopic::default()
        });
        self.create_topics(topics.collect()).await;
    }

    /// Asks the controller for the topic of the groups, and waits until this broker has it.
    pub(crate) async fn create_offsets_topic(&self) {
        let settings = self.settings().offsets_topic;
        let config = |name: &str, value: &str| CreatableTopicConfig {
            name: name.into(),
            value: Some(value.into()),
            ..CreatableTopicConfig::default()
        };
        let topic = CreatableTopic {
            name: OFFSETS_TOPIC.into(),
            num_partitions: i32::try_from(settings.partitions).unwrap_or(i32::MAX),
            replication_factor: i16::try_from(settings.replication_factor).unwrap_or(i16::MAX),
            configs: vec![
                config("cleanup.policy", "compact"),
                config("compression.type", "producer"),
                config("segment.bytes", &settings.segment_bytes.to_string()),
            ],
            ..CreatableTopic::default()
        };
        if !self.create_topics(vec![topic]).await {
            return;
        }
        let led = |view: &View| {
            let topic = view.image.topics.by_name(OFFSETS_TOPIC);
            topic.is_some_and(|topic| topic.partitions.values().all(|partition| partition.leader.is_some()))
        };
        self.await_view(CREATION_FOLLOW_WAIT, led).await;
    }

    /// Whether all of them are there now, or will be as soon as this broker hears of it.
    async fn create_topics(&self, topics: Vec<CreatableTopic>) -> bool {
        let request = CreateTopicsRequest {
            topics,
            timeout_ms: CREATION_WAIT_MS,
            ..CreateTopicsRequest::default()
        };
        match self.controller.call(Request::from(request)).await {
            Ok(Response::CreateTopics(response)) => {
                for topic in &response.topics {
                    info!(
                        topic = &*topic.name,
                        code = topic.error_code,
                        "topic asked for on demand"
                    );
                }
                let created = [ErrorCode::None.code(), ErrorCode::TopicAlreadyExists.code()];
                response.topics.iter().all(|topic| created.contains(&topic.error_code))
            }
            Ok(_) => false,
            Err(error) => {
                warn!(%error, "topics not created on demand");
                false
            }
        }
    }
}

/// A resource's values as the table of keys takes them.
pub(crate) fn texts(values: &BTreeMap<Text, Text>) -> Configs {
    values
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .collect()
}
