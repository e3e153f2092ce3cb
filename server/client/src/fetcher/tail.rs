//! Reads several partitions on and on, one long poll for each leader at a time.
//!
//! ```text
//!   idle partitions ──► grouped by leader ──► Fetch ──► decode ──► bounded channel ──► reader
//!         ▲                                                           │ full: nothing is fetched
//!         └───────────────── next position ◄──────────────────────────┘
//! ```
//! A slow reader stops the fetching: at most [`CHUNKS_WAITING_MAX`] chunks of [`WAITING_BYTES_MAX`] in all wait for it, or
//! one that is larger, and beside them one answer a leader is held.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use model::record_batch::Record;
use model::{BrokerId, ErrorCode, Offset, TopicPartition};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::{JoinHandle, JoinSet};

use super::decode::{Decoded, record_bytes};
use super::fetch::{PartitionAnswer, Wanted};
use super::{Isolation, Start};
use crate::retry::retrying;
use crate::{CallContext, Client, Error, Target};

/// How many chunks may wait for the reader.
const CHUNKS_WAITING_MAX: usize = 16;
/// What the chunks that wait may take; one that is larger waits alone.
pub(super) const WAITING_BYTES_MAX: u32 = 256 * 1024;
/// How much of that has to be free before more is fetched. An answer is read in parts of that size: whole batches.
const FETCH_ROOM_BYTES: u32 = WAITING_BYTES_MAX / 2;
/// How many partitions one tail may read.
const PARTITIONS_MAX: usize = 10_000;
/// How long a partition rests after an error that may pass.
const PAUSE: Duration = Duration::from_millis(200);

/// What happens when the position of a partition is no longer, or not yet, in its log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OutOfRange {
    /// The tail ends with [`Error::OutOfRange`].
    #[default]
    Fails,
    /// It goes on with the first record that is there (`auto.offset.reset=earliest`).
    ToEarliest,
    /// It goes on with the next that comes (`auto.offset.reset=latest`).
    ToLatest,
}

/// How a tail reads.
#[derive(Clone, Debug)]
pub struct TailOptions {
    /// The most that one fetch brings from one partition.
    pub partition_bytes_max: usize,
    /// The most that one fetch brings in all.
    pub bytes_max: usize,
    /// The most records in one chunk.
    pub records_max: usize,
    /// How long a leader may wait for a first record before it answers that there is none.
    pub wait: Duration,
    pub isolation: Isolation,
    pub out_of_range: OutOfRange,
}

impl Default for TailOptions {
    fn default() -> Self {
        TailOptions {
            partition_bytes_max: 1024 * 1024,
            bytes_max: 8 * 1024 * 1024,
            records_max: 1000,
            wait: Duration::from_millis(500),
            isolation: Isolation::default(),
            out_of_range: OutOfRange::default(),
        }
    }
}

/// What came from one partition. A chunk without records says that its end was reached.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chunk {
    pub partition: TopicPartition,
    pub records: Vec<Record>,
    /// Where the partition is read on.
    pub next: Offset,
    /// The end of what readers of this isolation can see.
    pub end: Offset,
}

impl Chunk {
    /// What it takes in memory, about; never zero.
    pub(super) fn size_bytes(&self) -> usize {
        size_of::<Chunk>() + self.records.iter().map(record_bytes).sum::<usize>()
    }
}

/// What the reader takes next, and its share of the room.
type Waiting = (Result<Chunk, Error>, Option<OwnedSemaphorePermit>);

/// An endless read. Dropping it ends it.
pub struct Tail {
    chunks: mpsc::Receiver<Waiting>,
    task: JoinHandle<()>,
}

impl Drop for Tail {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Tail {
    /// The next chunk; after an error there is none.
    pub async fn next(&mut self) -> Option<Result<Chunk, Error>> {
        let (chunk, _room) = self.chunks.recv().await?;
        Some(chunk)
    }

    /// Ends the reading, and gives what waits.
    #[cfg(test)]
    pub(super) fn waiting(mut self) -> Vec<Chunk> {
        self.task.abort();
        std::iter::from_fn(|| self.chunks.try_recv().ok())
            .map(|(chunk, _)| chunk.unwrap())
            .collect()
    }
}

impl Client {
    /// Reads partitions from their starts on, for as long as the [`Tail`] lives. Errors that may pass are waited out;
    /// any other is the tail's last word. A chunk is reported for each partition when it has records, and when its end
    /// is reached for the first time or again.
    ///
    /// # Errors
    /// If a start cannot be resolved to an offset.
    pub async fn tail(
        &self,
        context: &CallContext,
        starts: Vec<(TopicPartition, Start)>,
        options: TailOptions,
    ) -> Result<Tail, Error> {
        if starts.len() > PARTITIONS_MAX {
            return Err(Error::Invalid(format!(
                "{} partitions to be read, at most {PARTITIONS_MAX} are",
                starts.len()
            )));
        }
        let mut idle = BTreeMap::new();
        for (partition, start) in starts {
            let resolve = || self.position(context, &partition, start, options.isolation);
            let offset = retrying(self.options().call_wait_max, resolve).await?;
            idle.insert(
                partition,
                Reading {
                    position: offset,
                    was_at_end: false,
                },
            );
        }
        let (sender, chunks) = mpsc::channel(CHUNKS_WAITING_MAX);
        let driver = Driver {
            client: self.clone(),
            context: context.clone(),
            options,
            idle,
            polls: JoinSet::new(),
            polls_sent: 0,
            chunks: sender,
            room: Arc::new(Semaphore::new(WAITING_BYTES_MAX as usize)),
        };
        Ok(Tail {
            chunks,
            task: tokio::spawn(driver.run()),
        })
    }
}

/// Where a partition is read.
#[derive(Clone, Copy)]
struct Reading {
    position: Offset,
    was_at_end: bool,
}

type Batch = BTreeMap<TopicPartition, Reading>;
type Answers = Vec<(TopicPartition, Result<PartitionAnswer, Error>)>;

struct Driver {
    client: Client,
    context: CallContext,
    options: TailOptions,
    /// Partitions that no poll is out for.
    idle: Batch,
    polls: JoinSet<(Batch, Result<Answers, Error>)>,
    /// Each poll begins with another partition, for an answer may be full before it comes to the last.
    polls_sent: usize,
    chunks: mpsc::Sender<Waiting>,
    /// What is left of [`WAITING_BYTES_MAX`].
    room: Arc<Semaphore>,
}

impl Driver {
    async fn run(mut self) {
        if let Err(error) = self.read_on().await {
            // A reader who has gone does not want to know.
            let _ = self.chunks.send((Err(error), None)).await;
        }
    }

    /// Ends with an error for good, or when the reader has gone.
    async fn read_on(&mut self) -> Result<(), Error> {
        loop {
            self.wait_for_room().await;
            self.start_polls().await?;
            let Some(done) = self.polls.join_next().await else {
                return Ok(());
            };
            let Ok((batch, answers)) = done else { return Ok(()) };
            match answers {
                Ok(answers) => {
                    if !self.hand_out(batch, answers).await? {
                        return Ok(());
                    }
                }
                Err(error) if error.is_retriable() => {
                    for partition in batch.keys() {
                        self.client.doubt(&Target::LeaderOf(partition.clone()), &error);
                    }
                    self.rest(batch);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits until the reader has taken enough for more to be fetched.
    async fn wait_for_room(&self) {
        let room = self.room.acquire_many(FETCH_ROOM_BYTES).await;
        drop(room.expect("the semaphore is never closed"));
    }

    /// Sends a poll to each leader for its partitions that are idle.
    async fn start_polls(&mut self) -> Result<(), Error> {
        let mut by_leader: BTreeMap<BrokerId, Batch> = BTreeMap::new();
        let mut leaderless = Batch::new();
        for (partition, reading) in std::mem::take(&mut self.idle) {
            match self.client.leader(&self.context, &partition).await {
                Ok(leader) => {
                    by_leader.entry(leader).or_default().insert(partition, reading);
                }
                Err(error) if may_pass(&error) => {
                    leaderless.insert(partition, reading);
                }
                Err(error) => return Err(error),
            }
        }
        if !leaderless.is_empty() {
            self.rest(leaderless);
        }
        for (leader, batch) in by_leader {
            self.poll(leader, batch);
        }
        Ok(())
    }

    fn poll(&mut self, leader: BrokerId, batch: Batch) {
        let client = self.client.clone();
        let context = self.context.clone();
        let options = self.options.clone();
        let first = self.polls_sent % batch.len().max(1);
        self.polls_sent = self.polls_sent.wrapping_add(1);
        self.polls.spawn(async move {
            let wanted = batch.iter().map(|(partition, reading)| Wanted {
                partition: partition.clone(),
                position: reading.position,
                bytes_max: options.partition_bytes_max,
            });
            let mut wanted: Vec<Wanted> = wanted.collect();
            wanted.rotate_left(first);
            let target = Target::Broker(leader);
            let polled = client.fetch_from(
                &context,
                target,
                wanted,
                options.wait,
                options.bytes_max,
                options.isolation,
            );
            let answers = polled.await;
            (batch, answers)
        });
    }

    /// Lets partitions wait a little before they are polled again.
    fn rest(&mut self, batch: Batch) {
        self.polls.spawn(async move {
            tokio::time::sleep(PAUSE).await;
            (batch, Ok(Vec::new()))
        });
    }

    /// Gives what came to the reader; false if that one has gone. An error for good comes after what other partitions
    /// brought with it.
    async fn hand_out(&mut self, mut batch: Batch, answers: Answers) -> Result<bool, Error> {
        let mut resting = Batch::new();
        let mut failed = None;
        for (partition, answer) in answers {
            let Some(reading) = batch.remove(&partition) else {
                continue;
            };
            let handed_out = match answer {
                Ok(answer) => self.hand_out_one(partition, reading, &answer).await,
                Err(error) if error.code() == ErrorCode::OffsetOutOfRange => {
                    self.reset(&partition, reading.position).await.map(|position| {
                        let reading = Reading {
                            position,
                            was_at_end: false,
                        };
                        resting.insert(partition, reading);
                        true
                    })
                }
                Err(error) if error.is_retriable() => {
                    self.client.doubt(&Target::LeaderOf(partition.clone()), &error);
                    resting.insert(partition, reading);
                    Ok(true)
                }
                Err(error) => Err(error),
            };
            match handed_out {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        if let Some(error) = failed {
            return Err(error);
        }
        // What the answer does not speak of is asked for again.
        self.idle.extend(batch);
        if !resting.is_empty() {
            self.rest(resting);
        }
        Ok(!self.chunks.is_closed())
    }

    /// Gives what came from one partition to the reader; false if that one has gone.
    async fn hand_out_one(
        &mut self,
        partition: TopicPartition,
        reading: Reading,
        answer: &PartitionAnswer,
    ) -> Result<bool, Error> {
        let mut reading = reading;
        let mut decoding = answer.decoding(reading.position, self.options.isolation);
        while !decoding.is_over() {
            let part = decoding.part(usize::MAX, FETCH_ROOM_BYTES as usize);
            let part = part.map_err(|damage| damage.of(&partition))?;
            let is_at_end = part.next >= answer.end;
            let has_news = !part.records.is_empty() || (is_at_end && !reading.was_at_end);
            if has_news && !self.hand_out_part(&partition, part, answer.end).await {
                return Ok(false);
            }
            reading = Reading {
                position: decoding.position(),
                was_at_end: is_at_end,
            };
        }
        self.idle.insert(partition, reading);
        Ok(true)
    }

    /// Cuts records into chunks; false if the reader has gone.
    async fn hand_out_part(&self, partition: &TopicPartition, part: Decoded, end: Offset) -> bool {
        let records_max = self.options.records_max.max(1);
        let Decoded {
            records: mut rest,
            next,
        } = part;
        loop {
            let after = rest.split_off(records_max.min(rest.len()));
            let next = after.first().map_or(next, |first| first.offset);
            let chunk = Chunk {
                partition: partition.clone(),
                records: rest,
                next,
                end,
            };
            if !self.send(chunk).await {
                return false;
            }
            if after.is_empty() {
                return true;
            }
            rest = after;
        }
    }

    /// Lets a chunk wait for the reader as soon as there is room; false if that one has gone.
    async fn send(&self, chunk: Chunk) -> bool {
        let size_bytes = u32::try_from(chunk.size_bytes()).unwrap_or(u32::MAX);
        let room = self.room.clone();
        let room = room.acquire_many_owned(size_bytes.min(WAITING_BYTES_MAX)).await;
        let room = room.expect("the semaphore is never closed");
        self.chunks.send((Ok(chunk), Some(room))).await.is_ok()
    }

    async fn reset(&self, partition: &TopicPartition, position: Offset) -> Result<Offset, Error> {
        let start = match self.options.out_of_range {
            OutOfRange::Fails => {
                return Err(self.client.out_of_range(&self.context, partition, position).await?);
            }
            OutOfRange::ToEarliest => Start::Earliest,
            OutOfRange::ToLatest => Start::Latest,
        };
        let resolve = || {
            self.client
                .position(&self.context, partition, start, self.options.isolation)
        };
        let reset = retrying(self.client.options().call_wait_max, resolve).await?;
        tracing::info!(
            topic = %partition.topic, partition = %partition.partition, from = %position, to = %reset,
            "position lies outside the log"
        );
        Ok(reset)
    }
}

/// A topic that is gone stays gone for its readers; anything else may pass.
fn may_pass(error: &Error) -> bool {
    error.is_retriable()
        && !matches!(
            error.code(),
            ErrorCode::UnknownTopicOrPartition | ErrorCode::UnknownTopicId
        )
}
