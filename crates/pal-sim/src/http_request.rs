//! HTTP level of a request: authentication, version, betas; and plain JSON replies.

use std::time::Duration;

use bytes::Bytes;
use pal_model::{ModelCard, Timestamp};
use pal_wire::{ApiError, ApiErrorKind, ApiVersion, Beta, BetaSet, MessagesEndpoint, RequestRules};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use crate::{HttpReply, HttpRequest, ReplyChunk, ReplyEnding};

/// Maximum request body size in bytes.
pub(crate) const BODY_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Authenticates a request. Returns a hash of the key, which scopes cache entries and thinking.
pub(crate) fn authorize(request: &HttpRequest<'_>, keys: Option<&[String]>) -> Result<u64, ApiError> {
    let bearer = request.header("authorization").and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    });
    let key = request.header("x-api-key").or(bearer).filter(|key| !key.is_empty());
    let fits = match (key, keys) {
        (_, None) => true,
        (Some(key), Some(keys)) => keys.iter().any(|known| known == key),
        (None, Some(_)) => false,
    };
    if fits {
        return Ok(key.map_or(0, |key| xxh3_64(key.as_bytes())));
    }
    let header = if bearer.is_some() { "Invalid bearer token" } else { "invalid x-api-key" };
    Err(ApiError::new(
        ApiErrorKind::Authentication,
        if key.is_some() { header } else { "x-api-key header is required" },
    ))
}

/// Refuses compressed bodies with a specific error instead of a JSON error.
pub(crate) fn check_encoding(request: &HttpRequest<'_>) -> Result<(), ApiError> {
    let encodings = request.headers.iter().filter(|(name, _)| name == "content-encoding");
    let mut encodings = encodings.flat_map(|(_, value)| value.split(',')).map(str::trim);
    let is_plain = |encoding: &str| encoding.is_empty() || encoding.eq_ignore_ascii_case("identity");
    let Some(encoding) = encodings.find(|encoding| !is_plain(encoding)) else { return Ok(()) };
    let message = format!("content-encoding: `{encoding}` is not supported for request bodies");
    let error = ApiError::new(ApiErrorKind::InvalidRequest, message);
    Err(error.with_code("request_body_encoding_unsupported"))
}

/// Headers that a Messages request depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestHeaders {
    version: ApiVersion,
    betas: BetaSet,
    /// Hash of the betas, independent of order.
    pub(crate) betas_hash: u128,
    /// True if the beta API was requested.
    pub(crate) is_beta: bool,
    /// True if an answer may reach the end of the window on models that would otherwise refuse the request.
    pub(crate) may_exceed_window: bool,
}

impl RequestHeaders {
    pub(crate) fn read(request: &HttpRequest<'_>) -> Result<RequestHeaders, ApiError> {
        let version = match request.header("anthropic-version") {
            Some("2023-06-01") => ApiVersion::V2023_06_01,
            Some("2026-10-21") => ApiVersion::V2026_10_21,
            Some(other) => {
                let message = format!("anthropic-version: \"{other}\" is not a valid version");
                return Err(ApiError::new(ApiErrorKind::InvalidRequest, message));
            }
            None => {
                let message = "anthropic-version: header is required";
                return Err(ApiError::new(ApiErrorKind::InvalidRequest, message));
            }
        };
        let named = request.headers.iter().filter(|(name, _)| name == "anthropic-beta");
        let mut names: Vec<&str> = named.flat_map(|(_, value)| value.split(',')).map(str::trim).collect();
        names.retain(|name| !name.is_empty());
        names.sort_unstable();
        names.dedup();
        let betas =
            names.iter().filter_map(|name| Beta::from_header(name)).fold(BetaSet::none(), BetaSet::with);
        Ok(RequestHeaders {
            version,
            betas,
            betas_hash: xxh3_128(names.join(",").as_bytes()),
            is_beta: request.query().split('&').any(|part| part == "beta=true") || !names.is_empty(),
            may_exceed_window: names.contains(&"model-context-window-exceeded-2025-08-26"),
        })
    }

    /// Validation rules for this model. Private betas follow the card, not the header.
    pub(crate) fn rules(&self, card: &ModelCard, endpoint: MessagesEndpoint) -> RequestRules {
        let mut betas = self.betas.without(Beta::CacheEdits).without(Beta::CacheScopes);
        for (beta, can) in
            [(Beta::CacheEdits, card.can.cache_edits), (Beta::CacheScopes, card.can.cache_scopes)]
        {
            if can {
                betas = betas.with(beta);
            }
        }
        RequestRules {
            endpoint,
            version: self.version,
            betas,
            max_body_bytes: BODY_BYTES_MAX,
            ..RequestRules::from(card)
        }
    }
}

/// Reply with one JSON chunk.
pub(crate) fn json_reply(status: u16, body: String) -> HttpReply {
    HttpReply {
        status,
        headers: vec![("content-type", "application/json".to_owned())],
        chunks: vec![ReplyChunk { at: Duration::ZERO, bytes: Bytes::from(body) }],
        ending: ReplyEnding::Whole,
        exchange: None,
    }
}

/// Rate limit headers with nothing used up: the simulator does not limit rates.
pub(crate) fn limit_headers(now: Timestamp) -> impl Iterator<Item = (&'static str, String)> {
    let reset = now.after(Duration::from_secs(60)).to_string();
    let rows = [
        ("anthropic-ratelimit-requests-limit", "4000"),
        ("anthropic-ratelimit-requests-remaining", "3999"),
        ("anthropic-ratelimit-requests-reset", ""),
        ("anthropic-ratelimit-tokens-limit", "4800000"),
        ("anthropic-ratelimit-tokens-remaining", "4800000"),
        ("anthropic-ratelimit-tokens-reset", ""),
        ("anthropic-ratelimit-input-tokens-limit", "4000000"),
        ("anthropic-ratelimit-input-tokens-remaining", "4000000"),
        ("anthropic-ratelimit-input-tokens-reset", ""),
        ("anthropic-ratelimit-output-tokens-limit", "800000"),
        ("anthropic-ratelimit-output-tokens-remaining", "800000"),
        ("anthropic-ratelimit-output-tokens-reset", ""),
    ];
    rows.into_iter()
        .map(move |(name, value)| (name, if value.is_empty() { reset.clone() } else { value.to_owned() }))
}
