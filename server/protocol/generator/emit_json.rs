//! The function that shows a struct as JSON, for log records only: as Apache Kafka's tools show them.

use crate::generator::emit_message::Context;
use crate::generator::rust::{Source, When, identifier, is_set, when};
use crate::generator::schema::Field;

pub(crate) fn emit_json(out: &mut Source, context: &Context<'_>) {
    let versions = context.one.versions;
    out.line(format!("impl Json for {} {{", context.one.name));
    out.line("fn json(&self, out: &mut String, version: i16) {");
    // A record without fields changes nothing.
    let binding = if context.fields().next().is_some() {
        "mut object"
    } else {
        "object"
    };
    out.line(format!("let {binding} = Object::begin(out);"));
    for field in context.fields() {
        let own = field.versions.expect("filtered");
        let plain = match field.tagged {
            Some(tagged) => own.before(tagged),
            None => Some(own),
        };
        emit_field(out, field, when(versions, plain), None);
        // A tagged field is there where it says anything.
        if let Some(tagged) = field.tagged.and_then(|tagged| tagged.and(own)) {
            let set = is_set(field, context.is_nullable(field));
            emit_field(out, field, when(versions, Some(tagged)), Some(set));
        }
    }
    out.line("object.end();");
    out.line("}");
    out.line("}");
}

fn emit_field(out: &mut Source, field: &Field, present: When, and: Option<String>) {
    let condition = match (present, and) {
        (When::Never, _) => return,
        (When::Always, None) => None,
        (When::Always, Some(set)) => Some(set),
        (When::If(condition), None) => Some(condition),
        (When::If(condition), Some(set)) => Some(format!("{condition} && {set}")),
    };
    if let Some(condition) = &condition {
        out.line(format!("if {condition} {{"));
    }
    let name = camel_case(&field.name);
    out.line(format!(
        "object.field(\"{name}\", &self.{}, version);",
        identifier(&field.name)
    ));
    if condition.is_some() {
        out.line("}");
    }
}

fn camel_case(name: &str) -> String {
    let mut characters = name.chars();
    let first = characters.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(characters).collect()
}
