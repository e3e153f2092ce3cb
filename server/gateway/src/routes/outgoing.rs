//! Records on their way from a request to the log, through the plugins of their topic.
//!
//! A serde encodes keys or values, then the partitioner chooses for those that name no partition: it sees what will be
//! stored. Each step takes all records at once, and one that a plugin does not serve fails alone.

use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use client::{CallContext, ProduceRecord};
use model::{Timestamp, TopicName};
use plugin::serde::{Datum, Part};

use super::produce::ProduceParameters;
use crate::coders::{Bound, NewRow, Role};
use crate::format::Format;
use crate::gateway::Gateway;
use crate::problem::{Problem, RecordProblem};

/// A record as it is so far, or why it will not be written.
type Drafted = Result<ProduceRecord, RecordProblem>;

pub(super) struct Outgoing<'a> {
    gateway: &'a Gateway,
    context: &'a CallContext,
    topic: &'a TopicName,
    /// How keys are read from the request; JSON if a serde takes them.
    pub(super) key_format: Format,
    pub(super) value_format: Format,
    serdes: Vec<(Part, Bound)>,
    partitioner: Option<Bound>,
}

impl<'a> Outgoing<'a> {
    pub(super) fn new(
        gateway: &'a Gateway,
        context: &'a CallContext,
        topic: &'a TopicName,
        formats: &ProduceParameters,
    ) -> Self {
        let mut serdes = Vec::new();
        let mut format = |part, wanted: Option<Format>, without| {
            if matches!(wanted, None | Some(Format::Json))
                && let Some(bound) = gateway.coders.bound(topic, Role::serde_of(part))
            {
                serdes.push((part, bound));
                return Format::Json;
            }
            wanted.unwrap_or(without)
        };
        let key_format = format(Part::Key, formats.key_format, Format::Text);
        let value_format = format(Part::Value, formats.value_format, Format::Json);
        Outgoing {
            gateway,
            context,
            topic,
            key_format,
            value_format,
            serdes,
            partitioner: gateway.coders.bound(topic, Role::Partitioner),
        }
    }

    /// Makes of the records what is to be stored, and where.
    pub(super) async fn finish(&self, records: &mut [Drafted]) -> Result<(), Problem> {
        for (part, bound) in &self.serdes {
            self.encode(*part, bound, records).await?;
        }
        match &self.partitioner {
            Some(bound) => self.partition(bound, records).await,
            None => Ok(()),
        }
    }

    async fn encode(&self, part: Part, bound: &Bound, records: &mut [Drafted]) -> Result<(), Problem> {
        let mut places = Vec::new();
        let mut items = Vec::new();
        for (place, record) in records.iter_mut().enumerate() {
            let Some(json) = record.as_mut().ok().and_then(|record| half(record, part).as_ref()) else {
                continue;
            };
            let text = std::str::from_utf8(json).map_err(|error| Problem::invalid(error.to_string()))?;
            items.push(Datum::Json(text.to_owned()));
            places.push(place);
        }
        if items.is_empty() {
            return Ok(());
        }
        let encoded = self.gateway.coders.encode(bound, items).await?;
        let what = match part {
            Part::Key => "the key cannot be encoded",
            Part::Value => "the value cannot be encoded",
        };
        for (place, answer) in places.into_iter().zip(encoded) {
            match (&mut records[place], answer) {
                (Ok(record), Ok(bytes)) => *half(record, part) = Some(bytes),
                (record, Err(error)) => *record = Err(RecordProblem::unserved(what, &error)),
                (Err(_), Ok(_)) => {}
            }
        }
        Ok(())
    }

    async fn partition(&self, bound: &Bound, records: &mut [Drafted]) -> Result<(), Problem> {
        let mut places = Vec::new();
        let mut rows = Vec::new();
        let now = now();
        for (place, record) in records.iter().enumerate() {
            let Ok(record) = record else { continue };
            if record.partition.is_some() {
                continue;
            }
            places.push(place);
            rows.push(NewRow {
                timestamp: record.timestamp.unwrap_or(now),
                key: record.key.clone(),
                value: record.value.clone(),
                headers: record.headers.clone(),
            });
        }
        if rows.is_empty() {
            return Ok(());
        }
        let topic = self.gateway.client.topic(self.context, self.topic).await?;
        let chosen = self.gateway.coders.partition(bound, &topic, rows).await?;
        for (place, answer) in places.into_iter().zip(chosen) {
            match (&mut records[place], answer) {
                (Ok(record), Ok(partition)) => record.partition = partition,
                (record, Err(error)) => {
                    *record = Err(RecordProblem::unserved("no partition can be chosen", &error));
                }
                (Err(_), Ok(_)) => {}
            }
        }
        Ok(())
    }
}

fn half(record: &mut ProduceRecord, part: Part) -> &mut Option<Bytes> {
    match part {
        Part::Key => &mut record.key,
        Part::Value => &mut record.value,
    }
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
