//! What goes wrong, as RFC 9457 problem documents: the one place where errors become HTTP.
//!
//! A handler's problem leaves it as a response without a body; [`crate::guard::finish`] writes the document, because only
//! there the request's id is known. Answers of the framework (no route, wrong method, …) become problems there, too.

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use model::ErrorCode;
use plugin::ModuleError;
use plugin::running::DeploymentError;
use serde::Serialize;
use utoipa::ToSchema;

use crate::coders::{ItemError, Unusable};

pub(crate) const PROBLEM_JSON: &str = "application/problem+json";
/// After how many seconds it is worth trying again.
const RETRY_AFTER_SECONDS: HeaderValue = HeaderValue::from_static("1");

/// What went wrong with a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Problem(Box<Document>);

/// What went wrong with a request (RFC 9457).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
#[schema(as = Problem)]
pub(crate) struct Document {
    /// `about:blank`: the kind of problem is told by `code`.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The status in words.
    title: &'static str,
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// What happened to this request.
    detail: String,
    /// A name that programs can rely on, as in `unknown_topic_or_partition`.
    #[schema(value_type = String)]
    code: Code,
    /// The error of the Kafka protocol behind it, as in `UNKNOWN_TOPIC_OR_PARTITION`.
    #[serde(skip_serializing_if = "Option::is_none")]
    kafka_error: Option<&'static str>,
    /// Whether the same request may do better in a moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    retryable: Option<bool>,
    /// The field of the request that is meant, as in `window.size_ms`.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    /// The request, as the node's log and the header `x-request-id` name it.
    request_id: String,
    /// Where a partition's log begins, if the request asked for what lies outside it.
    #[serde(skip_serializing_if = "Option::is_none")]
    log_start: Option<i64>,
    /// Where it ends: the offset of the next record.
    #[serde(skip_serializing_if = "Option::is_none")]
    log_end: Option<i64>,
    /// What went wrong with each record, by its place in the request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<PlacedError>,
}

/// What went wrong with one record of a request.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub(crate) struct PlacedError {
    /// The record's place in the request, from 0.
    index: usize,
    #[serde(flatten)]
    error: RecordProblem,
}

/// Why a record is not written, or not known to be.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub(crate) struct RecordProblem {
    #[schema(value_type = String)]
    pub(crate) code: Code,
    pub(crate) detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kafka_error: Option<&'static str>,
    pub(crate) retryable: bool,
    /// Whether the record may be in the log all the same.
    pub(crate) outcome_open: bool,
    #[serde(skip)]
    pub(crate) status: StatusCode,
}

/// A stable name: one of this door's own, or Kafka's in lower case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Code {
    Own(&'static str),
    Kafka(ErrorCode),
}

impl Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Code::Own(name) => serializer.serialize_str(name),
            Code::Kafka(code) => serializer.serialize_str(&code.name().to_ascii_lowercase()),
        }
    }
}

impl Problem {
    pub(crate) fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Problem(Box::new(Document {
            kind: "about:blank",
            title: status.canonical_reason().unwrap_or("Error"),
            status: status.as_u16(),
            detail: detail.into(),
            code: Code::Own(code),
            kafka_error: None,
            retryable: None,
            field: None,
            request_id: String::new(),
            log_start: None,
            log_end: None,
            errors: Vec::new(),
        }))
    }

    /// A parameter or a field that cannot be meant.
    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        Problem::new(StatusCode::BAD_REQUEST, "invalid_request", detail)
    }

    /// A field of the body that cannot be meant.
    pub(crate) fn field(name: &str, reason: impl AsRef<str>) -> Self {
        let detail = format!("`{name}`: {}", reason.as_ref());
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_field", detail).of_field(name)
    }

    pub(crate) fn of_field(mut self, name: &str) -> Self {
        self.0.field = Some(name.to_owned());
        self
    }

    /// None of the records of a request is written: the first one's error speaks for it.
    pub(crate) fn none_written(errors: Vec<(usize, RecordProblem)>) -> Self {
        let Some((_, first)) = errors.first() else {
            return Problem::invalid("there are no records in the request");
        };
        let mut problem = Problem::new(first.status, "", first.detail.clone());
        problem.0.code = first.code;
        problem.0.kafka_error = first.kafka_error;
        problem.0.retryable = Some(first.retryable);
        problem.0.errors = errors
            .into_iter()
            .map(|(index, error)| PlacedError { index, error })
            .collect();
        problem
    }

    pub(crate) fn retryable(mut self) -> Self {
        self.0.retryable = Some(true);
        self
    }

    pub(crate) fn with_request_id(mut self, id: &str) -> Self {
        id.clone_into(&mut self.0.request_id);
        self
    }

    pub(crate) fn text(&self) -> String {
        serde_json::to_string(&self.0).expect("a problem is plain data")
    }

    /// What the framework's own answers say.
    pub(crate) fn of_status(status: StatusCode, detail: String) -> Self {
        let code = match status {
            StatusCode::NOT_FOUND => "route_not_found",
            StatusCode::METHOD_NOT_ALLOWED => "method_not_allowed",
            StatusCode::PAYLOAD_TOO_LARGE => "body_too_large",
            StatusCode::UNSUPPORTED_MEDIA_TYPE => "unsupported_media_type",
            StatusCode::REQUEST_TIMEOUT => "request_timeout",
            status if status.is_server_error() => "internal_error",
            _ => "invalid_request",
        };
        let said = match status {
            StatusCode::NOT_FOUND => "nothing is served at this path",
            StatusCode::METHOD_NOT_ALLOWED => {
                "this path does not take the method; the header `allow` names those it takes"
            }
            _ => "the request was refused",
        };
        let detail = if detail.is_empty() { said.to_owned() } else { detail };
        Problem::new(status, code, detail)
    }

    /// What goes to the log of a problem that is not the client's fault.
    pub(crate) fn detail(&self) -> &str {
        &self.0.detail
    }

    /// The whole document as a response; `request_id` must be set.
    pub(crate) fn document(&self) -> Response {
        let status = StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, self.text()).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        if status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(RETRY_AFTER, RETRY_AFTER_SECONDS);
        }
        response
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl From<client::Error> for Problem {
    fn from(error: client::Error) -> Self {
        let code = error.code();
        let status = match &error {
            client::Error::OutOfRange { offset, log_start, .. } if offset < log_start => StatusCode::GONE,
            client::Error::Unsupported(_) => StatusCode::NOT_IMPLEMENTED,
            client::Error::MalformedAnswer { .. } => StatusCode::BAD_GATEWAY,
            _ => status_of(code),
        };
        let mut problem = Problem::new(status, "", explained(&error));
        problem.0.code = Code::Kafka(code);
        problem.0.kafka_error = Some(code.name());
        problem.0.retryable = Some(may_pass(&error));
        if let client::Error::OutOfRange { log_start, log_end, .. } = &error {
            problem.0.log_start = Some(log_start.get());
            problem.0.log_end = Some(log_end.get());
        }
        problem
    }
}

/// Kafka calls an unknown topic retriable, for it may only be new; who asks this door for one has mistyped it.
fn may_pass(error: &client::Error) -> bool {
    let is_answer = matches!(
        error.code(),
        ErrorCode::UnknownTopicOrPartition | ErrorCode::UnknownTopicId
    );
    error.is_retriable() && !is_answer
}

/// The error and what is behind it.
fn explained(error: &client::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

impl From<client::RecordError> for RecordProblem {
    fn from(error: client::RecordError) -> Self {
        RecordProblem {
            code: Code::Kafka(error.code),
            detail: error.to_string(),
            kafka_error: Some(error.code.name()),
            retryable: error.code.is_retriable() && error.code != ErrorCode::UnknownTopicOrPartition,
            outcome_open: error.outcome_open,
            status: status_of(error.code),
        }
    }
}

impl RecordProblem {
    /// A part of a record that a plugin did not serve.
    pub(crate) fn unserved(what: &str, error: &ItemError) -> Self {
        let code = match error {
            ItemError::Refused(_) => "refused_by_plugin",
            ItemError::Trapped(_) | ItemError::NotTried => "plugin_trapped",
        };
        RecordProblem::refused(code, format!("{what}: {error}"))
    }

    /// A record that cannot be written as it stands in the request.
    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        RecordProblem::refused("invalid_record", detail)
    }

    /// A record that was not tried.
    pub(crate) fn refused(code: &'static str, detail: impl Into<String>) -> Self {
        RecordProblem {
            code: Code::Own(code),
            detail: detail.into(),
            kafka_error: None,
            retryable: false,
            outcome_open: false,
            status: StatusCode::UNPROCESSABLE_ENTITY,
        }
    }
}

impl From<ModuleError> for Problem {
    fn from(error: ModuleError) -> Self {
        let (status, code) = match &error {
            ModuleError::TooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "module_too_large"),
            ModuleError::NotWasm => (StatusCode::UNPROCESSABLE_ENTITY, "not_wasm"),
            ModuleError::CoreModule => (StatusCode::UNPROCESSABLE_ENTITY, "core_module"),
            ModuleError::Compile(_) => (StatusCode::UNPROCESSABLE_ENTITY, "not_compiled"),
            ModuleError::Wasi(_) => (StatusCode::UNPROCESSABLE_ENTITY, "wasi_import"),
            ModuleError::Import(_) => (StatusCode::UNPROCESSABLE_ENTITY, "unknown_import"),
            ModuleError::MissingExport(_) => (StatusCode::UNPROCESSABLE_ENTITY, "missing_export"),
            ModuleError::Export(_) => (StatusCode::UNPROCESSABLE_ENTITY, "unknown_export"),
            ModuleError::Ambiguous(..) => (StatusCode::UNPROCESSABLE_ENTITY, "ambiguous_exports"),
            ModuleError::Interface(_) => (StatusCode::UNPROCESSABLE_ENTITY, "wrong_interface"),
            ModuleError::Describe(_) => (StatusCode::UNPROCESSABLE_ENTITY, "not_described"),
            ModuleError::Kind { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "wrong_world"),
            ModuleError::Start(_) => (StatusCode::UNPROCESSABLE_ENTITY, "not_started"),
        };
        Problem::new(status, code, error.to_string())
    }
}

impl From<DeploymentError> for Problem {
    fn from(error: DeploymentError) -> Self {
        match error {
            DeploymentError::UnknownModule(_) => {
                Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "unknown_module", error.to_string())
            }
            DeploymentError::Module(error) => error.into(),
            DeploymentError::Field { field, reason } => Problem::field(field, reason),
            DeploymentError::OrphansState(reason) => {
                let detail = format!(
                    "{reason}; delete the processor, and its state with it, before it is deployed like this, or deploy it \
                     under another name"
                );
                Problem::new(StatusCode::CONFLICT, "orphans_state", detail)
            }
        }
    }
}

impl From<Unusable> for Problem {
    fn from(error: Unusable) -> Self {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "plugin_unavailable", error.to_string()).retryable()
    }
}

impl From<QueryRejection> for Problem {
    fn from(rejection: QueryRejection) -> Self {
        Problem::invalid(format!("the query cannot be read: {}", rejection.body_text()))
    }
}

impl From<PathRejection> for Problem {
    fn from(rejection: PathRejection) -> Self {
        Problem::invalid(format!("the path cannot be read: {}", rejection.body_text()))
    }
}

/// The HTTP status that says what a Kafka error says.
fn status_of(code: ErrorCode) -> StatusCode {
    use ErrorCode as E;
    match code {
        E::UnknownTopicOrPartition
        | E::UnknownTopicId
        | E::GroupIdNotFound
        | E::UnknownMemberId
        | E::ResourceNotFound
        | E::TransactionalIdNotFound => StatusCode::NOT_FOUND,
        E::TopicAlreadyExists
        | E::DuplicateResource
        | E::NonEmptyGroup
        | E::GroupSubscribedToTopic
        | E::ReassignmentInProgress
        | E::RebalanceInProgress
        | E::ConcurrentTransactions
        | E::InvalidProducerEpoch
        | E::ProducerFenced => StatusCode::CONFLICT,
        E::InvalidTopicException
        | E::InvalidPartitions
        | E::InvalidReplicationFactor
        | E::InvalidReplicaAssignment
        | E::InvalidConfig
        | E::InvalidRecord
        | E::InvalidTimestamp
        | E::PolicyViolation
        | E::UnsupportedCompressionType
        | E::InvalidGroupId => StatusCode::UNPROCESSABLE_ENTITY,
        E::InvalidRequest | E::InvalidFetchSize | E::InvalidRequiredAcks => StatusCode::BAD_REQUEST,
        E::OffsetOutOfRange | E::PositionOutOfRange => StatusCode::RANGE_NOT_SATISFIABLE,
        E::MessageTooLarge | E::RecordListTooLarge | E::OffsetMetadataTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        E::TopicAuthorizationFailed
        | E::GroupAuthorizationFailed
        | E::ClusterAuthorizationFailed
        | E::TransactionalIdAuthorizationFailed
        | E::TopicDeletionDisabled
        | E::SecurityDisabled => StatusCode::FORBIDDEN,
        E::SaslAuthenticationFailed => StatusCode::UNAUTHORIZED,
        E::ThrottlingQuotaExceeded => StatusCode::TOO_MANY_REQUESTS,
        E::RequestTimedOut => StatusCode::GATEWAY_TIMEOUT,
        E::UnsupportedVersion | E::UnsupportedForMessageFormat => StatusCode::NOT_IMPLEMENTED,
        E::BrokerNotAvailable | E::BrokerIdNotRegistered => StatusCode::SERVICE_UNAVAILABLE,
        code if code.is_retriable() && code != E::CorruptMessage => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kafkas_errors_become_the_statuses_that_say_the_same() {
        let cases = [
            (ErrorCode::UnknownTopicOrPartition, 404),
            (ErrorCode::TopicAlreadyExists, 409),
            (ErrorCode::InvalidReplicationFactor, 422),
            (ErrorCode::MessageTooLarge, 413),
            (ErrorCode::NotEnoughReplicas, 503),
            (ErrorCode::RequestTimedOut, 504),
            (ErrorCode::OffsetOutOfRange, 416),
            (ErrorCode::TopicAuthorizationFailed, 403),
            (ErrorCode::ThrottlingQuotaExceeded, 429),
            (ErrorCode::CorruptMessage, 500),
            (ErrorCode::LeaderNotAvailable, 503),
        ];
        for (code, status) in cases {
            assert_eq!(status_of(code).as_u16(), status, "{code}");
        }
    }

    #[test]
    fn below_the_log_is_gone_and_past_it_is_out_of_range() {
        let at = |offset| client::Error::OutOfRange {
            partition: model::TopicPartition {
                topic: model::TopicName::new("a").unwrap(),
                partition: model::PartitionIndex::new(0),
            },
            offset: model::Offset::new(offset),
            log_start: model::Offset::new(5),
            log_end: model::Offset::new(9),
        };
        let below = Problem::from(at(4));
        assert_eq!(
            (below.0.status, below.0.log_start, below.0.log_end),
            (410, Some(5), Some(9))
        );
        assert_eq!(Problem::from(at(10)).0.status, 416);
    }

    #[test]
    fn a_problem_is_written_with_the_members_of_the_rfc() {
        let problem = Problem::invalid("limit is 0").with_request_id("7");
        let expected = concat!(
            r#"{"type":"about:blank","title":"Bad Request","status":400,"detail":"limit is 0","#,
            r#""code":"invalid_request","request_id":"7"}"#
        );
        assert_eq!(problem.text(), expected);
    }
}
