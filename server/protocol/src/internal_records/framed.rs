//! The frame of records in the metadata log and in the log of remote segments: unsigned varints with the frame's
//! version (1), the record's type and the record's version, then the message (KIP-631).

use crate::{DecodeError, DecodeProblem, EncodeError, Reader, Writer};

/// The only version of the frame.
const FRAME_VERSION: u32 = 1;

/// Starts a record's value.
pub(super) fn write_frame(record_type: i16, version: i16, writer: &mut Writer) -> Result<(), EncodeError> {
    let varint = |value: i16| {
        u32::try_from(value).map_err(|_| EncodeError::UnknownVersion {
            message: "frame",
            version,
        })
    };
    let (record_type, record_version) = (varint(record_type)?, varint(version)?);
    writer.unsigned_varint(FRAME_VERSION);
    writer.unsigned_varint(record_type);
    writer.unsigned_varint(record_version);
    Ok(())
}

/// Type and version of the record that follows.
pub(super) fn read_frame(reader: &mut Reader) -> Result<(i16, i16), DecodeError> {
    let frame = reader.unsigned_varint("frame version")?;
    if frame != FRAME_VERSION {
        return Err(reader.error("frame version", DecodeProblem::UnknownVersion(frame.into())));
    }
    let record_type = reader.unsigned_varint("record type")?;
    let version = reader.unsigned_varint("record version")?;
    let unknown_type = |_| reader.error("record type", DecodeProblem::UnknownType(record_type.into()));
    let record_type = i16::try_from(record_type).map_err(unknown_type)?;
    let unknown_version = |_| reader.error("record version", DecodeProblem::UnknownVersion(version.into()));
    Ok((record_type, i16::try_from(version).map_err(unknown_version)?))
}

/// Gives a generated enum of records the form that its log's record values have.
macro_rules! framed_records {
    ($records:ident) => {
        impl $records {
            /// The record's value: frame and message.
            pub fn to_bytes(&self, version: i16) -> Result<bytes::Bytes, $crate::EncodeError> {
                let mut writer = $crate::Writer::new();
                super::framed::write_frame(self.record_type(), version, &mut writer)?;
                self.encode(&mut writer, version)?;
                Ok(writer.into_bytes())
            }

            /// The record and its version. As strict as Kafka: unknown frame, type or version and trailing bytes are
            /// errors, since one bad record halts every node that reads it.
            pub fn from_bytes(bytes: bytes::Bytes) -> Result<($records, i16), $crate::DecodeError> {
                let mut reader = $crate::Reader::new(bytes);
                let (record_type, version) = super::framed::read_frame(&mut reader)?;
                let record = $records::decode(record_type, version, &mut reader)?;
                reader.finish(record.name())?;
                Ok((record, version))
            }
        }
    };
}

pub(super) use framed_records;
