//! One connection: reads requests, starts them in order, and lets their answers leave in that order.
//!
//! A request starts when the one before it has been answered, or has said that its answer comes later
//! ([`Answer::Later`]). So appends keep the order of the wire while several wait for the disk, and at most
//! [`WAITING_ANSWERS_MAX`] do.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use protocol::header::{HeaderError, decode_request_header, encode_response_header};
use protocol::messages::api_versions_response::{ApiVersion, ApiVersionsResponse};
use protocol::{ApiKey, DecodeError, EncodeError, Reader, Request, Response, Writer};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;
use tracing::{debug, warn};

use crate::dispatch::{Answer, Dispatch, Principal, RequestContext};
use crate::frame::{FrameError, FrameReader, write_frame};

/// How many requests of one connection may wait for their answers while the next is read. Java's producer keeps five
/// in flight; more waiting costs memory and gains nothing.
const WAITING_ANSWERS_MAX: usize = 8;

/// What a connection may ask for.
#[derive(Clone, Debug)]
pub struct ConnectionLimits {
    /// `socket.request.max.bytes`
    pub frame_bytes_max: usize,
    /// How long a new connection may take for its first whole request.
    pub first_request_wait_max: Duration,
    /// `connections.max.idle.ms`: how long one may be silent between requests.
    pub idle_max: Duration,
    /// How long a client may leave an answer unread.
    pub write_wait_max: Duration,
}

/// Why a connection ended, other than by the client's wish.
#[derive(Debug, thiserror::Error)]
enum ConnectionError {
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error("decoding the header of a request")]
    Header(#[source] HeaderError),
    #[error("{api_key} version {version} is not served on this listener")]
    Unsupported { api_key: ApiKey, version: i16 },
    #[error("decoding {api_key:?} version {version}")]
    Body {
        api_key: ApiKey,
        version: i16,
        source: DecodeError,
    },
    #[error("encoding the answer to {api_key:?} version {version}")]
    Encode {
        api_key: ApiKey,
        version: i16,
        source: EncodeError,
    },
    #[error("writing an answer")]
    Write(#[source] std::io::Error),
    #[error("the client did not read its answer in time")]
    Unread,
    #[error("no whole request came in time")]
    Idle,
}

/// An answer on its way, and what its frame needs besides.
struct Waiting {
    api_key: ApiKey,
    version: i16,
    correlation_id: i32,
    answer: Pin<Box<dyn Future<Output = Answer> + Send>>,
}

/// A client's socket and the node behind it.
pub(crate) struct Connection<N> {
    node: Arc<N>,
    listener: Arc<str>,
    client_address: SocketAddr,
    frames: FrameReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
    limits: ConnectionLimits,
    waiting: VecDeque<Waiting>,
}

impl<N: Dispatch> Connection<N> {
    pub(crate) fn new(
        node: Arc<N>,
        listener: Arc<str>,
        client_address: SocketAddr,
        stream: TcpStream,
        limits: ConnectionLimits,
    ) -> Self {
        let (reader, writer) = stream.into_split();
        let frames = FrameReader::new(reader, limits.frame_bytes_max);
        Connection {
            node,
            listener,
            client_address,
            frames,
            writer,
            limits,
            waiting: VecDeque::new(),
        }
    }

    /// Serves until the client goes, breaks a rule or is too slow.
    pub(crate) async fn run(mut self) {
        let listener = self.listener.clone();
        let client = self.client_address;
        match self.serve().await {
            Ok(()) => debug!(%listener, %client, "connection ended"),
            Err(ConnectionError::Frame(FrameError::Io(error))) => debug!(%listener, %client, %error, "connection lost"),
            Err(ConnectionError::Idle) => debug!(%listener, %client, "connection idle"),
            Err(error @ ConnectionError::Encode { .. }) => {
                let cause = std::error::Error::source(&error)
                    .map(ToString::to_string)
                    .unwrap_or_default();
                warn!(%listener, %client, %error, %cause, "answer cannot be encoded");
            }
            Err(error) => {
                let cause = std::error::Error::source(&error)
                    .map(ToString::to_string)
                    .unwrap_or_default();
                debug!(%listener, %client, %error, %cause, "connection refused");
            }
        }
    }

    async fn serve(&mut self) -> Result<(), ConnectionError> {
        let mut wait = self.limits.first_request_wait_max;
        loop {
            let Some(frame) = self.next_frame(wait).await? else {
                return self.finish().await;
            };
            wait = self.limits.idle_max;
            if !self.start(frame).await? {
                return Ok(());
            }
        }
    }

    /// The next request's frame; sends meanwhile whatever gets ready.
    async fn next_frame(&mut self, wait: Duration) -> Result<Option<Bytes>, ConnectionError> {
        loop {
            if self.waiting.is_empty() {
                return match timeout(wait, self.frames.next()).await {
                    Ok(frame) => Ok(frame?),
                    Err(_) => Err(ConnectionError::Idle),
                };
            }
            let room = self.waiting.len() < WAITING_ANSWERS_MAX;
            let first = self.waiting.front_mut().expect("checked above");
            tokio::select! {
                biased;
                answer = &mut first.answer => {
                    let Waiting { api_key, version, correlation_id, .. } =
                        self.waiting.pop_front().expect("it was the first a moment ago");
                    if !self.send(api_key, version, correlation_id, answer).await? {
                        return Ok(None);
                    }
                }
                frame = self.frames.next(), if room => return Ok(frame?),
            }
        }
    }

    /// Sends what still waits when the client has closed its half: it may be reading yet.
    async fn finish(&mut self) -> Result<(), ConnectionError> {
        while let Some(first) = self.waiting.pop_front() {
            let answer = first.answer.await;
            if !self
                .send(first.api_key, first.version, first.correlation_id, answer)
                .await?
            {
                break;
            }
        }
        Ok(())
    }

    /// Decodes a request and starts it; false where the connection is to end.
    async fn start(&mut self, frame: Bytes) -> Result<bool, ConnectionError> {
        let mut reader = Reader::new(frame);
        let (api_key, header) = decode_request_header(&mut reader).map_err(ConnectionError::Header)?;
        let (version, correlation_id) = (header.request_api_version, header.correlation_id);
        let unsupported = ConnectionError::Unsupported { api_key, version };
        let Some(range) = self.node.api_versions().iter().find(|range| range.api_key == api_key) else {
            return Err(unsupported);
        };
        if !range.served.contains(&version) {
            if api_key != ApiKey::ApiVersions {
                return Err(unsupported);
            }
            let refusal = unsupported_api_versions(range.advertised.clone().into_inner());
            let answer = Box::pin(std::future::ready(Answer::now(refusal)));
            self.waiting.push_back(Waiting {
                api_key,
                version: 0,
                correlation_id,
                answer,
            });
            return Ok(true);
        }
        let request = Request::decode(api_key, version, &mut reader).map_err(|source| ConnectionError::Body {
            api_key,
            version,
            source,
        })?;
        let context = RequestContext {
            principal: Principal::anonymous(),
            listener: self.listener.clone(),
            client_id: header.client_id,
            client_address: self.client_address,
            correlation_id,
            api_version: version,
        };
        let Some(answer) = self.answer(context, request).await? else {
            return Ok(false);
        };
        match answer {
            Answer::Later(answer) => {
                self.waiting.push_back(Waiting {
                    api_key,
                    version,
                    correlation_id,
                    answer,
                });
                Ok(true)
            }
            answer if self.waiting.is_empty() => self.send(api_key, version, correlation_id, answer).await,
            answer => {
                let answer = Box::pin(std::future::ready(answer));
                self.waiting.push_back(Waiting {
                    api_key,
                    version,
                    correlation_id,
                    answer,
                });
                Ok(true)
            }
        }
    }

    /// Waits for a request's first half, and sends meanwhile whatever gets ready of those before it. `None` where the
    /// connection is to end.
    async fn answer(&mut self, context: RequestContext, request: Request) -> Result<Option<Answer>, ConnectionError> {
        let mut started = self.node.clone().dispatch(context, request);
        loop {
            let Some(first) = self.waiting.front_mut() else {
                return Ok(Some(started.await));
            };
            tokio::select! {
                biased;
                answer = &mut started => return Ok(Some(answer)),
                answer = &mut first.answer => {
                    let Waiting { api_key, version, correlation_id, .. } =
                        self.waiting.pop_front().expect("it was the first a moment ago");
                    if !self.send(api_key, version, correlation_id, answer).await? {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// False where the connection is to end.
    async fn send(
        &mut self,
        api_key: ApiKey,
        version: i16,
        correlation_id: i32,
        answer: Answer,
    ) -> Result<bool, ConnectionError> {
        let mut answer = answer;
        let response = loop {
            match answer {
                Answer::Response(response) => break response,
                Answer::Later(later) => answer = later.await,
                Answer::Nothing => return Ok(true),
                Answer::Close => return Ok(false),
            }
        };
        let pieces = encode(api_key, version, correlation_id, &response).map_err(|source| ConnectionError::Encode {
            api_key,
            version,
            source,
        })?;
        match timeout(self.limits.write_wait_max, write_frame(&mut self.writer, &pieces)).await {
            Ok(Ok(())) => Ok(true),
            Ok(Err(error)) => Err(ConnectionError::Write(error)),
            Err(_) => Err(ConnectionError::Unread),
        }
    }
}

fn encode(api_key: ApiKey, version: i16, correlation_id: i32, response: &Response) -> Result<Vec<Bytes>, EncodeError> {
    let mut writer = Writer::new();
    encode_response_header(api_key, version, correlation_id, &mut writer)?;
    response.encode(&mut writer, version)?;
    Ok(writer.finish())
}

/// The answer to a version of ApiVersions that is too new: version 0, error 35, and the row that lets the client choose
/// again (KIP-511).
fn unsupported_api_versions((min_version, max_version): (i16, i16)) -> ApiVersionsResponse {
    ApiVersionsResponse {
        error_code: model::ErrorCode::UnsupportedVersion.code(),
        api_keys: vec![ApiVersion {
            api_key: ApiKey::ApiVersions.code(),
            min_version,
            max_version,
            ..ApiVersion::default()
        }],
        ..ApiVersionsResponse::default()
    }
}
