//! Prices: what a response cost, what it would have cost without the cache, what a break cost.
//!
//! Everything is a difference of two [`Card::cost`]s, so that steps in price and passes beside the totals count as they
//! do there.

use pal_model::{CacheCreation, Card, Iteration, Prices, Usage};

/// What a break cost, in US dollars: so many tokens at the price at which this response paid them, less what reading them
/// would have cost. Tokens that it did not pay at all, because its prompt is shorter, cost nothing. None where the card has
/// no prices.
pub fn price_of_break(card: &Card, usage: &Usage, tokens: u64) -> Option<f64> {
    Some((card.cost(usage)? - card.cost(&with_more_read(usage, tokens))?).max(0.0))
}

/// What the same response would have cost without any cache.
pub(crate) fn cost_without_cache(card: &Card, usage: &Usage) -> Option<f64> {
    let plain = |pass: &Iteration| Iteration {
        kind: pass.kind.clone(),
        input_tokens: pass.prompt_tokens(),
        output_tokens: pass.output_tokens,
        ..Iteration::default()
    };
    card.cost(&Usage {
        input_tokens: usage.prompt_tokens(),
        output_tokens: usage.output_tokens,
        iterations: usage.iterations.as_ref().map(|passes| passes.iter().map(plain).collect()),
        ..Usage::default()
    })
}

/// The prices that hold for a prompt of this size.
pub(crate) fn prices(card: &Card, prompt_tokens: u64) -> Option<Prices> {
    match card.cliff {
        Some(cliff) if prompt_tokens > cliff.above => Some(cliff.prices),
        _ => card.prices,
    }
}

/// The same usage if so many tokens more had been read. What was written counts first: whatever fell out of the cache is
/// written to it again, where marks stand behind it.
fn with_more_read(usage: &Usage, tokens: u64) -> Usage {
    let written = usage.cache_creation_input_tokens;
    let from_written = tokens.min(written);
    let from_input = (tokens - from_written).min(usage.input_tokens);
    let creation = usage.cache_creation.map(|creation| {
        // Which of the written tokens would have been read is not known: so many of each kind as there are.
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
