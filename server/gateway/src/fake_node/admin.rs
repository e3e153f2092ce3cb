//! Topics that come and go: CreateTopics, DeleteTopics, CreatePartitions, DescribeConfigs, DescribeCluster.

use model::ErrorCode;
use protocol::Text;
use protocol::messages::create_partitions_request::CreatePartitionsRequest;
use protocol::messages::create_partitions_response::{CreatePartitionsResponse, CreatePartitionsTopicResult};
use protocol::messages::create_topics_request::CreateTopicsRequest;
use protocol::messages::create_topics_response::{CreatableTopicResult, CreateTopicsResponse};
use protocol::messages::delete_topics_request::DeleteTopicsRequest;
use protocol::messages::delete_topics_response::{DeletableTopicResult, DeleteTopicsResponse};
use protocol::messages::describe_cluster_response::{DescribeClusterBroker, DescribeClusterResponse};
use protocol::messages::describe_configs_request::DescribeConfigsRequest;
use protocol::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResponse, DescribeConfigsResult,
};

use super::{FakeNode, Log, NODE_ID};

/// How many copies the node wants of the cluster's own topics.
pub(crate) const INTERNAL_REPLICATION: i16 = 1;

const RESOURCE_TOPIC: i8 = 2;

/// A topic that was created, as it was asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Created {
    pub(crate) name: String,
    pub(crate) partitions: i32,
    pub(crate) replication_factor: i16,
    /// As in `cleanup.policy=compact`.
    pub(crate) configs: Vec<String>,
}

impl FakeNode {
    /// The topics that were created so far, in their order.
    pub(crate) fn created(&self) -> Vec<Created> {
        self.created.lock().unwrap().clone()
    }

    /// How many partitions a topic has, if it is there.
    pub(crate) fn partitions(&self, name: &str) -> Option<usize> {
        self.topics.lock().unwrap().get(name).map(Vec::len)
    }

    pub(super) fn create_topics(&self, request: &CreateTopicsRequest) -> CreateTopicsResponse {
        let rows = request.topics.iter().map(|wanted| {
            let name = wanted.name.to_string();
            let mut topics = self.topics.lock().unwrap();
            let code = if topics.contains_key(&name) {
                ErrorCode::TopicAlreadyExists
            } else {
                let count = usize::try_from(wanted.num_partitions).unwrap();
                topics.insert(name.clone(), vec![Log::default(); count]);
                let configs = wanted.configs.iter();
                self.created.lock().unwrap().push(Created {
                    name,
                    partitions: wanted.num_partitions,
                    replication_factor: wanted.replication_factor,
                    configs: configs
                        .map(|config| format!("{}={}", config.name, config.value.as_deref().unwrap()))
                        .collect(),
                });
                ErrorCode::None
            };
            CreatableTopicResult {
                name: wanted.name.clone(),
                error_code: code.code(),
                ..Default::default()
            }
        });
        CreateTopicsResponse {
            topics: rows.collect(),
            ..Default::default()
        }
    }

    pub(super) fn delete_topics(&self, request: &DeleteTopicsRequest) -> DeleteTopicsResponse {
        let rows = request.topics.iter().map(|wanted| {
            let gone = self.topics.lock().unwrap().remove(wanted.name.as_deref().unwrap());
            let code = gone.map_or(ErrorCode::UnknownTopicOrPartition, |_| ErrorCode::None);
            DeletableTopicResult {
                name: wanted.name.clone(),
                error_code: code.code(),
                ..Default::default()
            }
        });
        DeleteTopicsResponse {
            responses: rows.collect(),
            ..Default::default()
        }
    }

    pub(super) fn create_partitions(&self, request: &CreatePartitionsRequest) -> CreatePartitionsResponse {
        let rows = request.topics.iter().map(|wanted| {
            let count = usize::try_from(wanted.count).unwrap();
            let mut topics = self.topics.lock().unwrap();
            topics
                .get_mut(&wanted.name.to_string())
                .unwrap()
                .resize(count, Log::default());
            CreatePartitionsTopicResult {
                name: wanted.name.clone(),
                ..Default::default()
            }
        });
        CreatePartitionsResponse {
            results: rows.collect(),
            ..Default::default()
        }
    }

    /// Whatever is asked for: how many copies there are of the cluster's own topics.
    /// Of a topic what it was created with; of a broker what it wants of topics.
    pub(super) fn describe_configs(&self, request: &DescribeConfigsRequest) -> DescribeConfigsResponse {
        let created = self.created();
        let rows = request.resources.iter().map(|wanted| {
            let configs = match wanted.resource_type {
                RESOURCE_TOPIC => created
                    .iter()
                    .rfind(|topic| *topic.name == *wanted.resource_name)
                    .map(|topic| topic.configs.clone())
                    .unwrap_or_default(),
                _ => vec![format!("offsets.topic.replication.factor={INTERNAL_REPLICATION}")],
            };
            let configs = configs.iter().map(|config| {
                let (name, value) = config.split_once('=').unwrap();
                DescribeConfigsResourceResult {
                    name: Text::from(name),
                    value: Some(Text::from(value)),
                    ..Default::default()
                }
            });
            DescribeConfigsResult {
                resource_type: wanted.resource_type,
                resource_name: wanted.resource_name.clone(),
                configs: configs.collect(),
                ..Default::default()
            }
        });
        DescribeConfigsResponse {
            results: rows.collect(),
            ..Default::default()
        }
    }

    pub(super) fn describe_cluster() -> DescribeClusterResponse {
        DescribeClusterResponse {
            controller_id: NODE_ID,
            brokers: vec![DescribeClusterBroker {
                broker_id: NODE_ID,
                host: Text::from("localhost"),
                port: 9092,
                ..Default::default()
            }],
            ..Default::default()
        }
    }
}
