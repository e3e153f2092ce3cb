//! Generates the messages from `schemas/`: a Rust file a message, and the enums over them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

#[path = "generator/generator.rs"]
mod generator;

use generator::emit_enums::{MessageEnum, emit_api_keys};
use generator::emit_message::emit_message;
use generator::names::snake_case;
use generator::notation::parse;
use generator::rust::Source;
use generator::schema::Message;

const FOLDERS: [&str; 7] = [
    "messages",
    "metadata",
    "group_coordinator",
    "transaction_coordinator",
    "share_coordinator",
    "raft",
    "storage",
];

fn main() {
    println!("cargo::rerun-if-changed=schemas");
    println!("cargo::rerun-if-changed=generator");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let mut registry = Source::default();
    registry.line("vec![");
    for folder in FOLDERS {
        let messages = read(&Path::new("schemas").join(folder));
        write_modules(&out, folder, &messages);
        let mut enums = Source::default();
        enums_of(folder, &messages, &out, &mut enums);
        write(&out.join(format!("{folder}_enums.rs")), &enums.text);
        for message in messages.iter().filter(|message| message.versions.is_some()) {
            let parent = if folder == "messages" {
                "crate"
            } else {
                "crate::internal_records"
            };
            let path = format!("{parent}::{folder}::{}::{}", snake_case(&message.name), message.name);
            registry.line(format!("Entry::of::<{path}>(\"{folder}\"),"));
        }
    }
    registry.line("]");
    write(&out.join("registry.rs"), &registry.text);
}

/// The folder's messages, in the order of their names.
fn read(folder: &Path) -> Vec<Message> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths: BTreeMap<PathBuf, ()> = entries
        .map(|entry| (entry.expect("a readable folder").path(), ()))
        .collect();
    paths
        .keys()
        .map(|path| parse(&fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))))
        .collect()
}

fn write_modules(out: &Path, folder: &str, messages: &[Message]) {
    fs::create_dir_all(out.join(folder)).expect("OUT_DIR can be written");
    let mut modules = Source::default();
    for message in messages {
        let Some(text) = emit_message(message) else { continue };
        let module = snake_case(&message.name);
        write(&out.join(folder).join(format!("{module}.rs")), &text);
        modules.line(format!("/// `{}`.", message.name));
        modules.line(format!("pub mod {module} {{"));
        modules.line(format!(
            "include!(concat!(env!(\"OUT_DIR\"), \"/{folder}/{module}.rs\"));"
        ));
        modules.line("}");
    }
    write(&out.join(format!("{folder}.rs")), &modules.text);
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

fn enums_of(folder: &str, messages: &[Message], out_folder: &Path, out: &mut Source) {
    match folder {
        "messages" => api_enums(messages, out_folder, out),
        "metadata" => record_enum(
            out,
            messages,
            "metadata",
            (
                "MetadataRecord",
                "A record of the metadata log.",
                "crate::internal_records::metadata",
                "Record",
            ),
        ),
        "storage" => record_enum(
            out,
            messages,
            "metadata",
            (
                "RemoteLogRecord",
                "A record of the log of remote segments.",
                "crate::internal_records::storage",
                "Record",
            ),
        ),
        "group_coordinator" => coordinator_enums(out, messages, "crate::internal_records::group_coordinator"),
        "transaction_coordinator" => {
            coordinator_enums(out, messages, "crate::internal_records::transaction_coordinator");
        }
        "share_coordinator" => coordinator_enums(out, messages, "crate::internal_records::share_coordinator"),
        _ => {}
    }
}

fn api_enums(messages: &[Message], out_folder: &Path, out: &mut Source) {
    let live = |kind: &str| -> BTreeMap<i16, &Message> {
        let of_kind = messages
            .iter()
            .filter(|message| message.kind == kind && message.versions.is_some());
        of_kind
            .map(|message| (message.key.expect("an API has a key"), message))
            .collect()
    };
    let (requests, responses) = (live("request"), live("response"));
    let apis: Vec<_> = requests
        .iter()
        .map(|(key, request)| (*request, responses[key]))
        .collect();
    let mut keys = Source::default();
    emit_api_keys(&mut keys, &apis);
    write(&out_folder.join("api_keys.rs"), &keys.text);
    for (name, doc, suffix, messages) in [
        ("Request", "A request of any API.", "Request", requests),
        ("Response", "A response of any API.", "Response", responses),
    ] {
        let messages = messages.into_values().collect();
        let module = "crate::messages";
        MessageEnum {
            name,
            doc,
            key_type: "ApiKey",
            key_name: "api_key",
            module,
            suffix,
            messages,
        }
        .emit(out);
    }
}

fn coordinator_enums(out: &mut Source, messages: &[Message], module: &'static str) {
    record_enum(
        out,
        messages,
        "coordinator-key",
        ("Key", "A record's key.", module, "Key"),
    );
    record_enum(
        out,
        messages,
        "coordinator-value",
        ("Value", "A record's value.", module, "Value"),
    );
}

fn record_enum(
    out: &mut Source,
    messages: &[Message],
    kind: &str,
    (name, doc, module, suffix): (&'static str, &'static str, &'static str, &'static str),
) {
    let of_kind = messages
        .iter()
        .filter(|message| message.kind == kind && message.versions.is_some());
    let by_key: BTreeMap<_, _> = of_kind.map(|message| (message.key, message)).collect();
    let messages = by_key.into_values().collect();
    MessageEnum {
        name,
        doc,
        key_type: "i16",
        key_name: "record_type",
        module,
        suffix,
        messages,
    }
    .emit(out);
}
