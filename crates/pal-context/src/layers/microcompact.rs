//! Microcompact (§3.3): old tool results leave the view, or the provider's cache.
//!
//! Which way depends on the cache and the card: when the cache is cold, locally; else by edits of the cache, by the
//! provider, or, where it can do neither, locally under pressure. Only what was sent is touched.

mod ask;
mod edit;
mod old;

use pal_model::{BlockType, Body, DecisionKind, EntryId};
use pal_view::Showing;

use crate::act::Drafts;
use crate::thrifty::{Choice, Clearable, Deed, Thrift, choose, worth_clearing};
use crate::words::{counted, grouped};
use crate::{Act, Foreseen, Layer, Situation, What, When};
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
        let (policy, can) = (situation.policy, &situation.view.lens().card.can);
        let is_cold = policy.cold_clear && situation.is_cold();
        let cold = match policy.thrift {
            Some(thrift) => by_price(situation, thrift).filter(|_| policy.cold_clear),
            None => is_cold.then(|| cold(situation)),
        };
        if let Some(cold) = &cold
            && !matches!(cold.what, What::Nothing)
        {
            return cold.clone();
        }
        let provider_clears = can.context_management.iter().any(|edit| edit == ask::CLEAR_USES);
        match cold {
            None if policy.warm_clear && can.cache_edits => edit::edit(situation),
            _ if policy.warm_clear && provider_clears && !can.cache_edits => ask::ask(situation),
            Some(cold) => cold,
            None if policy.pressure => pressure(situation),
            None => Act::nothing("switched off"),
        }
    }

    fn foresee(&self, situation: &Situation<'_>) -> Vec<Foreseen> {
        let (policy, can) = (situation.policy, &situation.view.lens().card.can);
        let mut foreseen = Vec::new();
        if policy.cold_clear {
            let pause = situation.cold_after();
            let then = situation.idle_for(pause);
            let act = match policy.thrift {
                Some(thrift) => {
                    by_price(&then, thrift).unwrap_or_else(|| Act::nothing(chosen(&then, thrift).reason))
                }
                None => cold(&then),
            };
            foreseen.push(Foreseen::of(self.name(), When::Idle(pause), act));
        }
        let provider_clears = can.context_management.iter().any(|edit| edit == ask::CLEAR_USES);
        if policy.warm_clear && can.cache_edits {
            foreseen.push(edit::foresee(self.name(), situation));
        } else if policy.warm_clear && provider_clears {
            foreseen.extend(ask::foresee(self.name(), situation));
        } else if policy.pressure {
            let warning = situation.limits.warning;
            let act = pressure(&situation.grown_to(warning));
            foreseen.push(Foreseen::of(self.name(), When::Tokens(warning), act));
        }
        foreseen
    }
}

/// a. The cache is cold, so that a change costs nothing.
fn cold(situation: &Situation<'_>) -> Act {
    if !situation.may_rewrite() {
        return Act::nothing("the cache is cold, but thinking is bound to what stands before it");
    }
    let old = Old::of(situation, situation.policy.cold_keep.max(1));
    let lost = old::lost(situation);
    if old.ids.is_empty() && lost.is_empty() {
        return Act::nothing("the cache is cold, and there is no old result to clear");
    }
    let minutes = situation.idle().unwrap_or_default().as_secs() / 60;
    let reason = format!(
        "the cache is cold after {minutes} minutes: {} cleared",
        counted(old.ids.len() + lost.len(), "old result")
    );
    let mut drafts = Drafts::about(situation.view);
    old::clear_lost(situation, lost, &reason, &mut drafts);
    old.clear(situation, &reason, &mut drafts);
    drafts.into_act(reason)
}

/// What is worth it is cleared, where clearing is the cheapest that can be done; none if it is not.
fn by_price(situation: &Situation<'_>, thrift: Thrift) -> Option<Act> {
    let choice = chosen(situation, thrift);
    if choice.deed != Deed::Clear {
        return None;
    }
    let old = Old::chosen(situation, situation.policy.cold_keep, &worth_clearing(situation, thrift));
    let lost = if situation.is_cold() { old::lost(situation) } else { Vec::new() };
    let mut drafts = Drafts::about(situation.view);
    old::clear_lost(situation, lost, &choice.reason, &mut drafts);
    old.clear(situation, &choice.reason, &mut drafts);
    Some(drafts.into_act(choice.reason))
}

/// What the price-aware policy would do now.
pub(super) fn chosen(situation: &Situation<'_>, thrift: Thrift) -> Choice {
    choose(situation, thrift, |is_worth| {
        let old = Old::chosen(situation, situation.policy.cold_keep, is_worth);
        Clearable { freed: old.freed as f64, needed: old.needed as f64 }
    })
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
    let memories = old_memories(situation);
    let of_memories = situation.view.estimator().total(memories.iter().map(|(_, tokens)| tokens).sum());
    let (clearable, freed) = (old.clearable + of_memories, old.freed + of_memories);
    if clearable < budgets.of(CLEARABLE_LEAST) || freed < budgets.of(FREED_LEAST) {
        return Act::nothing(format!(
            "under pressure, but old results have only {} tokens, {} to be freed",
            grouped(clearable),
            grouped(freed)
        ));
    }
    let mut reason = format!(
        "{} tokens are past the warning at {}: {} cleared",
        grouped(situation.size),
        grouped(warning),
        counted(old.ids.len(), "old result")
    );
    let mut drafts = Drafts::about(situation.view);
    if !memories.is_empty() {
        reason.push_str(&format!(", {} hidden", counted(memories.len(), "old memory note")));
        let entries = memories.into_iter().map(|(entry, _)| entry).collect();
        drafts.add_if_less(DecisionKind::Snip { entries }, reason.clone(), None);
    }
    old.clear(situation, &reason, &mut drafts);
    drafts.into_act(reason)
}

/// Memories that were shown in earlier turns of the user, with their tokens.
fn old_memories(situation: &Situation<'_>) -> Vec<(EntryId, f64)> {
    let mut found = Vec::new();
    let mut n_old = 0;
    for shown in situation.view.shown().filter(|shown| shown.showing == Showing::Itself) {
        if shown.is_of_a_person() {
            n_old = found.len();
        }
        if let Body::Attachment(attachment) = &shown.entry.body
            && attachment.what == "memory"
            && shown.is_sent
            && attachment.content.blocks().iter().all(|block| block.kind() != BlockType::ToolResult)
        {
            found.push((shown.entry.id, shown.tokens));
        }
    }
    found.truncate(n_old);
    found
}
