//! Bytes that Apache Kafka 4.4.0's own classes wrote; `tests/golden/Golden.java` says how they come about.

use std::collections::BTreeSet;

use bytes::Bytes;

use super::registry::{Entry, all, find};
use crate::internal_records::control::ControlRecord;
use crate::internal_records::metadata::MetadataRecord;
use crate::internal_records::prefixed::{decode_versioned, encode_versioned};
use crate::internal_records::storage::{ProducerSnapshot, RemoteLogRecord};
use crate::internal_records::{group_coordinator, share_coordinator, transaction_coordinator};
use crate::{ApiKey, EncodeError, ListenerKind};

const MESSAGES: &str = include_str!("../../golden/messages.txt");
const DOWNGRADES: &str = include_str!("../../golden/downgrades.txt");
const RECORDS: &str = include_str!("../../golden/records.txt");
const APIS: &str = include_str!("../../golden/apis.txt");

/// A message of the golden file.
pub(super) struct Golden<'e> {
    pub(super) entry: &'e Entry,
    pub(super) version: i16,
    /// `default`, `full` or `null`.
    pub(super) variant: &'static str,
    pub(super) bytes: Bytes,
}

pub(super) fn messages(entries: &[Entry]) -> impl Iterator<Item = Golden<'_>> {
    MESSAGES.lines().map(|line| {
        let [folder, name, version, variant, bytes] = words(line);
        let entry = find(entries, folder, name);
        Golden {
            entry,
            version: version.parse().unwrap(),
            variant,
            bytes: from_hex(bytes),
        }
    })
}

fn words<const N: usize>(line: &'static str) -> [&'static str; N] {
    let words: Vec<&str> = line.split(' ').collect();
    words.try_into().unwrap_or_else(|_| panic!("not {N} words: {line}"))
}

fn from_hex(text: &str) -> Bytes {
    if text == "-" {
        return Bytes::new();
    }
    let digits = text.as_bytes().chunks(2);
    digits
        .map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

#[test]
fn kafkas_bytes_are_read_and_written_again_as_they_were() {
    let entries = all();
    for Golden {
        entry,
        version,
        variant,
        bytes,
    } in messages(&entries)
    {
        let what = format!("{}/{} {version} {variant}", entry.folder, entry.name);
        let written =
            (entry.convert)(bytes.clone(), version, version).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(written.as_ref(), Ok(&bytes), "{what}");
    }
}

#[test]
fn each_message_has_kafkas_bytes_for_each_of_its_versions() {
    let entries = all();
    let golden: BTreeSet<_> = messages(&entries)
        .map(|golden| (golden.entry.folder, golden.entry.name, golden.version, golden.variant))
        .collect();
    for entry in &entries {
        for version in entry.first_version..=entry.last_version {
            for variant in ["default", "full", "null"] {
                let wanted = (entry.folder, entry.name, version, variant);
                assert!(golden.contains(&wanted), "{wanted:?}");
            }
        }
    }
}

#[test]
fn defaults_are_kafkas_defaults() {
    let entries = all();
    for Golden {
        entry, version, bytes, ..
    } in messages(&entries).filter(|golden| golden.variant == "default")
    {
        let what = format!("{}/{} {version}", entry.folder, entry.name);
        assert_eq!((entry.default)(version).as_ref(), Ok(&bytes), "{what}");
        assert!((entry.is_default)(bytes, version), "{what}");
    }
}

#[test]
fn a_field_that_a_version_lacks_is_dropped_or_refused_as_kafka_does() {
    let entries = all();
    for line in DOWNGRADES.lines() {
        let [folder, name, version, _field, bytes, target, outcome] = words(line);
        let entry = find(&entries, folder, name);
        let converted = (entry.convert)(from_hex(bytes), version.parse().unwrap(), target.parse().unwrap());
        match converted.unwrap_or_else(|error| panic!("{line}: {error}")) {
            Ok(_) if outcome == "refused" => panic!("written, but Kafka refuses: {line}"),
            Ok(written) => assert_eq!(written, from_hex(outcome), "{line}"),
            Err(EncodeError::NotInVersion { .. }) => assert_eq!(outcome, "refused", "{line}"),
            Err(other) => panic!("{line}: {other}"),
        }
    }
}

#[test]
fn apis_have_kafkas_codes_versions_headers_and_listeners() {
    assert_eq!(APIS.lines().count(), ApiKey::ALL.len());
    for line in APIS.lines() {
        let [code, name, first, last, last_stable, listeners, requests, responses] = words(line);
        let api_key = ApiKey::from_code(code.parse().unwrap()).unwrap();
        assert_eq!(api_key.name(), name);
        assert_eq!(
            api_key.versions(),
            first.parse().unwrap()..=last.parse().unwrap(),
            "{line}"
        );
        assert_eq!(
            *api_key.stable_versions().end(),
            last_stable.parse::<i16>().unwrap(),
            "{line}"
        );
        let broker = listeners.split(',').any(|listener| listener == "broker");
        let controller = listeners.split(',').any(|listener| listener == "controller");
        assert_eq!(api_key.is_served_by(ListenerKind::Broker), broker, "{line}");
        assert_eq!(api_key.is_served_by(ListenerKind::Controller), controller, "{line}");
        let headers = requests.split(',').zip(responses.split(','));
        for (version, (request, response)) in api_key.versions().zip(headers) {
            assert_eq!(
                api_key.request_header_version(version),
                request.parse::<i16>().unwrap(),
                "{line}: {version}"
            );
            assert_eq!(
                api_key.response_header_version(version),
                response.parse::<i16>().unwrap(),
                "{line}: {version}"
            );
        }
    }
}

/// Reads a coordinator's key and value with its types and writes both again.
macro_rules! coordinator {
    ($module:ident, $key:expr, $value:expr) => {{
        let key = $module::Key::from_bytes($key).unwrap();
        let (value, version) = $module::Value::from_bytes(key.record_type(), $value).unwrap();
        let written = (key.to_bytes().unwrap(), value.to_bytes(version).unwrap());
        (value.record_type(), version, written.0, written.1)
    }};
}

#[test]
fn records_of_kafkas_logs_are_read_and_written_again_as_they_were() {
    for line in RECORDS.lines() {
        let [log, record_type, version, key, value] = words(line);
        let (key, value) = (from_hex(key), from_hex(value));
        let written = match log {
            "metadata" => {
                let (record, version) = MetadataRecord::from_bytes(value.clone()).unwrap();
                (
                    record.record_type(),
                    version,
                    Bytes::new(),
                    record.to_bytes(version).unwrap(),
                )
            }
            "storage" => {
                let (record, version) = RemoteLogRecord::from_bytes(value.clone()).unwrap();
                (
                    record.record_type(),
                    version,
                    Bytes::new(),
                    record.to_bytes(version).unwrap(),
                )
            }
            "snapshot" => {
                let (snapshot, version): (ProducerSnapshot, _) = decode_versioned(value.clone()).unwrap();
                (0, version, Bytes::new(), encode_versioned(&snapshot, version).unwrap())
            }
            "control" => {
                let record = ControlRecord::from_bytes(key.clone(), value.clone()).unwrap();
                (
                    record.control_type(),
                    0,
                    record.key_bytes().unwrap(),
                    record.value_bytes().unwrap(),
                )
            }
            "group_coordinator" => coordinator!(group_coordinator, key.clone(), value.clone()),
            "transaction_coordinator" => coordinator!(transaction_coordinator, key.clone(), value.clone()),
            "share_coordinator" => coordinator!(share_coordinator, key.clone(), value.clone()),
            other => panic!("no log is called {other}"),
        };
        assert_eq!(
            written,
            (record_type.parse().unwrap(), version.parse().unwrap(), key, value),
            "{line}"
        );
    }
}
