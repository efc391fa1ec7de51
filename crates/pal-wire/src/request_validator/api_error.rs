//! Errors in the provider's form: status, type, message, optional code, and their JSON.

use std::fmt;

use serde_json::json;

/// `error.type` of an error response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ApiErrorKind {
    /// 400: the request is malformed or invalid.
    InvalidRequest,
    /// 401: the API key is missing or wrong.
    Authentication,
    /// 402: the account has no credit.
    Billing,
    /// 403: the API key lacks permission.
    Permission,
    /// 404: the model, thread or path does not exist.
    NotFound,
    /// 409: the resource is in another state.
    Conflict,
    /// 413: the body is too large.
    RequestTooLarge,
    /// 429: too many requests or tokens.
    RateLimit,
    /// 500: the provider had an internal error.
    Api,
    /// 504: the provider timed out.
    Timeout,
    /// 529: the provider is overloaded.
    Overloaded,
}

impl ApiErrorKind {
    /// Returns the HTTP status.
    pub const fn status(self) -> u16 {
        match self {
            ApiErrorKind::InvalidRequest => 400,
            ApiErrorKind::Authentication => 401,
            ApiErrorKind::Billing => 402,
            ApiErrorKind::Permission => 403,
            ApiErrorKind::NotFound => 404,
            ApiErrorKind::Conflict => 409,
            ApiErrorKind::RequestTooLarge => 413,
            ApiErrorKind::RateLimit => 429,
            ApiErrorKind::Api => 500,
            ApiErrorKind::Timeout => 504,
            ApiErrorKind::Overloaded => 529,
        }
    }

    /// Returns the value of `error.type`.
    pub const fn as_str(self) -> &'static str {
        match self {
            ApiErrorKind::InvalidRequest => "invalid_request_error",
            ApiErrorKind::Authentication => "authentication_error",
            ApiErrorKind::Billing => "billing_error",
            ApiErrorKind::Permission => "permission_error",
            ApiErrorKind::NotFound => "not_found_error",
            ApiErrorKind::Conflict => "conflict_error",
            ApiErrorKind::RequestTooLarge => "request_too_large",
            ApiErrorKind::RateLimit => "rate_limit_error",
            ApiErrorKind::Api => "api_error",
            ApiErrorKind::Timeout => "timeout_error",
            ApiErrorKind::Overloaded => "overloaded_error",
        }
    }
}

impl fmt::Display for ApiErrorKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// An error as the provider would return it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{status} {kind}: {message}")]
pub struct ApiError {
    /// HTTP status.
    pub status: u16,
    /// Value of `error.type`.
    pub kind: ApiErrorKind,
    /// Message, beginning with the path of the invalid part, if any.
    pub message: String,
    /// Value of `error.details.error_code`, if the provider documents one.
    pub error_code: Option<&'static str>,
}

impl ApiError {
    /// Creates an error with the kind's status and no code.
    pub fn new(kind: ApiErrorKind, message: impl Into<String>) -> ApiError {
        ApiError { status: kind.status(), kind, message: message.into(), error_code: None }
    }

    /// Adds a stable code.
    #[must_use]
    pub fn with_code(self, code: &'static str) -> ApiError {
        ApiError { error_code: Some(code), ..self }
    }

    /// Returns the body of the error response.
    pub fn to_json(&self, request_id: &str) -> String {
        let mut error = json!({"type": self.kind.as_str(), "message": self.message});
        if let Some(code) = self.error_code {
            error["details"] = json!({"error_code": code});
        }
        json!({"type": "error", "error": error, "request_id": request_id}).to_string()
    }
}

/// Creates a 400 error.
pub(crate) fn invalid(message: impl Into<String>) -> ApiError {
    ApiError::new(ApiErrorKind::InvalidRequest, message)
}
