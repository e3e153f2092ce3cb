//! A topic's configuration as plain typed fields: what storage, replication and the produce path act on.

use super::error::ConfigError;
use super::keys::{Scope, all, lookup};
use super::layers::{BrokerValues, Configs};
use super::value::Value;
use super::{BrokerConfigs, BrokerSettings};
use std::time::Duration;

/// Which old records go: whole segments by age and size, or all but the latest of each key. Both may hold, or neither.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CleanupPolicy {
    pub delete: bool,
    pub compact: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimestampType {
    CreateTime,
    LogAppendTime,
}

/// What batches are stored as: as the producer sent them, or in one form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompressionType {
    Producer,
    Uncompressed,
    /// `None` stands for the codec's own default, which Kafka writes as -1.
    Gzip {
        level: Option<u8>,
    },
    Snappy,
    Lz4 {
        level: u8,
    },
    Zstd {
        level: i32,
    },
}

/// What an acknowledgement says about the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AckDurability {
    /// Every in-sync replica has synced the record.
    Fsync,
    /// Every in-sync replica has the record in its page cache, as with Kafka.
    Replicated,
}

/// How far a produced batch is looked into.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProduceValidation {
    Batch,
    Records,
}

/// One topic's values. `None` stands for "no limit".
#[derive(Clone, PartialEq, Debug)]
pub struct TopicSettings {
    pub segment_bytes: u32,
    pub segment: Duration,
    pub segment_jitter: Duration,
    pub segment_index_bytes: u32,
    pub index_interval_bytes: u32,
    pub preallocate: bool,
    pub retention: Option<Duration>,
    pub retention_bytes: Option<u64>,
    pub file_delete_delay: Duration,
    pub cleanup_policy: CleanupPolicy,
    pub delete_retention: Duration,
    pub min_cleanable_dirty_ratio: f64,
    pub min_compaction_lag: Duration,
    pub max_compaction_lag: Option<Duration>,
    /// The greatest batch, after compression.
    pub max_message_bytes: u32,
    pub max_decompressed_message_bytes: u32,
    pub timestamp_type: TimestampType,
    pub timestamp_before_max: Option<Duration>,
    pub timestamp_after_max: Option<Duration>,
    pub compression: CompressionType,
    pub min_insync_replicas: u32,
    pub unclean_leader_election: bool,
    pub flush_messages: Option<u64>,
    pub flush: Option<Duration>,
    pub durability: AckDurability,
    pub validation: ProduceValidation,
}

impl TopicSettings {
    /// The settings of a topic with these overrides on a broker with those settings.
    ///
    /// The controller has checked what it put into the metadata log. An override that is none of this version's values
    /// (written by a later one, say) counts as not set.
    #[must_use]
    pub fn resolve(overrides: &Configs, broker: &BrokerSettings) -> TopicSettings {
        let texts = |name: &str| overrides.get(name).cloned();
        Self::read(&TopicValues {
            overrides: &texts,
            defaults: &broker.topic_default_texts,
        })
    }

    /// What holds for topics without overrides.
    pub(super) fn defaults(texts: &Configs) -> TopicSettings {
        Self::read(&TopicValues {
            overrides: &|_| None,
            defaults: texts,
        })
    }

    fn read(values: &TopicValues<'_>) -> TopicSettings {
        TopicSettings {
            segment_bytes: values
                .size("internal.segment.bytes")
                .unwrap_or_else(|| values.u32("segment.bytes")),
            segment: values.duration("segment.ms"),
            segment_jitter: values.duration("segment.jitter.ms"),
            segment_index_bytes: values.u32("segment.index.bytes"),
            index_interval_bytes: values.u32("index.interval.bytes"),
            preallocate: values.boolean("preallocate"),
            retention: values.limit("retention.ms").map(Duration::from_millis),
            retention_bytes: values.limit("retention.bytes"),
            file_delete_delay: values.duration("file.delete.delay.ms"),
            cleanup_policy: values.cleanup_policy(),
            delete_retention: values.duration("delete.retention.ms"),
            min_cleanable_dirty_ratio: values.double("min.cleanable.dirty.ratio"),
            min_compaction_lag: values.duration("min.compaction.lag.ms"),
            max_compaction_lag: values.bound("max.compaction.lag.ms").map(Duration::from_millis),
            max_message_bytes: values.u32("max.message.bytes"),
            max_decompressed_message_bytes: values.u32("max.decompressed.message.bytes"),
            timestamp_type: match values.text("message.timestamp.type").as_str() {
                "LogAppendTime" => TimestampType::LogAppendTime,
                _ => TimestampType::CreateTime,
            },
            timestamp_before_max: values
                .bound("message.timestamp.before.max.ms")
                .map(Duration::from_millis),
            timestamp_after_max: values
                .bound("message.timestamp.after.max.ms")
                .map(Duration::from_millis),
            compression: values.compression(),
            min_insync_replicas: values.u32("min.insync.replicas"),
            unclean_leader_election: values.boolean("unclean.leader.election.enable"),
            flush_messages: values.bound("flush.messages"),
            flush: values.bound("flush.ms").map(Duration::from_millis),
            durability: match values.text("millstream.acks.durability").as_str() {
                "replicated" => AckDurability::Replicated,
                _ => AckDurability::Fsync,
            },
            validation: match values.text("millstream.produce.validation").as_str() {
                "records" => ProduceValidation::Records,
                _ => ProduceValidation::Batch,
            },
        }
    }
}

/// The texts that topics have by default on a broker, by topic key, in the units of the topic keys.
///
/// # Errors
/// If what the broker has is no value of the topic's key.
pub(super) fn default_texts(broker: &BrokerValues) -> Result<Configs, ConfigError> {
    let mut texts = Configs::new();
    for key in all(Scope::Topic) {
        let text = broker
            .by_synonyms(key.synonyms)
            .or_else(|| key.default_text().map(str::to_owned));
        let Some(text) = text else { continue };
        // The broker's keys take any negative time for "no limit", the topic's only -1.
        let text = if key.name == "retention.ms" && text.trim().starts_with('-') {
            "-1".to_owned()
        } else {
            text
        };
        key.parse(&text)?;
        texts.insert(key.name.to_owned(), text);
    }
    Ok(texts)
}

impl BrokerConfigs {
    /// The value of a topic's key with these overrides, as text: override, this broker's, all brokers', the file's,
    /// the default. `None` if no layer has one.
    #[must_use]
    pub fn topic_value(&self, overrides: &Configs, name: &str) -> Option<String> {
        if let Some(text) = overrides.get(name) {
            return Some(text.clone());
        }
        let key = lookup(Scope::Topic, name)?;
        self.values()
            .by_synonyms(key.synonyms)
            .or_else(|| key.default_text().map(str::to_owned))
    }
}

/// Overrides over defaults, by the names of topic keys.
struct TopicValues<'a> {
    overrides: &'a dyn Fn(&str) -> Option<String>,
    defaults: &'a Configs,
}

impl TopicValues<'_> {
    fn get(&self, name: &str) -> Option<Value> {
        let key = lookup(Scope::Topic, name)?;
        let parsed = |text: String| key.parse(&text).ok();
        (self.overrides)(name)
            .and_then(parsed)
            .or_else(|| self.defaults.get(name).cloned().and_then(parsed))
            .or_else(|| key.default_text().map(str::to_owned).and_then(parsed))
    }

    fn number(&self, name: &str) -> i64 {
        let number = self.get(name).and_then(|value| value.number());
        number.and_then(|number| i64::try_from(number).ok()).unwrap_or(-1)
    }

    /// A number of which negative ones mean "no limit".
    fn limit(&self, name: &str) -> Option<u64> {
        u64::try_from(self.number(name)).ok()
    }

    /// A number of which the greatest means "no limit".
    fn bound(&self, name: &str) -> Option<u64> {
        match self.number(name) {
            i64::MAX => None,
            number => u64::try_from(number).ok(),
        }
    }

    fn size(&self, name: &str) -> Option<u32> {
        u32::try_from(self.number(name)).ok()
    }

    fn u32(&self, name: &str) -> u32 {
        self.size(name).unwrap_or(0)
    }

    fn duration(&self, name: &str) -> Duration {
        Duration::from_millis(self.limit(name).unwrap_or(0))
    }

    fn boolean(&self, name: &str) -> bool {
        matches!(self.get(name), Some(Value::Boolean(true)))
    }

    fn double(&self, name: &str) -> f64 {
        match self.get(name) {
            Some(Value::Double(value)) => value,
            _ => 0.0,
        }
    }

    fn text(&self, name: &str) -> String {
        self.get(name).map(|value| value.to_text()).unwrap_or_default()
    }

    fn cleanup_policy(&self) -> CleanupPolicy {
        let Some(Value::List(entries)) = self.get("cleanup.policy") else {
            return CleanupPolicy::default();
        };
        CleanupPolicy {
            delete: entries.iter().any(|entry| entry == "delete"),
            compact: entries.iter().any(|entry| entry == "compact"),
        }
    }

    fn compression(&self) -> CompressionType {
        let level = |name: &str| u8::try_from(self.number(name)).ok();
        match self.text("compression.type").as_str() {
            "uncompressed" => CompressionType::Uncompressed,
            "gzip" => CompressionType::Gzip {
                level: level("compression.gzip.level"),
            },
            "snappy" => CompressionType::Snappy,
            "lz4" => CompressionType::Lz4 {
                level: level("compression.lz4.level").unwrap_or(9),
            },
            "zstd" => CompressionType::Zstd {
                level: i32::try_from(self.number("compression.zstd.level")).unwrap_or(3),
            },
            _ => CompressionType::Producer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broker(lines: &str) -> BrokerSettings {
        let mut configs = BrokerConfigs::default();
        let base = "process.roles=broker,controller|node.id=1|controller.listener.names=CONTROLLER|\
                    listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093|\
                    controller.quorum.bootstrap.servers=127.0.0.1:9093";
        for line in base.split('|').chain(lines.split('|')).filter(|line| !line.is_empty()) {
            let (name, value) = line.split_once('=').expect("a pair");
            configs.static_values.insert(name.to_owned(), value.to_owned());
        }
        BrokerSettings::resolve(&configs).expect("a broker")
    }

    fn overrides(pairs: &[(&str, &str)]) -> Configs {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn without_any_setting_the_values_are_kafkas_defaults() {
        let topic = TopicSettings::resolve(&Configs::new(), &broker(""));
        assert_eq!(topic.segment_bytes, 1 << 30);
        assert_eq!(topic.segment, Duration::from_hours(168));
        assert_eq!(topic.retention, Some(Duration::from_hours(168)));
        assert_eq!(topic.retention_bytes, None);
        assert_eq!(
            topic.cleanup_policy,
            CleanupPolicy {
                delete: true,
                compact: false
            }
        );
        assert_eq!(topic.max_message_bytes, 1_048_588);
        assert_eq!(topic.timestamp_before_max, None);
        assert_eq!(topic.timestamp_after_max, Some(Duration::from_hours(1)));
        assert_eq!(topic.compression, CompressionType::Producer);
        assert_eq!((topic.flush_messages, topic.flush), (None, None));
        assert_eq!(topic.max_compaction_lag, None);
        assert_eq!(topic.durability, AckDurability::Fsync);
    }

    #[test]
    fn milliseconds_win_over_minutes_and_minutes_over_hours() {
        let of = |lines: &str| TopicSettings::resolve(&Configs::new(), &broker(lines)).retention;
        assert_eq!(of("log.retention.hours=2"), Some(Duration::from_hours(2)));
        assert_eq!(
            of("log.retention.hours=2|log.retention.minutes=3"),
            Some(Duration::from_mins(3))
        );
        assert_eq!(
            of("log.retention.hours=2|log.retention.minutes=3|log.retention.ms=4"),
            Some(Duration::from_millis(4))
        );
        assert_eq!(of("log.retention.hours=-1"), None);
    }

    #[test]
    fn an_override_wins_over_the_broker() {
        let broker = broker("log.segment.bytes=2000000|compression.type=zstd|millstream.acks.durability=replicated");
        let topic = TopicSettings::resolve(
            &overrides(&[
                ("segment.bytes", "1048576"),
                ("compression.zstd.level", "7"),
                ("cleanup.policy", ""),
            ]),
            &broker,
        );
        assert_eq!(topic.segment_bytes, 1_048_576);
        assert_eq!(topic.compression, CompressionType::Zstd { level: 7 });
        assert_eq!(topic.cleanup_policy, CleanupPolicy::default());
        assert_eq!(topic.durability, AckDurability::Replicated);
    }

    #[test]
    fn an_override_that_is_no_value_counts_as_not_set() {
        let topic = TopicSettings::resolve(&overrides(&[("segment.bytes", "soon")]), &broker(""));
        assert_eq!(topic.segment_bytes, 1 << 30);
    }
}
