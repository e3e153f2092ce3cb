//! Registration, heartbeats, fencing and shutdown.

use protocol::messages::assign_replicas_to_dirs_request::{
    AssignReplicasToDirsRequest, DirectoryData, PartitionData, TopicData,
};

use super::*;
use protocol::internal_records::metadata::FeatureLevelRecord;

#[test]
fn a_broker_is_fenced_until_it_has_caught_up_with_its_registration() {
    let mut cluster = Cluster::founded();
    let epoch = cluster.register(&registration(0, 1)).unwrap();
    assert_eq!(epoch, 12);
    let behind = BrokerHeartbeatRequest {
        current_metadata_offset: 11,
        ..cluster.alive(0)
    };
    let response = cluster.heartbeat(&behind).unwrap();
    assert!(response.is_fenced && !response.is_caught_up);
    let waiting = BrokerHeartbeatRequest {
        want_fence: true,
        ..cluster.alive(0)
    };
    let response = cluster.heartbeat(&waiting).unwrap();
    assert!(response.is_fenced && response.is_caught_up);
    assert!(!cluster.heartbeat(&cluster.alive(0)).unwrap().is_fenced);
    assert!(cluster.image().cluster.is_active(BrokerId::new(0)));
}

#[test]
fn another_incarnation_is_refused_while_the_first_is_heard_of() {
    let mut cluster = Cluster::with_brokers(1);
    assert_eq!(
        cluster.register(&registration(0, 2)).unwrap_err().code,
        ErrorCode::DuplicateBrokerRegistration
    );
    cluster.pass(8_999);
    assert_eq!(
        cluster.register(&registration(0, 2)).unwrap_err().code,
        ErrorCode::DuplicateBrokerRegistration
    );
    cluster.pass(1);
    let old = cluster.epoch_of(0);
    assert!(cluster.register(&registration(0, 2)).unwrap() > old);
    let stale = BrokerHeartbeatRequest {
        broker_epoch: old,
        ..cluster.alive(0)
    };
    assert_eq!(cluster.heartbeat(&stale).unwrap_err().code, ErrorCode::StaleBrokerEpoch);
}

#[test]
fn the_same_incarnation_keeps_its_epoch_and_fencing() {
    let mut cluster = Cluster::with_brokers(1);
    let epoch = cluster.epoch_of(0);
    assert_eq!(cluster.register(&registration(0, 1)), Ok(epoch));
    assert!(cluster.image().cluster.is_active(BrokerId::new(0)));
}

#[test]
fn registrations_that_do_not_fit_the_cluster_are_refused() {
    let mut cluster = Cluster::with_brokers(1);
    let mut refused = |change: &dyn Fn(&mut BrokerRegistrationRequest)| {
        let mut request = registration(1, 1);
        change(&mut request);
        cluster.register(&request).unwrap_err()
    };
    assert_eq!(
        refused(&|request| request.cluster_id = "other".into()).code,
        ErrorCode::InconsistentClusterId
    );
    assert_eq!(
        refused(&|request| request.log_dirs.clear()).code,
        ErrorCode::InvalidRegistration
    );
    assert_eq!(
        refused(&|request| request.log_dirs = vec![Uuid::ONE]).code,
        ErrorCode::InvalidRegistration
    );
    let taken = refused(&|request| request.log_dirs = registration(0, 1).log_dirs);
    assert!(
        taken
            .message
            .unwrap()
            .starts_with("Broker 0 is already registered with directory ")
    );
    let repeated = refused(&|request| request.log_dirs.push(request.log_dirs[0]));
    assert_eq!(repeated.message.as_deref(), Some("Duplicate directory ID in request"));
    assert_eq!(
        refused(&|request| request.features.clear()).code,
        ErrorCode::InvalidRegistration
    );
    let unlisted = refused(&|request| request.features.retain(|feature| &*feature.name != "kraft.version"));
    assert_eq!(
        unlisted.message.as_deref(),
        Some(
            "Unable to register because the broker does not support finalized version 1 of kraft.version. The broker \
             wants a version between 0 and 0, inclusive."
        )
    );
    assert_eq!(unlisted.code, ErrorCode::UnsupportedVersion);
}

#[test]
fn a_silent_broker_is_fenced_after_its_session_and_comes_back_under_its_epoch() {
    let mut cluster = Cluster::with_brokers(2);
    cluster.create(vec![topic("t", 1, 2)]);
    let leader = cluster.partition("t", 0).leader.unwrap().get();
    let other = 1 - leader;
    cluster.pass(8_999);
    assert!(cluster.controller.fence_stale_broker(cluster.now).is_none());
    cluster.heartbeat(&cluster.alive(other)).unwrap();
    cluster.pass(1);
    let outcome = cluster.controller.fence_stale_broker(cluster.now).unwrap();
    let names: Vec<&str> = outcome.records.iter().map(MetadataRecord::name).collect();
    assert_eq!(names, ["PartitionChangeRecord", "BrokerRegistrationChangeRecord"]);
    cluster.append(outcome);
    assert_eq!(cluster.partition("t", 0).leader, Some(BrokerId::new(other)));
    assert!(cluster.controller.fence_stale_broker(cluster.now).is_none());
    let epoch = cluster.epoch_of(leader);
    assert!(!cluster.heartbeat(&cluster.alive(leader)).unwrap().is_fenced);
    assert_eq!(cluster.epoch_of(leader), epoch);
}

#[test]
fn controlled_shutdown_moves_leaders_and_ends_when_the_others_know() {
    let mut cluster = Cluster::with_brokers(2);
    cluster.create(vec![topic("t", 4, 2)]);
    let leaving = BrokerHeartbeatRequest {
        want_shut_down: true,
        ..cluster.alive(0)
    };
    let response = cluster.heartbeat(&leaving).unwrap();
    assert!(!response.should_shut_down && !response.is_fenced);
    for index in 0..4 {
        assert_eq!(cluster.partition("t", index).leader, Some(BrokerId::new(1)));
    }
    let behind = BrokerHeartbeatRequest {
        want_shut_down: true,
        ..cluster.alive(0)
    };
    assert!(!cluster.heartbeat(&behind).unwrap().should_shut_down);
    cluster.heartbeat(&cluster.alive(1)).unwrap();
    let response = cluster.heartbeat(&behind).unwrap();
    assert!(response.should_shut_down && response.is_fenced);
    assert!(cluster.image().cluster.broker(BrokerId::new(0)).unwrap().fenced);
}

#[test]
fn the_only_broker_may_stop_and_its_partitions_wait_for_it() {
    let mut cluster = Cluster::with_brokers(1);
    cluster.create(vec![topic("t", 1, 1)]);
    let leaving = |cluster: &Cluster| BrokerHeartbeatRequest {
        want_shut_down: true,
        ..cluster.alive(0)
    };
    let at = cluster.log.len();
    assert!(!cluster.heartbeat(&leaving(&cluster)).unwrap().should_shut_down);
    assert_eq!(
        cluster.state("t", 0),
        "leader None isr [] elr [0] last [0] Recovered epochs 1 1"
    );
    assert!(cluster.heartbeat(&leaving(&cluster)).unwrap().should_shut_down);
    let names: Vec<&str> = cluster.log[at..].iter().map(MetadataRecord::name).collect();
    // As Kafka 4.4.0 writes it.
    let change = "BrokerRegistrationChangeRecord";
    assert_eq!(names, [change, "PartitionChangeRecord", change]);
    let clean = BrokerRegistrationRequest {
        previous_broker_epoch: cluster.epoch_of(0),
        ..registration(0, 2)
    };
    cluster.register(&clean).unwrap();
    cluster.heartbeat(&cluster.alive(0)).unwrap();
    assert_eq!(
        cluster.state("t", 0),
        "leader Some(0) isr [0] elr [] last [] Recovered epochs 2 2"
    );
}

#[test]
fn the_only_broker_leads_again_after_a_crash_but_uncleanly() {
    let mut cluster = Cluster::with_brokers(1);
    cluster.create(vec![topic("t", 1, 1)]);
    cluster.pass(9_000);
    cluster.register(&registration(0, 2)).unwrap();
    assert_eq!(
        cluster.state("t", 0),
        "leader None isr [] elr [] last [0] Recovered epochs 1 1"
    );
    cluster.heartbeat(&cluster.alive(0)).unwrap();
    assert_eq!(
        cluster.state("t", 0),
        "leader Some(0) isr [0] elr [] last [] Recovering epochs 2 2"
    );
}

#[test]
fn cordoned_and_offline_directories_change_the_registration() {
    let mut cluster = Cluster::founded();
    let directories = vec![Uuid::from_bytes([1; 16]), Uuid::from_bytes([2; 16])];
    let two = BrokerRegistrationRequest {
        log_dirs: directories.clone(),
        ..registration(0, 1)
    };
    cluster.register(&two).unwrap();
    let first = BrokerHeartbeatRequest {
        cordoned_log_dirs: Some(Vec::new()),
        ..cluster.alive(0)
    };
    cluster.heartbeat(&first).unwrap();
    let at = cluster.log.len();
    let again = BrokerHeartbeatRequest {
        cordoned_log_dirs: Some(Vec::new()),
        ..cluster.alive(0)
    };
    cluster.heartbeat(&again).unwrap();
    assert_eq!(cluster.log.len(), at);
    let offline = BrokerHeartbeatRequest {
        offline_log_dirs: directories[..1].to_vec(),
        ..cluster.alive(0)
    };
    cluster.heartbeat(&offline).unwrap();
    assert_eq!(
        cluster.image().cluster.broker(BrokerId::new(0)).unwrap().directories,
        directories[1..]
    );
}

#[test]
fn a_level_without_cordoned_directories_has_none_in_log_and_snapshot() {
    let mut cluster = Cluster::with_brokers(1);
    let cordoned = |cluster: &Cluster, directories: &[Uuid]| BrokerHeartbeatRequest {
        cordoned_log_dirs: Some(directories.to_vec()),
        ..cluster.alive(0)
    };
    let request = cordoned(&cluster, &[]);
    cluster.heartbeat(&request).unwrap();
    let broker = cluster.image().cluster.broker(BrokerId::new(0)).unwrap();
    assert_eq!(broker.cordoned_directories.as_deref(), Some(&[][..]));
    let level = FeatureLevelRecord {
        name: MetadataVersion::FEATURE.into(),
        feature_level: 25,
        ..FeatureLevelRecord::default()
    };
    cluster.append(Outcome {
        records: vec![level.into()],
        response: (),
    });
    let version = cluster.image().features.metadata_version().unwrap();
    for record in cluster.image().records() {
        seal(record, version).unwrap();
    }
    let before = cluster.log.len();
    let request = cordoned(&cluster, &[Uuid::from_bytes([7; 16])]);
    cluster.heartbeat(&request).unwrap();
    assert_eq!(cluster.log.len(), before, "nothing that the level does not have");
}

/// A cluster of broker 0 with two directories and a topic of two partitions, of which the first lies in the first.
fn with_two_directories() -> (Cluster, [Uuid; 2]) {
    let mut cluster = Cluster::founded();
    let directories = [Uuid::from_bytes([1; 16]), Uuid::from_bytes([2; 16])];
    let two = BrokerRegistrationRequest {
        log_dirs: directories.to_vec(),
        ..registration(0, 1)
    };
    cluster.register(&two).unwrap();
    cluster.heartbeat(&cluster.alive(0)).unwrap();
    cluster.create(vec![topic("t", 2, 1)]);
    assert_eq!(cluster.partition("t", 0).directories, [Uuid::ONE]);
    for (index, directory) in directories.into_iter().enumerate() {
        assert_eq!(assign(&mut cluster, "t", index, directory), ErrorCode::None);
    }
    (cluster, directories)
}

fn assign(cluster: &mut Cluster, topic: &str, index: usize, directory: Uuid) -> ErrorCode {
    let topic_id = cluster
        .image()
        .topics
        .by_name(topic)
        .map_or(Uuid::ZERO, |topic| topic.id);
    let request = AssignReplicasToDirsRequest {
        broker_id: 0,
        broker_epoch: cluster.epoch_of(0),
        directories: vec![DirectoryData {
            id: directory,
            topics: vec![TopicData {
                topic_id,
                partitions: vec![PartitionData {
                    partition_index: i32::try_from(index).unwrap(),
                    ..PartitionData::default()
                }],
                ..TopicData::default()
            }],
            ..DirectoryData::default()
        }],
        ..AssignReplicasToDirsRequest::default()
    };
    let response = cluster
        .op(|controller, _| controller.assign_replicas_to_directories(&request))
        .unwrap();
    code(response.directories[0].topics[0].partitions[0].error_code)
}

#[test]
fn a_replica_is_where_its_broker_says_and_nothing_is_recorded_twice() {
    let (mut cluster, directories) = with_two_directories();
    assert_eq!(cluster.partition("t", 0).directories, [directories[0]]);
    assert_eq!(cluster.partition("t", 1).directories, [directories[1]]);
    let at = cluster.log.len();
    assert_eq!(assign(&mut cluster, "t", 1, directories[1]), ErrorCode::None);
    assert_eq!(cluster.log.len(), at);
    assert_eq!(
        assign(&mut cluster, "t", 2, directories[1]),
        ErrorCode::UnknownTopicOrPartition
    );
    assert_eq!(assign(&mut cluster, "u", 0, directories[1]), ErrorCode::UnknownTopicId);
}

#[test]
fn what_lies_in_a_failed_directory_has_no_leader_until_the_broker_comes_back_with_it() {
    let (mut cluster, directories) = with_two_directories();
    let offline = BrokerHeartbeatRequest {
        offline_log_dirs: vec![directories[1]],
        ..cluster.alive(0)
    };
    cluster.heartbeat(&offline).unwrap();
    assert_eq!(cluster.partition("t", 0).leader, Some(BrokerId::new(0)));
    assert_eq!(cluster.partition("t", 1).leader, None);
    let at = cluster.log.len();
    cluster.heartbeat(&offline).unwrap();
    assert_eq!(cluster.log.len(), at, "told again, known already");
    // What is created now lies in the only directory that is left.
    cluster.create(vec![topic("u", 1, 1)]);
    assert_eq!(cluster.partition("u", 0).directories, [directories[0]]);
    for (incarnation, back) in [(2, &directories[..1]), (3, &directories[..])] {
        cluster.pass(9_000);
        let again = BrokerRegistrationRequest {
            log_dirs: back.to_vec(),
            previous_broker_epoch: cluster.epoch_of(0),
            ..registration(0, incarnation)
        };
        cluster.register(&again).unwrap();
        cluster.heartbeat(&cluster.alive(0)).unwrap();
        assert_eq!(cluster.partition("t", 0).leader, Some(BrokerId::new(0)));
        let expected = (back.len() == 2).then_some(BrokerId::new(0));
        assert_eq!(
            cluster.partition("t", 1).leader,
            expected,
            "with {} directories",
            back.len()
        );
    }
}

#[test]
fn a_replica_that_is_said_to_lie_in_a_failed_directory_has_no_leader() {
    let (mut cluster, directories) = with_two_directories();
    cluster.create(vec![topic("u", 1, 1)]);
    let offline = BrokerHeartbeatRequest {
        offline_log_dirs: vec![directories[1]],
        ..cluster.alive(0)
    };
    cluster.heartbeat(&offline).unwrap();
    assert_eq!(
        cluster.partition("u", 0).leader,
        Some(BrokerId::new(0)),
        "nobody has said where it lies"
    );
    assert_eq!(assign(&mut cluster, "u", 0, directories[1]), ErrorCode::None);
    assert_eq!(cluster.partition("u", 0).leader, None);
}

#[test]
fn a_fenced_broker_whose_directory_has_failed_is_not_unfenced_before_that_is_known() {
    let (mut cluster, directories) = with_two_directories();
    let fence = BrokerHeartbeatRequest {
        want_fence: true,
        ..cluster.alive(0)
    };
    cluster.heartbeat(&fence).unwrap();
    let offline = BrokerHeartbeatRequest {
        offline_log_dirs: vec![directories[1]],
        ..cluster.alive(0)
    };
    assert!(cluster.heartbeat(&offline).unwrap().is_fenced);
    assert!(!cluster.heartbeat(&offline).unwrap().is_fenced);
    assert_eq!(cluster.partition("t", 0).leader, Some(BrokerId::new(0)));
    assert_eq!(cluster.partition("t", 1).leader, None);
}

#[test]
fn what_is_found_again_in_another_directory_is_led_from_there() {
    let (mut cluster, directories) = with_two_directories();
    let third = Uuid::from_bytes([3; 16]);
    cluster.pass(9_000);
    let again = BrokerRegistrationRequest {
        log_dirs: vec![directories[0], third],
        previous_broker_epoch: cluster.epoch_of(0),
        ..registration(0, 2)
    };
    cluster.register(&again).unwrap();
    cluster.heartbeat(&cluster.alive(0)).unwrap();
    assert_eq!(cluster.partition("t", 1).leader, None);
    assert_eq!(assign(&mut cluster, "t", 1, third), ErrorCode::None);
    assert_eq!(cluster.partition("t", 1).leader, Some(BrokerId::new(0)));
    assert_eq!(cluster.partition("t", 1).directories, [third]);
}
