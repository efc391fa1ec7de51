//! Choice of the cache TTL: what the breakpoints of a session should ask for, given how long its user pauses.

use pal_model::{CacheMode, ModelCard, SessionSnapshot, Timestamp};
use pal_view::CacheTtl;

use super::expected_cost::TokenRates;
use super::{CostAwareSettings, SessionForecast, fitted_figures};

/// Share of the messages that is cleared, or compacted soon, after the cache has expired.
const CLEARED: f64 = 0.2;
/// Share of cleared messages that is needed again.
pub(super) const NEEDED: f64 = 0.1;
/// Number of requests by which the context has grown at the next pause.
const AHEAD: f64 = 10.0;

/// Expected cost of a TTL per request, in US dollars: what writing new content costs, what is written again after a pause that
/// outlives the cache, and what is written once because the TTL begins to apply, spread over the requests to come. `size` is the
/// context that is about to be written, `prefix` the part of it before the messages.
fn cost_per_request(
    card: &ModelCard,
    ttl: CacheTtl,
    prefix: f64,
    size: f64,
    forecast: &SessionForecast,
) -> f64 {
    let later = size.max(prefix + fitted_figures::COMPACTED_TOKENS) + forecast.growth * AHEAD;
    let short = TokenRates::for_prompt(card, CacheTtl::Minutes5, later);
    let long = TokenRates::for_prompt(card, CacheTtl::Hour1, later);
    let messages = (later - prefix).max(0.0) * (1.0 - CLEARED);
    let now_messages = (size - prefix).max(0.0);
    let (within, beyond) = (forecast.pause_within_an_hour(), forecast.pause_beyond_an_hour());
    let again = |rates: &TokenRates| rates.write - rates.read;
    let once = |written: f64| written / forecast.requests.max(1.0);
    match ttl {
        CacheTtl::Minutes5 => {
            short.write * forecast.growth
                + (within + beyond) * again(&short) * (prefix + messages)
                + once(short.write * (prefix + now_messages))
        }
        CacheTtl::Hour1 => {
            long.write * forecast.growth
                + beyond * again(&long) * (prefix + messages)
                + once(long.write * (prefix + now_messages))
        }
        CacheTtl::Hour1ThenMinutes5 => {
            short.write * forecast.growth
                + (within + beyond) * again(&short) * messages
                + beyond * again(&long) * prefix
                + once(long.write * prefix + short.write * now_messages)
        }
    }
}

/// Cheapest TTL for a context of `size` tokens that is about to be written at `now`, and the reason; `None` if breakpoints do not decide it.
pub(crate) fn cheapest_ttl(
    state: &SessionSnapshot,
    card: &ModelCard,
    prefix: f64,
    size: f64,
    now: Option<Timestamp>,
    settings: CostAwareSettings,
) -> Option<(CacheTtl, String)> {
    if card.caching != CacheMode::Explicit {
        return None;
    }
    let forecast = match now {
        Some(now) => SessionForecast::at_request(&state.activity, now, &settings.figures),
        None => SessionForecast::from_activity(&state.activity, &settings.figures),
    };
    let ways = [CacheTtl::Minutes5, CacheTtl::Hour1ThenMinutes5, CacheTtl::Hour1];
    let cost = |ttl: &CacheTtl| cost_per_request(card, *ttl, prefix, size, &forecast);
    let ttl = ways.into_iter().min_by(|one, other| cost(one).total_cmp(&cost(other)))?;
    let what = match ttl {
        CacheTtl::Minutes5 => "five minutes",
        CacheTtl::Hour1 => "an hour",
        CacheTtl::Hour1ThenMinutes5 => "an hour before the messages and five minutes in them",
    };
    let percent = |share: f64| (1_000.0 * share).round() / 10.0;
    let origin = settings.pause_history.origin().map_or(String::new(), |origin| format!(" ({origin})"));
    let reason = format!(
        "{what}, the cheapest where {}% of the pauses are over five minutes and {}% over an hour{origin}",
        percent(forecast.pause_within_an_hour() + forecast.pause_beyond_an_hour()),
        percent(forecast.pause_beyond_an_hour()),
    );
    Some((ttl, reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pal_model::{ActivityStats, ModelCatalog};

    /// The choice for a session with these pauses before a person's messages and before all requests.
    fn chosen(turn_pauses: [u64; 4], pauses: [u64; 4], size: f64) -> CacheTtl {
        let card = ModelCatalog::built_in().find("claude-opus-5").card;
        let state = SessionSnapshot {
            activity: ActivityStats { pauses, turn_pauses, ..ActivityStats::default() },
            ..SessionSnapshot::default()
        };
        cheapest_ttl(&state, &card, 30_000.0, size, None, CostAwareSettings::STANDARD).unwrap().0
    }

    #[test]
    fn ttl_follows_the_pauses_of_people() {
        // A run without people: the higher price of an hour is never worth it.
        assert_eq!(chosen([0; 4], [20_000, 0, 0, 0], 31_000.0), CacheTtl::Minutes5);
        // A typical session.
        assert_eq!(chosen([0; 4], [0; 4], 31_000.0), CacheTtl::Hour1ThenMinutes5);
        // A pause of ten minutes at every second turn of five requests.
        assert_eq!(chosen([10, 10, 0, 0], [90, 10, 0, 0], 60_000.0), CacheTtl::Hour1);
        // A hundred requests in one turn do not hide that.
        assert_eq!(chosen([2, 6, 2, 0], [132, 6, 2, 0], 100_000.0), CacheTtl::Hour1);
        // An hour does not help against longer pauses.
        assert_eq!(chosen([10, 0, 0, 10], [190, 0, 0, 10], 31_000.0), CacheTtl::Minutes5);
    }

    #[test]
    fn automatic_caching_has_no_ttl_choice() {
        let cards = ModelCatalog::built_in();
        let card = ModelCard { caching: CacheMode::Automatic, ..cards.find("claude-opus-5").card };
        let state = SessionSnapshot::default();
        assert!(cheapest_ttl(&state, &card, 1.0, 1.0, None, CostAwareSettings::STANDARD).is_none());
    }
}
