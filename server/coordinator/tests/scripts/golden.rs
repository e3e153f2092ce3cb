//! `__consumer_offsets` as Apache Kafka 4.4.0 wrote it, for [`crate::replay`].

use bytes::Bytes;
use coordinator::Record;
use coordinator::group::records::{CommittedOffset, GroupRecord, GroupSnapshot};
use model::Uuid;

const LOG: &str = include_str!("../../golden/consumer_offsets_4_4_0.txt");

/// The topic that the log's groups read.
pub(crate) fn orders_id() -> Uuid {
    let line = LOG
        .lines()
        .find_map(|line| line.strip_prefix("# topic orders has the id "));
    line.unwrap().parse().unwrap()
}

pub(crate) fn log() -> Vec<Record> {
    let lines = LOG.lines().filter(|line| !line.starts_with('#'));
    let records = lines.map(|line| {
        let mut fields = line.split(' ').skip(1);
        let key = bytes_of(fields.next().unwrap()).unwrap();
        Record {
            key,
            value: bytes_of(fields.next().unwrap()),
        }
    });
    records.collect()
}

pub(crate) fn decoded(record: &Record) -> GroupRecord {
    GroupRecord::decode(record).unwrap().unwrap()
}

pub(crate) fn snapshot(record: &Record) -> GroupSnapshot {
    match decoded(record) {
        GroupRecord::Group { value: Some(value), .. } => value,
        other => panic!("{other:?} is no group"),
    }
}

pub(crate) fn offset(record: &Record) -> CommittedOffset {
    match decoded(record) {
        GroupRecord::Offset { value: Some(value), .. } => value,
        other => panic!("{other:?} is no offset"),
    }
}

fn bytes_of(hex: &str) -> Option<Bytes> {
    if hex == "-" {
        return None;
    }
    let digits = hex.as_bytes().chunks(2);
    Some(
        digits
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect(),
    )
}
