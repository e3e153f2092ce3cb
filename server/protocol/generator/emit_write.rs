//! The function that writes a struct.

use crate::generator::emit_message::Context;
use crate::generator::emit_read::emit_flexible;
use crate::generator::rust::{Source, When, identifier, is_set, when};
use crate::generator::schema::{Field, Type, Versions};

pub(crate) fn emit_write(out: &mut Source, context: &Context<'_>) {
    let versions = context.one.versions;
    out.line("fn write(&self, writer: &mut Writer, version: i16) -> Result<(), EncodeError> {");
    emit_flexible(out, context);
    for field in context.fields() {
        let own = field.versions.expect("filtered");
        emit_check(out, context, field, own);
        let plain = match field.tagged {
            Some(tagged) => own.before(tagged),
            None => Some(own),
        };
        emit_when(out, when(versions, plain), |out| {
            let present = plain.and_then(|plain| plain.and(versions)).expect("sometimes present");
            write_field(out, context, field, present);
        });
    }
    if context.is_ever_flexible() {
        emit_tags(out, context);
    }
    out.line("Ok(())");
    out.line("}");
}

/// Refuses a field that is set but not in the version, unless it may be ignored.
fn emit_check(out: &mut Source, context: &Context<'_>, field: &Field, own: Versions) {
    if field.ignorable {
        return;
    }
    let condition = match when(context.one.versions, Some(own)) {
        When::Always => return,
        When::Never => String::new(),
        When::If(condition) => format!("!({condition}) && "),
    };
    let path = context.path(field);
    out.line(format!(
        "if {condition}{} {{",
        is_set(field, context.is_nullable(field))
    ));
    out.line(format!(
        "return Err(EncodeError::NotInVersion {{ field: {path}, version }});"
    ));
    out.line("}");
}

fn emit_when(out: &mut Source, when: When, body: impl FnOnce(&mut Source)) {
    match when {
        When::Never => {}
        When::Always => body(out),
        When::If(condition) => {
            out.line(format!("if {condition} {{"));
            body(out);
            out.line("}");
        }
    }
}

fn emit_tags(out: &mut Source, context: &Context<'_>) {
    let versions = context.one.versions;
    let flexible = context
        .flexible
        .and_then(|flexible| flexible.and(versions))
        .expect("sometimes flexible");
    let mut tagged: Vec<(&Field, Versions)> = context
        .fields()
        .filter_map(|field| Some((field, field.tagged?.and(flexible)?)))
        .collect();
    tagged.sort_by_key(|(field, _)| field.tag);
    out.line("if flexible {");
    out.line(if tagged.is_empty() {
        "let tagged = TaggedFields::new();"
    } else {
        "let mut tagged = TaggedFields::new();"
    });
    for (field, present) in tagged {
        let set = is_set(field, context.is_nullable(field));
        let condition = match when(flexible, Some(present)) {
            When::If(condition) => format!("{condition} && {set}"),
            When::Always | When::Never => set,
        };
        out.line(format!("if {condition} {{"));
        out.line(format!(
            "let writer = tagged.field({});",
            field.tag.expect("a tagged field has a tag")
        ));
        write_field(out, context, field, present);
        out.line("}");
    }
    out.line("tagged.write(&self.unknown_tagged_fields, writer);");
    if !matches!(when(versions, context.flexible), When::Always) {
        out.line("} else if !self.unknown_tagged_fields.is_empty() {");
        let path = format!("\"{}.unknown_tagged_fields\"", context.one.path);
        out.line(format!(
            "return Err(EncodeError::NotInVersion {{ field: {path}, version }});"
        ));
    }
    out.line("}");
}

/// Statements that write the field in those versions in which it is `present`.
fn write_field(out: &mut Source, context: &Context<'_>, field: &Field, present: Versions) {
    let place = format!("self.{}", identifier(&field.name));
    let path = context.path(field);
    let flexible = if field.never_flexible { "false" } else { "flexible" };
    if !context.is_nullable(field) {
        let place = format!("&{place}");
        out.line(format!("{};", write_value(&field.kind, &place, flexible, &path)));
        return;
    }
    let value = write_value(&field.kind, "value", flexible, &path);
    let (some, null) = match &field.kind {
        Type::Struct(_) => (format!("{{ writer.i8(1); {value}; }}"), "writer.i8(-1)".to_owned()),
        Type::String => (format!("{value},"), format!("writer.null_text({flexible})")),
        _ => (format!("{value},"), format!("writer.null_length({flexible})")),
    };
    let refuse = format!("return Err(EncodeError::Null {{ field: {path}, version }})");
    out.line(format!("match &{place} {{"));
    out.line(format!("Some(value) => {some}"));
    match when(present, field.nullable) {
        When::Always => out.line(format!("None => {null},")),
        When::Never => out.line(format!("None => {refuse},")),
        When::If(condition) => {
            out.line(format!("None if {condition} => {null},"));
            out.line(format!("None => {refuse},"));
        }
    }
    out.line("}");
}

fn write_value(kind: &Type, value: &str, flexible: &str, path: &str) -> String {
    match kind {
        Type::Fixed(_) => format!("writer.fixed({value})"),
        Type::String => format!("writer.text({value}, {flexible}, {path})?"),
        Type::Bytes | Type::Records => format!("writer.bytes({value}, {flexible}, {path})?"),
        Type::Struct(_) => format!("{}.write(writer, version)?", value.trim_start_matches('&')),
        Type::Array(element) => match element.as_ref() {
            Type::Fixed(_) => format!("writer.fixed_array({value}, {flexible}, {path})?"),
            Type::String => format!("writer.texts({value}, {flexible}, {path})?"),
            Type::Struct(name) => format!("writer.structs({value}, {flexible}, version, {path}, {name}::write)?"),
            other => panic!("an array of {other:?}"),
        },
    }
}
