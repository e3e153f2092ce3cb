//! `cargo xtask schemas [--jars DIR]`: refreshes `server/protocol/schemas/` from the jars of an Apache Kafka release.
//!
//! The jars carry each message's schema as JSON with `//` comments. Only facts are taken over (names, types, versions,
//! defaults), one file a message, in the notation that `server/protocol/generator/notation.rs` describes and reads.

use std::fmt::Write as _;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

#[path = "../../server/protocol/generator/names.rs"]
mod names;

const RELEASE: &str = "4.4.0";

/// The jars that hold schemas, and the folder that each one's messages go to.
const JARS: [(&str, &str); 7] = [
    ("kafka-clients", "messages"),
    ("kafka-metadata", "metadata"),
    ("kafka-group-coordinator", "group_coordinator"),
    ("kafka-transaction-coordinator", "transaction_coordinator"),
    ("kafka-share-coordinator", "share_coordinator"),
    ("kafka-raft", "raft"),
    ("kafka-storage", "storage"),
];

/// The folders within a jar that hold schemas.
const SCHEMA_FOLDERS: [&str; 3] = ["common/message/", "common/metadata/", "message/"];

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let jars = match arguments {
        [] => default_jars()?,
        [flag, directory] if flag == "--jars" => PathBuf::from(directory),
        _ => bail!("usage: cargo xtask schemas [--jars DIR]"),
    };
    let target = crate::root::path()?.join("server/protocol/schemas");
    for (artifact, folder) in JARS {
        let jar = jars.join(format!("{artifact}-{RELEASE}.jar"));
        let count = refresh(&jar, &target.join(folder)).with_context(|| format!("reading {}", jar.display()))?;
        crate::console::line(&format!("{folder}: {count} messages"));
    }
    Ok(())
}

fn default_jars() -> anyhow::Result<PathBuf> {
    let home = std::env::var_os("HOME").context("HOME is not set: give the jars' folder with --jars")?;
    Ok(Path::new(&home).join(format!(".cache/peers/kafka-{RELEASE}/lib")))
}

fn refresh(jar: &Path, folder: &Path) -> anyhow::Result<usize> {
    let mut archive = zip::ZipArchive::new(fs::File::open(jar)?)?;
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)?;
    let mut count = 0;
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index)?;
        let path = entry.name()?.into_owned();
        let is_schema = path.ends_with(".json")
            && SCHEMA_FOLDERS
                .iter()
                .any(|folder| path.strip_prefix(folder).is_some_and(|name| !name.contains('/')));
        if !is_schema {
            continue;
        }
        let mut text = String::new();
        entry.read_to_string(&mut text)?;
        let schema = parse(&text).with_context(|| path.clone())?;
        let name = string(&schema, "name").with_context(|| path.clone())?;
        let notation = notation(&schema).with_context(|| path.clone())?;
        fs::write(folder.join(format!("{}.txt", names::snake_case(name))), notation)?;
        count += 1;
    }
    ensure!(count > 0, "no schema found");
    Ok(count)
}

/// JSON with whole lines of `//` comments.
fn parse(text: &str) -> anyhow::Result<Value> {
    let json: String = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| [line, "\n"])
        .collect();
    Ok(serde_json::from_str(&json)?)
}

fn notation(schema: &Value) -> anyhow::Result<String> {
    let mut out = String::new();
    write!(out, "{} {}", string(schema, "type")?, string(schema, "name")?)?;
    if let Some(key) = schema.get("apiKey") {
        write!(out, " key={key}")?;
    }
    write!(out, " versions={}", string(schema, "validVersions")?)?;
    if let Some(flexible) = schema.get("flexibleVersions") {
        write!(out, " flexible={}", text(flexible)?)?;
    }
    if let Some(listeners) = schema.get("listeners").and_then(Value::as_array) {
        let listeners = listeners.iter().map(text).collect::<anyhow::Result<Vec<_>>>()?;
        write!(out, " listeners={}", listeners.join(","))?;
    }
    if schema.get("latestVersionUnstable").is_some_and(is_true) {
        out.push_str(" latest-unstable");
    }
    out.push('\n');
    fields(&mut out, schema, 1)?;
    for structure in schema
        .get("commonStructs")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        writeln!(
            out,
            "struct {} {}",
            string(structure, "name")?,
            string(structure, "versions")?
        )?;
        fields(&mut out, structure, 1)?;
    }
    Ok(out)
}

fn fields(out: &mut String, parent: &Value, depth: usize) -> anyhow::Result<()> {
    for field in parent.get("fields").and_then(Value::as_array).into_iter().flatten() {
        let name = string(field, "name")?;
        // A field that is only ever tagged may leave its versions out.
        let versions = field.get("versions").or_else(|| field.get("taggedVersions"));
        let versions = text(versions.with_context(|| format!("{name} has no versions"))?)?;
        write!(
            out,
            "{:indent$}{name} {} {versions}",
            "",
            string(field, "type")?,
            indent = 2 * depth
        )?;
        attributes(out, field)?;
        out.push('\n');
        fields(out, field, depth + 1)?;
    }
    Ok(())
}

fn attributes(out: &mut String, field: &Value) -> anyhow::Result<()> {
    for (property, short) in [
        ("tag", "tag"),
        ("taggedVersions", "tagged"),
        ("nullableVersions", "nullable"),
        ("flexibleVersions", "flexible"),
    ] {
        if let Some(value) = field.get(property) {
            write!(out, " {short}={}", text(value)?)?;
        }
    }
    // A JSON null and the empty string both mean: the type's own default. The word "null" means null.
    if let Some(default) = field.get("default").filter(|value| !value.is_null()) {
        let default = text(default)?;
        ensure!(
            !default.contains(char::is_whitespace),
            "a default with a space: {default:?}"
        );
        if !default.is_empty() {
            write!(out, " default={default}")?;
        }
    }
    for (property, short) in [
        ("ignorable", "ignorable"),
        ("mapKey", "map-key"),
        ("zeroCopy", "zero-copy"),
    ] {
        if field.get(property).is_some_and(is_true) {
            write!(out, " {short}")?;
        }
    }
    if let Some(entity) = field.get("entityType") {
        write!(out, " entity={}", text(entity)?)?;
    }
    Ok(())
}

fn is_true(value: &Value) -> bool {
    matches!(value, Value::Bool(true)) || value.as_str() == Some("true")
}

fn string<'v>(value: &'v Value, property: &str) -> anyhow::Result<&'v str> {
    value
        .get(property)
        .and_then(Value::as_str)
        .with_context(|| format!("{property} is missing or not a string"))
}

/// A scalar as text, whether it is quoted in the JSON or not.
fn text(value: &Value) -> anyhow::Result<String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(value) => Ok(value.to_string()),
        other => bail!("expected a scalar, found {other}"),
    }
}
