//! Metadata, versions 0–13: the live brokers, and the topics asked for with the leaders of their partitions.
//!
//! - Version 0 asks for all topics by an empty list, later ones by null; from 10 on topics have ids (KIP-516), from 12
//!   on they may be asked for by id alone.
//! - A topic that does not exist is created where the broker's `auto.create.topics.enable` and the request allow it, and
//!   the answer is UNKNOWN_TOPIC_OR_PARTITION all the same: the client asks again.
//! - The controller named is some live broker: requests for the controller are passed on from there (KIP-590).

use std::ops::RangeInclusive;
use std::sync::Arc;

use metadata::image::{PartitionImage, TopicImage};
use model::{BrokerId, ErrorCode, LeaderEpoch, TopicName};
use network::{Answer, RequestContext};
use protocol::Text;
use protocol::messages::metadata_request::{MetadataRequest, MetadataRequestTopic};
use protocol::messages::metadata_response::{
    MetadataResponse, MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};

use crate::errors::Refusal;
use crate::node::{Broker, View};

pub(crate) const VERSIONS: RangeInclusive<i16> = 0..=13;
const FIRST_WITH_AUTO_CREATION_FLAG: i16 = 4;
const FIRST_WITH_NULL_NAMES: i16 = 12;
/// In a response: the caller did not ask which operations are allowed (KIP-430).
const OPERATIONS_NOT_ASKED: i32 = i32::MIN;

pub(crate) async fn handle(broker: &Arc<Broker>, context: &RequestContext, request: MetadataRequest) -> Answer {
    let version = context.api_version;
    let view = broker.view();
    let all = match &request.topics {
        None => true,
        Some(topics) => version == 0 && topics.is_empty(),
    };
    let mut topics = Vec::new();
    let mut missing = Vec::new();
    if all {
        topics.extend(
            view.image
                .topics
                .iter()
                .map(|topic| render_topic(&view, context, topic)),
        );
    } else {
        for asked in request.topics.iter().flatten() {
            match find(&view, asked) {
                Ok(topic) => topics.push(render_topic(&view, context, topic)),
                Err((refusal, name)) => {
                    if refusal.code == ErrorCode::UnknownTopicOrPartition {
                        missing.extend(name);
                    }
                    topics.push(refuse(version, asked, refusal.code));
                }
            }
        }
    }
    for topic in &mut topics {
        if request.include_topic_authorized_operations && topic.error_code == ErrorCode::None.code() {
            topic.topic_authorized_operations = crate::handlers::TOPIC_OPERATIONS;
        }
    }
    let may_create = version < FIRST_WITH_AUTO_CREATION_FLAG || request.allow_auto_topic_creation;
    if may_create && broker.settings().auto_create_topics && !missing.is_empty() {
        broker.create_missing_topics(missing).await;
    }
    let controller = view.live_brokers().map(|registration| registration.id).min();
    Answer::now(MetadataResponse {
        brokers: brokers(&view, context),
        cluster_id: Some(Text::from(broker.cluster_id())),
        controller_id: controller.map_or(-1, BrokerId::get),
        topics,
        cluster_authorized_operations: if request.include_cluster_authorized_operations {
            crate::handlers::CLUSTER_OPERATIONS
        } else {
            OPERATIONS_NOT_ASKED
        },
        ..MetadataResponse::default()
    })
}

fn brokers(view: &View, context: &RequestContext) -> Vec<MetadataResponseBroker> {
    view.live_brokers()
        .filter_map(|registration| {
            let endpoint = registration.endpoint(&context.listener)?;
            Some(MetadataResponseBroker {
                node_id: registration.id.get(),
                host: endpoint.host.clone(),
                port: i32::from(endpoint.port),
                rack: registration.rack.clone(),
                ..Default::default()
            })
        })
        .collect()
}

/// The topic that is asked for, by its id where one is given; an error with the name of one that could be created.
fn find<'a>(view: &'a View, asked: &MetadataRequestTopic) -> Result<&'a TopicImage, (Refusal, Option<TopicName>)> {
    if !asked.topic_id.is_zero() {
        let found = view.image.topics.by_id(asked.topic_id).map(AsRef::as_ref);
        return found.ok_or((ErrorCode::UnknownTopicId.into(), None));
    }
    let name = asked.name.as_deref().unwrap_or_default();
    if let Some(topic) = view.image.topics.by_name(name) {
        return Ok(topic);
    }
    match TopicName::new(name) {
        Ok(name) => Err((ErrorCode::UnknownTopicOrPartition.into(), Some(name))),
        Err(error) => Err((Refusal::new(ErrorCode::InvalidTopicException, error.to_string()), None)),
    }
}

fn refuse(version: i16, asked: &MetadataRequestTopic, code: ErrorCode) -> MetadataResponseTopic {
    let by_id = !asked.topic_id.is_zero();
    MetadataResponseTopic {
        error_code: code.code(),
        name: if by_id && version >= FIRST_WITH_NULL_NAMES {
            None
        } else {
            asked.name.clone().or(Some(Text::new()))
        },
        topic_id: asked.topic_id,
        topic_authorized_operations: OPERATIONS_NOT_ASKED,
        ..Default::default()
    }
}

fn render_topic(view: &View, context: &RequestContext, topic: &TopicImage) -> MetadataResponseTopic {
    MetadataResponseTopic {
        name: Some(Text::from(topic.name.as_str())),
        topic_id: topic.id,
        is_internal: crate::handlers::is_internal(&topic.name),
        partitions: topic
            .partitions
            .iter()
            .map(|(index, partition)| render_partition(view, context, index.get(), partition))
            .collect(),
        topic_authorized_operations: OPERATIONS_NOT_ASKED,
        ..Default::default()
    }
}

fn render_partition(
    view: &View,
    context: &RequestContext,
    partition_index: i32,
    partition: &PartitionImage,
) -> MetadataResponsePartition {
    let reachable = |broker: &BrokerId| {
        view.live_broker(*broker)
            .is_some_and(|it| it.endpoint(&context.listener).is_some())
    };
    let leader = partition.leader.filter(|leader| reachable(leader));
    let ids = |brokers: &[BrokerId]| brokers.iter().map(|broker| broker.get()).collect::<Vec<i32>>();
    MetadataResponsePartition {
        error_code: if leader.is_some() {
            ErrorCode::None
        } else {
            ErrorCode::LeaderNotAvailable
        }
        .code(),
        partition_index,
        leader_id: leader.map_or(-1, BrokerId::get),
        leader_epoch: LeaderEpoch::get(partition.leader_epoch),
        replica_nodes: ids(&partition.replicas),
        isr_nodes: ids(&partition.in_sync_replicas),
        offline_replicas: partition
            .replicas
            .iter()
            .filter(|it| !reachable(it) || !view.has_online_replica(**it, partition))
            .map(|it| it.get())
            .collect(),
        ..Default::default()
    }
}
