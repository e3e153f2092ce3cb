//! JSON outside, MessagePack inside: records are smaller, and who reads by HTTP sees JSON all the same.
//!
//! Whole numbers of 64 bits are exact in both directions; fields keep their order.

use millstream_sdk::{Datum, Descriptor, Part, Plugin, Serde, serde};
use serde::Deserialize;
use serde_json::Value;

/// Deepest nesting that is read; JSON's reader has the same limit.
const DEPTH_MAX: usize = 127;

struct JsonBinary;

impl Plugin for JsonBinary {
    fn describe() -> Descriptor {
        Descriptor::new(
            "json-binary-serde",
            "0.1.0",
            "Stores JSON as MessagePack and shows it as JSON.",
        )
    }

    fn start() -> Result<Self, String> {
        Ok(JsonBinary)
    }
}

impl Serde for JsonBinary {
    fn encode(&mut self, _topic: &str, _part: Part, item: &Datum) -> Result<Vec<u8>, String> {
        let Datum::Json(text) = item else {
            return Err("this topic takes JSON".into());
        };
        let value: Value = serde_json::from_str(text).map_err(|error| format!("no JSON: {error}"))?;
        rmp_serde::to_vec(&value).map_err(|error| error.to_string())
    }

    fn decode(&mut self, _topic: &str, _part: Part, item: &[u8]) -> Result<Datum, String> {
        let mut rest = item;
        let mut reader = rmp_serde::Deserializer::new(&mut rest);
        reader.set_max_depth(DEPTH_MAX);
        let value: Value =
            Value::deserialize(&mut reader).map_err(|error| format!("no MessagePack that JSON can show: {error}"))?;
        drop(reader);
        if rest.is_empty() {
            Ok(Datum::Json(value.to_string()))
        } else {
            Err(format!("{} bytes follow the value", rest.len()))
        }
    }
}

serde!(JsonBinary);
