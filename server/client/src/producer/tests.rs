//! Each record once and in order, whatever happens on the way.

use std::sync::Arc;
use std::time::Duration;

use protocol::ApiKey;

use super::*;
use crate::Options;
use crate::fake_node::{FakeNode, Fault, topic};

fn producer(node: &Arc<FakeNode>) -> Producer {
    producer_with(
        node,
        ProducerOptions {
            delivery_wait_max: Duration::from_secs(10),
            ..ProducerOptions::default()
        },
    )
}

fn producer_with(node: &Arc<FakeNode>, options: ProducerOptions) -> Producer {
    Producer::new(node.client(), CallContext::anonymous(), options)
}

fn record(value: &str) -> ProduceRecord {
    ProduceRecord {
        partition: Some(PartitionIndex::new(0)),
        value: Some(Bytes::copy_from_slice(value.as_bytes())),
        ..ProduceRecord::default()
    }
}

fn to_any(value: &str) -> ProduceRecord {
    ProduceRecord {
        partition: None,
        ..record(value)
    }
}

async fn send(producer: &Producer, values: &[&str]) -> Vec<Outcome> {
    producer
        .send(&topic("first"), values.iter().map(|value| record(value)).collect())
        .await
        .unwrap()
}

fn offsets(outcomes: &[Outcome]) -> Vec<i64> {
    outcomes
        .iter()
        .map(|outcome| outcome.as_ref().unwrap().offset.get())
        .collect()
}

#[tokio::test]
async fn records_of_one_call_and_the_next_continue_the_sequence() {
    let node = FakeNode::with_partitions(1);
    let producer = producer(&node);
    assert_eq!(offsets(&send(&producer, &["a", "b"]).await), [0, 1]);
    assert_eq!(offsets(&send(&producer, &["c"]).await), [2]);
    assert_eq!(node.values(0), ["a", "b", "c"]);
    assert_eq!(node.asked(ApiKey::InitProducerId), 1);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_may_pass_is_waited_out() {
    let node = FakeNode::with_partitions(1);
    let refusals = [
        ErrorCode::NotLeaderOrFollower,
        ErrorCode::NotEnoughReplicas,
        ErrorCode::CorruptMessage,
        ErrorCode::KafkaStorageError,
    ];
    node.fail_next(ApiKey::Produce, refusals.map(Fault::Refuse));
    assert_eq!(offsets(&send(&producer(&node), &["a"]).await), [0]);
    assert_eq!(node.values(0), ["a"]);
}

/// Of small batches that wait in their lane one behind the other.
fn small_batches() -> ProducerOptions {
    ProducerOptions {
        batch_bytes_max: 1,
        ..ProducerOptions::default()
    }
}

fn forever(fault: Fault) -> impl Iterator<Item = Fault> {
    std::iter::repeat_n(fault, 10_000)
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_is_full_is_told_soon_and_for_all_that_wait() {
    let node = FakeNode::with_partitions(1);
    let producer = producer_with(&node, small_batches());
    send(&producer, &["before"]).await;
    node.fail_next(ApiKey::Produce, forever(Fault::Refuse(ErrorCode::KafkaStorageError)));
    let start = Instant::now();
    let (one, other) = tokio::join!(send(&producer, &["a", "b", "c"]), send(&producer, &["d"]));
    assert!(start.elapsed() <= Duration::from_secs(2), "{:?}", start.elapsed());
    let errors = one.iter().chain(&other).map(|outcome| outcome.as_ref().unwrap_err());
    let told: Vec<_> = errors.map(|error| (error.code, error.outcome_open)).collect();
    let storage = |outcome_open| (ErrorCode::KafkaStorageError, outcome_open);
    assert_eq!(told, [storage(true), storage(false), storage(false), storage(false)]);
    node.state().faults.clear();
    assert_eq!(offsets(&send(&producer, &["e", "f"]).await), [1, 2]);
    assert_eq!(node.values(0), ["before", "e", "f"]);
    assert_eq!(node.asked(ApiKey::InitProducerId), 2);
}

#[tokio::test(start_paused = true)]
async fn what_a_call_brings_after_a_failure_is_not_written_without_what_failed() {
    let node = FakeNode::with_partitions(1);
    let producer = producer_with(
        &node,
        ProducerOptions {
            buffer_bytes_max: 1,
            ..small_batches()
        },
    );
    // As often as the first record is sent. The second finds room only then, and would be written.
    let refusals = std::iter::repeat_n(Fault::Refuse(ErrorCode::KafkaStorageError), 7);
    node.fail_next(ApiKey::Produce, refusals);
    let outcomes = send(&producer, &["a", "b", "c"]).await;
    assert!(outcomes.iter().all(Result::is_err), "{outcomes:?}");
    assert_eq!(node.asked(ApiKey::Produce), 7);
    assert_eq!(node.values(0), Vec::<String>::new());
    assert_eq!(offsets(&send(&producer, &["d"]).await), [0]);
}

#[tokio::test(start_paused = true)]
async fn all_batches_of_a_call_have_one_deadline() {
    let node = FakeNode::with_partitions(2);
    let producer = producer_with(&node, small_batches());
    node.fail_next(ApiKey::Produce, forever(Fault::Refuse(ErrorCode::NotEnoughReplicas)));
    let start = Instant::now();
    let mut records: Vec<_> = ["a", "b", "c", "d"].map(record).into();
    records[3].partition = Some(PartitionIndex::new(1));
    let outcomes = producer.send(&topic("first"), records).await.unwrap();
    assert!(outcomes.iter().all(Result::is_err), "{outcomes:?}");
    assert!(start.elapsed() <= Duration::from_secs(30), "{:?}", start.elapsed());
    node.state().faults.clear();
    assert_eq!(offsets(&send(&producer, &["e"]).await), [0]);
}

#[tokio::test(start_paused = true)]
async fn a_batch_whose_answer_was_lost_is_not_written_twice() {
    for fault in [
        Fault::RefuseAfter(ErrorCode::RequestTimedOut),
        Fault::RefuseAfter(ErrorCode::NotLeaderOrFollower),
    ] {
        let node = FakeNode::with_partitions(1);
        let producer = producer(&node);
        send(&producer, &["a"]).await;
        node.fail_next(ApiKey::Produce, [fault.clone(), fault]);
        assert_eq!(offsets(&send(&producer, &["b", "c"]).await), [1, 2]);
        assert_eq!(offsets(&send(&producer, &["d"]).await), [3]);
        assert_eq!(node.values(0), ["a", "b", "c", "d"]);
        assert_eq!(node.asked(ApiKey::InitProducerId), 1);
    }
}

#[tokio::test]
async fn a_leader_that_forgot_the_producer_gets_a_new_one() {
    let node = FakeNode::with_partitions(1);
    let producer = producer(&node);
    send(&producer, &["a"]).await;
    node.state().topics.get_mut(&topic("first")).unwrap().partitions[0]
        .producers
        .clear();
    assert_eq!(offsets(&send(&producer, &["b"]).await), [1]);
    assert_eq!(node.asked(ApiKey::InitProducerId), 2);
}

#[tokio::test(start_paused = true)]
async fn a_sequence_that_is_lost_while_a_fate_is_open_fails_rather_than_repeats() {
    let node = FakeNode::with_partitions(1);
    let producer = producer(&node);
    let faults = [
        Fault::RefuseAfter(ErrorCode::RequestTimedOut),
        Fault::Refuse(ErrorCode::OutOfOrderSequenceNumber),
    ];
    node.fail_next(ApiKey::Produce, faults);
    let outcomes = send(&producer, &["a"]).await;
    let error = outcomes[0].as_ref().unwrap_err();
    assert_eq!(error.code, ErrorCode::OutOfOrderSequenceNumber);
    assert!(error.outcome_open);
    assert_eq!(offsets(&send(&producer, &["b"]).await), [1]);
    assert_eq!(node.values(0), ["a", "b"]);
    assert_eq!(node.asked(ApiKey::InitProducerId), 2);
}

#[tokio::test(start_paused = true)]
async fn a_fate_that_stays_open_is_told_and_the_producer_id_given_up() {
    let node = FakeNode::with_partitions(1);
    let producer = producer(&node);
    node.fail_next(
        ApiKey::Produce,
        std::iter::repeat_n(Fault::Refuse(ErrorCode::RequestTimedOut), 1000),
    );
    let outcomes = send(&producer, &["a"]).await;
    assert!(outcomes[0].as_ref().unwrap_err().outcome_open);
    node.state().faults.clear();
    assert_eq!(offsets(&send(&producer, &["b"]).await), [0]);
    assert_eq!(node.asked(ApiKey::InitProducerId), 2);
}

#[tokio::test]
async fn an_exchange_that_ends_without_an_answer_is_not_repeated_blindly() {
    let node = FakeNode::with_partitions(1);
    node.fail_next(ApiKey::Produce, [Fault::CloseAfter]);
    let outcomes = send(&producer(&node), &["a"]).await;
    assert!(outcomes[0].as_ref().unwrap_err().outcome_open);
    assert_eq!(node.values(0), ["a"]);
}

#[tokio::test]
async fn a_refusal_for_good_leaves_the_sequence_as_it_was() {
    let node = FakeNode::with_partitions(1);
    let producer = producer(&node);
    node.fail_next(ApiKey::Produce, [Fault::Refuse(ErrorCode::TopicAuthorizationFailed)]);
    let outcomes = send(&producer, &["a"]).await;
    let error = outcomes[0].as_ref().unwrap_err();
    assert_eq!(
        (error.code, error.outcome_open),
        (ErrorCode::TopicAuthorizationFailed, false)
    );
    assert_eq!(offsets(&send(&producer, &["b"]).await), [0]);
    assert_eq!(node.asked(ApiKey::InitProducerId), 1);
}

#[tokio::test]
async fn a_batch_that_is_too_large_is_halved_until_it_fits() {
    let node = FakeNode::with_partitions(1);
    node.state().batch_bytes_max = Some(100);
    let values: Vec<String> = (0..9).map(|n| n.to_string()).collect();
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    assert_eq!(
        offsets(&send(&producer(&node), &values).await),
        [0, 1, 2, 3, 4, 5, 6, 7, 8]
    );
    assert_eq!(node.values(0), values);
}

#[tokio::test]
async fn one_record_that_is_too_large_fails_alone() {
    let node = FakeNode::with_partitions(1);
    node.state().batch_bytes_max = Some(100);
    let large = "x".repeat(200);
    let outcomes = send(&producer(&node), &["a", &large, "b"]).await;
    assert_eq!(outcomes[1].as_ref().unwrap_err().code, ErrorCode::MessageTooLarge);
    assert_eq!(node.values(0), ["a", "b"]);
}

#[tokio::test]
async fn records_that_are_to_blame_fail_and_the_others_are_written() {
    let node = FakeNode::with_partitions(1);
    node.state().forbidden_value = Some("bad".into());
    let outcomes = send(&producer(&node), &["a", "bad", "b"]).await;
    let error = outcomes[1].as_ref().unwrap_err();
    assert_eq!(
        (error.code, error.message.as_deref()),
        (ErrorCode::InvalidRecord, Some("forbidden"))
    );
    assert!(outcomes[0].is_ok() && outcomes[2].is_ok());
    assert_eq!(node.values(0), ["a", "b"]);
}

#[tokio::test]
async fn what_comes_while_a_batch_is_out_makes_the_next_one() {
    let node = FakeNode::with_partitions(1);
    let producer = producer(&node);
    let sends = (0..100).map(|n| {
        let producer = producer.clone();
        tokio::spawn(async move { send(&producer, &[&n.to_string()]).await })
    });
    for sent in sends.collect::<Vec<_>>() {
        assert!(sent.await.unwrap()[0].is_ok());
    }
    assert_eq!(node.values(0).len(), 100);
    assert!(node.asked(ApiKey::Produce) < 50, "{}", node.asked(ApiKey::Produce));
}

#[tokio::test]
async fn a_buffer_that_is_full_makes_the_sender_wait_and_loses_nothing() {
    let node = FakeNode::with_partitions(1);
    let producer = producer_with(
        &node,
        ProducerOptions {
            buffer_bytes_max: 4096,
            batch_bytes_max: 2048,
            ..Default::default()
        },
    );
    let values: Vec<String> = (0..200).map(|n| n.to_string()).collect();
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    assert_eq!(send(&producer, &values).await.len(), 200);
    assert_eq!(node.values(0), values);
    let larger_than_the_buffer = "x".repeat(10_000);
    assert!(send(&producer, &[&larger_than_the_buffer]).await[0].is_ok());
}

#[tokio::test]
async fn records_go_where_their_keys_say_and_without_a_key_to_one_place_for_a_while() {
    let node = FakeNode::with_partitions(10);
    let producer = producer(&node);
    let keyed = ProduceRecord {
        key: Some("abc".into()),
        ..to_any("keyed")
    };
    let elsewhere = ProduceRecord {
        partition: Some(PartitionIndex::new(10)),
        ..to_any("nowhere")
    };
    let records = vec![keyed, to_any("one"), to_any("two"), elsewhere];
    let outcomes = producer.send(&topic("first"), records).await.unwrap();
    let partitions: Vec<_> = outcomes[..3]
        .iter()
        .map(|outcome| outcome.as_ref().unwrap().partition)
        .collect();
    assert_eq!(partitions[0], PartitionIndex::new(7));
    assert_eq!(partitions[1], partitions[2]);
    assert_eq!(
        outcomes[3].as_ref().unwrap_err().code,
        ErrorCode::UnknownTopicOrPartition
    );
    let large = "x".repeat(20_000);
    let records = vec![to_any(&large), to_any("next")];
    let outcomes = producer.send(&topic("first"), records).await.unwrap();
    assert_ne!(
        outcomes[0].as_ref().unwrap().partition,
        outcomes[1].as_ref().unwrap().partition
    );
}

#[tokio::test]
async fn an_unknown_topic_is_told_at_once() {
    let node = FakeNode::with_partitions(1);
    let error = producer(&node)
        .send(&topic("other"), vec![record("a")])
        .await
        .unwrap_err();
    assert_eq!(error.code(), ErrorCode::UnknownTopicOrPartition);
    assert_eq!(node.asked(ApiKey::Metadata), 1);
}

#[tokio::test(start_paused = true)]
async fn a_topic_that_was_deleted_is_not_waited_for_until_the_deadline() {
    let node = FakeNode::with_partitions(1);
    let options = Options {
        call_wait_max: Duration::from_secs(60),
        ..Options::default()
    };
    let producer = Producer::new(
        node.client_with(options),
        CallContext::anonymous(),
        ProducerOptions::default(),
    );
    send(&producer, &["a"]).await;
    node.state().topics.clear();
    let start = tokio::time::Instant::now();
    let outcomes = send(&producer, &["b"]).await;
    assert_eq!(
        outcomes[0].as_ref().unwrap_err().code,
        ErrorCode::UnknownTopicOrPartition
    );
    assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_call_without_records_has_no_outcomes() {
    let node = FakeNode::with_partitions(1);
    assert_eq!(send(&producer(&node), &[]).await, []);
}
