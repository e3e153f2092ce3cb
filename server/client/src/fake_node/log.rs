//! The records of a partition: appended as a broker does, with a strict look at sequences.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use model::record_batch::{BatchHeader, BatchMut, DecompressionLimit, Record, records};
use model::{ErrorCode, Offset};
use protocol::messages::fetch_request::FetchRequest;
use protocol::messages::fetch_response::{FetchResponse, FetchableTopicResponse, PartitionData};
use protocol::messages::list_offsets_request::ListOffsetsRequest;
use protocol::messages::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsResponse, ListOffsetsTopicResponse,
};
use protocol::messages::produce_request::ProduceRequest;
use protocol::messages::produce_response::{
    BatchIndexAndErrorMessage, PartitionProduceResponse, ProduceResponse, TopicProduceResponse,
};

use super::{FakeTopic, State, code};

#[derive(Default)]
pub(crate) struct Log {
    pub(crate) batches: Vec<Bytes>,
    pub(crate) start: i64,
    /// By producer id: its next sequence, and the first sequence and offset of its last batch.
    pub(crate) producers: BTreeMap<i64, (i32, i32, i64)>,
}

impl Log {
    pub(crate) fn end(&self) -> i64 {
        self.batches.last().map_or(0, |batch| header(batch).next_offset().get())
    }

    pub(crate) fn records(&self) -> Vec<Record> {
        let read = |batch| records(batch, DecompressionLimit::DEFAULT).unwrap().map(Result::unwrap);
        self.batches.iter().flat_map(read).collect()
    }

    pub(crate) fn values(&self) -> Vec<String> {
        let text = |record: Record| String::from_utf8(record.value.unwrap().to_vec()).unwrap();
        self.records().into_iter().map(text).collect()
    }

    pub(crate) fn append(&mut self, batch: &Bytes) -> Result<i64, ErrorCode> {
        let header = header(batch);
        let (id, first) = (header.producer_id, header.base_sequence);
        match self.producers.get(&id) {
            Some((_, last_first, offset)) if *last_first == first => return Ok(*offset),
            Some((next, _, _)) if *next != first => return Err(ErrorCode::OutOfOrderSequenceNumber),
            None if first != 0 => return Err(ErrorCode::OutOfOrderSequenceNumber),
            _ => {}
        }
        let offset = self.end();
        let mut bytes = BytesMut::from(&batch[..]);
        BatchMut::first(&mut bytes)
            .unwrap()
            .set_base_offset(Offset::new(offset))
            .unwrap();
        self.batches.push(bytes.freeze());
        self.producers
            .insert(id, (first + header.last_offset_delta + 1, first, offset));
        Ok(offset)
    }

    fn offset_at(&self, time: i64) -> i64 {
        let found = self
            .records()
            .into_iter()
            .find(|record| record.timestamp.millis() >= time);
        found.map_or(-1, |record| record.offset.get())
    }

    fn from(&self, position: i64) -> Bytes {
        let wanted = self
            .batches
            .iter()
            .filter(|batch| header(batch).next_offset().get() > position);
        wanted.map(Bytes::as_ref).collect::<Vec<_>>().concat().into()
    }
}

fn header(batch: &Bytes) -> BatchHeader {
    BatchHeader::parse(batch).unwrap()
}

impl State {
    pub(super) fn produce(&mut self, request: &ProduceRequest, refusal: Option<ErrorCode>) -> ProduceResponse {
        assert_eq!(request.acks, -1);
        let mut responses = Vec::new();
        for row in &request.topic_data {
            let rows = row.partition_data.iter().map(|data| {
                let batch = data.records.clone().unwrap();
                let (outcome, record_errors) = self.append(&row.name, data.index, &batch, refusal);
                PartitionProduceResponse {
                    index: data.index,
                    error_code: outcome.err().map_or(0, ErrorCode::code),
                    base_offset: outcome.unwrap_or(-1),
                    record_errors,
                    ..Default::default()
                }
            });
            let partition_responses = rows.collect();
            responses.push(TopicProduceResponse {
                topic_id: row.topic_id,
                partition_responses,
                ..Default::default()
            });
        }
        ProduceResponse {
            responses,
            ..Default::default()
        }
    }

    fn append(
        &mut self,
        name: &str,
        index: i32,
        batch: &Bytes,
        refusal: Option<ErrorCode>,
    ) -> (Result<i64, ErrorCode>, Vec<BatchIndexAndErrorMessage>) {
        if let Some(refused) = refusal {
            return (Err(refused), Vec::new());
        }
        if self.batch_bytes_max.is_some_and(|max| batch.len() > max) {
            return (Err(ErrorCode::MessageTooLarge), Vec::new());
        }
        let to_blame: Vec<_> = (0..)
            .zip(records(batch, DecompressionLimit::DEFAULT).unwrap())
            .filter(|(_, record)| {
                let value = record.as_ref().unwrap().value.as_ref();
                value.is_some() && value == self.forbidden_value.as_ref()
            })
            .map(|(batch_index, _)| BatchIndexAndErrorMessage {
                batch_index,
                batch_index_error_message: Some("forbidden".into()),
                ..Default::default()
            })
            .collect();
        if !to_blame.is_empty() {
            return (Err(ErrorCode::InvalidRecord), to_blame);
        }
        let log = self
            .topics
            .get_mut(name)
            .and_then(|topic| topic.partitions.get_mut(usize::try_from(index).unwrap()));
        (
            log.map_or(Err(ErrorCode::UnknownTopicOrPartition), |log| log.append(batch)),
            Vec::new(),
        )
    }

    fn topic_of(&self, row: &protocol::messages::fetch_request::FetchTopic) -> Option<&FakeTopic> {
        self.topics.values().find(|topic| topic.id == row.topic_id)
    }

    pub(super) fn has_records_for(&self, request: &FetchRequest) -> bool {
        request.topics.iter().any(|row| {
            let Some(topic) = self.topic_of(row) else { return true };
            row.partitions.iter().any(|wanted| {
                let log = topic.partitions.get(usize::try_from(wanted.partition).unwrap());
                log.is_none_or(|log| log.end() != wanted.fetch_offset || wanted.fetch_offset < log.start)
            })
        })
    }

    pub(super) fn fetch(&self, request: &FetchRequest, refusal: Option<ErrorCode>) -> FetchResponse {
        let responses = request.topics.iter().map(|row| FetchableTopicResponse {
            topic_id: row.topic_id,
            partitions: row
                .partitions
                .iter()
                .map(|wanted| self.fetch_partition(self.topic_of(row), wanted.partition, wanted.fetch_offset, refusal))
                .collect(),
            ..Default::default()
        });
        FetchResponse {
            responses: responses.collect(),
            ..Default::default()
        }
    }

    fn fetch_partition(
        &self,
        topic: Option<&FakeTopic>,
        index: i32,
        position: i64,
        refusal: Option<ErrorCode>,
    ) -> PartitionData {
        let refused = |error: ErrorCode| PartitionData {
            partition_index: index,
            error_code: error.code(),
            high_watermark: -1,
            ..Default::default()
        };
        if let Some(error) = refusal {
            return refused(error);
        }
        let Some(topic) = topic else {
            return refused(ErrorCode::UnknownTopicId);
        };
        let Some(log) = topic.partitions.get(usize::try_from(index).unwrap()) else {
            return refused(ErrorCode::UnknownTopicOrPartition);
        };
        if position < log.start || position > log.end() {
            return refused(ErrorCode::OffsetOutOfRange);
        }
        PartitionData {
            partition_index: index,
            high_watermark: log.end(),
            last_stable_offset: log.end(),
            log_start_offset: log.start,
            records: Some(log.from(position)),
            ..Default::default()
        }
    }

    pub(super) fn list_offsets(&self, request: &ListOffsetsRequest, refusal: Option<ErrorCode>) -> ListOffsetsResponse {
        let topics = request.topics.iter().map(|row| ListOffsetsTopicResponse {
            name: row.name.clone(),
            partitions: row
                .partitions
                .iter()
                .map(|wanted| {
                    let log = &self.topics[&*row.name].partitions[usize::try_from(wanted.partition_index).unwrap()];
                    let offset = match wanted.timestamp {
                        -2 => log.start,
                        -1 => log.end(),
                        time => log.offset_at(time),
                    };
                    ListOffsetsPartitionResponse {
                        partition_index: wanted.partition_index,
                        error_code: code(refusal),
                        offset,
                        ..Default::default()
                    }
                })
                .collect(),
            ..Default::default()
        });
        ListOffsetsResponse {
            topics: topics.collect(),
            ..Default::default()
        }
    }
}
