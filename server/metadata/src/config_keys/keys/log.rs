//! Broker keys of the log: segments, retention, compaction, flushing, timestamps, compression.

use super::super::check::Check;
use super::super::definition::{KeyDefinition, boolean, double, int, list, long, string};

pub(super) const KEYS: &[KeyDefinition] = &[
    int("compression.gzip.level")
        .default("-1")
        .check(Check::BetweenOr(1, 9, -1))
        .cluster_wide()
        .in_effect()
        .doc("The gzip level where the broker compresses."),
    int("compression.lz4.level")
        .default("9")
        .between(1, 17)
        .cluster_wide()
        .in_effect()
        .doc("The lz4 level where the broker compresses."),
    string("compression.type")
        .default("producer")
        .check(Check::OneOf(super::COMPRESSION_TYPES))
        .high()
        .cluster_wide()
        .in_effect()
        .doc("The form that batches are stored in; producer keeps what the producer chose."),
    int("compression.zstd.level")
        .default("3")
        .between(-131_072, 22)
        .cluster_wide()
        .in_effect()
        .doc("The zstd level where the broker compresses."),
    long("log.cleaner.backoff.ms")
        .default("15000")
        .at_least(0)
        .cluster_wide()
        .doc("The wait of the cleaner when there is nothing to clean."),
    long("log.cleaner.dedupe.buffer.size")
        .default("134217728")
        .cluster_wide()
        .doc("The memory of the cleaner's key map."),
    long("log.cleaner.delete.retention.ms")
        .default("86400000")
        .at_least(0)
        .cluster_wide()
        .doc("How long tombstones stay in a compacted log."),
    boolean("log.cleaner.enable")
        .default("true")
        .doc("Whether compacted topics are compacted."),
    double("log.cleaner.io.buffer.load.factor")
        .default("0.9")
        .cluster_wide()
        .doc("How full the cleaner's key map may get."),
    int("log.cleaner.io.buffer.size")
        .default("524288")
        .at_least(0)
        .cluster_wide()
        .doc("The cleaner's buffers for reading and writing."),
    double("log.cleaner.io.max.bytes.per.second")
        .default("1.7976931348623157E308")
        .cluster_wide()
        .doc("Bytes a second that the cleaner reads and writes."),
    long("log.cleaner.max.compaction.lag.ms")
        .default("9223372036854775807")
        .at_least(1)
        .cluster_wide()
        .doc("After this time a record is due for compaction whatever the ratio."),
    double("log.cleaner.min.cleanable.ratio")
        .default("0.5")
        .check(Check::DoubleBetween(0.0, 1.0))
        .cluster_wide()
        .doc("The share of dirty bytes from which a log is cleaned."),
    long("log.cleaner.min.compaction.lag.ms")
        .default("0")
        .at_least(0)
        .cluster_wide()
        .doc("For this time a record is left alone."),
    int("log.cleaner.threads")
        .default("1")
        .at_least(0)
        .cluster_wide()
        .doc("How many threads Kafka's cleaner has."),
    list("log.cleanup.policy")
        .default("delete")
        .check(Check::EntriesOf(super::CLEANUP_POLICIES))
        .cluster_wide()
        .in_effect()
        .doc("Whether old segments are deleted, compacted, or both."),
    list("log.dir")
        .default("/tmp/kafka-logs")
        .check(Check::SomeEntries)
        .high()
        .in_effect()
        .doc("Where the log lives, if log.dirs is not set."),
    long("log.dir.failure.timeout.ms")
        .default("30000")
        .at_least(1)
        .low()
        .doc("How long a broker waits to tell the controller of a failed directory before it stops."),
    list("log.dirs")
        .check(Check::SomeEntries)
        .high()
        .in_effect()
        .doc("Where the log lives, one directory a disk."),
    long("log.flush.interval.messages")
        .default("9223372036854775807")
        .at_least(1)
        .high()
        .cluster_wide()
        .in_effect()
        .doc("After how many records the log is flushed in replicated mode."),
    long("log.flush.interval.ms")
        .high()
        .cluster_wide()
        .in_effect()
        .doc("After what time the log is flushed in replicated mode."),
    int("log.flush.offset.checkpoint.interval.ms")
        .default("60000")
        .at_least(0)
        .high()
        .in_effect()
        .doc("The time between two recovery point checkpoints."),
    long("log.flush.scheduler.interval.ms")
        .default("9223372036854775807")
        .high()
        .in_effect()
        .doc("How often logs are looked at for a flush; also the default of log.flush.interval.ms."),
    int("log.flush.start.offset.checkpoint.interval.ms")
        .default("60000")
        .at_least(0)
        .high()
        .in_effect()
        .doc("The time between two log start offset checkpoints."),
    int("log.index.interval.bytes")
        .default("4096")
        .at_least(0)
        .cluster_wide()
        .in_effect()
        .doc("About how many log bytes there are for one index entry."),
    int("log.index.size.max.bytes")
        .default("10485760")
        .at_least(4)
        .cluster_wide()
        .in_effect()
        .doc("The largest offset index."),
    long("log.initial.task.delay.ms")
        .default("30000")
        .at_least(0)
        .low()
        .internal()
        .in_effect()
        .doc("The wait after start before retention and other background work begin."),
    long("log.local.retention.bytes")
        .default("-2")
        .at_least(-2)
        .cluster_wide()
        .doc("What stays on local disks of a partition with remote storage; -2 for as much as is retained."),
    long("log.local.retention.ms")
        .default("-2")
        .at_least(-2)
        .cluster_wide()
        .doc("How long records with remote storage stay on local disks; -2 for as long as they are retained."),
    long("log.message.timestamp.after.max.ms")
        .default("3600000")
        .at_least(0)
        .cluster_wide()
        .in_effect()
        .doc("How far in the future a record's timestamp may lie."),
    long("log.message.timestamp.before.max.ms")
        .default("9223372036854775807")
        .at_least(0)
        .cluster_wide()
        .in_effect()
        .doc("How far in the past a record's timestamp may lie."),
    string("log.message.timestamp.type")
        .default("CreateTime")
        .check(Check::OneOf(super::TIMESTAMP_TYPES))
        .cluster_wide()
        .in_effect()
        .doc("Whether records bear the producer's time or that of their append."),
    boolean("log.preallocate")
        .default("false")
        .cluster_wide()
        .in_effect()
        .doc("Whether a new segment's file gets its full size at once."),
    long("log.remote.copy.lag.bytes")
        .default("-1")
        .at_least(-1)
        .cluster_wide()
        .doc("How many bytes behind the end of the log copying to remote storage may stay."),
    long("log.remote.copy.lag.ms")
        .default("0")
        .at_least(-1)
        .cluster_wide()
        .doc("How long copying to remote storage may wait."),
    long("log.retention.bytes")
        .default("-1")
        .high()
        .cluster_wide()
        .in_effect()
        .doc("The size from which a partition's oldest segments go; -1 for no limit."),
    long("log.retention.check.interval.ms")
        .default("300000")
        .at_least(1)
        .in_effect()
        .doc("The time between two looks for segments to delete."),
    int("log.retention.hours")
        .default("168")
        .high()
        .in_effect()
        .doc("How long records are kept, if neither minutes nor milliseconds are set."),
    int("log.retention.minutes")
        .high()
        .in_effect()
        .doc("How long records are kept, if milliseconds are not set."),
    long("log.retention.ms")
        .high()
        .cluster_wide()
        .in_effect()
        .doc("How long records are kept; -1 for ever."),
    int("log.roll.hours")
        .default("168")
        .at_least(1)
        .high()
        .in_effect()
        .doc("After what time a new segment begins, if log.roll.ms is not set."),
    int("log.roll.jitter.hours")
        .default("0")
        .at_least(0)
        .high()
        .in_effect()
        .doc("The greatest random part taken off the roll time, if log.roll.jitter.ms is not set."),
    long("log.roll.jitter.ms")
        .high()
        .cluster_wide()
        .in_effect()
        .doc("The greatest random part taken off the roll time."),
    long("log.roll.ms")
        .high()
        .cluster_wide()
        .in_effect()
        .doc("After what time a new segment begins even if the last is not full."),
    int("log.segment.bytes")
        .default("1073741824")
        .at_least(1_048_576)
        .high()
        .cluster_wide()
        .in_effect()
        .doc("The size at which a new segment begins."),
    long("log.segment.delete.delay.ms")
        .default("60000")
        .at_least(0)
        .high()
        .cluster_wide()
        .in_effect()
        .doc("The wait before the files of a deleted segment go."),
    int("max.decompressed.message.bytes")
        .default("2147483639")
        .between(1, 2_147_483_639)
        .cluster_wide()
        .in_effect()
        .doc("The most bytes that a compressed batch may unpack to."),
    int("message.max.bytes")
        .default("1048588")
        .at_least(0)
        .high()
        .cluster_wide()
        .in_effect()
        .doc("The largest batch, after compression."),
    int("min.insync.replicas")
        .default("1")
        .at_least(1)
        .high()
        .cluster_wide()
        .in_effect()
        .doc("How many replicas must have a record before acks=all is answered."),
];
