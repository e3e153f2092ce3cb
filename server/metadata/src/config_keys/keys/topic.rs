//! Keys of topics, and the broker keys that give their defaults.

use super::super::check::Check;
use super::super::definition::{KeyDefinition, boolean, double, hours, int, list, long, minutes, same, string};

pub(super) const KEYS: &[KeyDefinition] = &[
    list("cleanup.policy")
        .default("delete")
        .check(Check::EntriesOf(super::CLEANUP_POLICIES))
        .in_effect()
        .synonyms(&[same("log.cleanup.policy")])
        .doc("Whether old segments are deleted, compacted, or both; empty for neither."),
    int("compression.gzip.level")
        .default("-1")
        .check(Check::BetweenOr(1, 9, -1))
        .in_effect()
        .synonyms(&[same("compression.gzip.level")])
        .doc("The gzip level where the broker compresses."),
    int("compression.lz4.level")
        .default("9")
        .between(1, 17)
        .in_effect()
        .synonyms(&[same("compression.lz4.level")])
        .doc("The lz4 level where the broker compresses."),
    string("compression.type")
        .default("producer")
        .check(Check::OneOf(super::COMPRESSION_TYPES))
        .in_effect()
        .synonyms(&[same("compression.type")])
        .doc("The form that batches are stored in; producer keeps what the producer chose."),
    int("compression.zstd.level")
        .default("3")
        .between(-131_072, 22)
        .in_effect()
        .synonyms(&[same("compression.zstd.level")])
        .doc("The zstd level where the broker compresses."),
    long("delete.retention.ms")
        .default("86400000")
        .at_least(0)
        .in_effect()
        .synonyms(&[same("log.cleaner.delete.retention.ms")])
        .doc("How long tombstones stay in the compacted log."),
    boolean("errors.deadletterqueue.group.enable")
        .default("false")
        .doc("Whether share groups may write their dead letters to this topic."),
    long("file.delete.delay.ms")
        .default("60000")
        .at_least(0)
        .in_effect()
        .synonyms(&[same("log.segment.delete.delay.ms")])
        .doc("The wait before the files of a deleted segment go."),
    long("flush.messages")
        .default("9223372036854775807")
        .at_least(1)
        .in_effect()
        .synonyms(&[same("log.flush.interval.messages")])
        .doc("After how many records the log is flushed in replicated mode."),
    long("flush.ms")
        .default("9223372036854775807")
        .at_least(0)
        .in_effect()
        .synonyms(&[same("log.flush.interval.ms"), same("log.flush.scheduler.interval.ms")])
        .doc("After what time the log is flushed in replicated mode."),
    list("follower.replication.throttled.replicas")
        .default("")
        .check(Check::ThrottledReplicas)
        .doc("Replicas whose fetching is throttled, as partition:broker, or * for all."),
    int("index.interval.bytes")
        .default("4096")
        .at_least(0)
        .in_effect()
        .synonyms(&[same("log.index.interval.bytes")])
        .doc("About how many log bytes there are for one index entry."),
    int("internal.segment.bytes")
        .internal()
        .doc("The segment size without its lower limit, for tests."),
    list("leader.replication.throttled.replicas")
        .default("")
        .check(Check::ThrottledReplicas)
        .doc("Replicas whose sending is throttled, as partition:broker, or * for all."),
    long("local.retention.bytes")
        .default("-2")
        .at_least(-2)
        .synonyms(&[same("log.local.retention.bytes")])
        .doc("What stays on local disks with remote storage; -2 for as much as is retained."),
    long("local.retention.ms")
        .default("-2")
        .at_least(-2)
        .synonyms(&[same("log.local.retention.ms")])
        .doc("How long records stay on local disks with remote storage; -2 for as long as they are retained."),
    long("max.compaction.lag.ms")
        .default("9223372036854775807")
        .at_least(1)
        .in_effect()
        .synonyms(&[same("log.cleaner.max.compaction.lag.ms")])
        .doc("After this time a record is due for compaction whatever the ratio."),
    int("max.decompressed.message.bytes")
        .default("2147483639")
        .between(1, 2_147_483_639)
        .in_effect()
        .synonyms(&[same("max.decompressed.message.bytes")])
        .doc("The most bytes that a compressed batch may unpack to."),
    int("max.message.bytes")
        .default("1048588")
        .at_least(0)
        .in_effect()
        .synonyms(&[same("message.max.bytes")])
        .doc("The largest batch, after compression."),
    long("message.timestamp.after.max.ms")
        .default("3600000")
        .at_least(0)
        .in_effect()
        .synonyms(&[same("log.message.timestamp.after.max.ms")])
        .doc("How far in the future a record's timestamp may lie."),
    long("message.timestamp.before.max.ms")
        .default("9223372036854775807")
        .at_least(0)
        .in_effect()
        .synonyms(&[same("log.message.timestamp.before.max.ms")])
        .doc("How far in the past a record's timestamp may lie."),
    string("message.timestamp.type")
        .default("CreateTime")
        .check(Check::OneOf(super::TIMESTAMP_TYPES))
        .in_effect()
        .synonyms(&[same("log.message.timestamp.type")])
        .doc("Whether records bear the producer's time or that of their append."),
    double("min.cleanable.dirty.ratio")
        .default("0.5")
        .check(Check::DoubleBetween(0.0, 1.0))
        .in_effect()
        .synonyms(&[same("log.cleaner.min.cleanable.ratio")])
        .doc("The share of dirty bytes from which the log is cleaned."),
    long("min.compaction.lag.ms")
        .default("0")
        .at_least(0)
        .in_effect()
        .synonyms(&[same("log.cleaner.min.compaction.lag.ms")])
        .doc("For this time a record is left alone by compaction."),
    int("min.insync.replicas")
        .default("1")
        .at_least(1)
        .in_effect()
        .synonyms(&[same("min.insync.replicas")])
        .doc("How many replicas must have a record before acks=all is answered."),
    boolean("preallocate")
        .default("false")
        .in_effect()
        .synonyms(&[same("log.preallocate")])
        .doc("Whether a new segment's file gets its full size at once."),
    long("remote.copy.lag.bytes")
        .default("-1")
        .at_least(-1)
        .synonyms(&[same("log.remote.copy.lag.bytes")])
        .doc("How many bytes behind the end of the log copying to remote storage may stay."),
    long("remote.copy.lag.ms")
        .default("0")
        .at_least(-1)
        .synonyms(&[same("log.remote.copy.lag.ms")])
        .doc("How long copying to remote storage may wait."),
    boolean("remote.log.copy.disable")
        .default("false")
        .doc("Whether copying to remote storage is stopped."),
    boolean("remote.log.delete.on.disable")
        .default("false")
        .doc("Whether remote segments go when remote storage is switched off."),
    boolean("remote.storage.enable")
        .default("false")
        .doc("Whether old segments go to remote storage."),
    long("retention.bytes")
        .default("-1")
        .in_effect()
        .synonyms(&[same("log.retention.bytes")])
        .doc("The size from which a partition's oldest segments go; -1 for no limit."),
    long("retention.ms")
        .default("604800000")
        .at_least(-1)
        .in_effect()
        .synonyms(&[
            same("log.retention.ms"),
            minutes("log.retention.minutes"),
            hours("log.retention.hours"),
        ])
        .doc("How long records are kept; -1 for ever."),
    int("segment.bytes")
        .default("1073741824")
        .at_least(1_048_576)
        .in_effect()
        .synonyms(&[same("log.segment.bytes")])
        .doc("The size at which a new segment begins."),
    int("segment.index.bytes")
        .default("10485760")
        .at_least(4)
        .in_effect()
        .synonyms(&[same("log.index.size.max.bytes")])
        .doc("The largest offset index."),
    long("segment.jitter.ms")
        .default("0")
        .at_least(0)
        .in_effect()
        .synonyms(&[same("log.roll.jitter.ms"), hours("log.roll.jitter.hours")])
        .doc("The greatest random part taken off segment.ms."),
    long("segment.ms")
        .default("604800000")
        .at_least(1)
        .in_effect()
        .synonyms(&[same("log.roll.ms"), hours("log.roll.hours")])
        .doc("After what time a new segment begins even if the last is not full."),
    boolean("unclean.leader.election.enable")
        .default("false")
        .in_effect()
        .synonyms(&[same("unclean.leader.election.enable")])
        .doc("Whether a replica that is not in sync may lead when no other is left; loses records."),
];
