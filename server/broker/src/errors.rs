//! What goes wrong below the handlers, as the codes and texts that clients see: the one place where errors become codes.

use model::{ErrorCode, Offset};
use storage::{AppendError, ReadError};

/// Why a request, or one partition of it, is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: ErrorCode,
    pub(crate) message: Option<String>,
    /// Which records of a batch are at fault (index within the batch) and why (KIP-467).
    pub(crate) record_errors: Vec<(i32, String)>,
    pub(crate) log_start_offset: Option<Offset>,
}

impl Refusal {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Refusal {
            message: Some(message.into()),
            ..Refusal::from(code)
        }
    }
}

impl From<ErrorCode> for Refusal {
    fn from(code: ErrorCode) -> Self {
        Refusal {
            code,
            message: None,
            record_errors: Vec::new(),
            log_start_offset: None,
        }
    }
}

impl From<AppendError> for Refusal {
    fn from(error: AppendError) -> Self {
        let code = error.error_code();
        // For the others the client has a text of its own, which says what to do.
        let message = matches!(code, ErrorCode::InvalidRecord | ErrorCode::InvalidTimestamp).then(|| describe(&error));
        let record_errors = match &error {
            AppendError::InvalidRecords { what, records } => {
                records.iter().map(|record| (*record, (*what).to_owned())).collect()
            }
            AppendError::InvalidTimestamp { records } => {
                let what = "the timestamp is outside of the allowed range";
                records.iter().map(|record| (*record, what.to_owned())).collect()
            }
            _ => Vec::new(),
        };
        Refusal {
            message,
            record_errors,
            ..Refusal::from(code)
        }
    }
}

impl From<ReadError> for Refusal {
    fn from(error: ReadError) -> Self {
        let code = match &error {
            ReadError::OutOfRange { .. } => ErrorCode::OffsetOutOfRange,
            ReadError::Corrupt(_) => ErrorCode::CorruptMessage,
            ReadError::WouldBlock | ReadError::Io(_) => ErrorCode::KafkaStorageError,
        };
        Refusal::new(code, describe(&error))
    }
}

/// An error with its causes, in one line.
pub(crate) fn describe(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
