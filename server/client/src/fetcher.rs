//! Reads records: once from one partition, or on and on from several.
//!
//! A position only moves forward: over records that were handed out, and over what is not for readers (control batches,
//! aborted transactions, gaps that compaction left).

mod decode;
mod fetch;
mod tail;
#[cfg(test)]
mod tests;

use std::time::Duration;

use model::record_batch::{DecompressionLimit, Record};
use model::{ErrorCode, Offset, Timestamp, TopicPartition};
use tokio::time::Instant;

use crate::admin::OffsetSpec;
use crate::retry::Retry;
use crate::{CallContext, Client, Error, Target};
use decode::Decoded;
use fetch::{PartitionAnswer, Wanted};

pub use tail::{Chunk, OutOfRange, Tail, TailOptions};

/// What the records of one batch may take when they are decompressed.
const BATCH_DECOMPRESSED: DecompressionLimit = DecompressionLimit::bytes(64 * 1024 * 1024);
/// How long an interrupted read goes on trying when nobody waits for records.
const RETRY_WAIT: Duration = Duration::from_secs(10);

/// Where to begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Start {
    Offset(Offset),
    /// With the first record that is still there.
    Earliest,
    /// With the next record that comes.
    Latest,
    /// With the first record whose timestamp is this or later; where there is none, with the next that comes.
    Time(Timestamp),
    /// With as many records before the end (as offsets count), or the first that is still there.
    Last(u64),
}

/// Which records a reader sees.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Isolation {
    #[default]
    ReadUncommitted,
    /// Neither open nor aborted transactions.
    ReadCommitted,
}

impl Isolation {
    pub(crate) fn wire(self) -> i8 {
        match self {
            Isolation::ReadUncommitted => 0,
            Isolation::ReadCommitted => 1,
        }
    }
}

/// How much one fetch may bring and how long it may wait for a first record.
#[derive(Clone, Debug)]
pub struct FetchLimits {
    pub records_max: usize,
    /// Of batches as they are stored; a first batch that is larger comes whole.
    pub bytes_max: usize,
    pub wait: Duration,
    pub isolation: Isolation,
}

impl Default for FetchLimits {
    fn default() -> Self {
        FetchLimits {
            records_max: 10_000,
            bytes_max: 1024 * 1024,
            wait: Duration::ZERO,
            isolation: Isolation::default(),
        }
    }
}

/// What a fetch brought.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fetched {
    pub records: Vec<Record>,
    /// Where to read on.
    pub next: Offset,
    /// The end of what readers of this isolation can see: the high watermark, or the last stable offset.
    pub end: Offset,
    /// The first offset that is still there; `None` if the leader did not say.
    pub log_start: Option<Offset>,
}

impl Client {
    /// Reads records of a partition from `start` on. Comes back with the first ones there are, or with none when
    /// [`FetchLimits::wait`] is over.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if `start` is an offset outside the log, [`Error::Batch`] if what is stored is damaged, and
    /// those of [`Client::call`].
    pub async fn fetch(
        &self,
        context: &CallContext,
        partition: &TopicPartition,
        start: Start,
        limits: &FetchLimits,
    ) -> Result<Fetched, Error> {
        let mut position = self.position(context, partition, start, limits.isolation).await?;
        let until = Instant::now() + limits.wait;
        let mut retry = Retry::within(limits.wait.max(RETRY_WAIT));
        let mut was_unknown = false;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let wanted = Wanted {
                partition: partition.clone(),
                position,
                bytes_max: limits.bytes_max,
            };
            let answer = match self.fetch_one(context, wanted, left, limits).await {
                Ok(answer) => answer,
                Err(error) if error.code() == ErrorCode::OffsetOutOfRange => {
                    return Err(self.out_of_range(context, partition, position).await?);
                }
                // Once may be stale knowledge; twice, and it is not there.
                Err(error) if is_unknown_topic(&error) && was_unknown => return Err(error),
                Err(error) if error.is_retriable() && retry.pause().await => {
                    was_unknown |= is_unknown_topic(&error);
                    continue;
                }
                Err(error) => return Err(error),
            };
            let Decoded { records, next } = answer.decode(partition, position, limits)?;
            let nothing_skipped = next == position;
            position = next;
            let is_over = left.is_zero() && (nothing_skipped || position >= answer.end);
            if !records.is_empty() || is_over {
                return Ok(Fetched {
                    records,
                    next,
                    end: answer.end,
                    log_start: answer.log_start,
                });
            }
        }
    }

    async fn fetch_one(
        &self,
        context: &CallContext,
        wanted: Wanted,
        wait: Duration,
        limits: &FetchLimits,
    ) -> Result<PartitionAnswer, Error> {
        let target = Target::LeaderOf(wanted.partition.clone());
        let partition = wanted.partition.clone();
        let answers = self
            .fetch_from(context, target, vec![wanted], wait, limits.bytes_max, limits.isolation)
            .await?;
        let answer = answers.into_iter().find(|(of, _)| *of == partition);
        let (_, answer) = answer.ok_or_else(|| fetch::lacking(&partition))?;
        answer.inspect_err(|error| self.doubt(&Target::LeaderOf(partition), error))
    }

    /// The offset at which `start` lies now.
    ///
    /// # Errors
    /// Those of [`Client::list_offset`].
    pub async fn position(
        &self,
        context: &CallContext,
        partition: &TopicPartition,
        start: Start,
        isolation: Isolation,
    ) -> Result<Offset, Error> {
        let list = async |spec| self.list_offset(context, partition, spec, isolation).await;
        let end = async || Ok(list(OffsetSpec::Latest).await?.unwrap_or_default());
        match start {
            Start::Offset(offset) => Ok(offset),
            Start::Earliest => Ok(list(OffsetSpec::Earliest).await?.unwrap_or_default()),
            Start::Latest => end().await,
            Start::Time(timestamp) => match list(OffsetSpec::Time(timestamp)).await? {
                Some(offset) => Ok(offset),
                None => end().await,
            },
            Start::Last(count) => {
                let earliest = list(OffsetSpec::Earliest).await?.unwrap_or_default();
                let back = end()
                    .await?
                    .get()
                    .saturating_sub(i64::try_from(count).unwrap_or(i64::MAX));
                Ok(Offset::from_wire(back).unwrap_or_default().max(earliest))
            }
        }
    }

    /// The error for a position outside the log, with the log's bounds; `Err` if those cannot be found out.
    async fn out_of_range(
        &self,
        context: &CallContext,
        partition: &TopicPartition,
        offset: Offset,
    ) -> Result<Error, Error> {
        let isolation = Isolation::ReadUncommitted;
        let log_start = self.position(context, partition, Start::Earliest, isolation).await?;
        let log_end = self.position(context, partition, Start::Latest, isolation).await?;
        Ok(Error::OutOfRange {
            partition: partition.clone(),
            offset,
            log_start,
            log_end,
        })
    }
}

fn is_unknown_topic(error: &Error) -> bool {
    matches!(
        error.code(),
        ErrorCode::UnknownTopicOrPartition | ErrorCode::UnknownTopicId
    )
}
