//! Keys that Apache Kafka does not have, all under `millstream.`.
//!
//! They are a node's own: nothing private goes into the cluster metadata, so none can be set while the cluster runs.

use super::super::check::Check;
use super::super::definition::{KeyDefinition, list, long, same, string};

const DURABILITIES: &[&str] = &["fsync", "replicated"];
const VALIDATIONS: &[&str] = &["batch", "records"];

pub(super) const BROKER_KEYS: &[KeyDefinition] = &[
    string("millstream.acks.durability")
        .default("fsync")
        .check(Check::OneOf(DURABILITIES))
        .high()
        .in_effect()
        .doc(
            "What an acknowledged record has behind it: fsync on every in-sync replica, or their memory (replicated).",
        ),
    list("millstream.http.listeners")
        .default("http://127.0.0.1:8080")
        .check(Check::Entries)
        .high()
        .in_effect()
        .doc("Addresses of the HTTP gateway, as http://host:port; empty for none."),
    long("millstream.log.reserve.bytes")
        .default("33554432")
        .at_least(0)
        .in_effect()
        .doc(
            "Room held back in each log directory for deletion, checkpoints and restarts on a full disk, a sixteenth of \
             the disk at most; 0 for none.",
        ),
    long("millstream.log.scrub.bytes.per.second")
        .default("4194304")
        .at_least(0)
        .in_effect()
        .doc("How fast the logs are read through in search of damage that nobody has come upon; 0 for not at all."),
    string("millstream.produce.validation")
        .default("batch")
        .check(Check::OneOf(VALIDATIONS))
        .in_effect()
        .doc("How far produced batches are checked: header and checksum (batch), or every record in them (records)."),
];

/// What topics have by the broker's keys of the same names. They cannot be set on a topic.
pub(super) const TOPIC_KEYS: &[KeyDefinition] = &[
    string("millstream.acks.durability")
        .default("fsync")
        .check(Check::OneOf(DURABILITIES))
        .in_effect()
        .internal()
        .synonyms(&[same("millstream.acks.durability")])
        .doc(
            "What an acknowledged record has behind it: fsync on every in-sync replica, or their memory (replicated).",
        ),
    string("millstream.produce.validation")
        .default("batch")
        .check(Check::OneOf(VALIDATIONS))
        .in_effect()
        .internal()
        .synonyms(&[same("millstream.produce.validation")])
        .doc("How far produced batches are checked: header and checksum (batch), or every record in them (records)."),
];
