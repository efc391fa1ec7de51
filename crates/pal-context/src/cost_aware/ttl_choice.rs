//! Strategies for pauses: the TTL of breakpoints, keep-alive requests, or a compaction before the cache
//! expires.

use pal_model::{CacheMode, ModelCard, SessionSnapshot};
use pal_view::CacheTtl;

use super::{CostAwareSettings, SessionForecast, TokenRates, fitted_figures};

/// A strategy for pauses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PauseStrategy {
    /// This TTL for everything; after a longer pause, content is cleared and written again.
    Ttl(CacheTtl),
    /// Five minutes, and this many keep-alive requests.
    Keepalives(u32),
    /// Five minutes, and a compaction just before they expire.
    CompactedBefore,
}

/// A strategy and its average cost per request.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PauseCost {
    /// The strategy.
    pub strategy: PauseStrategy,
    /// Average cost of the pauses and of writing new content, per request.
    pub cost: f64,
}

/// Share of new messages that a clear removes.
const CLEARED: f64 = 0.5;
/// Share of the removed messages that is needed again.
pub(super) const NEEDED: f64 = 0.1;

/// Computes the cost of each strategy for a context of `size` tokens, `prefix` of them before the messages.
pub fn pause_costs(
    card: &ModelCard,
    prefix: f64,
    size: f64,
    forecast: &SessionForecast,
    settings: CostAwareSettings,
) -> Vec<PauseCost> {
    let short = TokenRates::for_prompt(card, CacheTtl::Minutes5, size);
    let long = TokenRates::for_prompt(card, CacheTtl::Hour1, size);
    let messages = (size - prefix).max(0.0);
    let (within, beyond) = (forecast.pause_within_an_hour(), forecast.pause_beyond_an_hour());
    let soon = forecast.pauses[1];
    let horizon = forecast.requests_within(HORIZON);
    let warm = short.read * size;
    // After a pause the messages are written again, less those that can be cleared of the ones since the
    // previous pause; these need not be carried any more.
    let cold = |rates: &TokenRates, before: f64| {
        let new = forecast.growth / (within + beyond).max(f64::MIN_POSITIVE);
        let cleared = CLEARED * new.min(messages);
        let again = settings.weight() * NEEDED * cleared * (rates.write + rates.read * horizon / 2.0);
        before * prefix + rates.write * (messages - cleared) + again - rates.read * cleared * horizon
    };
    let compacted = {
        let after = (prefix + fitted_figures::COMPACTED_TOKENS).min(size);
        let again = settings.weight() * fitted_figures::COMPACTED_NEEDED * (size - after);
        warm + short.output * fitted_figures::SUMMARY_TOKENS
            + short.write * (after + again)
            + short.read * (again / 2.0 - (size - after)) * horizon
    };
    let lasting = |how: CacheTtl| match how {
        CacheTtl::Minutes5 => short.write * forecast.growth + (within + beyond) * cold(&short, short.write),
        CacheTtl::Hour1 => long.write * forecast.growth + within * warm + beyond * cold(&long, long.write),
        CacheTtl::Hour1ThenMinutes5 => {
            // The first write of the prefix costs more, too.
            let first = (long.write - short.write) * prefix / forecast.requests;
            short.write * forecast.growth
                + within * cold(&short, short.read)
                + beyond * cold(&short, long.write)
                + first
        }
    };
    let pings = |count: u32| {
        let each = f64::from(count) * warm;
        short.write * forecast.growth
            + soon * (warm + each)
            + (within - soon + beyond) * (each + cold(&short, short.write))
    };
    let ways = [CacheTtl::Minutes5, CacheTtl::Hour1, CacheTtl::Hour1ThenMinutes5];
    let mut costs: Vec<PauseCost> =
        ways.map(|how| PauseCost { strategy: PauseStrategy::Ttl(how), cost: lasting(how) }).to_vec();
    costs.push(PauseCost { strategy: PauseStrategy::Keepalives(2), cost: pings(2) });
    let before = short.write * forecast.growth + (within + beyond) * compacted;
    costs.push(PauseCost { strategy: PauseStrategy::CompactedBefore, cost: before });
    costs
}

/// Number of requests that cleared content would have been carried.
const HORIZON: f64 = 30.0;

/// Cheapest TTL and the reason; `None` if breakpoints do not decide it.
pub(crate) fn cheapest_ttl(
    state: &SessionSnapshot,
    card: &ModelCard,
    prefix: f64,
    settings: CostAwareSettings,
) -> Option<(CacheTtl, String)> {
    if card.caching != CacheMode::Explicit {
        return None;
    }
    let forecast = SessionForecast::from_activity(&state.activity);
    // Halfway between two compactions.
    let size = prefix + fitted_figures::COMPACTED_TOKENS + forecast.growth * HORIZON / 2.0;
    let costs = pause_costs(card, prefix, size, &forecast, settings);
    let lasting = costs.into_iter().filter_map(|keeping| match keeping.strategy {
        PauseStrategy::Ttl(ttl) => Some((ttl, keeping.cost)),
        PauseStrategy::Keepalives(_) | PauseStrategy::CompactedBefore => None,
    });
    let (ttl, _) = lasting.min_by(|one, other| one.1.total_cmp(&other.1))?;
    let what = match ttl {
        CacheTtl::Minutes5 => "five minutes",
        CacheTtl::Hour1 => "an hour",
        CacheTtl::Hour1ThenMinutes5 => "an hour before the messages and five minutes in them",
    };
    let percent = |share: f64| (1_000.0 * share).round() / 10.0;
    let reason = format!(
        "{what}, the cheapest where {}% of the pauses are over five minutes and {}% over an hour",
        percent(forecast.pause_within_an_hour() + forecast.pause_beyond_an_hour()),
        percent(forecast.pause_beyond_an_hour()),
    );
    Some((ttl, reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pal_model::{ActivityStats, ModelCatalog};

    fn chosen(model: &str, pauses: [u64; 4]) -> CacheTtl {
        let card = ModelCatalog::built_in().find(model).card;
        let state = SessionSnapshot {
            activity: ActivityStats { pauses, ..ActivityStats::default() },
            ..SessionSnapshot::default()
        };
        cheapest_ttl(&state, &card, 30_000.0, CostAwareSettings::STANDARD).unwrap().0
    }

    #[test]
    fn ttl_follows_the_pauses_of_the_session() {
        // Without pauses the higher price of an hour is never worth it.
        assert_eq!(chosen("claude-opus-5", [20_000, 0, 0, 0]), CacheTtl::Minutes5);
        // A typical session.
        assert_eq!(chosen("claude-opus-5", [0; 4]), CacheTtl::Hour1ThenMinutes5);
        // A pause of ten minutes every ten requests.
        assert_eq!(chosen("claude-opus-5", [180, 20, 0, 0]), CacheTtl::Hour1);
    }

    #[test]
    fn automatic_caching_has_no_ttl_choice() {
        let cards = ModelCatalog::built_in();
        let card = ModelCard { caching: CacheMode::Automatic, ..cards.find("claude-opus-5").card };
        assert!(cheapest_ttl(&SessionSnapshot::default(), &card, 1.0, CostAwareSettings::STANDARD).is_none());
    }
}
