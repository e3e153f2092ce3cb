//! Broker keys of producers and transactions.

use super::super::definition::{KeyDefinition, boolean, int, short};

pub(super) const KEYS: &[KeyDefinition] = &[
    int("add.partitions.to.txn.retry.backoff.max.ms")
        .default("100")
        .at_least(0)
        .high()
        .doc("The longest time that the broker itself tries again to add a partition to a transaction."),
    int("add.partitions.to.txn.retry.backoff.ms")
        .default("20")
        .at_least(1)
        .high()
        .doc("The wait before the broker tries again to add a partition to a transaction."),
    int("producer.id.expiration.check.interval.ms")
        .default("600000")
        .at_least(1)
        .low()
        .internal()
        .in_effect()
        .doc("The time between two looks for expired producer ids."),
    int("producer.id.expiration.ms")
        .default("86400000")
        .at_least(1)
        .low()
        .cluster_wide()
        .in_effect()
        .doc("How long a producer without transaction is remembered after its last write."),
    int("transaction.abort.timed.out.transaction.cleanup.interval.ms")
        .default("10000")
        .at_least(1)
        .low()
        .doc("The time between two looks for transactions that took too long."),
    int("transaction.max.timeout.ms")
        .default("900000")
        .at_least(1)
        .high()
        .doc("The longest transaction timeout that a producer may ask for."),
    boolean("transaction.partition.verification.enable")
        .default("true")
        .low()
        .cluster_wide()
        .doc("Whether a transaction's write is refused unless its partition was added."),
    int("transaction.remove.expired.transaction.cleanup.interval.ms")
        .default("3600000")
        .at_least(1)
        .low()
        .doc("The time between two looks for expired transactional ids."),
    int("transaction.state.log.load.buffer.size")
        .default("5242880")
        .at_least(1)
        .high()
        .doc("How much of the transaction topic is read at a time while it loads."),
    int("transaction.state.log.min.isr")
        .default("2")
        .at_least(1)
        .high()
        .doc("The min.insync.replicas of the transaction topic."),
    int("transaction.state.log.num.partitions")
        .default("50")
        .at_least(1)
        .high()
        .doc("The partitions of the transaction topic."),
    short("transaction.state.log.replication.factor")
        .default("3")
        .at_least(1)
        .high()
        .doc("The replicas of the transaction topic."),
    int("transaction.state.log.segment.bytes")
        .default("104857600")
        .at_least(1)
        .high()
        .doc("The segment size of the transaction topic."),
    boolean("transaction.two.phase.commit.enable")
        .default("false")
        .low()
        .doc("Whether transactions may be part of another coordinator's."),
    int("transactional.id.expiration.ms")
        .default("604800000")
        .at_least(1)
        .high()
        .doc("How long an unused transactional id is remembered."),
];
