//! Failures of requests, in one vocabulary for all providers.

use pal_model::ContextOverflow;
use std::time::Duration;

/// Failure of a request: no response, or an incomplete one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ProviderFailure {
    /// Classification that callers branch on.
    pub kind: FailureKind,
    /// Provider's message, or a generated one. Never contains an API key.
    pub message: String,
    /// HTTP status, if any.
    pub status: Option<u16>,
    /// Provider's stable error code, if any.
    pub code: Option<String>,
    /// Provider's request id, for its support.
    pub request_id: Option<String>,
    /// Wait requested by the provider.
    pub retry_after: Option<Duration>,
    /// Provider's own statement on retrying.
    pub should_retry: Option<bool>,
}

impl ProviderFailure {
    /// Creates a failure without provider details.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> ProviderFailure {
        ProviderFailure {
            kind,
            message: message.into(),
            status: None,
            code: None,
            request_id: None,
            retry_after: None,
            should_retry: None,
        }
    }
}

/// Classification of failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The prompt exceeds the context window.
    TooLong(ContextOverflow),
    /// The request body is too large in bytes.
    TooLarge,
    /// The request is invalid.
    Invalid,
    /// The API key is missing or wrong.
    Authentication,
    /// The account has no credit or has reached its spend limit.
    Billing,
    /// The API key lacks permission.
    Permission,
    /// The model or path does not exist.
    NotFound,
    /// The request conflicts with another on the same resource.
    Conflict,
    /// A rate limit is exceeded.
    RateLimited,
    /// The provider is overloaded.
    Overloaded,
    /// The provider had an internal error.
    Server,
    /// The provider timed out.
    Timeout,
    /// The connection failed before the response started.
    Connection,
    /// The stream ended before the response was complete.
    Cut,
    /// The stream sent nothing for too long.
    Silent,
    /// The response violates the dialect.
    Malformed,
    /// The response exceeds the size limit.
    AnswerTooLarge,
    /// The response exceeds the time limit.
    Deadline,
}

impl FailureKind {
    /// Returns the name used in metrics.
    pub fn name(self) -> &'static str {
        match self {
            FailureKind::TooLong(_) => "too_long",
            FailureKind::TooLarge => "too_large",
            FailureKind::Invalid => "invalid",
            FailureKind::Authentication => "authentication",
            FailureKind::Billing => "billing",
            FailureKind::Permission => "permission",
            FailureKind::NotFound => "not_found",
            FailureKind::Conflict => "conflict",
            FailureKind::RateLimited => "rate_limited",
            FailureKind::Overloaded => "overloaded",
            FailureKind::Server => "server",
            FailureKind::Timeout => "timeout",
            FailureKind::Connection => "connection",
            FailureKind::Cut => "cut",
            FailureKind::Silent => "silent",
            FailureKind::Malformed => "malformed",
            FailureKind::AnswerTooLarge => "answer_too_large",
            FailureKind::Deadline => "deadline",
        }
    }
}
