//! Classification of provider errors into one vocabulary.
//!
//! A stable code takes precedence over the type, the type over the status. Messages are not interpreted, with one
//! exception: most providers report a prompt that is too long only in the message (see `context_overflow`).
//! Classification is independent of the dialect, because gateways use the formats of other providers.

mod context_overflow;
mod display_text;
mod error_body;
mod failure_kind;
mod retry_headers;

use std::borrow::Cow;

pub(crate) use display_text::display_body;

use self::error_body::ErrorBody;
use crate::{FailureKind, ProviderFailure};

/// Classifies a response with an error status. `header` returns the first header with a lower-case name.
///
/// ```
/// use pal_model::ContextOverflow;
/// use pal_wire::{FailureKind, classify_failure};
///
/// let body = br#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#;
/// let failure = classify_failure(400, |_| None, body);
/// assert_eq!(failure.kind, FailureKind::TooLong(ContextOverflow {
///     prompt: Some(210_000),
///     window: Some(200_000),
///     ..ContextOverflow::UNKNOWN
/// }));
/// ```
pub fn classify_failure<'h>(
    status: u16,
    header: impl Fn(&str) -> Option<&'h str>,
    body: &[u8],
) -> ProviderFailure {
    let text = String::from_utf8_lossy(body);
    let error = ErrorBody::read(&text);
    let kind = failure_kind::classify_error(Some(status), &error);
    ProviderFailure {
        message: message(&error, &text, Some(status)),
        status: Some(status),
        request_id: retry_headers::request_id(&header)
            .or_else(|| error.request_id.as_deref().map(display_text::display_code)),
        retry_after: retry_headers::retry_after(&header),
        should_retry: retry_headers::should_retry(&header),
        ..failure(kind, &error)
    }
}

/// Classifies an error inside a response with a success status: the data of an event, or a whole body.
pub(crate) fn failure_in(json: &str) -> ProviderFailure {
    let error = ErrorBody::read(json);
    let kind = failure_kind::classify_error(None, &error);
    ProviderFailure {
        message: message(&error, json, None),
        request_id: error.request_id.as_deref().map(display_text::display_code),
        ..failure(kind, &error)
    }
}

fn failure(kind: FailureKind, error: &ErrorBody<'_>) -> ProviderFailure {
    let code = error.code.as_deref().or(error.kind.as_deref());
    ProviderFailure {
        code: code.map(display_text::display_code),
        ..ProviderFailure::new(kind, String::new())
    }
}

/// Returns the provider's message, or a generated one.
fn message(error: &ErrorBody<'_>, body: &str, status: Option<u16>) -> String {
    let text = match &error.message {
        Some(message) => display_text::display_message(message),
        None => display_body(body),
    };
    match (text.as_str(), status) {
        ("", Some(status)) => format!("the provider answered with status {status} and no message"),
        ("", None) => error
            .kind
            .as_ref()
            .map_or(Cow::Borrowed("the provider reported an error"), |kind| {
                Cow::Owned(format!(
                    "the provider reported an error of type {}",
                    display_text::display_code(kind)
                ))
            })
            .into_owned(),
        _ => text,
    }
}
