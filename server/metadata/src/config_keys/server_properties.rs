//! A node's configuration file, the environment and the command line, merged into the static values of a broker.
//!
//! The file is a Java properties file, so that a `server.properties` written for Kafka works as it is. The environment
//! wins over the file, `--set` over both. Everything is text in, text out; nothing here reads a file or the environment.

use super::error::{ConfigError, cut};
use super::keys::{Scope, all};
use super::layers::{BrokerConfigs, Configs, without_secrets};
use super::names::{self, Notice};
use std::collections::BTreeMap;
use std::fmt;

/// Variables that begin so are configuration; the rest of the name is the key in capitals with `_` for `.`.
const ENVIRONMENT_PREFIX: &str = "MILLSTREAM_";

/// Variables of that prefix that are none of ours to read here: they belong to the command line.
const ENVIRONMENT_OTHER: &[&str] = &[
    "MILLSTREAM_BOOTSTRAP",
    "MILLSTREAM_CONFIG",
    "MILLSTREAM_LOG",
    "MILLSTREAM_URL",
    "MILLSTREAM_BROKER",
];

/// What a node is without any configuration: one broker and controller, reachable from its own machine only.
const SINGLE_NODE: &[(&str, &str)] = &[
    ("controller.listener.names", "CONTROLLER"),
    ("controller.quorum.bootstrap.servers", "127.0.0.1:9093"),
    ("listeners", "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093"),
    ("log.dirs", "./millstream-data/log"),
    ("node.id", "1"),
    ("offsets.topic.replication.factor", "1"),
    ("process.roles", "broker,controller"),
    ("share.coordinator.state.topic.min.isr", "1"),
    ("share.coordinator.state.topic.replication.factor", "1"),
    ("transaction.state.log.min.isr", "1"),
    ("transaction.state.log.replication.factor", "1"),
];

/// One `key=value` of the command line.
#[derive(Clone, PartialEq, Eq)]
pub struct Setting {
    pub name: String,
    pub value: String,
}

impl fmt::Debug for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pair = Configs::from([(self.name.clone(), self.value.clone())]);
        without_secrets(&pair).fmt(f)
    }
}

impl std::str::FromStr for Setting {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        match text.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() => Ok(Setting {
                name: name.trim().to_owned(),
                value: value.trim().to_owned(),
            }),
            _ => Err(ConfigError::plain(format!("{} is not KEY=VALUE", cut(text)))),
        }
    }
}

/// What a node starts with, and what its operator should read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loaded {
    pub configs: BrokerConfigs,
    /// By ascending name.
    pub notices: Vec<Notice>,
}

/// The merge of a node's sources.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct ServerProperties {
    values: Configs,
}

impl fmt::Debug for ServerProperties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ServerProperties")
            .field(&without_secrets(&self.values))
            .finish()
    }
}

impl ServerProperties {
    /// Begins with the single-node profile: for a node that was given no file.
    #[must_use]
    pub fn single_node() -> Self {
        let pairs = SINGLE_NODE
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        ServerProperties {
            values: pairs.collect(),
        }
    }

    /// Begins with a file's text.
    ///
    /// # Errors
    /// If the text is no properties file.
    pub fn from_file(text: &str) -> Result<Self, ConfigError> {
        Ok(ServerProperties {
            values: parse_properties(text)?,
        })
    }

    /// What was said so far.
    #[must_use]
    pub fn values(&self) -> &Configs {
        &self.values
    }

    /// Adds variables such as `MILLSTREAM_LOG_SEGMENT_BYTES`; others are passed over.
    ///
    /// # Errors
    /// If a variable with the prefix means no key.
    pub fn with_environment<N, V>(mut self, variables: impl IntoIterator<Item = (N, V)>) -> Result<Self, ConfigError>
    where
        N: AsRef<str>,
        V: Into<String>,
    {
        // Sorted, so that two variables of one key always end the same way.
        let ours: BTreeMap<String, String> = variables
            .into_iter()
            .filter(|(name, _)| name.as_ref().starts_with(ENVIRONMENT_PREFIX))
            .filter(|(name, _)| !ENVIRONMENT_OTHER.contains(&name.as_ref()))
            .map(|(name, value)| (name.as_ref().to_owned(), value.into()))
            .collect();
        for (variable, value) in ours {
            let name = key_of_variable(&variable)?;
            self.values.insert(name, value);
        }
        Ok(self)
    }

    /// Adds the command line's settings, the last of a name wins.
    #[must_use]
    pub fn with_settings(mut self, settings: impl IntoIterator<Item = Setting>) -> Self {
        self.values
            .extend(settings.into_iter().map(|setting| (setting.name, setting.value)));
        self
    }

    /// The values as a broker's static layer, after every name has been recognised.
    ///
    /// # Errors
    /// The first name that nobody knows, with a hint where a known one is near.
    pub fn load(mut self) -> Result<Loaded, ConfigError> {
        self.follow_the_listeners();
        let mut notices = Vec::new();
        for (name, value) in &self.values {
            // What the profile itself says needs no word to the operator.
            let is_profile = SINGLE_NODE.contains(&(name.as_str(), value.as_str()));
            notices.extend(names::notice(name)?.filter(|_| !is_profile));
        }
        Ok(Loaded {
            configs: BrokerConfigs::from_static(self.values),
            notices,
        })
    }

    /// With the single-node profile, a controller that was given another port is also found there.
    fn follow_the_listeners(&mut self) {
        let profile = |name: &str| {
            SINGLE_NODE
                .iter()
                .find(|(each, _)| *each == name)
                .map(|(_, value)| *value)
        };
        let is_profile = |values: &Configs, name: &str| values.get(name).map(String::as_str) == profile(name);
        let untouched = is_profile(&self.values, "controller.quorum.bootstrap.servers")
            && is_profile(&self.values, "controller.listener.names")
            && !is_profile(&self.values, "listeners");
        if !untouched {
            return;
        }
        let listeners = self.values.get("listeners").map(String::as_str).unwrap_or_default();
        let controller = listeners
            .split(',')
            .filter_map(|entry| entry.trim().split_once("://"))
            .find(|(name, _)| name.eq_ignore_ascii_case("CONTROLLER"));
        if let Some((_, address)) = controller.filter(|(_, address)| !address.starts_with(':')) {
            let address = address.to_owned();
            self.values
                .insert("controller.quorum.bootstrap.servers".to_owned(), address);
        }
    }
}

/// The key that a variable means: the one whose name, in capitals and with `_` for every other character, it is. Our
/// own keys may be written with their `MILLSTREAM_` once or twice. Listener's prefixes are found as well.
fn key_of_variable(variable: &str) -> Result<String, ConfigError> {
    let rest = &variable[ENVIRONMENT_PREFIX.len()..];
    let written = |name: &str| {
        let upper = name.chars().map(|character| {
            if character.is_ascii_alphanumeric() {
                character
            } else {
                '_'
            }
        });
        upper.collect::<String>().to_ascii_uppercase()
    };
    let exact = all(Scope::Broker).find(|key| written(key.name) == rest);
    let own = || all(Scope::Broker).find(|key| written(key.name) == variable);
    if let Some(key) = exact.or_else(own) {
        return Ok(key.name.to_owned());
    }
    let dotted = rest.to_ascii_lowercase().replace('_', ".");
    let under_listener = rest.strip_prefix("LISTENER_NAME_").and_then(|rest| {
        all(Scope::Broker)
            .filter_map(|key| {
                let listener = rest.strip_suffix(&written(key.name))?.strip_suffix('_')?;
                Some((listener, key.name))
            })
            .filter(|(listener, _)| !listener.is_empty())
            .min_by_key(|(listener, _)| listener.len())
    });
    match under_listener {
        Some((listener, key)) => Ok(format!("listener.name.{}.{key}", listener.to_ascii_lowercase())),
        None => match names::notice(&dotted) {
            Ok(_) => Ok(dotted),
            Err(error) => Err(ConfigError::plain(format!(
                "environment variable {}: {error}",
                cut(variable)
            ))),
        },
    }
}

/// A properties file of Java: `key=value`, `key: value` or `key value`, comments with `#` and `!`, lines that go on
/// after a `\`, and the escapes `\n`, `\t`, `\f`, `\r` and `\uXXXX`. The last value of a name wins.
///
/// # Errors
/// If an escape `\u` is not followed by four hexadecimal digits.
pub(super) fn parse_properties(text: &str) -> Result<Configs, ConfigError> {
    let mut values = Configs::new();
    for line in logical_lines(text) {
        let (name, value) = split_pair(&line);
        values.insert(unescape(name)?, unescape(value)?.trim_end().to_owned());
    }
    Ok(values)
}

/// Lines with their continuations, without blank ones and comments.
fn logical_lines(text: &str) -> Vec<String> {
    let text = text
        .strip_prefix('\u{feff}')
        .unwrap_or(text)
        .replace("\r\n", "\n")
        .replace('\r', "\n");
    let mut lines = Vec::new();
    let mut open: Option<String> = None;
    for line in text.split('\n') {
        let line = line.trim_start_matches([' ', '\t', '\u{c}']);
        let is_continued = line.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1;
        if open.is_none() && (line.is_empty() || line.starts_with(['#', '!'])) {
            continue;
        }
        let part = if is_continued { &line[..line.len() - 1] } else { line };
        let mut whole = open.take().unwrap_or_default();
        whole.push_str(part);
        if is_continued {
            open = Some(whole);
        } else {
            lines.push(whole);
        }
    }
    lines.extend(open.filter(|line| !line.is_empty()));
    lines
}

/// Name and value of a logical line, still with their escapes.
fn split_pair(line: &str) -> (&str, &str) {
    let is_blank = |character: char| character == ' ' || character == '\t' || character == '\u{c}';
    let mut escaped = false;
    let end = line
        .char_indices()
        .find(|(_, character)| {
            let ends = !escaped && (is_blank(*character) || *character == '=' || *character == ':');
            escaped = !escaped && *character == '\\';
            ends
        })
        .map_or(line.len(), |(at, _)| at);
    let rest = line[end..].trim_start_matches(is_blank);
    let rest = rest.strip_prefix(['=', ':']).unwrap_or(rest);
    (&line[..end], rest.trim_start_matches(is_blank))
}

fn unescape(text: &str) -> Result<String, ConfigError> {
    if !text.contains('\\') {
        return Ok(text.to_owned());
    }
    // Characters beyond the first 65536 are written as two escapes, so the text is gathered in UTF-16.
    let mut units: Vec<u16> = Vec::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        let escaped = if character == '\\' { characters.next() } else { None };
        let plain = match escaped {
            None if character == '\\' => continue,
            None => character,
            Some('n') => '\n',
            Some('t') => '\t',
            Some('r') => '\r',
            Some('f') => '\u{c}',
            Some('u') => {
                let rest = characters.as_str();
                let digits = rest
                    .get(..4)
                    .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
                let unit = digits.and_then(|digits| u16::from_str_radix(digits, 16).ok());
                let Some(unit) = unit else {
                    return Err(ConfigError::plain(format!("malformed \\uxxxx escape in {}", cut(text))));
                };
                units.push(unit);
                characters = rest[4..].chars();
                continue;
            }
            Some(other) => other,
        };
        units.extend_from_slice(plain.encode_utf16(&mut [0; 2]));
    }
    Ok(String::from_utf16_lossy(&units))
}

#[cfg(test)]
#[path = "server_properties/tests.rs"]
mod tests;
