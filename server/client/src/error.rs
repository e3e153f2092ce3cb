//! Why something that was asked for did not happen.

use std::time::Duration;

use model::record_batch::BatchError;
use model::{BrokerId, ErrorCode, Offset, TopicPartition};
use network::CallError;
use protocol::ApiKey;

/// What went wrong with a call or with what is built on calls.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A node answered, and its answer is an error.
    #[error("{what}: {code}{}", said(message.as_deref()))]
    Refused {
        what: String,
        code: ErrorCode,
        /// What the node said beside the code.
        message: Option<String>,
    },
    #[error("calling broker at {address}")]
    Call {
        address: String,
        #[source]
        source: CallError,
    },
    #[error("no broker could be reached at {addresses}")]
    NoBroker {
        addresses: String,
        #[source]
        source: Option<CallError>,
    },
    #[error("this node does not serve {0:?}")]
    Unsupported(ApiKey),
    #[error("{what} took longer than {} ms", waited.as_millis())]
    Timeout { what: String, waited: Duration },
    #[error("broker {0} is not in the cluster's metadata")]
    UnknownBroker(BrokerId),
    #[error("the answer to {api_key:?} lacks {lacking}")]
    MalformedAnswer { api_key: ApiKey, lacking: String },
    #[error("the node ended the exchange instead of answering {0:?}")]
    Closed(ApiKey),
    /// Reading from where no record is and none will be.
    #[error("offset {offset} of {partition} lies outside its log, which goes from {log_start} to {log_end}")]
    OutOfRange {
        partition: TopicPartition,
        offset: Offset,
        log_start: Offset,
        log_end: Offset,
    },
    #[error("a batch of {partition} at or after offset {offset} cannot be read")]
    Batch {
        partition: TopicPartition,
        offset: Offset,
        #[source]
        source: BatchError,
    },
    #[error("{0}")]
    Invalid(String),
}

fn said(message: Option<&str>) -> String {
    message.map(|message| format!(" ({message})")).unwrap_or_default()
}

impl Error {
    /// An answer's error code as a result: `what` was tried, and it either worked or was refused.
    pub(crate) fn check(code: i16, message: Option<&str>, what: impl FnOnce() -> String) -> Result<(), Error> {
        if code == ErrorCode::None.code() {
            return Ok(());
        }
        Err(Error::refused(code, message, what()))
    }

    pub(crate) fn refused(code: i16, message: Option<&str>, what: impl Into<String>) -> Error {
        let known = ErrorCode::from_code(code);
        let message = match (message, known) {
            (Some(message), _) if !message.is_empty() => Some(message.to_owned()),
            (_, None) => Some(format!("error code {code}")),
            _ => None,
        };
        Error::Refused {
            what: what.into(),
            code: known.unwrap_or(ErrorCode::UnknownServerError),
            message,
        }
    }

    /// The protocol's word for what happened: that of the node's answer, or the one that fits best.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Error::Refused { code, .. } => *code,
            Error::Call { source, .. } => match source {
                CallError::Timeout { .. } => ErrorCode::RequestTimedOut,
                CallError::Unsupported { .. } => ErrorCode::UnsupportedVersion,
                _ => ErrorCode::NetworkException,
            },
            Error::NoBroker { .. } => ErrorCode::BrokerNotAvailable,
            Error::Unsupported(_) => ErrorCode::UnsupportedVersion,
            Error::Timeout { .. } => ErrorCode::RequestTimedOut,
            Error::UnknownBroker(_) => ErrorCode::BrokerNotAvailable,
            Error::MalformedAnswer { .. } | Error::Closed(_) => ErrorCode::UnknownServerError,
            Error::OutOfRange { .. } => ErrorCode::OffsetOutOfRange,
            Error::Batch { .. } => ErrorCode::CorruptMessage,
            Error::Invalid(_) => ErrorCode::InvalidRequest,
        }
    }

    /// What a node said beside its error code.
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        match self {
            Error::Refused { message, .. } => message.as_deref(),
            _ => None,
        }
    }

    /// Whether the same call may do better in a moment. Kafka calls a corrupt message retriable, for what was damaged on
    /// its way can be sent again; what is damaged where it is kept stays so.
    #[must_use]
    pub fn is_retriable(&self) -> bool {
        match self {
            Error::Refused {
                code: ErrorCode::CorruptMessage,
                ..
            } => false,
            Error::Refused { code, .. } => code.is_retriable(),
            Error::Call { source, .. } => match source {
                CallError::Connect { .. } | CallError::Timeout { .. } | CallError::Disconnected { .. } => true,
                CallError::Unsupported { .. }
                | CallError::Encode { .. }
                | CallError::Decode { .. }
                | CallError::Refused { .. } => false,
            },
            Error::NoBroker { .. } | Error::Timeout { .. } | Error::UnknownBroker(_) => true,
            Error::Unsupported(_)
            | Error::MalformedAnswer { .. }
            | Error::Closed(_)
            | Error::OutOfRange { .. }
            | Error::Batch { .. }
            | Error::Invalid(_) => false,
        }
    }

    /// Whether the node may have done what it was asked although no answer says so.
    #[must_use]
    pub fn leaves_outcome_open(&self) -> bool {
        match self {
            Error::Call { source, .. } => matches!(
                source,
                CallError::Timeout { .. } | CallError::Disconnected { .. } | CallError::Decode { .. }
            ),
            Error::Timeout { .. } | Error::MalformedAnswer { .. } | Error::Closed(_) => true,
            Error::Refused { code, .. } => matches!(
                code,
                ErrorCode::RequestTimedOut | ErrorCode::NotEnoughReplicasAfterAppend | ErrorCode::UnknownServerError
            ),
            _ => false,
        }
    }

    /// Whether the routing that led to the node is worth asking for again.
    pub(crate) fn doubts_routing(&self) -> bool {
        match self {
            Error::Refused { code, .. } => matches!(
                code,
                ErrorCode::NotLeaderOrFollower
                    | ErrorCode::LeaderNotAvailable
                    | ErrorCode::UnknownTopicOrPartition
                    | ErrorCode::UnknownTopicId
                    | ErrorCode::InconsistentTopicId
                    | ErrorCode::FencedLeaderEpoch
                    | ErrorCode::UnknownLeaderEpoch
                    | ErrorCode::ReplicaNotAvailable
                    | ErrorCode::KafkaStorageError
                    | ErrorCode::NotController
                    | ErrorCode::NotCoordinator
                    | ErrorCode::CoordinatorNotAvailable
            ),
            Error::Call { .. } | Error::Timeout { .. } | Error::UnknownBroker(_) => true,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_code_keeps_its_number() {
        let error = Error::refused(9999, None, "creating topic a");
        assert_eq!(
            error.to_string(),
            "creating topic a: UNKNOWN_SERVER_ERROR (error code 9999)"
        );
    }

    #[test]
    fn what_the_node_said_is_shown_behind_the_code() {
        let error = Error::refused(36, Some("Topic 'a' already exists."), "creating topic a");
        assert_eq!(
            error.to_string(),
            "creating topic a: TOPIC_ALREADY_EXISTS (Topic 'a' already exists.)"
        );
        assert_eq!(error.code(), ErrorCode::TopicAlreadyExists);
        assert!(!error.is_retriable());
    }

    #[test]
    fn a_refusal_to_connect_leaves_nothing_open() {
        let source = CallError::Connect {
            address: "a:1".into(),
            source: std::io::ErrorKind::ConnectionRefused.into(),
        };
        let error = Error::Call {
            address: "a:1".into(),
            source,
        };
        assert!(error.is_retriable() && !error.leaves_outcome_open());
        let source = CallError::Disconnected { address: "a:1".into() };
        let error = Error::Call {
            address: "a:1".into(),
            source,
        };
        assert!(error.is_retriable() && error.leaves_outcome_open());
    }
}
