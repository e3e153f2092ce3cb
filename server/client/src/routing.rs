//! What the client knows of the cluster: brokers, topics with the leaders of their partitions, and coordinators of groups.
//!
//! Knowledge is asked for when it is needed, kept until it is too old or an answer speaks against it, and never taken for
//! more than a hint: the node that is asked checks again. So it may be shared between principals; what it leads to is
//! authorized where it is done.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::{BrokerId, ErrorCode, GroupId, LeaderEpoch, PartitionIndex, TopicId, TopicName, TopicPartition};
use protocol::messages::find_coordinator_request::FindCoordinatorRequest;
use protocol::messages::metadata_request::{MetadataRequest, MetadataRequestTopic};
use protocol::messages::metadata_response::{
    MetadataResponse, MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use protocol::{ApiKey, Request, Response, Text};
use tokio::time::Instant;

use crate::{CallContext, Client, Error};

/// How many topics are remembered; more throw out the one that was asked for longest ago.
const TOPICS_MAX: usize = 20_000;
/// How many groups' coordinators are remembered.
const COORDINATORS_MAX: usize = 20_000;
/// FindCoordinator's key type for consumer groups.
const KEY_TYPE_GROUP: i8 = 0;

/// A broker, and where it listens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    pub id: BrokerId,
    pub host: String,
    pub port: u16,
    pub rack: Option<String>,
}

impl Node {
    /// `host:port`, with an IPv6 host in brackets.
    #[must_use]
    pub fn address(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.id, self.address())
    }
}

/// A topic and its partitions, in the order of their numbers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Topic {
    pub name: TopicName,
    /// Zero where the cluster is too old to have topic ids.
    pub id: TopicId,
    /// Whether the cluster keeps its own records there, as in `__consumer_offsets`.
    pub internal: bool,
    pub partitions: Vec<Partition>,
}

impl Topic {
    #[must_use]
    pub fn partition(&self, index: PartitionIndex) -> Option<&Partition> {
        let at = self
            .partitions
            .binary_search_by_key(&index, |partition| partition.index)
            .ok()?;
        self.partitions.get(at)
    }
}

/// A partition and the brokers that keep it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Partition {
    pub index: PartitionIndex,
    /// `None` while none is elected.
    pub leader: Option<BrokerId>,
    pub leader_epoch: Option<LeaderEpoch>,
    pub replicas: Vec<BrokerId>,
    pub in_sync_replicas: Vec<BrokerId>,
    pub offline_replicas: Vec<BrokerId>,
}

/// The brokers and what is said of the whole cluster.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Brokers {
    pub(crate) nodes: BTreeMap<BrokerId, Node>,
    pub(crate) controller: Option<BrokerId>,
}

#[derive(Default)]
struct Known {
    brokers: Option<(Arc<Brokers>, Instant)>,
    topics: BTreeMap<TopicName, (Arc<Topic>, Instant)>,
    coordinators: BTreeMap<GroupId, BrokerId>,
}

pub(crate) struct Routing {
    age_max: Duration,
    known: Mutex<Known>,
    /// Held by the one who asks, so that many who miss the same thing ask once.
    asking: tokio::sync::Mutex<()>,
}

impl Routing {
    pub(crate) fn new(age_max: Duration) -> Self {
        Routing {
            age_max,
            known: Mutex::default(),
            asking: tokio::sync::Mutex::default(),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_fresh(&self, since: Instant) -> bool {
        since.elapsed() < self.age_max
    }

    fn brokers(&self) -> Option<Arc<Brokers>> {
        self.known()
            .brokers
            .as_ref()
            .filter(|(_, since)| self.is_fresh(*since))
            .map(|(brokers, _)| brokers.clone())
    }

    fn topic(&self, name: &TopicName) -> Option<Arc<Topic>> {
        self.known()
            .topics
            .get(name)
            .filter(|(_, since)| self.is_fresh(*since))
            .map(|(topic, _)| topic.clone())
    }

    fn learn_brokers(&self, brokers: Brokers) -> Arc<Brokers> {
        let brokers = Arc::new(brokers);
        self.known().brokers = Some((brokers.clone(), Instant::now()));
        brokers
    }

    fn learn_topic(&self, topic: Topic) -> Arc<Topic> {
        let topic = Arc::new(topic);
        let mut known = self.known();
        if known.topics.len() >= TOPICS_MAX && !known.topics.contains_key(&topic.name) {
            let oldest = known
                .topics
                .iter()
                .min_by_key(|(_, (_, since))| *since)
                .map(|(name, _)| name.clone());
            oldest.map(|name| known.topics.remove(&name));
        }
        known.topics.insert(topic.name.clone(), (topic.clone(), Instant::now()));
        topic
    }

    pub(crate) fn forget_topic(&self, name: &TopicName) {
        self.known().topics.remove(name);
    }

    pub(crate) fn forget_coordinator(&self, group: &GroupId) {
        self.known().coordinators.remove(group);
    }

    pub(crate) fn forget_brokers(&self) {
        self.known().brokers = None;
    }

    /// Where the known brokers listen, however old the knowledge.
    pub(crate) fn addresses(&self) -> Vec<String> {
        let known = self.known();
        known
            .brokers
            .iter()
            .flat_map(|(brokers, _)| brokers.nodes.values().map(Node::address))
            .collect()
    }
}

impl Client {
    /// A topic as it was when it was last looked at, at most [`crate::Options::metadata_age_max`] ago.
    ///
    /// # Errors
    /// UNKNOWN_TOPIC_OR_PARTITION if there is none, and those of [`Client::call`].
    pub async fn topic(&self, context: &CallContext, name: &TopicName) -> Result<Arc<Topic>, Error> {
        if let Some(topic) = self.routing().topic(name) {
            return Ok(topic);
        }
        let _asking = self.routing().asking.lock().await;
        if let Some(topic) = self.routing().topic(name) {
            return Ok(topic);
        }
        self.ask_topic(context, name, false).await
    }

    /// Asks for a topic and remembers it; with `create`, a cluster that creates topics on demand creates it.
    pub(crate) async fn ask_topic(
        &self,
        context: &CallContext,
        name: &TopicName,
        create: bool,
    ) -> Result<Arc<Topic>, Error> {
        let wanted = MetadataRequestTopic {
            name: Some(Text::from(name.as_str())),
            ..Default::default()
        };
        let response = self.ask_metadata(context, Some(vec![wanted]), create).await?;
        let row = response
            .topics
            .iter()
            .find(|row| row.name.as_deref() == Some(name.as_str()));
        let row = row.ok_or_else(|| Error::MalformedAnswer {
            api_key: ApiKey::Metadata,
            lacking: format!("topic {name}"),
        })?;
        Error::check(row.error_code, None, || format!("looking up topic {name}"))?;
        Ok(self.routing().learn_topic(topic_from(row, name.clone())))
    }

    /// Metadata of the given topics, or all; what it says of brokers is remembered.
    pub(crate) async fn ask_metadata(
        &self,
        context: &CallContext,
        topics: Option<Vec<MetadataRequestTopic>>,
        allow_auto_topic_creation: bool,
    ) -> Result<MetadataResponse, Error> {
        let request = MetadataRequest {
            topics,
            allow_auto_topic_creation,
            ..Default::default()
        };
        let response = self.ask_any(context, Request::from(request)).await?;
        let Response::Metadata(response) = response else {
            return Err(unexpected(ApiKey::Metadata));
        };
        Error::check(response.error_code, None, || "asking for metadata".to_owned())?;
        self.routing().learn_brokers(Brokers {
            nodes: response
                .brokers
                .iter()
                .filter_map(node_from)
                .map(|node| (node.id, node))
                .collect(),
            controller: BrokerId::from_wire(response.controller_id),
        });
        Ok(response)
    }

    /// Asks whoever is at hand, without using what is known of the cluster.
    async fn ask_any(&self, context: &CallContext, request: Request) -> Result<Response, Error> {
        let wait = self.options().call_wait_max;
        let route = self.any_broker().await?;
        self.exchange(context, &route, request, wait).await
    }

    async fn brokers(&self, context: &CallContext) -> Result<Arc<Brokers>, Error> {
        if let Some(brokers) = self.routing().brokers() {
            return Ok(brokers);
        }
        let _asking = self.routing().asking.lock().await;
        if let Some(brokers) = self.routing().brokers() {
            return Ok(brokers);
        }
        self.ask_metadata(context, Some(Vec::new()), false).await?;
        Ok(self.routing().brokers().unwrap_or_default())
    }

    /// Every broker that the cluster's metadata names.
    ///
    /// # Errors
    /// Those of [`Client::call`].
    pub async fn nodes(&self, context: &CallContext) -> Result<Vec<Node>, Error> {
        Ok(self.brokers(context).await?.nodes.values().cloned().collect())
    }

    pub(crate) async fn node(&self, context: &CallContext, id: BrokerId) -> Result<Node, Error> {
        let brokers = self.brokers(context).await?;
        if let Some(node) = brokers.nodes.get(&id) {
            return Ok(node.clone());
        }
        self.routing().forget_brokers();
        let brokers = self.brokers(context).await?;
        brokers.nodes.get(&id).cloned().ok_or(Error::UnknownBroker(id))
    }

    pub(crate) async fn controller(&self, context: &CallContext) -> Result<Option<BrokerId>, Error> {
        Ok(self.brokers(context).await?.controller)
    }

    /// The leader of a partition.
    ///
    /// # Errors
    /// UNKNOWN_TOPIC_OR_PARTITION, LEADER_NOT_AVAILABLE while there is none, and those of [`Client::call`].
    pub async fn leader(&self, context: &CallContext, partition: &TopicPartition) -> Result<BrokerId, Error> {
        let mut topic = self.topic(context, &partition.topic).await?;
        if topic.partition(partition.partition).is_none() {
            // It may have been added since.
            self.routing().forget_topic(&partition.topic);
            topic = self.topic(context, &partition.topic).await?;
        }
        let refused = |code: ErrorCode| {
            self.routing().forget_topic(&partition.topic);
            Error::refused(code.code(), None, format!("looking up the leader of {partition}"))
        };
        match topic.partition(partition.partition) {
            None => Err(refused(ErrorCode::UnknownTopicOrPartition)),
            Some(found) => found.leader.ok_or_else(|| refused(ErrorCode::LeaderNotAvailable)),
        }
    }

    pub(crate) async fn coordinator(&self, context: &CallContext, group: &GroupId) -> Result<BrokerId, Error> {
        if let Some(id) = self.routing().known().coordinators.get(group) {
            return Ok(*id);
        }
        let key = Text::from(group.as_str());
        let request = FindCoordinatorRequest {
            key_type: KEY_TYPE_GROUP,
            coordinator_keys: vec![key.clone()],
            ..Default::default()
        };
        let response = self.ask_any(context, Request::from(request)).await?;
        let Response::FindCoordinator(response) = response else {
            return Err(unexpected(ApiKey::FindCoordinator));
        };
        let row = response.coordinators.iter().find(|row| row.key == key);
        let lacking = || Error::MalformedAnswer {
            api_key: ApiKey::FindCoordinator,
            lacking: format!("the coordinator of group {group}"),
        };
        let row = row.ok_or_else(lacking)?;
        Error::check(row.error_code, row.error_message.as_deref(), || {
            format!("looking up the coordinator of group {group}")
        })?;
        let id = BrokerId::from_wire(row.node_id).ok_or_else(lacking)?;
        let mut known = self.routing().known();
        if known.coordinators.len() >= COORDINATORS_MAX {
            known.coordinators.clear();
        }
        known.coordinators.insert(group.clone(), id);
        Ok(id)
    }
}

/// The answer is one to another request: a fault of the node, or of the codec.
pub(crate) fn unexpected(api_key: ApiKey) -> Error {
    Error::MalformedAnswer {
        api_key,
        lacking: "its own kind".to_owned(),
    }
}

fn node_from(row: &MetadataResponseBroker) -> Option<Node> {
    Some(Node {
        id: BrokerId::from_wire(row.node_id)?,
        host: row.host.to_string(),
        port: u16::try_from(row.port).ok()?,
        rack: row.rack.as_ref().map(ToString::to_string),
    })
}

pub(crate) fn topic_from(row: &MetadataResponseTopic, name: TopicName) -> Topic {
    let mut partitions: Vec<Partition> = row.partitions.iter().filter_map(partition_from).collect();
    partitions.sort_by_key(|partition| partition.index);
    partitions.dedup_by_key(|partition| partition.index);
    Topic {
        name,
        id: row.topic_id,
        internal: row.is_internal,
        partitions,
    }
}

fn partition_from(row: &MetadataResponsePartition) -> Option<Partition> {
    Some(Partition {
        index: PartitionIndex::from_wire(row.partition_index)?,
        leader: BrokerId::from_wire(row.leader_id),
        leader_epoch: LeaderEpoch::from_wire(row.leader_epoch),
        replicas: broker_ids(&row.replica_nodes),
        in_sync_replicas: broker_ids(&row.isr_nodes),
        offline_replicas: broker_ids(&row.offline_replicas),
    })
}

fn broker_ids(ids: &[i32]) -> Vec<BrokerId> {
    ids.iter().copied().filter_map(BrokerId::from_wire).collect()
}
