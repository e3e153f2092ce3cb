//! How a record is printed: a format in the manner of rpk and kcat, or one JSON object a line.

use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use model::TopicName;
use model::record_batch::Record;
use serde_json::{Map, Value, json};

/// A parsed format.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct RecordFormat {
    pieces: Vec<Piece>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Piece {
    Literal(Vec<u8>),
    Topic,
    Partition,
    Offset,
    Timestamp,
    Key(Encoding),
    Value(Encoding),
    KeyLength,
    ValueLength,
    Headers,
}

/// How bytes are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Encoding {
    Plain,
    Hex,
    Base64,
}

impl FromStr for RecordFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut literal = Vec::new();
        let mut rest = text;
        while let Some(character) = rest.chars().next() {
            rest = &rest[character.len_utf8()..];
            match character {
                '%' => {
                    let piece = directive(&mut rest)?;
                    if let Piece::Literal(bytes) = piece {
                        literal.extend(bytes);
                    } else {
                        pieces.extend((!literal.is_empty()).then(|| Piece::Literal(std::mem::take(&mut literal))));
                        pieces.push(piece);
                    }
                }
                '\\' => literal.push(escape(&mut rest)?),
                _ => literal.extend(character.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        pieces.extend((!literal.is_empty()).then_some(Piece::Literal(literal)));
        Ok(RecordFormat { pieces })
    }
}

fn directive(rest: &mut &str) -> Result<Piece, String> {
    let letter = rest
        .chars()
        .next()
        .ok_or("a format ends in %: write %% for a percent sign")?;
    *rest = &rest[letter.len_utf8()..];
    Ok(match letter {
        '%' => Piece::Literal(b"%".to_vec()),
        't' => Piece::Topic,
        'p' => Piece::Partition,
        'o' => Piece::Offset,
        'T' | 'd' => Piece::Timestamp,
        'k' => Piece::Key(encoding(rest)?),
        'v' | 's' => Piece::Value(encoding(rest)?),
        'K' => Piece::KeyLength,
        'V' | 'S' => Piece::ValueLength,
        'h' => Piece::Headers,
        other => {
            return Err(format!(
                "%{other} is not known: %t topic, %p partition, %o offset, %T timestamp, %k key, %v or %s value, \
                 %K and %S their lengths, %h headers"
            ));
        }
    })
}

/// `{hex}` or `{base64}` behind a letter.
fn encoding(rest: &mut &str) -> Result<Encoding, String> {
    let Some(inner) = rest.strip_prefix('{') else {
        return Ok(Encoding::Plain);
    };
    let (name, after) = inner.split_once('}').ok_or("a format has { without }")?;
    *rest = after;
    match name {
        "hex" => Ok(Encoding::Hex),
        "base64" => Ok(Encoding::Base64),
        other => Err(format!("{{{other}}} is not known: {{hex}} and {{base64}} are")),
    }
}

fn escape(rest: &mut &str) -> Result<u8, String> {
    let letter = rest.chars().next().ok_or("a format ends in a backslash")?;
    *rest = &rest[letter.len_utf8()..];
    match letter {
        'n' => Ok(b'\n'),
        't' => Ok(b'\t'),
        'r' => Ok(b'\r'),
        '0' => Ok(0),
        '\\' => Ok(b'\\'),
        'x' => {
            let digits = rest.get(..2).ok_or("\\x wants two hex digits")?;
            let byte = u8::from_str_radix(digits, 16).map_err(|_| "\\x wants two hex digits")?;
            *rest = &rest[2..];
            Ok(byte)
        }
        other => Err(format!(
            "\\{other} is not known: \\n, \\t, \\r, \\0, \\\\ and \\xHH are"
        )),
    }
}

impl RecordFormat {
    pub(super) fn write(&self, out: &mut Vec<u8>, topic: &TopicName, partition: i32, record: &Record) {
        for piece in &self.pieces {
            match piece {
                Piece::Literal(bytes) => out.extend(bytes),
                Piece::Topic => out.extend(topic.as_str().as_bytes()),
                Piece::Partition => out.extend(partition.to_string().as_bytes()),
                Piece::Offset => out.extend(record.offset.to_string().as_bytes()),
                Piece::Timestamp => out.extend(record.timestamp.to_string().as_bytes()),
                Piece::Key(encoding) => encoding.write(out, record.key.as_deref()),
                Piece::Value(encoding) => encoding.write(out, record.value.as_deref()),
                Piece::KeyLength => write_length(out, record.key.as_deref()),
                Piece::ValueLength => write_length(out, record.value.as_deref()),
                Piece::Headers => write_headers(out, record),
            }
        }
    }
}

/// That of nothing is -1, to be told from that of an empty value.
fn write_length(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    out.extend(
        bytes
            .map_or_else(|| "-1".to_owned(), |bytes| bytes.len().to_string())
            .as_bytes(),
    );
}

/// `name=value`, separated by commas.
fn write_headers(out: &mut Vec<u8>, record: &Record) {
    for (at, header) in record.headers.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        out.extend(&header.key);
        out.push(b'=');
        out.extend(header.value.as_deref().unwrap_or_default());
    }
}

impl Encoding {
    fn write(self, out: &mut Vec<u8>, bytes: Option<&[u8]>) {
        let bytes = bytes.unwrap_or_default();
        match self {
            Encoding::Plain => out.extend(bytes),
            Encoding::Hex => bytes
                .iter()
                .for_each(|byte| out.extend(format!("{byte:02x}").as_bytes())),
            Encoding::Base64 => out.extend(STANDARD.encode(bytes).as_bytes()),
        }
    }
}

/// One object with everything of a record. Bytes that are no UTF-8 stand as base64 under a name that says so.
pub(super) fn envelope(topic: &TopicName, partition: i32, record: &Record) -> Value {
    let mut fields = Map::new();
    fields.insert("topic".to_owned(), json!(topic.as_str()));
    fields.insert("partition".to_owned(), json!(partition));
    fields.insert("offset".to_owned(), json!(record.offset.get()));
    fields.insert("timestamp".to_owned(), json!(record.timestamp.millis()));
    put_bytes(&mut fields, "key", record.key.as_deref());
    put_bytes(&mut fields, "value", record.value.as_deref());
    let headers = record.headers.iter().map(|header| {
        let mut fields = Map::new();
        fields.insert("name".to_owned(), json!(String::from_utf8_lossy(&header.key)));
        put_bytes(&mut fields, "value", header.value.as_deref());
        Value::Object(fields)
    });
    fields.insert("headers".to_owned(), headers.collect());
    Value::Object(fields)
}

/// Bytes as text, or under another name as base64.
pub(crate) fn put_bytes(fields: &mut Map<String, Value>, name: &str, bytes: Option<&[u8]>) {
    match bytes.map(|bytes| std::str::from_utf8(bytes).map_err(|_| bytes)) {
        None => fields.insert(name.to_owned(), Value::Null),
        Some(Ok(text)) => fields.insert(name.to_owned(), json!(text)),
        Some(Err(bytes)) => fields.insert(format!("{name}_base64"), json!(STANDARD.encode(bytes))),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::record_batch::RecordHeader;
    use model::{Offset, Timestamp};

    fn record() -> Record {
        Record {
            offset: Offset::new(7),
            timestamp: Timestamp::from_millis(1000),
            key: Some("k".into()),
            value: Some(vec![0xff, b'v'].into()),
            headers: vec![
                RecordHeader {
                    key: "a".into(),
                    value: Some("1".into()),
                },
                RecordHeader {
                    key: "b".into(),
                    value: None,
                },
            ],
        }
    }

    fn shown(format: &str) -> Vec<u8> {
        let mut out = Vec::new();
        format
            .parse::<RecordFormat>()
            .unwrap()
            .write(&mut out, &TopicName::new("first").unwrap(), 2, &record());
        out
    }

    #[test]
    fn every_directive_stands_for_its_part() {
        assert_eq!(
            shown(r"%t %p %o %T\t%k %h %K %S %%\x41\n"),
            b"first 2 7 1000\tk a=1,b= 1 2 %A\n"
        );
        assert_eq!(shown("%v{hex} %s{base64}"), b"ff76 /3Y=");
        assert_eq!(shown("%v"), [0xff, b'v']);
    }

    #[test]
    fn a_format_that_means_nothing_is_refused() {
        for format in ["%", "%q", "%v{", "%v{oct}", "\\", "\\q", "\\x4", "\\xzz", "\\x\u{e9}"] {
            assert!(format.parse::<RecordFormat>().is_err(), "{format}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_stand_as_base64() {
        let envelope = envelope(&TopicName::new("first").unwrap(), 2, &record());
        assert_eq!(envelope["key"], "k");
        assert_eq!(envelope["value_base64"], "/3Y=");
        assert_eq!(envelope.get("value"), None);
        assert_eq!(
            envelope["headers"],
            json!([{"name": "a", "value": "1"}, {"name": "b", "value": null}])
        );
    }
}
