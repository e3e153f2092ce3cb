//! Topics: list, look at, create, delete, give more partitions.

use std::collections::BTreeMap;
use std::time::Duration;

use model::{BrokerId, PartitionIndex, TopicId, TopicName};
use protocol::ApiKey;
use protocol::Text;
use protocol::messages::create_partitions_request::{CreatePartitionsRequest, CreatePartitionsTopic};
use protocol::messages::create_topics_request::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig, CreateTopicsRequest,
};
use protocol::messages::create_topics_response::CreatableTopicResult;
use protocol::messages::delete_topics_request::{DeleteTopicState, DeleteTopicsRequest};
use protocol::messages::metadata_request::MetadataRequestTopic;

use super::{ConfigSource, answer_of, may_pass};
use crate::retry::Retry;
use crate::routing::topic_from;
use crate::{CallContext, Client, Error, Target, Topic};

/// How long the controller may take for a change.
const CHANGE_WAIT_MS: i32 = 30_000;
/// How long a new topic may take to be seen by brokers before its creation is reported all the same.
const VISIBLE_WAIT_MAX: Duration = Duration::from_secs(5);

/// A topic to be created.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewTopic {
    pub name: TopicName,
    /// `None`: as many as the cluster's default says.
    pub partitions: Option<u32>,
    /// `None`: the cluster's default.
    pub replication_factor: Option<u16>,
    /// The replicas of each partition, in place of both numbers; empty: the controller places them.
    pub assignments: BTreeMap<PartitionIndex, Vec<BrokerId>>,
    pub configs: BTreeMap<String, String>,
}

impl NewTopic {
    #[must_use]
    pub fn named(name: TopicName) -> Self {
        NewTopic {
            name,
            partitions: None,
            replication_factor: None,
            assignments: BTreeMap::new(),
            configs: BTreeMap::new(),
        }
    }
}

/// What a new topic got, as far as the broker tells.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CreatedTopic {
    pub name: TopicName,
    /// Zero if it was only checked whether the topic could be created.
    pub id: TopicId,
    pub partitions: Option<u32>,
    pub replication_factor: Option<u16>,
    /// Every configuration in force: value and where it comes from.
    pub configs: BTreeMap<String, (Option<String>, ConfigSource)>,
}

impl Client {
    /// All topics that the principal may see, by name.
    ///
    /// # Errors
    /// Those of [`Client::call`].
    pub async fn list_topics(&self, context: &CallContext) -> Result<Vec<Topic>, Error> {
        let response = self.ask_metadata(context, None, false).await?;
        let rows = response.topics.iter().filter_map(|row| {
            let name = TopicName::new(row.name.as_deref()?).ok()?;
            Some(topic_from(row, name))
        });
        let mut topics: Vec<Topic> = rows.collect();
        topics.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(topics)
    }

    /// A topic as it is now.
    ///
    /// # Errors
    /// UNKNOWN_TOPIC_OR_PARTITION if there is none, and those of [`Client::call`].
    pub async fn describe_topic(&self, context: &CallContext, name: &TopicName) -> Result<Topic, Error> {
        let mut retry = Retry::within(self.options().call_wait_max);
        loop {
            match self.ask_topic(context, name, false).await {
                Err(error) if may_pass(&error) && retry.pause().await => {}
                done => return done.map(|topic| topic.as_ref().clone()),
            }
        }
    }

    /// Creates a topic, or with `validate_only` says whether it could be created. It can be used at once: the call comes
    /// back when its partitions have leaders.
    ///
    /// # Errors
    /// TOPIC_ALREADY_EXISTS, INVALID_PARTITIONS, INVALID_REPLICATION_FACTOR, INVALID_CONFIG and so on, with the
    /// controller's explanation; and those of [`Client::call`].
    pub async fn create_topic(
        &self,
        context: &CallContext,
        topic: &NewTopic,
        validate_only: bool,
    ) -> Result<CreatedTopic, Error> {
        let request = CreateTopicsRequest {
            topics: vec![creatable(topic)],
            timeout_ms: CHANGE_WAIT_MS,
            validate_only,
            ..Default::default()
        };
        let created = self
            .administer(context, Target::Controller, request, |response| {
                let response = answer_of!(response, CreateTopics);
                let row = response.topics.iter().find(|row| row.name == topic.name.as_str());
                let row = row.ok_or_else(|| lacking(ApiKey::CreateTopics, &topic.name))?;
                Error::check(row.error_code, row.error_message.as_deref(), || {
                    format!("creating topic {}", topic.name)
                })?;
                Ok(created(row, topic.name.clone()))
            })
            .await?;
        if !validate_only {
            self.await_leaders(context, &topic.name, 1).await;
        }
        Ok(created)
    }

    /// Waits until the broker that answers knows of so many partitions, and of a leader for each.
    async fn await_leaders(&self, context: &CallContext, name: &TopicName, partitions_min: usize) {
        let mut retry = Retry::within(VISIBLE_WAIT_MAX);
        loop {
            let seen = self.ask_topic(context, name, false).await;
            let is_ready = seen.is_ok_and(|topic| {
                topic.partitions.len() >= partitions_min
                    && topic.partitions.iter().all(|partition| partition.leader.is_some())
            });
            if is_ready {
                return;
            }
            self.routing().forget_topic(name);
            if !retry.pause().await {
                tracing::warn!(topic = %name, "created, but not all of its partitions have leaders yet");
                return;
            }
        }
    }

    /// Deletes a topic with all its records.
    ///
    /// # Errors
    /// UNKNOWN_TOPIC_OR_PARTITION, TOPIC_DELETION_DISABLED and so on, and those of [`Client::call`].
    pub async fn delete_topic(&self, context: &CallContext, name: &TopicName) -> Result<(), Error> {
        let topic = DeleteTopicState {
            name: Some(Text::from(name.as_str())),
            ..Default::default()
        };
        let request = DeleteTopicsRequest {
            topics: vec![topic],
            timeout_ms: CHANGE_WAIT_MS,
            ..Default::default()
        };
        let deleted = self
            .administer(context, Target::Controller, request, |response| {
                let response = answer_of!(response, DeleteTopics);
                let row = response
                    .responses
                    .iter()
                    .find(|row| row.name.as_deref() == Some(name.as_str()));
                let row = row.ok_or_else(|| lacking(ApiKey::DeleteTopics, name))?;
                Error::check(row.error_code, row.error_message.as_deref(), || {
                    format!("deleting topic {name}")
                })
            })
            .await;
        self.routing().forget_topic(name);
        deleted
    }

    /// Gives a topic more partitions, `count` in all. Keys will hash to other partitions than before.
    ///
    /// # Errors
    /// INVALID_PARTITIONS if it has as many already, and so on; and those of [`Client::call`].
    pub async fn create_partitions(
        &self,
        context: &CallContext,
        name: &TopicName,
        count: u32,
        validate_only: bool,
    ) -> Result<(), Error> {
        let topic = CreatePartitionsTopic {
            name: Text::from(name.as_str()),
            count: i32::try_from(count).unwrap_or(i32::MAX),
            assignments: None,
            ..Default::default()
        };
        let request = CreatePartitionsRequest {
            topics: vec![topic],
            timeout_ms: CHANGE_WAIT_MS,
            validate_only,
            ..Default::default()
        };
        self.administer(context, Target::Controller, request, |response| {
            let response = answer_of!(response, CreatePartitions);
            let row = response.results.iter().find(|row| row.name == name.as_str());
            let row = row.ok_or_else(|| lacking(ApiKey::CreatePartitions, name))?;
            Error::check(row.error_code, row.error_message.as_deref(), || {
                format!("adding partitions to topic {name}")
            })
        })
        .await?;
        if !validate_only {
            self.routing().forget_topic(name);
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            self.await_leaders(context, name, count).await;
        }
        Ok(())
    }

    /// Topics by name or id as Metadata takes them: for those who have an id only.
    ///
    /// # Errors
    /// UNKNOWN_TOPIC_ID, and those of [`Client::call`].
    pub async fn topic_by_id(&self, context: &CallContext, id: TopicId) -> Result<Topic, Error> {
        let wanted = MetadataRequestTopic {
            topic_id: id,
            name: None,
            ..Default::default()
        };
        let response = self.ask_metadata(context, Some(vec![wanted]), false).await?;
        let row = response.topics.iter().find(|row| row.topic_id == id);
        let row = row.ok_or_else(|| Error::MalformedAnswer {
            api_key: ApiKey::Metadata,
            lacking: format!("topic id {id}"),
        })?;
        Error::check(row.error_code, None, || format!("looking up topic id {id}"))?;
        let name = row.name.as_deref().and_then(|name| TopicName::new(name).ok());
        let name = name.ok_or_else(|| Error::MalformedAnswer {
            api_key: ApiKey::Metadata,
            lacking: format!("the name of topic id {id}"),
        })?;
        Ok(topic_from(row, name))
    }
}

fn lacking(api_key: ApiKey, name: &TopicName) -> Error {
    Error::MalformedAnswer {
        api_key,
        lacking: format!("topic {name}"),
    }
}

fn creatable(topic: &NewTopic) -> CreatableTopic {
    let is_placed = !topic.assignments.is_empty();
    let partitions = topic.partitions.filter(|_| !is_placed);
    let replication_factor = topic.replication_factor.filter(|_| !is_placed);
    CreatableTopic {
        name: Text::from(topic.name.as_str()),
        num_partitions: partitions.map_or(-1, |count| i32::try_from(count).unwrap_or(i32::MAX)),
        replication_factor: replication_factor.map_or(-1, |factor| i16::try_from(factor).unwrap_or(i16::MAX)),
        assignments: topic
            .assignments
            .iter()
            .map(|(partition, brokers)| CreatableReplicaAssignment {
                partition_index: partition.get(),
                broker_ids: brokers.iter().map(|broker| broker.get()).collect(),
                ..Default::default()
            })
            .collect(),
        configs: topic
            .configs
            .iter()
            .map(|(name, value)| CreatableTopicConfig {
                name: Text::from(name),
                value: Some(Text::from(value)),
                ..Default::default()
            })
            .collect(),
        ..Default::default()
    }
}

fn created(row: &CreatableTopicResult, name: TopicName) -> CreatedTopic {
    let configs = row.configs.iter().flatten().map(|config| {
        let value = config.value.as_ref().map(ToString::to_string);
        (
            config.name.to_string(),
            (value, ConfigSource::from_wire(config.config_source)),
        )
    });
    CreatedTopic {
        name,
        id: row.topic_id,
        partitions: u32::try_from(row.num_partitions).ok(),
        replication_factor: u16::try_from(row.replication_factor).ok(),
        configs: configs.collect(),
    }
}
