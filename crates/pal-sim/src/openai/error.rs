//! Refusals in OpenAI's shape.

use serde_json::json;

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) kind: &'static str,
    pub(crate) message: String,
    /// The parameter that is wrong.
    pub(crate) param: Option<String>,
    pub(crate) code: Option<&'static str>,
}

impl Refusal {
    /// A request that breaks a rule.
    pub(crate) fn invalid(
        code: &'static str,
        param: impl Into<String>,
        message: impl Into<String>,
    ) -> Refusal {
        Refusal {
            status: 400,
            kind: "invalid_request_error",
            message: message.into(),
            param: Some(param.into()),
            code: Some(code),
        }
    }

    /// A parameter that is not there.
    pub(crate) fn missing(param: &str) -> Refusal {
        Refusal::invalid(
            "missing_required_parameter",
            param,
            format!("Missing required parameter: '{param}'."),
        )
    }

    /// A parameter of another type.
    pub(crate) fn mistyped(param: &str, expected: &str) -> Refusal {
        Refusal::invalid("invalid_type", param, format!("Invalid type for '{param}': expected {expected}."))
    }

    /// A parameter with a value that is none of those allowed.
    pub(crate) fn not_among(param: &str, value: &str, allowed: &[&str]) -> Refusal {
        let allowed: Vec<String> = allowed.iter().map(|name| format!("'{name}'")).collect();
        let message = format!("Invalid value: '{value}'. Supported values are: {}.", allowed.join(", "));
        Refusal::invalid("invalid_value", param, message)
    }

    /// A parameter that this model does not take.
    pub(crate) fn unsupported(param: &str) -> Refusal {
        let message = format!("Unsupported parameter: '{param}' is not supported with this model.");
        Refusal::invalid("unsupported_parameter", param, message)
    }

    /// A thing that is not there.
    pub(crate) fn not_found(code: Option<&'static str>, param: &str, message: impl Into<String>) -> Refusal {
        Refusal { status: 404, code, ..Refusal::invalid("", param, message) }
    }

    /// The body of the reply.
    pub(crate) fn to_json(&self) -> String {
        let Refusal { kind, message, param, code, .. } = self;
        json!({"error": {"message": message, "type": kind, "param": param, "code": code}}).to_string()
    }
}
