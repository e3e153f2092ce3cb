//! Serves connections: so many at a time, each with deadlines, and all of them ended when the door closes.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::gateway::{Gateway, GatewayParts, Shared};
use crate::guard::Ends;
use crate::routes;

/// How long accepting rests after an error, as when there are no more file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// What a connection may buffer: of a body, or of answers to requests that came at once. Never less than the headers.
const BUFFER_BYTES_MAX: usize = 128 * 1024;
const HEADERS_MAX: usize = 100;

/// Serves HTTP on the listeners until `stop` becomes true, or its sender is gone; then lets requests that are under way
/// end.
///
/// # Errors
/// If a listener cannot say where it listens.
pub async fn serve(listeners: Vec<TcpListener>, parts: GatewayParts, stop: watch::Receiver<bool>) -> io::Result<()> {
    let gateway: Gateway = Arc::new(Shared::new(parts, stop.clone()));
    let router = routes::router(gateway.clone());
    let room = Arc::new(Semaphore::new(gateway.limits.connections_max.max(1)));
    let mut doors = JoinSet::new();
    for listener in listeners {
        tracing::info!(address = %listener.local_addr()?, "serving HTTP");
        doors.spawn(accept(
            listener,
            gateway.clone(),
            router.clone(),
            room.clone(),
            stop.clone(),
        ));
    }
    while doors.join_next().await.is_some() {}
    Ok(())
}

/// Takes connections of one listener; comes back when they have ended.
async fn accept(
    listener: TcpListener,
    gateway: Gateway,
    router: Router,
    room: Arc<Semaphore>,
    mut stop: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            biased;
            () = stopped(&mut stop) => break,
            accepted = next(&listener, &room) => accepted,
        };
        match accepted {
            Ok((stream, permit)) => {
                let served = connection(stream, gateway.clone(), router.clone(), stop.clone());
                connections.spawn(async move {
                    served.await;
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "accepting an HTTP connection failed");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    let ended = async { while connections.join_next().await.is_some() {} };
    if timeout(gateway.limits.stop_wait_max, ended).await.is_err() {
        tracing::warn!("HTTP requests that did not end in time are cut off");
        connections.abort_all();
    }
}

/// The next connection, once there is room for one.
async fn next(listener: &TcpListener, room: &Arc<Semaphore>) -> io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let permit = room
        .clone()
        .acquire_owned()
        .await
        .expect("the semaphore is never closed");
    let (stream, _) = listener.accept().await?;
    Ok((stream, permit))
}

async fn connection(stream: TcpStream, gateway: Gateway, router: Router, mut stop: watch::Receiver<bool>) {
    let (Ok(remote), Ok(local)) = (stream.peer_addr(), stream.local_addr()) else {
        return;
    };
    // Answers are written whole; waiting for more to send only delays them.
    let _ = stream.set_nodelay(true);
    let _counted = gateway.metrics.connection();
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(Ends { remote, local });
        router.call(request)
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(gateway.limits.header_wait_max)
        .max_headers(HEADERS_MAX)
        .max_buf_size(BUFFER_BYTES_MAX.max(gateway.limits.header_bytes_max))
        .serve_connection(TokioIo::new(stream), service);
    let mut serving = std::pin::pin!(serving);
    let ended = tokio::select! {
        ended = serving.as_mut() => ended,
        () = stopped(&mut stop) => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, %remote, "an HTTP connection broke off");
    }
}

/// Resolves when the door closes.
pub(crate) async fn stopped(stop: &mut watch::Receiver<bool>) {
    // A sender that has gone can no longer say so.
    let _ = stop.wait_for(|stop| *stop).await;
}
