//! Equal keys share a partition, the same one that Kafka's clients choose (murmur2). With the setting `separator`, only
//! the part of the key before it counts, so that `customer-7:order-1` and `customer-7:order-2` stay together.

use millstream_sdk::{Descriptor, Partitioner, Plugin, Row, Topic, host, partitioner};

struct KeyPartitioner {
    separator: Option<Vec<u8>>,
}

impl Plugin for KeyPartitioner {
    fn describe() -> Descriptor {
        Descriptor::new(
            "key-partitioner",
            "0.1.0",
            "Equal keys share a partition, as with Kafka's clients.",
        )
        .optional(
            "separator",
            "Only the part of the key before the first occurrence of this text counts.",
            None,
        )
    }

    fn start() -> Result<Self, String> {
        match host::config("separator") {
            Some(separator) if separator.is_empty() => Err("separator is empty".into()),
            separator => Ok(KeyPartitioner {
                separator: separator.map(String::into_bytes),
            }),
        }
    }
}

impl Partitioner for KeyPartitioner {
    /// A row without a key is left to the producer.
    fn partition(&mut self, topic: &Topic, row: &Row<'_>) -> Option<u32> {
        let key = row.key()?;
        let hash = murmur2(self.counted(key)) & 0x7fff_ffff;
        hash.checked_rem(topic.partitions)
    }
}

impl KeyPartitioner {
    fn counted<'a>(&self, key: &'a [u8]) -> &'a [u8] {
        let Some(separator) = &self.separator else { return key };
        let end = key.windows(separator.len()).position(|window| window == separator);
        end.map_or(key, |end| &key[..end])
    }
}

/// MurmurHash2 in 32 bits, with the seed of Kafka's clients.
fn murmur2(data: &[u8]) -> u32 {
    const MIX: u32 = 0x5bd1_e995;
    let mut hash = 0x9747_b28c ^ data.len() as u32;
    let mut words = data.chunks_exact(4);
    for word in &mut words {
        let mut mixed = u32::from_le_bytes([word[0], word[1], word[2], word[3]]).wrapping_mul(MIX);
        mixed ^= mixed >> 24;
        hash = hash.wrapping_mul(MIX) ^ mixed.wrapping_mul(MIX);
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        let tail = rest.iter().rev().fold(0, |tail, byte| tail << 8 | u32::from(*byte));
        hash = (hash ^ tail).wrapping_mul(MIX);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(MIX);
    hash ^ hash >> 15
}

partitioner!(KeyPartitioner);
