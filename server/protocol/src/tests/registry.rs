//! Every message and record of the crate, by folder and name, behind functions without types.

use bytes::Bytes;

use crate::schema::LengthField;
use crate::{DecodeError, EncodeError, Message, Reader, Writer};

/// What became of a message that was read in one version and written in another.
type Converted = Result<Result<Bytes, EncodeError>, DecodeError>;

/// What reading a message, with nothing behind it, came to.
pub(super) struct Traced {
    /// Those read so far if it is an error.
    pub(super) lengths: Vec<LengthField>,
    pub(super) result: Result<(), DecodeError>,
    /// Bytes of memory.
    pub(super) allocated: usize,
}

pub(super) struct Entry {
    /// The folder of the notation.
    pub(super) folder: &'static str,
    pub(super) name: &'static str,
    pub(super) first_version: i16,
    pub(super) last_version: i16,
    /// The bytes of the default message.
    pub(super) default: fn(i16) -> Result<Bytes, EncodeError>,
    /// Reads a message in one version, with nothing behind it, and writes it in another.
    pub(super) convert: fn(Bytes, i16, i16) -> Converted,
    pub(super) trace: fn(Bytes, i16) -> Traced,
    /// Whether reading the bytes gives the default message.
    pub(super) is_default: fn(Bytes, i16) -> bool,
}

impl Entry {
    fn of<M: Message + PartialEq + std::fmt::Debug>(folder: &'static str) -> Entry {
        Entry {
            folder,
            name: M::NAME,
            first_version: M::FIRST_VERSION,
            last_version: M::LAST_VERSION,
            default: |version| encode(&M::default(), version),
            convert: convert::<M>,
            trace: trace::<M>,
            is_default: |bytes, version| M::decode(&mut Reader::new(bytes), version) == Ok(M::default()),
        }
    }
}

pub(super) fn all() -> Vec<Entry> {
    include!(concat!(env!("OUT_DIR"), "/registry.rs"))
}

pub(super) fn find<'e>(entries: &'e [Entry], folder: &str, name: &str) -> &'e Entry {
    let found = entries
        .iter()
        .find(|entry| entry.folder == folder && entry.name == name);
    found.unwrap_or_else(|| panic!("no message {folder}/{name}"))
}

fn encode<M: Message>(message: &M, version: i16) -> Result<Bytes, EncodeError> {
    let mut writer = Writer::new();
    message.encode(&mut writer, version)?;
    Ok(writer.into_bytes())
}

fn decode<M: Message>(bytes: Bytes, version: i16) -> Result<M, DecodeError> {
    let mut reader = Reader::new(bytes);
    let message = M::decode(&mut reader, version)?;
    reader.finish(M::NAME)?;
    Ok(message)
}

fn convert<M: Message + PartialEq + std::fmt::Debug>(bytes: Bytes, from: i16, to: i16) -> Converted {
    let message: M = decode(bytes, from)?;
    let written = encode(&message, to);
    if let (true, Ok(written)) = (from == to, &written) {
        let again: M = decode(written.clone(), to)?;
        assert_eq!(again, message, "{} {to} changes when it is written and read", M::NAME);
    }
    Ok(written)
}

fn trace<M: Message>(bytes: Bytes, version: i16) -> Traced {
    let mut reader = Reader::traced(bytes);
    let result = M::decode(&mut reader, version).and_then(|_| reader.finish(M::NAME));
    assert!(result.is_err() || reader.allocated() <= reader.allocation_limit());
    Traced {
        lengths: reader.trace().to_vec(),
        result,
        allocated: reader.allocated(),
    }
}
