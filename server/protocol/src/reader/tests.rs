//! The reader's limits.

use super::*;
use crate::Message as _;
use crate::messages::fetch_response::FetchResponse;
use crate::messages::metadata_request::MetadataRequest;
use crate::messages::produce_request::ProduceRequest;
use crate::tagged_fields::TaggedFields;

fn problem<T: std::fmt::Debug>(result: Result<T, DecodeError>) -> DecodeProblem {
    result.unwrap_err().problem
}

#[test]
fn an_error_names_message_field_and_position() {
    let error = MetadataRequest::decode(&mut Reader::new(&b"\x7f\xff\xff\xff"[..]), 4).unwrap_err();
    assert_eq!(
        error.to_string(),
        "MetadataRequest.Topics at byte 4: 2147483647 elements cannot be in 0 bytes"
    );
}

#[test]
fn byte_fields_share_the_memory_of_the_frame() {
    let frame = Bytes::from_static(b"\0\0\0\x03abc");
    let field = Reader::new(frame.clone()).bytes(false, "field").unwrap();
    assert_eq!(field, "abc");
    assert_eq!(field.as_ptr(), frame[4..].as_ptr());
}

#[test]
fn null_is_refused_where_it_is_not_allowed() {
    assert_eq!(
        problem(Reader::new(&[0xff, 0xff][..]).text(false, "name")),
        DecodeProblem::Null
    );
    assert_eq!(problem(Reader::new(&[0][..]).text(true, "name")), DecodeProblem::Null);
    assert_eq!(Reader::new(&[0][..]).nullable_text(true, "name"), Ok(None));
    let without_topics = &b"\xff\xff\0\x01\0\0\0\0\xff\xff\xff\xff"[..];
    let error = ProduceRequest::decode(&mut Reader::new(without_topics), 3).unwrap_err();
    assert_eq!(
        (error.field, error.problem),
        ("ProduceRequest.TopicData", DecodeProblem::Null)
    );
}

#[test]
fn a_varint_has_at_most_five_bytes_and_32_bits() {
    let read = |bytes: &'static [u8]| Reader::new(bytes).unsigned_varint("size");
    assert_eq!(read(&[0xff, 0xff, 0xff, 0xff, 0x0f]), Ok(u32::MAX));
    assert_eq!(
        problem(read(&[0xff, 0xff, 0xff, 0xff, 0x1f])),
        DecodeProblem::VarintTooLong(32)
    );
    assert_eq!(
        problem(read(&[0x80, 0x80, 0x80, 0x80, 0x80, 0])),
        DecodeProblem::VarintTooLong(32)
    );
    assert!(matches!(problem(read(&[0x80])), DecodeProblem::EndOfBytes { .. }));
}

#[test]
fn text_must_be_utf_8_and_no_longer_than_an_int16_can_say() {
    assert_eq!(
        problem(Reader::new(&[3, 0xc3, 0x28][..]).text(true, "name")),
        DecodeProblem::NotUtf8
    );
    let mut long = Vec::new();
    crate::primitives::put_unsigned_varint(&mut long, STRING_BYTES_MAX as u32 + 2);
    long.resize(2 * STRING_BYTES_MAX, b'x');
    let length = STRING_BYTES_MAX + 1;
    let expected = DecodeProblem::TooLong {
        length,
        limit: STRING_BYTES_MAX,
    };
    assert_eq!(problem(Reader::new(long).text(true, "name")), expected);
}

#[test]
fn a_count_is_measured_against_the_smallest_element() {
    // 30 bytes follow the count: room for one int64 array of three, not of four.
    let frame = |count: u8| [&[count + 1][..], &[0; 30]].concat();
    assert_eq!(
        Reader::new(frame(3))
            .fixed::<i64>(true, "ids")
            .unwrap()
            .map(|ids| ids.len()),
        Some(3)
    );
    let expected = DecodeProblem::CountBeyondEnd {
        count: 4,
        remaining: 30,
    };
    assert_eq!(problem(Reader::new(frame(4)).fixed::<i64>(true, "ids")), expected);
}

#[test]
fn many_small_elements_cannot_outgrow_the_allocation_limit() {
    // Responses of empty topics: a few bytes each on the wire, a hundred in memory.
    const TOPICS: usize = 1_000_000;
    let mut frame = vec![0; 4];
    frame.extend((TOPICS as i32).to_be_bytes());
    frame.resize(8 + TOPICS * 6, 0);
    let mut reader = Reader::new(frame);
    reader.allocation_limit = 10 * TOPICS;
    let error = FetchResponse::decode(&mut reader, 4).unwrap_err();
    assert_eq!(error.problem, DecodeProblem::AllocationLimit(10 * TOPICS));
}

#[test]
fn a_tagged_field_must_fill_its_size() {
    // One tagged field of three bytes, of which its string takes two.
    let mut reader = Reader::new(&b"\x01\0\x03\x02a\0"[..]);
    assert_eq!(reader.tag_count("message"), Ok(1));
    let (tag, outer_end) = reader.enter_tag("message").unwrap();
    assert_eq!(reader.text(true, "name").unwrap(), "a");
    let expected = DecodeProblem::TaggedFieldTooShort { tag: 0, left: 1 };
    assert_eq!(problem(reader.leave_tag(tag, outer_end, "message")), expected);
}

#[test]
fn a_tagged_field_cannot_read_beyond_its_size() {
    let mut reader = Reader::new(&b"\x01\0\x01\x03ab"[..]);
    reader.tag_count("message").unwrap();
    reader.enter_tag("message").unwrap();
    assert_eq!(
        problem(reader.text(true, "name")),
        DecodeProblem::EndOfBytes {
            needed: 2,
            remaining: 0
        }
    );
}

#[test]
fn unknown_tagged_fields_are_kept_and_written_in_ascending_order() {
    let mut reader = Reader::new(&b"\x02\x07\x01a\x05\x01b"[..]);
    let mut unknown = UnknownTaggedFields::default();
    reader.unknown_tags(&mut unknown, "message").unwrap();
    assert_eq!(unknown.get(7).unwrap(), "a");
    let mut writer = crate::Writer::new();
    TaggedFields::new().write(&unknown, &mut writer);
    assert_eq!(writer.into_bytes(), &b"\x02\x05\x01b\x07\x01a"[..]);
}

#[test]
fn arrays_and_tagged_fields_have_kafkas_limits() {
    let frame = |count: u32, bytes: usize| {
        let mut frame = Vec::new();
        crate::primitives::put_unsigned_varint(&mut frame, count);
        frame.resize(frame.len() + bytes, 0);
        Reader::new(frame)
    };
    let (arrays, tags) = (ARRAY_LENGTH_MAX, TAGGED_FIELDS_MAX);
    assert!(frame(arrays as u32 + 1, arrays).fixed::<i8>(true, "array").is_ok());
    let expected = DecodeProblem::TooLong {
        length: arrays + 1,
        limit: arrays,
    };
    assert_eq!(
        problem(frame(arrays as u32 + 2, 2 * arrays).fixed::<i8>(true, "array")),
        expected
    );
    assert!(frame(tags as u32, 2 * tags).tag_count("message").is_ok());
    let expected = DecodeProblem::TooLong {
        length: tags + 1,
        limit: tags,
    };
    assert_eq!(problem(frame(tags as u32 + 1, 3 * tags).tag_count("message")), expected);
}
