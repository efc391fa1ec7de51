//! Why there is no answer, in one vocabulary for every provider.

use std::time::Duration;

/// A request that was not answered, or not to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// What a caller may branch on.
    pub kind: FailureKind,
    /// The provider's words, or ours where it had none. Never holds a key.
    pub message: String,
    /// The HTTP status, where there was one.
    pub status: Option<u16>,
    /// The provider's stable code, where it gave one.
    pub code: Option<String>,
    /// The provider's id of the request, to be quoted to its support.
    pub request_id: Option<String>,
    /// How long the provider asks to wait.
    pub retry_after: Option<Duration>,
    /// Whether the provider itself says that another attempt is worth it.
    pub should_retry: Option<bool>,
}

impl Failure {
    /// A failure that is known by its kind and a sentence alone.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Failure {
        Failure {
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

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The prompt does not fit into the window.
    TooLong {
        /// Tokens of the prompt, where the provider says so.
        have: Option<u64>,
        /// Tokens that fit, where the provider says so.
        limit: Option<u64>,
    },
    /// The body has too many bytes.
    TooLarge,
    /// The request breaks a rule.
    Invalid,
    /// No key, or a wrong one.
    Authentication,
    /// The account cannot pay, or has reached its own limit.
    Billing,
    /// The key may not do this.
    Permission,
    /// No such model or path.
    NotFound,
    /// Something else is going on with the same resource.
    Conflict,
    /// Too many requests or tokens in a short time.
    RateLimited,
    /// The provider has too much to do.
    Overloaded,
    /// The provider failed.
    Server,
    /// The provider gave up waiting.
    Timeout,
    /// No connection, or it broke before the answer began.
    Connection,
    /// The stream ended before the answer was whole.
    Cut,
    /// The stream fell silent for too long.
    Silent,
    /// What came is not what the dialect says.
    Malformed,
    /// The answer is larger than it may be.
    AnswerTooLarge,
    /// The answer takes longer than it may.
    Deadline,
}

impl FailureKind {
    /// Its name, for counting.
    pub fn name(self) -> &'static str {
        match self {
            FailureKind::TooLong { .. } => "too_long",
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
