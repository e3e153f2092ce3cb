//! Which partition a record goes to: by its key's hash as Java's producer has it, or, without a key, one partition for
//! a while and then the next (KIP-480, KIP-794).

use model::PartitionIndex;

use crate::Topic;

/// How much goes to one partition before it is the next one's turn.
const STICKY_BYTES: usize = 16 * 1024;
const SEED: u32 = 0x9747_b28c;
const MULTIPLIER: u32 = 0x5bd1_e995;

/// The partition for a key among `count`; `None` if there is none to choose from.
#[must_use]
pub fn for_key(key: &[u8], count: i32) -> Option<PartitionIndex> {
    let hash = i32::try_from(murmur2(key) & 0x7fff_ffff).expect("the sign bit is cleared");
    hash.checked_rem(count).and_then(PartitionIndex::from_wire)
}

/// MurmurHash2, 32 bits, with the seed of Kafka's clients.
#[must_use]
pub fn murmur2(data: &[u8]) -> u32 {
    let length = u32::try_from(data.len() & 0xffff_ffff).expect("masked to 32 bits");
    let mut hash = SEED ^ length;
    let mut chunks = data.chunks_exact(4);
    for chunk in &mut chunks {
        let word = u32::from_le_bytes(chunk.try_into().expect("a chunk has four bytes"));
        let mut mixed = word.wrapping_mul(MULTIPLIER);
        mixed ^= mixed >> 24;
        hash = hash.wrapping_mul(MULTIPLIER) ^ mixed.wrapping_mul(MULTIPLIER);
    }
    let rest = chunks.remainder();
    if !rest.is_empty() {
        for (place, byte) in rest.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * place);
        }
        hash = hash.wrapping_mul(MULTIPLIER);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(MULTIPLIER);
    hash ^ (hash >> 15)
}

/// Where records without a key go at present.
#[derive(Debug, Default)]
pub(super) struct Sticky {
    turn: usize,
    bytes: usize,
}

impl Sticky {
    /// The partition for a record of `size_bytes`, one with a leader if any has one.
    pub(super) fn next(&mut self, topic: &Topic, size_bytes: usize) -> Option<PartitionIndex> {
        if self.bytes >= STICKY_BYTES {
            self.turn = self.turn.wrapping_add(1);
            self.bytes = 0;
        }
        self.bytes = self.bytes.saturating_add(size_bytes);
        let led = topic.partitions.iter().filter(|partition| partition.leader.is_some());
        let available = led.clone().count();
        if available > 0 {
            return led.map(|partition| partition.index).nth(self.turn % available);
        }
        let at = self.turn.checked_rem(topic.partitions.len())?;
        topic.partitions.get(at).map(|partition| partition.index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values that `org.apache.kafka.common.utils.Utils.murmur2` of kafka-clients 4.4.0 gives.
    #[test]
    fn hashes_are_those_of_kafkas_clients() {
        let cases: [(&[u8], i32); 7] = [
            (b"21", -973_932_308),
            (b"foobar", -790_332_482),
            (b"a-little-bit-long-string", -985_981_536),
            (b"a-little-bit-longer-string", -1_486_304_829),
            (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            (b"abc", 479_470_107),
            (b"", 275_646_681),
        ];
        for (key, hash) in cases {
            assert_eq!(murmur2(key).cast_signed(), hash, "{}", String::from_utf8_lossy(key));
        }
    }

    #[test]
    fn a_key_has_no_partition_where_there_are_none() {
        assert_eq!(for_key(b"a", 0), None);
        assert_eq!(for_key(b"abc", 10), Some(PartitionIndex::new(7)));
    }
}
