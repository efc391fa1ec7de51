//! How to get over pauses: for how long marks last, and whether something else would be cheaper (a request now and then
//! that keeps the cache warm, a compaction before it is lost).

use pal_model::{Caching, Card, Snapshot};
use pal_view::CacheLifetime;

use super::{Forecast, Tariff, Thrift, fitted};

/// A way to get over pauses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pausing {
    /// Everything lasts this long, and is cleared and written anew behind a longer pause.
    Lasting(CacheLifetime),
    /// Five minutes, and so many requests that only keep the cache warm.
    Pings(u32),
    /// Five minutes, and a compaction just before they are over.
    CompactedBefore,
}

/// A way, and what it costs for each request on average.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Keeping {
    /// The way.
    pub how: Pausing,
    /// What the pauses and the writing of what is new cost for each request.
    pub cost: f64,
}

/// The share of new messages that a clear takes away.
const CLEARED: f64 = 0.5;
/// The share of that which is needed again.
pub(super) const NEEDED: f64 = 0.1;

/// What each way costs, for a context of this size of which so much stands before the messages.
pub fn keep_costs(card: &Card, prefix: f64, size: f64, forecast: &Forecast, thrift: Thrift) -> Vec<Keeping> {
    let short = Tariff::of(card, CacheLifetime::Minutes5, size);
    let long = Tariff::of(card, CacheLifetime::Hour1, size);
    let messages = (size - prefix).max(0.0);
    let (within, beyond) = (forecast.pause_within_an_hour(), forecast.pause_beyond_an_hour());
    let soon = forecast.pauses[1];
    let horizon = forecast.requests_within(HORIZON);
    let warm = short.read * size;
    // Behind a pause the messages are written, less what can be cleared of those that came since the pause before; that
    // need not be carried any more.
    let cold = |tariff: &Tariff, before: f64| {
        let new = forecast.growth / (within + beyond).max(f64::MIN_POSITIVE);
        let cleared = CLEARED * new.min(messages);
        let again = thrift.weight() * NEEDED * cleared * (tariff.write + tariff.read * horizon / 2.0);
        before * prefix + tariff.write * (messages - cleared) + again - tariff.read * cleared * horizon
    };
    let compacted = {
        let after = (prefix + fitted::COMPACTED_TOKENS).min(size);
        let again = thrift.weight() * fitted::COMPACTED_NEEDED * (size - after);
        warm + short.output * fitted::SUMMARY_TOKENS
            + short.write * (after + again)
            + short.read * (again / 2.0 - (size - after)) * horizon
    };
    let lasting = |how: CacheLifetime| match how {
        CacheLifetime::Minutes5 => {
            short.write * forecast.growth + (within + beyond) * cold(&short, short.write)
        }
        CacheLifetime::Hour1 => {
            long.write * forecast.growth + within * warm + beyond * cold(&long, long.write)
        }
        CacheLifetime::Hour1ThenMinutes5 => {
            // The first time what stands before the messages is written costs more, too.
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
    let ways = [CacheLifetime::Minutes5, CacheLifetime::Hour1, CacheLifetime::Hour1ThenMinutes5];
    let mut costs: Vec<Keeping> =
        ways.map(|how| Keeping { how: Pausing::Lasting(how), cost: lasting(how) }).to_vec();
    costs.push(Keeping { how: Pausing::Pings(2), cost: pings(2) });
    let before = short.write * forecast.growth + (within + beyond) * compacted;
    costs.push(Keeping { how: Pausing::CompactedBefore, cost: before });
    costs
}

/// Requests over which something that was cleared would have been carried.
const HORIZON: f64 = 30.0;

/// For how long marks are to last, and why; none where marks do not decide it.
pub(crate) fn cheapest_lifetime(
    state: &Snapshot,
    card: &Card,
    prefix: f64,
    thrift: Thrift,
) -> Option<(CacheLifetime, String)> {
    if card.caching != Caching::Marks {
        return None;
    }
    let forecast = Forecast::of(&state.rhythm);
    // Half way between one compaction and the next.
    let size = prefix + fitted::COMPACTED_TOKENS + forecast.growth * HORIZON / 2.0;
    let costs = keep_costs(card, prefix, size, &forecast, thrift);
    let lasting = costs.into_iter().filter_map(|keeping| match keeping.how {
        Pausing::Lasting(lifetime) => Some((lifetime, keeping.cost)),
        Pausing::Pings(_) | Pausing::CompactedBefore => None,
    });
    let (lifetime, _) = lasting.min_by(|one, other| one.1.total_cmp(&other.1))?;
    let what = match lifetime {
        CacheLifetime::Minutes5 => "five minutes",
        CacheLifetime::Hour1 => "an hour",
        CacheLifetime::Hour1ThenMinutes5 => "an hour before the messages and five minutes in them",
    };
    let percent = |share: f64| (1_000.0 * share).round() / 10.0;
    let reason = format!(
        "{what}, the cheapest where {} % of the pauses are over five minutes and {} % over an hour",
        percent(forecast.pause_within_an_hour() + forecast.pause_beyond_an_hour()),
        percent(forecast.pause_beyond_an_hour()),
    );
    Some((lifetime, reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pal_model::{Cards, Rhythm};

    fn chosen(model: &str, pauses: [u64; 4]) -> CacheLifetime {
        let card = Cards::shipped().find(model).card;
        let state = Snapshot { rhythm: Rhythm { pauses, ..Rhythm::default() }, ..Snapshot::default() };
        cheapest_lifetime(&state, &card, 30_000.0, Thrift::STANDARD).unwrap().0
    }

    #[test]
    fn marks_last_as_long_as_the_pauses_of_the_session_make_worth_it() {
        // Never a pause: nothing is worth the higher price of an hour.
        assert_eq!(chosen("claude-opus-5", [20_000, 0, 0, 0]), CacheLifetime::Minutes5);
        // As sessions usually are.
        assert_eq!(chosen("claude-opus-5", [0; 4]), CacheLifetime::Hour1ThenMinutes5);
        // A pause of ten minutes every ten requests.
        assert_eq!(chosen("claude-opus-5", [180, 20, 0, 0]), CacheLifetime::Hour1);
    }

    #[test]
    fn where_the_provider_decides_there_is_nothing_to_choose() {
        let cards = Cards::shipped();
        let card = Card { caching: Caching::Automatic, ..cards.find("claude-opus-5").card };
        assert!(cheapest_lifetime(&Snapshot::default(), &card, 1.0, Thrift::STANDARD).is_none());
    }
}
