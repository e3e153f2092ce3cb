//! What readers of a topic see of its keys and values: in a format, or as the topic's serde shows them.
//!
//! Nothing is hidden: what a serde refuses, breaks at or answers wrongly is shown as the bytes that are stored, with the
//! reason beside it.

use bytes::Bytes;
use model::TopicName;
use plugin::serde::{Datum, Part};
use serde_json::value::RawValue;

use crate::coders::{Coders, ItemError, Role};
use crate::format::{Format, Shown};

/// Keys or values of records, in order.
pub(crate) async fn show_part(
    coders: &Coders,
    topic: &TopicName,
    part: Part,
    wanted: Option<Format>,
    stored: Vec<Option<Bytes>>,
) -> Vec<Shown> {
    let format = match (wanted, part) {
        (Some(format), _) => format,
        (None, Part::Key) => Format::Text,
        (None, Part::Value) => Format::Json,
    };
    let is_for_serde = matches!(wanted, None | Some(Format::Json));
    let bound = coders.bound(topic, Role::serde_of(part)).filter(|_| is_for_serde);
    let Some(bound) = bound else {
        return stored.iter().map(|stored| format.show(stored.as_deref())).collect();
    };
    let items: Vec<Bytes> = stored.iter().flatten().cloned().collect();
    if items.is_empty() {
        return stored.iter().map(|_| Shown::default()).collect();
    }
    match coders.decode(&bound, items).await {
        Ok(decoded) => {
            let mut decoded = decoded.into_iter();
            let mut show = |stored: Bytes| match decoded.next() {
                Some(answer) => show(&stored, answer),
                None => Shown::bytes(&stored, "the serde gave no answer".to_owned()),
            };
            let shown = stored
                .into_iter()
                .map(|stored| stored.map(&mut show).unwrap_or_default());
            shown.collect()
        }
        Err(error) => {
            let show = |stored: Bytes| Shown::bytes(&stored, error.to_string());
            stored
                .into_iter()
                .map(|stored| stored.map_or_else(Shown::default, show))
                .collect()
        }
    }
}

fn show(stored: &Bytes, decoded: Result<Datum, ItemError>) -> Shown {
    match decoded {
        Ok(Datum::Json(text)) => match serde_json::from_str::<&RawValue>(&text) {
            Ok(json) => Shown::json(json.to_owned()),
            Err(error) => Shown::bytes(stored, format!("what the serde gives is not JSON: {error}")),
        },
        Ok(Datum::Text(text)) => Shown::text(&text),
        Ok(Datum::Raw(bytes)) => Shown::bytes(
            &bytes,
            "the serde gives bytes that are neither JSON nor text".to_owned(),
        ),
        Err(error) => Shown::bytes(stored, error.to_string()),
    }
}
