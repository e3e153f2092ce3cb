//! Broker keys of replication and quotas.

use super::super::definition::{KeyDefinition, boolean, class, int, long, string};

pub(super) const KEYS: &[KeyDefinition] = &[
    int("alter.log.dirs.replication.quota.window.num")
        .default("11")
        .at_least(1)
        .low()
        .doc("How many samples the quota of moves between log directories keeps."),
    int("alter.log.dirs.replication.quota.window.size.seconds")
        .default("1")
        .at_least(1)
        .low()
        .doc("How long one sample of that quota is."),
    boolean("auto.leader.rebalance.enable")
        .default("true")
        .high()
        .doc("Whether leadership goes back to preferred replicas by itself."),
    class("client.quota.callback.class")
        .low()
        .no_meaning()
        .doc("A Java class that decides client quotas."),
    int("controller.quota.window.num")
        .default("11")
        .at_least(1)
        .low()
        .doc("How many samples the quota of controller mutations keeps."),
    int("controller.quota.window.size.seconds")
        .default("1")
        .at_least(1)
        .low()
        .doc("How long one sample of that quota is."),
    long("follower.replication.throttled.rate")
        .default("9223372036854775807")
        .at_least(0)
        .cluster_wide()
        .doc("Bytes a second that followers fetch for throttled partitions."),
    long("leader.imbalance.check.interval.seconds")
        .default("300")
        .at_least(1)
        .high()
        .doc("The time between two looks for leaders that are not the preferred replica."),
    long("leader.replication.throttled.rate")
        .default("9223372036854775807")
        .at_least(0)
        .cluster_wide()
        .doc("Bytes a second that leaders send for throttled partitions."),
    int("num.replica.alter.log.dirs.threads")
        .high()
        .doc("How many threads move replicas between log directories."),
    int("num.replica.fetchers")
        .default("1")
        .at_least(1)
        .high()
        .cluster_wide()
        .doc("How many fetchers there are for each leader's broker."),
    int("quota.window.num")
        .default("11")
        .at_least(1)
        .low()
        .doc("How many samples client quotas keep."),
    int("quota.window.size.seconds")
        .default("1")
        .at_least(1)
        .low()
        .doc("How long one sample of client quotas is."),
    long("replica.alter.log.dirs.io.max.bytes.per.second")
        .default("9223372036854775807")
        .at_least(0)
        .in_effect()
        .cluster_wide()
        .doc("Bytes a second for moves between log directories."),
    int("replica.fetch.backoff.ms")
        .default("1000")
        .at_least(0)
        .doc("The wait of a follower after a failed fetch."),
    int("replica.fetch.max.bytes")
        .default("1048576")
        .at_least(0)
        .doc("The bytes that a follower asks for of one partition."),
    int("replica.fetch.min.bytes")
        .default("1")
        .high()
        .doc("The bytes that a follower's fetch waits for."),
    int("replica.fetch.response.max.bytes")
        .default("10485760")
        .at_least(0)
        .doc("The bytes that a follower asks for in one fetch."),
    int("replica.fetch.wait.max.ms")
        .default("500")
        .high()
        .doc("How long a follower's fetch waits."),
    long("replica.high.watermark.checkpoint.interval.ms")
        .default("5000")
        .high()
        .doc("The time between two high watermark checkpoints."),
    long("replica.lag.time.max.ms")
        .default("30000")
        .high()
        .doc("How long a follower may be behind before it leaves the in-sync replicas."),
    string("replica.selector.class")
        .no_meaning()
        .doc("A Java class that sends readers to near replicas."),
    int("replica.socket.receive.buffer.bytes")
        .default("65536")
        .high()
        .doc("The receive buffer of a follower's socket."),
    int("replica.socket.timeout.ms")
        .default("30000")
        .high()
        .doc("How long a follower's request may take."),
    int("replication.quota.window.num")
        .default("11")
        .at_least(1)
        .low()
        .doc("How many samples replication quotas keep."),
    int("replication.quota.window.size.seconds")
        .default("1")
        .at_least(1)
        .low()
        .doc("How long one sample of replication quotas is."),
    boolean("unclean.leader.election.enable")
        .default("false")
        .high()
        .cluster_wide()
        .in_effect()
        .doc("Whether a replica that is not in sync may lead when no other is left; loses records."),
    long("unclean.leader.election.interval.ms")
        .default("300000")
        .at_least(1)
        .internal()
        .doc("How often partitions without leader are looked at for that."),
];
