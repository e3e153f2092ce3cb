//! AlterPartition and elections.

use protocol::messages::alter_partition_request::{AlterPartitionRequest, BrokerState, PartitionData, TopicData};

use super::*;

/// A topic of one partition with replicas 0, 1 and 2, led by 0.
fn three() -> Cluster {
    let mut cluster = Cluster::with_brokers(3);
    let assignment = protocol::messages::create_topics_request::CreatableReplicaAssignment {
        broker_ids: vec![0, 1, 2],
        ..Default::default()
    };
    let by_hand = CreatableTopic {
        assignments: vec![assignment],
        ..topic("t", -1, -1)
    };
    let configured = with_configs(by_hand, &[("min.insync.replicas", Some("2"))]);
    assert_eq!(cluster.create(vec![configured]), [(ErrorCode::None, None)]);
    cluster
}

fn proposal(cluster: &Cluster, in_sync: &[i32]) -> PartitionData {
    let partition = cluster.partition("t", 0);
    let states = in_sync.iter().map(|id| BrokerState {
        broker_id: *id,
        broker_epoch: -1,
        ..Default::default()
    });
    PartitionData {
        leader_epoch: partition.leader_epoch.get(),
        partition_epoch: partition.partition_epoch.get(),
        new_isr_with_epochs: states.collect(),
        ..Default::default()
    }
}

fn propose(cluster: &mut Cluster, broker: i32, proposal: PartitionData) -> ErrorCode {
    let topic = TopicData {
        topic_id: cluster.image().topics.by_name("t").unwrap().id,
        partitions: vec![proposal],
        ..Default::default()
    };
    let request = AlterPartitionRequest {
        broker_id: broker,
        broker_epoch: cluster.epoch_of(broker),
        topics: vec![topic],
        ..Default::default()
    };
    let response = cluster
        .op(|controller, _| controller.alter_partition(&request, 3))
        .unwrap();
    code(response.topics[0].partitions[0].error_code)
}

#[test]
fn the_leader_shrinks_and_expands_the_in_sync_replicas() {
    let mut cluster = three();
    let smaller = proposal(&cluster, &[0, 1]);
    assert_eq!(propose(&mut cluster, 0, smaller.clone()), ErrorCode::None);
    assert_eq!(
        cluster.state("t", 0),
        "leader Some(0) isr [0, 1] elr [] last [] Recovered epochs 0 1"
    );
    assert_eq!(propose(&mut cluster, 0, smaller), ErrorCode::InvalidUpdateVersion);
    // Below the minimum of two, who leaves stays eligible.
    let alone = proposal(&cluster, &[0]);
    assert_eq!(propose(&mut cluster, 0, alone), ErrorCode::None);
    assert_eq!(
        cluster.state("t", 0),
        "leader Some(0) isr [0] elr [1] last [] Recovered epochs 0 2"
    );
    let all = proposal(&cluster, &[0, 2, 1]);
    assert_eq!(propose(&mut cluster, 0, all), ErrorCode::None);
    assert_eq!(
        cluster.state("t", 0),
        "leader Some(0) isr [0, 2, 1] elr [] last [] Recovered epochs 0 3"
    );
}

#[test]
fn proposals_that_do_not_fit_are_refused() {
    let mut cluster = three();
    let good = proposal(&cluster, &[0, 1]);
    let mut refused = |broker, change: &dyn Fn(&mut PartitionData)| {
        let mut bad = good.clone();
        change(&mut bad);
        propose(&mut cluster, broker, bad)
    };
    assert_eq!(refused(0, &|bad| bad.leader_epoch += 1), ErrorCode::NotController);
    assert_eq!(refused(0, &|bad| bad.partition_epoch += 1), ErrorCode::NotController);
    assert_eq!(refused(0, &|bad| bad.leader_epoch -= 1), ErrorCode::FencedLeaderEpoch);
    assert_eq!(
        refused(0, &|bad| bad.partition_epoch -= 1),
        ErrorCode::InvalidUpdateVersion
    );
    assert_eq!(refused(1, &|_| {}), ErrorCode::InvalidRequest);
    assert_eq!(
        refused(0, &|bad| bad.partition_index = 7),
        ErrorCode::UnknownTopicOrPartition
    );
    assert_eq!(
        refused(0, &|bad| bad.new_isr_with_epochs[0].broker_id = 2),
        ErrorCode::InvalidRequest
    );
    assert_eq!(
        refused(0, &|bad| bad.new_isr_with_epochs[1].broker_id = 9),
        ErrorCode::InvalidRequest
    );
    assert_eq!(
        refused(0, &|bad| bad.new_isr_with_epochs[1].broker_epoch = 3),
        ErrorCode::IneligibleReplica
    );
    assert_eq!(
        refused(0, &|bad| bad.leader_recovery_state = 1),
        ErrorCode::InvalidRequest
    );
    assert_eq!(
        cluster.state("t", 0),
        "leader Some(0) isr [0, 1, 2] elr [] last [] Recovered epochs 0 0"
    );
}

#[test]
fn a_fenced_replica_is_not_taken_into_the_in_sync_replicas() {
    let mut cluster = three();
    let fence = BrokerHeartbeatRequest {
        want_fence: true,
        ..cluster.alive(2)
    };
    assert!(cluster.heartbeat(&fence).unwrap().is_fenced);
    assert_eq!(
        cluster.state("t", 0),
        "leader Some(0) isr [0, 1] elr [] last [] Recovered epochs 0 1"
    );
    let with_fenced = proposal(&cluster, &[0, 1, 2]);
    assert_eq!(propose(&mut cluster, 0, with_fenced), ErrorCode::IneligibleReplica);
}

#[test]
fn leadership_goes_down_the_replicas_and_waits_for_an_eligible_one() {
    let mut cluster = three();
    let mut fence = |id| {
        let request = BrokerHeartbeatRequest {
            want_fence: true,
            ..cluster.alive(id)
        };
        cluster.heartbeat(&request).unwrap();
        cluster.state("t", 0)
    };
    assert_eq!(
        fence(0),
        "leader Some(1) isr [1, 2] elr [] last [] Recovered epochs 1 1"
    );
    assert_eq!(fence(1), "leader Some(2) isr [2] elr [1] last [] Recovered epochs 2 2");
    assert_eq!(fence(2), "leader None isr [] elr [1, 2] last [2] Recovered epochs 3 3");
    // 0 left while enough were in sync: it may lack records.
    cluster.heartbeat(&cluster.alive(0)).unwrap();
    assert_eq!(cluster.partition("t", 0).leader, None);
    cluster.heartbeat(&cluster.alive(1)).unwrap();
    assert_eq!(
        cluster.state("t", 0),
        "leader Some(1) isr [1] elr [2] last [] Recovered epochs 4 4"
    );
}

/// The bytes are those that Apache Kafka 4.4.0's controller wrote for the same request, but for the topic's id.
#[test]
fn an_unclean_leader_tells_that_it_has_recovered() {
    let mut cluster = Cluster::with_brokers(1);
    cluster.create(vec![topic("t", 1, 1)]);
    cluster.pass(9_000);
    cluster.register(&registration(0, 2)).unwrap();
    cluster.heartbeat(&cluster.alive(0)).unwrap();
    let still = PartitionData {
        leader_recovery_state: 1,
        ..proposal(&cluster, &[0])
    };
    let at = cluster.log.len();
    assert_eq!(propose(&mut cluster, 0, still), ErrorCode::None);
    assert_eq!(cluster.log.len(), at);

    let recovered = proposal(&cluster, &[0]);
    assert_eq!(propose(&mut cluster, 0, recovered), ErrorCode::None);
    assert_eq!(
        cluster.state("t", 0),
        "leader Some(0) isr [0] elr [] last [] Recovered epochs 2 3"
    );
    let [record] = &cluster.log[at..] else {
        panic!("one record")
    };
    let id = cluster.image().topics.by_name("t").unwrap().id;
    let wanted = [&[1, 5, 2, 0, 0, 0, 0][..], id.as_bytes(), &[1, 5, 1, 0]].concat();
    assert_eq!(seal(record.clone(), MetadataVersion::LATEST).unwrap().bytes, wanted);
    let again = PartitionData {
        leader_recovery_state: 1,
        ..proposal(&cluster, &[0])
    };
    assert_eq!(propose(&mut cluster, 0, again), ErrorCode::InvalidRequest);
}
