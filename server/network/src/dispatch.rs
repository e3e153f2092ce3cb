//! The seam between the wire and a node: who asks, what is asked, and the answer that leaves.

use std::future::Future;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::pin::Pin;
use std::sync::Arc;

use protocol::{ApiKey, Request, Response, Text};

/// Whoever speaks: a type and a name, as Kafka writes them (`User:ANONYMOUS`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Principal {
    pub kind: Arc<str>,
    pub name: Arc<str>,
}

impl Principal {
    /// The one who has not proved to be anybody.
    #[must_use]
    pub fn anonymous() -> Self {
        Principal {
            kind: "User".into(),
            name: "ANONYMOUS".into(),
        }
    }
}

/// All that is known about a request beside its body.
#[derive(Clone, Debug)]
pub struct RequestContext {
    pub principal: Principal,
    /// The name of the listener that it came in by, as in `PLAINTEXT`.
    pub listener: Arc<str>,
    pub client_id: Option<Text>,
    pub client_address: SocketAddr,
    pub correlation_id: i32,
    pub api_version: i16,
}

/// What goes back for a request.
pub enum Answer {
    Response(Box<Response>),
    /// The request has done all that later requests of the connection may build on, and its response is still to come;
    /// the next request may start meanwhile. Responses leave in order all the same.
    Later(Pin<Box<dyn Future<Output = Answer> + Send>>),
    /// No frame goes back: a produce request with acks=0.
    Nothing,
    /// The connection ends: the only way to tell an error to a client that awaits no response.
    Close,
}

impl Answer {
    pub fn now(response: impl Into<Response>) -> Self {
        Answer::Response(Box::new(response.into()))
    }
}

/// The versions of one API that a node serves on a listener, and those that it advertises where they differ.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ApiVersionRange {
    pub api_key: ApiKey,
    pub served: RangeInclusive<i16>,
    /// What ApiVersions says. Wider than `served` only for Produce, whose versions 0–2 are named for librdkafka's sake
    /// though they are refused (KAFKA-18659).
    pub advertised: RangeInclusive<i16>,
}

impl ApiVersionRange {
    /// Served as advertised.
    #[must_use]
    pub fn plain(api_key: ApiKey, versions: RangeInclusive<i16>) -> Self {
        ApiVersionRange {
            api_key,
            served: versions.clone(),
            advertised: versions,
        }
    }
}

pub type DispatchFuture = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// A node as its connections see it.
pub trait Dispatch: Send + Sync + 'static {
    /// What this node serves to clients of its listener, by ascending key. A request for anything else ends the
    /// connection, as it does with Kafka.
    fn api_versions(&self) -> &[ApiVersionRange];

    /// Starts on a request and resolves when it is answered, or when the next request of the connection may start
    /// ([`Answer::Later`]).
    fn dispatch(self: Arc<Self>, context: RequestContext, request: Request) -> DispatchFuture;
}
