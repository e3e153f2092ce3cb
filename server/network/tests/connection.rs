//! A node behind a real socket: order of answers, versions, limits and hostile bytes.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
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
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{oneshot, watch};

const LONG_ANSWER_BYTES: usize = 30_000;
/// The answers to so many requests fit into no socket's buffers.
const LONG_ANSWERS: i32 = 2_000;

/// Answers ApiVersions, and DescribeCluster only when the test says so, or at once and at length where it holds none.
struct Node {
    versions: Vec<ApiVersionRange>,
    holds: bool,
    held: Mutex<Vec<oneshot::Sender<()>>>,
    dispatched: AtomicUsize,
}

impl Node {
    /// Lets the held answers go, the newest first.
    fn release_all(&self) {
        let held = std::mem::take(&mut *self.held.lock().unwrap());
        held.into_iter().rev().for_each(|release| release.send(()).unwrap());
    }
}

impl Dispatch for Node {
    fn api_versions(&self) -> &[ApiVersionRange] {
        &self.versions
    }

    fn dispatch(self: Arc<Self>, context: RequestContext, request: Request) -> DispatchFuture {
        let correlation_id = context.correlation_id;
        self.dispatched.fetch_add(1, Ordering::SeqCst);
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
                _ if !self.holds => Answer::Later(Box::pin(std::future::ready(Answer::now(DescribeClusterResponse {
                    controller_id: correlation_id,
                    error_message: Some("x".repeat(LONG_ANSWER_BYTES).as_str().into()),
                    ..Default::default()
                })))),
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
    start_with(connections_max, true, Duration::from_secs(60)).await
}

async fn start_with(connections_max: usize, holds: bool, write_wait_max: Duration) -> Running {
    let limits = ListenerLimits {
        connections_max,
        connections_per_address_max: usize::MAX,
        connection: ConnectionLimits {
            frame_bytes_max: 1000,
            first_request_wait_max: Duration::from_secs(60),
            idle_max: Duration::from_secs(60),
            write_wait_max,
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
        holds,
        held: Mutex::default(),
        dispatched: AtomicUsize::new(0),
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

/// DescribeCluster, version 0, framed.
fn describe_cluster(correlation_id: i32) -> Vec<u8> {
    let body = [&b"\0\x3c\0\0"[..], &correlation_id.to_be_bytes(), b"\xff\xff\0\0\0"].concat();
    framed(&body)
}

/// ApiVersions, version 0, framed.
fn api_versions(correlation_id: i32) -> Vec<u8> {
    framed(&[&b"\0\x12\0\0"[..], &correlation_id.to_be_bytes(), b"\xff\xff"].concat())
}

fn framed(body: &[u8]) -> Vec<u8> {
    [&i32::try_from(body.len()).unwrap().to_be_bytes()[..], body].concat()
}

/// The correlation ids of the answers in `wire`; a cut one at its end does not count.
fn answered(mut wire: &[u8]) -> Vec<i32> {
    let mut ids = Vec::new();
    while let Some((length, rest)) = wire.split_first_chunk::<4>()
        && let Some((frame, rest)) = rest.split_at_checked(i32::from_be_bytes(*length).try_into().unwrap())
    {
        ids.push(i32::from_be_bytes(*frame.first_chunk().unwrap()));
        wire = rest;
    }
    ids
}

#[tokio::test]
async fn a_client_that_has_closed_its_half_gets_all_its_answers_in_order() {
    let running = start(10).await;
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    let requests: Vec<u8> = (0..20).flat_map(describe_cluster).collect();
    stream.write_all(&requests).await.unwrap();
    stream.shutdown().await.unwrap();
    wait_until(|| running.node.held.lock().unwrap().len() == 20).await;
    running.node.release_all();
    let mut wire = Vec::new();
    stream.read_to_end(&mut wire).await.unwrap();
    assert_eq!(answered(&wire), (0..20).collect::<Vec<i32>>());
}

#[tokio::test]
async fn no_request_starts_while_many_answers_are_ready_behind_one_that_is_not() {
    let running = start(10).await;
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    let requests: Vec<u8> = [describe_cluster(0), (1..40).flat_map(api_versions).collect()].concat();
    stream.write_all(&requests).await.unwrap();
    stream.shutdown().await.unwrap();
    let dispatched = || running.node.dispatched.load(Ordering::SeqCst);
    wait_until(|| dispatched() >= 9).await;
    // Another connection's round trips: time enough for this one to go too far.
    for _ in 0..10 {
        let before = dispatched();
        assert!(!exchange(running.address, &api_versions(0)[4..]).await.is_empty());
        assert_eq!(dispatched(), before + 1);
    }
    running.node.release_all();
    let mut wire = Vec::new();
    stream.read_to_end(&mut wire).await.unwrap();
    assert_eq!(answered(&wire), (0..40).collect::<Vec<i32>>());
}

#[tokio::test]
async fn a_client_that_leaves_its_answers_unread_is_cut_off() {
    let running = start_with(1, false, Duration::from_millis(200)).await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let stream = socket.connect(running.address).await.unwrap();
    let (mut reader, mut writer) = stream.into_split();
    // The node stops reading when it cannot write, and may be gone before all is sent.
    let sent = tokio::spawn(async move {
        let requests: Vec<u8> = (0..LONG_ANSWERS).flat_map(describe_cluster).collect();
        let _ = writer.write_all(&requests).await;
        writer
    });
    place_is_given_back(running.address).await;
    let mut wire = Vec::new();
    // It ends with what the node had written, or with a reset.
    let _ = reader.read_to_end(&mut wire).await;
    let ids = answered(&wire);
    assert!(ids.len() < LONG_ANSWERS as usize, "{}", ids.len());
    assert_eq!(ids, (0..ids.len() as i32).collect::<Vec<i32>>());
    drop(sent.await.unwrap());
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
    place_is_given_back(running.address).await;
}

/// Until a connection has ended that was the last one allowed.
async fn place_is_given_back(address: SocketAddr) {
    let mut tries = 0;
    while Peer::connect(&address.to_string(), "test").await.is_err() {
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
