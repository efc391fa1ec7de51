//! What a row takes from the response: tokens by kind, money, and the fall with its price.

use pal_model::{CacheBreak, Card, ResponseGot, Usage};
use smol_str::SmolStr;

use super::{Fall, LedgerRow, PromptTokens};
use crate::price::{cost_without_cache, price_of_break};

/// The part of a row that follows from what a response reports.
pub(super) fn paid(response: &ResponseGot, model: SmolStr, card: &Card) -> LedgerRow {
    let usage = &response.usage;
    let is_reported = usage.has_prompt();
    let cost = card.cost(usage).filter(|_| is_reported);
    LedgerRow {
        model,
        prompt: is_reported.then(|| prompt_tokens(usage)),
        output: usage.output_tokens,
        beside: tokens_beside(usage),
        // What was written down then was paid then, whatever the prices are now.
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
        fall: None,
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

/// The verdict that was recorded, else the one that was drawn; with its price.
pub(super) fn fall(response: &ResponseGot, judged: Option<CacheBreak>, card: &Card) -> Option<Fall> {
    let usage = &response.usage;
    match &response.cache_break {
        Some(recorded) => {
            let cost = recorded.cost.or_else(|| price_of_break(card, usage, recorded.tokens));
            Some(Fall { what: CacheBreak { cost, ..recorded.clone() }, is_recorded: true })
        }
        None => judged.map(|what| Fall { what, is_recorded: false }),
    }
}
