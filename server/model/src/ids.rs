//! Names and numbers that identify things: brokers, topics, partitions, producers, groups, directories.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident, $int:ty) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name($int);

        impl $name {
            /// # Panics
            /// If `value` is negative: sentinels of the wire must have become an `Option` before.
            #[must_use]
            #[inline]
            pub const fn new(value: $int) -> Self {
                assert!(value >= 0, "an id is not negative");
                $name(value)
            }

            /// `None` for the negative sentinels of the wire.
            #[must_use]
            #[inline]
            pub const fn from_wire(value: $int) -> Option<Self> {
                if value < 0 { None } else { Some($name(value)) }
            }

            #[must_use]
            #[inline]
            pub const fn get(self) -> $int {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number!(
    /// A node of the cluster, broker or controller (`node.id`).
    BrokerId, i32
);
number!(
    /// A partition's number within its topic, from 0.
    PartitionIndex, i32
);
number!(
    /// A producer, as InitProducerId gave it out (KIP-98).
    ProducerId, i64
);

/// 16 bytes, written as Kafka writes them: URL-safe base64 without padding, 22 characters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Uuid([u8; 16]);

/// A topic's identity, kept when nothing else is: a topic that is deleted and created again has another one (KIP-516).
pub type TopicId = Uuid;
/// The identity of a log directory; reserved values are [`Uuid::is_reserved`] (KIP-858).
pub type DirectoryId = Uuid;

const BASE64_URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

impl Uuid {
    /// All zeroes: "none" for topic ids, MIGRATING for directories.
    pub const ZERO: Uuid = Uuid([0; 16]);
    /// The topic `__cluster_metadata`, and the directory id UNASSIGNED.
    pub const ONE: Uuid = Uuid([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);

    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Uuid(bytes)
    }

    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    #[must_use]
    pub fn is_zero(&self) -> bool {
        *self == Uuid::ZERO
    }

    /// Whether the value lies in the range that Kafka keeps for special directories: high half 0, low half below 100.
    #[must_use]
    pub fn is_reserved(&self) -> bool {
        self.0[..15].iter().all(|byte| *byte == 0) && self.0[15] < 100
    }

    /// The first value of `entropy` that is fit for a new id: not reserved, and its text does not begin with `-` (which
    /// command lines would take for an option). `None` if none of the values is.
    pub fn from_entropy(entropy: impl IntoIterator<Item = [u8; 16]>) -> Option<Self> {
        entropy
            .into_iter()
            .map(Uuid)
            .find(|id| !id.is_reserved() && !id.to_string().starts_with('-'))
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(22);
        for chunk in self.0.chunks(3) {
            let bits = chunk
                .iter()
                .enumerate()
                .fold(0u32, |bits, (i, byte)| bits | u32::from(*byte) << (16 - 8 * i));
            for place in 0..=chunk.len() {
                let index = (bits >> (18 - 6 * place)) & 63;
                text.push(char::from(BASE64_URL[index as usize]));
            }
        }
        f.write_str(&text)
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is not the 22 characters of a Kafka UUID.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a UUID of 22 URL-safe base64 characters")]
pub struct UuidError(String);

impl FromStr for Uuid {
    type Err = UuidError;

    fn from_str(text: &str) -> Result<Self, UuidError> {
        let error = || UuidError(text.chars().take(64).collect());
        if text.len() != 22 {
            return Err(error());
        }
        let mut bytes = [0u8; 16];
        let (mut bits, mut count, mut at) = (0u32, 0, 0);
        for character in text.bytes() {
            let value = BASE64_URL
                .iter()
                .position(|known| *known == character)
                .ok_or_else(error)?;
            bits = bits << 6 | u32::try_from(value).map_err(|_| error())?;
            count += 6;
            if count >= 8 && at < 16 {
                count -= 8;
                bytes[at] = u8::try_from(bits >> count & 0xff).map_err(|_| error())?;
                at += 1;
            }
        }
        Ok(Uuid(bytes))
    }
}

/// A topic's name, checked: 1 to 249 characters of `[a-zA-Z0-9._-]`, not `.` or `..`. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicName(Arc<str>);

/// Why a text is no topic name; the wording follows Kafka's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TopicNameError {
    #[error("topic name is empty")]
    Empty,
    #[error("topic name cannot be \".\" or \"..\"")]
    Dots,
    #[error("topic name is {0} characters long, the greatest length is 249")]
    TooLong(usize),
    #[error("topic name {0:?} has a character other than ASCII letters, digits, '.', '_' and '-'")]
    Character(String),
}

impl TopicName {
    pub const LENGTH_MAX: usize = 249;

    /// # Errors
    /// If `name` breaks one of the rules above.
    pub fn new(name: &str) -> Result<Self, TopicNameError> {
        match name {
            "" => Err(TopicNameError::Empty),
            "." | ".." => Err(TopicNameError::Dots),
            _ if name.len() > Self::LENGTH_MAX => Err(TopicNameError::TooLong(name.len())),
            _ if name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte)) =>
            {
                Ok(TopicName(name.into()))
            }
            _ => Err(TopicNameError::Character(name.to_owned())),
        }
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name with `.` and `_` made equal: two topics with equal forms would share metric names, so Kafka refuses the
    /// second.
    #[must_use]
    pub fn collision_form(&self) -> String {
        self.0.replace('.', "_")
    }
}

impl AsRef<str> for TopicName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl std::borrow::Borrow<str> for TopicName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TopicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for TopicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One partition of one topic; shown as its folder is named, `first-0`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TopicPartition {
    pub topic: TopicName,
    pub partition: PartitionIndex,
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

/// A consumer group's name: any text but the empty one, which older clients send to say "no group".
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(Arc<str>);

impl GroupId {
    /// `None` for the empty text.
    #[must_use]
    pub fn new(id: &str) -> Option<Self> {
        if id.is_empty() { None } else { Some(GroupId(id.into())) }
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::borrow::Borrow<str> for GroupId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_metadata_topic_has_the_id_that_kafka_prints() {
        assert_eq!(Uuid::ONE.to_string(), "AAAAAAAAAAAAAAAAAAAAAQ");
        assert_eq!("AAAAAAAAAAAAAAAAAAAAAQ".parse(), Ok(Uuid::ONE));
    }

    #[test]
    fn reserved_directories_are_never_drawn() {
        let drawn = Uuid::from_entropy([[0; 16], *Uuid::ONE.as_bytes(), [0xf8; 16], [7; 16]]);
        assert_eq!(drawn, Some(Uuid::from_bytes([7; 16])));
    }

    #[test]
    fn topic_names_follow_kafkas_rules() {
        for good in ["a", "a.b_c-d", "__consumer_offsets", &"x".repeat(249), "..."] {
            assert!(TopicName::new(good).is_ok(), "{good}");
        }
        for bad in ["", ".", "..", "a/b", "../x", "a b", "ä", "a\0", &"x".repeat(250)] {
            assert!(TopicName::new(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn a_uuid_survives_its_text(bytes: [u8; 16]) {
            let id = Uuid::from_bytes(bytes);
            prop_assert_eq!(id.to_string().parse(), Ok(id));
        }

        #[test]
        fn any_text_is_parsed_or_refused(text: String) {
            let _ = text.parse::<Uuid>();
        }
    }
}
