//! Keys of consumer, share and streams groups (KIP-848, KIP-932, KIP-1071).

use super::super::check::Check;
use super::super::definition::{KeyDefinition, boolean, int, list, long, same, string};

pub(super) const KEYS: &[KeyDefinition] = &[
    int("consumer.assignment.interval.ms")
        .default("1000")
        .at_least(0)
        .synonyms(&[same("group.consumer.assignment.interval.ms")])
        .doc("The time between two assignments in this consumer group."),
    boolean("consumer.assignor.offload.enable")
        .default("true")
        .internal()
        .synonyms(&[same("group.consumer.assignor.offload.enable")])
        .doc("Whether assignments of this group are computed beside the coordinator's own work."),
    int("consumer.heartbeat.interval.ms")
        .default("5000")
        .at_least(1)
        .synonyms(&[same("group.consumer.heartbeat.interval.ms")])
        .doc("The heartbeat interval of members in this consumer group."),
    int("consumer.session.timeout.ms")
        .default("45000")
        .at_least(1)
        .synonyms(&[same("group.consumer.session.timeout.ms")])
        .doc("The time after which a silent member is gone in this consumer group."),
    boolean("errors.deadletterqueue.copy.record.enable")
        .default("false")
        .doc("Whether a dead letter carries the record itself."),
    string("errors.deadletterqueue.topic.name")
        .default("")
        .doc("The topic for this share group's dead letters; empty for none."),
    int("share.assignment.interval.ms")
        .default("1000")
        .at_least(0)
        .synonyms(&[same("group.share.assignment.interval.ms")])
        .doc("The time between two assignments in this share group."),
    boolean("share.assignor.offload.enable")
        .default("true")
        .internal()
        .synonyms(&[same("group.share.assignor.offload.enable")])
        .doc("Whether assignments of this group are computed beside the coordinator's own work."),
    string("share.auto.offset.reset")
        .default("latest")
        .check(Check::OffsetReset)
        .doc("Where a new share group begins."),
    int("share.delivery.count.limit")
        .default("5")
        .at_least(2)
        .synonyms(&[same("group.share.delivery.count.limit")])
        .doc("The number of deliveries of a record in this share group."),
    int("share.heartbeat.interval.ms")
        .default("5000")
        .at_least(1)
        .synonyms(&[same("group.share.heartbeat.interval.ms")])
        .doc("The heartbeat interval of members in this share group."),
    string("share.isolation.level")
        .default("read_uncommitted")
        .check(Check::OneOf(&["read_committed", "read_uncommitted"]))
        .doc("Whether records of open and aborted transactions are delivered."),
    int("share.partition.max.record.locks")
        .default("2000")
        .at_least(100)
        .synonyms(&[same("group.share.partition.max.record.locks")])
        .doc("The number of locked records of a partition in this share group."),
    int("share.record.lock.duration.ms")
        .default("30000")
        .at_least(1000)
        .synonyms(&[same("group.share.record.lock.duration.ms")])
        .doc("The time that a record is locked for its receiver in this share group."),
    boolean("share.renew.acknowledge.enable")
        .default("true")
        .doc("Whether members may extend a record's lock."),
    int("share.session.timeout.ms")
        .default("45000")
        .at_least(1)
        .synonyms(&[same("group.share.session.timeout.ms")])
        .doc("The time after which a silent member is gone in this share group."),
    long("streams.acceptable.recovery.lag")
        .default("10000")
        .at_least(0)
        .internal()
        .synonyms(&[same("group.streams.acceptable.recovery.lag")])
        .doc("How far behind a client may be and still count as caught up."),
    int("streams.assignment.interval.ms")
        .default("1000")
        .at_least(0)
        .synonyms(&[same("group.streams.assignment.interval.ms")])
        .doc("The time between two assignments in this streams group."),
    string("streams.assignor.name")
        .synonyms(&[same("group.streams.assignors")])
        .doc("The assignor of this group, one of those that the broker has."),
    boolean("streams.assignor.offload.enable")
        .default("true")
        .internal()
        .synonyms(&[same("group.streams.assignor.offload.enable")])
        .doc("Whether assignments of this group are computed beside the coordinator's own work."),
    int("streams.heartbeat.interval.ms")
        .default("5000")
        .at_least(1)
        .synonyms(&[same("group.streams.heartbeat.interval.ms")])
        .doc("The heartbeat interval of members in this streams group."),
    int("streams.initial.rebalance.delay.ms")
        .default("3000")
        .at_least(0)
        .synonyms(&[same("group.streams.initial.rebalance.delay.ms")])
        .doc("How long the new group waits for more members."),
    int("streams.num.standby.replicas")
        .default("0")
        .at_least(0)
        .synonyms(&[same("group.streams.num.standby.replicas")])
        .doc("The standby replicas of each task."),
    int("streams.num.warmup.replicas")
        .default("2")
        .at_least(0)
        .internal()
        .synonyms(&[same("group.streams.num.warmup.replicas")])
        .doc("The most warmup replicas at a time."),
    list("streams.rack.aware.assignment.tags")
        .default("")
        .check(Check::Entries)
        .low()
        .synonyms(&[same("group.streams.rack.aware.assignment.tags")])
        .doc("Client tags by which standby replicas are spread."),
    int("streams.session.timeout.ms")
        .default("45000")
        .at_least(1)
        .synonyms(&[same("group.streams.session.timeout.ms")])
        .doc("The time after which a silent member is gone in this streams group."),
    int("streams.task.offset.interval.ms")
        .default("60000")
        .at_least(1)
        .internal()
        .synonyms(&[same("group.streams.task.offset.interval.ms")])
        .doc("How often clients report the offsets of warmup tasks."),
];
