//! OffsetForLeaderEpoch, versions 2–4: where a leader epoch ended, so that a client can tell whether the log it has read
//! was cut since (KIP-320).

use std::ops::RangeInclusive;
use std::sync::Arc;

use model::{ErrorCode, LeaderEpoch, Offset};
use network::Answer;
use protocol::messages::offset_for_leader_epoch_request::{
    OffsetForLeaderEpochRequest, OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use protocol::messages::offset_for_leader_epoch_response::{
    EpochEndOffset, OffsetForLeaderEpochResponse, OffsetForLeaderTopicResult,
};

use crate::errors::Refusal;
use crate::node::Broker;

pub(crate) const VERSIONS: RangeInclusive<i16> = 2..=4;

pub(crate) fn handle(broker: &Arc<Broker>, request: &OffsetForLeaderEpochRequest) -> Answer {
    let topics = request.topics.iter().map(|topic| OffsetForLeaderTopicResult {
        topic: topic.topic.clone(),
        partitions: topic
            .partitions
            .iter()
            .map(|asked| render(asked, find(broker, topic, asked)))
            .collect(),
        ..Default::default()
    });
    Answer::now(OffsetForLeaderEpochResponse {
        topics: topics.collect(),
        ..Default::default()
    })
}

fn find(
    broker: &Arc<Broker>,
    topic: &OffsetForLeaderTopic,
    asked: &OffsetForLeaderPartition,
) -> Result<Option<(LeaderEpoch, Offset)>, Refusal> {
    let partition = broker.partitions().by_name(&topic.topic, asked.partition)?;
    partition.check_leader_epoch(LeaderEpoch::from_wire(asked.current_leader_epoch))?;
    Ok(LeaderEpoch::from_wire(asked.leader_epoch).and_then(|epoch| partition.end_of_epoch(epoch)))
}

fn render(asked: &OffsetForLeaderPartition, found: Result<Option<(LeaderEpoch, Offset)>, Refusal>) -> EpochEndOffset {
    let (code, found) = match found {
        Ok(found) => (ErrorCode::None, found),
        Err(refusal) => (refusal.code, None),
    };
    EpochEndOffset {
        error_code: code.code(),
        partition: asked.partition,
        leader_epoch: found.map_or(-1, |(epoch, _)| epoch.get()),
        end_offset: found.map_or(-1, |(_, end)| end.get()),
        ..Default::default()
    }
}
