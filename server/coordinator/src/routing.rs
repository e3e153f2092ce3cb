//! Which partition of an internal topic coordinates a key.

use model::PartitionIndex;

/// The partition of `__consumer_offsets` that holds a group: the absolute value of the JVM's `String.hashCode` over the
/// id's UTF-16 units (0 for the one value that has none), modulo the topic's partition count.
///
/// # Panics
/// If `partitions` is not positive.
#[must_use]
pub fn partition_for(group_id: &str, partitions: i32) -> PartitionIndex {
    assert!(partitions > 0, "an internal topic has partitions");
    let hash = group_id
        .encode_utf16()
        .fold(0i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)));
    PartitionIndex::new(hash.checked_abs().unwrap_or(0) % partitions)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Taken from `Utils.abs("…".hashCode()) % 50` on a JVM.
    #[test]
    fn groups_go_to_the_partition_that_kafka_chooses() {
        for (group, partition) in GOLDEN {
            assert_eq!(partition_for(group, 50).get(), *partition, "{group}");
        }
    }

    const GOLDEN: &[(&str, i32)] = &[
        ("", 0),
        ("g", 3),
        ("console-consumer-12345", 6),
        ("polygenelubricants", 0),
        ("o\u{f9}", 40),
        ("\u{1f600}", 49),
        ("connect-cluster", 13),
        ("a-very-long-group-name-with-many-characters-0123456789", 15),
    ];
}
