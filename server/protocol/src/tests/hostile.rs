//! Messages that are cut short, or whose lengths lie.

use bytes::Bytes;

use super::golden::{Golden, messages};
use super::registry::{Traced, all};
use crate::schema::{LengthEncoding, LengthField};

#[test]
fn a_message_that_is_cut_short_is_an_error() {
    let entries = all();
    for Golden {
        entry,
        version,
        variant,
        bytes,
    } in messages(&entries)
    {
        for length in 0..bytes.len() {
            let result = (entry.trace)(bytes.slice(..length), version).result;
            assert!(
                result.is_err(),
                "{} {version} {variant} cut to {length} bytes",
                entry.name
            );
        }
    }
}

#[test]
fn bytes_behind_a_message_are_an_error() {
    let entries = all();
    for Golden {
        entry,
        version,
        variant,
        bytes,
    } in messages(&entries)
    {
        let longer = Bytes::from([&bytes[..], &[0]].concat());
        let result = (entry.trace)(longer, version).result;
        assert!(result.is_err(), "{} {version} {variant}", entry.name);
    }
}

#[test]
fn a_length_beyond_the_end_is_refused_before_anything_is_allocated_for_it() {
    let entries = all();
    for Golden {
        entry,
        version,
        variant,
        bytes,
    } in messages(&entries)
    {
        let honest = (entry.trace)(bytes.clone(), version);
        for length in honest.lengths {
            let beyond = bytes.len() - length.position + 1;
            for lie in [beyond, 0x7ffe, 0x3fff_ffff, i32::MAX as usize - 1] {
                let Some(hostile) = with_length(&bytes, &length, lie) else {
                    continue;
                };
                let Traced { result, allocated, .. } = (entry.trace)(hostile, version);
                let what = format!(
                    "{} {version} {variant}: {lie} for {} at {}",
                    entry.name, length.field, length.position
                );
                assert!(result.is_err(), "{what}");
                assert!(
                    allocated <= honest.allocated,
                    "{what}: {allocated} bytes allocated, {} for the honest message",
                    honest.allocated
                );
            }
        }
    }
}

#[test]
fn a_negative_or_overlong_length_is_refused() {
    let entries = all();
    for Golden {
        entry, version, bytes, ..
    } in messages(&entries)
    {
        for length in (entry.trace)(bytes.clone(), version).lengths {
            let hostile: &[u8] = match length.encoding {
                LengthEncoding::Int16 => &[0xff, 0xfe],
                LengthEncoding::Int32 => &[0xff, 0xff, 0xff, 0xfe],
                LengthEncoding::CompactVarint | LengthEncoding::Varint => &[0xff, 0xff, 0xff, 0xff, 0x1f],
            };
            let result = (entry.trace)(replace(&bytes, &length, hostile), version).result;
            assert!(result.is_err(), "{} {version}: {}", entry.name, length.field);
        }
    }
}

/// The message with another value in a length field; `None` if the field cannot hold it.
fn with_length(bytes: &Bytes, length: &LengthField, value: usize) -> Option<Bytes> {
    let mut written = Vec::new();
    match length.encoding {
        LengthEncoding::Int16 => written.extend(i16::try_from(value).ok()?.to_be_bytes()),
        LengthEncoding::Int32 => written.extend(i32::try_from(value).ok()?.to_be_bytes()),
        LengthEncoding::CompactVarint => crate::primitives::put_unsigned_varint(&mut written, value as u32 + 1),
        LengthEncoding::Varint => crate::primitives::put_unsigned_varint(&mut written, value as u32),
    }
    Some(replace(bytes, length, &written))
}

fn replace(bytes: &Bytes, length: &LengthField, written: &[u8]) -> Bytes {
    let (before, after) = (&bytes[..length.position], &bytes[length.position + length.width..]);
    [before, written, after].concat().into()
}
