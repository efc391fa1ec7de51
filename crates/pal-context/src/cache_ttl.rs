//! The cache TTL latched in the session's state. Outside of `cache`, because `cost_aware` reads it and `cache` uses `cost_aware`.

use pal_model::{CacheMode, EntryBody, RequestRecord, SessionSnapshot};
use pal_view::{CacheTtl, View};

/// Name of the latch that holds the cache TTL.
pub const TTL_LATCH: &str = "cache_lifetime";

/// The latched TTL; `None` if no request was sent yet.
pub(crate) fn latched_cache_ttl(state: &SessionSnapshot) -> Option<CacheTtl> {
    state.latches.get(TTL_LATCH).and_then(|name| CacheTtl::from_name(name))
}

/// TTL of the messages that the last request left in the provider's cache; `None` if breakpoints do not decide
/// it, or if those messages are not what the next request sends: another model, or content changed since.
pub(crate) fn cached_messages_ttl(view: &View) -> Option<CacheTtl> {
    conversation_ttl(view).filter(|_| view.size().freed == 0)
}

/// TTL of the last request of the conversation; `None` if breakpoints do not decide it, or if another model was
/// asked.
pub(crate) fn conversation_ttl(view: &View) -> Option<CacheTtl> {
    let card = &view.lens().card;
    let last = last_request(view).filter(|request| request.model == card.name)?;
    let latched = || latched_cache_ttl(view.state());
    let ttl = last.cache_ttl.as_deref().and_then(CacheTtl::from_name).or_else(latched)?;
    (card.caching == CacheMode::Explicit).then_some(ttl)
}

/// Newest request of the conversation.
fn last_request(view: &View) -> Option<&RequestRecord> {
    view.last_request_at()?;
    view.branch().iter().rev().find_map(|entry| match &entry.body {
        EntryBody::Request(request) if request.source.is_conversation() => Some(request),
        _ => None,
    })
}
