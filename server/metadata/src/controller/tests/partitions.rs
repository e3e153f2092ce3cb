//! CreatePartitions.

use protocol::messages::create_partitions_request::{
    CreatePartitionsAssignment, CreatePartitionsRequest, CreatePartitionsTopic,
};

use super::*;

fn grow(cluster: &mut Cluster, name: &str, count: i32, assignments: Option<&[&[i32]]>) -> (ErrorCode, Option<String>) {
    let assignment = |broker_ids: &&[i32]| CreatePartitionsAssignment {
        broker_ids: broker_ids.to_vec(),
        ..Default::default()
    };
    let topic = CreatePartitionsTopic {
        name: name.into(),
        count,
        assignments: assignments.map(|assignments| assignments.iter().map(assignment).collect()),
        ..Default::default()
    };
    let request = CreatePartitionsRequest {
        topics: vec![topic],
        ..Default::default()
    };
    match cluster.op(|controller, context| controller.create_partitions(&request, context)) {
        Err(refusal) => (refusal.code, refusal.message),
        Ok(response) => {
            let result = &response.results[0];
            (
                code(result.error_code),
                result.error_message.as_ref().map(|text| text.to_string()),
            )
        }
    }
}

#[test]
fn a_topic_grows_at_its_end() {
    let mut cluster = Cluster::with_brokers(2);
    cluster.create(vec![topic("t", 3, 2)]);
    assert_eq!(grow(&mut cluster, "t", 5, None), (ErrorCode::None, None));
    assert_eq!(cluster.image().topics.by_name("t").unwrap().partitions.len(), 5);
    assert_eq!(cluster.partition("t", 4).replicas.len(), 2);
    assert_eq!(grow(&mut cluster, "t", 6, Some(&[&[1, 0]])), (ErrorCode::None, None));
    assert_eq!(cluster.partition("t", 5).leader, Some(BrokerId::new(1)));
}

#[test]
fn refusals_of_growth_are_in_kafkas_words() {
    let mut cluster = Cluster::with_brokers(1);
    cluster.create(vec![topic("first", 5, 1)]);
    let mut refused = |count, assignments| {
        let (code, message) = grow(&mut cluster, "first", count, assignments);
        (code, message.unwrap())
    };
    let partitions = ErrorCode::InvalidPartitions;
    assert_eq!(
        refused(5, None),
        (partitions, "Topic already has 5 partition(s).".to_owned())
    );
    let less = "The topic first currently has 5 partition(s); 2 would not be an increase.";
    assert_eq!(refused(2, None), (partitions, less.to_owned()));
    let few = "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.";
    assert_eq!(
        refused(7, Some(&[&[0]])),
        (ErrorCode::InvalidReplicaAssignment, few.to_owned())
    );
    let many = "Excessively large number of additional partitions per request.";
    assert_eq!(refused(20_000, None), (ErrorCode::PolicyViolation, many.to_owned()));
    assert_eq!(
        grow(&mut cluster, "nope", 2, None),
        (ErrorCode::UnknownTopicOrPartition, None)
    );
}
