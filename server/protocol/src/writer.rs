//! Writes a message as a list of segments: large byte fields are not copied but become segments of their own.

use bytes::Bytes;

use crate::primitives::{Fixed, STRING_BYTES_MAX, put_unsigned_varint};
use crate::{EncodeError, Text};

/// Byte fields from this size on are segments of their own; below, a copy costs less than another segment.
const SEGMENT_BYTES_MIN: usize = 4096;
/// The longest length that the wire can hold: compact lengths are one more, and read by Kafka as an int32.
const LENGTH_MAX: usize = i32::MAX as usize - 1;

/// What has been written so far.
#[derive(Default)]
pub struct Writer {
    buffer: Vec<u8>,
    /// Segments from elsewhere, each with the place in `buffer` before which it stands.
    inserted: Vec<(usize, Bytes)>,
    inserted_bytes: usize,
}

impl Writer {
    #[must_use]
    pub const fn new() -> Self {
        Writer {
            buffer: Vec::new(),
            inserted: Vec::new(),
            inserted_bytes: 0,
        }
    }

    /// A writer with room for `bytes`, not counting the byte fields that are not copied.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        Writer {
            buffer: Vec::with_capacity(bytes),
            ..Writer::new()
        }
    }

    /// Bytes written, those that were not copied included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.buffer.len() + self.inserted_bytes
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The segments in order, none empty.
    #[must_use]
    pub fn finish(self) -> Vec<Bytes> {
        let mut segments = Vec::with_capacity(2 * self.inserted.len() + 1);
        let mut rest = Bytes::from(self.buffer);
        let mut taken = 0;
        for (at, segment) in self.inserted {
            if at > taken {
                segments.push(rest.split_to(at - taken));
                taken = at;
            }
            segments.push(segment);
        }
        if !rest.is_empty() {
            segments.push(rest);
        }
        segments
    }

    /// All segments as one, which copies if there are several.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        let length = self.len();
        let mut segments = self.finish();
        if segments.len() <= 1 {
            return segments.pop().unwrap_or_default();
        }
        let mut whole = Vec::with_capacity(length);
        segments.iter().for_each(|segment| whole.extend_from_slice(segment));
        whole.into()
    }

    /// Bytes without a length before them.
    pub fn raw(&mut self, bytes: &Bytes) {
        if bytes.len() < SEGMENT_BYTES_MIN {
            self.buffer.extend_from_slice(bytes);
        } else {
            self.inserted_bytes += bytes.len();
            self.inserted.push((self.buffer.len(), bytes.clone()));
        }
    }

    pub fn i8(&mut self, value: i8) {
        value.write(&mut self.buffer);
    }

    pub fn i16(&mut self, value: i16) {
        value.write(&mut self.buffer);
    }

    pub fn i32(&mut self, value: i32) {
        value.write(&mut self.buffer);
    }

    pub fn i64(&mut self, value: i64) {
        value.write(&mut self.buffer);
    }

    pub fn unsigned_varint(&mut self, value: u32) {
        put_unsigned_varint(&mut self.buffer, value);
    }

    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// All that `other` has written, behind what `self` has.
    pub(crate) fn append(&mut self, other: Writer) {
        let offset = self.buffer.len();
        self.buffer.extend_from_slice(&other.buffer);
        self.inserted_bytes += other.inserted_bytes;
        self.inserted
            .extend(other.inserted.into_iter().map(|(at, segment)| (offset + at, segment)));
    }
}

/// Called by generated code. `flexible` says whether lengths are compact (KIP-482).
impl Writer {
    pub(crate) fn fixed(&mut self, value: &impl Fixed) {
        value.write(&mut self.buffer);
    }

    pub(crate) fn text(&mut self, value: &Text, flexible: bool, field: &'static str) -> Result<(), EncodeError> {
        check_length(value.len(), STRING_BYTES_MAX, field)?;
        if flexible {
            put_unsigned_varint(&mut self.buffer, value.len() as u32 + 1);
        } else {
            self.i16(value.len() as i16);
        }
        self.buffer.extend_from_slice(value.as_bytes());
        Ok(())
    }

    /// The length of a string that is null.
    pub(crate) fn null_text(&mut self, flexible: bool) {
        if flexible {
            self.buffer.push(0);
        } else {
            self.i16(-1);
        }
    }

    pub(crate) fn bytes(&mut self, value: &Bytes, flexible: bool, field: &'static str) -> Result<(), EncodeError> {
        self.length(value.len(), flexible, field)?;
        self.raw(value);
        Ok(())
    }

    /// The length of bytes or of an array.
    pub(crate) fn length(&mut self, length: usize, flexible: bool, field: &'static str) -> Result<(), EncodeError> {
        check_length(length, LENGTH_MAX, field)?;
        if flexible {
            put_unsigned_varint(&mut self.buffer, length as u32 + 1);
        } else {
            self.i32(length as i32);
        }
        Ok(())
    }

    /// The length of bytes or of an array that is null.
    pub(crate) fn null_length(&mut self, flexible: bool) {
        if flexible {
            self.buffer.push(0);
        } else {
            self.i32(-1);
        }
    }

    pub(crate) fn fixed_array<T: Fixed>(
        &mut self,
        values: &[T],
        flexible: bool,
        field: &'static str,
    ) -> Result<(), EncodeError> {
        self.length(values.len(), flexible, field)?;
        values.iter().for_each(|value| value.write(&mut self.buffer));
        Ok(())
    }

    pub(crate) fn texts(&mut self, values: &[Text], flexible: bool, field: &'static str) -> Result<(), EncodeError> {
        self.length(values.len(), flexible, field)?;
        values.iter().try_for_each(|value| self.text(value, flexible, field))
    }

    pub(crate) fn structs<T>(
        &mut self,
        values: &[T],
        flexible: bool,
        version: i16,
        field: &'static str,
        write: fn(&T, &mut Writer, i16) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        self.length(values.len(), flexible, field)?;
        values.iter().try_for_each(|value| write(value, self, version))
    }
}

fn check_length(length: usize, limit: usize, field: &'static str) -> Result<(), EncodeError> {
    if length > limit {
        Err(EncodeError::TooLong { field, length, limit })
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_bytes_become_a_segment_without_a_copy() {
        let records = Bytes::from(vec![7; SEGMENT_BYTES_MIN]);
        let mut writer = Writer::new();
        writer.i32(1);
        writer.bytes(&records, false, "records").unwrap();
        writer.i8(2);
        assert_eq!(writer.len(), 4 + 4 + SEGMENT_BYTES_MIN + 1);
        let segments = writer.finish();
        assert_eq!(segments.len(), 3);
        assert_eq!(&segments[0][..], [0, 0, 0, 1, 0, 0, 0x10, 0]);
        assert_eq!(segments[1].as_ptr(), records.as_ptr());
        assert_eq!(&segments[2][..], [2]);
    }

    #[test]
    fn segments_keep_their_place_when_a_writer_is_appended() {
        let large = |byte| Bytes::from(vec![byte; SEGMENT_BYTES_MIN]);
        let (mut inner, mut outer) = (Writer::new(), Writer::new());
        inner.i8(3);
        inner.raw(&large(4));
        inner.i8(5);
        outer.raw(&large(1));
        outer.i8(2);
        outer.append(inner);
        outer.i8(6);
        let mut runs = outer.into_bytes().to_vec();
        runs.dedup();
        assert_eq!(runs, [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn nothing_written_is_no_segment() {
        assert_eq!(Writer::new().finish(), Vec::<Bytes>::new());
        assert_eq!(Writer::new().into_bytes(), Bytes::new());
    }

    #[test]
    fn a_string_longer_than_an_int16_is_refused_in_flexible_versions_too() {
        let text = Text::from("x".repeat(STRING_BYTES_MAX + 1));
        for flexible in [false, true] {
            let error = Writer::new().text(&text, flexible, "name").unwrap_err();
            let length = STRING_BYTES_MAX + 1;
            assert_eq!(
                error,
                EncodeError::TooLong {
                    field: "name",
                    length,
                    limit: STRING_BYTES_MAX
                }
            );
        }
    }
}
