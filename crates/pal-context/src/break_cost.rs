//! Cost of a response without the cache, and cost of a cache break.
//!
//! All results are differences of [`ModelCard::cost`], so that price tiers and additional passes are
//! included.

use pal_model::{CacheCreation, ModelCard, TokenPrices, Usage, UsageIteration};

/// Cost of a cache break in US dollars: the tokens at the price that this response paid, less the price of
/// reading them. Tokens that it did not pay, because its prompt is shorter, cost nothing. `None` if the card
/// has no prices.
pub fn price_of_break(card: &ModelCard, usage: &Usage, tokens: u64) -> Option<f64> {
    Some((card.cost(usage)? - card.cost(&with_more_read(usage, tokens))?).max(0.0))
}

/// Cost of the same response without any cache.
pub(crate) fn cost_without_cache(card: &ModelCard, usage: &Usage) -> Option<f64> {
    let plain = |pass: &UsageIteration| UsageIteration {
        kind: pass.kind.clone(),
        input_tokens: pass.prompt_tokens(),
        output_tokens: pass.output_tokens,
        ..UsageIteration::default()
    };
    card.cost(&Usage {
        input_tokens: usage.prompt_tokens(),
        output_tokens: usage.output_tokens,
        iterations: usage.iterations.as_ref().map(|passes| passes.iter().map(plain).collect()),
        server_tool_use: usage.server_tool_use,
        ..Usage::default()
    })
}

/// Prices for a prompt of this size.
pub(crate) fn prices(card: &ModelCard, prompt_tokens: u64) -> Option<TokenPrices> {
    match card.price_tier {
        Some(cliff) if prompt_tokens > cliff.above => Some(cliff.prices),
        _ => card.prices,
    }
}

/// Usage if `tokens` more had been read. Written tokens are converted first: content that fell out of the
/// cache is written again where breakpoints follow it.
fn with_more_read(usage: &Usage, tokens: u64) -> Usage {
    let written = usage.cache_creation_input_tokens;
    let from_written = tokens.min(written);
    let from_input = (tokens - from_written).min(usage.input_tokens);
    let creation = usage.cache_creation.map(|creation| {
        // It is unknown which written tokens would have been read: the kinds are reduced in proportion.
        let left = |tokens: u64| {
            let share = if written == 0 { 0.0 } else { (written - from_written) as f64 / written as f64 };
            (tokens as f64 * share).round() as u64
        };
        CacheCreation {
            ephemeral_5m_input_tokens: left(creation.ephemeral_5m_input_tokens),
            ephemeral_1h_input_tokens: left(creation.ephemeral_1h_input_tokens),
        }
    });
    Usage {
        input_tokens: usage.input_tokens - from_input,
        cache_creation_input_tokens: written - from_written,
        cache_read_input_tokens: usage.cache_read_input_tokens.saturating_add(from_written + from_input),
        cache_creation: creation,
        ..usage.clone()
    }
}
