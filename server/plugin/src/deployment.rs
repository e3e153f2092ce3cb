//! What users deploy, and the records that keep it: processors over topics, and plugins bound to topics.
//!
//! Modules and deployments are records of two compacted topics of one partition each, so that every node of a cluster
//! learns of them in the same order and they outlive any node.
//!
//! ```text
//! __millstream_plugins      key                    value
//!   a piece of a module     | digest … 64 hex | / | piece, 6 decimal digits |    its bytes
//!   a whole module          | digest … 64 hex |                                  JSON: ModuleRecord
//! __millstream_deployments
//!   a processor             processor/NAME                                       JSON: Deployment
//!   plugins of a topic      topic/NAME                                           JSON: TopicPlugins
//! ```
//!
//! The record of a whole module follows its pieces: a module without it was never uploaded to the end. A tombstone takes
//! the thing away.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use model::{Offset, Timestamp, TopicId, TopicName};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::host::Digest;

/// The topic of modules.
pub const PLUGINS_TOPIC: &str = "__millstream_plugins";
/// The topic of deployments.
pub const DEPLOYMENTS_TOPIC: &str = "__millstream_deployments";
/// Largest piece of a module in one record, in bytes.
pub const PIECE_BYTES_MAX: usize = 512 << 10;
/// Longest name of a processor: with the longest suffix it still is a topic's name.
pub const NAME_LENGTH_MAX: usize = 200;
/// What is added to a processor's name to name the topic of what it refused or broke at.
pub const DEAD_LETTER_SUFFIX: &str = "-dead-letter";
/// What is added to a processor's name to name the topic that holds its state.
pub const CHANGELOG_SUFFIX: &str = "-changelog";
/// Most entries of a deployment's configuration.
pub const CONFIG_ENTRIES_MAX: usize = 256;
/// Most bytes of a deployment's configuration, names and values together.
pub const CONFIG_BYTES_MAX: usize = 64 << 10;

/// A processor's name: what a topic may be called, but shorter.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ProcessorName(String);

/// The text names no processor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a processor's name is 1 to {NAME_LENGTH_MAX} of the characters a-z, A-Z, 0-9, '.', '_' and '-'")]
pub struct ProcessorNameError;

impl ProcessorName {
    /// # Errors
    /// If no topics could be named after it.
    pub fn new(name: impl Into<String>) -> Result<Self, ProcessorNameError> {
        let name = name.into();
        if name.len() > NAME_LENGTH_MAX || name.starts_with("__") || TopicName::new(name.as_str()).is_err() {
            return Err(ProcessorNameError);
        }
        Ok(ProcessorName(name))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The topic of what the processor refused or broke at.
    #[must_use]
    pub fn dead_letter_topic(&self) -> TopicName {
        self.topic(DEAD_LETTER_SUFFIX)
    }

    /// The topic that holds the processor's state.
    #[must_use]
    pub fn changelog_topic(&self) -> TopicName {
        self.topic(CHANGELOG_SUFFIX)
    }

    fn topic(&self, suffix: &str) -> TopicName {
        TopicName::new(format!("{}{suffix}", self.0).as_str()).expect("the name leaves room for the suffix")
    }
}

impl fmt::Display for ProcessorName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where a new processor begins to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    Earliest,
    Latest,
    /// In each partition.
    Offset(Offset),
    /// With the first record whose timestamp is this or later.
    Time(Timestamp),
}

/// How event time is cut into windows, as it was asked for: whether such windows can be is for those to say who run them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WindowSpec {
    #[serde(rename = "type")]
    pub kind: WindowKind,
    pub size_ms: i64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub advance_ms: Option<i64>,
    pub grace_ms: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WindowKind {
    Tumbling,
    Hopping,
}

/// When windows give results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EmitSpec {
    Update,
    Final,
}

/// A windowed processor. The name is the record's key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deployment {
    /// Counts what was deployed under the name, from 1.
    pub version: u64,
    #[serde(with = "text")]
    pub module: Digest,
    #[serde(with = "text")]
    pub input: TopicName,
    #[serde(with = "text")]
    pub from: From,
    #[serde(with = "text")]
    pub output: TopicName,
    pub window: WindowSpec,
    pub emit: EmitSpec,
    #[serde(default)]
    pub config: BTreeMap<String, String>,
    pub paused: bool,
}

/// The plugins that stand between a topic and those who read and write it by HTTP. The topic is the record's key.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TopicPlugins {
    /// Which topic of that name they were bound to: one that is made after it has none of them. `None` in a record that
    /// does not say: whichever has the name.
    #[serde(with = "optional_text", skip_serializing_if = "Option::is_none", default)]
    pub topic_id: Option<TopicId>,
    #[serde(with = "optional_text", skip_serializing_if = "Option::is_none", default)]
    pub key_serde: Option<Digest>,
    #[serde(with = "optional_text", skip_serializing_if = "Option::is_none", default)]
    pub value_serde: Option<Digest>,
    #[serde(with = "optional_text", skip_serializing_if = "Option::is_none", default)]
    pub partitioner: Option<Digest>,
    /// For all of them.
    #[serde(default)]
    pub config: BTreeMap<String, String>,
}

/// What ends a module's upload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleRecord {
    pub size_bytes: u64,
    pub pieces: u32,
}

/// What a record of [`PLUGINS_TOPIC`] speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PluginsKey {
    Module(Digest),
    Piece(Digest, u32),
}

/// What a record of [`DEPLOYMENTS_TOPIC`] speaks of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeploymentsKey {
    Processor(ProcessorName),
    Topic(TopicName),
}

/// A record of one of the two topics that this version cannot read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error("the key is not known to this version")]
    Key,
    #[error("the value cannot be read: {0}")]
    Value(#[from] serde_json::Error),
}

impl PluginsKey {
    #[must_use]
    pub fn encode(&self) -> Bytes {
        match self {
            PluginsKey::Module(digest) => Bytes::from(digest.to_string()),
            PluginsKey::Piece(digest, piece) => Bytes::from(format!("{digest}/{piece:06}")),
        }
    }

    /// # Errors
    /// If the key is none of this topic's.
    pub fn decode(key: &[u8]) -> Result<Self, RecordError> {
        let key = std::str::from_utf8(key).map_err(|_| RecordError::Key)?;
        let digest = |text: &str| text.parse().map_err(|_| RecordError::Key);
        match key.split_once('/') {
            None => Ok(PluginsKey::Module(digest(key)?)),
            Some((module, piece)) => {
                let piece = piece.parse().map_err(|_| RecordError::Key)?;
                Ok(PluginsKey::Piece(digest(module)?, piece))
            }
        }
    }
}

impl DeploymentsKey {
    #[must_use]
    pub fn encode(&self) -> Bytes {
        Bytes::from(match self {
            DeploymentsKey::Processor(name) => format!("processor/{name}"),
            DeploymentsKey::Topic(name) => format!("topic/{name}"),
        })
    }

    /// # Errors
    /// If the key is none of this topic's.
    pub fn decode(key: &[u8]) -> Result<Self, RecordError> {
        let key = std::str::from_utf8(key).map_err(|_| RecordError::Key)?;
        match key.split_once('/') {
            Some(("processor", name)) => {
                let name = ProcessorName::new(name).map_err(|_| RecordError::Key)?;
                Ok(DeploymentsKey::Processor(name))
            }
            Some(("topic", name)) => {
                let name = TopicName::new(name).map_err(|_| RecordError::Key)?;
                Ok(DeploymentsKey::Topic(name))
            }
            _ => Err(RecordError::Key),
        }
    }
}

/// The value of a record that is JSON.
#[must_use]
pub fn encode_value<T: Serialize>(value: &T) -> Bytes {
    Bytes::from(serde_json::to_vec(value).expect("these types have only text for names"))
}

/// # Errors
/// If the value is not what such a record has.
pub fn decode_value<T: for<'de> Deserialize<'de>>(value: &[u8]) -> Result<T, RecordError> {
    Ok(serde_json::from_slice(value)?)
}

/// The text is no place to begin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`from` is earliest, latest, offset:N or time:MS")]
pub struct FromError;

impl fmt::Display for From {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            From::Earliest => f.write_str("earliest"),
            From::Latest => f.write_str("latest"),
            From::Offset(offset) => write!(f, "offset:{}", offset.get()),
            From::Time(time) => write!(f, "time:{}", time.millis()),
        }
    }
}

impl std::str::FromStr for From {
    type Err = FromError;

    fn from_str(text: &str) -> Result<Self, FromError> {
        let number = |text: &str| text.parse::<i64>().map_err(|_| FromError);
        match text.split_once(':') {
            None if text == "earliest" => Ok(From::Earliest),
            None if text == "latest" => Ok(From::Latest),
            Some(("offset", offset)) => Ok(From::Offset(Offset::from_wire(number(offset)?).ok_or(FromError)?)),
            Some(("time", time)) => Ok(From::Time(Timestamp::from_wire(number(time)?).ok_or(FromError)?)),
            _ => Err(FromError),
        }
    }
}

/// Texts that stand for values of our own.
trait Worded: Sized {
    fn word(&self) -> String;
    fn read(text: &str) -> Result<Self, String>;
}

impl Worded for Digest {
    fn word(&self) -> String {
        self.to_string()
    }

    fn read(text: &str) -> Result<Self, String> {
        text.parse()
            .map_err(|error: crate::host::DigestError| error.to_string())
    }
}

impl Worded for TopicName {
    fn word(&self) -> String {
        self.as_str().to_owned()
    }

    fn read(text: &str) -> Result<Self, String> {
        TopicName::new(text).map_err(|error| error.to_string())
    }
}

impl Worded for TopicId {
    fn word(&self) -> String {
        self.to_string()
    }

    fn read(text: &str) -> Result<Self, String> {
        text.parse().map_err(|error: model::ids::UuidError| error.to_string())
    }
}

impl Worded for From {
    fn word(&self) -> String {
        self.to_string()
    }

    fn read(text: &str) -> Result<Self, String> {
        text.parse().map_err(|error: FromError| error.to_string())
    }
}

mod text {
    use super::{Deserialize, Deserializer, Serializer, Worded};

    pub(super) fn serialize<S: Serializer, T: Worded>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&value.word())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>, T: Worded>(deserializer: D) -> Result<T, D::Error> {
        let text = String::deserialize(deserializer)?;
        T::read(&text).map_err(serde::de::Error::custom)
    }
}

mod optional_text {
    use super::{Deserialize, Deserializer, Serializer, Worded};

    pub(super) fn serialize<S: Serializer, T: Worded>(value: &Option<T>, serializer: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => serializer.serialize_some(&value.word()),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>, T: Worded>(deserializer: D) -> Result<Option<T>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        let value = text.as_deref().map(T::read).transpose();
        value.map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment() -> Deployment {
        Deployment {
            version: 3,
            module: Digest::new([7; 32]),
            input: TopicName::new("flights").unwrap(),
            from: From::Offset(Offset::new(12)),
            output: TopicName::new("delays").unwrap(),
            window: WindowSpec {
                kind: WindowKind::Hopping,
                size_ms: 3_600_000,
                advance_ms: Some(900_000),
                grace_ms: 0,
            },
            emit: EmitSpec::Final,
            config: BTreeMap::from([("value_field".to_owned(), "delay".to_owned())]),
            paused: false,
        }
    }

    #[test]
    fn a_deployment_is_read_as_it_was_written() {
        let written = encode_value(&deployment());
        let text = std::str::from_utf8(&written).unwrap();
        assert!(
            text.contains(r#""window":{"type":"hopping","size_ms":3600000,"advance_ms":900000,"grace_ms":0}"#),
            "{text}"
        );
        assert!(text.contains(r#""from":"offset:12""#), "{text}");
        assert_eq!(decode_value::<Deployment>(&written).unwrap(), deployment());
        let bound = TopicPlugins {
            topic_id: Some(TopicId::from_bytes([5; 16])),
            value_serde: Some(Digest::new([9; 32])),
            ..TopicPlugins::default()
        };
        assert_eq!(decode_value::<TopicPlugins>(&encode_value(&bound)).unwrap(), bound);
        for bad in [
            "",
            "{}",
            "null",
            &text.replace("offset:12", "offset:-1"),
            &text.replace("flights", "a/b"),
        ] {
            assert!(decode_value::<Deployment>(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn keys_are_read_as_they_were_written() {
        let digest = Digest::new([0xab; 32]);
        for key in [PluginsKey::Module(digest), PluginsKey::Piece(digest, 17)] {
            assert_eq!(PluginsKey::decode(&key.encode()).unwrap(), key);
        }
        let name = ProcessorName::new("delays.by-origin_1").unwrap();
        for key in [
            DeploymentsKey::Processor(name.clone()),
            DeploymentsKey::Topic(name.changelog_topic()),
        ] {
            assert_eq!(DeploymentsKey::decode(&key.encode()).unwrap(), key);
        }
        for bad in ["", "x", "processor/", "processor/a/b", "topic/", "else/a"] {
            assert!(DeploymentsKey::decode(bad.as_bytes()).is_err(), "{bad}");
            assert!(PluginsKey::decode(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_name_leaves_room_for_the_topics_that_are_named_after_it() {
        let longest = "x".repeat(NAME_LENGTH_MAX);
        assert_eq!(
            ProcessorName::new(longest.clone())
                .unwrap()
                .dead_letter_topic()
                .as_str()
                .len(),
            NAME_LENGTH_MAX + 12
        );
        for bad in [
            String::new(),
            longest + "x",
            "a b".into(),
            ".".into(),
            "..".into(),
            "__a".into(),
            "ä".into(),
        ] {
            assert_eq!(ProcessorName::new(bad.clone()), Err(ProcessorNameError), "{bad}");
        }
    }
}
