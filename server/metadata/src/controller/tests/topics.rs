//! CreateTopics and DeleteTopics: the words of refusals are those that Kafka 4.4.0 answered.

use protocol::messages::create_topics_request::CreatableReplicaAssignment;
use protocol::messages::delete_topics_request::{DeleteTopicState, DeleteTopicsRequest};

use super::*;

fn by_hand(name: &str, assignments: &[(i32, &[i32])]) -> CreatableTopic {
    let assignment = |(partition_index, broker_ids): &(i32, &[i32])| CreatableReplicaAssignment {
        partition_index: *partition_index,
        broker_ids: broker_ids.to_vec(),
        ..CreatableReplicaAssignment::default()
    };
    CreatableTopic {
        assignments: assignments.iter().map(assignment).collect(),
        ..topic(name, -1, -1)
    }
}

#[test]
fn a_topic_is_one_record_then_its_configs_then_its_partitions() {
    let mut cluster = Cluster::with_brokers(1);
    let at = cluster.log.len();
    let configs = [("cleanup.policy", Some("compact")), ("retention.ms", Some("1000"))];
    let results = cluster.create(vec![with_configs(topic("t", 2, 1), &configs)]);
    assert_eq!(results, [(ErrorCode::None, None)]);
    let names: Vec<&str> = cluster.log[at..].iter().map(MetadataRecord::name).collect();
    let (config, partition) = ("ConfigRecord", "PartitionRecord");
    assert_eq!(names, ["TopicRecord", config, config, partition, partition]);
    assert_eq!(
        cluster.state("t", 1),
        "leader Some(0) isr [0] elr [] last [] Recovered epochs 0 0"
    );
    assert_eq!(cluster.partition("t", 0).directories, [Uuid::from_bytes([100; 16])]);
}

#[test]
fn what_is_left_out_comes_from_the_defaults() {
    let mut cluster = Cluster::with_brokers(1);
    assert_eq!(cluster.create(vec![topic("t", -1, -1)]), [(ErrorCode::None, None)]);
    assert_eq!(cluster.partition("t", 0).replicas, [BrokerId::new(0)]);
}

#[test]
fn refusals_of_new_topics_are_in_kafkas_words() {
    let mut cluster = Cluster::with_brokers(1);
    cluster.create(vec![topic("first", 3, 1), topic("a.b", 1, 1)]);
    let long = "x".repeat(250);
    let too_long = format!("Topic name is invalid: the length of '{long}' is longer than the max allowed length 249");
    let invalid = ErrorCode::InvalidTopicException;
    let (factor, assignment) = (ErrorCode::InvalidReplicationFactor, ErrorCode::InvalidReplicaAssignment);
    let characters = "Topic name is invalid: 'a/b' contains one or more characters other than ASCII alphanumerics, \
                      '.', '_' and '-'";
    let not_enough = "Unable to replicate the partition 4 time(s): The target replication factor of 4 cannot be reached \
                      because only 1 broker(s) are registered or some brokers have all their log directories cordoned.";
    let positive = "Replication factor must be larger than 0, or -1 to use the default value.";
    let partitions = "Number of partitions was set to an invalid non-positive value.";
    let includes = |what: &str| format!("The manual partition assignment includes {what}");
    let cases = [
        (
            topic("first", 3, 1),
            ErrorCode::TopicAlreadyExists,
            "Topic 'first' already exists.",
        ),
        (topic("t", 1, 4), factor, not_enough),
        (topic("t", 1, 0), factor, positive),
        (topic("t", 1, -2), factor, positive),
        (topic("t", 0, 1), ErrorCode::InvalidPartitions, partitions),
        (topic("t", -5, 1), ErrorCode::InvalidPartitions, partitions),
        (
            topic("", 1, 1),
            invalid,
            "Topic name is invalid: the empty string is not allowed",
        ),
        (topic(".", 1, 1), invalid, "Topic name is invalid: '.' is not allowed"),
        (topic(&long, 1, 1), invalid, &too_long),
        (topic("a/b", 1, 1), invalid, characters),
        (
            topic("a_b", 1, 1),
            invalid,
            "Topic 'a_b' collides with existing topic: a.b",
        ),
        (
            by_hand("t", &[(0, &[0]), (2, &[0])]),
            assignment,
            "partitions should be a consecutive 0-based integer sequence",
        ),
        (
            by_hand("t", &[(0, &[9])]),
            assignment,
            &includes("broker 9, but no such broker is registered."),
        ),
        (
            by_hand("t", &[(0, &[0, 0])]),
            assignment,
            &includes("the broker 0 more than once."),
        ),
        (
            by_hand("t", &[(0, &[])]),
            assignment,
            &includes("an empty replica list."),
        ),
        (
            with_configs(topic("t", 1, 1), &[("retention.ms", Some("abc"))]),
            ErrorCode::InvalidConfig,
            "Invalid value abc for configuration retention.ms: Not a number of type LONG",
        ),
        (
            with_configs(topic("t", 1, 1), &[("no.such", Some("abc"))]),
            ErrorCode::InvalidConfig,
            "Unknown topic config name: no.such",
        ),
    ];
    let at = cluster.log.len();
    for (topic, code, message) in cases {
        assert_eq!(cluster.create(vec![topic]), [(code, Some(message.to_owned()))]);
    }
    assert_eq!(cluster.log.len(), at);
}

#[test]
fn one_bad_topic_does_not_keep_the_others_back() {
    let mut cluster = Cluster::with_brokers(1);
    let results = cluster.create(vec![
        topic("good", 1, 1),
        topic("bad", 0, 1),
        topic("twice", 1, 1),
        topic("twice", 1, 1),
    ]);
    let codes: Vec<ErrorCode> = results.iter().map(|(code, _)| *code).collect();
    assert_eq!(
        codes,
        [ErrorCode::None, ErrorCode::InvalidPartitions, ErrorCode::InvalidRequest]
    );
    assert_eq!(cluster.image().topics.len(), 1);
}

#[test]
fn too_many_partitions_are_a_policy_violation() {
    let mut cluster = Cluster::with_brokers(1);
    let request = |partitions| CreateTopicsRequest {
        topics: vec![topic("t", partitions, 1)],
        ..Default::default()
    };
    let mut create =
        |partitions| cluster.op(|controller, context| controller.create_topics(&request(partitions), context));
    let refusal = create(10_001).unwrap_err();
    assert_eq!(refusal.code, ErrorCode::PolicyViolation);
    assert_eq!(
        refusal.message.as_deref(),
        Some("Excessively large number of partitions per request.")
    );
    // One record more than the partitions: the topic's own.
    assert_eq!(create(10_000).unwrap_err().code, ErrorCode::PolicyViolation);
    assert!(create(9_999).is_ok());
}

#[test]
fn validation_alone_changes_nothing() {
    let mut cluster = Cluster::with_brokers(1);
    let request = CreateTopicsRequest {
        topics: vec![topic("t", 2, 1)],
        validate_only: true,
        ..Default::default()
    };
    let response = cluster
        .op(|controller, context| controller.create_topics(&request, context))
        .unwrap();
    assert_eq!(
        (response.topics[0].error_code, response.topics[0].num_partitions),
        (0, 2)
    );
    assert!(cluster.image().topics.is_empty());
}

#[test]
fn nothing_is_created_while_all_brokers_are_fenced() {
    let mut cluster = Cluster::founded();
    cluster.register(&registration(0, 1)).unwrap();
    let message = "Unable to replicate the partition 1 time(s): All brokers are currently fenced, or have all their log \
                   directories cordoned.";
    let expected = (ErrorCode::InvalidReplicationFactor, Some(message.to_owned()));
    assert_eq!(cluster.create(vec![topic("t", 1, 1)]), [expected]);
}

#[test]
fn a_deleted_topic_takes_its_configs_along_and_its_name_is_free() {
    let mut cluster = Cluster::with_brokers(1);
    cluster.create(vec![with_configs(topic("t", 1, 1), &[("retention.ms", Some("5"))])]);
    let id = cluster.image().topics.by_name("t").unwrap().id;
    let delete = |topics: Vec<DeleteTopicState>| DeleteTopicsRequest {
        topics,
        ..Default::default()
    };
    let named = |name: &str| DeleteTopicState {
        name: Some(name.into()),
        ..Default::default()
    };
    let request = delete(vec![
        named("t"),
        named("nope"),
        DeleteTopicState {
            name: None,
            topic_id: Uuid::ONE,
            ..Default::default()
        },
    ]);
    let response = cluster
        .op(|controller, _| controller.delete_topics(&request, 6))
        .unwrap();
    let codes: Vec<ErrorCode> = response
        .responses
        .iter()
        .map(|result| code(result.error_code))
        .collect();
    assert_eq!(
        codes,
        [
            ErrorCode::None,
            ErrorCode::UnknownTopicOrPartition,
            ErrorCode::UnknownTopicId
        ]
    );
    assert_eq!(response.responses[0].topic_id, id);
    assert!(cluster.image().configs.of(&ConfigResource::topic("t")).is_empty());
    assert_eq!(cluster.create(vec![topic("t", 1, 1)]), [(ErrorCode::None, None)]);
    assert_ne!(cluster.image().topics.by_name("t").unwrap().id, id);
    let old = DeleteTopicsRequest {
        topic_names: vec!["t".into()],
        ..Default::default()
    };
    cluster.op(|controller, _| controller.delete_topics(&old, 5)).unwrap();
    assert!(cluster.image().topics.is_empty());
}
