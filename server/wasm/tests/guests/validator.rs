//! The validator example behind its trait.

use crate::fixtures::{Event, batch, module, settings};

#[test]
fn rows_that_lack_a_field_are_refused_by_name() {
    let settings = settings(&[("fields", "id, at")]);
    let mut guest = module("required-fields").validator(settings).unwrap();
    let values = [
        Some(r#"{"id":1,"at":2}"#),
        Some(r#"{"id":1}"#),
        None,
        Some("[]"),
        Some(r#"{"at":null,"id":0}"#),
    ];
    let rows = batch(values.map(|value| Event {
        key: None,
        value: value.map(str::as_bytes),
        time: 0,
    }));
    let rejections = guest.validate("orders", &rows).unwrap();
    let of: Vec<(u32, bool)> = rejections
        .iter()
        .map(|rejection| (rejection.row, rejection.reason.contains("\"at\" is missing")))
        .collect();
    assert_eq!(of, [(1, true), (3, false)], "{rejections:?}");
}
