//! Cold turns: the lifetime of the cached messages, and the price of a request that is sent after they expired.
//!
//! Everything follows from our own record of request starts, keep-alives included, and from the TTL that the
//! last request used.

use std::time::Duration;

use pal_model::text::short_tokens;
use pal_model::{ModelCard, Timestamp};
use pal_view::{CacheTtl, View};

use crate::break_cost;
use crate::cache_ttl::conversation_ttl;

/// A request that would find its messages expired.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ColdTurn {
    /// Time since the messages expired.
    pub expired_for: Duration,
    /// Tokens that the request writes to the cache.
    pub tokens: u64,
    /// Price of writing them in US dollars; `None` if the card has no prices.
    pub price: Option<f64>,
}

impl ColdTurn {
    /// One line for the user.
    pub fn line(&self) -> String {
        let price = self.price.map_or(String::new(), |price| format!(", about ${price:.2}"));
        format!(
            "cache expired {} ago: this turn writes {} tokens{price}",
            duration_text(self.expired_for),
            short_tokens(self.tokens),
        )
    }
}

/// Time in words: `40 s`, `12 min`, `3 h`.
fn duration_text(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..7_200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3_600),
    }
}

/// Time at which the messages of the conversation leave the provider's cache; `None` if breakpoints do not decide
/// it, or if nothing was sent since the last compaction.
pub fn cache_expiry(view: &View) -> Option<Timestamp> {
    let ttl = conversation_ttl(view)?;
    view.size().anchor?;
    Some(view.cache_touched_at()?.after(Duration::from_millis(ttl.milliseconds())))
}

/// Price of the next request if its messages have expired: `size` tokens, with breakpoints of the TTL `next`.
/// `None` while they are cached, or if nothing is known about them.
pub fn cold_turn(view: &View, now: Timestamp, size: u64, next: CacheTtl) -> Option<ColdTurn> {
    let expiry = cache_expiry(view)?;
    let expired = now.milliseconds().checked_sub(expiry.milliseconds()).filter(|time| *time > 0)?;
    let fixed = (view.fixed_tokens().max(0.0) as u64).min(size);
    // Behind a breakpoint of one hour, the prefix outlives the messages.
    let hour = i64::try_from(CacheTtl::Hour1.milliseconds()).unwrap_or(i64::MAX);
    let touched = view.cache_touched_at()?.milliseconds();
    let keeps_prefix =
        conversation_ttl(view)? == CacheTtl::Hour1ThenMinutes5 && now.milliseconds() - touched <= hour;
    let written_prefix = if keeps_prefix { 0 } else { fixed };
    let messages = size - fixed;
    Some(ColdTurn {
        expired_for: Duration::from_millis(u64::try_from(expired).unwrap_or(0)),
        tokens: written_prefix + messages,
        price: write_price(&view.lens().card, size, next, written_prefix, messages),
    })
}

/// Price of writing a prefix and messages, by the TTL of their breakpoints.
fn write_price(card: &ModelCard, size: u64, ttl: CacheTtl, prefix: u64, messages: u64) -> Option<f64> {
    let prices = break_cost::prices(card, size)?;
    let (of_prefix, of_messages) = match ttl {
        CacheTtl::Minutes5 => (prices.write_5m, prices.write_5m),
        CacheTtl::Hour1 => (prices.write_1h, prices.write_1h),
        CacheTtl::Hour1ThenMinutes5 => (prices.write_1h, prices.write_5m),
    };
    Some((of_prefix * prefix as f64 + of_messages * messages as f64) / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_when_how_much_and_the_price() {
        let check = |seconds: u64, tokens: u64, price: Option<f64>, expected: &str| {
            let turn = ColdTurn { expired_for: Duration::from_secs(seconds), tokens, price };
            assert_eq!(turn.line(), expected);
        };
        check(
            740,
            412_300,
            Some(2.0615),
            "cache expired 12 min ago: this turn writes 412K tokens, about $2.06",
        );
        check(40, 9_400, Some(0.1), "cache expired 40 s ago: this turn writes 9.4K tokens, about $0.10");
        check(14_500, 1_200_000, None, "cache expired 4 h ago: this turn writes 1.2M tokens");
    }
}
