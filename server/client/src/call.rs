//! Who answers a request, and how it gets there.
//!
//! ```text
//!   call(context, target, request)
//!        │ routing: target → node
//!        ├── this node ──► its dispatch, as a value, at the greatest version that it serves
//!        └── another  ──► pool ──► network::Peer, encoded at the greatest common version
//! ```
//! A call is one attempt. Whoever knows that an operation may be repeated repeats it; a failure here only makes sure that
//! the next attempt asks again who is responsible.

mod pool;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use model::{BrokerId, GroupId, TopicPartition};
use network::{Answer, CallError, Dispatch, Principal, RequestContext};
use protocol::{ApiKey, Request, Response, Text};
use tokio::time::{Instant, timeout};

use crate::Error;
use crate::routing::Routing;
use pool::{Lane, Pool};

/// OffsetFetch and OffsetCommit speak of topics by id alone from version 10 on. Those who commit name topics, and a name
/// stays valid when a topic is deleted and created again.
const OFFSETS_BY_NAME_VERSION_MAX: i16 = 9;
/// An exchange keeps to its limit by itself and gives up a connection that does not answer; the limit of the whole call
/// must not forestall it.
const LIMIT_SLACK: Duration = Duration::from_millis(100);

/// On whose behalf a call is made.
#[derive(Clone, Debug)]
pub struct CallContext {
    pub principal: Principal,
    /// Where the one behind the call sits, for the node's log; the loopback address where nobody does.
    pub client_address: SocketAddr,
}

impl CallContext {
    #[must_use]
    pub fn new(principal: Principal) -> Self {
        CallContext {
            principal,
            client_address: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0),
        }
    }

    #[must_use]
    pub fn anonymous() -> Self {
        CallContext::new(Principal::anonymous())
    }
}

/// How a client behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// What nodes log and count calls under.
    pub client_id: String,
    /// The listener whose rules and addresses hold for calls in process.
    pub listener: Arc<str>,
    /// How long one call may take, not counting a wait that the request itself asks for; and how long an operation goes
    /// on trying.
    pub call_wait_max: Duration,
    /// How old the knowledge of topics and brokers may get (`metadata.max.age.ms`).
    pub metadata_age_max: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            client_id: "millstream".to_owned(),
            listener: "PLAINTEXT".into(),
            call_wait_max: Duration::from_secs(30),
            metadata_age_max: Duration::from_secs(60),
        }
    }
}

/// Whom a request concerns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// Whoever is at hand: this node, or one that can be reached.
    AnyBroker,
    Broker(BrokerId),
    /// Whoever takes requests to the controller. Brokers of a KRaft cluster all do, so in process it is this node.
    Controller,
    LeaderOf(TopicPartition),
    CoordinatorOf(GroupId),
}

struct Local {
    node: Arc<dyn Dispatch>,
    id: BrokerId,
    correlation: AtomicI32,
}

/// Access to a cluster. Clones share connections and knowledge.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    options: Options,
    local: Option<Local>,
    bootstrap: Vec<String>,
    pool: Pool,
    routing: Routing,
}

/// Where a call goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Route {
    Local,
    Remote(String),
}

impl Client {
    /// A client outside the cluster, which it enters by any of `bootstrap` (`host:port` each).
    ///
    /// # Errors
    /// If none of them can be reached.
    pub async fn connect(bootstrap: &[String], options: Options) -> Result<Self, Error> {
        let client = Client::build(bootstrap.to_vec(), None, options);
        client.any_broker().await?;
        Ok(client)
    }

    /// The client of a node itself: what concerns `broker_id` is handed to `node`.
    #[must_use]
    pub fn in_process(node: Arc<dyn Dispatch>, broker_id: BrokerId, options: Options) -> Self {
        let local = Local {
            node,
            id: broker_id,
            correlation: AtomicI32::new(0),
        };
        Client::build(Vec::new(), Some(local), options)
    }

    fn build(bootstrap: Vec<String>, local: Option<Local>, options: Options) -> Self {
        let pool = Pool::new(&options.client_id);
        let routing = Routing::new(options.metadata_age_max);
        Client {
            inner: Arc::new(Inner {
                options,
                local,
                bootstrap,
                pool,
                routing,
            }),
        }
    }

    #[must_use]
    pub fn options(&self) -> &Options {
        &self.inner.options
    }

    pub(crate) fn routing(&self) -> &Routing {
        &self.inner.routing
    }

    pub(crate) fn local_id(&self) -> Option<BrokerId> {
        self.inner.local.as_ref().map(|local| local.id)
    }

    /// Sends a request to its target and hands back the answer, whatever that says.
    ///
    /// # Errors
    /// If nobody is responsible, the node cannot be reached or does not serve the request, or the time is over.
    pub async fn call(&self, context: &CallContext, target: Target, request: Request) -> Result<Response, Error> {
        let wait = self.inner.options.call_wait_max + asked_wait(&request);
        self.call_within(context, target, request, wait).await
    }

    /// The same with a limit of the caller's own for the whole of it.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub async fn call_within(
        &self,
        context: &CallContext,
        target: Target,
        request: Request,
        wait: Duration,
    ) -> Result<Response, Error> {
        let api_key = request.api_key();
        let start = Instant::now();
        let attempt = async {
            let route = self.route(context, &target).await?;
            let left = wait.saturating_sub(start.elapsed());
            self.exchange(context, &route, request, left).await
        };
        let result = match timeout(wait + LIMIT_SLACK, attempt).await {
            Ok(result) => result,
            Err(_) => Err(Error::Timeout {
                what: format!("finding {target:?} for {api_key:?}"),
                waited: wait,
            }),
        };
        if let Err(error) = &result {
            self.doubt(&target, error);
        }
        result
    }

    /// Forgets who was responsible if `error`, an answer's or a call's, speaks against it.
    pub(crate) fn doubt(&self, target: &Target, error: &Error) {
        if !error.doubts_routing() {
            return;
        }
        match target {
            Target::LeaderOf(partition) => self.inner.routing.forget_topic(&partition.topic),
            Target::CoordinatorOf(group) => self.inner.routing.forget_coordinator(group),
            Target::Controller | Target::Broker(_) => self.inner.routing.forget_brokers(),
            Target::AnyBroker => {}
        }
    }

    async fn route(&self, context: &CallContext, target: &Target) -> Result<Route, Error> {
        match target {
            Target::AnyBroker => self.any_broker().await,
            Target::Controller if self.inner.local.is_some() => Ok(Route::Local),
            Target::Controller => match self.controller(context).await? {
                Some(id) => self.broker(context, id).await,
                None => self.any_broker().await,
            },
            Target::Broker(id) => self.broker(context, *id).await,
            Target::LeaderOf(partition) => {
                let leader = self.leader(context, partition).await?;
                self.broker(context, leader).await
            }
            Target::CoordinatorOf(group) => {
                let coordinator = self.coordinator(context, group).await?;
                self.broker(context, coordinator).await
            }
        }
    }

    async fn broker(&self, context: &CallContext, id: BrokerId) -> Result<Route, Error> {
        if self.local_id() == Some(id) {
            return Ok(Route::Local);
        }
        let node = self.node(context, id).await?;
        Ok(Route::Remote(node.address()))
    }

    /// This node, or the first that can be connected to among those known and those to begin with.
    pub(crate) async fn any_broker(&self) -> Result<Route, Error> {
        if self.inner.local.is_some() {
            return Ok(Route::Local);
        }
        let mut addresses = self.inner.routing.addresses();
        for address in &self.inner.bootstrap {
            if !addresses.contains(address) {
                addresses.push(address.clone());
            }
        }
        let mut last = None;
        for address in &addresses {
            match self.inner.pool.shared(address).await {
                Ok(_) => return Ok(Route::Remote(address.clone())),
                Err(error) => last = Some(error),
            }
        }
        Err(Error::NoBroker {
            addresses: addresses.join(", "),
            source: last,
        })
    }

    /// One exchange with a node that has been chosen.
    pub(crate) async fn exchange(
        &self,
        context: &CallContext,
        route: &Route,
        request: Request,
        wait: Duration,
    ) -> Result<Response, Error> {
        match (route, &self.inner.local) {
            (Route::Local, Some(local)) => {
                let what = format!("{:?} in process", request.api_key());
                let call = local.call(context, &self.inner.options, request);
                let answer = timeout(wait, call).await;
                answer.map_err(|_| Error::Timeout { what, waited: wait })?
            }
            (Route::Local, None) => unreachable!("only a client in process routes to its own node"),
            (Route::Remote(address), _) => {
                let call = self.inner.pool.call(address, lane(&request), request, wait);
                call.await.map_err(|source| match source {
                    CallError::Unsupported { api_key, .. } => Error::Unsupported(api_key),
                    source => Error::Call {
                        address: address.clone(),
                        source,
                    },
                })
            }
        }
    }
}

impl Local {
    async fn call(&self, context: &CallContext, options: &Options, request: Request) -> Result<Response, Error> {
        let api_key = request.api_key();
        let served = self.node.api_versions().iter().find(|range| range.api_key == api_key);
        let api_version = served
            .map(|range| (*range.served.start(), (*range.served.end()).min(version_max(api_key))))
            .filter(|(low, high)| low <= high)
            .map(|(_, high)| high)
            .ok_or(Error::Unsupported(api_key))?;
        let request_context = RequestContext {
            principal: context.principal.clone(),
            listener: options.listener.clone(),
            client_id: Some(Text::from(options.client_id.as_str())),
            client_address: context.client_address,
            correlation_id: self.correlation.fetch_add(1, Ordering::Relaxed) & i32::MAX,
            api_version,
        };
        let mut answer = self.node.clone().dispatch(request_context, request).await;
        loop {
            match answer {
                Answer::Response(response) => return Ok(*response),
                Answer::Later(later) => answer = later.await,
                Answer::Nothing | Answer::Close => return Err(Error::Closed(api_key)),
            }
        }
    }
}

/// The greatest version that this crate speaks where that is not the codec's.
pub(crate) fn version_max(api_key: ApiKey) -> i16 {
    match api_key {
        ApiKey::OffsetFetch | ApiKey::OffsetCommit => OFFSETS_BY_NAME_VERSION_MAX,
        _ => i16::MAX,
    }
}

/// How long a request lets the node wait before it answers.
fn asked_wait(request: &Request) -> Duration {
    let asked_ms = match request {
        Request::Fetch(fetch) => fetch.max_wait_ms,
        Request::JoinGroup(join) => join.rebalance_timeout_ms.max(join.session_timeout_ms),
        _ => 0,
    };
    Duration::from_millis(u64::try_from(asked_ms).unwrap_or(0))
}

/// Answers leave a connection in the order of its requests, so one that may take long needs a connection to itself.
fn lane(request: &Request) -> Lane {
    match request {
        Request::Fetch(fetch) if fetch.max_wait_ms > 0 => Lane::Exclusive,
        Request::JoinGroup(_) | Request::SyncGroup(_) => Lane::Exclusive,
        _ => Lane::Shared,
    }
}
