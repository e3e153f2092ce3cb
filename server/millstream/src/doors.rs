//! The node's sockets: bound early, so that a port in use is told before anything is written, and opened late.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, bail};
use broker::Advertised;
use metadata::config_keys::{BrokerSettings, ConnectionSettings, Endpoint, Listener as Setting, SecurityProtocol};
use network::{ConnectionLimits, Listener, ListenerLimits};
use rustix::system::uname;
use tokio::net::TcpListener;

/// How long a new connection may take for its first whole request.
const FIRST_REQUEST_WAIT_MAX: Duration = Duration::from_secs(10);
/// How long a client may leave an answer unread.
const WRITE_WAIT_MAX: Duration = Duration::from_secs(60);
/// For idle connections that may stay: no process lives so long.
const FOR_EVER: Duration = Duration::from_secs(u32::MAX as u64);

/// The bound sockets of both roles.
pub(crate) struct Doors {
    pub(crate) broker: Vec<Listener>,
    pub(crate) controller: Vec<Listener>,
    pub(crate) http: Vec<TcpListener>,
}

/// Where others are told to find this node.
pub(crate) struct AdvertisedEndpoints {
    pub(crate) broker: Vec<Advertised>,
    pub(crate) controller: Vec<Advertised>,
}

impl Doors {
    pub(crate) async fn bind(settings: &BrokerSettings) -> anyhow::Result<Self> {
        let limits = limits(&settings.connections);
        Ok(Doors {
            broker: bind(&settings.listeners.broker, &limits).await?,
            controller: bind(&settings.listeners.controller, &limits).await?,
            http: bind_http(&settings.http_listeners).await?,
        })
    }

    /// The advertised addresses, with the ports that the system chose and the machine's name filled in.
    pub(crate) fn advertised(&self, settings: &BrokerSettings) -> anyhow::Result<AdvertisedEndpoints> {
        Ok(AdvertisedEndpoints {
            broker: advertise(&settings.listeners.advertised, &self.broker)?,
            controller: advertise(&settings.listeners.advertised_controller, &self.controller)?,
        })
    }
}

async fn bind(settings: &[Setting], limits: &ListenerLimits) -> anyhow::Result<Vec<Listener>> {
    let mut bound = Vec::new();
    for setting in settings {
        if setting.protocol != SecurityProtocol::Plaintext {
            bail!(
                "listener {} is {:?}: only PLAINTEXT is supported so far",
                setting.name,
                setting.protocol
            );
        }
        let host = setting.host.as_deref().unwrap_or_default();
        bound.push(Listener::bind(&setting.name, host, setting.port, limits.clone()).await?);
    }
    Ok(bound)
}

async fn bind_http(addresses: &[SocketAddr]) -> anyhow::Result<Vec<TcpListener>> {
    let mut bound = Vec::new();
    for address in addresses {
        let listener = TcpListener::bind(address).await;
        bound.push(listener.with_context(|| format!("binding the HTTP listener to {address}"))?);
    }
    Ok(bound)
}

fn advertise(endpoints: &[Endpoint], bound: &[Listener]) -> anyhow::Result<Vec<Advertised>> {
    let advertised = endpoints.iter().map(|endpoint| {
        let socket = bound.iter().find(|listener| listener.name() == endpoint.name);
        let port = match (endpoint.address.port, socket) {
            (0, Some(listener)) => listener.local_address().context("asking for a listener's port")?.port(),
            (port, _) => port,
        };
        let host = match endpoint.address.host.as_str() {
            "" => uname().nodename().to_string_lossy().into_owned(),
            host => host.to_owned(),
        };
        Ok(Advertised {
            name: endpoint.name.clone(),
            host,
            port,
            security_protocol: endpoint.protocol.code(),
        })
    });
    advertised.collect()
}

fn limits(settings: &ConnectionSettings) -> ListenerLimits {
    ListenerLimits {
        connections_max: settings.connections_max,
        connections_per_address_max: settings.connections_per_ip_max,
        connection: ConnectionLimits {
            frame_bytes_max: settings.request_bytes_max,
            first_request_wait_max: FIRST_REQUEST_WAIT_MAX,
            idle_max: settings.idle_max.unwrap_or(FOR_EVER),
            write_wait_max: WRITE_WAIT_MAX,
        },
    }
}
