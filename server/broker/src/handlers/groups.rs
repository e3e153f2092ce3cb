//! The requests of the classic group protocol and of committed offsets, answered by the group coordinators: JoinGroup
//! 0–9, SyncGroup 0–5, Heartbeat 0–4, LeaveGroup 0–5, OffsetCommit 2–10, OffsetFetch 1–10, OffsetDelete 0,
//! DescribeGroups 0–6, ListGroups 0–5, DeleteGroups 0–3.

use std::ops::RangeInclusive;
use std::sync::Arc;

use coordinator::group::GroupRequest;
use network::{Answer, RequestContext};
use protocol::{ApiKey, Request, Response};

use crate::coordinators::Caller;
use crate::node::Broker;

pub(crate) const VERSIONS: [(ApiKey, RangeInclusive<i16>); 10] = [
    (ApiKey::OffsetCommit, 2..=10),
    (ApiKey::OffsetFetch, 1..=10),
    (ApiKey::JoinGroup, 0..=9),
    (ApiKey::Heartbeat, 0..=4),
    (ApiKey::LeaveGroup, 0..=5),
    (ApiKey::SyncGroup, 0..=5),
    (ApiKey::DescribeGroups, 0..=6),
    (ApiKey::ListGroups, 0..=5),
    (ApiKey::DeleteGroups, 0..=3),
    (ApiKey::OffsetDelete, 0..=0),
];

pub(crate) async fn handle(broker: &Arc<Broker>, context: &RequestContext, request: Request) -> Answer {
    let Some(request) = GroupRequest::from_request(request) else {
        return Answer::Close;
    };
    let view = broker.view();
    let caller = Caller { context, view: &view };
    let response = broker.groups().call(caller, request).await;
    Answer::Response(Box::new(Response::from(response)))
}
