//! The handlers, a file an API, and what several of them need to say.
//!
//! A handler keeps no state and calls no other handler. Its file's head tells versions and behaviour; its `VERSIONS` is
//! what ApiVersions advertises.

use model::TopicName;

pub(crate) mod alter_replica_log_dirs;
pub(crate) mod api_versions;
pub(crate) mod delete_records;
pub(crate) mod describe_cluster;
pub(crate) mod describe_configs;
pub(crate) mod describe_log_dirs;
pub(crate) mod describe_topic_partitions;
pub(crate) mod fetch;
pub(crate) mod find_coordinator;
pub(crate) mod forwarded;
pub(crate) mod groups;
pub(crate) mod init_producer_id;
pub(crate) mod list_offsets;
pub(crate) mod metadata;
pub(crate) mod offset_for_leader_epoch;
pub(crate) mod produce;

/// What everybody may do while there is no authorizer, as bits by Kafka's operation numbers (KIP-430): read 3, write 4,
/// create 5, delete 6, alter 7, describe 8, describe configs 10, alter configs 11.
pub(crate) const TOPIC_OPERATIONS: i32 = bits(&[3, 4, 5, 6, 7, 8, 10, 11]);
/// Create 5, alter 7, describe 8, cluster action 9, describe configs 10, alter configs 11, idempotent write 12.
pub(crate) const CLUSTER_OPERATIONS: i32 = bits(&[5, 7, 8, 9, 10, 11, 12]);

const INTERNAL_TOPICS: [&str; 3] = ["__consumer_offsets", "__transaction_state", "__share_group_state"];

/// Whether a topic belongs to the brokers themselves.
pub(crate) fn is_internal(topic: &TopicName) -> bool {
    INTERNAL_TOPICS.contains(&topic.as_str())
}

const fn bits(operations: &[u32]) -> i32 {
    let mut bits = 0;
    let mut at = 0;
    while at < operations.len() {
        bits |= 1 << operations[at];
        at += 1;
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_the_bits_that_kafka_answers() {
        assert_eq!(TOPIC_OPERATIONS, 3576);
        assert_eq!(CLUSTER_OPERATIONS, 8096);
    }
}
