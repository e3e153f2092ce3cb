//! A node for tests that keeps batches in memory: enough of Metadata, Produce, ListOffsets and Fetch, and of administration.

pub(crate) mod admin;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use model::ErrorCode;
use model::record_batch::{BatchHeader, DecompressionLimit, Record, records};
use network::{Answer, ApiVersionRange, Dispatch, DispatchFuture, RequestContext};
use protocol::messages::fetch_request::FetchRequest;
use protocol::messages::fetch_response::{FetchResponse, FetchableTopicResponse, PartitionData};
use protocol::messages::init_producer_id_response::InitProducerIdResponse;
use protocol::messages::list_offsets_request::ListOffsetsRequest;
use protocol::messages::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsResponse, ListOffsetsTopicResponse,
};
use protocol::messages::metadata_request::MetadataRequest;
use protocol::messages::metadata_response::{
    MetadataResponse, MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use protocol::messages::produce_request::ProduceRequest;
use protocol::messages::produce_response::{PartitionProduceResponse, ProduceResponse, TopicProduceResponse};
use protocol::{ApiKey, Request, Text};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout_at};

pub(crate) const NODE_ID: i32 = 1;
const EARLIEST: i64 = -2;

#[derive(Clone, Default)]
struct Log {
    /// Each with its base offset in place, and its last offset.
    batches: Vec<(Bytes, i64)>,
    start: i64,
    /// Whether what it keeps cannot be read.
    is_damaged: bool,
}

impl Log {
    fn end(&self) -> i64 {
        self.batches.last().map_or(0, |(_, last)| last + 1)
    }
}

pub(crate) struct FakeNode {
    versions: Vec<ApiVersionRange>,
    topics: Mutex<BTreeMap<String, Vec<Log>>>,
    created: Mutex<Vec<admin::Created>>,
    appended: Notify,
    /// How many fetches began to wait for records.
    polls: watch::Sender<usize>,
}

impl FakeNode {
    /// With topics of so many partitions.
    pub(crate) fn with(topics: &[(&str, usize)]) -> Arc<Self> {
        let topics = topics
            .iter()
            .map(|(name, partitions)| ((*name).to_owned(), vec![Log::default(); *partitions]));
        // Versions that speak of topics by name.
        let versions = [
            ApiVersionRange::plain(ApiKey::Produce, 9..=12),
            ApiVersionRange::plain(ApiKey::Fetch, 4..=12),
            ApiVersionRange::plain(ApiKey::ListOffsets, 1..=7),
            ApiVersionRange::plain(ApiKey::Metadata, 8..=9),
            ApiVersionRange::plain(ApiKey::InitProducerId, 0..=4),
            ApiVersionRange::plain(ApiKey::CreateTopics, 5..=7),
            ApiVersionRange::plain(ApiKey::DeleteTopics, 4..=6),
            ApiVersionRange::plain(ApiKey::CreatePartitions, 2..=3),
            ApiVersionRange::plain(ApiKey::DescribeConfigs, 3..=4),
            ApiVersionRange::plain(ApiKey::DescribeCluster, 0..=0),
        ];
        Arc::new(FakeNode {
            versions: versions.to_vec(),
            topics: Mutex::new(topics.collect()),
            created: Mutex::default(),
            appended: Notify::new(),
            polls: watch::Sender::new(0),
        })
    }

    /// Comes back when so many fetches have begun to wait for records, all in all.
    pub(crate) async fn polled(&self, count: usize) {
        let mut polls = self.polls.subscribe();
        polls.wait_for(|polls| *polls >= count).await.unwrap();
    }

    pub(crate) fn delete_topic(&self, name: &str) {
        self.topics.lock().unwrap().remove(name);
        self.appended.notify_waiters();
    }

    /// Records below the offset are gone.
    pub(crate) fn set_log_start(&self, name: &str, partition: usize, start: i64) {
        self.topics.lock().unwrap().get_mut(name).unwrap()[partition].start = start;
    }

    /// From now on a partition cannot be fetched from.
    pub(crate) fn damage(&self, name: &str, partition: usize) {
        self.topics.lock().unwrap().get_mut(name).unwrap()[partition].is_damaged = true;
        self.appended.notify_waiters();
    }

    /// All records of the first partition of a topic, if it is there.
    pub(crate) fn records(&self, name: &str) -> Vec<Record> {
        let batches = self.log(name, 0).unwrap_or_default().batches;
        let limit = DecompressionLimit::DEFAULT;
        batches
            .iter()
            .flat_map(|(batch, _)| records(batch, limit).unwrap())
            .map(Result::unwrap)
            .collect()
    }

    /// Of the first partition; 0 without a topic.
    pub(crate) fn log_end(&self, name: &str) -> i64 {
        self.log(name, 0).map_or(0, |log| log.end())
    }

    fn log(&self, name: &str, partition: i32) -> Option<Log> {
        let topics = self.topics.lock().unwrap();
        topics.get(name)?.get(usize::try_from(partition).ok()?).cloned()
    }

    fn metadata(&self, request: &MetadataRequest) -> MetadataResponse {
        let topics = self.topics.lock().unwrap();
        let wanted: Vec<String> = match &request.topics {
            None => topics.keys().cloned().collect(),
            Some(wanted) => wanted
                .iter()
                .map(|topic| topic.name.as_deref().unwrap().to_owned())
                .collect(),
        };
        let rows = wanted.iter().map(|name| match topics.get(name) {
            Some(logs) => MetadataResponseTopic {
                name: Some(Text::from(name.as_str())),
                partitions: (0..i32::try_from(logs.len()).unwrap()).map(partition_row).collect(),
                ..Default::default()
            },
            None => MetadataResponseTopic {
                error_code: ErrorCode::UnknownTopicOrPartition.code(),
                name: Some(Text::from(name.as_str())),
                ..Default::default()
            },
        });
        MetadataResponse {
            brokers: vec![MetadataResponseBroker {
                node_id: NODE_ID,
                host: Text::from("localhost"),
                port: 9092,
                ..Default::default()
            }],
            controller_id: NODE_ID,
            topics: rows.collect(),
            ..Default::default()
        }
    }

    fn produce(&self, request: ProduceRequest) -> ProduceResponse {
        let mut response = ProduceResponse::default();
        for topic in request.topic_data {
            let rows = topic.partition_data.into_iter().map(|data| {
                let appended = self.append(&topic.name, data.index, &data.records.unwrap());
                PartitionProduceResponse {
                    index: data.index,
                    error_code: appended.err().unwrap_or(ErrorCode::None).code(),
                    base_offset: appended.unwrap_or(-1),
                    log_append_time_ms: -1,
                    ..Default::default()
                }
            });
            response.responses.push(TopicProduceResponse {
                partition_responses: rows.collect(),
                name: topic.name,
                ..Default::default()
            });
        }
        self.appended.notify_waiters();
        response
    }

    fn append(&self, topic: &str, partition: i32, batch: &Bytes) -> Result<i64, ErrorCode> {
        let mut topics = self.topics.lock().unwrap();
        let logs = topics.get_mut(topic).ok_or(ErrorCode::UnknownTopicOrPartition)?;
        let log = &mut logs[usize::try_from(partition).unwrap()];
        let base = log.end();
        let mut placed = batch.to_vec();
        placed[..8].copy_from_slice(&base.to_be_bytes());
        let last = BatchHeader::parse(&placed).unwrap().last_offset();
        log.batches.push((Bytes::from(placed), last.get()));
        Ok(base)
    }

    fn list_offsets(&self, request: ListOffsetsRequest) -> ListOffsetsResponse {
        let topics = request.topics.into_iter().map(|topic| ListOffsetsTopicResponse {
            partitions: topic
                .partitions
                .iter()
                .map(|row| {
                    let log = self.log(&topic.name, row.partition_index);
                    let code = log
                        .as_ref()
                        .map_or(ErrorCode::UnknownTopicOrPartition, |_| ErrorCode::None);
                    let log = log.unwrap_or_default();
                    ListOffsetsPartitionResponse {
                        partition_index: row.partition_index,
                        error_code: code.code(),
                        offset: if row.timestamp == EARLIEST {
                            log.start
                        } else {
                            log.end()
                        },
                        ..Default::default()
                    }
                })
                .collect(),
            name: topic.name,
            ..Default::default()
        });
        ListOffsetsResponse {
            topics: topics.collect(),
            ..Default::default()
        }
    }

    async fn fetch(&self, request: FetchRequest) -> FetchResponse {
        let until = Instant::now() + Duration::from_millis(u64::try_from(request.max_wait_ms).unwrap());
        loop {
            let mut appended = std::pin::pin!(self.appended.notified());
            appended.as_mut().enable();
            let response = self.fetch_now(&request);
            let mut rows = response.responses.iter().flat_map(|topic| &topic.partitions);
            let has_news =
                rows.any(|row| row.error_code != 0 || row.records.as_ref().is_some_and(|all| !all.is_empty()));
            if has_news || Instant::now() >= until {
                return response;
            }
            self.polls.send_modify(|polls| *polls += 1);
            // What comes when the time is over is an answer, too.
            let _ = timeout_at(until, appended).await;
        }
    }

    fn fetch_now(&self, request: &FetchRequest) -> FetchResponse {
        let topics = request.topics.iter().map(|topic| FetchableTopicResponse {
            topic: topic.topic.clone(),
            partitions: topic
                .partitions
                .iter()
                .map(|row| partition_data(self.log(&topic.topic, row.partition), row.partition, row.fetch_offset))
                .collect(),
            ..Default::default()
        });
        FetchResponse {
            responses: topics.collect(),
            ..Default::default()
        }
    }
}

fn partition_row(index: i32) -> MetadataResponsePartition {
    MetadataResponsePartition {
        partition_index: index,
        leader_id: NODE_ID,
        replica_nodes: vec![NODE_ID],
        isr_nodes: vec![NODE_ID],
        ..Default::default()
    }
}

fn partition_data(log: Option<Log>, index: i32, from: i64) -> PartitionData {
    let error = match &log {
        None => ErrorCode::UnknownTopicOrPartition,
        Some(log) if from < log.start || from > log.end() => ErrorCode::OffsetOutOfRange,
        Some(log) if log.is_damaged => ErrorCode::CorruptMessage,
        Some(_) => ErrorCode::None,
    };
    let log = log.unwrap_or_default();
    let wanted = log.batches.iter().filter(|(_, last)| *last >= from);
    let records: Vec<u8> = wanted.flat_map(|(batch, _)| batch.iter().copied()).collect();
    PartitionData {
        partition_index: index,
        error_code: error.code(),
        high_watermark: log.end(),
        last_stable_offset: log.end(),
        log_start_offset: log.start,
        records: (error == ErrorCode::None).then(|| Bytes::from(records)),
        ..Default::default()
    }
}

impl Dispatch for FakeNode {
    fn api_versions(&self) -> &[ApiVersionRange] {
        &self.versions
    }

    fn dispatch(self: Arc<Self>, _: RequestContext, request: Request) -> DispatchFuture {
        Box::pin(async move {
            match request {
                Request::Metadata(request) => Answer::now(self.metadata(&request)),
                Request::Produce(request) => Answer::now(self.produce(request)),
                Request::ListOffsets(request) => Answer::now(self.list_offsets(request)),
                Request::Fetch(request) => Answer::now(self.fetch(request).await),
                Request::InitProducerId(_) => Answer::now(InitProducerIdResponse {
                    producer_id: 7,
                    ..Default::default()
                }),
                Request::CreateTopics(request) => Answer::now(self.create_topics(&request)),
                Request::DeleteTopics(request) => Answer::now(self.delete_topics(&request)),
                Request::CreatePartitions(request) => Answer::now(self.create_partitions(&request)),
                Request::DescribeConfigs(request) => Answer::now(self.describe_configs(&request)),
                Request::DescribeCluster(_) => Answer::now(FakeNode::describe_cluster()),
                _ => Answer::Close,
            }
        })
    }
}
