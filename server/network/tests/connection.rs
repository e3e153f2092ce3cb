//! A node behind a real socket: order of answers, versions, limits and hostile bytes.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use network::{
    Answer, ApiVersionRange, CallError, ConnectionLimits, Dispatch, DispatchFuture, Listener, ListenerLimits, Peer,
    RequestContext,
};
use protocol::messages::api_versions_response::{ApiVersion, ApiVersionsResponse};
use protocol::messages::describe_cluster_request::DescribeClusterRequest;
use protocol::messages::describe_cluster_response::DescribeClusterResponse;
use protocol::{ApiKey, Request, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{oneshot, watch};

/// Answers ApiVersions, and DescribeCluster only when the test says so.
struct Node {
    versions: Vec<ApiVersionRange>,
    held: Mutex<Vec<oneshot::Sender<()>>>,
}

impl Dispatch for Node {
    fn api_versions(&self) -> &[ApiVersionRange] {
        &self.versions
    }

    fn dispatch(self: Arc<Self>, context: RequestContext, request: Request) -> DispatchFuture {
        let correlation_id = context.correlation_id;
        Box::pin(async move {
            match request {
                Request::ApiVersions(_) => Answer::now(ApiVersionsResponse {
                    api_keys: self
                        .versions
                        .iter()
                        .map(|range| ApiVersion {
                            api_key: range.api_key.code(),
                            min_version: *range.advertised.start(),
                            max_version: *range.advertised.end(),
                            ..Default::default()
                        })
                        .collect(),
                    ..Default::default()
                }),
                _ => {
                    let (release, released) = oneshot::channel();
                    self.held.lock().unwrap().push(release);
                    Answer::Later(Box::pin(async move {
                        let _ = released.await;
                        Answer::now(DescribeClusterResponse {
                            controller_id: correlation_id,
                            ..Default::default()
                        })
                    }))
                }
            }
        })
    }
}

struct Running {
    node: Arc<Node>,
    address: SocketAddr,
    stop: watch::Sender<bool>,
    served: tokio::task::JoinHandle<()>,
}

async fn start(connections_max: usize) -> Running {
    let limits = ListenerLimits {
        connections_max,
        connections_per_address_max: usize::MAX,
        connection: ConnectionLimits {
            frame_bytes_max: 1000,
            first_request_wait_max: Duration::from_secs(60),
            idle_max: Duration::from_secs(60),
            write_wait_max: Duration::from_secs(60),
        },
    };
    let listener = Listener::bind("PLAINTEXT", "127.0.0.1", 0, limits).await.unwrap();
    let address = listener.local_address().unwrap();
    let versions = vec![
        ApiVersionRange::plain(ApiKey::ApiVersions, 0..=3),
        ApiVersionRange::plain(ApiKey::DescribeCluster, 0..=1),
    ];
    let node = Arc::new(Node {
        versions,
        held: Mutex::default(),
    });
    let (stop, stopped) = watch::channel(false);
    let served = tokio::spawn(listener.serve(node.clone(), stopped));
    Running {
        node,
        address,
        stop,
        served,
    }
}

async fn exchange(address: SocketAddr, frame: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream
        .write_all(&i32::try_from(frame.len()).unwrap().to_be_bytes())
        .await
        .unwrap();
    stream.write_all(frame).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn answers_leave_in_the_order_of_the_requests() {
    let running = start(10).await;
    let peer = Arc::new(Peer::connect(&running.address.to_string(), "test").await.unwrap());
    let call = |peer: Arc<Peer>| async move {
        let request = Request::from(DescribeClusterRequest::default());
        match peer.call(request, Duration::from_secs(60)).await.unwrap() {
            Response::DescribeCluster(response) => response.controller_id,
            other => panic!("{other:?}"),
        }
    };
    let first = tokio::spawn(call(peer.clone()));
    wait_until(|| running.node.held.lock().unwrap().len() == 1).await;
    let second = tokio::spawn(call(peer.clone()));
    wait_until(|| running.node.held.lock().unwrap().len() == 2).await;
    // The second is ready first, and must wait for the first all the same.
    let mut held: Vec<_> = std::mem::take(&mut *running.node.held.lock().unwrap());
    held.pop().unwrap().send(()).unwrap();
    held.pop().unwrap().send(()).unwrap();
    let (first, second) = (first.await.unwrap(), second.await.unwrap());
    assert!(first < second, "{first} {second}");
}

#[tokio::test]
async fn a_version_of_api_versions_from_the_future_is_answered_in_version_0() {
    let running = start(10).await;
    let answer = exchange(running.address, b"\0\x12\0\x63\0\0\0\x07\xff\xff\0\x01\x01\0").await;
    let expected = b"\0\0\0\x10\0\0\0\x07\0\x23\0\0\0\x01\0\x12\0\0\0\x03";
    assert_eq!(answer, expected);
}

#[tokio::test]
async fn what_is_not_served_ends_the_connection_and_no_other() {
    let running = start(10).await;
    // An unknown key, a version that is not served, a body that ends too soon, a header that does.
    let hostile: [&[u8]; 4] = [
        b"\x7f\xff\0\0\0\0\0\x01\xff\xff",
        b"\0\x3c\0\x02\0\0\0\x01\xff\xff\0",
        b"\0\x3c\0\x01\0\0\0\x01\xff\xff",
        b"\0",
    ];
    for frame in hostile {
        assert_eq!(exchange(running.address, frame).await, b"", "{frame:?}");
    }
    assert!(Peer::connect(&running.address.to_string(), "test").await.is_ok());
}

#[tokio::test]
async fn connections_beyond_the_limit_are_refused_until_one_ends() {
    let running = start(1).await;
    let address = running.address.to_string();
    let first = Peer::connect(&address, "test").await.unwrap();
    assert!(matches!(
        Peer::connect(&address, "test").await,
        Err(CallError::Disconnected { .. } | CallError::Connect { .. })
    ));
    drop(first);
    let mut tries = 0;
    while Peer::connect(&address, "test").await.is_err() {
        tries += 1;
        assert!(tries < 1000, "the place was not given back");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn stopping_ends_every_connection() {
    let running = start(10).await;
    let peer = Peer::connect(&running.address.to_string(), "test").await.unwrap();
    running.stop.send(true).unwrap();
    running.served.await.unwrap();
    let request = Request::from(DescribeClusterRequest::default());
    assert!(matches!(
        peer.call(request, Duration::from_secs(60)).await,
        Err(CallError::Disconnected { .. })
    ));
}

async fn wait_until(mut done: impl FnMut() -> bool) {
    for _ in 0..1000 {
        if done() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it did not come to pass within ten seconds");
}
