//! The headers before requests and responses.

use crate::messages::request_header::RequestHeader;
use crate::messages::response_header::ResponseHeader;
use crate::{ApiKey, DecodeError, EncodeError, Message, Reader, Writer};

/// A request whose header cannot be read; all that can be done is to close the connection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    #[error("no API has the key {0}")]
    UnknownApiKey(i16),
    #[error(transparent)]
    Decode(#[from] DecodeError),
}

/// Reads the header of a request. The version it names may be one that does not exist: the header can be read all the
/// same, and for ApiVersions there is an answer to that (KIP-511).
pub fn decode_request_header(reader: &mut Reader) -> Result<(ApiKey, RequestHeader), HeaderError> {
    let (code, version) = reader.peek_i16_pair("RequestHeader")?;
    let api_key = ApiKey::from_code(code).ok_or(HeaderError::UnknownApiKey(code))?;
    let header = RequestHeader::decode(reader, api_key.request_header_version(version))?;
    Ok((api_key, header))
}

/// Writes the header of a request, in the version that goes with the API's version in it.
pub fn encode_request_header(
    api_key: ApiKey,
    version: i16,
    correlation_id: i32,
    client_id: Option<&str>,
    writer: &mut Writer,
) -> Result<(), EncodeError> {
    let header = RequestHeader {
        request_api_key: api_key.code(),
        request_api_version: version,
        correlation_id,
        client_id: client_id.map(Into::into),
        ..RequestHeader::default()
    };
    header.encode(writer, api_key.request_header_version(version))
}

/// Reads the header of a response to a request of `api_key` and `version`; gives the correlation id.
pub fn decode_response_header(api_key: ApiKey, version: i16, reader: &mut Reader) -> Result<i32, DecodeError> {
    ResponseHeader::decode(reader, api_key.response_header_version(version)).map(|header| header.correlation_id)
}

/// Writes the header of a response to a request of `api_key` and `version`.
pub fn encode_response_header(
    api_key: ApiKey,
    version: i16,
    correlation_id: i32,
    writer: &mut Writer,
) -> Result<(), EncodeError> {
    let header = ResponseHeader {
        correlation_id,
        ..ResponseHeader::default()
    };
    header.encode(writer, api_key.response_header_version(version))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header_bytes(api_key: ApiKey, version: i16) -> bytes::Bytes {
        let mut writer = Writer::new();
        encode_request_header(api_key, version, 7, Some("me"), &mut writer).unwrap();
        writer.into_bytes()
    }

    #[test]
    fn a_flexible_header_has_tagged_fields_and_an_old_style_client_id() {
        assert_eq!(&header_bytes(ApiKey::Produce, 8)[..], b"\0\0\0\x08\0\0\0\x07\0\x02me");
        assert_eq!(&header_bytes(ApiKey::Produce, 9)[..], b"\0\0\0\x09\0\0\0\x07\0\x02me\0");
    }

    #[test]
    fn the_header_of_a_request_from_the_future_can_be_read() {
        let mut reader = Reader::new(header_bytes(ApiKey::ApiVersions, 99));
        let (api_key, header) = decode_request_header(&mut reader).unwrap();
        assert_eq!(
            (api_key, header.request_api_version, header.correlation_id),
            (ApiKey::ApiVersions, 99, 7)
        );
        assert_eq!(header.client_id.as_deref(), Some("me"));
        assert_eq!(reader.remaining(), 0);
    }

    #[test]
    fn an_unknown_api_key_is_an_error_of_its_own() {
        let mut reader = Reader::new(&b"\0\x05\0\0\0\0\0\0\xff\xff"[..]);
        assert_eq!(
            decode_request_header(&mut reader).unwrap_err(),
            HeaderError::UnknownApiKey(5)
        );
    }

    #[test]
    fn the_response_header_of_api_versions_has_no_tagged_fields() {
        for (api_key, version, bytes) in [
            (ApiKey::ApiVersions, 5, 4),
            (ApiKey::Metadata, 13, 5),
            (ApiKey::Metadata, 8, 4),
        ] {
            let mut writer = Writer::new();
            encode_response_header(api_key, version, 9, &mut writer).unwrap();
            assert_eq!(writer.len(), bytes, "{api_key} {version}");
            let mut reader = Reader::new(writer.into_bytes());
            assert_eq!(decode_response_header(api_key, version, &mut reader), Ok(9));
        }
    }
}
