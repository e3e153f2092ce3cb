//! Groups rows by a field of their JSON value, and takes their event time from another.

use bytes::{Bytes, BytesMut};
use serde_json::Value;

use crate::batch::{Batch, Row};
use crate::columns::NULL;
use crate::error::{Rejection, Trap};
use crate::keying::{Keying, Keys, KeysColumns};

/// A row whose value is null, or lacks the key field, has no key. A value that is no JSON object, or whose time field is
/// no whole number, is rejected.
#[derive(Clone, Debug, Default)]
pub struct FieldKey {
    /// `None`: rows keep their key.
    pub key_field: Option<String>,
    /// Milliseconds since 1970. `None`: rows keep their timestamp.
    pub time_field: Option<String>,
}

struct Assigned {
    key: Option<Bytes>,
    timestamp: i64,
}

impl Keying for FieldKey {
    fn assign(&mut self, rows: &Batch) -> Result<Keys, Trap> {
        let mut columns = KeysColumns::default();
        let mut arena = BytesMut::new();
        for row in rows.rows() {
            let assigned = self.read(&row).unwrap_or_else(|reason| {
                let index = u32::try_from(row.index()).expect("a batch's rows are bounded");
                columns.rejections.push(Rejection { row: index, reason });
                Assigned {
                    key: None,
                    timestamp: row.timestamp().millis(),
                }
            });
            columns.timestamps.push(assigned.timestamp);
            match assigned.key {
                None => columns.spans.extend([0, NULL]),
                Some(key) => {
                    columns
                        .spans
                        .extend([arena.len(), key.len()].map(|n| u32::try_from(n).unwrap_or(NULL)));
                    arena.extend_from_slice(&key);
                }
            }
        }
        columns.arena = arena.freeze();
        Ok(Keys::from_columns(columns, rows.len())?)
    }
}

impl FieldKey {
    fn read(&self, row: &Row<'_>) -> Result<Assigned, String> {
        let own = row.timestamp().millis();
        let Some(value) = row.value() else {
            return Ok(Assigned {
                key: None,
                timestamp: own,
            });
        };
        let value: Value = serde_json::from_slice(value).map_err(|error| format!("the value is no JSON: {error}"))?;
        let Value::Object(fields) = value else {
            return Err("the value is no JSON object".into());
        };
        let key = match &self.key_field {
            None => row.shared_key(),
            Some(name) => match fields.get(name) {
                None | Some(Value::Null) => None,
                Some(Value::String(text)) => Some(Bytes::copy_from_slice(text.as_bytes())),
                Some(other) => Some(Bytes::from(other.to_string())),
            },
        };
        let timestamp = match &self.time_field {
            None => own,
            Some(name) => fields
                .get(name)
                .and_then(Value::as_i64)
                .ok_or_else(|| format!("field {name:?} is no whole number"))?,
        };
        Ok(Assigned { key, timestamp })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BatchBuilder;
    use model::{Offset, PartitionIndex, Timestamp};

    #[test]
    fn keys_and_times_come_from_the_value() {
        let mut builder = BatchBuilder::new(0, PartitionIndex::new(0), Offset::ZERO);
        let values: [Option<&[u8]>; 6] = [
            Some(br#"{"origin":"ABC","at":5}"#),
            Some(br#"{"origin":7,"at":6}"#),
            Some(br#"{"at":7}"#),
            Some(br#"{"origin":"ABC","at":"8"}"#),
            Some(b"[]"),
            None,
        ];
        for (offset, value) in (0..).zip(values) {
            let (key, time) = (Some(&b"own"[..]), Timestamp::from_millis(1));
            builder
                .push(Offset::new(offset), time, key, value, std::iter::empty())
                .unwrap();
        }
        let rows = builder.finish();
        let mut both = FieldKey {
            key_field: Some("origin".into()),
            time_field: Some("at".into()),
        };
        let keys = both.assign(&rows).unwrap();
        assert_eq!(keys.key(0), Some(Some(Bytes::from_static(b"ABC"))));
        assert_eq!(keys.key(1), Some(Some(Bytes::from_static(b"7"))));
        assert_eq!(
            (keys.key(2), keys.key(5)),
            (Some(None), Some(None)),
            "no such field, no value"
        );
        let times: Vec<_> = (0..3).map(|row| keys.timestamp(row).unwrap().millis()).collect();
        assert_eq!(times, [5, 6, 7]);
        let rejected: Vec<_> = keys.rejections().iter().map(|rejection| rejection.row).collect();
        assert_eq!(rejected, [3, 4], "a time that is no number, a value that is no object");
        let mut time_only = FieldKey {
            key_field: None,
            time_field: Some("at".into()),
        };
        let keys = time_only.assign(&rows).unwrap();
        assert_eq!(keys.key(2), Some(Some(Bytes::from_static(b"own"))));
    }
}
