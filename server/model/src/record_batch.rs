//! Record batches, format version 2 (KIP-98): the one form in which records travel and rest.
//!
//! ```text
//!  0 base offset            i64   ┐ what a broker may change without touching the checksum
//!  8 batch length           i32   │ (counts from byte 12)
//! 12 partition leader epoch i32   │
//! 16 magic                  i8    │ 2
//! 17 checksum               u32   ┘ CRC-32C of everything from byte 21 on
//! 21 attributes             i16     compression 0..2, append time 3, transactional 4, control 5, delete horizon 6
//! 23 last offset delta      i32
//! 27 base timestamp         i64
//! 35 max timestamp          i64
//! 43 producer id            i64
//! 51 producer epoch         i16
//! 53 base sequence          i32
//! 57 record count           i32
//! 61 records, compressed as one block
//! ```
//!
//! Every byte may come from a stranger: whatever is read here yields a value or a [`BatchError`], never a panic, and
//! allocates no more than the bytes at hand or the caller's [`DecompressionLimit`] justify.

mod builder;
mod compression;
mod header;
mod reader;
mod varint;

pub use builder::{BatchBuilder, BatchOptions, BatchProducer};
pub use compression::{Compression, DecompressionLimit, Decompressor, compress, decompress};
pub use header::{
    Attributes, BASE_OFFSET_AT, Batch, BatchHeader, BatchMut, Batches, CHECKSUMMED_FROM, HEADER_BYTES,
    LENGTH_PREFIX_BYTES, MAGIC, TimestampType,
};
pub use reader::{
    ControlType, HeaderView, Headers, KEYLESS_LISTED_MAX, Record, RecordHeader, RecordReader, RecordView, Records,
    Walk, keyless_records, records, walk,
};

/// Why bytes are no record batch of version 2.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    #[error("a batch needs {needed} bytes, {available} are there")]
    Truncated { needed: usize, available: usize },
    #[error("batch format version {0} is not 2")]
    Magic(i8),
    #[error("batch length {0} is less than a header")]
    Length(i32),
    #[error("checksum is {computed:#010x}, the header says {stored:#010x}")]
    Checksum { stored: u32, computed: u32 },
    #[error("base offset {0} is negative")]
    BaseOffset(i64),
    #[error("last offset delta {0} is negative")]
    LastOffsetDelta(i32),
    #[error("offsets of the batch pass 2^63 - 1")]
    OffsetOverflow,
    #[error("record count {0} is negative")]
    RecordCount(i32),
    #[error("compression code {0} is not known")]
    UnknownCompression(u8),
    #[error("record {index} is malformed: {what}")]
    Record { index: i32, what: &'static str },
    #[error("bytes follow the last of {0} records")]
    TrailingBytes(i32),
    #[error("compressed records cannot be read: {0}")]
    Compressed(String),
    #[error("records are larger than {limit} bytes when decompressed")]
    DecompressedTooLarge { limit: usize },
    #[error("a batch cannot hold this record: {0}")]
    Unbuildable(&'static str),
}

#[cfg(test)]
mod tests;
