//! A connection to another node: asks its versions first, then sends requests and matches the answers to them.
//!
//! Requests leave in the order of the calls; answers come back in that order, as the protocol promises, so a queue of
//! waiting callers is all the bookkeeping there is. When anything goes wrong the connection is over and every waiting
//! caller is told.

use std::collections::BTreeMap;
use std::io;
use std::ops::RangeInclusive;
use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use model::ErrorCode;
use protocol::header::{decode_response_header, encode_request_header};
use protocol::messages::api_versions_request::ApiVersionsRequest;
use protocol::{ApiKey, DecodeError, EncodeError, Reader, Request, Response, Text, Writer};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::frame::{FrameReader, write_frame};

/// How many calls may wait for their answers on one connection; a further one waits for a place.
const CALLS_WAITING_MAX: usize = 64;
/// The greatest answer that is accepted: what a fetch may ask for, and room for the rest.
const ANSWER_BYTES_MAX: usize = 128 * 1024 * 1024;
/// How long connecting and the exchange of versions may take.
const CONNECT_WAIT_MAX: Duration = Duration::from_secs(10);
/// The version of ApiVersions that is tried first; every node since Kafka 2.4 knows it.
const API_VERSIONS_VERSION: i16 = 3;

/// Why a call to another node has no answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    #[error("connecting to {address}")]
    Connect {
        address: String,
        #[source]
        source: io::Error,
    },
    #[error("{address} did not answer within {} ms", wait.as_millis())]
    Timeout { address: String, wait: Duration },
    #[error("the connection to {address} ended before the answer came")]
    Disconnected { address: String },
    #[error("{address} serves no version of {api_key:?} that is known here")]
    Unsupported { address: String, api_key: ApiKey },
    #[error("encoding {api_key:?}")]
    Encode {
        api_key: ApiKey,
        #[source]
        source: EncodeError,
    },
    #[error("decoding the answer to {api_key:?} from {address}")]
    Decode {
        address: String,
        api_key: ApiKey,
        #[source]
        source: DecodeError,
    },
    #[error("{address} refused to tell its versions: {code}")]
    Refused { address: String, code: i16 },
}

struct Outgoing {
    pieces: Vec<Bytes>,
    answer: oneshot::Sender<Bytes>,
}

/// An open connection to a node. Calls may come from any task.
pub struct Peer {
    address: String,
    client_id: Text,
    versions: BTreeMap<ApiKey, RangeInclusive<i16>>,
    outgoing: mpsc::Sender<Outgoing>,
    correlation: Mutex<i32>,
}

impl Peer {
    /// Connects to `host:port` and learns which versions it serves.
    ///
    /// # Errors
    /// If nobody listens there, it is no Kafka node, or it takes too long.
    pub async fn connect(address: &str, client_id: &str) -> Result<Self, CallError> {
        let wait = CONNECT_WAIT_MAX;
        timeout(wait, Self::open(address, client_id))
            .await
            .map_err(|_| CallError::Timeout {
                address: address.to_owned(),
                wait,
            })?
    }

    async fn open(address: &str, client_id: &str) -> Result<Self, CallError> {
        let error = |source| CallError::Connect {
            address: address.to_owned(),
            source,
        };
        let stream = TcpStream::connect(address).await.map_err(error)?;
        stream.set_nodelay(true).map_err(error)?;
        let (outgoing, queue) = mpsc::channel(CALLS_WAITING_MAX);
        tokio::spawn(exchange(stream, queue));
        let mut peer = Peer {
            address: address.to_owned(),
            client_id: Text::from(client_id),
            versions: BTreeMap::new(),
            outgoing,
            correlation: Mutex::new(0),
        };
        let request = ApiVersionsRequest {
            client_software_name: Text::from("millstream"),
            client_software_version: Text::from(env!("CARGO_PKG_VERSION")),
            ..ApiVersionsRequest::default()
        };
        let response = peer.exchange(Request::from(request), API_VERSIONS_VERSION).await?;
        let Response::ApiVersions(told) = response else {
            return Err(CallError::Disconnected {
                address: address.to_owned(),
            });
        };
        if told.error_code != ErrorCode::None.code() {
            return Err(CallError::Refused {
                address: address.to_owned(),
                code: told.error_code,
            });
        }
        peer.versions = told
            .api_keys
            .iter()
            .filter_map(|row| Some((ApiKey::from_code(row.api_key)?, row.min_version..=row.max_version)))
            .collect();
        Ok(peer)
    }

    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Whether the connection can still be used.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.outgoing.is_closed()
    }

    /// The greatest version of an API that both sides know, at most `at_most`.
    ///
    /// # Errors
    /// If there is none.
    pub fn version(&self, api_key: ApiKey, at_most: i16) -> Result<i16, CallError> {
        let ours = api_key.versions();
        self.versions
            .get(&api_key)
            .map(|theirs| {
                (
                    *theirs.start().max(ours.start()),
                    (*theirs.end().min(ours.end())).min(at_most),
                )
            })
            .filter(|(low, high)| low <= high)
            .map(|(_, high)| high)
            .ok_or_else(|| CallError::Unsupported {
                address: self.address.clone(),
                api_key,
            })
    }

    /// Sends a request in the greatest common version and waits at most `wait` for its answer.
    ///
    /// # Errors
    /// If there is no common version, the connection ends, the wait is over or the answer cannot be decoded.
    pub async fn call(&self, request: Request, wait: Duration) -> Result<Response, CallError> {
        let version = self.version(request.api_key(), i16::MAX)?;
        self.call_version(request, version, wait).await
    }

    /// The same in a version that the caller has chosen by [`Peer::version`].
    ///
    /// # Errors
    /// As [`Peer::call`].
    pub async fn call_version(&self, request: Request, version: i16, wait: Duration) -> Result<Response, CallError> {
        timeout(wait, self.exchange(request, version))
            .await
            .map_err(|_| CallError::Timeout {
                address: self.address.clone(),
                wait,
            })?
    }

    async fn exchange(&self, request: Request, version: i16) -> Result<Response, CallError> {
        let api_key = request.api_key();
        let correlation_id = self.next_correlation_id();
        let pieces = self
            .encode(&request, version, correlation_id)
            .map_err(|source| CallError::Encode { api_key, source })?;
        let disconnected = || CallError::Disconnected {
            address: self.address.clone(),
        };
        let (sender, answer) = oneshot::channel();
        let outgoing = Outgoing { pieces, answer: sender };
        self.outgoing.send(outgoing).await.map_err(|_| disconnected())?;
        let frame = answer.await.map_err(|_| disconnected())?;
        let decode = |source| CallError::Decode {
            address: self.address.clone(),
            api_key,
            source,
        };
        let mut reader = Reader::new(frame);
        let answered = decode_response_header(api_key, version, &mut reader).map_err(decode)?;
        if answered != correlation_id {
            return Err(disconnected());
        }
        Response::decode(api_key, version, &mut reader).map_err(decode)
    }

    fn next_correlation_id(&self) -> i32 {
        let mut next = self
            .correlation
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        *next = next.wrapping_add(1) & i32::MAX;
        *next
    }

    fn encode(&self, request: &Request, version: i16, correlation_id: i32) -> Result<Vec<Bytes>, EncodeError> {
        let mut writer = Writer::new();
        encode_request_header(
            request.api_key(),
            version,
            correlation_id,
            Some(&self.client_id),
            &mut writer,
        )?;
        request.encode(&mut writer, version)?;
        Ok(writer.finish())
    }
}

/// Writes what comes and hands each frame that comes back to the caller whose turn it is. Ends, and with it every
/// waiting call, when the socket fails or the peer is dropped.
async fn exchange(stream: TcpStream, mut queue: mpsc::Receiver<Outgoing>) {
    let (reader, mut writer) = stream.into_split();
    let mut frames = FrameReader::new(reader, ANSWER_BYTES_MAX);
    let (waiting, mut turns) = mpsc::channel::<oneshot::Sender<Bytes>>(CALLS_WAITING_MAX);
    let read = async move {
        while let Ok(Some(frame)) = frames.next().await {
            // An answer that nobody has asked for ends the connection.
            let Ok(turn) = turns.try_recv() else { return };
            // The caller may have stopped waiting: the answer is dropped.
            let _ = turn.send(frame);
        }
    };
    let write = async move {
        while let Some(Outgoing { pieces, answer }) = queue.recv().await {
            if waiting.send(answer).await.is_err() || write_frame(&mut writer, &pieces).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = read => {}
        () = write => {}
    }
}
