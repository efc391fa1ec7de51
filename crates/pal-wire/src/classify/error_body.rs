//! Error bodies in the formats of providers, gateways and local servers.

use std::borrow::Cow;

use pal_model::{JsonField, array_items, member, member_string, object_fields, unescape};

/// Fields of an error body.
#[derive(Debug, Default)]
pub(super) struct ErrorBody<'a> {
    /// Message for people.
    pub(super) message: Option<Cow<'a, str>>,
    /// The body itself, if it is not a JSON object.
    pub(super) plain: Option<&'a str>,
    /// Error type.
    pub(super) kind: Option<Cow<'a, str>>,
    /// Stable error code.
    pub(super) code: Option<Cow<'a, str>>,
    /// HTTP status, if the code is a number.
    pub(super) status: Option<u16>,
    /// Provider's request id.
    pub(super) request_id: Option<Cow<'a, str>>,
    /// Prompt tokens, if a field reports them.
    pub(super) have: Option<u64>,
    /// Maximum prompt tokens, if a field reports them.
    pub(super) limit: Option<u64>,
}

impl<'a> ErrorBody<'a> {
    /// Parses an error body leniently; a body that is not a JSON object is plain text.
    pub(super) fn read(body: &'a str) -> ErrorBody<'a> {
        // Vertex wraps the error in a list.
        let items = if body.trim_start().starts_with('[') { array_items(body).ok() } else { None };
        let body = items.and_then(|items| items.first().copied()).unwrap_or(body);
        let Ok(outer) = object_fields(body) else {
            return ErrorBody { plain: Some(body), ..ErrorBody::default() };
        };
        let mut error = ErrorBody::default();
        match member(&outer, "error").map(|inner| (inner, object_fields(inner))) {
            Some((_, Ok(inner))) => error.take(&inner),
            // Ollama's error is a string.
            Some((inner, Err(_))) if inner.starts_with('"') => error.message = unescape(inner),
            _ => error.take(&outer),
        }
        error.request_id = error.request_id.or_else(|| member_string(&outer, "request_id"));
        error
    }

    fn take(&mut self, error: &[JsonField<'a>]) {
        let first = |names: &[&str]| {
            names.iter().find_map(|name| member_string(error, name)).filter(|text| !text.is_empty())
        };
        self.message = first(&["message", "Message", "detail"]);
        // In a flat error event of a stream, `type` is just `error`.
        self.kind = first(&["type", "__type", "status"]).filter(|kind| kind != "error");
        let details =
            member(error, "details").and_then(|details| object_fields(details).ok()).unwrap_or_default();
        self.code = member_string(&details, "error_code").or_else(|| first(&["code"]));
        self.status = number(error, "code").and_then(|code| u16::try_from(code).ok());
        self.request_id = first(&["request_id"]);
        self.have = number(error, "n_prompt_tokens");
        self.limit = number(error, "n_ctx");
    }
}

fn number(known: &[JsonField<'_>], name: &str) -> Option<u64> {
    member(known, name)?.parse().ok()
}
