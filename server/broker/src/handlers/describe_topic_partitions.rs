//! DescribeTopicPartitions, version 0: topics in pages of a bounded number of partitions, by name, with the eligible
//! leader replicas of KIP-966.
//!
//! The cursor names the first partition of the next page. Topics that sort before it are left out.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use metadata::image::{PartitionImage, TopicImage};
use model::{BrokerId, ErrorCode, TopicName};
use network::{Answer, RequestContext};
use protocol::Text;
use protocol::messages::describe_topic_partitions_request::DescribeTopicPartitionsRequest;
use protocol::messages::describe_topic_partitions_response::{
    Cursor, DescribeTopicPartitionsResponse, DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
};

use crate::node::{Broker, View};

pub(crate) const VERSIONS: RangeInclusive<i16> = 0..=0;

pub(crate) fn handle(
    broker: &Arc<Broker>,
    context: &RequestContext,
    request: &DescribeTopicPartitionsRequest,
) -> Answer {
    let view = broker.view();
    let names: BTreeSet<Text> = if request.topics.is_empty() {
        view.image
            .topics
            .iter()
            .map(|topic| Text::from(topic.name.as_str()))
            .collect()
    } else {
        request.topics.iter().map(|topic| topic.name.clone()).collect()
    };
    let (from_topic, from_partition) = match &request.cursor {
        Some(cursor) => (cursor.topic_name.clone(), cursor.partition_index.max(0)),
        None => (Text::default(), 0),
    };
    let page = usize::try_from(request.response_partition_limit).unwrap_or(0).max(1);
    let mut room = page.min(broker.settings().fetch.request_partitions_max);
    let mut response = DescribeTopicPartitionsResponse::default();
    for name in names.iter().filter(|name| ***name >= *from_topic) {
        let first = if *name == from_topic { from_partition } else { 0 };
        let topic = match view.image.topics.by_name(name) {
            Some(topic) => topic,
            None => {
                response.topics.push(refuse(name));
                continue;
            }
        };
        let (rendered, next) = render(&view, context, topic, first, room);
        room -= rendered.partitions.len();
        if !rendered.partitions.is_empty() {
            response.topics.push(rendered);
        }
        if let Some(partition_index) = next {
            response.next_cursor = Some(Cursor {
                topic_name: name.clone(),
                partition_index,
                ..Default::default()
            });
            break;
        }
    }
    Answer::now(response)
}

fn refuse(name: &Text) -> DescribeTopicPartitionsResponseTopic {
    let code = match TopicName::new(name) {
        Ok(_) => ErrorCode::UnknownTopicOrPartition,
        Err(_) => ErrorCode::InvalidTopicException,
    };
    DescribeTopicPartitionsResponseTopic {
        error_code: code.code(),
        name: Some(name.clone()),
        topic_authorized_operations: i32::MIN,
        ..Default::default()
    }
}

/// At most `room` partitions from `first` on, and the one that did not fit.
fn render(
    view: &View,
    context: &RequestContext,
    topic: &TopicImage,
    first: i32,
    room: usize,
) -> (DescribeTopicPartitionsResponseTopic, Option<i32>) {
    let mut left = topic.partitions.iter().filter(|(index, _)| index.get() >= first);
    let partitions = left
        .by_ref()
        .take(room)
        .map(|(index, partition)| render_partition(view, context, index.get(), partition))
        .collect();
    let rendered = DescribeTopicPartitionsResponseTopic {
        name: Some(Text::from(topic.name.as_str())),
        topic_id: topic.id,
        is_internal: crate::handlers::is_internal(&topic.name),
        partitions,
        topic_authorized_operations: crate::handlers::TOPIC_OPERATIONS,
        ..Default::default()
    };
    (rendered, left.next().map(|(index, _)| index.get()))
}

fn render_partition(
    view: &View,
    context: &RequestContext,
    partition_index: i32,
    partition: &PartitionImage,
) -> DescribeTopicPartitionsResponsePartition {
    let reachable = |broker: &BrokerId| {
        view.live_broker(*broker)
            .is_some_and(|it| it.endpoint(&context.listener).is_some())
    };
    let leader = partition.leader.filter(|leader| reachable(leader));
    let ids = |brokers: &[BrokerId]| brokers.iter().map(|broker| broker.get()).collect::<Vec<i32>>();
    DescribeTopicPartitionsResponsePartition {
        error_code: if leader.is_some() {
            ErrorCode::None
        } else {
            ErrorCode::LeaderNotAvailable
        }
        .code(),
        partition_index,
        leader_id: leader.map_or(-1, BrokerId::get),
        leader_epoch: partition.leader_epoch.get(),
        replica_nodes: ids(&partition.replicas),
        isr_nodes: ids(&partition.in_sync_replicas),
        eligible_leader_replicas: Some(ids(&partition.eligible_leader_replicas)),
        last_known_elr: Some(ids(&partition.last_known_leaders)),
        offline_replicas: partition
            .replicas
            .iter()
            .filter(|it| !reachable(it) || !view.has_online_replica(**it, partition))
            .map(|it| it.get())
            .collect(),
        ..Default::default()
    }
}
