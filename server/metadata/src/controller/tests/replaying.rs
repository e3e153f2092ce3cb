//! The controller as a whole: founding records, and that its log alone gives its state.

use protocol::messages::allocate_producer_ids_request::AllocateProducerIdsRequest;

use super::*;

#[test]
fn an_empty_log_is_founded_as_kafka_founds_it() {
    let cluster = Cluster::founded();
    let names: Vec<&str> = cluster.log.iter().map(MetadataRecord::name).collect();
    let mut expected = vec!["BeginTransactionRecord"];
    expected.extend(["FeatureLevelRecord"; 6]);
    expected.extend(["ConfigRecord", "EndTransactionRecord"]);
    assert_eq!(names, expected);
    assert_eq!(cluster.image().end_offset, Offset::new(12));
    let minimum = cluster
        .image()
        .configs
        .get(&ConfigResource::all_brokers(), "min.insync.replicas");
    assert_eq!(minimum.map(|value| &**value), Some("1"));
    assert!(cluster.controller.activate(&bootstrap_records()).records.is_empty());
}

#[test]
fn a_founding_cut_short_is_aborted_and_done_again() {
    let mut replay = Replay::default();
    let records = Cluster::founded().log;
    records[..5].iter().for_each(|record| replay.record(record).unwrap());
    replay.batch_ended(Offset::new(8), ControllerEpoch::new(1), Timestamp::from_millis(1));
    let options = ControllerOptions::default();
    let controller = Controller::new(options, replay, Monotonic::default());
    let outcome = controller.activate(&bootstrap_records());
    let names: Vec<&str> = outcome.records.iter().map(MetadataRecord::name).take(2).collect();
    assert_eq!(names, ["AbortTransactionRecord", "BeginTransactionRecord"]);
    let mut cluster = Cluster {
        controller,
        now: Monotonic::default(),
        entropy: Seeded(1),
        log: Vec::new(),
    };
    cluster.append(outcome);
    assert_eq!(
        cluster.image().features.metadata_version(),
        Some(MetadataVersion::LATEST)
    );
}

#[test]
fn the_log_alone_gives_the_state_and_a_snapshot_gives_it_again() {
    let mut cluster = Cluster::with_brokers(3);
    let configured = with_configs(topic("b", 2, 3), &[("retention.ms", Some("5"))]);
    cluster.create(vec![topic("a", 5, 2), configured]);
    cluster.pass(20_000);
    cluster.heartbeat(&cluster.alive(0)).unwrap();
    while let Some(outcome) = cluster.controller.fence_stale_broker(cluster.now) {
        cluster.append(outcome);
    }
    let mut again = Replay::default();
    cluster.log.iter().for_each(|record| again.record(record).unwrap());
    let image = cluster.image();
    again.batch_ended(image.end_offset, image.epoch, image.last_timestamp);
    assert_eq!(again.image(), image);

    let mut loaded = Replay::default();
    image.records().for_each(|record| {
        // Snapshots pass through bytes like the log does.
        let sealed = seal(record, MetadataVersion::LATEST).unwrap();
        loaded.record(&sealed.record).unwrap();
    });
    loaded.batch_ended(image.end_offset, image.epoch, image.last_timestamp);
    assert_eq!(loaded.image(), image);
}

#[test]
fn producer_ids_come_in_blocks_that_never_meet() {
    let mut cluster = Cluster::with_brokers(1);
    let request = AllocateProducerIdsRequest {
        broker_id: 0,
        broker_epoch: cluster.epoch_of(0),
        ..AllocateProducerIdsRequest::default()
    };
    for expected in [0, 1000, 2000] {
        let response = cluster
            .op(|controller, _| controller.allocate_producer_ids(&request))
            .unwrap();
        assert_eq!((response.producer_id_start, response.producer_id_len), (expected, 1000));
    }
    let stale = AllocateProducerIdsRequest {
        broker_epoch: 1,
        ..request
    };
    let refusal = cluster
        .op(|controller, _| controller.allocate_producer_ids(&stale))
        .unwrap_err();
    assert_eq!(refusal.code, ErrorCode::StaleBrokerEpoch);
}

#[test]
fn a_controller_registers_once_the_level_has_the_record() {
    let mut cluster = Cluster::founded();
    let request = ControllerRegistrationRequest {
        controller_id: 1,
        ..Default::default()
    };
    cluster
        .op(|controller, _| controller.register_controller(&request))
        .unwrap();
    assert!(cluster.image().cluster.controllers.contains_key(&BrokerId::new(1)));
    let empty = Controller::new(ControllerOptions::default(), Replay::default(), Monotonic::default());
    assert_eq!(
        empty.register_controller(&request).unwrap_err().code,
        ErrorCode::UnsupportedVersion
    );
}

#[test]
fn no_ops_move_the_offset_and_nothing_else() {
    let mut cluster = Cluster::founded();
    cluster.controller.take_delta();
    cluster.append(Outcome {
        records: vec![NoOpRecord::default().into()],
        response: (),
    });
    let (delta, image) = cluster.controller.take_delta().unwrap();
    assert!(delta.is_empty());
    assert_eq!(image.end_offset, Offset::new(13));
}

#[test]
fn a_record_that_does_not_fit_is_an_error() {
    let mut replay = Replay::default();
    let config = ConfigRecord {
        resource_type: 3,
        ..ConfigRecord::default()
    };
    assert!(matches!(
        replay.record(&config.into()),
        Err(ReplayError::Value { value: 3, .. })
    ));
    let level = protocol::internal_records::metadata::FeatureLevelRecord {
        name: "metadata.version".into(),
        feature_level: 34,
        ..Default::default()
    };
    assert!(matches!(
        replay.record(&level.into()),
        Err(ReplayError::FeatureLevel { level: 34, .. })
    ));
}

#[test]
fn the_broker_of_the_controllers_own_process_need_not_be_waited_for() {
    let cluster = Cluster::with_brokers(2);
    let restarted = |local_broker| {
        let options = ControllerOptions {
            cluster_id: CLUSTER_ID.to_owned(),
            local_broker,
            ..ControllerOptions::default()
        };
        let replay = Replay::from_image(cluster.image().clone());
        Controller::new(options, replay, Monotonic::default())
    };
    let register = |controller: &Controller, id| {
        let context = OpContext {
            now: Monotonic::default(),
            entropy: &mut Seeded(1),
        };
        controller.register_broker(&registration(id, 2), &context).map(|_| ())
    };
    let combined = restarted(Some(BrokerId::new(0)));
    assert_eq!(register(&combined, 0), Ok(()));
    assert_eq!(
        register(&combined, 1).unwrap_err().code,
        ErrorCode::DuplicateBrokerRegistration
    );
    assert!(register(&restarted(None), 0).is_err());
}
