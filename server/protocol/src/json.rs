//! Log records as JSON, as Apache Kafka's tools show them: fields in the schema's order under its names in camel case,
//! bytes in base64, ids in their own form. For people and scripts; nothing is read back from it.

use bytes::Bytes;
use model::Uuid;

use crate::Text;

/// What can be shown. `version` decides which fields there are.
pub(crate) trait Json {
    fn json(&self, out: &mut String, version: i16);
}

/// The value as text.
pub(crate) fn to_json(value: &impl Json, version: i16) -> String {
    let mut out = String::new();
    value.json(&mut out, version);
    out
}

/// An object that is being written.
pub(crate) struct Object<'o> {
    out: &'o mut String,
    is_empty: bool,
}

impl<'o> Object<'o> {
    pub(crate) fn begin(out: &'o mut String) -> Self {
        out.push('{');
        Object { out, is_empty: true }
    }

    /// `name` needs no escapes.
    pub(crate) fn field(&mut self, name: &str, value: &impl Json, version: i16) {
        if !self.is_empty {
            self.out.push(',');
        }
        self.is_empty = false;
        self.out.push('"');
        self.out.push_str(name);
        self.out.push_str("\":");
        value.json(self.out, version);
    }

    pub(crate) fn end(self) {
        self.out.push('}');
    }
}

macro_rules! plain {
    ($($type:ty),*) => {
        $(impl Json for $type {
            fn json(&self, out: &mut String, _version: i16) {
                out.push_str(&self.to_string());
            }
        })*
    };
}

plain!(bool, i8, i16, i32, i64, u16, u32);

impl Json for f64 {
    fn json(&self, out: &mut String, _version: i16) {
        // As Java writes it: 1 is 1.0.
        out.push_str(&format!("{self:?}"));
    }
}

impl Json for Uuid {
    fn json(&self, out: &mut String, _version: i16) {
        quote(out, &self.to_string());
    }
}

impl Json for Text {
    fn json(&self, out: &mut String, _version: i16) {
        quote(out, self);
    }
}

impl Json for Bytes {
    fn json(&self, out: &mut String, _version: i16) {
        out.push('"');
        base64(out, self);
        out.push('"');
    }
}

impl<T: Json> Json for Vec<T> {
    fn json(&self, out: &mut String, version: i16) {
        out.push('[');
        for (at, value) in self.iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            value.json(out, version);
        }
        out.push(']');
    }
}

impl<T: Json> Json for Option<T> {
    fn json(&self, out: &mut String, version: i16) {
        match self {
            Some(value) => value.json(out, version),
            None => out.push_str("null"),
        }
    }
}

fn quote(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            control if control < ' ' => out.push_str(&format!("\\u{:04X}", u32::from(control))),
            other => out.push(other),
        }
    }
    out.push('"');
}

fn base64(out: &mut String, bytes: &[u8]) {
    const DIGITS: [char; 64] = {
        let mut digits = ['A'; 64];
        let text = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut at = 0;
        while at < 64 {
            digits[at] = text[at] as char;
            at += 1;
        }
        digits
    };
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4usize {
            let is_there = digit <= chunk.len();
            let value = (bits >> (18 - 6 * digit)) & 63;
            out.push(if is_there { DIGITS[value as usize] } else { '=' });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::internal_records::group_coordinator::{Key, OffsetCommitKey, OffsetCommitValue, Value};
    use crate::internal_records::metadata::{ConfigRecord, MetadataRecord, PartitionRecord};

    #[test]
    fn bytes_are_padded_base64() {
        let shown = |bytes: &'static [u8]| to_json(&Bytes::from_static(bytes), 0);
        assert_eq!(shown(b""), "\"\"");
        assert_eq!(shown(b"f"), "\"Zg==\"");
        assert_eq!(shown(b"fo"), "\"Zm8=\"");
        assert_eq!(shown(b"foo\xff"), "\"Zm9v/w==\"");
    }

    #[test]
    fn text_is_escaped() {
        assert_eq!(to_json(&Text::from("a\"\\\n\u{1}ü"), 0), "\"a\\\"\\\\\\n\\u0001ü\"");
    }

    #[test]
    fn a_record_shows_the_fields_of_its_version_in_their_order() {
        let key = Key::from(OffsetCommitKey {
            group: "g".into(),
            topic: "t".into(),
            partition: 3,
        });
        assert_eq!(key.to_json(0), r#"{"group":"g","topic":"t","partition":3}"#);
        let value = Value::from(OffsetCommitValue {
            offset: 7,
            leader_epoch: 2,
            metadata: "m".into(),
            commit_timestamp: 5,
            ..OffsetCommitValue::default()
        });
        assert_eq!(
            value.to_json(3),
            r#"{"offset":7,"leaderEpoch":2,"metadata":"m","commitTimestamp":5}"#
        );
        let record = MetadataRecord::from(ConfigRecord {
            resource_type: 4,
            name: "k".into(),
            value: None,
            ..ConfigRecord::default()
        });
        assert_eq!(
            record.to_json(0),
            r#"{"resourceType":4,"resourceName":"","name":"k","value":null}"#
        );
    }

    #[test]
    fn a_tagged_field_is_shown_where_it_says_anything() {
        let mut record = PartitionRecord::default();
        assert!(!to_json(&record, 2).contains("eligibleLeaderReplicas"));
        record.eligible_leader_replicas = Some(vec![1]);
        assert!(to_json(&record, 2).contains(r#""eligibleLeaderReplicas":[1]"#));
    }
}
