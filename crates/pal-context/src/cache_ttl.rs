//! The cache TTL latched in the session's state. Outside of `cache`, because `cost_aware` reads it and `cache` uses `cost_aware`.

use pal_model::SessionSnapshot;
use pal_view::CacheTtl;

/// Name of the latch that holds the cache TTL.
pub const TTL_LATCH: &str = "cache_lifetime";

/// The latched TTL; `None` if no request was sent yet.
pub(crate) fn latched_cache_ttl(state: &SessionSnapshot) -> Option<CacheTtl> {
    state.latches.get(TTL_LATCH).and_then(|name| CacheTtl::from_name(name))
}
