//! A node for tests: a small cluster of one broker in memory, strict where a client could cheat, that can be told to fail
//! in the middle of things.

mod groups;
mod log;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use model::{BrokerId, ErrorCode, PartitionIndex, TopicId, TopicName, TopicPartition};
use network::{Answer, ApiVersionRange, Dispatch, DispatchFuture, RequestContext};
use protocol::messages::api_versions_response::{ApiVersion, ApiVersionsResponse};
use protocol::messages::create_topics_response::{CreatableTopicResult, CreateTopicsResponse};
use protocol::messages::find_coordinator_response::{Coordinator, FindCoordinatorResponse};
use protocol::messages::init_producer_id_response::InitProducerIdResponse;
use protocol::messages::metadata_request::MetadataRequest;
use protocol::messages::metadata_response::{
    MetadataResponse, MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use protocol::{ApiKey, Request, Response, Text};
use tokio::sync::Notify;

use crate::{Client, Options};
use groups::Group;
use log::Log;

pub(crate) const NODE_ID: i32 = 1;

/// What becomes of the next request of an API instead of its answer.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// Refused in each of its parts, and nothing done.
    Refuse(ErrorCode),
    /// Done, and then refused all the same.
    RefuseAfter(ErrorCode),
    /// The exchange ends without an answer, and nothing is done.
    Close,
    /// Done, and the exchange ends without an answer.
    CloseAfter,
}

pub(crate) struct FakeNode {
    versions: Vec<ApiVersionRange>,
    state: Mutex<State>,
    appended: Notify,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) address: Option<(String, i32)>,
    pub(crate) topics: BTreeMap<TopicName, FakeTopic>,
    pub(crate) groups: BTreeMap<String, Group>,
    pub(crate) faults: BTreeMap<ApiKey, VecDeque<Fault>>,
    /// API, version and principal of every request, in order.
    pub(crate) asked: Vec<(ApiKey, i16, String)>,
    /// What a batch may have at most.
    pub(crate) batch_bytes_max: Option<usize>,
    /// A value that no record may have.
    pub(crate) forbidden_value: Option<Bytes>,
    producer_ids: i64,
}

pub(crate) struct FakeTopic {
    pub(crate) id: TopicId,
    pub(crate) leader: i32,
    pub(crate) partitions: Vec<Log>,
}

pub(crate) fn topic(name: &str) -> TopicName {
    TopicName::new(name).unwrap()
}

pub(crate) fn partition(name: &str, index: i32) -> TopicPartition {
    TopicPartition {
        topic: topic(name),
        partition: PartitionIndex::new(index),
    }
}

impl FakeNode {
    /// A node with one topic, `first`, of so many partitions.
    pub(crate) fn with_partitions(count: usize) -> Arc<Self> {
        let node = FakeNode {
            versions: ApiKey::ALL
                .iter()
                .map(|key| ApiVersionRange::plain(*key, key.stable_versions()))
                .collect(),
            state: Mutex::default(),
            appended: Notify::new(),
        };
        node.add_topic("first", count);
        Arc::new(node)
    }

    /// A node that serves one API only.
    pub(crate) fn serving_only(api_key: ApiKey, versions: std::ops::RangeInclusive<i16>) -> Arc<Self> {
        Arc::new(FakeNode {
            versions: vec![ApiVersionRange::plain(api_key, versions)],
            state: Mutex::default(),
            appended: Notify::new(),
        })
    }

    pub(crate) fn client(self: &Arc<Self>) -> Client {
        self.client_with(Options {
            call_wait_max: Duration::from_secs(5),
            ..Options::default()
        })
    }

    pub(crate) fn client_with(self: &Arc<Self>, options: Options) -> Client {
        Client::in_process(self.clone(), BrokerId::new(NODE_ID), options)
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add_topic(&self, name: &str, count: usize) {
        let mut state = self.state();
        let mut id = [7; 16];
        id[15] = u8::try_from(state.topics.len()).unwrap();
        let created = FakeTopic {
            id: TopicId::from_bytes(id),
            leader: NODE_ID,
            partitions: std::iter::repeat_with(Log::default).take(count).collect(),
        };
        state.topics.insert(topic(name), created);
    }

    /// Faults of the next requests of an API, in their order.
    pub(crate) fn fail_next(&self, api_key: ApiKey, faults: impl IntoIterator<Item = Fault>) {
        self.state().faults.entry(api_key).or_default().extend(faults);
    }

    /// How often an API was asked.
    pub(crate) fn asked(&self, api_key: ApiKey) -> usize {
        self.state().asked.iter().filter(|(key, _, _)| *key == api_key).count()
    }

    /// The values in a partition of `first`, in their order.
    pub(crate) fn values(&self, index: usize) -> Vec<String> {
        self.state().topics[&topic("first")].partitions[index].values()
    }

    /// Says that there may be something new to fetch.
    pub(crate) fn wake(&self) {
        self.appended.notify_waiters();
    }

    fn respond(&self, request: Request, fault: Option<&Fault>) -> Response {
        let refusal = match fault {
            Some(Fault::Refuse(code)) => Some(*code),
            _ => None,
        };
        let mut state = self.state();
        match request {
            Request::ApiVersions(_) => self.api_versions_response().into(),
            Request::Metadata(request) => state.metadata(&request, refusal).into(),
            Request::CreateTopics(request) => {
                drop(state);
                let mut rows = Vec::new();
                for row in &request.topics {
                    let count = usize::try_from(row.num_partitions).unwrap_or(1);
                    if refusal.is_none() {
                        self.add_topic(&row.name, count);
                    }
                    rows.push(CreatableTopicResult {
                        name: row.name.clone(),
                        error_code: code(refusal),
                        num_partitions: row.num_partitions,
                        ..Default::default()
                    });
                }
                CreateTopicsResponse {
                    topics: rows,
                    ..Default::default()
                }
                .into()
            }
            Request::InitProducerId(request) => {
                assert_eq!(request.transactional_id, None);
                state.producer_ids += 1;
                InitProducerIdResponse {
                    error_code: code(refusal),
                    producer_id: state.producer_ids,
                    producer_epoch: 0,
                    ..Default::default()
                }
                .into()
            }
            Request::FindCoordinator(request) => {
                let row = |key: &Text| Coordinator {
                    key: key.clone(),
                    node_id: NODE_ID,
                    error_code: code(refusal),
                    ..Default::default()
                };
                let coordinators = request.coordinator_keys.iter().map(row).collect();
                FindCoordinatorResponse {
                    coordinators,
                    ..Default::default()
                }
                .into()
            }
            Request::Produce(request) => state.produce(&request, refusal).into(),
            Request::Fetch(request) => state.fetch(&request, refusal).into(),
            Request::ListOffsets(request) => state.list_offsets(&request, refusal).into(),
            request => state.group_request(request, refusal),
        }
    }

    fn api_versions_response(&self) -> ApiVersionsResponse {
        let row = |range: &ApiVersionRange| ApiVersion {
            api_key: range.api_key.code(),
            min_version: *range.advertised.start(),
            max_version: *range.advertised.end(),
            ..Default::default()
        };
        ApiVersionsResponse {
            api_keys: self.versions.iter().map(row).collect(),
            ..Default::default()
        }
    }

    /// A fetch that finds nothing waits for something to be appended.
    async fn answer(&self, request: Request, fault: Option<Fault>) -> Answer {
        if matches!(fault, Some(Fault::Close)) {
            return Answer::Close;
        }
        if let Request::Fetch(fetch) = &request
            && fault.is_none()
        {
            let appended = self.appended.notified();
            if !self.state().has_records_for(fetch) {
                let wait = Duration::from_millis(u64::try_from(fetch.max_wait_ms).unwrap_or(0));
                // Over or not, what there is now is the answer.
                let _ = tokio::time::timeout(wait, appended).await;
            }
        }
        let mut response = self.respond(request, fault.as_ref());
        self.wake();
        match fault {
            Some(Fault::CloseAfter) => Answer::Close,
            Some(Fault::RefuseAfter(refused)) => {
                if let Response::Produce(response) = &mut response {
                    let rows = response
                        .responses
                        .iter_mut()
                        .flat_map(|topic| &mut topic.partition_responses);
                    rows.for_each(|row| row.error_code = refused.code());
                }
                Answer::now(response)
            }
            _ => Answer::now(response),
        }
    }
}

pub(crate) fn code(refusal: Option<ErrorCode>) -> i16 {
    refusal.unwrap_or(ErrorCode::None).code()
}

impl State {
    fn metadata(&self, request: &MetadataRequest, refusal: Option<ErrorCode>) -> MetadataResponse {
        let (host, port) = self.address.clone().unwrap_or_else(|| ("127.0.0.1".to_owned(), 9092));
        let node = MetadataResponseBroker {
            node_id: NODE_ID,
            host: Text::from(host),
            port,
            ..Default::default()
        };
        let names: Vec<String> = match &request.topics {
            None => self.topics.keys().map(ToString::to_string).collect(),
            Some(rows) => rows.iter().map(|row| row.name.as_deref().unwrap().to_owned()).collect(),
        };
        MetadataResponse {
            brokers: vec![node],
            controller_id: NODE_ID,
            topics: names.iter().map(|name| self.metadata_of(name, refusal)).collect(),
            ..Default::default()
        }
    }

    fn metadata_of(&self, name: &str, refusal: Option<ErrorCode>) -> MetadataResponseTopic {
        let Some(found) = self.topics.get(name).filter(|_| refusal.is_none()) else {
            return MetadataResponseTopic {
                name: Some(Text::from(name)),
                error_code: refusal.unwrap_or(ErrorCode::UnknownTopicOrPartition).code(),
                ..Default::default()
            };
        };
        let partition = |(index, _)| MetadataResponsePartition {
            partition_index: index,
            leader_id: found.leader,
            leader_epoch: 0,
            replica_nodes: vec![NODE_ID],
            isr_nodes: vec![NODE_ID],
            ..Default::default()
        };
        MetadataResponseTopic {
            name: Some(Text::from(name)),
            topic_id: found.id,
            partitions: (0..).zip(&found.partitions).map(partition).collect(),
            ..Default::default()
        }
    }
}

impl Dispatch for FakeNode {
    fn api_versions(&self) -> &[ApiVersionRange] {
        &self.versions
    }

    fn dispatch(self: Arc<Self>, context: RequestContext, request: Request) -> DispatchFuture {
        let api_key = request.api_key();
        let principal = context.principal.name.to_string();
        self.state().asked.push((api_key, context.api_version, principal));
        let fault = self.state().faults.get_mut(&api_key).and_then(VecDeque::pop_front);
        Box::pin(async move { self.answer(request, fault).await })
    }
}
