//! DeleteRecords, versions 0–2: raises the start of logs. Offset −1 is the high watermark (KIP-107).

use std::ops::RangeInclusive;
use std::sync::Arc;

use metadata::image::ConfigResource;
use model::{ErrorCode, Offset};
use network::Answer;
use protocol::messages::delete_records_request::DeleteRecordsRequest;
use protocol::messages::delete_records_response::{
    DeleteRecordsPartitionResult, DeleteRecordsResponse, DeleteRecordsTopicResult,
};

use crate::errors::{Refusal, describe};
use crate::node::Broker;

pub(crate) const VERSIONS: RangeInclusive<i16> = 0..=2;
/// In a request: everything that is committed.
const HIGH_WATERMARK: i64 = -1;

/// Checkpoints and deletions of whole segments touch the disk, so it runs on the pool of threads that may wait for it.
pub(crate) async fn handle(broker: &Arc<Broker>, request: DeleteRecordsRequest) -> Answer {
    let broker = broker.clone();
    let done = tokio::task::spawn_blocking(move || answer(&broker, &request)).await;
    // The pool is going down with the node.
    done.map_or(Answer::Close, Answer::now)
}

fn answer(broker: &Arc<Broker>, request: &DeleteRecordsRequest) -> DeleteRecordsResponse {
    let topics = request.topics.iter().map(|topic| DeleteRecordsTopicResult {
        name: topic.name.clone(),
        partitions: topic
            .partitions
            .iter()
            .map(|asked| {
                let done = delete(broker, &topic.name, asked.partition_index, asked.offset);
                DeleteRecordsPartitionResult {
                    partition_index: asked.partition_index,
                    low_watermark: done.as_ref().map_or(-1, |offset| offset.get()),
                    error_code: done.err().map_or(ErrorCode::None, |refusal| refusal.code).code(),
                    ..Default::default()
                }
            })
            .collect(),
        ..Default::default()
    });
    DeleteRecordsResponse {
        topics: topics.collect(),
        ..Default::default()
    }
}

fn delete(broker: &Arc<Broker>, topic: &str, partition: i32, offset: i64) -> Result<Offset, Refusal> {
    let partition = broker.partitions().by_name(topic, partition)?;
    if partition.is_internal() {
        return Err(ErrorCode::InvalidTopicException.into());
    }
    // A compacted topic's records are deleted by tombstones alone.
    let view = broker.view();
    let resource = ConfigResource::topic(topic);
    if !broker
        .topic_settings(view.image.configs.of(&resource))
        .cleanup_policy
        .delete
    {
        return Err(ErrorCode::PolicyViolation.into());
    }
    let before = match offset {
        HIGH_WATERMARK => None,
        offset => Some(Offset::from_wire(offset).ok_or(ErrorCode::OffsetOutOfRange)?),
    };
    let start = partition.delete_records_before(before)?;
    broker
        .directories()
        .write_log_start(&partition, start)
        .map_err(|error| Refusal::new(ErrorCode::KafkaStorageError, describe(&error)))?;
    Ok(start)
}
