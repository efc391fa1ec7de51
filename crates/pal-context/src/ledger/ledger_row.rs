//! Values of a row that come from the response: tokens by kind, cost, and the cache-read drop.

use pal_model::{CacheBreak, ModelCard, ResponseRecord, Usage};
use smol_str::SmolStr;

use super::{LedgerDrop, LedgerRow, PromptTokens};
use crate::break_cost::{cost_without_cache, price_of_break};

/// Builds the part of a row that follows from the response.
pub(super) fn paid(response: &ResponseRecord, model: SmolStr, card: &ModelCard) -> LedgerRow {
    let usage = &response.usage;
    let is_reported = usage.has_prompt();
    let cost = card.cost(usage).filter(|_| is_reported);
    LedgerRow {
        model,
        prompt: is_reported.then(|| prompt_tokens(usage)),
        output: usage.output_tokens,
        basis: usage.basis,
        additional: tokens_beside(usage),
        // The recorded cost was paid at the prices of that time.
        cost: response.cost.filter(|_| is_reported).or(cost),
        saved: cost.and_then(|cost| Some(cost_without_cache(card, usage)? - cost)),
        context: is_reported.then(|| usage.context_tokens()),
        number: 0,
        source: response.source.clone(),
        started: None,
        idle_ms: None,
        by_category: Vec::new(),
        layers: Vec::new(),
        decisions: Vec::new(),
        drop: None,
    }
}

fn prompt_tokens(usage: &Usage) -> PromptTokens {
    let written = usage.cache_creation_input_tokens;
    let written_1h = usage.cache_creation.map_or(0, |written| written.ephemeral_1h_input_tokens).min(written);
    PromptTokens {
        read: usage.cache_read_input_tokens,
        written_1h,
        written: written - written_1h,
        uncached: usage.input_tokens,
    }
}

fn tokens_beside(usage: &Usage) -> u64 {
    let passes = usage.iterations.iter().flatten().filter(|pass| pass.kind == "compaction");
    passes.fold(0, |sum, pass| sum.saturating_add(pass.prompt_tokens()).saturating_add(pass.output_tokens))
}

/// The recorded drop, else the inferred one, with its price.
pub(super) fn find_cache_drop(
    response: &ResponseRecord,
    judged: Option<CacheBreak>,
    card: &ModelCard,
) -> Option<LedgerDrop> {
    let usage = &response.usage;
    match &response.cache_break {
        Some(recorded) => {
            let cost = recorded.cost.or_else(|| price_of_break(card, usage, recorded.tokens));
            Some(LedgerDrop { cache_break: CacheBreak { cost, ..recorded.clone() }, is_recorded: true })
        }
        None => judged.map(|what| LedgerDrop { cache_break: what, is_recorded: false }),
    }
}
