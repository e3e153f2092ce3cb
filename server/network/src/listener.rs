//! A listener: accepts connections within its limits and serves each in a task of its own.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::{info, warn};

use crate::connection::{Connection, ConnectionLimits};
use crate::dispatch::Dispatch;

/// How long to wait after the system has refused to accept (no file descriptor left, say).
const ACCEPT_RETRY_WAIT: Duration = Duration::from_millis(100);

/// How many connections a listener serves at a time, and what each may do.
#[derive(Clone, Debug)]
pub struct ListenerLimits {
    /// `max.connections`
    pub connections_max: usize,
    /// `max.connections.per.ip`
    pub connections_per_address_max: usize,
    pub connection: ConnectionLimits,
}

/// Why a listener cannot start.
#[derive(Debug, thiserror::Error)]
#[error("binding listener {listener} to {address}")]
pub struct BindError {
    pub listener: String,
    pub address: String,
    #[source]
    pub source: io::Error,
}

/// A bound socket that accepts no connection yet.
pub struct Listener {
    name: Arc<str>,
    sockets: Vec<TcpListener>,
    limits: ListenerLimits,
}

/// How many connections there are from each address; entries of zero are removed.
type Census = Arc<Mutex<BTreeMap<IpAddr, usize>>>;

impl Listener {
    /// Binds to each address that `host` stands for; an empty host is every address of the machine.
    ///
    /// # Errors
    /// If the name cannot be resolved or an address cannot be bound.
    pub async fn bind(name: &str, host: &str, port: u16, limits: ListenerLimits) -> Result<Self, BindError> {
        let host = if host.is_empty() { "0.0.0.0" } else { host };
        let error = |source| BindError {
            listener: name.to_owned(),
            address: format!("{host}:{port}"),
            source,
        };
        let mut sockets = Vec::new();
        let addresses: Vec<SocketAddr> = tokio::net::lookup_host((host, port)).await.map_err(error)?.collect();
        for address in addresses {
            match TcpListener::bind(address).await {
                Ok(socket) => sockets.push(socket),
                // `localhost` may name an IPv6 address on a machine that has none.
                Err(source) if source.kind() == io::ErrorKind::AddrNotAvailable && !sockets.is_empty() => {}
                Err(source) => return Err(error(source)),
            }
        }
        if sockets.is_empty() {
            return Err(error(io::ErrorKind::AddrNotAvailable.into()));
        }
        Ok(Listener {
            name: name.into(),
            sockets,
            limits,
        })
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The first address it is bound to, with the port that the system chose where 0 was asked for.
    ///
    /// # Errors
    /// If the system cannot tell.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.sockets
            .first()
            .ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected))?
            .local_addr()
    }

    /// Accepts and serves until `stop` turns true; then ends every connection.
    pub async fn serve<N: Dispatch>(self, node: Arc<N>, stop: watch::Receiver<bool>) {
        let Listener { name, sockets, limits } = self;
        let census = Census::default();
        let mut acceptors = JoinSet::new();
        for socket in sockets {
            acceptors.spawn(accept(
                socket,
                name.clone(),
                limits.clone(),
                node.clone(),
                census.clone(),
                stop.clone(),
            ));
        }
        while acceptors.join_next().await.is_some() {}
        info!(listener = %name, "listener stopped");
    }
}

async fn accept<N: Dispatch>(
    socket: TcpListener,
    name: Arc<str>,
    limits: ListenerLimits,
    node: Arc<N>,
    census: Census,
    mut stop: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = stopped(&mut stop) => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = socket.accept() => match accepted {
                Ok((stream, client)) => {
                    let Some(seat) = Seat::take(&census, client.ip(), &limits) else {
                        warn!(listener = %name, %client, "connection refused: too many");
                        continue;
                    };
                    if let Err(error) = prepare(&stream) {
                        warn!(listener = %name, %client, %error, "connection refused");
                        continue;
                    }
                    let connection =
                        Connection::new(node.clone(), name.clone(), client, stream, limits.connection.clone());
                    connections.spawn(async move {
                        connection.run().await;
                        drop(seat);
                    });
                }
                Err(error) => {
                    warn!(listener = %name, %error, "accepting a connection failed");
                    tokio::time::sleep(ACCEPT_RETRY_WAIT).await;
                }
            },
        }
    }
}

/// Returns when listening is to end; also when whoever could say so is gone.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)
}

/// A connection's place among the allowed ones; given back when dropped.
struct Seat {
    census: Census,
    address: IpAddr,
}

impl Seat {
    fn take(census: &Census, address: IpAddr, limits: &ListenerLimits) -> Option<Seat> {
        let mut counts = census.lock().unwrap_or_else(PoisonError::into_inner);
        let here = counts.get(&address).copied().unwrap_or(0);
        if counts.values().sum::<usize>() >= limits.connections_max || here >= limits.connections_per_address_max {
            return None;
        }
        counts.insert(address, here + 1);
        Some(Seat {
            census: census.clone(),
            address,
        })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut counts = self.census.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.address);
            }
        }
    }
}
