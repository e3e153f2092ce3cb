//! AlterPartitionReassignments and ListPartitionReassignments.

use protocol::messages::alter_partition_reassignments_request::{
    AlterPartitionReassignmentsRequest, ReassignablePartition, ReassignableTopic,
};
use protocol::messages::list_partition_reassignments_request::ListPartitionReassignmentsRequest;

use super::*;

fn reassign(cluster: &mut Cluster, name: &str, index: i32, replicas: Option<&[i32]>) -> (ErrorCode, Option<String>) {
    let partition = ReassignablePartition {
        partition_index: index,
        replicas: replicas.map(<[i32]>::to_vec),
        ..Default::default()
    };
    let request = AlterPartitionReassignmentsRequest {
        topics: vec![ReassignableTopic {
            name: name.into(),
            partitions: vec![partition],
            ..Default::default()
        }],
        ..Default::default()
    };
    let response = cluster
        .op(|controller, _| Ok(controller.alter_partition_reassignments(&request)))
        .unwrap();
    let result = &response.responses[0].partitions[0];
    (
        code(result.error_code),
        result.error_message.as_ref().map(|text| text.to_string()),
    )
}

#[test]
fn a_partition_may_only_be_given_to_the_brokers_that_have_it() {
    let mut cluster = Cluster::with_brokers(2);
    cluster.create(vec![topic("t", 1, 1)]);
    let [has, other] = match cluster.partition("t", 0).replicas[0].get() {
        0 => [0, 1],
        _ => [1, 0],
    };
    assert_eq!(reassign(&mut cluster, "t", 0, Some(&[has])), (ErrorCode::None, None));
    let (refused, message) = reassign(&mut cluster, "t", 0, Some(&[other]));
    assert_eq!(refused, ErrorCode::InvalidReplicaAssignment, "{message:?}");
    let mut refused = |name, index, replicas: Option<&[i32]>| {
        let (code, message) = reassign(&mut cluster, name, index, replicas);
        (code, message.unwrap())
    };
    let unknown = ErrorCode::UnknownTopicOrPartition;
    let no_topic = "Unable to find a topic named n.".to_owned();
    assert_eq!(refused("n", 0, Some(&[has])), (unknown, no_topic));
    let no_partition = "Unable to find partition t:7.".to_owned();
    assert_eq!(refused("t", 7, Some(&[has])), (unknown, no_partition));
    assert_eq!(refused("t", 0, None).0, ErrorCode::NoReassignmentInProgress);
    let broker = "The manual partition assignment includes broker 9, but no such broker is registered.";
    let invalid = ErrorCode::InvalidReplicaAssignment;
    assert_eq!(refused("t", 0, Some(&[9])), (invalid, broker.to_owned()));
    assert_eq!(refused("t", 0, Some(&[])).0, invalid);
    assert_eq!(refused("t", 0, Some(&[has, has])).0, invalid);
}

#[test]
fn none_is_under_way() {
    let mut cluster = Cluster::with_brokers(1);
    cluster.create(vec![topic("t", 2, 1)]);
    let request = ListPartitionReassignmentsRequest::default();
    let response = cluster.op(|controller, _| Ok(controller.list_partition_reassignments(&request)));
    assert!(response.unwrap().topics.is_empty());
}
