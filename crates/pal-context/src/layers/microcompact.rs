//! Microcompact (§3.3): removes old tool results from the view, or from the provider's cache.
//!
//! The method depends on the cache and the card: locally if the cache is cold; else by cache edits, by the
//! provider, or, if it supports neither, locally under pressure. Only sent results are touched.

mod cache_edit;
mod old_results;
mod provider_clear;

use pal_model::{BlockType, DecisionKind, EntryBody, EntryId};
use pal_view::Visibility;

use crate::cost_aware::{
    ClearableTokens, CostAwareSettings, PolicyChoice, PolicyMove, choose, worth_clearing,
};
use crate::layer::DecisionDrafts;
use crate::{ActionKind, ForecastCondition, Layer, LayerAction, LayerContext, LayerForecast};
use old_results::OldResults;
use pal_model::text::{count_noun, group_digits};

/// Clears old tool results.
pub(crate) struct MicrocompactLayer;

/// Minimum tokens of clearable results for a clear under pressure, on a full window.
const CLEARABLE_MIN: u64 = 40_000;
/// Minimum tokens that a clear under pressure must free, on a full window.
const FREED_MIN: u64 = 20_000;

impl Layer for MicrocompactLayer {
    fn name(&self) -> &'static str {
        "microcompact"
    }

    fn act(&self, context: &LayerContext<'_>) -> LayerAction {
        let (policy, can) = (context.policy, &context.view.lens().card.can);
        let is_cold = policy.cold_clear && context.is_cold();
        let cold = match policy.cost_aware {
            Some(settings) => by_price(context, settings).filter(|_| policy.cold_clear),
            None => is_cold.then(|| cold(context)),
        };
        if let Some(cold) = &cold
            && !matches!(cold.kind, ActionKind::Nothing)
        {
            return cold.clone();
        }
        let provider_clears = can.context_management.iter().any(|edit| edit == provider_clear::CLEAR_USES);
        match cold {
            None if policy.warm_clear && can.cache_edits => cache_edit::edit(context),
            _ if policy.warm_clear && provider_clears && !can.cache_edits => provider_clear::ask(context),
            Some(cold) => cold,
            None if policy.pressure => pressure(context),
            None => LayerAction::nothing("switched off"),
        }
    }

    fn forecast(&self, context: &LayerContext<'_>) -> Vec<LayerForecast> {
        let (policy, can) = (context.policy, &context.view.lens().card.can);
        let mut foreseen = Vec::new();
        if policy.cold_clear {
            let pause = context.cold_after();
            let then = context.idle_for(pause);
            let act = match policy.cost_aware {
                Some(settings) => by_price(&then, settings)
                    .unwrap_or_else(|| LayerAction::nothing(chosen(&then, settings).reason)),
                None => cold(&then),
            };
            foreseen.push(LayerForecast::of(self.name(), ForecastCondition::Idle(pause), act));
        }
        let provider_clears = can.context_management.iter().any(|edit| edit == provider_clear::CLEAR_USES);
        if policy.warm_clear && can.cache_edits {
            foreseen.push(cache_edit::foresee(self.name(), context));
        } else if policy.warm_clear && provider_clears {
            foreseen.extend(provider_clear::foresee(self.name(), context));
        } else if policy.pressure
            && let Some(from) = pressure_from(context)
        {
            let act = pressure(&context.grown_to(from));
            foreseen.push(LayerForecast::of(self.name(), ForecastCondition::Tokens(from), act));
        }
        foreseen
    }
}

/// a. The cache is cold, so a change costs nothing.
fn cold(context: &LayerContext<'_>) -> LayerAction {
    if !context.may_rewrite() {
        return LayerAction::nothing("the cache is cold, but thinking is bound to what stands before it");
    }
    let old = OldResults::of(context, context.policy.cold_keep.max(1));
    let lost = old_results::lost(context);
    if old.ids.is_empty() && lost.is_empty() {
        return LayerAction::nothing("the cache is cold, and there is no old result to clear");
    }
    let minutes = context.idle().unwrap_or_default().as_secs() / 60;
    let reason = format!(
        "the cache is cold after {minutes} minutes: {} cleared",
        count_noun(old.ids.len() + lost.len(), "old result")
    );
    let mut drafts = DecisionDrafts::about(context.view);
    old_results::clear_lost(context, lost, &reason, &mut drafts);
    old.clear(context, &reason, &mut drafts);
    drafts.into_action(reason)
}

/// Clears the results worth clearing, if that is the cheapest move; `None` if it is not.
fn by_price(context: &LayerContext<'_>, settings: CostAwareSettings) -> Option<LayerAction> {
    let choice = chosen(context, settings);
    if choice.chosen != PolicyMove::Clear {
        return None;
    }
    let old = OldResults::chosen(context, context.policy.cold_keep, &worth_clearing(context, settings));
    let lost = if context.is_cold() { old_results::lost(context) } else { Vec::new() };
    let mut drafts = DecisionDrafts::about(context.view);
    old_results::clear_lost(context, lost, &choice.reason, &mut drafts);
    old.clear(context, &choice.reason, &mut drafts);
    Some(drafts.into_action(choice.reason))
}

/// The cost-aware policy's current choice.
pub(super) fn chosen(context: &LayerContext<'_>, settings: CostAwareSettings) -> PolicyChoice {
    choose(context, settings, |is_worth| {
        let old = OldResults::chosen(context, context.policy.cold_keep, is_worth);
        ClearableTokens { freed: old.freed as f64, needed: old.needed as f64 }
    })
}

/// Tokens from which on old results are cleared under pressure: from the warning if the policy clears early,
/// otherwise where no answer would fit. `None` if a compaction comes first, which costs less than writing most
/// of the prompt again and again.
fn pressure_from(context: &LayerContext<'_>) -> Option<u64> {
    match context.policy.early_clear {
        true => Some(context.limits.warning),
        false => Some(context.limits.blocking).filter(|_| !context.can_compact()),
    }
}

/// d. The context fills up, and the provider cannot clear.
fn pressure(context: &LayerContext<'_>) -> LayerAction {
    let Some(from) = pressure_from(context) else {
        return LayerAction::nothing("the cache is warm, and a compaction comes before the window is full");
    };
    if context.size < from {
        return LayerAction::nothing(format!(
            "{} tokens, acts from {}",
            group_digits(context.size),
            group_digits(from)
        ));
    }
    if !context.may_rewrite() {
        return LayerAction::nothing("under pressure, but thinking is bound to what stands before it");
    }
    let budgets = context.budgets();
    let old = OldResults::of(context, context.policy.pressure_keep);
    let memories = old_memories(context);
    let of_memories = context.view.estimator().total(memories.iter().map(|(_, tokens)| tokens).sum());
    let (clearable, freed) = (old.clearable + of_memories, old.freed + of_memories);
    if clearable < budgets.scale(CLEARABLE_MIN) || freed < budgets.scale(FREED_MIN) {
        return LayerAction::nothing(format!(
            "under pressure, but old results have only {} tokens, {} to be freed",
            group_digits(clearable),
            group_digits(freed)
        ));
    }
    let mut reason = format!(
        "{} tokens are past {}: {} cleared",
        group_digits(context.size),
        group_digits(from),
        count_noun(old.ids.len(), "old result")
    );
    let mut drafts = DecisionDrafts::about(context.view);
    if !memories.is_empty() {
        reason.push_str(&format!(", {} hidden", count_noun(memories.len(), "old memory note")));
        let entries = memories.into_iter().map(|(entry, _)| entry).collect();
        drafts.add_if_smaller(DecisionKind::Snip { entries }, reason.clone(), None);
    }
    old.clear(context, &reason, &mut drafts);
    drafts.into_action(reason)
}

/// Memories shown in earlier user turns, with their tokens.
fn old_memories(context: &LayerContext<'_>) -> Vec<(EntryId, f64)> {
    let mut found = Vec::new();
    let mut n_old = 0;
    for shown in context.view.visible_entries().filter(|shown| shown.visibility == Visibility::Visible) {
        if shown.is_from_person() {
            n_old = found.len();
        }
        if let EntryBody::Attachment(attachment) = &shown.entry.body
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
