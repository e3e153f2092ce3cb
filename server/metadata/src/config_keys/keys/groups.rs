//! Broker keys of group coordinators: classic, consumer, share and streams groups, and offsets.

use super::super::check::Check;
use super::super::definition::{KeyDefinition, boolean, class, int, list, long, short, string};

pub(super) const KEYS: &[KeyDefinition] = &[
    boolean("errors.deadletterqueue.auto.create.topics.enable")
        .default("false")
        .cluster_wide()
        .doc("Whether dead-letter topics of share groups are created by themselves."),
    string("errors.deadletterqueue.topic.name.prefix")
        .default("dlq.")
        .cluster_wide()
        .doc("What names of dead-letter topics must begin with."),
    int("group.consumer.assignment.interval.ms")
        .default("1000")
        .at_least(0)
        .cluster_wide()
        .doc("The time between two assignments in consumer groups."),
    boolean("group.consumer.assignor.offload.enable")
        .default("true")
        .cluster_wide()
        .internal()
        .doc("Whether assignments of consumer groups are computed beside the coordinator's own work."),
    list("group.consumer.assignors")
        .default("uniform,range")
        .check(Check::SomeEntries)
        .doc("The assignors of consumer groups, the first by default."),
    int("group.consumer.heartbeat.interval.ms")
        .default("5000")
        .at_least(1)
        .doc("The heartbeat interval of members in consumer groups."),
    int("group.consumer.max.assignment.interval.ms")
        .default("15000")
        .at_least(0)
        .doc("The greatest time between two assignments that a consumer group may ask for."),
    int("group.consumer.max.heartbeat.interval.ms")
        .default("15000")
        .at_least(1)
        .doc("The greatest heartbeat interval of members that a consumer group may ask for."),
    int("group.consumer.max.session.timeout.ms")
        .default("60000")
        .at_least(1)
        .doc("The greatest time after which a silent member is gone that a consumer group may ask for."),
    int("group.consumer.max.size")
        .default("2147483647")
        .at_least(1)
        .doc("The most members of a consumer group."),
    string("group.consumer.migration.policy")
        .default("bidirectional")
        .check(Check::OneOfIgnoringCase(&[
            "DISABLED",
            "DOWNGRADE",
            "UPGRADE",
            "BIDIRECTIONAL",
        ]))
        .doc("Whether groups may change between the classic and the consumer protocol while they run."),
    int("group.consumer.min.assignment.interval.ms")
        .default("0")
        .at_least(0)
        .doc("The least time between two assignments that a consumer group may ask for."),
    int("group.consumer.min.heartbeat.interval.ms")
        .default("5000")
        .at_least(1)
        .doc("The least heartbeat interval of members that a consumer group may ask for."),
    int("group.consumer.min.session.timeout.ms")
        .default("45000")
        .at_least(1)
        .doc("The least time after which a silent member is gone that a consumer group may ask for."),
    int("group.consumer.regex.refresh.interval.ms")
        .default("600000")
        .at_least(10_000)
        .internal()
        .doc("The time between two matchings of subscribed patterns with topics."),
    int("group.consumer.session.timeout.ms")
        .default("45000")
        .at_least(1)
        .doc("The time after which a silent member is gone in consumer groups."),
    int("group.coordinator.append.linger.ms")
        .default("-1")
        .at_least(-1)
        .doc("How long the coordinator gathers writes; -1 adapts."),
    int("group.coordinator.background.threads")
        .default("2")
        .at_least(1)
        .high()
        .no_meaning()
        .doc("How many threads compute assignments."),
    int("group.coordinator.cached.buffer.max.bytes")
        .default("1048588")
        .at_least(524_288)
        .cluster_wide()
        .doc("The largest write buffer that the coordinator keeps for reuse."),
    list("group.coordinator.rebalance.protocols")
        .default("classic,consumer,streams")
        .check(Check::SomeEntriesOf(&["consumer", "classic", "share", "streams"]))
        .doc("The group protocols that are spoken."),
    int("group.coordinator.threads")
        .default("4")
        .at_least(1)
        .high()
        .no_meaning()
        .doc("How many threads Kafka's coordinator has."),
    int("group.initial.rebalance.delay.ms")
        .default("3000")
        .in_effect()
        .doc("How long a new classic group waits for more members."),
    int("group.max.session.timeout.ms")
        .default("1800000")
        .in_effect()
        .doc("The longest session timeout that a classic member may ask for."),
    int("group.max.size")
        .default("2147483647")
        .at_least(1)
        .in_effect()
        .doc("The most members of a classic group."),
    int("group.min.session.timeout.ms")
        .default("6000")
        .in_effect()
        .doc("The shortest session timeout that a classic member may ask for."),
    int("group.share.assignment.interval.ms")
        .default("1000")
        .at_least(0)
        .cluster_wide()
        .doc("The time between two assignments in share groups."),
    boolean("group.share.assignor.offload.enable")
        .default("true")
        .cluster_wide()
        .internal()
        .doc("Whether assignments of share groups are computed beside the coordinator's own work."),
    list("group.share.assignors")
        .default("simple")
        .check(Check::SomeEntries)
        .doc("The assignors of share groups."),
    int("group.share.delivery.count.limit")
        .default("5")
        .between(2, 10)
        .doc("The number of deliveries of a record in share groups."),
    string("group.share.dlq.manager.class.name")
        .default("org.apache.kafka.server.share.dlq.DefaultShareGroupDLQManager")
        .internal()
        .no_meaning()
        .doc("A Java class that writes dead letters."),
    int("group.share.heartbeat.interval.ms")
        .default("5000")
        .at_least(1)
        .doc("The heartbeat interval of members in share groups."),
    int("group.share.initialize.retry.interval.ms")
        .default("30000")
        .at_least(1)
        .low()
        .internal()
        .doc("The wait before share group state is initialised again."),
    int("group.share.max.assignment.interval.ms")
        .default("15000")
        .at_least(0)
        .doc("The greatest time between two assignments that a share group may ask for."),
    int("group.share.max.delivery.count.limit")
        .default("10")
        .between(5, 25)
        .doc("The greatest number of deliveries of a record that a share group may ask for."),
    int("group.share.max.heartbeat.interval.ms")
        .default("15000")
        .at_least(1)
        .doc("The greatest heartbeat interval of members that a share group may ask for."),
    int("group.share.max.partition.max.record.locks")
        .default("4000")
        .between(2000, 10_000)
        .doc("The greatest number of locked records of a partition that a share group may ask for."),
    int("group.share.max.record.lock.duration.ms")
        .default("60000")
        .between(30_000, 3_600_000)
        .doc("The greatest time that a record is locked for its receiver that a share group may ask for."),
    int("group.share.max.session.timeout.ms")
        .default("60000")
        .at_least(1)
        .doc("The greatest time after which a silent member is gone that a share group may ask for."),
    int("group.share.max.share.sessions")
        .default("2000")
        .at_least(1)
        .doc("The most share sessions of a broker."),
    int("group.share.max.size")
        .default("200")
        .between(1, 1000)
        .doc("The most members of a share group."),
    int("group.share.min.assignment.interval.ms")
        .default("0")
        .at_least(0)
        .doc("The least time between two assignments that a share group may ask for."),
    int("group.share.min.delivery.count.limit")
        .default("2")
        .between(2, 5)
        .doc("The least number of deliveries of a record that a share group may ask for."),
    int("group.share.min.heartbeat.interval.ms")
        .default("5000")
        .at_least(1)
        .doc("The least heartbeat interval of members that a share group may ask for."),
    int("group.share.min.partition.max.record.locks")
        .default("100")
        .between(100, 2000)
        .doc("The least number of locked records of a partition that a share group may ask for."),
    int("group.share.min.record.lock.duration.ms")
        .default("15000")
        .between(1000, 30_000)
        .doc("The least time that a record is locked for its receiver that a share group may ask for."),
    int("group.share.min.session.timeout.ms")
        .default("45000")
        .at_least(1)
        .doc("The least time after which a silent member is gone that a share group may ask for."),
    int("group.share.partition.max.record.locks")
        .default("2000")
        .between(100, 10_000)
        .doc("The number of locked records of a partition in share groups."),
    string("group.share.persister.class.name")
        .default("org.apache.kafka.server.share.persister.DefaultStatePersister")
        .internal()
        .no_meaning()
        .doc("A Java class that keeps share group state."),
    int("group.share.record.lock.duration.ms")
        .default("30000")
        .between(1000, 3_600_000)
        .doc("The time that a record is locked for its receiver in share groups."),
    int("group.share.session.timeout.ms")
        .default("45000")
        .at_least(1)
        .doc("The time after which a silent member is gone in share groups."),
    long("group.streams.acceptable.recovery.lag")
        .default("10000")
        .at_least(0)
        .internal()
        .doc("How far behind a client may be and still count as caught up."),
    int("group.streams.assignment.interval.ms")
        .default("1000")
        .at_least(0)
        .cluster_wide()
        .doc("The time between two assignments in streams groups."),
    boolean("group.streams.assignor.offload.enable")
        .default("true")
        .cluster_wide()
        .internal()
        .doc("Whether assignments of streams groups are computed beside the coordinator's own work."),
    list("group.streams.assignors")
        .default("sticky")
        .check(Check::SomeEntries)
        .doc("The assignors of streams groups, the first by default."),
    int("group.streams.heartbeat.interval.ms")
        .default("5000")
        .at_least(1)
        .doc("The heartbeat interval of members in streams groups."),
    int("group.streams.initial.rebalance.delay.ms")
        .default("3000")
        .at_least(0)
        .doc("How long a new streams group waits for more members."),
    int("group.streams.max.assignment.interval.ms")
        .default("15000")
        .at_least(0)
        .doc("The greatest time between two assignments that a streams group may ask for."),
    int("group.streams.max.heartbeat.interval.ms")
        .default("15000")
        .at_least(1)
        .doc("The greatest heartbeat interval of members that a streams group may ask for."),
    int("group.streams.max.session.timeout.ms")
        .default("60000")
        .at_least(1)
        .doc("The greatest time after which a silent member is gone that a streams group may ask for."),
    int("group.streams.max.size")
        .default("2147483647")
        .at_least(1)
        .doc("The most members of a streams group."),
    int("group.streams.max.standby.replicas")
        .default("2")
        .at_least(0)
        .doc("The most standby replicas that a group may ask for."),
    int("group.streams.max.warmup.replicas")
        .default("20")
        .at_least(0)
        .internal()
        .doc("The most warmup replicas that a group may ask for."),
    int("group.streams.min.assignment.interval.ms")
        .default("0")
        .at_least(0)
        .doc("The least time between two assignments that a streams group may ask for."),
    int("group.streams.min.heartbeat.interval.ms")
        .default("5000")
        .at_least(1)
        .doc("The least heartbeat interval of members that a streams group may ask for."),
    int("group.streams.min.session.timeout.ms")
        .default("45000")
        .at_least(1)
        .doc("The least time after which a silent member is gone that a streams group may ask for."),
    int("group.streams.min.task.offset.interval.ms")
        .default("15000")
        .at_least(1)
        .internal()
        .doc("The least interval of task offsets that a group may ask for."),
    int("group.streams.num.standby.replicas")
        .default("0")
        .at_least(0)
        .doc("The standby replicas of each task."),
    int("group.streams.num.warmup.replicas")
        .default("2")
        .at_least(0)
        .internal()
        .doc("The most warmup replicas at a time."),
    list("group.streams.rack.aware.assignment.tags")
        .default("")
        .check(Check::Entries)
        .low()
        .doc("Client tags by which standby replicas are spread."),
    int("group.streams.session.timeout.ms")
        .default("45000")
        .at_least(1)
        .doc("The time after which a silent member is gone in streams groups."),
    int("group.streams.task.offset.interval.ms")
        .default("60000")
        .at_least(1)
        .internal()
        .doc("How often clients report the offsets of warmup tasks."),
    class("group.streams.topology.description.plugin.class")
        .no_meaning()
        .doc("A Java class that receives topology descriptions."),
    int("offset.metadata.max.bytes")
        .default("4096")
        .high()
        .in_effect()
        .doc("The longest text that may be committed with an offset."),
    int("offsets.commit.timeout.ms")
        .default("5000")
        .at_least(1)
        .high()
        .in_effect()
        .doc("How long an offset commit waits for the replicas."),
    int("offsets.load.buffer.size")
        .default("5242880")
        .at_least(1)
        .high()
        .doc("How much of the offsets topic is read at a time while it loads."),
    long("offsets.retention.check.interval.ms")
        .default("600000")
        .at_least(1)
        .high()
        .in_effect()
        .doc("The time between two looks for expired offsets."),
    int("offsets.retention.minutes")
        .default("10080")
        .at_least(1)
        .high()
        .in_effect()
        .doc("How long offsets of an empty group are kept."),
    int("offsets.topic.compression.codec")
        .default("0")
        .high()
        .doc("The codec of the offsets topic."),
    int("offsets.topic.num.partitions")
        .default("50")
        .at_least(1)
        .high()
        .in_effect()
        .doc("The partitions of the offsets topic."),
    short("offsets.topic.replication.factor")
        .default("3")
        .at_least(1)
        .high()
        .in_effect()
        .doc("The replicas of the offsets topic."),
    int("offsets.topic.segment.bytes")
        .default("104857600")
        .at_least(1)
        .high()
        .in_effect()
        .doc("The segment size of the offsets topic."),
    int("share.coordinator.append.linger.ms")
        .default("-1")
        .at_least(-1)
        .doc("How long the share coordinator gathers writes; -1 adapts."),
    int("share.coordinator.cached.buffer.max.bytes")
        .default("1048588")
        .at_least(524_288)
        .cluster_wide()
        .doc("The largest write buffer that the share coordinator keeps for reuse."),
    int("share.coordinator.cold.partition.snapshot.interval.ms")
        .default("300000")
        .at_least(1)
        .low()
        .internal()
        .doc("The time after which an idle share partition gets a snapshot."),
    int("share.coordinator.load.buffer.size")
        .default("5242880")
        .at_least(1)
        .high()
        .doc("How much of the share state topic is read at a time while it loads."),
    int("share.coordinator.snapshot.update.records.per.snapshot")
        .default("500")
        .between(0, 500)
        .doc("How many updates there are between two snapshots."),
    int("share.coordinator.state.topic.compression.codec")
        .default("0")
        .high()
        .doc("The codec of the share state topic."),
    short("share.coordinator.state.topic.min.isr")
        .default("2")
        .at_least(1)
        .high()
        .doc("The min.insync.replicas of the share state topic."),
    int("share.coordinator.state.topic.num.partitions")
        .default("50")
        .at_least(1)
        .high()
        .doc("The partitions of the share state topic."),
    int("share.coordinator.state.topic.prune.interval.ms")
        .default("300000")
        .at_least(1)
        .low()
        .internal()
        .doc("The time between two prunings of the share state topic."),
    short("share.coordinator.state.topic.replication.factor")
        .default("3")
        .at_least(1)
        .high()
        .doc("The replicas of the share state topic."),
    int("share.coordinator.state.topic.segment.bytes")
        .default("104857600")
        .at_least(1)
        .high()
        .doc("The segment size of the share state topic."),
    int("share.coordinator.threads")
        .default("1")
        .at_least(1)
        .no_meaning()
        .doc("How many threads Kafka's share coordinator has."),
    int("share.coordinator.write.timeout.ms")
        .default("5000")
        .at_least(1)
        .high()
        .doc("How long a write of the share coordinator waits for the replicas."),
];
