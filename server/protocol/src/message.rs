//! What all messages have in common.

use std::ops::RangeInclusive;

use crate::{DecodeError, DecodeProblem, EncodeError, Reader, Writer};

/// A message or log record with a schema. The bytes are the bare message: no header, frame or prefix.
pub trait Message: Sized + Default {
    /// Kafka's name, as `FetchRequest`.
    const NAME: &'static str;
    const FIRST_VERSION: i16;
    const LAST_VERSION: i16;
    /// The first version with compact lengths and tagged fields (KIP-482), if there is one.
    const FIRST_FLEXIBLE_VERSION: Option<i16>;

    /// Reads one message; bytes may follow it ([`Reader::finish`] refuses them).
    fn decode(reader: &mut Reader, version: i16) -> Result<Self, DecodeError>;

    /// Fields that `version` lacks are dropped if the schema calls them ignorable, and refused otherwise when they are
    /// set. What was written before an error is undefined.
    fn encode(&self, writer: &mut Writer, version: i16) -> Result<(), EncodeError>;

    #[must_use]
    fn versions() -> RangeInclusive<i16> {
        Self::FIRST_VERSION..=Self::LAST_VERSION
    }
}

/// Called by generated code before reading.
pub(crate) fn check_decode<M: Message>(reader: &Reader, version: i16) -> Result<(), DecodeError> {
    if M::versions().contains(&version) {
        Ok(())
    } else {
        Err(reader.error(M::NAME, DecodeProblem::UnknownVersion(version.into())))
    }
}

/// Called by generated code before writing.
pub(crate) fn check_encode<M: Message>(version: i16) -> Result<(), EncodeError> {
    if M::versions().contains(&version) {
        Ok(())
    } else {
        Err(EncodeError::UnknownVersion {
            message: M::NAME,
            version,
        })
    }
}
