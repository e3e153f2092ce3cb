//! What may be wrong with a value or a change, and which Kafka code says so.

use model::ErrorCode;

/// A configuration that cannot be used. The wording is Kafka's where Kafka says the same.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    #[error("Invalid value {value} for configuration {name}: {reason}")]
    Invalid {
        name: String,
        value: String,
        reason: String,
    },
    /// A key that nobody knows; the hint, if any, names the one that may be meant.
    #[error("Unknown {scope} config name: {name}{}", .hint.as_ref().map_or(String::new(), |hint| format!(" ({hint})")))]
    Unknown {
        scope: &'static str,
        name: String,
        hint: Option<String>,
    },
    #[error("Missing required configuration \"{0}\" which has no default value.")]
    Missing(&'static str),
    /// A rule between keys, or of a shape that the words above do not fit.
    #[error("{0}")]
    Rule(String),
}

/// Values in messages are cut: they come from outside and may be of any size.
const SHOWN_BYTES_MAX: usize = 256;

impl ConfigError {
    pub(super) fn invalid(name: &str, value: &str, reason: String) -> Self {
        ConfigError::Invalid {
            name: cut(name),
            value: cut(value),
            reason,
        }
    }

    pub(super) fn plain(message: String) -> Self {
        ConfigError::Rule(message)
    }
}

pub(super) fn cut(text: &str) -> String {
    if text.len() <= SHOWN_BYTES_MAX {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(SHOWN_BYTES_MAX)])
}

/// Why a change was refused, with the code that IncrementalAlterConfigs answers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AlterError {
    /// The request itself makes no sense, or the broker refuses the value: INVALID_REQUEST.
    #[error("{0}")]
    Request(String),
    /// The values cannot stand: INVALID_CONFIG.
    #[error("{0}")]
    Config(String),
}

impl AlterError {
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            AlterError::Request(_) => ErrorCode::InvalidRequest,
            AlterError::Config(_) => ErrorCode::InvalidConfig,
        }
    }
}

impl From<ConfigError> for AlterError {
    fn from(error: ConfigError) -> Self {
        AlterError::Config(error.to_string())
    }
}
