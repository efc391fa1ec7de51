//! Values latched for a session, because changing them would break the cache (§5.8).

use pal_model::{Decision, DecisionKind, RequestSource, SessionSnapshot, Timestamp};
use pal_view::{CacheTtl, View};
use smol_str::SmolStr;

use crate::cache_ttl::{TTL_LATCH, latched_cache_ttl};
use crate::context_policy::ContextPolicy;
use crate::cost_aware::cheapest_ttl;

/// What the user wants for the TTL of cache breakpoints.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TtlPreference {
    /// TTL of the settings; `None` leaves the choice to the policy.
    pub fixed: Option<CacheTtl>,
    /// The account has used up its prepaid quota.
    pub is_in_overage: bool,
}

/// TTL of the breakpoints in a source's requests, and the decision that latches it if it is not latched yet.
pub fn latched_ttl(
    state: &SessionSnapshot,
    source: &RequestSource,
    preference: TtlPreference,
) -> (CacheTtl, Option<Decision>) {
    if !allows_hour_ttl(source) {
        return (CacheTtl::Minutes5, None);
    }
    if let Some(latched) = latched_cache_ttl(state) {
        return (latched, None);
    }
    let (ttl, reason) = match (preference.fixed, preference.is_in_overage) {
        (None, _) => (CacheTtl::Minutes5, "five minutes, the default"),
        (Some(CacheTtl::Minutes5), _) => (CacheTtl::Minutes5, "five minutes, as the settings say"),
        (Some(_), true) => (CacheTtl::Minutes5, "five minutes, because the account is in overage"),
        (Some(ttl), false) => (ttl, "an hour, as the settings say"),
    };
    (ttl, Some(latch(ttl, reason)))
}

/// Like [`latched_ttl`] for a view: a cost-aware policy chooses the TTL by price, unless the settings fix it or
/// the account is in overage, and chooses again after a pause that expired the cache, because then a change costs nothing.
pub fn choose_ttl(
    view: &View,
    policy: &ContextPolicy,
    preference: TtlPreference,
    now: Option<Timestamp>,
) -> (CacheTtl, Option<Decision>) {
    let (state, source) = (view.state(), &RequestSource::main());
    let settings = policy.cost_aware.filter(|_| preference.fixed.is_none() && !preference.is_in_overage);
    let chosen = |settings| {
        cheapest_ttl(state, &view.lens().card, view.fixed_tokens(), view.size().tokens as f64, now, settings)
    };
    let Some((ttl, reason)) = settings.and_then(chosen) else {
        return latched_ttl(state, source, preference);
    };
    match latched_cache_ttl(state) {
        Some(latched) if latched == ttl || !is_lost(view, latched, now) => (latched, None),
        _ => (ttl, Some(latch(ttl, &reason))),
    }
}

/// Returns true if a pause has expired the cached messages.
fn is_lost(view: &View, ttl: CacheTtl, now: Option<Timestamp>) -> bool {
    let pause = now.zip(view.cache_touched_at()).map(|(now, last)| now.milliseconds() - last.milliseconds());
    pause.is_some_and(|pause| u64::try_from(pause).unwrap_or(0) > ttl.milliseconds())
}

/// Builds the decision that latches a TTL.
fn latch(ttl: CacheTtl, reason: &str) -> Decision {
    let kind = DecisionKind::Latch { name: SmolStr::new_static(TTL_LATCH), value: ttl.name().to_owned() };
    let reason = format!("cache breakpoints last {reason}; fixed until the session is cleared or compacted");
    Decision { kind, reason, cost: Default::default() }
}

/// Returns true if a source's requests may use the one-hour TTL: background queries are not repeated.
fn allows_hour_ttl(source: &RequestSource) -> bool {
    source.is_conversation() || source.as_str() == "compact"
}
