//! Reads a message out of a frame.
//!
//! Every length is checked against the bytes that are left before anything is done with it, and what decoding allocates
//! is counted: a frame of small hostile elements cannot grow to many times its size.

use bytes::Bytes;
use model::Uuid;

use crate::primitives::{ARRAY_LENGTH_MAX, Fixed, STRING_BYTES_MAX, TAGGED_FIELDS_MAX};
use crate::schema::{LengthEncoding, LengthField, LengthKind};
use crate::tagged_fields::UnknownTaggedField;
use crate::{DecodeError, DecodeProblem, Text, UnknownTaggedFields};

/// A message takes at most this much memory plus [`ALLOCATION_FACTOR`] times its frame.
const ALLOCATION_BASE_BYTES: usize = 1 << 20;
/// Honest messages stay below: names and ids are as large on the wire as in memory.
const ALLOCATION_FACTOR: usize = 16;
/// What a shared string takes beside its characters.
const TEXT_OVERHEAD_BYTES: usize = 16;
/// Tag and size of an empty tagged field.
const TAGGED_FIELD_BYTES_MIN: usize = 2;

/// The bytes of one frame and how far they have been read. Byte fields share the frame's memory.
pub struct Reader {
    bytes: Bytes,
    position: usize,
    end: usize,
    allocated: usize,
    allocation_limit: usize,
    trace: Option<Vec<LengthField>>,
}

impl Reader {
    #[must_use]
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        let end = bytes.len();
        let allocation_limit = ALLOCATION_BASE_BYTES.saturating_add(ALLOCATION_FACTOR.saturating_mul(end));
        Reader {
            bytes,
            position: 0,
            end,
            allocated: 0,
            allocation_limit,
            trace: None,
        }
    }

    /// A reader that remembers each length field it reads.
    #[must_use]
    pub fn traced(bytes: impl Into<Bytes>) -> Self {
        Reader {
            trace: Some(Vec::new()),
            ..Reader::new(bytes)
        }
    }

    /// The length fields read so far; empty unless the reader is traced.
    #[must_use]
    pub fn trace(&self) -> &[LengthField] {
        self.trace.as_deref().unwrap_or_default()
    }

    #[must_use]
    pub fn position(&self) -> usize {
        self.position
    }

    #[must_use]
    pub fn remaining(&self) -> usize {
        self.end - self.position
    }

    /// All that is left, as one shared slice; the reader is then at its end.
    pub fn rest(&mut self) -> Bytes {
        let rest = self.bytes.slice(self.position..self.end);
        self.position = self.end;
        rest
    }

    /// Refuses bytes behind the message. Log records must end here; for requests Kafka does not ask.
    pub fn finish(&self, message: &'static str) -> Result<(), DecodeError> {
        match self.remaining() {
            0 => Ok(()),
            left => Err(self.error(message, DecodeProblem::TrailingBytes(left))),
        }
    }

    /// Bytes of memory that decoding may allocate; byte fields count nothing, since they share the frame.
    #[must_use]
    pub fn allocation_limit(&self) -> usize {
        self.allocation_limit
    }

    /// Bytes of memory that decoding has allocated or reserved so far, at least.
    #[must_use]
    pub fn allocated(&self) -> usize {
        self.allocated
    }

    pub(crate) fn error(&self, field: &'static str, problem: DecodeProblem) -> DecodeError {
        DecodeError {
            field,
            position: self.position,
            problem,
        }
    }

    fn allocate(&mut self, bytes: usize, field: &'static str) -> Result<(), DecodeError> {
        self.allocated = self.allocated.saturating_add(bytes);
        if self.allocated > self.allocation_limit {
            return Err(self.error(field, DecodeProblem::AllocationLimit(self.allocation_limit)));
        }
        Ok(())
    }

    /// Moves over `count` bytes and gives where they are.
    fn take(&mut self, count: usize, field: &'static str) -> Result<std::ops::Range<usize>, DecodeError> {
        let remaining = self.remaining();
        if count > remaining {
            return Err(self.error(
                field,
                DecodeProblem::EndOfBytes {
                    needed: count,
                    remaining,
                },
            ));
        }
        let start = self.position;
        self.position += count;
        Ok(start..self.position)
    }

    pub(crate) fn array_of_bytes<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], DecodeError> {
        let range = self.take(N, field)?;
        let mut bytes = [0; N];
        bytes.copy_from_slice(&self.bytes[range]);
        Ok(bytes)
    }
}

/// A look ahead.
impl Reader {
    /// The next two big-endian int16, which stay unread.
    pub(crate) fn peek_i16_pair(&mut self, field: &'static str) -> Result<(i16, i16), DecodeError> {
        let start = self.position;
        let pair = (self.i16(field)?, self.i16(field)?);
        self.position = start;
        Ok(pair)
    }
}

/// Numbers and ids. `field` names what is read, for the error.
impl Reader {
    pub fn bool(&mut self, field: &'static str) -> Result<bool, DecodeError> {
        Fixed::read(self, field)
    }

    pub fn i8(&mut self, field: &'static str) -> Result<i8, DecodeError> {
        Fixed::read(self, field)
    }

    pub fn i16(&mut self, field: &'static str) -> Result<i16, DecodeError> {
        Fixed::read(self, field)
    }

    pub fn u16(&mut self, field: &'static str) -> Result<u16, DecodeError> {
        Fixed::read(self, field)
    }

    pub fn i32(&mut self, field: &'static str) -> Result<i32, DecodeError> {
        Fixed::read(self, field)
    }

    pub fn u32(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        Fixed::read(self, field)
    }

    pub fn i64(&mut self, field: &'static str) -> Result<i64, DecodeError> {
        Fixed::read(self, field)
    }

    pub fn f64(&mut self, field: &'static str) -> Result<f64, DecodeError> {
        Fixed::read(self, field)
    }

    pub fn uuid(&mut self, field: &'static str) -> Result<Uuid, DecodeError> {
        Fixed::read(self, field)
    }

    /// At most five bytes and 32 bits.
    pub fn unsigned_varint(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        let start = self.position;
        let mut value = 0u32;
        for shift in [0, 7, 14, 21, 28] {
            let [byte] = self.array_of_bytes(field)?;
            if shift == 28 && byte > 0x0f {
                break;
            }
            value |= u32::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(DecodeError {
            field,
            position: start,
            problem: DecodeProblem::VarintTooLong(32),
        })
    }
}

/// Strings, bytes and arrays. `flexible` says whether their lengths are compact (KIP-482).
impl Reader {
    pub fn text(&mut self, flexible: bool, field: &'static str) -> Result<Text, DecodeError> {
        self.nullable_text(flexible, field)?
            .ok_or_else(|| self.error(field, DecodeProblem::Null))
    }

    pub fn nullable_text(&mut self, flexible: bool, field: &'static str) -> Result<Option<Text>, DecodeError> {
        let encoding = if flexible {
            LengthEncoding::CompactVarint
        } else {
            LengthEncoding::Int16
        };
        let Some(length) = self.length(LengthKind::String, encoding, field)? else {
            return Ok(None);
        };
        if length > STRING_BYTES_MAX {
            return Err(self.error(
                field,
                DecodeProblem::TooLong {
                    length,
                    limit: STRING_BYTES_MAX,
                },
            ));
        }
        let range = self.take(length, field)?;
        self.allocate(TEXT_OVERHEAD_BYTES + length, field)?;
        match str::from_utf8(&self.bytes[range]) {
            Ok(text) => Ok(Some(Text::from(text))),
            Err(_) => Err(self.error(field, DecodeProblem::NotUtf8)),
        }
    }

    pub fn bytes(&mut self, flexible: bool, field: &'static str) -> Result<Bytes, DecodeError> {
        self.nullable_bytes(flexible, field)?
            .ok_or_else(|| self.error(field, DecodeProblem::Null))
    }

    pub fn nullable_bytes(&mut self, flexible: bool, field: &'static str) -> Result<Option<Bytes>, DecodeError> {
        let encoding = if flexible {
            LengthEncoding::CompactVarint
        } else {
            LengthEncoding::Int32
        };
        let Some(length) = self.length(LengthKind::Bytes, encoding, field)? else {
            return Ok(None);
        };
        let range = self.take(length, field)?;
        Ok(Some(self.bytes.slice(range)))
    }

    /// The number of elements that follow, each of at least `element_bytes_min` (1 or more); `None` for null.
    pub fn array_count(
        &mut self,
        flexible: bool,
        element_bytes_min: usize,
        field: &'static str,
    ) -> Result<Option<usize>, DecodeError> {
        let encoding = if flexible {
            LengthEncoding::CompactVarint
        } else {
            LengthEncoding::Int32
        };
        let count = self.length(LengthKind::Array, encoding, field)?;
        if let Some(count) = count {
            self.check_count(count, element_bytes_min, ARRAY_LENGTH_MAX, field)?;
        }
        Ok(count)
    }

    fn check_count(
        &self,
        count: usize,
        element_bytes_min: usize,
        limit: usize,
        field: &'static str,
    ) -> Result<(), DecodeError> {
        let remaining = self.remaining();
        if count > remaining / element_bytes_min.max(1) {
            return Err(self.error(field, DecodeProblem::CountBeyondEnd { count, remaining }));
        }
        if count > limit {
            return Err(self.error(field, DecodeProblem::TooLong { length: count, limit }));
        }
        Ok(())
    }

    /// Room for `count` elements, of which no more is reserved than the bytes left could fill.
    fn vec<T>(&mut self, count: usize, field: &'static str) -> Result<Vec<T>, DecodeError> {
        let element_bytes = size_of::<T>().max(1);
        self.allocate(count.saturating_mul(element_bytes), field)?;
        Ok(Vec::with_capacity(count.min(self.remaining() / element_bytes + 1)))
    }

    pub(crate) fn structs<T>(
        &mut self,
        flexible: bool,
        element_bytes_min: usize,
        version: i16,
        field: &'static str,
        read: fn(&mut Reader, i16) -> Result<T, DecodeError>,
    ) -> Result<Option<Vec<T>>, DecodeError> {
        let Some(count) = self.array_count(flexible, element_bytes_min, field)? else {
            return Ok(None);
        };
        let mut elements = self.vec(count, field)?;
        for _ in 0..count {
            elements.push(read(self, version)?);
        }
        Ok(Some(elements))
    }

    pub(crate) fn fixed<T: Fixed>(
        &mut self,
        flexible: bool,
        field: &'static str,
    ) -> Result<Option<Vec<T>>, DecodeError> {
        let Some(count) = self.array_count(flexible, T::BYTES, field)? else {
            return Ok(None);
        };
        let mut elements = self.vec(count, field)?;
        for _ in 0..count {
            elements.push(T::read(self, field)?);
        }
        Ok(Some(elements))
    }

    pub(crate) fn texts(&mut self, flexible: bool, field: &'static str) -> Result<Option<Vec<Text>>, DecodeError> {
        let length_bytes = if flexible { 1 } else { 2 };
        let Some(count) = self.array_count(flexible, length_bytes, field)? else {
            return Ok(None);
        };
        let mut elements = self.vec(count, field)?;
        for _ in 0..count {
            elements.push(self.text(flexible, field)?);
        }
        Ok(Some(elements))
    }

    /// Refuses the null of an array whose field or version has none.
    pub(crate) fn present<T>(&self, value: Option<T>, field: &'static str) -> Result<T, DecodeError> {
        value.ok_or_else(|| self.error(field, DecodeProblem::Null))
    }

    /// Whether a nullable struct follows.
    pub(crate) fn struct_follows(&mut self, field: &'static str) -> Result<bool, DecodeError> {
        Ok(self.i8(field)? >= 0)
    }

    /// Reads a length and notes it, but does not compare it with what is left.
    fn length(
        &mut self,
        kind: LengthKind,
        encoding: LengthEncoding,
        field: &'static str,
    ) -> Result<Option<usize>, DecodeError> {
        let position = self.position;
        let value = match encoding {
            LengthEncoding::Int16 => i64::from(self.i16(field)?),
            LengthEncoding::Int32 => i64::from(self.i32(field)?),
            LengthEncoding::CompactVarint => i64::from(self.unsigned_varint(field)?) - 1,
            LengthEncoding::Varint => i64::from(self.unsigned_varint(field)?),
        };
        if value < -1 {
            return Err(DecodeError {
                field,
                position,
                problem: DecodeProblem::NegativeLength(value),
            });
        }
        let value = usize::try_from(value).ok();
        if let Some(trace) = &mut self.trace {
            trace.push(LengthField {
                position,
                width: self.position - position,
                kind,
                encoding,
                value,
                field,
            });
        }
        Ok(value)
    }
}

/// Tagged fields. While one is read, the reader ends where the field ends.
impl Reader {
    pub(crate) fn tag_count(&mut self, field: &'static str) -> Result<usize, DecodeError> {
        let count = self
            .length(LengthKind::TaggedFieldCount, LengthEncoding::Varint, field)?
            .unwrap_or_default();
        self.check_count(count, TAGGED_FIELD_BYTES_MIN, TAGGED_FIELDS_MAX, field)?;
        Ok(count)
    }

    /// Enters the next tagged field: its tag, and where the reader ended before.
    pub(crate) fn enter_tag(&mut self, field: &'static str) -> Result<(u32, usize), DecodeError> {
        let tag = self.unsigned_varint(field)?;
        let size = self
            .length(LengthKind::TaggedFieldSize, LengthEncoding::Varint, field)?
            .unwrap_or_default();
        let remaining = self.remaining();
        if size > remaining {
            return Err(self.error(
                field,
                DecodeProblem::EndOfBytes {
                    needed: size,
                    remaining,
                },
            ));
        }
        let outer_end = self.end;
        self.end = self.position + size;
        Ok((tag, outer_end))
    }

    pub(crate) fn leave_tag(&mut self, tag: u32, outer_end: usize, field: &'static str) -> Result<(), DecodeError> {
        let left = self.remaining();
        if left > 0 {
            return Err(self.error(field, DecodeProblem::TaggedFieldTooShort { tag, left }));
        }
        self.end = outer_end;
        Ok(())
    }

    pub(crate) fn keep_unknown_tag(
        &mut self,
        tag: u32,
        unknown: &mut UnknownTaggedFields,
        field: &'static str,
    ) -> Result<(), DecodeError> {
        self.allocate(size_of::<UnknownTaggedField>(), field)?;
        let value = self.rest();
        unknown.append(tag, value);
        Ok(())
    }

    /// The tagged fields of a struct that knows none.
    pub(crate) fn unknown_tags(
        &mut self,
        unknown: &mut UnknownTaggedFields,
        field: &'static str,
    ) -> Result<(), DecodeError> {
        for _ in 0..self.tag_count(field)? {
            let (tag, outer_end) = self.enter_tag(field)?;
            self.keep_unknown_tag(tag, unknown, field)?;
            self.leave_tag(tag, outer_end, field)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
