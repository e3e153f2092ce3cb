//! Numbers of fixed width, ids and varints: the part of the wire that has no versions.

use bytes::BufMut as _;
use model::Uuid;

use crate::{DecodeError, Reader};

/// The longest string that the wire can hold, in every version.
pub(crate) const STRING_BYTES_MAX: usize = i16::MAX as usize;
/// The longest array that Kafka 4.4.0 reads.
pub(crate) const ARRAY_LENGTH_MAX: usize = 1_000_000;
/// The most tagged fields of one struct that Kafka 4.4.0 reads.
pub(crate) const TAGGED_FIELDS_MAX: usize = 10_000;

/// A value whose size does not depend on version or content, and which therefore can be an array's element.
pub(crate) trait Fixed: Sized {
    const BYTES: usize;
    fn read(reader: &mut Reader, field: &'static str) -> Result<Self, DecodeError>;
    fn write(&self, buffer: &mut Vec<u8>);
}

macro_rules! numbers {
    ($($type:ty)*) => {$(
        impl Fixed for $type {
            const BYTES: usize = size_of::<$type>();

            fn read(reader: &mut Reader, field: &'static str) -> Result<Self, DecodeError> {
                Ok(<$type>::from_be_bytes(reader.array_of_bytes(field)?))
            }

            fn write(&self, buffer: &mut Vec<u8>) {
                buffer.put_slice(&self.to_be_bytes());
            }
        }
    )*};
}

numbers!(i8 i16 i32 i64 u16 u32 f64);

impl Fixed for bool {
    const BYTES: usize = 1;

    fn read(reader: &mut Reader, field: &'static str) -> Result<Self, DecodeError> {
        let [byte] = reader.array_of_bytes(field)?;
        Ok(byte != 0)
    }

    fn write(&self, buffer: &mut Vec<u8>) {
        buffer.push(u8::from(*self));
    }
}

impl Fixed for Uuid {
    const BYTES: usize = 16;

    fn read(reader: &mut Reader, field: &'static str) -> Result<Self, DecodeError> {
        Ok(Uuid::from_bytes(reader.array_of_bytes(field)?))
    }

    fn write(&self, buffer: &mut Vec<u8>) {
        buffer.put_slice(self.as_bytes());
    }
}

/// Seven bits a byte, the lowest first; the high bit says that more follow.
pub(crate) fn put_unsigned_varint(buffer: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        buffer.push(value as u8 | 0x80);
        value >>= 7;
    }
    buffer.push(value as u8);
}
