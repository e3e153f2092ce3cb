//! The function that reads a struct.

use crate::generator::emit_message::Context;
use crate::generator::rust::{Source, When, identifier, when};
use crate::generator::schema::{Field, Type, Versions};

pub(crate) fn emit_read(out: &mut Source, context: &Context<'_>) {
    let versions = context.one.versions;
    out.line("fn read(reader: &mut Reader, version: i16) -> Result<Self, DecodeError> {");
    emit_flexible(out, context);
    out.line("let mut this = Self::default();");
    for field in context.fields() {
        let own = field.versions.expect("filtered");
        let plain = match field.tagged {
            Some(tagged) => own.before(tagged),
            None => Some(own),
        };
        let assign = |present| {
            format!(
                "this.{} = {};",
                identifier(&field.name),
                read_field(context, field, present)
            )
        };
        match when(versions, plain) {
            When::Never => {}
            When::Always => out.line(assign(versions)),
            When::If(condition) => {
                let present = plain.and_then(|plain| plain.and(versions)).expect("sometimes present");
                out.line(format!("if {condition} {{"));
                out.line(assign(present));
                out.line("}");
            }
        }
    }
    if context.is_ever_flexible() {
        out.line("if flexible {");
        emit_tags(out, context);
        out.line("}");
    }
    out.line("Ok(this)");
    out.line("}");
}

/// Defines `flexible`.
pub(crate) fn emit_flexible(out: &mut Source, context: &Context<'_>) {
    out.line(match when(context.one.versions, context.flexible) {
        When::Always => "let flexible = true;".to_owned(),
        When::Never => "let flexible = false;".to_owned(),
        When::If(condition) => format!("let flexible = {condition};"),
    });
}

fn emit_tags(out: &mut Source, context: &Context<'_>) {
    let path = format!("\"{}\"", context.one.path);
    let versions = context.one.versions;
    let flexible = context
        .flexible
        .and_then(|flexible| flexible.and(versions))
        .expect("sometimes flexible");
    let tagged: Vec<(&Field, Versions)> = context
        .fields()
        .filter_map(|field| Some((field, field.tagged?.and(flexible)?)))
        .collect();
    if tagged.is_empty() {
        out.line(format!(
            "reader.unknown_tags(&mut this.unknown_tagged_fields, {path})?;"
        ));
        return;
    }
    out.line(format!("for _ in 0..reader.tag_count({path})? {{"));
    out.line(format!("let (tag, outer_end) = reader.enter_tag({path})?;"));
    out.line("match tag {");
    for (field, present) in tagged {
        let tag = field.tag.expect("a tagged field has a tag");
        let guard = match when(flexible, Some(present)) {
            When::If(condition) => format!(" if {condition}"),
            When::Always | When::Never => String::new(),
        };
        let value = read_field(context, field, present);
        out.line(format!("{tag}{guard} => this.{} = {value},", identifier(&field.name)));
    }
    out.line(format!(
        "_ => reader.keep_unknown_tag(tag, &mut this.unknown_tagged_fields, {path})?,"
    ));
    out.line("}");
    out.line(format!("reader.leave_tag(tag, outer_end, {path})?;"));
    out.line("}");
}

/// An expression that reads the field in those versions in which it is `present`.
fn read_field(context: &Context<'_>, field: &Field, present: Versions) -> String {
    let path = context.path(field);
    let flexible = if field.never_flexible { "false" } else { "flexible" };
    let (plain, nullable) = match &field.kind {
        Type::Fixed(fixed) => return format!("reader.{}({path})?", fixed.read),
        Type::String => (
            format!("reader.text({flexible}, {path})?"),
            format!("reader.nullable_text({flexible}, {path})?"),
        ),
        Type::Bytes | Type::Records => (
            format!("reader.bytes({flexible}, {path})?"),
            format!("reader.nullable_bytes({flexible}, {path})?"),
        ),
        Type::Struct(name) => {
            let plain = format!("{name}::read(reader, version)?");
            let nullable = format!("if reader.struct_follows({path})? {{ Some({plain}) }} else {{ None }}");
            (plain, nullable)
        }
        Type::Array(element) => {
            let nullable = read_array(context, element, flexible, &path);
            (
                format!("{{ let value = {nullable}; reader.present(value, {path})? }}"),
                nullable,
            )
        }
    };
    if !context.is_nullable(field) {
        return plain;
    }
    match when(present, field.nullable) {
        When::Always => nullable,
        When::Never => format!("Some({plain})"),
        When::If(condition) => format!("if {condition} {{ {nullable} }} else {{ Some({plain}) }}"),
    }
}

fn read_array(context: &Context<'_>, element: &Type, flexible: &str, path: &str) -> String {
    match element {
        Type::Fixed(_) => format!("reader.fixed({flexible}, {path})?"),
        Type::String => format!("reader.texts({flexible}, {path})?"),
        Type::Struct(name) => {
            let bytes = context.structs.element_bytes_min(element);
            format!("reader.structs({flexible}, {bytes}, version, {path}, {name}::read)?")
        }
        other => panic!("an array of {other:?}"),
    }
}
