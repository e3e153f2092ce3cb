//! What the records of the cluster's own topics mean, in the JSON that Apache Kafka's tool prints.

use bytes::Bytes;
use clap::ValueEnum;
use model::record_batch::RecordView;
use protocol::internal_records::metadata::MetadataRecord;
use protocol::internal_records::{group_coordinator, share_coordinator, transaction_coordinator};

/// Whose records they are.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Decoder {
    /// `__consumer_offsets`
    Offsets,
    /// `__cluster_metadata`
    Metadata,
    /// `__transaction_state`
    Transactions,
    /// `__share_group_state`
    Shares,
}

/// A record as JSON text.
pub(super) enum Decoded {
    Read { key: Option<String>, value: Option<String> },
    Failed(String),
}

/// Reads a coordinator's record: the three kinds have the same shape and no trait in common.
macro_rules! parts {
    ($module:ident) => {
        |key, value| {
            let key = $module::Key::from_bytes(key)?;
            let value = value
                .map(|value| $module::Value::from_bytes(key.record_type(), value))
                .transpose()?;
            let value = value.map(|(value, version)| (version, value.to_json(version)));
            Ok(((key.record_type(), key.to_json(0)), value))
        }
    };
}

impl Decoder {
    /// What stands behind `key:` and `payload:`.
    pub(super) fn texts(self, record: &RecordView<'_>) -> (Option<String>, Option<String>) {
        match (self, self.decode(record)) {
            (_, Decoded::Failed(why)) => (Some(why), None),
            // A tombstone.
            (Decoder::Metadata, Decoded::Read { key, value }) => (key, value),
            (_, Decoded::Read { key, value }) => (key, Some(value.unwrap_or_else(|| "<DELETE>".to_owned()))),
        }
    }

    pub(super) fn decode(self, record: &RecordView<'_>) -> Decoded {
        let decoded = match self {
            Decoder::Metadata => metadata(record),
            Decoder::Offsets => coordinator(record, parts!(group_coordinator)),
            Decoder::Transactions => coordinator(record, parts!(transaction_coordinator))
                .map(|(key, value)| (key, value.map(|json| with_status_named(&json)))),
            Decoder::Shares => coordinator(record, parts!(share_coordinator)),
        };
        match decoded {
            Ok((key, value)) => Decoded::Read { key, value },
            Err(why) => Decoded::Failed(format!("offset {} cannot be decoded: {why}", record.offset)),
        }
    }
}

/// The states of a transaction by their numbers in `__transaction_state`.
const TRANSACTION_STATES: [&str; 8] = [
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
];

/// Apache Kafka's tool names the state; the message has its number. An unknown one stays a number.
fn with_status_named(json: &str) -> String {
    const FIELD: &str = r#""transactionStatus":"#;
    let Some(at) = json.find(FIELD).map(|at| at + FIELD.len()) else {
        return json.to_owned();
    };
    let (before, rest) = json.split_at(at);
    let end = rest.find([',', '}']).unwrap_or(rest.len());
    let (number, after) = rest.split_at(end);
    match number
        .parse()
        .ok()
        .and_then(|number: usize| TRANSACTION_STATES.get(number))
    {
        Some(name) => format!(r#"{before}"{name}"{after}"#),
        None => json.to_owned(),
    }
}

type Texts = (Option<String>, Option<String>);
/// The key's type, the value's version, and their JSON.
type Parts = ((i16, String), Option<(i16, String)>);

fn metadata(record: &RecordView<'_>) -> Result<Texts, String> {
    let value = record.value.ok_or("the record has no value")?;
    let (record, version) =
        MetadataRecord::from_bytes(Bytes::copy_from_slice(value)).map_err(|error| error.to_string())?;
    let kind = upper_snake(record.name());
    let data = record.to_json(version);
    Ok((
        None,
        Some(format!(r#"{{"type":"{kind}","version":{version},"data":{data}}}"#)),
    ))
}

fn coordinator(
    record: &RecordView<'_>,
    read: impl Fn(Bytes, Option<Bytes>) -> Result<Parts, protocol::DecodeError>,
) -> Result<Texts, String> {
    let key = record.key.ok_or("the record has no key")?;
    let value = record.value.map(Bytes::copy_from_slice);
    let ((kind, key), value) = read(Bytes::copy_from_slice(key), value).map_err(|error| error.to_string())?;
    let key = format!(r#"{{"type":"{kind}","data":{key}}}"#);
    let value = value.map(|(version, value)| format!(r#"{{"version":"{version}","data":{value}}}"#));
    Ok((Some(key), value))
}

/// `RegisterBrokerRecord` becomes `REGISTER_BROKER_RECORD`.
fn upper_snake(name: &str) -> String {
    let mut out = String::new();
    for (at, character) in name.char_indices() {
        if at > 0 && character.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(character.to_ascii_uppercase());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transactions_state_has_its_name() {
        let of = |number: i8| with_status_named(&format!(r#"{{"a":1,"transactionStatus":{number},"b":{{}}}}"#));
        assert_eq!(of(0), r#"{"a":1,"transactionStatus":"Empty","b":{}}"#);
        assert_eq!(of(7), r#"{"a":1,"transactionStatus":"PrepareEpochFence","b":{}}"#);
        assert_eq!(of(8), r#"{"a":1,"transactionStatus":8,"b":{}}"#);
        assert_eq!(of(-1), r#"{"a":1,"transactionStatus":-1,"b":{}}"#);
        assert_eq!(with_status_named("{}"), "{}");
    }

    #[test]
    fn a_records_kind_is_kafkas_constant() {
        assert_eq!(upper_snake("RegisterBrokerRecord"), "REGISTER_BROKER_RECORD");
        assert_eq!(upper_snake("ClearElrRecord"), "CLEAR_ELR_RECORD");
    }
}
