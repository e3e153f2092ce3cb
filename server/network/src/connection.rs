//! One connection: reads requests, starts them in order, and lets their answers leave in that order.
//!
//! A request starts when the one before it has been answered, or has said that its answer comes later
//! ([`Answer::Later`](crate::Answer::Later)). So appends keep the order of the wire while several wait for the disk; how
//! many may is for [`Answers`] to say. While answers are owed, none of them waits for the next request.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use protocol::header::{HeaderError, decode_request_header};
use protocol::messages::api_versions_response::{ApiVersion, ApiVersionsResponse};
use protocol::{ApiKey, DecodeError, Reader, Request};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;
use tracing::{debug, warn};

use crate::answers::{AnswerError, Answers, Asked, Next, Outgoing};
use crate::dispatch::{Answer, Dispatch, Principal, RequestContext};
use crate::frame::{FrameError, FrameReader, write_frames};

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
    #[error(transparent)]
    Encode(#[from] AnswerError),
    #[error("writing an answer")]
    Write(#[source] std::io::Error),
    #[error("the client did not read its answer in time")]
    Unread,
    #[error("no whole request came in time")]
    Idle,
}

/// A client's socket and the node behind it.
pub(crate) struct Connection<N> {
    node: Arc<N>,
    listener: Arc<str>,
    client_address: SocketAddr,
    frames: FrameReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
    limits: ConnectionLimits,
    answers: Answers,
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
            answers: Answers::default(),
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
            Err(error @ ConnectionError::Encode(_)) => {
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

    /// The next request's frame; sends meanwhile whatever gets ready. Requests that came together are started together, so
    /// that their answers may leave together.
    async fn next_frame(&mut self, wait: Duration) -> Result<Option<Bytes>, ConnectionError> {
        loop {
            if self.answers.is_empty() {
                return match timeout(wait, self.frames.next()).await {
                    Ok(frame) => Ok(frame?),
                    Err(_) => Err(ConnectionError::Idle),
                };
            }
            let room = self.answers.has_room();
            if room && self.frames.has_frame() {
                return Ok(self.frames.next().await?);
            }
            tokio::select! {
                biased;
                outgoing = self.answers.take_ready() => {
                    if !self.send(outgoing).await? {
                        return Ok(None);
                    }
                }
                frame = self.frames.next(), if room => return Ok(frame?),
            }
        }
    }

    /// Sends what is still owed when the client has closed its half: it may be reading yet.
    async fn finish(&mut self) -> Result<(), ConnectionError> {
        while !self.answers.is_empty() {
            let outgoing = self.answers.take_ready().await;
            if !self.send(outgoing).await? {
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
            let asked = Asked {
                api_key,
                version: 0,
                correlation_id,
            };
            self.answers.push(asked, Answer::now(refusal));
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
        let asked = Asked {
            api_key,
            version,
            correlation_id,
        };
        self.answers.push(asked, answer);
        Ok(true)
    }

    /// Waits for a request's first half, and sends meanwhile whatever gets ready of those before it. `None` where the
    /// connection is to end.
    async fn answer(&mut self, context: RequestContext, request: Request) -> Result<Option<Answer>, ConnectionError> {
        let mut started = self.node.clone().dispatch(context, request);
        loop {
            tokio::select! {
                biased;
                answer = &mut started => return Ok(Some(answer)),
                outgoing = self.answers.take_ready(), if !self.answers.is_empty() => {
                    if !self.send(outgoing).await? {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// False where the connection is to end.
    async fn send(&mut self, outgoing: Outgoing) -> Result<bool, ConnectionError> {
        if !outgoing.frames.is_empty() {
            let write = write_frames(&mut self.writer, &outgoing.frames);
            match timeout(self.limits.write_wait_max, write).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return Err(ConnectionError::Write(error)),
                Err(_) => return Err(ConnectionError::Unread),
            }
        }
        match outgoing.next {
            Next::Serve => Ok(true),
            Next::Close => Ok(false),
            Next::Fail(error) => Err(error.into()),
        }
    }
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
