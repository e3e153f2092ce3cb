//! Reads the notation of `schemas/`: facts of a message, one line a field, two spaces a level.
//!
//! ```text
//! request FetchRequest key=1 versions=4-18 flexible=12+ listeners=broker,controller
//!   ClusterId string 12+ tag=0 tagged=12+ nullable=12+ default=null ignorable
//!   Topics []FetchTopic 0+
//!     Topic string 0-12 ignorable entity=topicName
//! struct Shared 0+
//!   Name string 0+ map-key
//! ```
//! A field under a field belongs to the struct that the upper one's type names; a `struct` is used by several fields.
//! Versions are `N`, `N-M`, `N+` or `none`. Without `default` a field's default is its type's (zero, empty).

use crate::generator::schema::{CommonStruct, FIXED_TYPES, Field, Message, Type, Versions};

/// The message in `text`.
///
/// # Panics
/// If it is not in the notation: the files are part of the source.
pub(crate) fn parse(text: &str) -> Message {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty()).peekable();
    let head: Vec<&str> = lines.next().expect("a head line").split(' ').collect();
    let attribute = |name: &str| head.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    let mut message = Message {
        kind: head[0].to_owned(),
        name: head[1].to_owned(),
        key: attribute("key").map(|key| key.parse().expect("a number")),
        versions: attribute("versions").and_then(versions),
        flexible: attribute("flexible").and_then(versions),
        listeners: attribute("listeners")
            .unwrap_or_default()
            .split(',')
            .map(str::to_owned)
            .collect(),
        latest_unstable: head.contains(&"latest-unstable"),
        fields: fields(&mut lines, 1),
        common_structs: Vec::new(),
    };
    while let Some(line) = lines.next() {
        let words: Vec<&str> = line.split(' ').collect();
        let ["struct", name, range] = words[..] else {
            panic!("not a struct: {line}")
        };
        let versions = versions(range).expect("a struct has versions");
        message.common_structs.push(CommonStruct {
            name: name.to_owned(),
            versions,
            fields: fields(&mut lines, 1),
        });
    }
    message
}

fn fields<'t>(lines: &mut std::iter::Peekable<impl Iterator<Item = &'t str>>, depth: usize) -> Vec<Field> {
    let indent = |line: &str| (line.len() - line.trim_start().len()) / 2;
    let mut found = Vec::new();
    while let Some(line) = lines.next_if(|line| indent(line) == depth) {
        let mut field = field(line.trim());
        field.fields = fields(lines, depth + 1);
        found.push(field);
    }
    found
}

fn field(line: &str) -> Field {
    let words: Vec<&str> = line.split(' ').collect();
    let attribute = |name: &str| words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    let never_flexible = match attribute("flexible") {
        None => false,
        Some("none") => true,
        Some(other) => panic!("a field's own flexible versions can only be none: {other}"),
    };
    Field {
        name: words[0].to_owned(),
        kind: type_named(words[1]),
        versions: versions(words[2]),
        tag: attribute("tag").map(|tag| tag.parse().expect("a number")),
        tagged: attribute("tagged").and_then(versions),
        nullable: attribute("nullable").and_then(versions),
        never_flexible,
        default: attribute("default").map(str::to_owned),
        ignorable: words.contains(&"ignorable"),
        facts: words[1..].join(" "),
        fields: Vec::new(),
    }
}

fn type_named(name: &str) -> Type {
    if let Some(element) = name.strip_prefix("[]") {
        return Type::Array(Box::new(type_named(element)));
    }
    match name {
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "records" => Type::Records,
        _ => match FIXED_TYPES.iter().find(|fixed| fixed.name == name) {
            Some(fixed) => Type::Fixed(fixed),
            None => Type::Struct(name.to_owned()),
        },
    }
}

fn versions(text: &str) -> Option<Versions> {
    let number = |text: &str| text.parse::<i16>().unwrap_or_else(|_| panic!("not a version: {text}"));
    if text == "none" {
        None
    } else if let Some(first) = text.strip_suffix('+') {
        Some(Versions {
            first: number(first),
            last: i16::MAX,
        })
    } else if let Some((first, last)) = text.split_once('-') {
        Some(Versions {
            first: number(first),
            last: number(last),
        })
    } else {
        Some(Versions {
            first: number(text),
            last: number(text),
        })
    }
}
