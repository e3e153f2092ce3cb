//! IncrementalAlterConfigs.

use protocol::messages::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig, IncrementalAlterConfigsRequest,
};

use super::*;

const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

fn alter(
    cluster: &mut Cluster,
    resource: (i8, &str),
    operation: i8,
    name: &str,
    value: Option<&str>,
) -> (ErrorCode, Option<String>) {
    let config = AlterableConfig {
        name: name.into(),
        config_operation: operation,
        value: value.map(Text::from),
        ..Default::default()
    };
    let resource = AlterConfigsResource {
        resource_type: resource.0,
        resource_name: resource.1.into(),
        configs: vec![config],
        ..Default::default()
    };
    let request = IncrementalAlterConfigsRequest {
        resources: vec![resource],
        ..Default::default()
    };
    let response = cluster
        .op(|controller, _| controller.incremental_alter_configs(&request))
        .unwrap();
    let result = &response.responses[0];
    (
        code(result.error_code),
        result.error_message.as_ref().map(|text| text.to_string()),
    )
}

const OK: (ErrorCode, Option<String>) = (ErrorCode::None, None);

fn with_topic() -> Cluster {
    let mut cluster = Cluster::with_brokers(1);
    cluster.create(vec![topic("t", 1, 1)]);
    cluster
}

#[test]
fn a_list_is_appended_to_and_taken_from() {
    let mut cluster = with_topic();
    let policy = |cluster: &Cluster| {
        let value = cluster
            .image()
            .configs
            .get(&ConfigResource::topic("t"), "cleanup.policy");
        value.map(|value| value.to_string())
    };
    assert_eq!(
        alter(&mut cluster, (2, "t"), APPEND, "cleanup.policy", Some("compact")),
        OK
    );
    assert_eq!(policy(&cluster).as_deref(), Some("delete,compact"));
    let at = cluster.log.len();
    assert_eq!(
        alter(&mut cluster, (2, "t"), APPEND, "cleanup.policy", Some("compact")),
        OK
    );
    assert_eq!(cluster.log.len(), at);
    assert_eq!(
        alter(&mut cluster, (2, "t"), SUBTRACT, "cleanup.policy", Some("delete")),
        OK
    );
    assert_eq!(policy(&cluster).as_deref(), Some("compact"));
    assert_eq!(alter(&mut cluster, (2, "t"), DELETE, "cleanup.policy", None), OK);
    assert_eq!(policy(&cluster), None);
}

#[test]
fn equal_values_of_topics_are_not_written_again_but_those_of_brokers_are() {
    let mut cluster = with_topic();
    let mut records = |resource, name| {
        let at = cluster.log.len();
        alter(&mut cluster, resource, SET, name, Some("5"));
        cluster.log.len() - at
    };
    assert_eq!(
        [records((2, "t"), "retention.ms"), records((2, "t"), "retention.ms")],
        [1, 0]
    );
    assert_eq!(
        [
            records((4, "0"), "log.retention.ms"),
            records((4, "0"), "log.retention.ms")
        ],
        [1, 1]
    );
}

#[test]
fn refusals_of_configs_are_in_kafkas_words() {
    let mut cluster = with_topic();
    let mut refused = |resource, operation, name, value| {
        let (code, message) = alter(&mut cluster, resource, operation, name, value);
        (code, message.unwrap())
    };
    let (request, config) = (ErrorCode::InvalidRequest, ErrorCode::InvalidConfig);
    let t = (2, "t");
    let cases = [
        (
            refused(t, APPEND, "retention.ms", Some("5")),
            config,
            "Can't APPEND to key retention.ms because its type is not LIST.",
        ),
        (
            refused(t, SET, "retention.ms", None),
            request,
            "Null value not supported for : retention.ms",
        ),
        (
            refused(t, SET, "zzz", Some("1")),
            config,
            "Unknown topic config name: zzz",
        ),
        (
            refused(t, SET, "retention.ms", Some("q")),
            config,
            "Invalid value q for configuration retention.ms: Not a number of type LONG",
        ),
        (
            refused((2, "nope"), SET, "retention.ms", Some("5")),
            ErrorCode::UnknownTopicOrPartition,
            "The topic 'nope' does not exist.",
        ),
        (
            refused((2, ""), SET, "retention.ms", Some("5")),
            request,
            "Default topic resources are not allowed.",
        ),
        (
            refused((4, "0"), SET, "min.insync.replicas", Some("2")),
            config,
            "Broker-level min.insync.replicas cannot be altered while ELR is enabled.",
        ),
        (
            refused((4, ""), DELETE, "min.insync.replicas", None),
            config,
            "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.",
        ),
    ];
    for (refused, code, message) in cases {
        assert_eq!(refused, (code, message.to_owned()));
    }
}

#[test]
fn another_minimum_clears_who_was_eligible_under_the_old_one() {
    let mut cluster = with_topic();
    let at = cluster.log.len();
    assert_eq!(alter(&mut cluster, (2, "t"), SET, "min.insync.replicas", Some("2")), OK);
    assert_eq!(alter(&mut cluster, (4, ""), SET, "min.insync.replicas", Some("1")), OK);
    let names: Vec<&str> = cluster.log[at..].iter().map(MetadataRecord::name).collect();
    assert_eq!(
        names,
        ["ConfigRecord", "ClearElrRecord", "ConfigRecord", "ClearElrRecord"]
    );
}
