//! One message's module: its structs, their defaults, and the code that reads and writes them.

use crate::generator::emit_json::emit_json;
use crate::generator::emit_read::emit_read;
use crate::generator::emit_write::emit_write;
use crate::generator::rust::{Source, default_value, identifier, type_name};
use crate::generator::schema::{Field, Message, Versions};
use crate::generator::structs::{Struct, Structs};

/// What reading and writing a struct must know of the message around it.
pub(crate) struct Context<'m> {
    pub(crate) structs: &'m Structs<'m>,
    pub(crate) one: &'m Struct<'m>,
    /// The message's flexible versions.
    pub(crate) flexible: Option<Versions>,
}

impl Context<'_> {
    /// Whether the struct keeps unknown tagged fields.
    pub(crate) fn is_ever_flexible(&self) -> bool {
        self.flexible
            .is_some_and(|flexible| flexible.and(self.one.versions).is_some())
    }

    /// The struct's fields that occur in any of its versions.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &Field> {
        self.one
            .fields
            .iter()
            .filter(|field| field.versions.is_some_and(|own| own.and(self.one.versions).is_some()))
    }

    /// Whether the field is an `Option`.
    pub(crate) fn is_nullable(&self, field: &Field) -> bool {
        field
            .nullable
            .is_some_and(|nullable| nullable.and(self.one.versions).is_some())
    }

    /// The field's place in the message as a Rust string.
    pub(crate) fn path(&self, field: &Field) -> String {
        format!("\"{}.{}\"", self.one.path, field.name)
    }
}

/// The text of the module; `None` if the message has no versions left.
pub(crate) fn emit_message(message: &Message) -> Option<String> {
    let versions = message.versions?;
    let structs = Structs::of(message, versions);
    let mut out = Source::default();
    out.line("use crate::generated_prelude::*;");
    if let Some(key) = message.key {
        let what = if message.kind.starts_with("re") {
            "API_KEY"
        } else {
            "RECORD_TYPE"
        };
        out.line(format!("pub const {what}: i16 = {key};"));
    }
    out.line(format!(
        "pub const VERSIONS: RangeInclusive<i16> = {}..={};",
        versions.first, versions.last
    ));
    for one in &structs.list {
        let context = Context {
            structs: &structs,
            one,
            flexible: message.flexible,
        };
        emit_struct(&mut out, &context);
        out.line(format!("impl {} {{", one.name));
        emit_read(&mut out, &context);
        emit_write(&mut out, &context);
        out.line("}");
        if is_of_a_log(message) {
            emit_json(&mut out, &context);
        }
    }
    emit_trait(&mut out, message, versions);
    Some(out.text)
}

/// Whether it is a record of a log, or within one, rather than a message of the wire.
fn is_of_a_log(message: &Message) -> bool {
    !["request", "response", "header"].contains(&message.kind.as_str())
}

fn emit_struct(out: &mut Source, context: &Context<'_>) {
    let defaults: Vec<_> = context
        .fields()
        .map(|field| default_value(field, context.is_nullable(field)))
        .collect();
    let derived = defaults.iter().all(Option::is_none);
    out.line(if derived {
        "#[derive(Clone, Debug, Default, PartialEq)]"
    } else {
        "#[derive(Clone, Debug, PartialEq)]"
    });
    out.line(format!("pub struct {} {{", context.one.name));
    for field in context.fields() {
        let mut kind = type_name(&field.kind);
        if context.is_nullable(field) {
            kind = format!("Option<{kind}>");
        }
        out.line(format!("/// `{}`", field.facts));
        out.line(format!("pub {}: {kind},", identifier(&field.name)));
    }
    if context.is_ever_flexible() {
        out.line("pub unknown_tagged_fields: UnknownTaggedFields,");
    }
    out.line("}");
    if derived {
        return;
    }
    out.line(format!("impl Default for {} {{", context.one.name));
    out.line("fn default() -> Self {");
    out.line("Self {");
    for (field, default) in context.fields().zip(defaults) {
        let default = default.unwrap_or_else(|| "Default::default()".to_owned());
        out.line(format!("{}: {default},", identifier(&field.name)));
    }
    if context.is_ever_flexible() {
        out.line("unknown_tagged_fields: UnknownTaggedFields::default(),");
    }
    out.line("}");
    out.line("}");
    out.line("}");
}

fn emit_trait(out: &mut Source, message: &Message, versions: Versions) {
    let first_flexible = match message.flexible.and_then(|flexible| flexible.and(versions)) {
        Some(flexible) => format!("Some({})", flexible.first),
        None => "None".to_owned(),
    };
    let name = &message.name;
    out.line(format!("impl Message for {name} {{"));
    out.line(format!("const NAME: &'static str = \"{name}\";"));
    out.line(format!("const FIRST_VERSION: i16 = {};", versions.first));
    out.line(format!("const LAST_VERSION: i16 = {};", versions.last));
    out.line(format!("const FIRST_FLEXIBLE_VERSION: Option<i16> = {first_flexible};"));
    out.line("fn decode(reader: &mut Reader, version: i16) -> Result<Self, DecodeError> {");
    out.line("check_decode::<Self>(reader, version)?;");
    out.line("Self::read(reader, version)");
    out.line("}");
    out.line("fn encode(&self, writer: &mut Writer, version: i16) -> Result<(), EncodeError> {");
    out.line("check_encode::<Self>(version)?;");
    out.line("self.write(writer, version)");
    out.line("}");
    out.line("}");
}
