//! How keys and values travel inside JSON: as text, as JSON of their own, or as base64.
//!
//! JSON is never rendered anew: what is written is the text as it stood in the request, and what is read is the text as
//! it is stored, so numbers keep every digit. What is stored and does not have the form that was asked for is not
//! guessed at: the field is null, and its neighbours `…_error` and `…_base64` say why and what it is.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use utoipa::ToSchema;

/// How a key or a value is written in JSON.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    /// A string: the bytes are its UTF-8.
    Text,
    /// Any JSON value: the bytes are its text, exactly as it stands.
    Json,
    /// A string: the bytes in base64 (RFC 4648, with padding).
    Base64,
}

impl Format {
    /// The bytes that `written`, a part of `body`, stands for; JSON is not copied. `None` for null.
    pub(crate) fn bytes(self, written: &RawValue, body: &Bytes) -> Result<Option<Bytes>, String> {
        let text = written.get();
        if text == "null" {
            return Ok(None);
        }
        let string = || {
            serde_json::from_str::<String>(text)
                .map_err(|_| format!("has to be a string, for its format is {}", self.name()))
        };
        match self {
            Format::Json => Ok(Some(body.slice_ref(text.as_bytes()))),
            Format::Text => Ok(Some(Bytes::from(string()?))),
            Format::Base64 => match STANDARD.decode(string()?) {
                Ok(bytes) => Ok(Some(Bytes::from(bytes))),
                Err(error) => Err(format!("is not base64: {error}")),
            },
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Format::Text => "text",
            Format::Json => "json",
            Format::Base64 => "base64",
        }
    }

    /// What is stored, as JSON.
    pub(crate) fn show(self, stored: Option<&[u8]>) -> Shown {
        let Some(stored) = stored else {
            return Shown::default();
        };
        let shown = match self {
            Format::Base64 => Ok(raw(&STANDARD.encode(stored))),
            Format::Text => std::str::from_utf8(stored)
                .map(raw)
                .map_err(|_| "the bytes are not UTF-8".to_owned()),
            Format::Json => verbatim(stored).map_err(|error| format!("the bytes are not JSON: {error}")),
        };
        match shown {
            Ok(value) => Shown::json(value),
            Err(error) => Shown::bytes(stored, error),
        }
    }
}

/// A key or a value for a reader: all `None` for one that is null.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    pub(crate) value: Option<Box<RawValue>>,
    pub(crate) error: Option<String>,
    pub(crate) base64: Option<String>,
}

impl Shown {
    pub(crate) fn json(value: Box<RawValue>) -> Self {
        Shown {
            value: Some(value),
            ..Shown::default()
        }
    }

    pub(crate) fn text(text: &str) -> Self {
        Shown::json(raw(text))
    }

    /// Bytes that have no form a reader could want, and why.
    pub(crate) fn bytes(bytes: &[u8], error: String) -> Self {
        Shown {
            value: None,
            error: Some(error),
            base64: Some(STANDARD.encode(bytes)),
        }
    }
}

fn raw(text: &str) -> Box<RawValue> {
    to_raw_value(text).expect("a string is JSON")
}

/// The stored text itself. Blanks around the value are not part of it.
fn verbatim(stored: &[u8]) -> Result<Box<RawValue>, serde_json::Error> {
    serde_json::from_slice::<&RawValue>(stored).map(ToOwned::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXACT: &[&str] = &[
        "9223372036854775807",
        "-18446744073709551616",
        "1e400",
        "0.10",
        "1E+2",
        r#"{"a":1,"a":2}"#,
        r#"{ "b" : [ 1 , 2 ],  "a":null }"#,
        r#""\u00e4\ud83d\ude00 \/ \u0000""#,
        "\"\\ud800\"",
        "[1,\n 2]",
        "true",
    ];

    #[test]
    fn json_is_stored_and_shown_exactly_as_it_was_sent() {
        for text in EXACT {
            let body = Bytes::from(format!("  {text} "));
            let written: &RawValue = serde_json::from_slice(&body).unwrap();
            let stored = Format::Json.bytes(written, &body).unwrap().unwrap();
            assert_eq!(stored, text.as_bytes());
            let shown = Format::Json.show(Some(&stored));
            assert_eq!(shown.value.unwrap().get(), *text);
        }
    }

    #[test]
    fn what_has_not_the_form_is_shown_in_base64_with_the_reason() {
        for (format, stored) in [
            (Format::Json, &b"{"[..]),
            (Format::Json, b""),
            (Format::Json, b"1 2"),
            (Format::Json, b"\"\xff\""),
            (Format::Text, b"\xff\xfe"),
        ] {
            let shown = format.show(Some(stored));
            assert!(shown.value.is_none() && shown.error.is_some(), "{stored:?}");
            assert_eq!(STANDARD.decode(shown.base64.unwrap()).unwrap(), stored);
        }
    }

    #[test]
    fn null_is_no_value_in_every_format_and_back() {
        let body = Bytes::from_static(b"null");
        let written: &RawValue = serde_json::from_slice(&body).unwrap();
        for format in [Format::Text, Format::Json, Format::Base64] {
            assert_eq!(format.bytes(written, &body), Ok(None));
            let shown = format.show(None);
            assert!(shown.value.is_none() && shown.error.is_none() && shown.base64.is_none());
        }
    }

    #[test]
    fn text_and_base64_have_to_be_strings() {
        let body = Bytes::from_static(b"7");
        let written: &RawValue = serde_json::from_slice(&body).unwrap();
        for format in [Format::Text, Format::Base64] {
            assert!(format.bytes(written, &body).is_err());
        }
        let body = Bytes::from_static(b"\"!\"");
        let written: &RawValue = serde_json::from_slice(&body).unwrap();
        assert!(Format::Base64.bytes(written, &body).is_err());
        assert_eq!(Format::Text.bytes(written, &body), Ok(Some(Bytes::from_static(b"!"))));
    }
}
