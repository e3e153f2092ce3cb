//! Reading: where it begins, what it waits for, and how it goes on.

use std::sync::Arc;

use bytes::Bytes;
use model::record_batch::{BatchBuilder, BatchOptions, BatchProducer};
use model::{ErrorCode, ProducerEpoch, ProducerId, Sequence};
use protocol::ApiKey;

use super::*;
use crate::fake_node::{FakeNode, Fault, partition, topic};

/// Appends one batch to a partition of `first`; the record's timestamps are their offsets times ten.
fn append(node: &FakeNode, index: usize, values: &[&str]) {
    let mut state = node.state();
    let log = &mut state.topics.get_mut(&topic("first")).unwrap().partitions[index];
    let producer = BatchProducer {
        id: ProducerId::new(log.end()),
        epoch: ProducerEpoch::ZERO,
        base_sequence: Some(Sequence::ZERO),
    };
    let mut builder = BatchBuilder::new(BatchOptions {
        producer: Some(producer),
        ..BatchOptions::default()
    });
    for (offset, value) in (log.end()..).zip(values) {
        builder
            .append(Timestamp::from_millis(offset * 10), None, Some(value.as_bytes()), &[])
            .unwrap();
    }
    log.append(&builder.build().unwrap()).unwrap();
    drop(state);
    node.wake();
}

fn values(records: &[Record]) -> Vec<&str> {
    records
        .iter()
        .map(|record| std::str::from_utf8(record.value.as_deref().unwrap()).unwrap())
        .collect()
}

async fn fetch(node: &Arc<FakeNode>, start: Start, limits: &FetchLimits) -> Result<Fetched, Error> {
    node.client()
        .fetch(&CallContext::anonymous(), &partition("first", 0), start, limits)
        .await
}

#[tokio::test]
async fn every_start_is_found() {
    let node = FakeNode::with_partitions(1);
    append(&node, 0, &["a", "b"]);
    append(&node, 0, &["c"]);
    let cases = [
        (Start::Earliest, vec!["a", "b", "c"], 3),
        (Start::Offset(Offset::new(1)), vec!["b", "c"], 3),
        (Start::Time(Timestamp::from_millis(15)), vec!["c"], 3),
        (Start::Time(Timestamp::from_millis(99)), vec![], 3),
        (Start::Last(2), vec!["b", "c"], 3),
        (Start::Last(9), vec!["a", "b", "c"], 3),
        (Start::Latest, vec![], 3),
    ];
    for (start, expected, next) in cases {
        let fetched = fetch(&node, start, &FetchLimits::default()).await.unwrap();
        assert_eq!(values(&fetched.records), expected, "{start:?}");
        assert_eq!(
            (fetched.next, fetched.end),
            (Offset::new(next), Offset::new(3)),
            "{start:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_fetch_waits_for_the_first_record_and_no_longer() {
    let node = FakeNode::with_partitions(1);
    let limits = FetchLimits {
        wait: Duration::from_secs(3600),
        ..FetchLimits::default()
    };
    let waiting = tokio::spawn({
        let node = node.clone();
        async move { fetch(&node, Start::Latest, &limits).await.unwrap() }
    });
    while node.asked(ApiKey::Fetch) == 0 {
        tokio::task::yield_now().await;
    }
    append(&node, 0, &["a"]);
    let start = Instant::now();
    assert_eq!(values(&waiting.await.unwrap().records), ["a"]);
    assert!(start.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_fetch_that_finds_nothing_comes_back_when_its_wait_is_over() {
    let node = FakeNode::with_partitions(1);
    let limits = FetchLimits {
        wait: Duration::from_secs(3),
        ..FetchLimits::default()
    };
    let start = Instant::now();
    let fetched = fetch(&node, Start::Earliest, &limits).await.unwrap();
    assert_eq!((fetched.records.len(), fetched.next), (0, Offset::ZERO));
    assert_eq!(start.elapsed().as_secs(), 3);
}

#[tokio::test]
async fn an_offset_outside_the_log_is_told_with_its_bounds() {
    let node = FakeNode::with_partitions(1);
    append(&node, 0, &["a", "b"]);
    node.state().topics.get_mut(&topic("first")).unwrap().partitions[0].start = 1;
    for offset in [0, 3] {
        let error = fetch(&node, Start::Offset(Offset::new(offset)), &FetchLimits::default())
            .await
            .unwrap_err();
        let Error::OutOfRange { log_start, log_end, .. } = error else {
            panic!("{error:?}")
        };
        assert_eq!((log_start.get(), log_end.get()), (1, 2));
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_moved_is_looked_up_again() {
    let node = FakeNode::with_partitions(1);
    append(&node, 0, &["a"]);
    node.fail_next(ApiKey::Fetch, [Fault::Refuse(ErrorCode::NotLeaderOrFollower)]);
    let fetched = fetch(&node, Start::Earliest, &FetchLimits::default()).await.unwrap();
    assert_eq!(values(&fetched.records), ["a"]);
    assert_eq!(node.asked(ApiKey::Metadata), 2);
}

#[tokio::test]
async fn a_topic_or_partition_that_is_not_there_is_told_at_once() {
    let node = FakeNode::with_partitions(1);
    for partition in [partition("other", 0), partition("first", 1)] {
        let client = node.client();
        let limits = FetchLimits::default();
        let fetched = client
            .fetch(&CallContext::anonymous(), &partition, Start::Earliest, &limits)
            .await;
        assert_eq!(
            fetched.unwrap_err().code(),
            ErrorCode::UnknownTopicOrPartition,
            "{partition}"
        );
    }
}

async fn tail(node: &Arc<FakeNode>, partitions: &[i32], options: TailOptions) -> Tail {
    let starts = partitions
        .iter()
        .map(|index| (partition("first", *index), Start::Earliest))
        .collect();
    node.client()
        .tail(&CallContext::anonymous(), starts, options)
        .await
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_tail_tells_the_end_once_and_goes_on_with_what_comes() {
    let node = FakeNode::with_partitions(1);
    append(&node, 0, &["a"]);
    let mut tail = tail(&node, &[0], TailOptions::default()).await;
    let chunk = tail.next().await.unwrap().unwrap();
    assert_eq!(
        (values(&chunk.records), chunk.next, chunk.end),
        (vec!["a"], Offset::new(1), Offset::new(1))
    );
    append(&node, 0, &["b"]);
    let chunk = tail.next().await.unwrap().unwrap();
    assert_eq!(values(&chunk.records), ["b"]);
}

#[tokio::test(start_paused = true)]
async fn an_empty_partition_is_at_its_end() {
    let node = FakeNode::with_partitions(2);
    append(&node, 1, &["a"]);
    let mut tail = tail(&node, &[0, 1], TailOptions::default()).await;
    let mut chunks = [tail.next().await.unwrap().unwrap(), tail.next().await.unwrap().unwrap()];
    chunks.sort_by(|one, other| one.partition.cmp(&other.partition));
    assert_eq!(
        (chunks[0].records.len(), chunks[0].next, chunks[0].end),
        (0, Offset::ZERO, Offset::ZERO)
    );
    assert_eq!(values(&chunks[1].records), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_tail_cuts_an_answer_into_chunks_without_asking_twice() {
    let node = FakeNode::with_partitions(1);
    append(&node, 0, &["a", "b", "c"]);
    let mut tail = tail(
        &node,
        &[0],
        TailOptions {
            records_max: 2,
            ..TailOptions::default()
        },
    )
    .await;
    let first = tail.next().await.unwrap().unwrap();
    assert_eq!((values(&first.records), first.next), (vec!["a", "b"], Offset::new(2)));
    let second = tail.next().await.unwrap().unwrap();
    assert_eq!((values(&second.records), second.next), (vec!["c"], Offset::new(3)));
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_stops_the_fetching() {
    let node = FakeNode::with_partitions(1);
    let letters: Vec<&str> = std::iter::repeat_n("x", 100).collect();
    append(&node, 0, &letters);
    let mut tail = tail(
        &node,
        &[0],
        TailOptions {
            records_max: 1,
            ..TailOptions::default()
        },
    )
    .await;
    tail.next().await.unwrap().unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(node.asked(ApiKey::Fetch), 1);
    for _ in 1..100 {
        tail.next().await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_reader_is_bounded_in_bytes() {
    let bound = usize::try_from(tail::WAITING_BYTES_MAX).unwrap();
    for (value_bytes, records) in [(10_000, 200), (900_000, 4), (10, 2000)] {
        let node = FakeNode::with_partitions(1);
        let value = "x".repeat(value_bytes);
        for _ in 0..records {
            append(&node, 0, &[&value]);
        }
        let stalled = tail(&node, &[0], TailOptions::default()).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        let sizes: Vec<usize> = stalled.waiting().iter().map(Chunk::size_bytes).collect();
        let is_within = sizes.iter().sum::<usize>() <= bound || sizes.len() == 1;
        assert!(!sizes.is_empty() && is_within, "{value_bytes}: {sizes:?}");

        let mut tail = tail(&node, &[0], TailOptions::default()).await;
        let mut read = 0;
        while read < records {
            read += tail.next().await.unwrap().unwrap().records.len();
        }
        assert_eq!(read, records);
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_fetched_for_a_reader_for_whom_enough_waits() {
    let node = FakeNode::with_partitions(2);
    let value = "x".repeat(150_000);
    append(&node, 0, &[&value]);
    let mut tail = tail(&node, &[0], TailOptions::default()).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(node.asked(ApiKey::Fetch), 1);
    tail.next().await.unwrap().unwrap();
    append(&node, 0, &["next"]);
    assert_eq!(values(&tail.next().await.unwrap().unwrap().records), ["next"]);
}

#[tokio::test(start_paused = true)]
async fn a_position_that_was_deleted_ends_a_tail_or_moves_it_as_was_asked() {
    for out_of_range in [OutOfRange::Fails, OutOfRange::ToEarliest, OutOfRange::ToLatest] {
        let node = FakeNode::with_partitions(1);
        append(&node, 0, &["a", "b", "c"]);
        node.state().topics.get_mut(&topic("first")).unwrap().partitions[0].start = 1;
        let starts = vec![(partition("first", 0), Start::Offset(Offset::ZERO))];
        let options = TailOptions {
            out_of_range,
            ..TailOptions::default()
        };
        let mut tail = node
            .client()
            .tail(&CallContext::anonymous(), starts, options)
            .await
            .unwrap();
        let next = tail.next().await.unwrap();
        match out_of_range {
            OutOfRange::Fails => {
                assert!(matches!(next, Err(Error::OutOfRange { .. })), "{next:?}");
                assert!(tail.next().await.is_none());
            }
            OutOfRange::ToEarliest => assert_eq!(values(&next.unwrap().records)[..], ["a", "b", "c"][1..]),
            OutOfRange::ToLatest => assert_eq!(next.unwrap().next, Offset::new(3)),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_tail_waits_out_what_may_pass_and_ends_with_its_topic() {
    let node = FakeNode::with_partitions(1);
    append(&node, 0, &["a"]);
    node.fail_next(
        ApiKey::Fetch,
        [
            Fault::Refuse(ErrorCode::NotLeaderOrFollower),
            Fault::Refuse(ErrorCode::LeaderNotAvailable),
        ],
    );
    let mut tail = tail(&node, &[0], TailOptions::default()).await;
    assert_eq!(values(&tail.next().await.unwrap().unwrap().records), ["a"]);
    node.state().topics.clear();
    let error = tail.next().await.unwrap().unwrap_err();
    assert_eq!(error.code(), ErrorCode::UnknownTopicOrPartition);
}

#[tokio::test(start_paused = true)]
async fn damage_that_a_leader_tells_of_is_not_waited_out() {
    let node = FakeNode::with_partitions(1);
    append(&node, 0, &["a"]);
    let refusals = std::iter::repeat_n(Fault::Refuse(ErrorCode::CorruptMessage), 2);
    node.fail_next(ApiKey::Fetch, refusals);
    let error = fetch(&node, Start::Earliest, &FetchLimits::default())
        .await
        .unwrap_err();
    assert_eq!(error.code(), ErrorCode::CorruptMessage);
    let mut tail = tail(&node, &[0], TailOptions::default()).await;
    let error = tail.next().await.unwrap().unwrap_err();
    assert_eq!(error.code(), ErrorCode::CorruptMessage);
    assert!(tail.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn what_other_partitions_brought_comes_before_an_error_for_good() {
    let node = FakeNode::with_partitions(3);
    for index in 0..3 {
        append(&node, index, &["a"]);
    }
    {
        let mut state = node.state();
        let batch = &mut state.topics.get_mut(&topic("first")).unwrap().partitions[1].batches[0];
        let mut damaged = batch.to_vec();
        *damaged.last_mut().unwrap() ^= 1;
        *batch = Bytes::from(damaged);
    }
    let mut tail = tail(&node, &[0, 1, 2], TailOptions::default()).await;
    for index in [0, 2] {
        let chunk = tail.next().await.unwrap().unwrap();
        assert_eq!(
            (chunk.partition.partition.get(), values(&chunk.records)),
            (index, vec!["a"])
        );
    }
    assert!(matches!(tail.next().await, Some(Err(Error::Batch { .. }))));
}

#[tokio::test]
async fn damage_that_a_read_comes_to_is_an_error() {
    let node = FakeNode::with_partitions(1);
    append(&node, 0, &["a"]);
    {
        let mut state = node.state();
        let batch = &mut state.topics.get_mut(&topic("first")).unwrap().partitions[0].batches[0];
        let mut damaged = batch.to_vec();
        *damaged.last_mut().unwrap() ^= 1;
        *batch = Bytes::from(damaged);
    }
    let error = fetch(&node, Start::Earliest, &FetchLimits::default())
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Batch { .. }), "{error:?}");
    assert_eq!(error.code(), ErrorCode::CorruptMessage);
}
