//! Broker keys of tiered storage (KIP-405).

use super::super::check::Check;
use super::super::definition::{KeyDefinition, boolean, double, int, long, string};

pub(super) const KEYS: &[KeyDefinition] = &[
    boolean("follower.fetch.last.tiered.offset.enable")
        .default("false")
        .cluster_wide()
        .doc("Whether an empty follower begins at the last offset in remote storage."),
    int("remote.fetch.max.wait.ms")
        .default("500")
        .at_least(1)
        .cluster_wide()
        .doc("How long a Fetch waits for remote storage."),
    long("remote.list.offsets.request.timeout.ms")
        .default("30000")
        .at_least(1)
        .cluster_wide()
        .doc("How long ListOffsets waits for remote storage."),
    long("remote.log.index.file.cache.total.size.bytes")
        .default("1073741824")
        .at_least(1)
        .low()
        .cluster_wide()
        .doc("The disk space for cached remote indexes."),
    long("remote.log.index.file.cache.ttl.ms")
        .default("900000")
        .at_least(-1)
        .low()
        .internal()
        .doc("How long a cached remote index stays unused."),
    int("remote.log.manager.copier.thread.pool.size")
        .default("10")
        .at_least(1)
        .cluster_wide()
        .doc("How many threads copy to remote storage."),
    long("remote.log.manager.copy.max.bytes.per.second")
        .default("9223372036854775807")
        .at_least(1)
        .cluster_wide()
        .doc("Bytes a second copied to remote storage."),
    int("remote.log.manager.copy.quota.window.num")
        .default("11")
        .at_least(1)
        .doc("How many samples the copy quota keeps."),
    int("remote.log.manager.copy.quota.window.size.seconds")
        .default("1")
        .at_least(1)
        .doc("How long one sample of the copy quota is."),
    int("remote.log.manager.expiration.thread.pool.size")
        .default("10")
        .at_least(1)
        .cluster_wide()
        .doc("How many threads delete from remote storage."),
    long("remote.log.manager.fetch.max.bytes.per.second")
        .default("9223372036854775807")
        .at_least(1)
        .cluster_wide()
        .doc("Bytes a second read from remote storage."),
    int("remote.log.manager.fetch.quota.window.num")
        .default("11")
        .at_least(1)
        .doc("How many samples the remote fetch quota keeps."),
    int("remote.log.manager.fetch.quota.window.size.seconds")
        .default("1")
        .at_least(1)
        .doc("How long one sample of the remote fetch quota is."),
    int("remote.log.manager.follower.thread.pool.size")
        .default("2")
        .at_least(1)
        .cluster_wide()
        .doc("How many threads do followers' remote work."),
    long("remote.log.manager.task.interval.ms")
        .default("30000")
        .at_least(1)
        .low()
        .doc("How often remote work of a partition is looked for."),
    long("remote.log.manager.task.retry.backoff.max.ms")
        .default("30000")
        .at_least(1)
        .low()
        .internal()
        .doc("The longest wait before remote work is tried again."),
    long("remote.log.manager.task.retry.backoff.ms")
        .default("500")
        .at_least(1)
        .low()
        .internal()
        .doc("The first wait before remote work is tried again."),
    double("remote.log.manager.task.retry.jitter")
        .default("0.2")
        .check(Check::DoubleBetween(0.0, 0.5))
        .low()
        .internal()
        .doc("The random part of that wait."),
    int("remote.log.manager.thread.pool.size")
        .default("2")
        .at_least(1)
        .doc("The older number of threads for remote work."),
    int("remote.log.metadata.custom.metadata.max.bytes")
        .default("128")
        .at_least(0)
        .low()
        .doc("The most bytes a remote storage may add to a segment's metadata."),
    string("remote.log.metadata.manager.class.name")
        .default("org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager")
        .check(Check::NonEmptyText)
        .no_meaning()
        .doc("A Java class that keeps metadata of remote segments."),
    string("remote.log.metadata.manager.class.path")
        .no_meaning()
        .doc("Where that class is."),
    string("remote.log.metadata.manager.impl.prefix")
        .default("rlmm.config.")
        .check(Check::NonEmptyText)
        .doc("The prefix of that class's own settings."),
    string("remote.log.metadata.manager.listener.name")
        .check(Check::NonEmptyText)
        .doc("The listener that class calls brokers by."),
    int("remote.log.reader.max.pending.tasks")
        .default("100")
        .at_least(1)
        .doc("How many remote reads may wait."),
    int("remote.log.reader.threads")
        .default("10")
        .at_least(1)
        .cluster_wide()
        .doc("How many remote reads go on at a time."),
    string("remote.log.storage.manager.class.name")
        .check(Check::NonEmptyText)
        .no_meaning()
        .doc("A Java class that stores remote segments."),
    string("remote.log.storage.manager.class.path")
        .no_meaning()
        .doc("Where that class is."),
    string("remote.log.storage.manager.impl.prefix")
        .default("rsm.config.")
        .check(Check::NonEmptyText)
        .doc("The prefix of that class's own settings."),
    boolean("remote.log.storage.system.enable")
        .default("false")
        .doc("Whether topics may keep old segments in remote storage."),
];
