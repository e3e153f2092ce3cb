//! Equal keys share a partition, the same one that Kafka's Java client chooses (murmur2, seed 0x9747b28c).

use model::PartitionIndex;

use crate::batch::Batch;
use crate::error::Trap;
use crate::partitioner::{Partitioner, Topic};

/// MurmurHash2 in 32 bits as Kafka's clients compute it.
#[must_use]
pub fn murmur2(data: &[u8]) -> i32 {
    const SEED: u32 = 0x9747_b28c;
    const MIX: u32 = 0x5bd1_e995;
    let length = u32::try_from(data.len() & 0xffff_ffff).expect("masked to 32 bits");
    let mut hash = SEED ^ length;
    let mut words = data.chunks_exact(4);
    for word in &mut words {
        let mut mixed = u32::from_le_bytes([word[0], word[1], word[2], word[3]]).wrapping_mul(MIX);
        mixed ^= mixed >> 24;
        hash = hash.wrapping_mul(MIX) ^ mixed.wrapping_mul(MIX);
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        let tail = rest.iter().rev().fold(0u32, |tail, byte| tail << 8 | u32::from(*byte));
        hash = (hash ^ tail).wrapping_mul(MIX);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(MIX);
    hash ^= hash >> 15;
    hash.cast_signed()
}

/// The partition of `key` in a topic of `partitions` partitions; `None` if it has none.
#[must_use]
pub fn partition_for_key(key: &[u8], partitions: u32) -> Option<PartitionIndex> {
    // Kafka clears the sign bit rather than taking the absolute value.
    let positive = (murmur2(key) & i32::MAX).cast_unsigned();
    let partition = positive.checked_rem(partitions)?;
    i32::try_from(partition).ok().map(PartitionIndex::new)
}

/// Kafka's default for rows with a key; rows without one are left to the producer.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyPartitioner;

impl Partitioner for KeyPartitioner {
    fn partition(&mut self, topic: &Topic, rows: &Batch) -> Result<Vec<Option<PartitionIndex>>, Trap> {
        Ok(rows
            .rows()
            .map(|row| row.key().and_then(|key| partition_for_key(key, topic.partitions)))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Offset, Timestamp, TopicName};

    /// (key, hash, partition of 7, partition of 12) as kafka-clients 4.4.0 computes them.
    const GOLDEN: &[(&[u8], i32, i32, i32)] = &[
        (b"", 275_646_681, 2, 9),
        (b"a", -1_563_381_124, 5, 4),
        (b"ab", 316_155_434, 0, 2),
        (b"abc", 479_470_107, 4, 3),
        (b"abcd", -1_323_649_548, 5, 8),
        (b"21", -973_932_308, 3, 0),
        (b"foobar", -790_332_482, 0, 6),
        (b"key-1", 193_331_640, 5, 0),
        (b"key-2", 852_269_702, 4, 2),
        (b"a-little-bit-long-string", -985_981_536, 1, 8),
        (b"a-little-bit-longer-string", -1_486_304_829, 0, 11),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971, 3, 5),
        ("Zürich".as_bytes(), -1_551_140_815, 2, 1),
        (b"\0", 375_494_588, 0, 8),
        (&[0xff, 0x80, 0x7f, 0xfe, 0xc3], 1_392_598_605, 6, 9),
    ];

    #[test]
    fn hashes_and_partitions_are_kafkas() {
        for (key, hash, of_7, of_12) in GOLDEN {
            assert_eq!(murmur2(key), *hash, "{key:?}");
            assert_eq!(partition_for_key(key, 7), Some(PartitionIndex::new(*of_7)), "{key:?}");
            assert_eq!(partition_for_key(key, 12), Some(PartitionIndex::new(*of_12)), "{key:?}");
        }
    }

    #[test]
    fn a_row_without_a_key_and_a_topic_without_partitions_leave_no_choice() {
        let mut builder = crate::BatchBuilder::new(0, PartitionIndex::new(0), Offset::ZERO);
        for (offset, key) in [(0, None), (1, Some(&b"key-1"[..]))] {
            builder
                .push(
                    Offset::new(offset),
                    Timestamp::from_millis(0),
                    key,
                    None,
                    std::iter::empty(),
                )
                .unwrap();
        }
        let rows = builder.finish();
        let mut topic = Topic {
            name: TopicName::new("t").unwrap(),
            partitions: 7,
            offline: vec![],
        };
        let chosen = KeyPartitioner.partition(&topic, &rows).unwrap();
        assert_eq!(chosen, [None, Some(PartitionIndex::new(5))]);
        topic.partitions = 0;
        assert_eq!(KeyPartitioner.partition(&topic, &rows).unwrap(), [None, None]);
    }
}
