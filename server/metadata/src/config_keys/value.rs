//! Texts to typed values and back, by the rules of Java's parsers, which is what operators' files were written for.

use super::definition::{KeyDefinition, Kind};
use super::error::ConfigError;
use super::keys::{Scope, lookup};
use super::names;
use std::fmt;

/// A checked value of a key.
#[derive(Clone, PartialEq)]
pub enum Value {
    Boolean(bool),
    Short(i16),
    Int(i32),
    Long(i64),
    Double(f64),
    /// Strings and class names.
    Text(String),
    List(Vec<String>),
    Password(String),
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Password(_) => f.write_str("[hidden]"),
            shown => f.write_str(&shown.to_text()),
        }
    }
}

/// The value that `text` means for the key `name`, after its type's and its own checks.
///
/// # Errors
/// If the key is unknown in `scope` (with a hint where a known one is near) or the text is no value of it.
pub fn parse(scope: Scope, name: &str, text: &str) -> Result<Value, ConfigError> {
    match lookup(scope, name) {
        Some(key) => key.parse(text),
        None => Err(names::unknown(scope, name)),
    }
}

impl KeyDefinition {
    /// # Errors
    /// If `text` is no value of this key.
    pub fn parse(&self, text: &str) -> Result<Value, ConfigError> {
        self.parse_named(self.name, text)
    }

    /// The same under another name, for keys with a listener's prefix.
    pub(super) fn parse_named(&self, name: &str, text: &str) -> Result<Value, ConfigError> {
        let value = typed(self.kind, name, text)?;
        self.check.apply(name, &value)?;
        Ok(value)
    }

    /// The text in its canonical form, as DescribeConfigs shows it: `yes` stays as it is if it is no value.
    pub(super) fn canonical(&self, text: &str) -> String {
        typed(self.kind, self.name, text).map_or_else(|_| text.to_owned(), |value| value.to_text())
    }
}

fn typed(kind: Kind, name: &str, text: &str) -> Result<Value, ConfigError> {
    let trimmed = text.trim();
    let number = || ConfigError::invalid(name, text, format!("Not a number of type {}", kind.name()));
    Ok(match kind {
        Kind::Boolean if trimmed.eq_ignore_ascii_case("true") => Value::Boolean(true),
        Kind::Boolean if trimmed.eq_ignore_ascii_case("false") => Value::Boolean(false),
        Kind::Boolean => {
            let reason = "Expected value to be either true or false".to_owned();
            return Err(ConfigError::invalid(name, text, reason));
        }
        Kind::Short => Value::Short(trimmed.parse().map_err(|_| number())?),
        Kind::Int => Value::Int(trimmed.parse().map_err(|_| number())?),
        Kind::Long => Value::Long(trimmed.parse().map_err(|_| number())?),
        Kind::Double => Value::Double(java_double(trimmed).ok_or_else(number)?),
        Kind::String | Kind::Class => Value::Text(trimmed.to_owned()),
        Kind::Password => Value::Password(trimmed.to_owned()),
        Kind::List if trimmed.is_empty() => Value::List(Vec::new()),
        Kind::List => Value::List(distinct(trimmed.split(',').map(str::trim))),
    })
}

/// The entries in order, each once. Kafka drops repetitions as well, with a warning.
fn distinct<'a>(entries: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for entry in entries {
        if seen.insert(entry) {
            kept.push(entry.to_owned());
        }
    }
    kept
}

/// What Java's `Double.parseDouble` takes, less its hexadecimal form.
fn java_double(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if unsigned == "NaN" || unsigned == "Infinity" {
        return text.parse().ok();
    }
    let digits = text.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(text);
    let written_as_number = digits
        .bytes()
        .all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    if written_as_number { digits.parse().ok() } else { None }
}

impl Value {
    /// The value of any of the integer types.
    #[must_use]
    pub fn number(&self) -> Option<i128> {
        match self {
            Value::Short(number) => Some(i128::from(*number)),
            Value::Int(number) => Some(i128::from(*number)),
            Value::Long(number) => Some(i128::from(*number)),
            _ => None,
        }
    }

    /// As Kafka writes it. A password comes out as it is: who shows values asks [`KeyDefinition::is_sensitive`] first.
    #[must_use]
    pub fn to_text(&self) -> String {
        match self {
            Value::Boolean(value) => value.to_string(),
            Value::Short(value) => value.to_string(),
            Value::Int(value) => value.to_string(),
            Value::Long(value) => value.to_string(),
            Value::Double(value) => java_double_text(*value),
            Value::Text(text) | Value::Password(text) => text.clone(),
            Value::List(entries) => entries.join(","),
        }
    }
}

/// Java's form: always a fraction, an exponent outside of 10^-3 … 10^7.
fn java_double_text(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    if value == 0.0 || (1e-3..1e7).contains(&value.abs()) {
        return format!("{value:?}");
    }
    let text = format!("{value:e}");
    match text.split_once('e') {
        Some((digits, exponent)) if digits.contains('.') => format!("{digits}E{exponent}"),
        Some((digits, exponent)) => format!("{digits}.0E{exponent}"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text_of(scope: Scope, name: &str, text: &str) -> Result<String, String> {
        parse(scope, name, text)
            .map(|value| value.to_text())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn values_are_read_as_java_reads_them() {
        let topic = |name: &str, text: &str| text_of(Scope::Topic, name, text);
        assert_eq!(topic("retention.ms", " 42 "), Ok("42".to_owned()));
        assert_eq!(topic("retention.ms", "+5"), Ok("5".to_owned()));
        assert_eq!(topic("preallocate", "TRUE"), Ok("true".to_owned()));
        assert_eq!(topic("min.cleanable.dirty.ratio", "1"), Ok("1.0".to_owned()));
        assert_eq!(topic("min.cleanable.dirty.ratio", "0.5d"), Ok("0.5".to_owned()));
        assert_eq!(
            topic("cleanup.policy", "delete , compact"),
            Ok("delete,compact".to_owned())
        );
        assert_eq!(
            topic("retention.ms", "1.5"),
            Err("Invalid value 1.5 for configuration retention.ms: Not a number of type LONG".to_owned())
        );
    }

    #[test]
    fn doubles_are_written_as_java_writes_them() {
        for (value, text) in [
            (0.9, "0.9"),
            (f64::MAX, "1.7976931348623157E308"),
            (2_147_483_647.0, "2.147483647E9"),
            (1e7, "1.0E7"),
            (9_999_999.0, "9999999.0"),
            (0.001, "0.001"),
            (1e-4, "1.0E-4"),
            (0.0, "0.0"),
        ] {
            assert_eq!(java_double_text(value), text);
        }
    }

    proptest! {
        #[test]
        fn the_canonical_text_means_the_same_value(
            key in proptest::sample::select(
                [Scope::Broker, Scope::Topic, Scope::Group, Scope::ClientMetrics]
                    .into_iter().flat_map(super::super::keys::all).collect::<Vec<_>>()),
            text in "[-+0-9a-z.,:*@ ]{0,20}",
        ) {
            if let Ok(value) = key.parse(&text) {
                let again = key.parse(&value.to_text());
                prop_assert_eq!(again.map(|value| value.to_text()), Ok(value.to_text()));
            }
        }

        #[test]
        fn any_text_is_parsed_or_refused(name: String, text: String) {
            for scope in [Scope::Broker, Scope::Topic, Scope::Group, Scope::ClientMetrics] {
                let _ = parse(scope, &name, &text);
            }
        }
    }
}
