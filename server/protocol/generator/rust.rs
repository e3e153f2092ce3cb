//! Rust source as text: an indenting buffer, and names and conditions as Rust writes them.

use crate::generator::names::snake_case;
use crate::generator::schema::{Field, Type, Versions};

#[derive(Default)]
pub(crate) struct Source {
    pub(crate) text: String,
    depth: usize,
}

impl Source {
    /// Adds a line; one that ends with `{` indents those after it, one that begins with `}` ends that.
    pub(crate) fn line(&mut self, line: impl AsRef<str>) {
        let line = line.as_ref();
        if line.starts_with('}') {
            self.depth -= 1;
        }
        for _ in 0..self.depth {
            self.text.push_str("    ");
        }
        self.text.push_str(line);
        self.text.push('\n');
        if line.ends_with('{') {
            self.depth += 1;
        }
    }
}

/// When, among the versions at hand, something holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum When {
    Always,
    Never,
    /// A condition on `version`.
    If(String),
}

/// When a version out of `among` is in `wanted`.
pub(crate) fn when(among: Versions, wanted: Option<Versions>) -> When {
    let Some(both) = wanted.and_then(|wanted| among.and(wanted)) else {
        return When::Never;
    };
    match (both.first == among.first, both.last == among.last) {
        (true, true) => When::Always,
        (false, true) => When::If(format!("version >= {}", both.first)),
        (true, false) => When::If(format!("version <= {}", both.last)),
        (false, false) if both.first == both.last => When::If(format!("version == {}", both.first)),
        (false, false) => When::If(format!("({}..={}).contains(&version)", both.first, both.last)),
    }
}

/// A Rust identifier: keywords are raw.
pub(crate) fn identifier(name: &str) -> String {
    const KEYWORDS: [&str; 12] = [
        "type", "match", "as", "in", "ref", "move", "use", "where", "loop", "final", "override", "virtual",
    ];
    let name = snake_case(name);
    if KEYWORDS.contains(&name.as_str()) {
        format!("r#{name}")
    } else {
        name
    }
}

/// The Rust type of a value that is not null.
pub(crate) fn type_name(kind: &Type) -> String {
    match kind {
        Type::Fixed(fixed) => fixed.rust.to_owned(),
        Type::String => "Text".to_owned(),
        Type::Bytes | Type::Records => "Bytes".to_owned(),
        Type::Struct(name) => name.clone(),
        Type::Array(element) => format!("Vec<{}>", type_name(element)),
    }
}

/// A field's default, `None` if it is that of the Rust type.
pub(crate) fn default_value(field: &Field, nullable: bool) -> Option<String> {
    let default = field.default.as_deref();
    if default == Some("null") || (nullable && field.kind == Type::Records) {
        assert!(
            nullable || field.kind == Type::Records,
            "{} is null by default but not nullable",
            field.name
        );
        return None;
    }
    let value = match (&field.kind, default) {
        (Type::Fixed(fixed), Some(text)) => number(fixed.rust, text),
        (Type::String, Some(text)) => Some(format!("Text::from({text:?})")),
        (_, None) => None,
        (kind, Some(text)) => panic!("a default of {text} for {kind:?}"),
    };
    match (nullable, value) {
        (true, Some(value)) => Some(format!("Some({value})")),
        (true, None) => Some("Some(Default::default())".to_owned()),
        (false, value) => value,
    }
}

fn number(rust: &str, text: &str) -> Option<String> {
    if rust == "bool" {
        return (text == "true").then(|| text.to_owned());
    }
    let value: i64 = match text.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).expect("a hexadecimal default"),
        None => text
            .parse()
            .unwrap_or_else(|_| panic!("a default that is no integer: {text}")),
    };
    (value != 0).then(|| value.to_string())
}

/// An expression that is true if `self`'s field is not at its default.
pub(crate) fn is_set(field: &Field, nullable: bool) -> String {
    let place = format!("self.{}", identifier(&field.name));
    if nullable {
        return match (default_value(field, true), &field.kind) {
            (None, _) => format!("{place}.is_some()"),
            (Some(_), Type::Struct(name)) => format!("{place}.as_ref() != Some(&{name}::default())"),
            (Some(_), Type::String) if field.default.is_some() => panic!("{}: a default within an option", field.name),
            (Some(_), _) => format!("{place}.as_ref().is_none_or(|value| !value.is_empty())"),
        };
    }
    match (&field.kind, default_value(field, false)) {
        (Type::Fixed(fixed), default) if fixed.rust == "bool" => {
            if default.is_some() {
                format!("!{place}")
            } else {
                place
            }
        }
        (Type::Fixed(fixed), _) if fixed.rust == "Uuid" => format!("!{place}.is_zero()"),
        (Type::Fixed(fixed), None) if fixed.rust == "f64" => format!("{place} != 0.0"),
        (Type::Fixed(_), default) => format!("{place} != {}", default.as_deref().unwrap_or("0")),
        (Type::Struct(name), _) => format!("{place} != {name}::default()"),
        (_, Some(default)) => format!("{place} != {default}"),
        (_, None) => format!("!{place}.is_empty()"),
    }
}
