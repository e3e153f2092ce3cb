//! The JSON↔MessagePack example behind the serde trait.

use bytes::Bytes;
use plugin::Serde;
use plugin::serde::{Datum, Part};
use proptest::prelude::*;
use serde_json::Value;

use crate::fixtures::{module, settings};

fn guest() -> Box<dyn Serde> {
    module("json-binary-serde").serde(settings(&[])).unwrap()
}

fn json(text: &str) -> Datum {
    Datum::Json(text.to_owned())
}

#[test]
fn what_was_encoded_is_decoded_with_exact_numbers_and_fields_in_order() {
    let texts = [
        r#"{"z":1,"a":[true,null,"ä"],"m":{"x":-1.5}}"#,
        "9223372036854775807",
        "18446744073709551615",
        "-9223372036854775808",
        "0.1",
        "\"\"",
        "[]",
    ];
    let mut guest = guest();
    let items: Vec<Datum> = texts.iter().map(|text| json(text)).collect();
    let encoded: Vec<Bytes> = guest
        .encode("t", Part::Value, &items)
        .unwrap()
        .into_iter()
        .map(Result::unwrap)
        .collect();
    assert_eq!(encoded[5][..], [0xa0], "an empty text is one byte of MessagePack");
    assert!(encoded[0].len() < texts[0].len());
    let decoded = guest.decode("t", Part::Value, &encoded).unwrap();
    assert_eq!(decoded, items.into_iter().map(Ok).collect::<Vec<_>>());
}

#[test]
fn a_bad_item_is_named_and_the_others_stand() {
    let mut guest = guest();
    let deep = "[".repeat(100_000);
    let items = [
        json("{"),
        json("1"),
        Datum::Text("x".into()),
        json(&deep),
        json("1e999"),
    ];
    let encoded = guest.encode("t", Part::Value, &items).unwrap();
    assert_eq!(encoded[1], Ok(Bytes::from_static(&[1])));
    let reasons: Vec<&str> = encoded
        .iter()
        .filter_map(|item| item.as_ref().err().map(String::as_str))
        .collect();
    assert_eq!(reasons.len(), 4);
    assert!(
        reasons[0].contains("EOF") && reasons[1].contains("takes JSON"),
        "{reasons:?}"
    );
    let items = [
        &b"\xc1"[..],
        b"\x01\x02",
        b"",
        b"\x01",
        b"\xdd\xff\xff\xff\xff",
        &[0x91; 1_000],
    ]
    .map(Bytes::from_static);
    let decoded = guest.decode("t", Part::Value, &items).unwrap();
    assert_eq!(decoded[3], Ok(json("1")));
    assert_eq!(decoded.iter().filter(|item| item.is_err()).count(), 5, "{decoded:?}");
    assert_eq!(guest.json_schema("t", Part::Value), Ok(None));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>()
            .prop_filter("finite", |number| number.is_finite())
            .prop_map(Value::from),
        ".*".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(".*", inner, 0..6).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_json_comes_back_as_it_was(value in any_json()) {
        let mut guest = guest();
        let encoded = guest.encode("t", Part::Key, &[json(&value.to_string())]).unwrap().remove(0).unwrap();
        let Ok(Datum::Json(decoded)) = guest.decode("t", Part::Key, &[encoded]).unwrap().remove(0) else {
            panic!("no JSON");
        };
        prop_assert_eq!(serde_json::from_str::<Value>(&decoded).unwrap(), value);
    }
}
