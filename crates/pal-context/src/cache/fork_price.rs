//! Price of a fork: the cached conversation that its first request reads, and the rest that it writes.

use pal_model::text::short_tokens;
use pal_model::{CacheMode, Timestamp};
use pal_view::{CacheTtl, View};

use super::cold_turn::cache_expiry;
use crate::cache_ttl::conversation_ttl;
use crate::cost_aware::TokenRates;

/// Price of a fork's first request, without its own prompt and answer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ForkPrice {
    /// Tokens read from the cache.
    pub read: u64,
    /// Tokens written to the cache.
    pub written: u64,
    /// Price of both in US dollars; `None` if the card has no prices.
    pub prices: Option<(f64, f64)>,
}

impl ForkPrice {
    /// One line for the user.
    pub fn line(&self) -> String {
        let about = |price: Option<f64>| price.map_or(String::new(), |price| format!(", about ${price:.2}"));
        format!(
            "reads {} cached tokens{}; writes {} tokens{}",
            short_tokens(self.read),
            about(self.prices.map(|(read, _)| read)),
            short_tokens(self.written),
            about(self.prices.map(|(_, written)| written)),
        )
    }
}

/// Price of a fork of the conversation that starts now.
pub fn fork_price(view: &View, now: Timestamp) -> ForkPrice {
    let card = &view.lens().card;
    let size = view.size();
    // Where the provider decides about its cache, recent content counts as cached.
    let is_cached = match card.caching {
        CacheMode::Explicit => cache_expiry(view).is_some_and(|expiry| now < expiry),
        CacheMode::Automatic | CacheMode::Hybrid => true,
    };
    let anchor = size.anchor.filter(|_| is_cached && size.freed == 0);
    let read = anchor.map_or(0, |anchor| anchor.usage.prompt_tokens()).min(size.tokens);
    let written = size.tokens - read;
    let ttl = conversation_ttl(view).unwrap_or(CacheTtl::Minutes5);
    let rates = card.prices.map(|_| TokenRates::for_prompt(card, ttl, size.tokens as f64));
    ForkPrice {
        read,
        written,
        prices: rates.map(|rates| (rates.read * read as f64, rates.write * written as f64)),
    }
}
