//! Where the lengths and counts of an encoded message are, for tests that put hostile values there.
//!
//! Decode with [`crate::Reader::traced`], then read [`crate::Reader::trace`]: it lists each length field in the order read.

/// What a length field counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LengthKind {
    String,
    Bytes,
    Array,
    TaggedFieldCount,
    TaggedFieldSize,
}

/// How a length field is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LengthEncoding {
    /// Big-endian, -1 for null.
    Int16,
    /// Big-endian, -1 for null.
    Int32,
    /// Unsigned varint of the length plus one, 0 for null.
    CompactVarint,
    /// Unsigned varint of the length itself.
    Varint,
}

/// A length or count within an encoded message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LengthField {
    /// Of the first byte, from the start of what the reader was given.
    pub position: usize,
    /// Bytes that the length field itself takes.
    pub width: usize,
    pub kind: LengthKind,
    pub encoding: LengthEncoding,
    /// The length or count found there; `None` for null.
    pub value: Option<usize>,
    /// Message and field that it belongs to.
    pub field: &'static str,
}
