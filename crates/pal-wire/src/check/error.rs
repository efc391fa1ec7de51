//! The provider's error: a status, a kind, a sentence, sometimes a stable code; and its JSON.

use std::fmt;

use serde_json::json;

/// The `error.type` of an answer that is not a success.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// 400: the request is malformed or breaks a rule.
    InvalidRequest,
    /// 401: no key, or a wrong one.
    Authentication,
    /// 402: the account cannot pay.
    Billing,
    /// 403: the key may not do this.
    Permission,
    /// 404: no such model, thread or path.
    NotFound,
    /// 409: the resource is in another state.
    Conflict,
    /// 413: the body has too many bytes.
    RequestTooLarge,
    /// 429: too many requests or tokens.
    RateLimit,
    /// 500: the provider failed.
    Api,
    /// 504: the provider took too long.
    Timeout,
    /// 529: the provider is overloaded.
    Overloaded,
}

impl ErrorKind {
    /// The HTTP status that goes with the kind.
    pub const fn status(self) -> u16 {
        match self {
            ErrorKind::InvalidRequest => 400,
            ErrorKind::Authentication => 401,
            ErrorKind::Billing => 402,
            ErrorKind::Permission => 403,
            ErrorKind::NotFound => 404,
            ErrorKind::Conflict => 409,
            ErrorKind::RequestTooLarge => 413,
            ErrorKind::RateLimit => 429,
            ErrorKind::Api => 500,
            ErrorKind::Timeout => 504,
            ErrorKind::Overloaded => 529,
        }
    }

    /// The word in `error.type`.
    pub const fn as_str(self) -> &'static str {
        match self {
            ErrorKind::InvalidRequest => "invalid_request_error",
            ErrorKind::Authentication => "authentication_error",
            ErrorKind::Billing => "billing_error",
            ErrorKind::Permission => "permission_error",
            ErrorKind::NotFound => "not_found_error",
            ErrorKind::Conflict => "conflict_error",
            ErrorKind::RequestTooLarge => "request_too_large",
            ErrorKind::RateLimit => "rate_limit_error",
            ErrorKind::Api => "api_error",
            ErrorKind::Timeout => "timeout_error",
            ErrorKind::Overloaded => "overloaded_error",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// An error as the provider would answer it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{status} {kind}: {message}")]
pub struct ApiError {
    /// The HTTP status.
    pub status: u16,
    /// The `error.type`.
    pub kind: ErrorKind,
    /// What is wrong, with the path of the offending part first where there is one.
    pub message: String,
    /// The `error.details.error_code`, where the provider promises one.
    pub error_code: Option<&'static str>,
}

impl ApiError {
    /// An error of a kind, with the kind's status and no code.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> ApiError {
        ApiError { status: kind.status(), kind, message: message.into(), error_code: None }
    }

    /// The same error with a stable code.
    #[must_use]
    pub fn with_code(self, code: &'static str) -> ApiError {
        ApiError { error_code: Some(code), ..self }
    }

    /// The body of the answer.
    pub fn to_json(&self, request_id: &str) -> String {
        let mut error = json!({"type": self.kind.as_str(), "message": self.message});
        if let Some(code) = self.error_code {
            error["details"] = json!({"error_code": code});
        }
        json!({"type": "error", "error": error, "request_id": request_id}).to_string()
    }
}

/// A 400 with this sentence.
pub(crate) fn invalid(message: impl Into<String>) -> ApiError {
    ApiError::new(ErrorKind::InvalidRequest, message)
}
