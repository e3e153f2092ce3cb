//! Scripts of inputs and effects on a simulated disk.

use std::path::Path;

use model::record_batch::{BatchBuilder, BatchOptions};
use storage::disk::{Fault, Operation};
use storage::{LogOptions, SimDisk, Start};

use super::*;

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

fn batch(values: &[&str]) -> bytes::Bytes {
    let mut builder = BatchBuilder::new(BatchOptions::default());
    for value in values {
        builder.append(NOW, None, Some(value.as_bytes()), &[]).unwrap();
    }
    builder.build().unwrap()
}

fn options(durability: Durability) -> LogOptions {
    LogOptions {
        durability,
        ..LogOptions::default()
    }
}

fn replica(disk: &SimDisk, durability: Durability) -> Replica<SimDisk> {
    let path = Path::new("/log/first-0");
    let (log, _) = PartitionLog::open(disk.clone(), path, options(durability), Start::default(), NOW).unwrap();
    Replica::lead(log, LeaderEpoch::ZERO).unwrap()
}

fn append(replica: &mut Replica<SimDisk>, values: &[&str], wait: bool) -> (Option<WaiterId>, Vec<Effect>) {
    let mut effects = Vec::new();
    let (_, waiter) = replica
        .append(&batch(values), Origin::Client, NOW, wait, &mut effects)
        .unwrap();
    (waiter, effects)
}

fn finish(replica: &mut Replica<SimDisk>, handle: SyncHandle<SimDisk>) -> Vec<Effect> {
    let mut effects = Vec::new();
    let _ = replica.synced(handle.run(), &mut effects);
    effects
}

#[test]
fn the_high_watermark_follows_the_sync_and_not_the_append() {
    let mut replica = replica(&SimDisk::new(1), Durability::Fsync);
    let (waiter, effects) = append(&mut replica, &["a", "b"], true);
    let waiter = waiter.unwrap();
    assert_eq!(effects, [Effect::Sync]);
    assert_eq!(replica.high_watermark(), Offset::ZERO);
    let handle = replica.begin_sync().unwrap();
    assert_eq!(finish(&mut replica, handle), [Effect::Reached(waiter)]);
    assert_eq!(replica.high_watermark(), Offset::new(2));
}

#[test]
fn one_sync_serves_all_that_was_appended_before_it_began() {
    let mut replica = replica(&SimDisk::new(1), Durability::Fsync);
    let first = append(&mut replica, &["a"], true).0.unwrap();
    let second = append(&mut replica, &["b"], true).0.unwrap();
    let handle = replica.begin_sync().unwrap();
    let (third, effects) = append(&mut replica, &["c"], true);
    assert_eq!(effects, [], "a sync is under way already");
    assert!(replica.begin_sync().is_none());
    assert_eq!(
        finish(&mut replica, handle),
        [Effect::Reached(first), Effect::Reached(second), Effect::Sync]
    );
    assert_eq!(replica.high_watermark(), Offset::new(2));
    let handle = replica.begin_sync().unwrap();
    assert_eq!(finish(&mut replica, handle), [Effect::Reached(third.unwrap())]);
}

#[test]
fn bytes_that_nobody_waits_for_are_announced_once_until_they_are_synced() {
    let mut replica = replica(&SimDisk::new(1), Durability::Fsync);
    assert_eq!(append(&mut replica, &["a"], false).1, [Effect::SyncSoon]);
    assert_eq!(append(&mut replica, &["b"], false).1, []);
    let handle = replica.begin_sync().unwrap();
    assert_eq!(finish(&mut replica, handle), []);
    assert_eq!(append(&mut replica, &["c"], false).1, [Effect::SyncSoon]);
}

#[test]
fn a_waiting_consumer_makes_unsynced_bytes_urgent_and_is_woken_by_the_sync() {
    let mut replica = replica(&SimDisk::new(1), Durability::Fsync);
    let mut effects = Vec::new();
    let consumer = replica.wait_for_more(Offset::ZERO, &mut effects).unwrap();
    assert_eq!(effects, []);
    assert_eq!(append(&mut replica, &["a"], false).1, [Effect::Sync]);
    let handle = replica.begin_sync().unwrap();
    assert_eq!(finish(&mut replica, handle), [Effect::Reached(consumer)]);
    assert!(
        replica.wait_for_more(Offset::ZERO, &mut effects).is_none(),
        "there is something to read already"
    );
}

#[test]
fn in_the_mode_of_the_page_cache_an_append_is_committed_at_once() {
    let mut replica = replica(&SimDisk::new(1), Durability::Replicated);
    let (waiter, effects) = append(&mut replica, &["a"], true);
    assert_eq!((waiter, effects), (None, vec![]));
    assert_eq!(replica.high_watermark(), Offset::new(1));
}

#[test]
fn going_back_to_syncs_never_moves_the_high_watermark_back() {
    let mut replica = replica(&SimDisk::new(1), Durability::Replicated);
    append(&mut replica, &["a"], true);
    replica.set_options(options(Durability::Fsync), &mut Vec::new());
    assert_eq!(replica.high_watermark(), Offset::new(1));
    assert!(append(&mut replica, &["b"], true).0.is_some());
    assert_eq!(replica.high_watermark(), Offset::new(1));
}

#[test]
fn after_a_failed_sync_everybody_who_waits_is_told_and_nothing_is_appended() {
    let disk = SimDisk::new(1);
    let mut replica = replica(&disk, Durability::Fsync);
    let producer = append(&mut replica, &["a"], true).0.unwrap();
    let consumer = replica.wait_for_more(Offset::ZERO, &mut Vec::new()).unwrap();
    let handle = replica.begin_sync().unwrap();
    let error = io::ErrorKind::Other;
    disk.inject(Fault {
        operation: Operation::Sync,
        skip: 0,
        error,
        lasting: false,
    });
    let mut effects = Vec::new();
    assert!(replica.synced(handle.run(), &mut effects).is_err());
    assert_eq!(effects, [Effect::Failed(producer), Effect::Failed(consumer)]);
    assert_eq!(replica.high_watermark(), Offset::ZERO);
    disk.clear_faults();
    let again = replica.append(&batch(&["b"]), Origin::Client, NOW, true, &mut effects);
    assert!(matches!(again, Err(AppendError::Offline)));
    assert!(replica.begin_sync().is_none());
}

#[test]
fn what_a_crash_left_unsynced_is_synced_before_it_is_led_with() {
    let disk = SimDisk::new(1);
    let mut before = replica(&disk, Durability::Replicated);
    append(&mut before, &["a", "b"], true);
    drop(before);
    let after = replica(&disk, Durability::Fsync);
    assert_eq!(after.high_watermark(), Offset::new(2));
}

#[test]
fn who_has_gone_is_not_woken() {
    let mut replica = replica(&SimDisk::new(1), Durability::Fsync);
    let waiter = append(&mut replica, &["a"], true).0.unwrap();
    replica.forget(waiter);
    let handle = replica.begin_sync().unwrap();
    assert_eq!(finish(&mut replica, handle), []);
}

#[test]
fn a_producer_and_a_consumer_that_wait_for_the_same_offset_are_told_apart() {
    let mut replica = replica(&SimDisk::new(1), Durability::Fsync);
    let consumer = replica.wait_for_more(Offset::ZERO, &mut Vec::new()).unwrap();
    let producer = append(&mut replica, &["a"], true).0.unwrap();
    assert_ne!(consumer, producer);
    replica.forget(consumer);
    let handle = replica.begin_sync().unwrap();
    assert_eq!(finish(&mut replica, handle), [Effect::Reached(producer)]);
}
