//! DeleteTopics: by name, or from version 6 on by id too. The topic's configuration goes with it.

use std::collections::BTreeSet;

use model::{ErrorCode, TopicId};
use protocol::Text;
use protocol::internal_records::metadata::RemoveTopicRecord;
use protocol::messages::delete_topics_request::{DeleteTopicState, DeleteTopicsRequest};
use protocol::messages::delete_topics_response::{DeletableTopicResult, DeleteTopicsResponse};

use super::{Controller, Outcome, Refusal, check_batch};

/// Versions up to this one name topics in a list of their own.
const LAST_VERSION_OF_NAMES: i16 = 5;

impl Controller {
    /// # Errors
    /// If topics cannot be deleted at all, or the request asks for too much at once.
    pub fn delete_topics(
        &self,
        request: &DeleteTopicsRequest,
        version: i16,
    ) -> Result<Outcome<DeleteTopicsResponse>, Refusal> {
        if !self.options.topic_deletion_enabled {
            return Err(Refusal::bare(ErrorCode::TopicDeletionDisabled));
        }
        let by_name = |name: &Text| DeleteTopicState {
            name: Some(name.clone()),
            ..DeleteTopicState::default()
        };
        let topics: Vec<DeleteTopicState> = if version <= LAST_VERSION_OF_NAMES {
            request.topic_names.iter().map(by_name).collect()
        } else {
            request.topics.clone()
        };
        let mut outcome = Outcome::of(DeleteTopicsResponse::default());
        let mut removed = BTreeSet::new();
        for topic in &topics {
            let decided = self.find(topic, &topics).and_then(|(name, id)| {
                let duplicate = Refusal::new(ErrorCode::InvalidRequest, "Duplicate topic id.");
                if removed.insert(id) {
                    Ok((name, id))
                } else {
                    Err(duplicate)
                }
            });
            let result = match decided {
                Ok((name, topic_id)) => {
                    let record = RemoveTopicRecord {
                        topic_id,
                        ..RemoveTopicRecord::default()
                    };
                    outcome.records.push(record.into());
                    DeletableTopicResult {
                        name: Some(name),
                        topic_id,
                        ..DeletableTopicResult::default()
                    }
                }
                Err(refusal) => DeletableTopicResult {
                    name: topic.name.clone(),
                    topic_id: topic.topic_id,
                    error_code: refusal.code.code(),
                    error_message: refusal.message.map(Into::into),
                    ..DeletableTopicResult::default()
                },
            };
            outcome.response.responses.push(result);
        }
        check_batch(&outcome.records)?;
        Ok(outcome)
    }

    fn find(&self, topic: &DeleteTopicState, all: &[DeleteTopicState]) -> Result<(Text, TopicId), Refusal> {
        let invalid = |message: &str| Refusal::new(ErrorCode::InvalidRequest, message);
        let topics = &self.image().topics;
        match (&topic.name, topic.topic_id.is_zero()) {
            (Some(_), false) => Err(invalid("You may not specify both topic name and topic id.")),
            (None, true) => Err(invalid("Neither topic name nor id were specified.")),
            (Some(name), true) => {
                if all.iter().filter(|other| other.name.as_ref() == Some(name)).count() > 1 {
                    return Err(invalid("Duplicate topic name."));
                }
                let known = topics.by_name(name);
                known
                    .map(|known| (name.clone(), known.id))
                    .ok_or(Refusal::bare(ErrorCode::UnknownTopicOrPartition))
            }
            (None, false) => {
                if all.iter().filter(|other| other.topic_id == topic.topic_id).count() > 1 {
                    return Err(invalid("Duplicate topic id."));
                }
                let known = topics.by_id(topic.topic_id);
                known
                    .map(|known| (known.name.as_str().into(), known.id))
                    .ok_or(Refusal::bare(ErrorCode::UnknownTopicId))
            }
        }
    }
}
