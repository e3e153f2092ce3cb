//! How one log behaves: the topic's configuration, with Kafka's defaults. All of it may change while the log is open.

use crate::compaction::CompactionOptions;
use model::record_batch::{Compression, DecompressionLimit, TimestampType};

/// What the broker does about the compression of what producers send.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CompressionPolicy {
    /// `compression.type=producer`: kept as sent.
    #[default]
    Producer,
    /// Anything else: batches in another compression are written anew.
    Fixed {
        compression: Compression,
        level: Option<i32>,
    },
}

/// What an acknowledgement stands for (`millstream.acks.durability`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Durability {
    /// Records are on the disk. A segment is synced before the next one is begun, so that records behind a gap are never
    /// the remains of a crash but a sign of damage.
    #[default]
    Fsync,
    /// Records are in the memory of the replicas, as in Kafka. Nothing waits for the disk; what a crash leaves behind a
    /// gap is cut.
    Replicated,
}

/// The settings of one log.
#[derive(Clone, PartialEq, Debug)]
pub struct LogOptions {
    /// `segment.bytes`
    pub segment_size_bytes: u32,
    /// `segment.ms`
    pub segment_ms: i64,
    /// How much earlier than `segment.ms` to roll: drawn by the shell from 0 up to `segment.jitter.ms`.
    pub segment_jitter_ms: i64,
    /// `segment.index.bytes`
    pub index_size_bytes_max: u32,
    /// `index.interval.bytes`
    pub index_interval_bytes: u32,
    /// `retention.ms`; `None` is -1, for ever.
    pub retention_ms: Option<i64>,
    /// `retention.bytes`; `None` is -1, without limit.
    pub retention_bytes: Option<u64>,
    /// `cleanup.policy` has "delete".
    pub delete: bool,
    /// `cleanup.policy` has "compact".
    pub compact: bool,
    /// What holds where `compact` is set.
    pub compaction: CompactionOptions,
    /// `max.message.bytes`
    pub max_message_bytes: usize,
    /// `message.timestamp.type`
    pub timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`
    pub timestamp_before_max_ms: i64,
    /// `message.timestamp.after.max.ms`
    pub timestamp_after_max_ms: i64,
    /// `compression.type` and its level
    pub compression: CompressionPolicy,
    /// `millstream.acks.durability`
    pub durability: Durability,
    /// `millstream.produce.validation=records`: compressed batches are opened and checked, too.
    pub validate_records: bool,
    /// How large a batch may be when opened.
    pub decompression_limit: DecompressionLimit,
    /// `producer.id.expiration.ms`
    pub producer_id_expiration_ms: i64,
    /// `flush.messages`: how many records may be unsynced before [`crate::PartitionLog::sync_is_due`] says so.
    pub flush_messages: i64,
    /// `flush.ms`
    pub flush_ms: i64,
}

impl Default for LogOptions {
    fn default() -> Self {
        const HOUR_MS: i64 = 3_600_000;
        const DAY_MS: i64 = 24 * HOUR_MS;
        LogOptions {
            segment_size_bytes: 1 << 30,
            segment_ms: 7 * DAY_MS,
            segment_jitter_ms: 0,
            index_size_bytes_max: 10 << 20,
            index_interval_bytes: 4096,
            retention_ms: Some(7 * DAY_MS),
            retention_bytes: None,
            delete: true,
            compact: false,
            compaction: CompactionOptions::default(),
            max_message_bytes: 1_048_588,
            timestamp_type: TimestampType::CreateTime,
            timestamp_before_max_ms: i64::MAX,
            timestamp_after_max_ms: HOUR_MS,
            compression: CompressionPolicy::Producer,
            durability: Durability::Fsync,
            validate_records: false,
            decompression_limit: DecompressionLimit::DEFAULT,
            producer_id_expiration_ms: DAY_MS,
            flush_messages: i64::MAX,
            flush_ms: i64::MAX,
        }
    }
}
