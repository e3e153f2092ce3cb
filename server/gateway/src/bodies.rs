//! Bodies of requests: taken within limits of size, time and memory, and then parsed where they lie.

use std::fmt;
use std::marker::PhantomData;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use plugin::host::MODULE_BYTES_MAX;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout, timeout_at};

use crate::gateway::{BODY_PERMIT_BYTES, Gateway};
use crate::problem::Problem;

const JSON: &str = "application/json";
const WASM: &str = "application/wasm";
/// The most that a body without records may have.
const SMALL_BYTES_MAX: usize = 256 * 1024;

/// A body that brings records: as large as the door takes.
pub(crate) type RecordsBody = JsonBody<{ usize::MAX }>;
/// A body that says what to do.
pub(crate) type SmallBody = JsonBody<SMALL_BYTES_MAX>;

/// The body of a request that says it is JSON. It counts against the memory for bodies until it is dropped.
pub(crate) struct JsonBody<const BYTES_MAX: usize> {
    pub(crate) bytes: Bytes,
    _room: Option<OwnedSemaphorePermit>,
}

impl<const BYTES_MAX: usize> JsonBody<BYTES_MAX> {
    /// The whole body as one object; what is borrowed points into [`JsonBody::bytes`].
    pub(crate) fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T, Problem> {
        let first = self.bytes.iter().find(|byte| !byte.is_ascii_whitespace());
        if matches!(first, Some(b'[')) {
            // Serde would take the members in their order.
            return Err(Problem::invalid("the body has to be a JSON object"));
        }
        serde_json::from_slice(&self.bytes).map_err(|error| {
            let code = match error.classify() {
                serde_json::error::Category::Data => "invalid_request",
                _ => "malformed_json",
            };
            Problem::new(
                StatusCode::BAD_REQUEST,
                code,
                format!("the body cannot be read: {error}"),
            )
        })
    }
}

impl<const BYTES_MAX: usize> FromRequest<Gateway> for JsonBody<BYTES_MAX> {
    type Rejection = Problem;

    async fn from_request(request: Request, gateway: &Gateway) -> Result<Self, Problem> {
        if essence(&request).is_none_or(|said| !said.eq_ignore_ascii_case(JSON)) {
            return Err(unsupported("this request wants a body of type application/json"));
        }
        let limit = gateway.limits.body_bytes_max.min(BYTES_MAX);
        if announced_bytes(&request).is_some_and(|length| length > limit as u64) {
            return Err(too_large(limit));
        }
        let until = Instant::now() + gateway.limits.body_wait_max;
        let gathered = timeout_at(until, gather(request.into_body(), gateway, limit)).await;
        gathered.map_err(|_| timed_out())?
    }
}

/// A module that is uploaded. It has one of the few places for modules until it is dropped.
pub(crate) struct ModuleBody {
    pub(crate) bytes: Bytes,
    _place: OwnedSemaphorePermit,
}

impl FromRequest<Gateway> for ModuleBody {
    type Rejection = Problem;

    async fn from_request(request: Request, gateway: &Gateway) -> Result<Self, Problem> {
        if essence(&request).is_none_or(|said| !said.eq_ignore_ascii_case(WASM)) {
            return Err(unsupported("this request wants a body of type application/wasm"));
        }
        let announced = announced_bytes(&request);
        if announced.is_some_and(|length| length > MODULE_BYTES_MAX as u64) {
            return Err(too_large(MODULE_BYTES_MAX));
        }
        let place = gateway.uploads.clone().acquire_owned();
        let place = timeout(gateway.limits.body_wait_max, place)
            .await
            .map_err(|_| overloaded())?;
        let place = place.expect("the semaphore is never closed");
        let gathered = gather_module(request.into_body(), announced);
        let bytes = timeout(gateway.limits.upload_wait_max, gathered).await;
        let bytes = bytes.map_err(|_| timed_out())??;
        Ok(ModuleBody { bytes, _place: place })
    }
}

/// The room is taken at once, so that growing does not take it twice; what is never written costs no memory.
async fn gather_module(mut body: Body, announced: Option<u64>) -> Result<Bytes, Problem> {
    let room = announced.and_then(|length| usize::try_from(length).ok());
    let mut bytes = BytesMut::with_capacity(room.unwrap_or(MODULE_BYTES_MAX));
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Problem::invalid(format!("the body broke off: {error}")))?;
        let Ok(piece) = frame.into_data() else { continue };
        if bytes.len() + piece.len() > MODULE_BYTES_MAX {
            return Err(too_large(MODULE_BYTES_MAX));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes.freeze())
}

/// The type that the body is said to have, without parameters.
fn essence(request: &Request) -> Option<&str> {
    let said = request.headers().get(CONTENT_TYPE)?.to_str().ok()?;
    said.split(';').next().map(str::trim)
}

fn announced_bytes(request: &Request) -> Option<u64> {
    request.headers().get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Takes the body as it comes, each piece only while there is room for it.
async fn gather<const BYTES_MAX: usize>(
    mut body: Body,
    gateway: &Gateway,
    limit: usize,
) -> Result<JsonBody<BYTES_MAX>, Problem> {
    let mut bytes = BytesMut::new();
    let mut room: Option<OwnedSemaphorePermit> = None;
    let mut paid_bytes = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Problem::invalid(format!("the body broke off: {error}")))?;
        let Ok(piece) = frame.into_data() else { continue };
        if bytes.len() + piece.len() > limit {
            return Err(too_large(limit));
        }
        bytes.extend_from_slice(&piece);
        let owed = bytes.capacity().saturating_sub(paid_bytes).div_ceil(BODY_PERMIT_BYTES);
        if owed > 0 {
            let permits = u32::try_from(owed).unwrap_or(u32::MAX);
            let permit = gateway.bodies.clone().try_acquire_many_owned(permits);
            let permit = permit.map_err(|_| overloaded())?;
            match &mut room {
                Some(room) => room.merge(permit),
                None => room = Some(permit),
            }
            paid_bytes += owed * BODY_PERMIT_BYTES;
        }
    }
    Ok(JsonBody {
        bytes: bytes.freeze(),
        _room: room,
    })
}

fn unsupported(detail: &'static str) -> Problem {
    Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", detail)
}

fn timed_out() -> Problem {
    let detail = "the body did not arrive in time";
    Problem::new(StatusCode::REQUEST_TIMEOUT, "request_timeout", detail)
}

fn too_large(limit: usize) -> Problem {
    Problem::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "body_too_large",
        format!("a body may have {limit} bytes at most"),
    )
}

fn overloaded() -> Problem {
    let detail = "too many bodies are being taken at present";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", detail).retryable()
}

/// Reads a list that has no more than `MAX` items, so that a small body cannot become much in memory.
pub(crate) fn at_most<'de, D, T, const MAX: usize>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_seq(AtMost::<T, MAX>(PhantomData))
}

struct AtMost<T, const MAX: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for AtMost<T, MAX> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {MAX} items")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            if items.len() == MAX {
                return Err(serde::de::Error::invalid_length(MAX + 1, &self));
            }
            items.push(item);
        }
        Ok(items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_bounded_while_they_are_read() {
        let read = |text: &str| at_most::<_, i32, 2>(&mut serde_json::Deserializer::from_str(text));
        assert_eq!(read("[1,2]").unwrap(), [1, 2]);
        let refused = read("[1,2,3]").unwrap_err();
        assert!(
            refused.is_data() && refused.to_string().contains("at most 2"),
            "{refused}"
        );
        assert!(read("{}").is_err());
    }
}
