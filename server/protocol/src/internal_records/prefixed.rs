//! Messages behind an int16 that says their version (values, control records, snapshots of producers) or, for the keys
//! of coordinator records, their type.

use bytes::Bytes;

use crate::{DecodeError, EncodeError, Message, Reader, Writer};

/// The message behind an int16 with its version.
pub fn encode_versioned<M: Message>(message: &M, version: i16) -> Result<Bytes, EncodeError> {
    let mut writer = Writer::new();
    writer.i16(version);
    message.encode(&mut writer, version)?;
    Ok(writer.into_bytes())
}

/// The message and its version; nothing may follow.
pub fn decode_versioned<M: Message>(bytes: Bytes) -> Result<(M, i16), DecodeError> {
    let mut reader = Reader::new(bytes);
    let version = reader.i16(M::NAME)?;
    let message = M::decode(&mut reader, version)?;
    reader.finish(M::NAME)?;
    Ok((message, version))
}

/// Gives a coordinator's generated `Key` and `Value` the form that its log's records have.
macro_rules! coordinator_records {
    () => {
        /// Keys have one version only.
        const KEY_VERSION: i16 = 0;

        impl Key {
            /// The record's key: an int16 with its type, and the message.
            pub fn to_bytes(&self) -> Result<bytes::Bytes, $crate::EncodeError> {
                let mut writer = $crate::Writer::new();
                writer.i16(self.record_type());
                self.encode(&mut writer, KEY_VERSION)?;
                Ok(writer.into_bytes())
            }

            /// An unknown type is an error that tells the type, so that a record of a newer version can be passed over.
            pub fn from_bytes(bytes: bytes::Bytes) -> Result<Key, $crate::DecodeError> {
                let mut reader = $crate::Reader::new(bytes);
                let record_type = reader.i16("Key")?;
                let key = Key::decode(record_type, KEY_VERSION, &mut reader)?;
                reader.finish(key.name())?;
                Ok(key)
            }
        }

        impl Value {
            /// The record's value: an int16 with its version, and the message.
            pub fn to_bytes(&self, version: i16) -> Result<bytes::Bytes, $crate::EncodeError> {
                let mut writer = $crate::Writer::new();
                writer.i16(version);
                self.encode(&mut writer, version)?;
                Ok(writer.into_bytes())
            }

            /// The value of a record whose key has `record_type`, and its version.
            pub fn from_bytes(record_type: i16, bytes: bytes::Bytes) -> Result<(Value, i16), $crate::DecodeError> {
                let mut reader = $crate::Reader::new(bytes);
                let version = reader.i16("Value")?;
                let value = Value::decode(record_type, version, &mut reader)?;
                reader.finish(value.name())?;
                Ok((value, version))
            }
        }
    };
}

pub(super) use coordinator_records;
