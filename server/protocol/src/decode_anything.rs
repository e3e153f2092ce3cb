//! One door to all decoders, for tests that feed them arbitrary bytes.

use bytes::Bytes;

use crate::internal_records::prefixed::decode_versioned;
use crate::internal_records::{
    control, group_coordinator, metadata, share_coordinator, storage, transaction_coordinator,
};
use crate::messages::consumer_protocol_assignment::ConsumerProtocolAssignment;
use crate::messages::consumer_protocol_subscription::ConsumerProtocolSubscription;
use crate::messages::default_principal_data::DefaultPrincipalData;
use crate::{ApiKey, Reader, Request, Response, header};

/// Decodes `input` as what its first byte says: a request with its header, a response or a log record. Never panics.
///
/// First byte: 0 a request; 1 a response (then a byte of API key, one of version); 2 a metadata record; 3 a record of
/// remote segments; 4 to 9 a key or value of group, transaction or share coordinator (a value's second byte is its type);
/// 10 a control record (second byte: the length of its key); 11 to 13 what members of groups and brokers exchange; 14 a
/// snapshot of producers.
///
/// # Panics
/// If the decoder allocated more than its reader's limit: that is what tests look for.
pub fn decode_anything(input: &[u8]) -> bool {
    let [kind, rest @ ..] = input else { return false };
    let bytes = Bytes::copy_from_slice(rest);
    match kind {
        0 => request(bytes),
        1 => response(bytes),
        2 => metadata::MetadataRecord::from_bytes(bytes).is_ok(),
        3 => storage::RemoteLogRecord::from_bytes(bytes).is_ok(),
        4 => group_coordinator::Key::from_bytes(bytes).is_ok(),
        5 => value(bytes, |kind, bytes| {
            group_coordinator::Value::from_bytes(kind, bytes).is_ok()
        }),
        6 => transaction_coordinator::Key::from_bytes(bytes).is_ok(),
        7 => value(bytes, |kind, bytes| {
            transaction_coordinator::Value::from_bytes(kind, bytes).is_ok()
        }),
        8 => share_coordinator::Key::from_bytes(bytes).is_ok(),
        9 => value(bytes, |kind, bytes| {
            share_coordinator::Value::from_bytes(kind, bytes).is_ok()
        }),
        10 => control_record(bytes),
        11 => decode_versioned::<ConsumerProtocolSubscription>(bytes).is_ok(),
        12 => decode_versioned::<ConsumerProtocolAssignment>(bytes).is_ok(),
        13 => decode_versioned::<DefaultPrincipalData>(bytes).is_ok(),
        14 => decode_versioned::<storage::ProducerSnapshot>(bytes).is_ok(),
        _ => false,
    }
}

fn request(bytes: Bytes) -> bool {
    let mut reader = Reader::new(bytes);
    let Ok((api_key, header)) = header::decode_request_header(&mut reader) else {
        return false;
    };
    let decoded = Request::decode(api_key, header.request_api_version, &mut reader).is_ok();
    check_allocation(&reader);
    decoded
}

fn response(mut bytes: Bytes) -> bool {
    if bytes.len() < 2 {
        return false;
    }
    let choice = bytes.split_to(2);
    let Some(api_key) = ApiKey::from_code(choice[0].into()) else {
        return false;
    };
    let version = i16::from(choice[1]);
    let mut reader = Reader::new(bytes);
    let decoded = header::decode_response_header(api_key, version, &mut reader).is_ok()
        && Response::decode(api_key, version, &mut reader).is_ok();
    check_allocation(&reader);
    decoded
}

fn check_allocation(reader: &Reader) {
    assert!(
        reader.allocated() <= reader.allocation_limit(),
        "a decoder went on beyond its limit"
    );
}

fn value(mut bytes: Bytes, decode: fn(i16, Bytes) -> bool) -> bool {
    if bytes.is_empty() {
        return false;
    }
    let record_type = bytes.split_to(1);
    decode(record_type[0].into(), bytes)
}

fn control_record(mut bytes: Bytes) -> bool {
    if bytes.is_empty() {
        return false;
    }
    let length = usize::from(bytes.split_to(1)[0]).min(bytes.len());
    let key = bytes.split_to(length);
    control::ControlRecord::from_bytes(key, bytes).is_ok()
}
