//! What the door is given by the one who opens it, and what its handlers share.

use std::sync::Arc;
use std::time::Duration;

use client::{CallContext, Client, Producer, ProducerOptions};
use plugin::{Host, RunningPlugins};
use tokio::sync::{Semaphore, watch};

use crate::coders::Coders;
use crate::compaction::Compaction;
use crate::deployments::Changes;
use crate::metrics::Metrics;

/// What the door may be asked to bear.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The most a request's body may have.
    pub body_bytes_max: usize,
    /// The most that bodies of all requests may take at one time; past it, requests are asked to come again.
    pub bodies_bytes_max: usize,
    /// How long a body may take to arrive.
    pub body_wait_max: Duration,
    /// How many modules are uploaded at once; each may take as many bytes as a module may have, beside the other bodies.
    pub uploads_max: usize,
    /// How long a module may take to arrive.
    pub upload_wait_max: Duration,
    /// The most that a request's line and headers may have together.
    pub header_bytes_max: usize,
    /// How long a request's headers may take to arrive, on a new connection and on one that was kept.
    pub header_wait_max: Duration,
    /// How many connections are served at once; more wait to be accepted.
    pub connections_max: usize,
    /// How many event streams are open at once.
    pub streams_max: usize,
    /// How long requests that are under way get to finish once the door is told to close.
    pub stop_wait_max: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            body_bytes_max: 8 * 1024 * 1024,
            bodies_bytes_max: 24 * 1024 * 1024,
            body_wait_max: Duration::from_secs(30),
            uploads_max: 2,
            upload_wait_max: Duration::from_secs(120),
            header_bytes_max: 16 * 1024,
            header_wait_max: Duration::from_secs(10),
            connections_max: 1024,
            streams_max: 256,
            stop_wait_max: Duration::from_secs(5),
        }
    }
}

/// Whether the node serves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Readiness {
    /// Not yet, and what it waits for.
    Starting(String),
    Ready,
    Stopping,
}

/// What program this is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Build {
    pub version: String,
    /// The commit it was built from, or `unknown`.
    pub commit: String,
}

/// What a gateway is made of.
pub struct GatewayParts {
    pub client: Client,
    /// What is deployed, and what it is doing on this node.
    pub plugins: Arc<dyn RunningPlugins>,
    /// Looks at modules before they are taken.
    pub host: Arc<dyn Host>,
    /// What other parts of the node count.
    pub figures: Figures,
    /// How far topics are compacted.
    pub compaction: Compaction,
    pub build: Build,
    pub readiness: watch::Receiver<Readiness>,
    pub limits: Limits,
    /// Hosts that requests may name beside the loopback ones and the address that they came in by: `name`, for any port,
    /// or `name:port`. Origins of these hosts are let in, too.
    pub allowed_hosts: Vec<String>,
}

/// Gives what other parts of the node count, each time anew.
pub type Figures = Arc<dyn Fn() -> Vec<Figure> + Send + Sync>;

/// One number for the page of metrics.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Figure {
    pub name: &'static str,
    pub help: &'static str,
    /// It only grows.
    pub is_counter: bool,
    pub value: f64,
}

/// What handlers share.
pub(crate) struct Shared {
    pub(crate) client: Client,
    pub(crate) producer: Producer,
    pub(crate) plugins: Arc<dyn RunningPlugins>,
    pub(crate) host: Arc<dyn Host>,
    /// Whose turn it is to change what is deployed.
    pub(crate) changes: Changes,
    /// The plugins between topics and those who read and write them here.
    pub(crate) coders: Coders,
    pub(crate) figures: Figures,
    pub(crate) compaction: Compaction,
    pub(crate) build: Build,
    pub(crate) readiness: watch::Receiver<Readiness>,
    pub(crate) limits: Limits,
    pub(crate) allowed_hosts: Vec<String>,
    pub(crate) metrics: Metrics,
    /// KiB that bodies may still take.
    pub(crate) bodies: Arc<Semaphore>,
    /// Modules that may still be uploaded at the same time.
    pub(crate) uploads: Arc<Semaphore>,
    /// Event streams that may still be opened.
    pub(crate) streams: Arc<Semaphore>,
    /// Reads that may still gather records at the same time.
    pub(crate) reads: Semaphore,
    /// True once the door closes: streams end.
    pub(crate) stop: watch::Receiver<bool>,
}

/// The state of the router.
pub(crate) type Gateway = Arc<Shared>;

/// What one KiB of a body counts.
pub(crate) const BODY_PERMIT_BYTES: usize = 1024;
/// How many reads gather records at the same time.
const READS_MAX: usize = 16;

impl Shared {
    pub(crate) fn new(parts: GatewayParts, stop: watch::Receiver<bool>) -> Self {
        let options = ProducerOptions::default();
        let permits = (parts.limits.bodies_bytes_max / BODY_PERMIT_BYTES).clamp(1, Semaphore::MAX_PERMITS);
        Shared {
            producer: Producer::new(parts.client.clone(), CallContext::anonymous(), options),
            client: parts.client,
            coders: Coders::new(parts.plugins.clone()),
            plugins: parts.plugins,
            host: parts.host,
            changes: Changes::default(),
            metrics: Metrics::new(&parts.build),
            figures: parts.figures,
            compaction: parts.compaction,
            build: parts.build,
            readiness: parts.readiness,
            allowed_hosts: parts.allowed_hosts,
            bodies: Arc::new(Semaphore::new(permits)),
            uploads: Arc::new(Semaphore::new(parts.limits.uploads_max.max(1))),
            streams: Arc::new(Semaphore::new(parts.limits.streams_max)),
            reads: Semaphore::new(READS_MAX),
            limits: parts.limits,
            stop,
        }
    }
}
