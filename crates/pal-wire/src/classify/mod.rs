//! Why a request was not answered: any provider's way to say so, in one vocabulary.
//!
//! A stable code counts before the type, the type before the status. Messages are for people, with one exception: every
//! provider says in words of its own, and often nowhere else, that a prompt does not fit (see `overflow`).
//! Nothing here depends on the dialect, because gateways answer in shapes of others.

mod body;
mod headers;
mod kinds;
mod overflow;
mod words;

use std::borrow::Cow;

pub(crate) use words::shown_body;

use self::body::ErrorBody;
use crate::{Failure, FailureKind};

/// Classifies an answer that is not a success. `header` finds the first header of a name given in lower case.
///
/// ```
/// use pal_wire::{FailureKind, classify};
///
/// let body = br#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#;
/// let failure = classify(400, |_| None, body);
/// assert_eq!(failure.kind, FailureKind::TooLong { have: Some(210_000), limit: Some(200_000) });
/// ```
pub fn classify<'h>(status: u16, header: impl Fn(&str) -> Option<&'h str>, body: &[u8]) -> Failure {
    let text = String::from_utf8_lossy(body);
    let error = ErrorBody::read(&text);
    let kind = kinds::kind(Some(status), &error);
    Failure {
        message: message(&error, &text, Some(status)),
        status: Some(status),
        request_id: headers::request_id(&header).or_else(|| error.request_id.as_deref().map(words::short)),
        retry_after: headers::retry_after(&header),
        should_retry: headers::should_retry(&header),
        ..failure(kind, &error)
    }
}

/// The failure that an error inside of a successful answer tells of: the data of an event, or a whole body.
pub(crate) fn failure_in(json: &str) -> Failure {
    let error = ErrorBody::read(json);
    let kind = kinds::kind(None, &error);
    Failure {
        message: message(&error, json, None),
        request_id: error.request_id.as_deref().map(words::short),
        ..failure(kind, &error)
    }
}

fn failure(kind: FailureKind, error: &ErrorBody<'_>) -> Failure {
    let code = error.code.as_deref().or(error.kind.as_deref());
    Failure { code: code.map(words::short), ..Failure::new(kind, String::new()) }
}

/// The provider's words, or what can be said without them.
fn message(error: &ErrorBody<'_>, body: &str, status: Option<u16>) -> String {
    let said = match &error.message {
        Some(message) => words::shown(message),
        None => shown_body(body),
    };
    match (said.as_str(), status) {
        ("", Some(status)) => format!("the provider answered with status {status} and no words"),
        ("", None) => error
            .kind
            .as_ref()
            .map_or(Cow::Borrowed("the provider reported an error"), |kind| {
                Cow::Owned(format!("the provider reported an error of type {}", words::short(kind)))
            })
            .into_owned(),
        _ => said,
    }
}
