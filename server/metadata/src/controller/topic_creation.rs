//! CreateTopics: names, configuration and partitions of new topics, all or nothing for each topic.
//!
//! The records of all topics of a request are one batch: Topic, its Configs, its Partitions, then the next topic's.
//! Which check comes first, and its words, are those of Kafka 4.4.0.

use std::collections::{BTreeMap, BTreeSet};

use model::{BrokerId, ErrorCode, TopicName, TopicNameError};
use protocol::internal_records::metadata::{ConfigRecord, MetadataRecord, TopicRecord};
use protocol::messages::create_topics_request::{CreatableTopic, CreateTopicsRequest};
use protocol::messages::create_topics_response::{CreatableTopicConfigs, CreatableTopicResult, CreateTopicsResponse};

use super::{Controller, OpContext, Outcome, PARTITIONS_PER_REQUEST_MAX, Refusal, check_batch};
use crate::config_keys::{ConfigEntry, Configs, Described, check_topic, describe};
use crate::image::ConfigResourceType;

/// The log that this topic would be is the controller's own.
const METADATA_TOPIC: &str = "__cluster_metadata";

/// A topic that will be.
struct NewTopic {
    records: Vec<MetadataRecord>,
    result: CreatableTopicResult,
}

impl Controller {
    /// # Errors
    /// If the request as a whole asks for too much. What is wrong with single topics is in the response.
    pub fn create_topics(
        &self,
        request: &CreateTopicsRequest,
        context: &mut OpContext<'_>,
    ) -> Result<Outcome<CreateTopicsResponse>, Refusal> {
        self.check_partition_total(request)?;
        let mut outcome = Outcome::of(CreateTopicsResponse::default());
        let mut seen = BTreeSet::new();
        for topic in &request.topics {
            if !seen.insert(&topic.name) {
                continue;
            }
            let repeated = request.topics.iter().filter(|other| other.name == topic.name).count() > 1;
            let created = if repeated {
                Err(Refusal::new(ErrorCode::InvalidRequest, "Duplicate topic name."))
            } else {
                self.create_topic(topic, context)
            };
            let result = match created {
                Ok(new) => {
                    outcome.records.extend(new.records);
                    new.result
                }
                Err(refusal) => CreatableTopicResult {
                    name: topic.name.clone(),
                    error_code: refusal.code.code(),
                    error_message: refusal.message.map(Into::into),
                    ..CreatableTopicResult::default()
                },
            };
            outcome.response.topics.push(result);
        }
        check_batch(&outcome.records)?;
        if request.validate_only {
            outcome.records.clear();
        }
        Ok(outcome)
    }

    fn check_partition_total(&self, request: &CreateTopicsRequest) -> Result<(), Refusal> {
        let partitions = request
            .topics
            .iter()
            .map(|topic| match (topic.assignments.len(), topic.num_partitions) {
                (0, -1) => usize::try_from(self.options.default_partitions).unwrap_or(0),
                (0, count) => usize::try_from(count).unwrap_or(0),
                (assignments, _) => assignments,
            });
        if partitions.sum::<usize>() > PARTITIONS_PER_REQUEST_MAX {
            let message = "Excessively large number of partitions per request.";
            return Err(Refusal::new(ErrorCode::PolicyViolation, message));
        }
        Ok(())
    }

    fn create_topic(&self, topic: &CreatableTopic, context: &mut OpContext<'_>) -> Result<NewTopic, Refusal> {
        self.check_name(&topic.name)?;
        let configs = self.check_configs(topic)?;
        let assignments = self.assignments(topic, context)?;
        let topic_id = context.entropy.uuid();
        let replication_factor = assignments.first().map_or(0, Vec::len);
        let partitions = self.partition_records(topic_id, 0, assignments)?;
        let result = CreatableTopicResult {
            name: topic.name.clone(),
            topic_id,
            error_message: None,
            num_partitions: i32::try_from(partitions.len()).unwrap_or(i32::MAX),
            replication_factor: i16::try_from(replication_factor).unwrap_or(i16::MAX),
            configs: Some(self.described(&configs)),
            ..CreatableTopicResult::default()
        };
        let record = TopicRecord {
            name: topic.name.clone(),
            topic_id,
            ..TopicRecord::default()
        };
        let mut records = vec![MetadataRecord::from(record)];
        records.extend(topic.configs.iter().map(|config| {
            MetadataRecord::from(ConfigRecord {
                resource_type: ConfigResourceType::Topic.wire(),
                resource_name: topic.name.clone(),
                name: config.name.clone(),
                value: config.value.clone(),
                ..ConfigRecord::default()
            })
        }));
        records.extend(partitions);
        Ok(NewTopic { records, result })
    }

    fn check_name(&self, name: &str) -> Result<(), Refusal> {
        if name == METADATA_TOPIC {
            let message = format!("Creation of internal topic {METADATA_TOPIC} is prohibited.");
            return Err(Refusal::new(ErrorCode::InvalidRequest, message));
        }
        if self.image().topics.by_name(name).is_some() {
            let message = format!("Topic '{name}' already exists.");
            return Err(Refusal::new(ErrorCode::TopicAlreadyExists, message));
        }
        let invalid = |what: String| {
            Refusal::new(
                ErrorCode::InvalidTopicException,
                format!("Topic name is invalid: {what}"),
            )
        };
        let name = TopicName::new(name).map_err(|error| {
            invalid(match error {
                TopicNameError::Empty => "the empty string is not allowed".to_owned(),
                TopicNameError::Dots => format!("'{name}' is not allowed"),
                TopicNameError::TooLong(_) => {
                    let most = TopicName::LENGTH_MAX;
                    format!("the length of '{name}' is longer than the max allowed length {most}")
                }
                TopicNameError::Character(_) => {
                    format!("'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'")
                }
            })
        })?;
        if name.as_str().contains(['.', '_']) {
            let form = name.collision_form();
            let mut topics = self.image().topics.iter();
            if let Some(other) = topics.find(|topic| topic.name.collision_form() == form) {
                let message = format!("Topic '{name}' collides with existing topic: {}", other.name);
                return Err(Refusal::new(ErrorCode::InvalidTopicException, message));
            }
        }
        Ok(())
    }

    fn check_configs(&self, topic: &CreatableTopic) -> Result<Configs, Refusal> {
        let nulls = topic.configs.iter().filter(|config| config.value.is_none());
        let nulls: Vec<&str> = nulls.map(|config| &*config.name).collect();
        if !nulls.is_empty() {
            let message = format!("Null value not supported for topic configs: {}", nulls.join(","));
            return Err(Refusal::new(ErrorCode::InvalidConfig, message));
        }
        let values = topic
            .configs
            .iter()
            .filter_map(|config| Some((config.name.to_string(), config.value.as_ref()?.to_string())));
        let values: Configs = values.collect();
        let checked = check_topic(&values, &self.own_layers());
        checked.map_err(|error| Refusal::new(error.code(), error.to_string()))?;
        Ok(values)
    }

    fn assignments(&self, topic: &CreatableTopic, context: &mut OpContext<'_>) -> Result<Vec<Vec<BrokerId>>, Refusal> {
        if !topic.assignments.is_empty() {
            return self.assignments_by_hand(topic);
        }
        let replication_factor = match topic.replication_factor {
            -1 => self.options.default_replication_factor,
            given => given,
        };
        let replication_factor = usize::try_from(replication_factor).ok().filter(|factor| *factor > 0);
        let Some(replication_factor) = replication_factor else {
            let message = "Replication factor must be larger than 0, or -1 to use the default value.";
            return Err(Refusal::new(ErrorCode::InvalidReplicationFactor, message));
        };
        let partitions = match topic.num_partitions {
            -1 => self.options.default_partitions,
            given => given,
        };
        let Some(partitions) = usize::try_from(partitions).ok().filter(|partitions| *partitions > 0) else {
            let message = "Number of partitions was set to an invalid non-positive value.";
            return Err(Refusal::new(ErrorCode::InvalidPartitions, message));
        };
        self.placed(partitions, replication_factor, context.entropy)
    }

    fn assignments_by_hand(&self, topic: &CreatableTopic) -> Result<Vec<Vec<BrokerId>>, Refusal> {
        let unset = |what: &str| {
            let message = format!("A manual partition assignment was specified, but {what} was not set to -1.");
            Err(Refusal::new(ErrorCode::InvalidRequest, message))
        };
        if topic.replication_factor != -1 {
            return unset("replication factor");
        }
        if topic.num_partitions != -1 {
            return unset("numPartitions");
        }
        let refuse = |message: String| Err(Refusal::new(ErrorCode::InvalidReplicaAssignment, message));
        let mut assignments = BTreeMap::new();
        let mut replication_factor = None;
        for assignment in &topic.assignments {
            let index = assignment.partition_index;
            if assignments.contains_key(&index) {
                return refuse(format!(
                    "Found multiple manual partition assignments for partition {index}"
                ));
            }
            let place = usize::try_from(index).unwrap_or(0);
            let replicas = self.by_hand(place, &assignment.broker_ids, replication_factor)?;
            replication_factor = Some(replicas.len());
            assignments.insert(index, replicas);
        }
        let consecutive = (0..)
            .zip(assignments.keys())
            .all(|(expected, index)| expected == *index);
        if !consecutive {
            return refuse("partitions should be a consecutive 0-based integer sequence".to_owned());
        }
        Ok(assignments.into_values().collect())
    }

    fn described(&self, configs: &Configs) -> Vec<CreatableTopicConfigs> {
        let described = |entry: ConfigEntry| CreatableTopicConfigs {
            name: entry.name.into(),
            value: entry.value.filter(|_| !entry.is_sensitive).map(Into::into),
            read_only: entry.read_only,
            config_source: entry.source.code(),
            is_sensitive: entry.is_sensitive,
            ..CreatableTopicConfigs::default()
        };
        let entries = describe(Described::Topic(configs), &self.own_layers(), None);
        entries.into_iter().map(described).collect()
    }
}
