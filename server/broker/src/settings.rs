//! From the table of keys to what the parts of a broker go by.

use std::time::Duration;

use coordinator::group::GroupConfig;
use metadata::config_keys::{AckDurability, BrokerSettings, CompressionType, ProduceValidation, TopicSettings};
use model::record_batch::{self, Compression, DecompressionLimit};
use storage::compaction::CompactionOptions;
use storage::{CompressionPolicy, Durability, LogOptions};

pub(crate) fn group_config(settings: &BrokerSettings) -> GroupConfig {
    let groups = &settings.groups;
    GroupConfig {
        session_timeout_min: groups.session_timeout_min,
        session_timeout_max: groups.session_timeout_max,
        initial_rebalance_delay: groups.initial_rebalance_delay,
        group_size_max: groups.size_max,
        offset_metadata_units_max: groups.offset_metadata_bytes_max,
        offsets_retention: groups.offset_retention,
        offsets_retention_check_interval: groups.offset_retention_check_interval,
    }
}

/// `jitter` is a draw from 0 up to 1: how much of `segment.jitter.ms` a partition rolls earlier, so that those that
/// were created together do not roll together.
pub(crate) fn log_options(topic: &TopicSettings, broker: &BrokerSettings, jitter: f64) -> LogOptions {
    LogOptions {
        segment_size_bytes: topic.segment_bytes,
        segment_ms: segment_ms(topic),
        segment_jitter_ms: millis(topic.segment_jitter.mul_f64(jitter.clamp(0.0, 1.0))),
        index_size_bytes_max: topic.segment_index_bytes,
        index_interval_bytes: topic.index_interval_bytes,
        retention_ms: topic.retention.map(millis),
        retention_bytes: topic.retention_bytes,
        delete: topic.cleanup_policy.delete,
        compact: topic.cleanup_policy.compact,
        compaction: CompactionOptions {
            dirty_ratio_min: topic.min_cleanable_dirty_ratio,
            lag_ms_min: millis(topic.min_compaction_lag),
            lag_ms_max: topic.max_compaction_lag.map(millis),
            delete_retention_ms: millis(topic.delete_retention),
        },
        max_message_bytes: topic.max_message_bytes as usize,
        timestamp_type: match topic.timestamp_type {
            metadata::config_keys::TimestampType::CreateTime => record_batch::TimestampType::CreateTime,
            metadata::config_keys::TimestampType::LogAppendTime => record_batch::TimestampType::LogAppendTime,
        },
        timestamp_before_max_ms: topic.timestamp_before_max.map_or(i64::MAX, millis),
        timestamp_after_max_ms: topic.timestamp_after_max.map_or(i64::MAX, millis),
        compression: compression(topic.compression),
        validate_records: topic.validation == ProduceValidation::Records,
        decompression_limit: DecompressionLimit::bytes(topic.max_decompressed_message_bytes as usize),
        producer_id_expiration_ms: millis(broker.log.producer_id_expiration),
        durability: match topic.durability {
            AckDurability::Fsync => Durability::Fsync,
            AckDurability::Replicated => Durability::Replicated,
        },
        flush_messages: topic
            .flush_messages
            .map_or(i64::MAX, |messages| i64::try_from(messages).unwrap_or(i64::MAX)),
        flush_ms: topic.flush.map_or(i64::MAX, millis),
    }
}

/// A compacted topic's segment is left early enough for its records not to pass `max.compaction.lag.ms`.
fn segment_ms(topic: &TopicSettings) -> i64 {
    let lag = topic.max_compaction_lag.filter(|_| topic.cleanup_policy.compact);
    millis(lag.map_or(topic.segment, |lag| lag.min(topic.segment)))
}

fn compression(wanted: CompressionType) -> CompressionPolicy {
    let fixed = |compression, level| CompressionPolicy::Fixed { compression, level };
    match wanted {
        CompressionType::Producer => CompressionPolicy::Producer,
        CompressionType::Uncompressed => fixed(Compression::None, None),
        CompressionType::Gzip { level } => fixed(Compression::Gzip, level.map(i32::from)),
        CompressionType::Snappy => fixed(Compression::Snappy, None),
        CompressionType::Lz4 { level } => fixed(Compression::Lz4, Some(i32::from(level))),
        CompressionType::Zstd { level } => fixed(Compression::Zstd, Some(level)),
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
