//! What is fixed for a session, because changing it would cost the cache (§5.8).

use pal_model::{Decision, DecisionKind, Snapshot, Source};
use pal_view::CacheLifetime;
use smol_str::SmolStr;

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
    if let Some(latched) = state.latches.get(LIFETIME_LATCH).and_then(|name| CacheLifetime::named(name)) {
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
    let kind =
        DecisionKind::Latch { name: SmolStr::new_static(LIFETIME_LATCH), value: lifetime.name().to_owned() };
    let reason = format!("cache marks last {reason}; fixed until the session is cleared or compacted");
    (lifetime, Some(Decision { kind, reason, cost: Default::default() }))
}

/// Whether requests of a source may keep what they mark for an hour: background queries are not asked again.
fn may_last(source: &Source) -> bool {
    source.is_conversation() || source.as_str() == "compact"
}
