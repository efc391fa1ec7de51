//! The newest answered request of the conversation, which the next one is compared with.

use pal_context::cache::{self, CacheBaseline, SentRequest};
use pal_model::{DecisionKind, EntryBody, EntryId, LogEntry, ModelCard, RequestRecord, ResponseId, Usage};
use pal_view::CacheTtl;

/// The newest answered request of the conversation.
#[derive(Clone, Debug)]
pub(crate) struct WatchedRequest {
    pub(crate) baseline: CacheBaseline,
    /// Log entry of the request.
    pub(crate) entry: EntryId,
    /// Response id.
    pub(crate) response: ResponseId,
    /// Tokens that the provider cleared from it.
    pub(crate) cleared_tokens: u64,
    /// The request; none after a resume, where it is rendered again on demand.
    pub(crate) asked: Option<SentRequest>,
}

impl WatchedRequest {
    /// Finds it in the log of a resumed session.
    pub(crate) fn of(branch: &[LogEntry], card: &ModelCard) -> Option<WatchedRequest> {
        let (answered, response) =
            branch.iter().enumerate().rev().find_map(|(at, entry)| match &entry.body {
                EntryBody::Response(got) if got.source.is_conversation() && got.usage.has_prompt() => {
                    Some((at, got))
                }
                _ => None,
            })?;
        let (entry, request) = branch[..answered].iter().rev().find_map(|entry| match &entry.body {
            EntryBody::Request(request) if request.source.is_conversation() => Some((entry, request)),
            _ => None,
        })?;
        Some(WatchedRequest {
            baseline: CacheBaseline {
                started: entry.at,
                ttl_ms: cache::cache_ttl_ms(card, lifetime_of(request, &response.usage)),
                read: response.usage.cache_read_input_tokens,
            },
            entry: entry.id,
            response: response.response.clone(),
            cleared_tokens: cleared_tokens(branch),
            asked: None,
        })
    }

    /// Response id.
    pub(crate) fn response(&self) -> &ResponseId {
        &self.response
    }
}

/// Tokens that the provider cleared from the newest request, according to the log.
fn cleared_tokens(branch: &[LogEntry]) -> u64 {
    let cleared = branch.iter().rev().find_map(|entry| match entry.decision() {
        Some(DecisionKind::ProviderClear { cleared_tokens }) => Some(*cleared_tokens),
        _ => None,
    });
    cleared.unwrap_or(0)
}

/// Cache TTL of a request: as recorded, or as the provider counted.
fn lifetime_of(request: &RequestRecord, usage: &Usage) -> CacheTtl {
    let counted = usage.cache_creation.is_some_and(|written| written.ephemeral_1h_input_tokens > 0);
    let said = request.cache_ttl.as_deref().and_then(CacheTtl::from_name);
    said.unwrap_or(if counted { CacheTtl::Hour1 } else { CacheTtl::Minutes5 })
}
