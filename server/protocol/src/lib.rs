//! The wire: Kafka's messages and log records, byte for byte as Apache Kafka 4.4.0 reads and writes them.
//!
//! The structs are generated at build time by `generator/` from the notation files in `schemas/`, one module a message;
//! what is written by hand is the reading and writing of primitives, the headers and the frames of log records.
//!
//! Invariants:
//! - Decoding never panics, and allocates no more than [`Reader::allocation_limit`] says, whatever the bytes.
//! - Record data is neither copied on the way in (it shares the frame) nor on the way out (it is a segment of its own).
//! - A message read and written again in the same version gives the same bytes, unknown tagged fields included.
//!
//! ```
//! use protocol::messages::metadata_request::{MetadataRequest, MetadataRequestTopic};
//! use protocol::{ApiKey, Reader, Request, Writer, header};
//!
//! let topic = MetadataRequestTopic { name: Some("orders".into()), ..Default::default() };
//! let request = Request::from(MetadataRequest { topics: Some(vec![topic]), ..Default::default() });
//! let mut writer = Writer::new();
//! header::encode_request_header(ApiKey::Metadata, 13, 1, Some("me"), &mut writer)?;
//! request.encode(&mut writer, 13)?;
//!
//! let mut reader = Reader::new(writer.into_bytes());
//! let (api_key, header) = header::decode_request_header(&mut reader)?;
//! assert_eq!(Request::decode(api_key, header.request_api_version, &mut reader)?, request);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod api_key;
mod decode_anything;
mod error;
mod generated_prelude;
pub mod header;
pub mod internal_records;
mod json;
mod message;
pub mod messages;
mod primitives;
mod reader;
mod request;
pub mod schema;
mod tagged_fields;
mod text;
mod writer;

#[cfg(test)]
#[path = "../generator/generator.rs"]
#[expect(
    dead_code,
    reason = "tests read the notation; only the build script writes Rust from it"
)]
mod generator;
#[cfg(test)]
mod tests;

pub use api_key::{ApiKey, ListenerKind};
pub use decode_anything::decode_anything;
pub use error::{DecodeError, DecodeProblem, EncodeError};
pub use message::Message;
pub use reader::Reader;
pub use request::{Request, Response};
pub use tagged_fields::{UnknownTaggedField, UnknownTaggedFields};
pub use text::Text;
pub use writer::Writer;
