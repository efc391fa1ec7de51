//! Microcompact (§3.3): old tool results leave the view, or the provider's cache.
//!
//! Which way depends on the cache and the card: when the cache is cold, locally; else by edits of the cache, by the
//! provider, or, where it can do neither, locally under pressure. Only what was sent is touched.

mod old;

use crate::act::Drafts;
use crate::words::{counted, grouped};
use crate::{Act, Layer, Situation, What};
use old::Old;

/// Clears old tool results.
pub(crate) struct Microcompact;

/// Tokens of clearable results from which on pressure clears, on a full window.
const CLEARABLE_LEAST: u64 = 40_000;
/// Tokens that a clear under pressure must free, on a full window.
const FREED_LEAST: u64 = 20_000;

impl Layer for Microcompact {
    fn name(&self) -> &'static str {
        "microcompact"
    }

    fn act(&self, situation: &Situation<'_>) -> Act {
        if situation.policy.cold_clear && situation.is_cold() {
            let act = cold(situation);
            if !matches!(act.what, What::Nothing) {
                return act;
            }
        }
        if situation.policy.pressure {
            return pressure(situation);
        }
        Act::nothing("switched off")
    }
}

/// a. The cache is cold, so that a change costs nothing.
fn cold(situation: &Situation<'_>) -> Act {
    if !situation.may_rewrite() {
        return Act::nothing("the cache is cold, but thinking is bound to what stands before it");
    }
    let old = Old::of(situation, situation.policy.cold_keep.max(1));
    if old.ids.is_empty() {
        return Act::nothing("the cache is cold, and there is no old result to clear");
    }
    let minutes = situation.idle().unwrap_or_default().as_secs() / 60;
    let reason = format!(
        "the cache is cold after {minutes} minutes: {} cleared",
        counted(old.ids.len(), "old result")
    );
    let mut drafts = Drafts::about(situation.view);
    old.clear(situation, &reason, &mut drafts);
    Act { what: What::Decide(drafts.finish()), reason }
}

/// d. The context fills up, and the provider cannot clear.
fn pressure(situation: &Situation<'_>) -> Act {
    let warning = situation.limits.warning;
    if situation.size < warning {
        return Act::nothing(format!("{} tokens, acts from {}", grouped(situation.size), grouped(warning)));
    }
    if !situation.may_rewrite() {
        return Act::nothing("under pressure, but thinking is bound to what stands before it");
    }
    let budgets = situation.budgets();
    let old = Old::of(situation, situation.policy.pressure_keep);
    let (clearable, freed) = (old.clearable, old.freed);
    if clearable < budgets.of(CLEARABLE_LEAST) || freed < budgets.of(FREED_LEAST) {
        return Act::nothing(format!(
            "under pressure, but old results have only {} tokens, {} to be freed",
            grouped(clearable),
            grouped(freed)
        ));
    }
    let reason = format!(
        "{} tokens are past the warning at {}: {} cleared",
        grouped(situation.size),
        grouped(warning),
        counted(old.ids.len(), "old result")
    );
    let mut drafts = Drafts::about(situation.view);
    old.clear(situation, &reason, &mut drafts);
    Act { what: What::Decide(drafts.finish()), reason }
}
