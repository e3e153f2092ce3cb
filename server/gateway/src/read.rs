//! Reads records of one or several partitions of a topic: where to begin, and one bounded answer.
//!
//! Records of several partitions come merged by their timestamps, as far as these ascend in each partition; the order
//! within a partition is never changed. What is read on with is a [`Cursor`], so a reader needs no state here.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use client::admin::OffsetSpec;
use client::{CallContext, Chunk, Client, Error, Isolation, Start, Tail, TailOptions};
use model::record_batch::Record;
use model::{Offset, PartitionIndex, Timestamp, TopicName, TopicPartition};
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};

use crate::cursor::{self, PARTITIONS_MAX, Positions};
use crate::gateway::Gateway;
use crate::problem::Problem;
use crate::server::stopped;

/// The most that one answer gathers, as records are stored; the first records of a partition come all the same.
const READ_BYTES_MAX: usize = 4 * 1024 * 1024;
/// What is fetched from a partition at a time.
const PARTITION_BYTES: std::ops::RangeInclusive<usize> = 16 * 1024..=1024 * 1024;
/// What is fetched at a time for a reader who may take nothing for long: it is held for as long.
const LONG_TAIL_BYTES: usize = 128 * 1024;
/// What a record is taken to have when it is guessed how much to fetch.
const RECORD_BYTES_GUESS: usize = 1024;
/// How long it may take to gather what is there.
const GATHER_WAIT_MAX: Duration = Duration::from_secs(20);
/// How long a leader holds a poll of a reader who waits.
const POLL_WAIT: Duration = Duration::from_secs(1);

/// Where a read begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum From {
    Earliest,
    Latest,
    Offset(Offset),
    Time(Timestamp),
    Cursor(Cursor),
}

impl From {
    /// `earliest`, `latest`, `offset:N` or `time:MS`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let number = |text: &str| {
            let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            is_plain.then(|| text.parse::<i64>().ok()).flatten()
        };
        match text.split_once(':') {
            None if text == "earliest" => Some(From::Earliest),
            None if text == "latest" => Some(From::Latest),
            Some(("offset", offset)) => Offset::from_wire(number(offset)?).map(From::Offset),
            Some(("time", millis)) => Timestamp::from_wire(number(millis)?).map(From::Time),
            _ => None,
        }
    }
}

/// Where a reader stands, and whether it reads whatever partitions the topic has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Cursor {
    pub(crate) all: bool,
    pub(crate) positions: Positions,
}

/// Before the positions of one who reads all partitions.
const ALL: char = '*';

impl Cursor {
    pub(crate) fn text(&self) -> String {
        let mut text = cursor::write(&self.positions);
        if self.all {
            text.insert(0, ALL);
        }
        text
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (all, positions) = match text.strip_prefix(ALL) {
            Some("") => (true, Positions::new()),
            Some(positions) => (true, cursor::read(positions)?),
            None => (false, cursor::read(text)?),
        };
        Some(Cursor { all, positions })
    }
}

/// What one answer brings.
#[derive(Debug)]
pub(crate) struct Gathered {
    pub(crate) records: Vec<(PartitionIndex, Record)>,
    pub(crate) next: Cursor,
}

/// What is read, by whom.
pub(crate) struct Reader<'a> {
    pub(crate) gateway: &'a Gateway,
    pub(crate) context: &'a CallContext,
    pub(crate) topic: &'a TopicName,
}

impl Reader<'_> {
    fn client(&self) -> &Client {
        &self.gateway.client
    }

    fn partition(&self, index: PartitionIndex) -> TopicPartition {
        TopicPartition {
            topic: self.topic.clone(),
            partition: index,
        }
    }

    /// The positions that `from` means now, for one partition or for all.
    pub(crate) async fn resolve(&self, only: Option<PartitionIndex>, from: &From) -> Result<Cursor, Problem> {
        let topic = self.client().describe_topic(self.context, self.topic).await?;
        let there: Vec<PartitionIndex> = topic.partitions.iter().map(|partition| partition.index).collect();
        let (all, wanted) = wanted(&there, only, from)?;
        if let Some(lacking) = wanted.iter().find(|index| !there.contains(index)) {
            return Err(Problem::new(
                axum::http::StatusCode::NOT_FOUND,
                "unknown_partition",
                format!(
                    "topic {} has no partition {lacking}; it has {}",
                    self.topic,
                    there.len()
                ),
            ));
        }
        if wanted.len() > PARTITIONS_MAX {
            return Err(Problem::invalid(format!(
                "topic {} has {} partitions, at most {PARTITIONS_MAX} are read at once; name one with `partition`",
                self.topic,
                wanted.len()
            )));
        }
        let positions = match from {
            From::Earliest => self.list(&wanted, OffsetSpec::Earliest).await?,
            From::Latest => self.list(&wanted, OffsetSpec::Latest).await?,
            From::Time(time) => self.list_time(&wanted, *time).await?,
            From::Offset(_) if wanted.len() > 1 => {
                let detail = format!(
                    "`from=offset:N` needs `partition`, for topic {} has {} of them",
                    self.topic,
                    wanted.len()
                );
                return Err(Problem::invalid(detail));
            }
            From::Offset(offset) => {
                let positions = wanted.iter().map(|index| (*index, *offset)).collect();
                self.within_logs(&wanted, positions).await?
            }
            From::Cursor(cursor) => self.within_logs(&wanted, cursor.positions.clone()).await?,
        };
        Ok(Cursor { all, positions })
    }

    async fn list(&self, wanted: &[PartitionIndex], spec: OffsetSpec) -> Result<Positions, Problem> {
        let listed = self.list_some(wanted, spec).await?;
        Ok(listed
            .into_iter()
            .map(|(index, offset)| (index, offset.unwrap_or_default()))
            .collect())
    }

    async fn list_some(
        &self,
        wanted: &[PartitionIndex],
        spec: OffsetSpec,
    ) -> Result<BTreeMap<PartitionIndex, Option<Offset>>, Problem> {
        let specs = wanted.iter().map(|index| (self.partition(*index), spec)).collect();
        let listed = self
            .client()
            .list_offsets(self.context, &specs, Isolation::default())
            .await;
        let mut offsets = BTreeMap::new();
        for (partition, found) in listed {
            offsets.insert(partition.partition, found?.map(|found| found.offset));
        }
        Ok(offsets)
    }

    /// Where no record is that late, reading begins with the next that comes.
    async fn list_time(&self, wanted: &[PartitionIndex], time: Timestamp) -> Result<Positions, Problem> {
        let found = self.list_some(wanted, OffsetSpec::Time(time)).await?;
        let lacking: Vec<PartitionIndex> = found
            .iter()
            .filter(|(_, offset)| offset.is_none())
            .map(|(index, _)| *index)
            .collect();
        let mut positions = Positions::new();
        if !lacking.is_empty() {
            positions = self.list(&lacking, OffsetSpec::Latest).await?;
        }
        positions.extend(found.into_iter().filter_map(|(index, offset)| Some((index, offset?))));
        Ok(positions)
    }

    /// Positions as they are, if they lie within the logs; partitions without one begin with their logs.
    async fn within_logs(&self, wanted: &[PartitionIndex], mut positions: Positions) -> Result<Positions, Problem> {
        let starts = self.list(wanted, OffsetSpec::Earliest).await?;
        let ends = self.list(wanted, OffsetSpec::Latest).await?;
        for (index, log_start) in starts {
            let log_end = ends.get(&index).copied().unwrap_or(log_start);
            let offset = *positions.entry(index).or_insert(log_start);
            if offset < log_start || offset > log_end {
                return Err(Problem::from(Error::OutOfRange {
                    partition: self.partition(index),
                    offset,
                    log_start,
                    log_end,
                }));
            }
        }
        Ok(positions)
    }

    /// Opens a tail at the cursor's positions, sized for an answer of about `limit` records.
    async fn tail(&self, cursor: &Cursor, limit: usize, wait: Duration) -> Result<Tail, Problem> {
        let share = READ_BYTES_MAX / cursor.positions.len().max(1);
        let guess = limit.saturating_mul(RECORD_BYTES_GUESS).min(share);
        let partition_bytes_max = guess.clamp(*PARTITION_BYTES.start(), *PARTITION_BYTES.end());
        self.tail_by(cursor, partition_bytes_max, READ_BYTES_MAX, wait).await
    }

    /// Opens a tail at the cursor's positions for a reader who may take nothing for long.
    pub(crate) async fn long_tail(&self, cursor: &Cursor, wait: Duration) -> Result<Tail, Problem> {
        self.tail_by(cursor, LONG_TAIL_BYTES, LONG_TAIL_BYTES, wait).await
    }

    async fn tail_by(
        &self,
        cursor: &Cursor,
        partition_bytes_max: usize,
        bytes_max: usize,
        wait: Duration,
    ) -> Result<Tail, Problem> {
        let options = TailOptions {
            partition_bytes_max,
            bytes_max,
            wait,
            ..TailOptions::default()
        };
        let starts = cursor.positions.iter();
        let starts = starts.map(|(index, offset)| (self.partition(*index), Start::Offset(*offset)));
        Ok(self.client().tail(self.context, starts.collect(), options).await?)
    }

    /// Up to `limit` records; if none is there, waits for the first as long as `wait`.
    pub(crate) async fn gather(&self, cursor: Cursor, limit: usize, wait: Duration) -> Result<Gathered, Problem> {
        let until = Instant::now() + wait;
        let there = {
            let _turn = self
                .gateway
                .reads
                .acquire()
                .await
                .expect("the semaphore is never closed");
            let mut tail = self.tail(&cursor, limit, Duration::ZERO).await?;
            let mut gathering = Gathering::new(cursor, limit);
            let gathered = timeout(GATHER_WAIT_MAX, gathering.take_all(&mut tail)).await;
            gathered.map_err(|_| gathering_took_too_long())??;
            gathering.merge()
        };
        if !there.records.is_empty() || wait.is_zero() {
            return Ok(there);
        }
        let poll_wait = POLL_WAIT.min(wait);
        let mut tail = self.tail(&there.next, limit, poll_wait).await?;
        let mut gathering = Gathering::new(there.next, limit);
        let mut stop: watch::Receiver<bool> = self.gateway.stop.clone();
        let first = async {
            tokio::select! {
                first = gathering.take_first(&mut tail) => first,
                () = stopped(&mut stop) => Ok(()),
            }
        };
        if let Ok(first) = timeout_at(until, first).await {
            first?;
        }
        Ok(gathering.merge())
    }
}

fn gathering_took_too_long() -> Problem {
    Problem::new(
        axum::http::StatusCode::GATEWAY_TIMEOUT,
        "read_timeout",
        "the records were not read in time",
    )
    .retryable()
}

/// Which partitions are read, and whether these are all there are.
fn wanted(
    there: &[PartitionIndex],
    only: Option<PartitionIndex>,
    from: &From,
) -> Result<(bool, Vec<PartitionIndex>), Problem> {
    let of_cursor = match from {
        From::Cursor(cursor) if !cursor.all => Some(cursor.positions.keys().copied().collect::<Vec<_>>()),
        _ => None,
    };
    match (only, of_cursor, from) {
        (Some(only), Some(of_cursor), _) if of_cursor != [only] => {
            Err(Problem::invalid("the cursor is of other partitions than `partition`"))
        }
        (Some(_), None, From::Cursor(_)) => {
            Err(Problem::invalid("the cursor is of all partitions, not of `partition`"))
        }
        (Some(only), _, _) => Ok((false, vec![only])),
        (None, Some(of_cursor), _) => Ok((false, of_cursor)),
        (None, None, From::Cursor(cursor)) => {
            let mut wanted: Vec<PartitionIndex> = cursor.positions.keys().copied().collect();
            wanted.extend(there.iter().filter(|index| !cursor.positions.contains_key(index)));
            Ok((true, wanted))
        }
        (None, None, _) => Ok((true, there.to_vec())),
    }
}

/// One partition's part of an answer.
struct Gathering {
    all: bool,
    limit: usize,
    partitions: BTreeMap<PartitionIndex, Part>,
    bytes: usize,
}

struct Part {
    records: VecDeque<Record>,
    /// Where reading goes on after these records.
    next: Offset,
    is_at_end: bool,
}

impl Gathering {
    fn new(cursor: Cursor, limit: usize) -> Self {
        let part = |next| Part {
            records: VecDeque::new(),
            next,
            is_at_end: false,
        };
        let partitions = cursor.positions.into_iter();
        Gathering {
            all: cursor.all,
            limit,
            partitions: partitions.map(|(index, next)| (index, part(next))).collect(),
            bytes: 0,
        }
    }

    /// Takes chunks until every partition has brought enough, or all it has, or one of them fails.
    async fn take_all(&mut self, tail: &mut Tail) -> Result<(), Problem> {
        while !self.has_enough() {
            match tail.next().await {
                Some(Ok(chunk)) => self.take(chunk),
                // What goes wrong after records have come is the next read's to tell.
                Some(Err(_)) if self.bytes > 0 => break,
                Some(Err(error)) => return Err(error.into()),
                None => break,
            }
        }
        Ok(())
    }

    /// Waits for a chunk with records, and takes those that came with it.
    async fn take_first(&mut self, tail: &mut Tail) -> Result<(), Problem> {
        while self.bytes == 0 {
            match tail.next().await {
                Some(chunk) => self.take(chunk?),
                None => return Ok(()),
            }
        }
        while !self.has_enough() {
            match timeout(Duration::ZERO, tail.next()).await {
                Ok(Some(Ok(chunk))) => self.take(chunk),
                // What goes wrong after records have come is the next read's to tell.
                _ => break,
            }
        }
        Ok(())
    }

    fn take(&mut self, chunk: Chunk) {
        let Some(part) = self.partitions.get_mut(&chunk.partition.partition) else {
            return;
        };
        part.next = chunk.next;
        part.is_at_end = chunk.next >= chunk.end;
        self.bytes += chunk.records.iter().map(size_bytes).sum::<usize>();
        part.records.extend(chunk.records);
    }

    fn has_enough(&self) -> bool {
        let is_full = self.bytes >= READ_BYTES_MAX;
        is_full
            || self
                .partitions
                .values()
                .all(|part| part.is_at_end || part.records.len() >= self.limit)
    }

    /// The first records by time, each partition's in their order.
    fn merge(mut self) -> Gathered {
        let mut records = Vec::new();
        while records.len() < self.limit {
            let heads = self.partitions.iter();
            let first = heads
                .filter_map(|(index, part)| Some((part.records.front()?.timestamp, *index)))
                .min();
            let Some((_, index)) = first else { break };
            let head = self
                .partitions
                .get_mut(&index)
                .and_then(|part| part.records.pop_front());
            records.extend(head.map(|record| (index, record)));
        }
        let positions = self.partitions.into_iter().map(|(index, part)| {
            let next = part.records.front().map_or(part.next, |record| record.offset);
            (index, next)
        });
        let next = Cursor {
            all: self.all,
            positions: positions.collect(),
        };
        Gathered { records, next }
    }
}

/// Never zero, so that a record without bytes counts.
pub(crate) fn size_bytes(record: &Record) -> usize {
    let length = |field: &Option<bytes::Bytes>| field.as_ref().map_or(0, bytes::Bytes::len);
    let headers = record.headers.iter();
    let headers: usize = headers.map(|header| header.key.len() + length(&header.value)).sum();
    1 + length(&record.key) + length(&record.value) + headers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_are_read_as_they_are_written() {
        assert_eq!(From::parse("earliest"), Some(From::Earliest));
        assert_eq!(From::parse("latest"), Some(From::Latest));
        assert_eq!(From::parse("offset:7"), Some(From::Offset(Offset::new(7))));
        assert_eq!(
            From::parse("time:1700000000000"),
            Some(From::Time(Timestamp::from_millis(1_700_000_000_000)))
        );
        for text in [
            "",
            "first",
            "offset",
            "offset:",
            "offset:-1",
            "offset:+1",
            "time:x",
            "offset:9223372036854775808",
        ] {
            assert_eq!(From::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_cursor_knows_whether_it_is_of_all_partitions() {
        for text in ["*5,7", "5,7", "3:1", "*"] {
            assert_eq!(Cursor::parse(text).unwrap().text(), text);
        }
        assert_eq!(Cursor::parse("*x"), None);
    }

    fn record(offset: i64, millis: i64) -> Record {
        Record {
            offset: Offset::new(offset),
            timestamp: Timestamp::from_millis(millis),
            key: None,
            value: None,
            headers: Vec::new(),
        }
    }

    fn chunk(partition: i32, records: Vec<Record>, next: i64, end: i64) -> Chunk {
        Chunk {
            partition: TopicPartition {
                topic: TopicName::new("a").unwrap(),
                partition: PartitionIndex::new(partition),
            },
            records,
            next: Offset::new(next),
            end: Offset::new(end),
        }
    }

    fn offsets(gathered: &Gathered) -> Vec<(i32, i64)> {
        let records = gathered.records.iter();
        records
            .map(|(index, record)| (index.get(), record.offset.get()))
            .collect()
    }

    #[test]
    fn partitions_are_merged_by_time_and_a_cut_is_read_on_from() {
        let mut gathering = Gathering::new(Cursor::parse("*0,0").unwrap(), 3);
        gathering.take(chunk(0, vec![record(0, 10), record(1, 30)], 2, 2));
        gathering.take(chunk(1, vec![record(0, 20), record(1, 5), record(2, 40)], 5, 9));
        let gathered = gathering.merge();
        assert_eq!(offsets(&gathered), [(0, 0), (1, 0), (1, 1)]);
        assert_eq!(gathered.next.text(), "*1,2");
    }

    #[test]
    fn a_partition_that_is_read_out_goes_on_past_what_is_not_for_readers() {
        let mut gathering = Gathering::new(Cursor::parse("3:0").unwrap(), 10);
        assert!(!gathering.has_enough());
        gathering.take(chunk(3, vec![record(0, 10)], 4, 4));
        assert!(gathering.has_enough());
        assert_eq!(gathering.merge().next.text(), "3:4");
    }
}
