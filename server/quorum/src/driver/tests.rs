//! The task: many callers at once, one log.

use model::{BrokerId, Uuid};
use protocol::messages::broker_heartbeat_request::BrokerHeartbeatRequest;
use protocol::messages::describe_quorum_request::{DescribeQuorumRequest, PartitionData, TopicData};
use protocol::messages::fetch_request::FetchRequest;
use storage::SimDisk;

use super::*;
use crate::node::tests::{create, directory, formatted, options, register};

/// A node whose broker 1 is unfenced.
async fn running(disk: &SimDisk, directory_id: Uuid, incarnation: u8) -> Quorum {
    let quorum = start(disk.clone(), &directory(), options(directory_id, incarnation)).unwrap();
    let handle = quorum.handle();
    let Ok(Response::BrokerRegistration(registered)) = handle.call(register(incarnation), 4).await else {
        panic!("registration")
    };
    let applied = handle.image().end_offset.get() - 1;
    let heartbeat = BrokerHeartbeatRequest {
        broker_id: 1,
        broker_epoch: registered.broker_epoch,
        current_metadata_offset: applied,
        ..BrokerHeartbeatRequest::default()
    };
    let Ok(Response::BrokerHeartbeat(beat)) = handle.call(heartbeat, 2).await else {
        panic!("heartbeat")
    };
    assert!(!beat.is_fenced);
    quorum
}

#[tokio::test]
async fn whoever_is_answered_finds_what_was_said_and_finds_it_after_a_restart() {
    let disk = SimDisk::new(1);
    let directory_id = formatted(&disk);
    let quorum = running(&disk, directory_id, 1).await;
    let calls: Vec<_> = (0..50)
        .map(|number| {
            let handle = quorum.handle();
            tokio::spawn(async move {
                let name = format!("t{number}");
                let Ok(Response::CreateTopics(response)) = handle.call(create(&name, 2), 7).await else {
                    panic!("creation")
                };
                assert_eq!(response.topics[0].error_code, 0);
                assert!(handle.image().topics.by_name(&name).is_some());
            })
        })
        .collect();
    for call in calls {
        call.await.unwrap();
    }
    let id = quorum.handle().snapshot().await;
    assert!(id.is_some());
    quorum.stop().await.unwrap();
    let quorum = running(&disk, directory_id, 2).await;
    assert_eq!(quorum.handle().image().topics.len(), 50);
    quorum.stop().await.unwrap();
}

#[tokio::test]
async fn the_stream_follows_the_log_and_ends_with_the_node() {
    let disk = SimDisk::new(2);
    let directory_id = formatted(&disk);
    let quorum = running(&disk, directory_id, 1).await;
    let handle = quorum.handle();
    let mut stream = handle.subscribe();
    assert!(stream.next().await.unwrap().delta.brokers.contains(&BrokerId::new(1)));
    handle.call(create("t", 1), 7).await.unwrap();
    let published = loop {
        let published = stream.next().await.unwrap();
        if !published.delta.topics.is_empty() {
            break published;
        }
    };
    assert!(published.image.topics.by_name("t").is_some());
    quorum.stop().await.unwrap();
    while stream.next().await.is_some() {}
    assert_eq!(handle.call(create("late", 1), 7).await, Err(ControllerError::Stopped));
}

#[tokio::test]
async fn the_leader_describes_the_quorum_and_refuses_what_it_does_not_serve() {
    let disk = SimDisk::new(3);
    let directory_id = formatted(&disk);
    let quorum = running(&disk, directory_id, 1).await;
    let handle = quorum.handle();
    let request = DescribeQuorumRequest {
        topics: vec![TopicData {
            topic_name: "__cluster_metadata".into(),
            partitions: vec![PartitionData::default()],
            ..TopicData::default()
        }],
        ..DescribeQuorumRequest::default()
    };
    let Ok(Response::DescribeQuorum(described)) = handle.call(request, 2).await else {
        panic!("description")
    };
    let partition = &described.topics[0].partitions[0];
    assert_eq!((partition.leader_id, partition.leader_epoch), (1, 1));
    assert_eq!(partition.current_voters[0].replica_directory_id, directory_id);
    assert_eq!(
        handle.call(FetchRequest::default(), 18).await,
        Err(ControllerError::NotServed)
    );
    quorum.stop().await.unwrap();
}
