//! FindCoordinator, versions 0–6: the broker that leads a group's partition of `__consumer_offsets`, which is created
//! when it is first asked for.
//!
//! From version 4 on a request names several keys. Coordinators of transactions and of share groups (key types 1 and 2)
//! are not here: who asks for one is told so at once, rather than to try again for ever.

use std::ops::RangeInclusive;
use std::sync::Arc;

use coordinator::routing::partition_for;
use model::{BrokerId, ErrorCode};
use network::{Answer, RequestContext};
use protocol::Text;
use protocol::messages::find_coordinator_request::FindCoordinatorRequest;
use protocol::messages::find_coordinator_response::{Coordinator, FindCoordinatorResponse};

use crate::coordinators::OFFSETS_TOPIC;
use crate::errors::Refusal;
use crate::node::{Broker, View};

pub(crate) const VERSIONS: RangeInclusive<i16> = 0..=6;
const FIRST_WITH_SEVERAL_KEYS: i16 = 4;
const KEY_TYPE_GROUP: i8 = 0;
const KEY_TYPE_TRANSACTION: i8 = 1;
const KEY_TYPE_SHARE: i8 = 2;

pub(crate) async fn handle(broker: &Arc<Broker>, context: &RequestContext, request: FindCoordinatorRequest) -> Answer {
    let several = context.api_version >= FIRST_WITH_SEVERAL_KEYS;
    let keys = if several {
        request.coordinator_keys
    } else {
        vec![request.key]
    };
    let topic_missing = broker.view().image.topics.by_name(OFFSETS_TOPIC).is_none();
    if request.key_type == KEY_TYPE_GROUP && topic_missing && !keys.is_empty() {
        broker.create_offsets_topic().await;
    }
    let view = broker.view();
    let coordinators = keys
        .into_iter()
        .map(|key| render(context, &view, request.key_type, key));
    if several {
        return Answer::now(FindCoordinatorResponse {
            coordinators: coordinators.collect(),
            ..Default::default()
        });
    }
    let mut coordinators = coordinators;
    let one = coordinators.next().unwrap_or_default();
    Answer::now(FindCoordinatorResponse {
        error_code: one.error_code,
        error_message: one.error_message,
        node_id: one.node_id,
        host: one.host,
        port: one.port,
        ..Default::default()
    })
}

fn render(context: &RequestContext, view: &View, key_type: i8, key: Text) -> Coordinator {
    match find(context, view, key_type, &key) {
        Ok((broker, host, port)) => Coordinator {
            key,
            node_id: broker.get(),
            host,
            port: i32::from(port),
            ..Default::default()
        },
        Err(refusal) => Coordinator {
            key,
            node_id: -1,
            port: -1,
            error_code: refusal.code.code(),
            error_message: Some(refusal.message.unwrap_or_else(|| refusal.code.name().to_owned()).into()),
            ..Default::default()
        },
    }
}

fn find(context: &RequestContext, view: &View, key_type: i8, key: &Text) -> Result<(BrokerId, Text, u16), Refusal> {
    match key_type {
        KEY_TYPE_GROUP => {}
        KEY_TYPE_TRANSACTION => {
            return Err(Refusal::new(
                ErrorCode::InvalidRequest,
                "transactions are not served by this broker",
            ));
        }
        KEY_TYPE_SHARE => {
            return Err(Refusal::new(
                ErrorCode::InvalidRequest,
                "share groups are not served by this broker",
            ));
        }
        _ => {
            return Err(Refusal::new(
                ErrorCode::InvalidRequest,
                format!("there is no coordinator of type {key_type}"),
            ));
        }
    }
    let topic = view
        .image
        .topics
        .by_name(OFFSETS_TOPIC)
        .ok_or(ErrorCode::CoordinatorNotAvailable)?;
    let count = i32::try_from(topic.partitions.len()).ok().filter(|count| *count > 0);
    let index = partition_for(key, count.ok_or(ErrorCode::CoordinatorNotAvailable)?);
    let leader = topic.partitions.get(&index).and_then(|partition| partition.leader);
    let registration = leader.and_then(|leader| view.live_broker(leader));
    let endpoint = registration.and_then(|it| it.endpoint(&context.listener).map(|endpoint| (it.id, endpoint)));
    let (broker, endpoint) = endpoint.ok_or(ErrorCode::CoordinatorNotAvailable)?;
    Ok((broker, endpoint.host.clone(), endpoint.port))
}
