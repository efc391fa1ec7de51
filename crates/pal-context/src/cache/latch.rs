//! What is fixed for a session, because changing it would cost the cache (§5.8).

use pal_model::{Decision, DecisionKind, Snapshot, Source, Timestamp};
use pal_view::{CacheLifetime, View};
use smol_str::SmolStr;

use crate::Policy;
use crate::thrifty::cheapest_lifetime;

/// The latch that holds the lifetime of marks.
pub const LIFETIME_LATCH: &str = "cache_lifetime";

/// Whether marks may last for an hour.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Eligibility {
    /// Whether the settings ask for it.
    pub is_wanted: bool,
    /// Whether the account is beyond what it has paid for in advance.
    pub is_in_overage: bool,
}

/// The lifetime of the marks of a source's requests, and the decision that latches it where that is still to be made.
pub fn latched_lifetime(
    state: &Snapshot,
    source: &Source,
    eligibility: Eligibility,
) -> (CacheLifetime, Option<Decision>) {
    if !may_last(source) {
        return (CacheLifetime::Minutes5, None);
    }
    if let Some(latched) = latched(state) {
        return (latched, None);
    }
    let (lifetime, reason) = match eligibility {
        Eligibility { is_wanted: false, .. } => {
            (CacheLifetime::Minutes5, "five minutes, as the settings say")
        }
        Eligibility { is_in_overage: true, .. } => {
            (CacheLifetime::Minutes5, "five minutes, because the account is in overage")
        }
        Eligibility { .. } => (CacheLifetime::Hour1, "an hour, as the settings say"),
    };
    (lifetime, Some(latch(lifetime, reason)))
}

/// The same for a view whose policy may go by price: then that chooses, unless the account is in overage; and it chooses
/// anew behind a pause that has lost the cache, because then a change costs nothing.
pub fn lifetime_of(
    view: &View,
    policy: &Policy,
    eligibility: Eligibility,
    now: Option<Timestamp>,
) -> (CacheLifetime, Option<Decision>) {
    let (state, source) = (view.state(), &Source::main());
    let thrift = policy.thrift.filter(|_| !eligibility.is_in_overage);
    let chosen = |thrift| cheapest_lifetime(state, &view.lens().card, view.tokens_that_stay(), thrift);
    let Some((lifetime, reason)) = thrift.and_then(chosen) else {
        return latched_lifetime(state, source, eligibility);
    };
    match latched(state) {
        Some(latched) if latched == lifetime || !is_lost(view, latched, now) => (latched, None),
        _ => (lifetime, Some(latch(lifetime, &reason))),
    }
}

/// Whether a pause has lost the messages that were marked.
fn is_lost(view: &View, lifetime: CacheLifetime, now: Option<Timestamp>) -> bool {
    let pause = now.zip(view.cache_touched_at()).map(|(now, last)| now.milliseconds() - last.milliseconds());
    pause.is_some_and(|pause| u64::try_from(pause).unwrap_or(0) > lifetime.milliseconds())
}

fn latched(state: &Snapshot) -> Option<CacheLifetime> {
    state.latches.get(LIFETIME_LATCH).and_then(|name| CacheLifetime::named(name))
}

/// The decision that latches a lifetime.
fn latch(lifetime: CacheLifetime, reason: &str) -> Decision {
    let kind =
        DecisionKind::Latch { name: SmolStr::new_static(LIFETIME_LATCH), value: lifetime.name().to_owned() };
    let reason = format!("cache marks last {reason}; fixed until the session is cleared or compacted");
    Decision { kind, reason, cost: Default::default() }
}

/// Whether requests of a source may keep what they mark for an hour: background queries are not asked again.
fn may_last(source: &Source) -> bool {
    source.is_conversation() || source.as_str() == "compact"
}
