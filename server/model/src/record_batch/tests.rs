//! Golden batches written by Kafka 4.4.0's own classes (kafka-clients), round trips, and bytes from strangers.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;
use crate::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, Timestamp};

const LIMIT: DecompressionLimit = DecompressionLimit::bytes(1 << 20);

fn golden(compression: Compression) -> &'static [u8] {
    match compression {
        Compression::None => include_bytes!("tests/golden/none.batch"),
        Compression::Gzip => include_bytes!("tests/golden/gzip.batch"),
        Compression::Snappy => include_bytes!("tests/golden/snappy.batch"),
        Compression::Lz4 => include_bytes!("tests/golden/lz4.batch"),
        Compression::Zstd => include_bytes!("tests/golden/zstd.batch"),
    }
}

fn golden_options(compression: Compression) -> BatchOptions {
    BatchOptions {
        base_offset: Offset::new(5),
        partition_leader_epoch: Some(LeaderEpoch::new(4)),
        compression,
        producer: Some(BatchProducer {
            id: ProducerId::from_wire(77).unwrap(),
            epoch: ProducerEpoch::new(3),
            base_sequence: Sequence::from_wire(9),
        }),
        ..BatchOptions::default()
    }
}

fn golden_builder(compression: Compression) -> BatchBuilder {
    let mut builder = BatchBuilder::new(golden_options(compression));
    let at = |millis: i64| Timestamp::from_millis(1_700_000_000_000 + millis);
    let headers = [("h", Some(&b"1"[..])), ("null", None)];
    builder.append(at(0), Some(b"key"), Some(b"value"), &headers).unwrap();
    builder.append(at(5), None, Some(b"no key"), &[]).unwrap();
    builder.append(at(-10), Some(b"tombstone"), None, &[]).unwrap();
    builder.append(at(1), Some(b""), Some(&[b'x'; 300]), &[]).unwrap();
    builder
}

fn read_all(batch: &[u8]) -> Result<Vec<Record>, BatchError> {
    records(&Bytes::copy_from_slice(batch), LIMIT)?.collect()
}

#[test]
fn an_uncompressed_batch_is_built_byte_for_byte_as_kafka_builds_it() {
    assert_eq!(
        golden_builder(Compression::None).build().unwrap(),
        golden(Compression::None)
    );
}

#[test]
fn batches_of_every_compression_written_by_kafka_are_read() {
    let expected = read_all(golden(Compression::None)).unwrap();
    assert_eq!(expected.len(), 4);
    assert_eq!(expected[0].headers[1].value, None);
    assert_eq!(expected[2].offset, Offset::new(7));
    assert_eq!(expected[2].timestamp.millis(), 1_699_999_999_990);
    for compression in Compression::ALL {
        let (batch, rest) = Batch::split_first(golden(compression)).unwrap();
        assert!(rest.is_empty());
        batch.check_crc().unwrap();
        assert_eq!(batch.header.attributes.compression(), Ok(compression));
        assert_eq!(batch.header.last_sequence(), Sequence::from_wire(12));
        assert_eq!(read_all(golden(compression)).unwrap(), expected, "{compression:?}");
        let found = walk(&batch, LIMIT).unwrap();
        assert_eq!(found.max_timestamp, 1_700_000_000_005);
        assert_eq!(found.max_timestamp_delta, 1);
        assert_eq!(found.min_timestamp, 1_699_999_999_990);
        assert_eq!(found.keyless_count, 1);
        assert_eq!(keyless_records(&batch, LIMIT), Ok(vec![1]));
    }
}

#[test]
fn a_commit_marker_is_built_byte_for_byte_as_kafka_builds_it() {
    let mut builder = BatchBuilder::new(BatchOptions {
        base_offset: Offset::new(11),
        partition_leader_epoch: Some(LeaderEpoch::new(6)),
        producer: Some(BatchProducer {
            id: ProducerId::from_wire(1234).unwrap(),
            epoch: ProducerEpoch::new(2),
            base_sequence: None,
        }),
        transactional: true,
        control: true,
        ..BatchOptions::default()
    });
    let value = [0, 0, 0, 0, 0, 8];
    builder
        .append_control(ControlType::Commit, Timestamp::from_millis(1_700_000_000_000), &value)
        .unwrap();
    let golden = include_bytes!("tests/golden/commit-marker.batch");
    assert_eq!(builder.build().unwrap(), &golden[..]);
    let record = read_all(golden).unwrap().remove(0);
    assert_eq!(ControlType::from_key(&record.key.unwrap()), Some(ControlType::Commit));
}

#[test]
fn append_time_counts_for_every_record() {
    let golden = include_bytes!("tests/golden/append-time.batch");
    let header = BatchHeader::parse(golden).unwrap();
    assert_eq!(header.attributes.timestamp_type(), TimestampType::LogAppendTime);
    assert_eq!(read_all(golden).unwrap()[0].timestamp.millis(), 1_700_000_000_123);
}

#[test]
fn patches_of_a_leader_keep_the_batch_sound() {
    let mut bytes = golden(Compression::Zstd).to_vec();
    let mut batch = BatchMut::first(&mut bytes).unwrap();
    batch.set_base_offset(Offset::new(1 << 40)).unwrap();
    batch.set_leader_epoch(LeaderEpoch::new(9));
    batch.as_batch().check_crc().unwrap();
    batch.set_max_timestamp(TimestampType::LogAppendTime, 42);
    let (batch, _) = Batch::split_first(&bytes).unwrap();
    batch.check_crc().unwrap();
    assert_eq!(batch.header.last_offset(), Offset::new((1 << 40) + 3));
    assert_eq!(batch.header.leader_epoch(), Some(LeaderEpoch::new(9)));
    assert!(
        read_all(&bytes)
            .unwrap()
            .iter()
            .all(|record| record.timestamp.millis() == 42)
    );
    let mut batch = BatchMut::first(&mut bytes).unwrap();
    assert_eq!(batch.set_base_offset(Offset::MAX), Err(BatchError::OffsetOverflow));
}

#[test]
fn any_flipped_bit_behind_the_checksum_is_seen() {
    let golden = golden(Compression::Lz4);
    for bit in CHECKSUMMED_FROM * 8..golden.len() * 8 {
        let mut bytes = golden.to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        if let Ok((batch, _)) = Batch::split_first(&bytes) {
            assert!(batch.check_crc().is_err(), "bit {bit}");
        }
    }
}

#[test]
fn a_bomb_is_refused_at_the_limit() {
    let mut builder = BatchBuilder::new(BatchOptions {
        compression: Compression::Zstd,
        ..BatchOptions::default()
    });
    builder
        .append(Timestamp::from_millis(1), None, Some(&vec![0; 4 << 20]), &[])
        .unwrap();
    let uncompressed = vec![0; 4 << 20];
    for compression in [
        Compression::Gzip,
        Compression::Snappy,
        Compression::Lz4,
        Compression::Zstd,
    ] {
        let packed = compress(compression, None, &uncompressed).unwrap();
        let refused = decompress(compression, &packed, LIMIT);
        assert_eq!(
            refused,
            Err(BatchError::DecompressedTooLarge { limit: LIMIT.get() }),
            "{compression:?}"
        );
    }
    let bytes = builder.build().unwrap();
    let (batch, _) = Batch::split_first(&bytes).unwrap();
    assert_eq!(
        walk(&batch, LIMIT),
        Err(BatchError::DecompressedTooLarge { limit: LIMIT.get() })
    );
}

#[test]
fn snappy_chunks_that_lie_about_their_length_are_refused() {
    let header = b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01";
    let chunk_of_minus_one = [&header[..], &[0xff; 4], b"xx"].concat();
    // The block claims 1 MiB in 5 bytes.
    let block_of_a_mebibyte = [&header[..], &[0, 0, 0, 5], &[0x80, 0x80, 0x40, 0, b'x']].concat();
    for input in [chunk_of_minus_one, block_of_a_mebibyte] {
        assert!(matches!(
            decompress(Compression::Snappy, &input, LIMIT),
            Err(BatchError::Compressed(_))
        ));
    }
}

#[test]
fn a_bare_snappy_block_is_read() {
    let block = snap::raw::Encoder::new().compress_vec(b"bare").unwrap();
    assert_eq!(decompress(Compression::Snappy, &block, LIMIT).unwrap(), b"bare");
}

#[test]
fn a_walk_finds_offsets_that_do_not_run_from_zero() {
    let mut builder = BatchBuilder::new(BatchOptions::default());
    for delta in [0, 2] {
        builder
            .append_at(delta, Timestamp::from_millis(1), None, None, std::iter::empty())
            .unwrap();
    }
    let bytes = builder.build().unwrap();
    let (batch, _) = Batch::split_first(&bytes).unwrap();
    assert!(matches!(walk(&batch, LIMIT), Err(BatchError::Record { index: 1, .. })));
    assert_eq!(read_all(&bytes).unwrap()[1].offset, Offset::new(2));
}

#[test]
fn an_iterator_ends_after_its_first_error() {
    let mut bytes = golden(Compression::None).to_vec();
    bytes[57..61].copy_from_slice(&i32::MAX.to_be_bytes());
    let found: Vec<_> = records(&Bytes::from(bytes), LIMIT).unwrap().collect();
    assert_eq!(found.len(), 5);
    assert!(found[4].is_err());
}

type RawHeader = (String, Option<Vec<u8>>);

type RawRecord = (i64, Option<Vec<u8>>, Option<Vec<u8>>, Vec<RawHeader>);

fn any_records() -> impl Strategy<Value = Vec<RawRecord>> {
    let blob = || option::of(vec(any::<u8>(), 0..200));
    let header = (".{0,8}", option::of(vec(any::<u8>(), 0..20)));
    vec((0..i64::MAX / 2, blob(), blob(), vec(header, 0..3)), 1..40)
}

proptest! {
    #[test]
    fn what_is_built_is_read_back(rows in any_records(), code in 0u8..5, base in 0i64..1 << 40) {
        let compression = Compression::from_code(code).unwrap();
        let mut builder = BatchBuilder::new(BatchOptions {
            base_offset: Offset::new(base),
            compression,
            ..BatchOptions::default()
        });
        for (timestamp, key, value, headers) in &rows {
            let headers: Vec<_> = headers.iter().map(|(key, value)| (key.as_str(), value.as_deref())).collect();
            builder.append(Timestamp::from_millis(*timestamp), key.as_deref(), value.as_deref(), &headers).unwrap();
        }
        let bytes = builder.build().unwrap();
        let (batch, rest) = Batch::split_first(&bytes).unwrap();
        prop_assert!(rest.is_empty());
        prop_assert_eq!(batch.check_crc(), Ok(()));
        let found = walk(&batch, LIMIT).unwrap();
        prop_assert_eq!(found.max_timestamp, batch.header.max_timestamp);
        let owned = read_all(&bytes).unwrap();
        prop_assert_eq!(owned.len(), rows.len());
        let mut reader = RecordReader::new(batch, LIMIT).unwrap();
        for (index, (row, owned)) in rows.iter().zip(&owned).enumerate() {
            let view = reader.next_record().unwrap().unwrap();
            prop_assert_eq!(view.offset.get(), base + i64::try_from(index).unwrap());
            prop_assert_eq!(view.timestamp.millis(), row.0);
            prop_assert_eq!(view.key, row.1.as_deref());
            prop_assert_eq!(view.value, row.2.as_deref());
            prop_assert_eq!(view.headers.len(), row.3.len());
            for (seen, wanted) in view.headers.zip(&row.3) {
                prop_assert_eq!(seen.key_text(), wanted.0.as_str());
                prop_assert_eq!(seen.value, wanted.1.as_deref());
            }
            prop_assert_eq!(owned.offset, view.offset);
            prop_assert_eq!(owned.key.as_deref(), view.key);
            prop_assert_eq!(owned.value.as_deref(), view.value);
        }
        prop_assert_eq!(reader.next_record().unwrap(), None);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..300)) {
        for batch in Batches::new(&bytes).flatten() {
            let _ = walk(&batch, LIMIT);
        }
        for compression in Compression::ALL {
            let _ = decompress(compression, &bytes, LIMIT);
        }
    }

    #[test]
    fn a_damaged_batch_is_read_or_refused(
        code in 0u8..5,
        damage in vec((0usize..600, any::<u8>()), 1..4),
        cut in 0usize..600,
    ) {
        let mut bytes = golden(Compression::from_code(code).unwrap()).to_vec();
        for (at, value) in damage {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
        }
        bytes.truncate(bytes.len().max(cut));
        let _ = read_all(&bytes);
        if let Ok((batch, _)) = Batch::split_first(&bytes) {
            let _ = walk(&batch, LIMIT);
        }
    }
}
