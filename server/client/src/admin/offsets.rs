//! Offsets of partitions: find them, and delete what lies below one.

use std::collections::BTreeMap;

use model::{BrokerId, ErrorCode, LeaderEpoch, Offset, PartitionIndex, Timestamp, TopicName, TopicPartition};
use protocol::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic};
use protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use protocol::messages::list_offsets_response::ListOffsetsPartitionResponse;
use protocol::{ApiKey, Text};
use tokio::task::JoinSet;

use super::answer_of;
use crate::{CallContext, Client, Error, Isolation, Target};

/// A consumer, not a replica.
const NO_REPLICA: i32 = -1;
/// DeleteRecords' word for "everything up to the high watermark".
const TO_HIGH_WATERMARK: i64 = -1;
const DELETE_WAIT_MS: i32 = 30_000;

/// Which offset is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OffsetSpec {
    /// The first that is still there.
    Earliest,
    /// The end: the offset of the next record that readers of the isolation will see.
    Latest,
    /// That of the record with the greatest timestamp.
    MaxTimestamp,
    /// That of the first record with this timestamp or a later one.
    Time(Timestamp),
}

impl OffsetSpec {
    fn wire(self) -> i64 {
        match self {
            OffsetSpec::Latest => -1,
            OffsetSpec::Earliest => -2,
            OffsetSpec::MaxTimestamp => -3,
            OffsetSpec::Time(timestamp) => timestamp.millis().max(0),
        }
    }
}

/// An offset that was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ListedOffset {
    pub offset: Offset,
    /// The timestamp of the record there, where one was looked for.
    pub timestamp: Option<Timestamp>,
    pub leader_epoch: Option<LeaderEpoch>,
}

/// What was found for each partition; `None` where no record fits.
pub type ListedOffsets = BTreeMap<TopicPartition, Result<Option<ListedOffset>, Error>>;

impl Client {
    /// Offsets of any partitions, each with its own outcome.
    pub async fn list_offsets(
        &self,
        context: &CallContext,
        specs: &BTreeMap<TopicPartition, OffsetSpec>,
        isolation: Isolation,
    ) -> ListedOffsets {
        let mut listed = ListedOffsets::new();
        let mut by_leader: BTreeMap<BrokerId, Vec<(TopicPartition, OffsetSpec)>> = BTreeMap::new();
        for (partition, spec) in specs {
            match self.leader(context, partition).await {
                Ok(leader) => by_leader.entry(leader).or_default().push((partition.clone(), *spec)),
                Err(error) => {
                    listed.insert(partition.clone(), Err(error));
                }
            }
        }
        let mut asked = JoinSet::new();
        for (leader, specs) in by_leader {
            let (client, context) = (self.clone(), context.clone());
            asked.spawn(async move { client.list_of_leader(&context, leader, specs, isolation).await });
        }
        while let Some(answer) = asked.join_next().await {
            listed.extend(answer.unwrap_or_default());
        }
        self.list_again(context, specs, isolation, &mut listed).await;
        listed
    }

    /// Asks once more, each partition by itself and with patience, where the first answer may have been one of the moment.
    async fn list_again(
        &self,
        context: &CallContext,
        specs: &BTreeMap<TopicPartition, OffsetSpec>,
        isolation: Isolation,
        listed: &mut ListedOffsets,
    ) {
        for (partition, spec) in specs {
            let again = match listed.get(partition) {
                Some(Err(error)) => super::may_pass(error) || error.code() == ErrorCode::UnknownTopicId,
                Some(Ok(_)) => false,
                None => true,
            };
            if again {
                listed.insert(
                    partition.clone(),
                    self.list_one(context, partition, *spec, isolation).await,
                );
            }
        }
    }

    async fn list_of_leader(
        &self,
        context: &CallContext,
        leader: BrokerId,
        specs: Vec<(TopicPartition, OffsetSpec)>,
        isolation: Isolation,
    ) -> ListedOffsets {
        let target = Target::Broker(leader);
        let response = self.call(context, target, request(&specs, isolation).into()).await;
        let Ok(protocol::Response::ListOffsets(response)) = response else {
            return ListedOffsets::new();
        };
        let mut listed = ListedOffsets::new();
        for topic in response.topics {
            let Ok(name) = TopicName::new(&topic.name) else {
                continue;
            };
            for row in &topic.partitions {
                let Some(partition) = PartitionIndex::from_wire(row.partition_index) else {
                    continue;
                };
                let partition = TopicPartition {
                    topic: name.clone(),
                    partition,
                };
                let found = found(row, &partition);
                if let Err(error) = &found {
                    self.doubt(&Target::LeaderOf(partition.clone()), error);
                }
                listed.insert(partition, found);
            }
        }
        listed
    }

    async fn list_one(
        &self,
        context: &CallContext,
        partition: &TopicPartition,
        spec: OffsetSpec,
        isolation: Isolation,
    ) -> Result<Option<ListedOffset>, Error> {
        let request = request(&[(partition.clone(), spec)], isolation);
        self.administer(context, Target::LeaderOf(partition.clone()), request, |response| {
            let response = answer_of!(response, ListOffsets);
            let mut rows = response.topics.iter().flat_map(|topic| &topic.partitions);
            let row = rows.find(|row| row.partition_index == partition.partition.get());
            let row = row.ok_or_else(|| lacking(ApiKey::ListOffsets, partition))?;
            found(row, partition)
        })
        .await
    }

    /// The offset that `spec` means for one partition; `None` if no record fits.
    ///
    /// # Errors
    /// UNKNOWN_TOPIC_OR_PARTITION and so on, and those of [`Client::call`].
    pub async fn list_offset(
        &self,
        context: &CallContext,
        partition: &TopicPartition,
        spec: OffsetSpec,
        isolation: Isolation,
    ) -> Result<Option<Offset>, Error> {
        Ok(self
            .list_one(context, partition, spec, isolation)
            .await?
            .map(|listed| listed.offset))
    }

    /// Deletes the records of a partition below `before`, or all there are, and returns the new start of its log.
    ///
    /// # Errors
    /// OFFSET_OUT_OF_RANGE if `before` lies above the high watermark, POLICY_VIOLATION if the topic is only compacted,
    /// and those of [`Client::call`].
    pub async fn delete_records(
        &self,
        context: &CallContext,
        partition: &TopicPartition,
        before: Option<Offset>,
    ) -> Result<Offset, Error> {
        let rows = vec![DeleteRecordsPartition {
            partition_index: partition.partition.get(),
            offset: before.map_or(TO_HIGH_WATERMARK, Offset::get),
            ..Default::default()
        }];
        let topic = DeleteRecordsTopic {
            name: Text::from(partition.topic.as_str()),
            partitions: rows,
            ..Default::default()
        };
        let request = DeleteRecordsRequest {
            topics: vec![topic],
            timeout_ms: DELETE_WAIT_MS,
            ..Default::default()
        };
        self.administer(context, Target::LeaderOf(partition.clone()), request, |response| {
            let response = answer_of!(response, DeleteRecords);
            let mut rows = response.topics.iter().flat_map(|topic| &topic.partitions);
            let row = rows.find(|row| row.partition_index == partition.partition.get());
            let row = row.ok_or_else(|| lacking(ApiKey::DeleteRecords, partition))?;
            Error::check(row.error_code, None, || format!("deleting records of {partition}"))?;
            Offset::from_wire(row.low_watermark).ok_or_else(|| lacking(ApiKey::DeleteRecords, partition))
        })
        .await
    }
}

fn lacking(api_key: ApiKey, partition: &TopicPartition) -> Error {
    Error::MalformedAnswer {
        api_key,
        lacking: format!("partition {partition}"),
    }
}

fn request(specs: &[(TopicPartition, OffsetSpec)], isolation: Isolation) -> ListOffsetsRequest {
    let mut topics: BTreeMap<&TopicName, Vec<ListOffsetsPartition>> = BTreeMap::new();
    for (partition, spec) in specs {
        topics.entry(&partition.topic).or_default().push(ListOffsetsPartition {
            partition_index: partition.partition.get(),
            timestamp: spec.wire(),
            ..Default::default()
        });
    }
    ListOffsetsRequest {
        replica_id: NO_REPLICA,
        isolation_level: isolation.wire(),
        topics: topics
            .into_iter()
            .map(|(name, partitions)| ListOffsetsTopic {
                name: Text::from(name.as_str()),
                partitions,
                ..Default::default()
            })
            .collect(),
        ..Default::default()
    }
}

fn found(row: &ListOffsetsPartitionResponse, partition: &TopicPartition) -> Result<Option<ListedOffset>, Error> {
    Error::check(row.error_code, None, || format!("looking up an offset of {partition}"))?;
    Ok(Offset::from_wire(row.offset).map(|offset| ListedOffset {
        offset,
        timestamp: Timestamp::from_wire(row.timestamp),
        leader_epoch: LeaderEpoch::from_wire(row.leader_epoch),
    }))
}
