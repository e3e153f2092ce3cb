//! Sequences, duplicates, fencing, and the file form.

use model::record_batch::{Attributes, BatchHeader};

use super::snapshot::SnapshotError;
use super::*;

fn header(epoch: i16, first: i32, count: i32, base_offset: i64) -> BatchHeader {
    BatchHeader {
        base_offset,
        batch_length: 100,
        partition_leader_epoch: 0,
        crc: 0,
        attributes: Attributes::from_bits(0),
        last_offset_delta: count - 1,
        base_timestamp: 1000,
        max_timestamp: 1000 + base_offset,
        producer_id: 7,
        producer_epoch: epoch,
        base_sequence: first,
        record_count: count,
    }
}

fn after(batches: &[BatchHeader]) -> ProducerStates {
    let mut states = ProducerStates::default();
    for header in batches {
        assert_eq!(states.check(header), Ok(None));
        states.note(header, None);
    }
    states
}

#[test]
fn an_unknown_producer_may_begin_anywhere() {
    assert_eq!(ProducerStates::default().check(&header(3, 500, 2, 0)), Ok(None));
}

#[test]
fn a_repeated_batch_gets_the_offset_of_the_first_time() {
    let batches: Vec<_> = (0..6).map(|i| header(0, i * 10, 10, i64::from(i) * 100)).collect();
    let states = after(&batches);
    for (i, batch) in batches.iter().enumerate().skip(1) {
        let again = BatchHeader {
            base_offset: 0,
            ..*batch
        };
        let found = states.check(&again).unwrap().unwrap();
        assert_eq!(found.first_offset.get(), i64::try_from(i).unwrap() * 100);
        assert_eq!(found.last_offset.since(found.first_offset), 9);
    }
    // The sixth last is forgotten.
    assert!(matches!(
        states.check(&batches[0]),
        Err(ProducerError::OutOfOrder { .. })
    ));
}

#[test]
fn a_gap_is_out_of_order_and_the_sequence_wraps() {
    let states = after(&[header(0, i32::MAX - 1, 2, 0)]);
    assert_eq!(states.check(&header(0, 0, 1, 0)), Ok(None));
    let refused = states.check(&header(0, 1, 1, 0));
    assert!(matches!(
        refused,
        Err(ProducerError::OutOfOrder {
            expected: Sequence::ZERO,
            ..
        })
    ));
}

#[test]
fn a_new_epoch_begins_at_zero_and_fences_the_old() {
    let mut states = after(&[header(1, 0, 5, 0)]);
    assert!(matches!(
        states.check(&header(2, 5, 1, 5)),
        Err(ProducerError::OutOfOrder { .. })
    ));
    let next = header(2, 0, 1, 5);
    assert_eq!(states.check(&next), Ok(None));
    states.note(&next, None);
    assert!(matches!(
        states.check(&header(1, 5, 1, 6)),
        Err(ProducerError::Fenced { .. })
    ));
}

#[test]
fn a_transaction_is_open_until_its_marker() {
    let transactional = BatchHeader {
        attributes: Attributes::from_bits(0x10),
        ..header(0, 0, 5, 40)
    };
    let mut states = after(&[transactional]);
    assert_eq!(states.first_unstable_offset(), Some(Offset::new(40)));
    states.remove_expired(Timestamp::from_millis(i64::MAX), 1);
    assert_eq!(states.len(), 1);
    let marker = BatchHeader {
        attributes: Attributes::from_bits(0x30),
        base_sequence: -1,
        ..header(0, -1, 1, 45)
    };
    states.note(&marker, Some((ControlType::Commit, 3)));
    assert_eq!(states.first_unstable_offset(), None);
    states.remove_expired(Timestamp::from_millis(i64::MAX), 1);
    assert!(states.is_empty());
}

#[test]
fn a_snapshot_keeps_the_last_batch_of_each_producer() {
    let states = after(&[header(0, 0, 5, 0), header(0, 5, 5, 5)]);
    let bytes = states.to_snapshot();
    let read = ProducerStates::from_snapshot(&bytes).unwrap();
    assert_eq!(
        read.check(&header(0, 5, 5, 0)).unwrap().unwrap().first_offset,
        Offset::new(5)
    );
    assert_eq!(read.check(&header(0, 10, 1, 0)), Ok(None));
    assert_eq!(read.to_snapshot(), bytes);
    for cut in 0..bytes.len() {
        assert!(ProducerStates::from_snapshot(&bytes[..cut]).is_err());
    }
    let mut flipped = bytes.clone();
    flipped[20] ^= 1;
    assert_eq!(ProducerStates::from_snapshot(&flipped), Err(SnapshotError::Checksum));
}
