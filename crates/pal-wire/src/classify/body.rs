//! The body of an error, in the shapes that providers, gateways and local servers give it.

use std::borrow::Cow;

use pal_model::{Field, array_items, fields, member, member_string, unescape};

/// What an error says about itself.
#[derive(Debug, Default)]
pub(super) struct ErrorBody<'a> {
    /// What happened, for people.
    pub(super) message: Option<Cow<'a, str>>,
    /// The body, where it is no object of JSON.
    pub(super) plain: Option<&'a str>,
    /// The class of the error.
    pub(super) kind: Option<Cow<'a, str>>,
    /// The stable code, where there is one.
    pub(super) code: Option<Cow<'a, str>>,
    /// A number where others have a code: a status of HTTP.
    pub(super) status: Option<u16>,
    /// The provider's id of the request.
    pub(super) request_id: Option<Cow<'a, str>>,
    /// Tokens of the prompt, where a field says so.
    pub(super) have: Option<u64>,
    /// Tokens that fit, where a field says so.
    pub(super) limit: Option<u64>,
}

impl<'a> ErrorBody<'a> {
    /// Reads what can be read; a body that is no object of JSON is plain text.
    pub(super) fn read(body: &'a str) -> ErrorBody<'a> {
        // Vertex wraps the error into a list.
        let items = if body.trim_start().starts_with('[') { array_items(body).ok() } else { None };
        let body = items.and_then(|items| items.first().copied()).unwrap_or(body);
        let Ok(outer) = fields(body) else { return ErrorBody { plain: Some(body), ..ErrorBody::default() } };
        let mut error = ErrorBody::default();
        match member(&outer, "error").map(|inner| (inner, fields(inner))) {
            Some((_, Ok(inner))) => error.take(&inner),
            // Ollama's error is a sentence.
            Some((inner, Err(_))) if inner.starts_with('"') => error.message = unescape(inner),
            _ => error.take(&outer),
        }
        error.request_id = error.request_id.or_else(|| member_string(&outer, "request_id"));
        error
    }

    fn take(&mut self, error: &[Field<'a>]) {
        let first = |names: &[&str]| {
            names.iter().find_map(|name| member_string(error, name)).filter(|text| !text.is_empty())
        };
        self.message = first(&["message", "Message", "detail"]);
        // In a flat error of a stream, `type` only says that it is one.
        self.kind = first(&["type", "__type", "status"]).filter(|kind| kind != "error");
        let details = member(error, "details").and_then(|details| fields(details).ok()).unwrap_or_default();
        self.code = member_string(&details, "error_code").or_else(|| first(&["code"]));
        self.status = number(error, "code").and_then(|code| u16::try_from(code).ok());
        self.request_id = first(&["request_id"]);
        self.have = number(error, "n_prompt_tokens");
        self.limit = number(error, "n_ctx");
    }
}

fn number(known: &[Field<'_>], name: &str) -> Option<u64> {
    member(known, name)?.parse().ok()
}
