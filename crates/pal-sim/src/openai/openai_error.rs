//! Errors in OpenAI's format.

use serde_json::json;

/// An error reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OpenAiError {
    pub(crate) status: u16,
    pub(crate) kind: &'static str,
    pub(crate) message: String,
    /// Invalid parameter.
    pub(crate) param: Option<String>,
    pub(crate) code: Option<&'static str>,
}

impl OpenAiError {
    /// Invalid request (400).
    pub(crate) fn invalid(
        code: &'static str,
        param: impl Into<String>,
        message: impl Into<String>,
    ) -> OpenAiError {
        OpenAiError {
            status: 400,
            kind: "invalid_request_error",
            message: message.into(),
            param: Some(param.into()),
            code: Some(code),
        }
    }

    /// Missing parameter.
    pub(crate) fn missing(param: &str) -> OpenAiError {
        OpenAiError::invalid(
            "missing_required_parameter",
            param,
            format!("Missing required parameter: '{param}'."),
        )
    }

    /// Parameter of the wrong type.
    pub(crate) fn mistyped(param: &str, expected: &str) -> OpenAiError {
        OpenAiError::invalid(
            "invalid_type",
            param,
            format!("Invalid type for '{param}': expected {expected}."),
        )
    }

    /// Parameter value outside the allowed set.
    pub(crate) fn invalid_value(param: &str, value: &str, allowed: &[&str]) -> OpenAiError {
        let allowed: Vec<String> = allowed.iter().map(|name| format!("'{name}'")).collect();
        let message = format!("Invalid value: '{value}'. Supported values are: {}.", allowed.join(", "));
        OpenAiError::invalid("invalid_value", param, message)
    }

    /// Parameter unsupported by the model.
    pub(crate) fn unsupported(param: &str) -> OpenAiError {
        let message = format!("Unsupported parameter: '{param}' is not supported with this model.");
        OpenAiError::invalid("unsupported_parameter", param, message)
    }

    /// Object not found (404).
    pub(crate) fn not_found(
        code: Option<&'static str>,
        param: &str,
        message: impl Into<String>,
    ) -> OpenAiError {
        OpenAiError { status: 404, code, ..OpenAiError::invalid("", param, message) }
    }

    /// JSON body of the reply.
    pub(crate) fn to_json(&self) -> String {
        let OpenAiError { kind, message, param, code, .. } = self;
        json!({"error": {"message": message, "type": kind, "param": param, "code": code}}).to_string()
    }
}
