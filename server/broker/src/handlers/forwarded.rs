//! Requests that the controller answers: CreateTopics 2–7, DeleteTopics 1–6, CreatePartitions 0–3,
//! IncrementalAlterConfigs 0–1, AlterPartitionReassignments 0–1, ListPartitionReassignments 0 and DescribeQuorum 0–2 are
//! passed on whole (KIP-590).
//!
//! The answer goes back once this broker has seen what came of it, so that a client that goes on with the same broker
//! finds there what it was told.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use network::{Answer, RequestContext};
use protocol::Request;
use tracing::warn;

use crate::node::{Broker, View};

pub(crate) const CREATE_TOPICS: RangeInclusive<i16> = 2..=7;
pub(crate) const DELETE_TOPICS: RangeInclusive<i16> = 1..=6;
pub(crate) const CREATE_PARTITIONS: RangeInclusive<i16> = 0..=3;
pub(crate) const INCREMENTAL_ALTER_CONFIGS: RangeInclusive<i16> = 0..=1;
pub(crate) const ALTER_PARTITION_REASSIGNMENTS: RangeInclusive<i16> = 0..=1;
pub(crate) const LIST_PARTITION_REASSIGNMENTS: RangeInclusive<i16> = 0..=0;
pub(crate) const DESCRIBE_QUORUM: RangeInclusive<i16> = 0..=2;

/// How long an answer is held back for this broker to follow. The controller's word stands in any case.
const FOLLOW_WAIT_MAX: Duration = Duration::from_secs(5);

/// Passes a request on; what cannot reach the controller ends the connection, and the client tries again.
pub(crate) async fn handle(broker: &Arc<Broker>, context: &RequestContext, request: Request) -> Answer {
    match broker.controller().forward(request, context.api_version).await {
        Ok(response) => {
            if let Some(end) = broker.controller().committed_end() {
                let followed = |view: &View| view.image.end_offset >= end;
                broker.await_view(FOLLOW_WAIT_MAX, followed).await;
            }
            Answer::Response(Box::new(response))
        }
        Err(error) => {
            warn!(%error, "request not passed on to the controller");
            Answer::Close
        }
    }
}
