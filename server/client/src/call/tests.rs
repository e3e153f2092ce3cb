//! Where calls go, in which version, and what failures are called.

use std::sync::Arc;
use std::time::Duration;

use model::{BrokerId, ErrorCode};
use network::{ConnectionLimits, Listener, ListenerLimits, Principal};
use protocol::ApiKey;
use protocol::messages::describe_cluster_request::DescribeClusterRequest;
use protocol::messages::find_coordinator_request::FindCoordinatorRequest;
use protocol::messages::metadata_request::MetadataRequest;
use protocol::messages::offset_fetch_request::{OffsetFetchRequest, OffsetFetchRequestGroup};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::*;
use crate::fake_node::{FakeNode, Fault, partition, topic};

fn group(id: &str) -> GroupId {
    GroupId::new(id).unwrap()
}

#[tokio::test]
async fn a_call_in_process_is_made_at_the_greatest_version_and_for_its_principal() {
    let node = FakeNode::with_partitions(1);
    let principal = Principal {
        kind: "User".into(),
        name: "alice".into(),
    };
    let request = MetadataRequest::default();
    node.client()
        .call(&CallContext::new(principal), Target::AnyBroker, request.into())
        .await
        .unwrap();
    assert_eq!(node.state().asked, [(ApiKey::Metadata, 13, "alice".to_owned())]);
}

#[tokio::test]
async fn offsets_of_groups_are_asked_for_by_name() {
    let node = FakeNode::with_partitions(1);
    let wanted = OffsetFetchRequestGroup {
        group_id: "g".into(),
        ..Default::default()
    };
    let request = OffsetFetchRequest {
        groups: vec![wanted],
        ..Default::default()
    };
    let target = Target::CoordinatorOf(group("g"));
    node.client()
        .call(&CallContext::anonymous(), target, request.into())
        .await
        .unwrap();
    assert_eq!(
        node.state().asked.last().map(|asked| (asked.0, asked.1)),
        Some((ApiKey::OffsetFetch, 9))
    );
}

#[tokio::test]
async fn an_api_that_is_not_served_is_an_error_of_its_own() {
    let node = FakeNode::serving_only(ApiKey::Metadata, 0..=5);
    let request = DescribeClusterRequest::default();
    let error = node
        .client()
        .call(&CallContext::anonymous(), Target::AnyBroker, request.into())
        .await
        .unwrap_err();
    assert!(
        matches!(error, Error::Unsupported(ApiKey::DescribeCluster)),
        "{error:?}"
    );
    assert!(node.state().asked.is_empty());
}

#[tokio::test]
async fn a_node_that_ends_the_exchange_leaves_the_outcome_open() {
    let node = FakeNode::with_partitions(1);
    node.fail_next(ApiKey::Metadata, [Fault::Close]);
    let request = MetadataRequest::default();
    let error = node
        .client()
        .call(&CallContext::anonymous(), Target::AnyBroker, request.into())
        .await
        .unwrap_err();
    assert!(
        matches!(error, Error::Closed(ApiKey::Metadata)) && error.leaves_outcome_open(),
        "{error:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_topic_is_asked_for_once_until_it_is_too_old() {
    let node = FakeNode::with_partitions(1);
    let client = node.client();
    let context = CallContext::anonymous();
    let lookups = (0..50).map(|_| {
        let (client, context) = (client.clone(), context.clone());
        tokio::spawn(async move { client.topic(&context, &topic("first")).await.unwrap() })
    });
    for lookup in lookups.collect::<Vec<_>>() {
        lookup.await.unwrap();
    }
    assert_eq!(node.asked(ApiKey::Metadata), 1);
    tokio::time::advance(client.options().metadata_age_max).await;
    client.topic(&context, &topic("first")).await.unwrap();
    assert_eq!(node.asked(ApiKey::Metadata), 2);
}

#[tokio::test]
async fn a_partition_that_was_added_is_found() {
    let node = FakeNode::with_partitions(1);
    let client = node.client();
    let context = CallContext::anonymous();
    client.topic(&context, &topic("first")).await.unwrap();
    node.add_topic("first", 2);
    assert_eq!(
        client.leader(&context, &partition("first", 1)).await.unwrap(),
        BrokerId::new(1)
    );
    let error = client.leader(&context, &partition("first", 2)).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::UnknownTopicOrPartition);
}

#[tokio::test]
async fn a_partition_without_a_leader_is_looked_up_again_each_time() {
    let node = FakeNode::with_partitions(1);
    let client = node.client();
    let context = CallContext::anonymous();
    node.state().topics.get_mut(&topic("first")).unwrap().leader = -1;
    let error = client.leader(&context, &partition("first", 0)).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::LeaderNotAvailable);
    node.state().topics.get_mut(&topic("first")).unwrap().leader = 1;
    assert_eq!(
        client.leader(&context, &partition("first", 0)).await.unwrap(),
        BrokerId::new(1)
    );
}

#[tokio::test]
async fn an_answer_against_a_coordinator_makes_the_next_call_ask_again() {
    let node = FakeNode::with_partitions(1);
    let client = node.client();
    let context = CallContext::anonymous();
    client.coordinator(&context, &group("g")).await.unwrap();
    client.coordinator(&context, &group("g")).await.unwrap();
    assert_eq!(node.asked(ApiKey::FindCoordinator), 1);
    let error = Error::refused(ErrorCode::NotCoordinator.code(), None, "committing");
    client.doubt(&Target::CoordinatorOf(group("g")), &error);
    client.coordinator(&context, &group("g")).await.unwrap();
    assert_eq!(node.asked(ApiKey::FindCoordinator), 2);
}

/// The node behind a socket, until it is stopped.
struct Served {
    address: String,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

impl Served {
    async fn start(node: &Arc<FakeNode>, port: u16) -> Served {
        let limits = ListenerLimits {
            connections_max: 100,
            connections_per_address_max: 100,
            connection: ConnectionLimits {
                frame_bytes_max: 1 << 20,
                first_request_wait_max: Duration::from_secs(10),
                idle_max: Duration::from_secs(60),
                write_wait_max: Duration::from_secs(10),
            },
        };
        let listener = Listener::bind("PLAINTEXT", "127.0.0.1", port, limits).await.unwrap();
        let address = listener.local_address().unwrap();
        node.state().address = Some((address.ip().to_string(), i32::from(address.port())));
        let (stop, stopped) = watch::channel(false);
        let serving = tokio::spawn(listener.serve(node.clone(), stopped));
        Served {
            address: address.to_string(),
            stop,
            serving,
        }
    }

    async fn stop(self) {
        self.stop.send_replace(true);
        self.serving.await.unwrap();
    }
}

#[tokio::test]
async fn a_client_outside_finds_leaders_and_coordinators_over_the_wire() {
    let node = FakeNode::with_partitions(2);
    let served = Served::start(&node, 0).await;
    let client = Client::connect(std::slice::from_ref(&served.address), Options::default())
        .await
        .unwrap();
    let context = CallContext::anonymous();
    assert_eq!(client.nodes(&context).await.unwrap()[0].address(), served.address);
    let request = FindCoordinatorRequest {
        coordinator_keys: vec!["g".into()],
        ..Default::default()
    };
    client
        .call(&context, Target::LeaderOf(partition("first", 1)), request.into())
        .await
        .unwrap();
    client.coordinator(&context, &group("g")).await.unwrap();
    served.stop().await;
}

#[tokio::test]
async fn a_connection_that_broke_is_replaced_by_the_next_call() {
    let node = FakeNode::with_partitions(1);
    let served = Served::start(&node, 0).await;
    let port = served.address.rsplit_once(':').unwrap().1.parse().unwrap();
    let client = Client::connect(std::slice::from_ref(&served.address), Options::default())
        .await
        .unwrap();
    let context = CallContext::anonymous();
    client.describe_topic(&context, &topic("first")).await.unwrap();
    served.stop().await;
    let served = Served::start(&node, port).await;
    client.describe_topic(&context, &topic("first")).await.unwrap();
    served.stop().await;
}

#[tokio::test]
async fn who_cannot_be_reached_is_named() {
    let unbound = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .to_string();
    let error = Client::connect(std::slice::from_ref(&unbound), Options::default())
        .await
        .err()
        .unwrap();
    assert!(
        matches!(&error, Error::NoBroker { addresses, .. } if *addresses == unbound),
        "{error:?}"
    );
}
