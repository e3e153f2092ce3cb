//! Enums over messages: the API keys, requests and responses, and the records of each log.

use crate::generator::rust::Source;
use crate::generator::schema::{Message, Versions};

/// An enum whose variants each hold a message.
pub(crate) struct MessageEnum<'m> {
    pub(crate) name: &'static str,
    pub(crate) doc: &'static str,
    /// What tells the variants apart: its Rust type, and the method that gives it.
    pub(crate) key_type: &'static str,
    pub(crate) key_name: &'static str,
    /// The module that the messages' modules are in.
    pub(crate) module: &'static str,
    /// Taken off the message's name for the variant's.
    pub(crate) suffix: &'static str,
    pub(crate) messages: Vec<&'m Message>,
}

impl MessageEnum<'_> {
    pub(crate) fn emit(&self, out: &mut Source) {
        let MessageEnum {
            name,
            key_type,
            key_name,
            ..
        } = self;
        let is_api = *key_type == "ApiKey";
        let rows: Vec<(String, String, String)> =
            self.messages.iter().map(|message| self.row(message, is_api)).collect();
        out.line(format!("/// {}", self.doc));
        out.line("#[derive(Clone, Debug, PartialEq)]");
        out.line(format!("pub enum {name} {{"));
        rows.iter()
            .for_each(|(variant, path, _)| out.line(format!("{variant}({path}),")));
        out.line("}");
        out.line(format!("impl {name} {{"));
        out.line("/// Reads the message of that kind; bytes may follow it.");
        out.line(format!(
            "pub fn decode({key_name}: {key_type}, version: i16, reader: &mut Reader) -> Result<Self, DecodeError> {{"
        ));
        out.line(format!("Ok(match {key_name} {{"));
        for (variant, _, key) in &rows {
            out.line(format!("{key} => Self::{variant}(Message::decode(reader, version)?),"));
        }
        if !is_api {
            let problem = format!("DecodeProblem::UnknownType({key_name}.into())");
            out.line(format!("_ => return Err(reader.error(\"{name}\", {problem})),"));
        }
        out.line("})");
        out.line("}");
        out.line("pub fn encode(&self, writer: &mut Writer, version: i16) -> Result<(), EncodeError> {");
        self.emit_match(
            out,
            rows.iter()
                .map(|(v, ..)| format!("Self::{v}(message) => message.encode(writer, version),")),
        );
        out.line("#[must_use]");
        out.line(format!("pub fn {key_name}(&self) -> {key_type} {{"));
        self.emit_match(out, rows.iter().map(|(v, _, key)| format!("Self::{v}(_) => {key},")));
        out.line("/// Kafka's name for the message.");
        out.line("#[must_use]");
        out.line("pub fn name(&self) -> &'static str {");
        self.emit_match(
            out,
            rows.iter().map(|(v, path, _)| format!("Self::{v}(_) => {path}::NAME,")),
        );
        out.line("#[must_use]");
        out.line("pub fn versions(&self) -> RangeInclusive<i16> {");
        self.emit_match(
            out,
            rows.iter()
                .map(|(v, path, _)| format!("Self::{v}(_) => {path}::versions(),")),
        );
        if !is_api {
            out.line("/// The message as JSON, for people; as Apache Kafka's tools show it.");
            out.line("#[must_use]");
            out.line("pub fn to_json(&self, version: i16) -> String {");
            self.emit_match(
                out,
                rows.iter()
                    .map(|(v, ..)| format!("Self::{v}(message) => to_json(message, version),")),
            );
        }
        out.line("}");
        for (variant, path, _) in &rows {
            out.line(format!("impl From<{path}> for {name} {{"));
            out.line(format!("fn from(message: {path}) -> Self {{"));
            out.line(format!("Self::{variant}(message)"));
            out.line("}");
            out.line("}");
        }
    }

    /// Ends a method with a match on `self`.
    fn emit_match(&self, out: &mut Source, arms: impl Iterator<Item = String>) {
        out.line("match self {");
        arms.for_each(|arm| out.line(arm));
        out.line("}");
        out.line("}");
    }

    /// A variant's name, the path of its message, and the pattern of its key.
    fn row(&self, message: &Message, is_api: bool) -> (String, String, String) {
        let variant = message
            .name
            .strip_suffix(self.suffix)
            .unwrap_or_else(|| panic!("{} is no {}", message.name, self.suffix));
        let module = crate::generator::names::snake_case(&message.name);
        let path = format!("{}::{module}::{}", self.module, message.name);
        let key = message.key.unwrap_or_else(|| panic!("{} has no key", message.name));
        let key = if is_api {
            format!("ApiKey::{variant}")
        } else {
            key.to_string()
        };
        (variant.to_owned(), path, key)
    }
}

/// The enum of API keys, from the requests and their responses in ascending order of the keys.
pub(crate) fn emit_api_keys(out: &mut Source, apis: &[(&Message, &Message)]) {
    let name = |message: &Message| message.name.strip_suffix("Request").expect("a request").to_owned();
    let first = |flexible: Option<Versions>| flexible.map_or(i16::MAX, |flexible| flexible.first);
    out.line("/// An API of the protocol.");
    out.line("#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]");
    out.line("pub enum ApiKey {");
    for (request, _) in apis {
        out.line(format!(
            "{} = {},",
            name(request),
            request.key.expect("an API has a key")
        ));
    }
    out.line("}");
    out.line("impl ApiKey {");
    out.line("/// All that have a version, in ascending order of their codes.");
    out.line(format!("pub const ALL: [ApiKey; {}] = [", apis.len()));
    apis.iter()
        .for_each(|(request, _)| out.line(format!("ApiKey::{},", name(request))));
    out.line("];");
    out.line("const fn facts(self) -> Facts {");
    out.line("match self {");
    for (request, response) in apis {
        let versions = request.versions.expect("only live requests");
        assert_eq!(
            request.versions, response.versions,
            "{} and its response differ",
            request.name
        );
        let listens = |listener: &str| request.listeners.iter().any(|other| other == listener);
        out.line(format!(
            "ApiKey::{0} => Facts {{ name: \"{0}\", first: {1}, last: {2}, last_is_stable: {3}, \
             request_first_flexible: {4}, response_first_flexible: {5}, broker: {6}, controller: {7} }},",
            name(request),
            versions.first,
            versions.last,
            !request.latest_unstable,
            first(request.flexible),
            first(response.flexible),
            listens("broker"),
            listens("controller"),
        ));
    }
    out.line("}");
    out.line("}");
    out.line("}");
}
