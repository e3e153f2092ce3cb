//! Broker keys of the node itself: roles, controller quorum, metadata log, metrics, policies.

use super::super::check::Check;
use super::super::definition::{KeyDefinition, boolean, class, int, list, long, string};

pub(super) const KEYS: &[KeyDefinition] = &[
    class("alter.config.policy.class.name")
        .low()
        .no_meaning()
        .doc("A Java class that judges configuration changes."),
    boolean("auto.create.topics.enable")
        .default("true")
        .high()
        .in_effect()
        .doc("Whether a client's question for a missing topic creates it."),
    int("background.threads")
        .default("10")
        .at_least(1)
        .high()
        .cluster_wide()
        .no_meaning()
        .doc("How many threads Kafka has for odd jobs."),
    int("broker.heartbeat.interval.ms")
        .default("2000")
        .in_effect()
        .doc("The time between two heartbeats of a broker to the controller."),
    int("broker.id")
        .default("-1")
        .high()
        .in_effect()
        .doc("The older name of node.id."),
    string("broker.rack")
        .in_effect()
        .doc("Where the broker stands, for placing replicas apart and reading nearby."),
    int("broker.session.timeout.ms")
        .default("9000")
        .in_effect()
        .doc("How long a broker without heartbeats still counts as alive."),
    list("config.providers")
        .default("")
        .check(Check::Entries)
        .low()
        .cluster_wide()
        .no_meaning()
        .doc("Names of Java classes that fetch values from elsewhere."),
    boolean("controlled.shutdown.enable")
        .default("true")
        .in_effect()
        .doc("Whether a stopping broker hands its leaderships over first."),
    list("controller.listener.names")
        .required()
        .check(Check::SomeEntries)
        .high()
        .in_effect()
        .doc("The listeners that controllers use, the first for brokers that call them."),
    long("controller.performance.always.log.threshold.ms")
        .default("2000")
        .at_least(0)
        .internal()
        .doc("Controller events longer than this are always logged."),
    long("controller.performance.sample.period.ms")
        .default("60000")
        .at_least(100)
        .internal()
        .doc("The time between two reports on controller events."),
    int("controller.quorum.append.linger.ms")
        .default("25")
        .at_least(0)
        .in_effect()
        .doc("How long the active controller gathers writes before it syncs them."),
    boolean("controller.quorum.auto.join.enable")
        .default("false")
        .low()
        .doc("Whether a controller adds itself to the voters."),
    list("controller.quorum.bootstrap.servers")
        .default("")
        .check(Check::BootstrapServers)
        .high()
        .in_effect()
        .doc("Addresses at which controllers are found at first."),
    int("controller.quorum.election.backoff.max.ms")
        .default("1000")
        .at_least(0)
        .high()
        .in_effect()
        .doc("The longest wait before a lost election is tried again."),
    int("controller.quorum.election.timeout.ms")
        .default("1000")
        .at_least(0)
        .high()
        .in_effect()
        .doc("How long a candidate waits for votes."),
    int("controller.quorum.fetch.max.bytes")
        .default("1048576")
        .at_least(1)
        .low()
        .in_effect()
        .doc("The most metadata log bytes that one fetch brings."),
    int("controller.quorum.fetch.snapshot.max.bytes")
        .default("1048576")
        .at_least(1)
        .low()
        .in_effect()
        .doc("The most snapshot bytes that one fetch brings."),
    int("controller.quorum.fetch.timeout.ms")
        .default("2000")
        .at_least(0)
        .high()
        .in_effect()
        .doc("How long a voter goes without the leader's word before it stands for election."),
    int("controller.quorum.request.timeout.ms")
        .default("2000")
        .at_least(0)
        .in_effect()
        .doc("How long a request within the quorum may take."),
    int("controller.quorum.retry.backoff.ms")
        .default("20")
        .at_least(0)
        .low()
        .in_effect()
        .doc("The wait before a failed request within the quorum is sent again."),
    list("controller.quorum.voters")
        .default("")
        .check(Check::Voters)
        .high()
        .in_effect()
        .doc("The fixed voters, as id@host:port; the older way to found a quorum."),
    int("controller.socket.timeout.ms")
        .default("30000")
        .doc("How long a request from controller to broker may take."),
    list("cordoned.log.dirs")
        .default("")
        .check(Check::Entries)
        .per_broker()
        .doc("Log directories that get no new replicas; * for all."),
    class("create.topic.policy.class.name")
        .low()
        .no_meaning()
        .doc("A Java class that judges new topics."),
    int("default.replication.factor")
        .default("1")
        .in_effect()
        .doc("The replicas of a topic that is created without a number."),
    boolean("delete.topic.enable")
        .default("true")
        .high()
        .in_effect()
        .doc("Whether topics can be deleted."),
    int("initial.broker.registration.timeout.ms")
        .default("60000")
        .in_effect()
        .doc("How long a starting broker tries to register before it gives up."),
    long("internal.metadata.delete.delay.millis")
        .default("60000")
        .low()
        .internal()
        .doc("The wait before deleted metadata log files go."),
    int("internal.metadata.log.segment.bytes")
        .low()
        .internal()
        .doc("The size of a metadata log segment, for tests."),
    int("internal.metadata.max.batch.size.in.bytes")
        .default("8388608")
        .low()
        .internal()
        .doc("The largest batch of the metadata log, for tests."),
    int("kafka.metrics.polling.interval.secs")
        .default("10")
        .at_least(1)
        .low()
        .no_meaning()
        .doc("How often Kafka's metrics reporters are asked."),
    list("kafka.metrics.reporters")
        .default("")
        .check(Check::Entries)
        .low()
        .no_meaning()
        .doc("Java classes that report metrics."),
    string("metadata.log.dir")
        .high()
        .in_effect()
        .doc("Where the metadata log lives, if not in the first log directory."),
    long("metadata.log.max.record.bytes.between.snapshots")
        .default("20971520")
        .at_least(1)
        .high()
        .in_effect()
        .doc("After how many bytes a new metadata snapshot is made."),
    long("metadata.log.max.snapshot.interval.ms")
        .default("3600000")
        .at_least(0)
        .high()
        .in_effect()
        .doc("After what time a new metadata snapshot is made; 0 for never."),
    int("metadata.log.segment.bytes")
        .default("1073741824")
        .at_least(8_388_608)
        .high()
        .in_effect()
        .doc("The size of a metadata log segment."),
    long("metadata.log.segment.ms")
        .default("604800000")
        .high()
        .in_effect()
        .doc("After what time a new metadata log segment begins."),
    int("metadata.max.idle.interval.ms")
        .default("500")
        .at_least(0)
        .low()
        .in_effect()
        .doc("How often an idle controller writes a no-op record; 0 for never."),
    long("metadata.max.retention.bytes")
        .default("104857600")
        .high()
        .in_effect()
        .doc("The size from which old metadata segments and snapshots go."),
    long("metadata.max.retention.ms")
        .default("604800000")
        .high()
        .in_effect()
        .doc("The age from which old metadata segments and snapshots go."),
    list("metric.reporters")
        .default("org.apache.kafka.common.metrics.JmxReporter")
        .check(Check::Entries)
        .low()
        .cluster_wide()
        .no_meaning()
        .doc("Java classes that report metrics."),
    int("metrics.num.samples")
        .default("2")
        .at_least(1)
        .low()
        .no_meaning()
        .doc("How many samples Kafka's metrics are computed over."),
    string("metrics.recording.level")
        .default("INFO")
        .low()
        .no_meaning()
        .doc("How detailed Kafka's metrics are."),
    long("metrics.sample.window.ms")
        .default("30000")
        .at_least(1)
        .low()
        .no_meaning()
        .doc("How long one sample of Kafka's metrics is."),
    int("node.id")
        .required()
        .at_least(0)
        .high()
        .in_effect()
        .doc("The node's number in the cluster."),
    int("num.partitions")
        .default("1")
        .at_least(1)
        .in_effect()
        .doc("The partitions of a topic that is created without a number."),
    int("num.recovery.threads.per.data.dir")
        .default("2")
        .at_least(1)
        .high()
        .cluster_wide()
        .in_effect()
        .doc("How many logs of a directory are opened, and recovered, at a time."),
    list("process.roles")
        .required()
        .check(Check::SomeEntriesOf(&["broker", "controller"]))
        .high()
        .in_effect()
        .doc("What the node is: broker, controller, or both."),
    long("server.max.startup.time.ms")
        .default("9223372036854775807")
        .at_least(0)
        .internal()
        .doc("How long starting may take."),
    int("telemetry.max.bytes")
        .default("1048576")
        .at_least(1)
        .low()
        .doc("The largest push of client metrics."),
    boolean("unstable.api.versions.enable")
        .default("false")
        .high()
        .internal()
        .no_meaning()
        .doc("Whether Kafka shows unfinished protocol versions."),
    boolean("unstable.feature.versions.enable")
        .default("false")
        .high()
        .internal()
        .no_meaning()
        .doc("Whether Kafka shows unfinished feature levels."),
];
