//! What can be wrong with bytes that are read, and with a message that is written.

/// Bytes that are not the message they were taken for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} at byte {position}: {problem}")]
pub struct DecodeError {
    /// Message and field, as `FetchRequest.Topics.Partitions.FetchOffset`.
    pub field: &'static str,
    /// Where in the frame the field's bytes begin.
    pub position: usize,
    pub problem: DecodeProblem,
}

/// Why a field could not be read. Sizes are in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeProblem {
    #[error("{needed} bytes needed, {remaining} left")]
    EndOfBytes { needed: usize, remaining: usize },
    #[error("length {0} is negative")]
    NegativeLength(i64),
    #[error("length {length} is above the limit of {limit}")]
    TooLong { length: usize, limit: usize },
    #[error("{count} elements cannot be in {remaining} bytes")]
    CountBeyondEnd { count: usize, remaining: usize },
    #[error("null where this version has no null")]
    Null,
    #[error("not UTF-8")]
    NotUtf8,
    #[error("varint longer than {0} bits")]
    VarintTooLong(u8),
    #[error("tagged field {tag} ends {left} bytes before its size")]
    TaggedFieldTooShort { tag: u32, left: usize },
    #[error("version {0} does not exist")]
    UnknownVersion(i64),
    #[error("type {0} does not exist")]
    UnknownType(i64),
    #[error("{0} bytes left over")]
    TrailingBytes(usize),
    #[error("the message would take more than {0} bytes of memory")]
    AllocationLimit(usize),
}

/// A message that cannot be written in the version asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    #[error("{message} has no version {version}")]
    UnknownVersion { message: &'static str, version: i16 },
    #[error("{field} is set, but version {version} does not have it")]
    NotInVersion { field: &'static str, version: i16 },
    #[error("{field} is null, which version {version} does not allow")]
    Null { field: &'static str, version: i16 },
    #[error("{field} has length {length}, above the limit of {limit}")]
    TooLong {
        field: &'static str,
        length: usize,
        limit: usize,
    },
}
