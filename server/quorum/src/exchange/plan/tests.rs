//! Sources as they may be found, and what is decided about each.

use metadata::Replay;
use model::{Offset, PartitionIndex, ProducerId, Timestamp, TopicName};
use protocol::internal_records::metadata::{
    AccessControlEntryRecord, ClientQuotaRecord, ConfigRecord, FeatureLevelRecord, PartitionRecord,
    RegisterBrokerRecord, RegisterControllerRecord, TopicRecord, client_quota_record, register_controller_record,
};
use storage::log_directory::Folder;
use storage::transfer::OpenTransaction;

use super::*;

const DIRECTORY: Uuid = Uuid::from_bytes([9; 16]);
const OTHER: Uuid = Uuid::from_bytes([8; 16]);
const TOPIC: Uuid = Uuid::from_bytes([7; 16]);

/// What a test changes of a source that can be taken over.
struct Found {
    properties: MetaProperties,
    metadata_properties: MetaProperties,
    metadata: SourceMetadata,
    inventory: Inventory,
    groups: OtherGroups,
    records: Vec<MetadataRecord>,
}

impl Found {
    /// A node 5 with the topic `first` of one partition.
    fn new() -> Self {
        let properties = MetaProperties {
            version: 1,
            cluster_id: Some("c".to_owned()),
            node_id: Some(BrokerId::new(5)),
            directory_id: Some(DIRECTORY),
        };
        Found {
            metadata_properties: properties.clone(),
            properties,
            metadata: SourceMetadata {
                image: Image::default(),
                kraft_version: KRaftVersion::Dynamic,
                voters: VoterSet::new([voter(5, DIRECTORY)]),
                epoch: ControllerEpoch::new(4),
            },
            inventory: Inventory {
                clean: true,
                partitions: vec![folder("first-0", Some(TOPIC))],
                ..Inventory::default()
            },
            groups: OtherGroups::default(),
            records: vec![
                feature(MetadataVersion::FEATURE, 33),
                broker(5, false, DIRECTORY),
                topic("first", TOPIC),
                partition(TOPIC, 5, DIRECTORY),
            ],
        }
    }

    fn plan(mut self, direction: Direction) -> Result<Plan, Refusal> {
        let mut replay = Replay::default();
        for record in &self.records {
            replay.record(record).unwrap();
        }
        replay.batch_ended(Offset::new(70), ControllerEpoch::new(3), Timestamp::from_millis(1));
        self.metadata.image = replay.settled();
        let source = Source {
            properties: &self.properties,
            metadata_properties: &self.metadata_properties,
            metadata: &self.metadata,
            inventory: &self.inventory,
            groups: &self.groups,
        };
        plan(&source, direction)
    }
}

fn voter(id: i32, directory: Uuid) -> Voter {
    Voter {
        key: ReplicaKey {
            id: BrokerId::new(id),
            directory,
        },
        endpoints: vec![VoterEndpoint {
            name: "CONTROLLER".into(),
            host: "localhost".into(),
            port: 9093,
        }],
        kraft_versions: (0, 1),
    }
}

fn folder(name: &str, topic_id: Option<Uuid>) -> PartitionFolder {
    PartitionFolder {
        folder: Folder::parse(name).unwrap(),
        topic_id,
        latest_epoch: Some(LeaderEpoch::new(2)),
        aborted_transactions: 0,
        open_transactions: Vec::new(),
        is_quarantined: false,
        files: Vec::new(),
    }
}

fn feature(name: &str, feature_level: i16) -> MetadataRecord {
    FeatureLevelRecord {
        name: name.into(),
        feature_level,
        ..FeatureLevelRecord::default()
    }
    .into()
}

fn broker(broker_id: i32, fenced: bool, directory: Uuid) -> MetadataRecord {
    broker_with(broker_id, fenced, &[directory])
}

fn broker_with(broker_id: i32, fenced: bool, directories: &[Uuid]) -> MetadataRecord {
    RegisterBrokerRecord {
        broker_id,
        broker_epoch: 12,
        fenced,
        log_dirs: directories.to_vec(),
        ..RegisterBrokerRecord::default()
    }
    .into()
}

fn topic(name: &str, topic_id: Uuid) -> MetadataRecord {
    TopicRecord {
        name: name.into(),
        topic_id,
        ..TopicRecord::default()
    }
    .into()
}

fn partition(topic_id: Uuid, replica: i32, directory: Uuid) -> MetadataRecord {
    PartitionRecord {
        partition_id: 0,
        topic_id,
        replicas: vec![replica],
        isr: vec![replica],
        leader: -1,
        leader_epoch: 2,
        directories: vec![directory],
        ..PartitionRecord::default()
    }
    .into()
}

fn config(resource_type: i8, resource: &str, name: &str, value: &str) -> MetadataRecord {
    ConfigRecord {
        resource_type,
        resource_name: resource.into(),
        name: name.into(),
        value: Some(value.into()),
        ..ConfigRecord::default()
    }
    .into()
}

fn first() -> TopicPartition {
    TopicPartition {
        topic: TopicName::new("first").unwrap(),
        partition: PartitionIndex::new(0),
    }
}

fn refusal(change: impl FnOnce(&mut Found)) -> String {
    let mut found = Found::new();
    change(&mut found);
    found.plan(Direction::Import).unwrap_err().to_string()
}

fn notices(direction: Direction, change: impl FnOnce(&mut Found)) -> Vec<String> {
    let mut found = Found::new();
    change(&mut found);
    let plan = found.plan(direction).unwrap();
    plan.notices.iter().map(ToString::to_string).collect()
}

#[test]
fn a_node_alone_is_taken_over_with_its_ids_and_epochs() {
    let plan = Found::new().plan(Direction::Import).unwrap();
    assert_eq!((plan.node_id, plan.directory_id), (BrokerId::new(5), DIRECTORY));
    assert_eq!(plan.snapshot.to_string(), "00000000000000000070-0000000003");
    assert_eq!(
        plan.epoch,
        ControllerEpoch::new(4),
        "the node may have seen an epoch that wrote nothing"
    );
    assert_eq!(plan.voters, VoterSet::new([voter(5, DIRECTORY)]));
    assert_eq!(plan.notices, []);
    assert_eq!(plan.partition_count(), 1);
}

#[test]
fn what_is_not_this_nodes_alone_is_refused() {
    assert!(refusal(|found| found.inventory.clean = false).starts_with("the directory was not stopped in good order"));
    assert!(refusal(|found| found.metadata.voters = VoterSet::new([voter(1, OTHER)])).contains("controllers are 1:"));
    let more = VoterSet::new([voter(5, DIRECTORY), voter(6, OTHER)]);
    assert!(refusal(|found| found.metadata.voters = more).contains("controllers are 5, 6:"));
    assert!(refusal(|found| found.metadata.voters = VoterSet::default()).contains("nothing says who votes"));
    assert!(refusal(|found| found.metadata.voters = VoterSet::new([voter(5, OTHER)])).contains("votes under"));
    assert!(refusal(|found| found.records[1] = broker(6, true, OTHER)).contains("never registered"));
    assert!(refusal(|found| found.records.push(broker(6, false, OTHER))).contains("broker 6 belongs"));
    assert!(refusal(|found| found.records[3] = partition(TOPIC, 6, DIRECTORY)).contains("first-0 lies on brokers 6:"));
    assert!(refusal(|found| found.records[3] = partition(TOPIC, 5, OTHER)).contains("another log directory"));
    assert!(refusal(|found| found.records[1] = broker(5, true, OTHER)).contains("this one has"));
    let two = broker_with(5, true, &[DIRECTORY, OTHER]);
    assert!(refusal(|found| found.records[1] = two).contains("the node has 2 log directories"));
    let cluster = |found: &mut Found| found.metadata_properties.cluster_id = Some("d".to_owned());
    assert!(refusal(cluster).contains("belongs to node 5 of cluster d"));
    assert!(refusal(|found| found.properties.directory_id = None).contains("no directory.id"));
}

#[test]
fn a_directory_that_is_newer_than_its_metadata_is_refused() {
    let newer = |found: &mut Found| found.inventory.partitions[0].latest_epoch = Some(LeaderEpoch::new(3));
    assert!(refusal(newer).contains("leader epoch 3, the metadata knows of 2"));
}

#[test]
fn segments_that_are_elsewhere_are_not_left_behind() {
    let remote = |found: &mut Found| found.records.push(config(2, "first", REMOTE_STORAGE, "true"));
    assert!(refusal(remote).contains("topic first keeps segments in remote storage"));
}

#[test]
fn voters_of_the_configuration_go_into_the_log() {
    let by_configuration = |found: &mut Found| {
        found.metadata.kraft_version = KRaftVersion::Static;
        let mut voter = voter(5, Uuid::ZERO);
        voter.endpoints.clear();
        found.metadata.voters = VoterSet::new([voter]);
    };
    assert!(refusal(by_configuration).contains("nothing says where the controller listens"));
    let registered = |found: &mut Found| {
        by_configuration(found);
        let endpoint = register_controller_record::ControllerEndpoint {
            name: "CONTROLLER".into(),
            host: "localhost".into(),
            port: 9093,
            ..Default::default()
        };
        found.records.push(
            RegisterControllerRecord {
                controller_id: 5,
                end_points: vec![endpoint],
                ..RegisterControllerRecord::default()
            }
            .into(),
        );
    };
    let mut found = Found::new();
    registered(&mut found);
    let plan = found.plan(Direction::Import).unwrap();
    assert_eq!(plan.voters, VoterSet::new([voter(5, DIRECTORY)]));
    assert_eq!(plan.notices, [Notice::VotersIntoLog]);
    let old = |found: &mut Found| {
        registered(found);
        found.records[0] = feature(MetadataVersion::FEATURE, 20);
    };
    assert!(refusal(old).contains("metadata.version 20 is too low"));
}

#[test]
fn nothing_that_has_no_effect_here_goes_unsaid() {
    let told = notices(Direction::Import, |found| {
        found.records.extend([
            AccessControlEntryRecord {
                id: OTHER,
                ..AccessControlEntryRecord::default()
            }
            .into(),
            ClientQuotaRecord {
                entity: vec![client_quota_record::EntityData {
                    entity_type: "user".into(),
                    entity_name: Some("alice".into()),
                    ..Default::default()
                }],
                key: "producer_byte_rate".into(),
                value: 1.0,
                ..ClientQuotaRecord::default()
            }
            .into(),
            config(2, "first", "retention.ms", "1000"),
            config(2, "first", "no.such.key", "1"),
            config(16, "subscription", "interval.ms", "1000"),
            topic("__transaction_state", OTHER),
            broker(6, true, OTHER),
        ]);
        found.groups.share.insert("s".to_owned());
        found.groups.consumer.insert("c".to_owned());
        let first = &mut found.inventory.partitions[0];
        first.aborted_transactions = 2;
        first.open_transactions.push(OpenTransaction {
            producer: ProducerId::new(3),
            first_offset: Offset::new(11),
        });
        let mut offsets = folder("__consumer_offsets-0.0123456789abcdef0123456789abcdef-stray", None);
        offsets.aborted_transactions = 1;
        found.inventory.partitions.push(offsets);
        found.inventory.partitions.push(folder("gone-0", Some(OTHER)));
        found.inventory.left_out.push(LeftOut::Unknown("/d/readme".into()));
        found.inventory.left_out.push(LeftOut::Leftover("/d/x.deleted".into()));
    });
    let begins = [
        "broker 6 is registered, fenced",
        "the metadata does not know gone-0",
        "1 access control entries are kept and not enforced",
        "quotas of 1 entities",
        "no.such.key of topic first is kept and has no effect",
        "interval.ms of client metrics subscription subscription",
        "1 groups of the consumer protocol",
        "1 share groups",
        "__transaction_state is kept",
        "first-0 holds 2 aborted transactions",
        "first-0 holds a transaction of producer 3 that began at offset 11",
        "the metadata does not know __consumer_offsets-0.0123",
        "/d/readme is nothing of a log directory",
    ];
    assert_eq!(told.len(), begins.len(), "{told:#?}");
    for (told, begin) in told.iter().zip(begins) {
        assert!(told.starts_with(begin), "{told}");
    }
}

#[test]
fn a_folder_of_an_earlier_topic_of_the_name_is_none_of_this_one() {
    let told = notices(Direction::Import, |found| {
        found.inventory.partitions[0].topic_id = Some(OTHER)
    });
    assert_eq!(told.len(), 2, "{told:?}");
    let missing = Notice::FolderMissing { partition: first() }.to_string();
    assert!(
        told[0] == missing && told[1].contains("does not know first-0"),
        "{told:?}"
    );
}

#[test]
fn what_only_we_know_stays_here_when_kafka_takes_over() {
    let mut found = Found::new();
    found.records.extend([
        config(4, "", "millstream.acks.durability", "replicated"),
        config(4, "", "log.retention.ms", "1000"),
        topic("__millstream_plugins", OTHER),
    ]);
    found.inventory.partitions[0].is_quarantined = true;
    let plan = found.plan(Direction::Export).unwrap();
    let told: Vec<String> = plan.notices.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told[2].starts_with("first-0 holds damaged records"));
    assert!(told[0].starts_with("millstream.acks.durability of all brokers is left out"));
    assert!(told[1].starts_with("__millstream_plugins is Millstream's own"));
    let keys: Vec<String> = plan
        .records()
        .filter_map(|record| match record {
            MetadataRecord::Config(config) => Some(config.name.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(keys, ["log.retention.ms"]);
}
