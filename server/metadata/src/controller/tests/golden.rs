//! A log and a snapshot that Apache Kafka 4.4.0 wrote: read, replayed, and written again.

use bytes::Bytes;
use model::record_batch::{Batches, DecompressionLimit, records};

use super::*;

const LOG: &[u8] = include_bytes!("../../../golden/cluster_metadata/00000000000000000000.log");
const SNAPSHOT: &[u8] = include_bytes!("../../../golden/cluster_metadata/00000000000000000083-0000000001.checkpoint");
const FORMATTED: &[u8] = include_bytes!("../../../golden/cluster_metadata/00000000000000000000-0000000000.checkpoint");

/// Where a batch ends, its epoch and time, and its data records with their bytes; control batches have none.
type WrittenBatch = (Offset, i32, i64, Vec<(MetadataRecord, Bytes)>);

fn batches(file: &'static [u8]) -> Vec<WrittenBatch> {
    let read = |batch: Result<model::record_batch::Batch<'_>, _>| {
        let batch = batch.unwrap();
        batch.check_crc().unwrap();
        let header = batch.header;
        let all = records(&Bytes::copy_from_slice(batch.bytes()), DecompressionLimit::DEFAULT).unwrap();
        let data = all
            .map(Result::unwrap)
            .filter(|_| !header.attributes.is_control())
            .map(|record| {
                let value = record.value.unwrap();
                (MetadataRecord::from_bytes(value.clone()).unwrap().0, value)
            });
        (
            header.next_offset(),
            header.partition_leader_epoch,
            header.max_timestamp,
            data.collect(),
        )
    };
    Batches::new(file).map(read).collect()
}

fn replayed_to(end: Offset) -> Image {
    let mut replay = Replay::default();
    for (next, epoch, timestamp, records) in batches(LOG).into_iter().filter(|(next, ..)| *next <= end) {
        records.iter().for_each(|(record, _)| replay.record(record).unwrap());
        replay.batch_ended(next, ControllerEpoch::new(epoch), Timestamp::from_millis(timestamp));
    }
    replay.take().unwrap().1
}

#[test]
fn every_record_that_kafka_wrote_is_sealed_to_the_same_bytes() {
    for file in [LOG, SNAPSHOT, FORMATTED] {
        for (record, bytes) in batches(file).into_iter().flat_map(|(.., records)| records) {
            let name = record.name();
            assert_eq!(seal(record, MetadataVersion::LATEST).unwrap().bytes, bytes, "{name}");
        }
    }
}

#[test]
fn kafkas_log_replays_to_what_its_snapshot_says() {
    let image = replayed_to(Offset::new(83));
    let mut loaded = Replay::default();
    let theirs: Vec<MetadataRecord> = batches(SNAPSHOT)
        .into_iter()
        .flat_map(|(.., records)| records)
        .map(|(record, _)| record)
        .collect();
    theirs.iter().for_each(|record| loaded.record(record).unwrap());
    loaded.batch_ended(image.end_offset, image.epoch, image.last_timestamp);
    assert_eq!(loaded.image(), &image);
    // The same records of the same kinds in the same order of kinds; within a kind Kafka's order is that of its hashes.
    let ours: Vec<MetadataRecord> = image.records().collect();
    let kinds = |records: &[MetadataRecord]| records.iter().map(MetadataRecord::record_type).collect::<Vec<_>>();
    assert_eq!(kinds(&ours), kinds(&theirs));
    let registers = |record: &&MetadataRecord| {
        matches!(
            record,
            MetadataRecord::RegisterBroker(_) | MetadataRecord::RegisterController(_)
        )
    };
    // Registrations list their features in the order of hashes, too.
    assert!(
        ours.iter()
            .filter(|record| !registers(record))
            .all(|record| theirs.contains(record))
    );
    assert_eq!(ours[0], theirs[0]);
}

#[test]
fn the_whole_log_replays_and_ends_as_the_clean_stop_left_it() {
    let image = replayed_to(Offset::MAX);
    let partition = image.topics.partition("first", PartitionIndex::new(0)).unwrap();
    assert_eq!((partition.leader, partition.leader_recovery_state.wire()), (None, 1));
    assert_eq!(partition.eligible_leader_replicas, [BrokerId::new(1)]);
    assert!(image.topics.by_name("gone").is_none());
    assert!(image.cluster.broker(BrokerId::new(1)).unwrap().fenced);
    assert_eq!(image.next_producer_id, Some(1000));
    assert_eq!(image.client_quotas.iter().count(), 1);
    assert_eq!(image.security.scram_credentials.len(), 1);
}

#[test]
fn formatting_writes_the_features_that_kafka_formats_with() {
    let theirs = batches(FORMATTED)
        .into_iter()
        .flat_map(|(.., records)| records)
        .map(|(record, _)| record);
    assert_eq!(bootstrap_records(), theirs.collect::<Vec<_>>());
}
