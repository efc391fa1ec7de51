//! Where the cache was lost: reads that fell, and why.

use pal_model::Timestamp;
use pal_view::CacheLifetime;
use serde::Serialize;
use smol_str::SmolStr;

/// A fall of the reads counts from this share of the earlier ones on …
const SHARE_LEAST: f64 = 0.05;
/// … and from so many tokens on.
const TOKENS_LEAST: u64 = 2_000;

/// Reads that fell without an announcement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Break {
    /// Which request of the recording, counted from 1.
    pub request: u64,
    /// Why.
    pub cause: BreakCause,
    /// By how many tokens the reads fell.
    pub tokens: u64,
}

/// Why reads fell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakCause {
    /// Another model was asked.
    Model,
    /// What was cached had expired.
    Idle,
    /// What was sent before is not what is sent now.
    Prefix,
}

/// Compares each request with the one before it.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    previous: Option<Seen>,
    is_announced: bool,
}

/// What is compared of a request.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) request: u64,
    pub(crate) started: Timestamp,
    pub(crate) model: SmolStr,
    pub(crate) lifetime: CacheLifetime,
    pub(crate) read: u64,
}

impl Watch {
    /// Something changed what is sent, on purpose: the next fall is no break.
    pub(crate) fn announce(&mut self) {
        self.is_announced = true;
    }

    /// The break that a request shows, if it shows one.
    pub(crate) fn see(&mut self, now: Seen) -> Option<Break> {
        let is_announced = std::mem::take(&mut self.is_announced);
        let Seen { request, started, read, .. } = now;
        let model = now.model.clone();
        let previous = self.previous.replace(now)?;
        let fell = previous.read.saturating_sub(read);
        if is_announced || fell <= TOKENS_LEAST || fell as f64 <= SHARE_LEAST * previous.read as f64 {
            return None;
        }
        let idle = started.milliseconds() - previous.started.milliseconds();
        let cause = if previous.model != model {
            BreakCause::Model
        } else if idle >= milliseconds(previous.lifetime) {
            BreakCause::Idle
        } else {
            BreakCause::Prefix
        };
        Some(Break { request, cause, tokens: fell })
    }
}

/// How long a lifetime is.
pub(crate) fn milliseconds(lifetime: CacheLifetime) -> i64 {
    match lifetime {
        CacheLifetime::Minutes5 => 5 * 60 * 1_000,
        CacheLifetime::Hour1 => 60 * 60 * 1_000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(request: u64, minute: i64, model: &str, read: u64) -> Seen {
        let started = Timestamp::from_milliseconds(minute * 60_000);
        Seen { request, started, model: model.into(), lifetime: CacheLifetime::Minutes5, read }
    }

    #[test]
    fn a_fall_is_a_break_by_its_first_cause_unless_it_was_announced() {
        let mut watch = Watch::default();
        let cause = |found: Option<Break>| found.map(|found| (found.request, found.cause, found.tokens));
        assert_eq!(cause(watch.see(seen(1, 0, "a", 0))), None);
        assert_eq!(cause(watch.see(seen(2, 1, "a", 50_000))), None);
        assert_eq!(cause(watch.see(seen(3, 2, "a", 48_500))), None, "too few tokens");
        assert_eq!(cause(watch.see(seen(4, 3, "a", 40_000))), Some((4, BreakCause::Prefix, 8_500)));
        assert_eq!(cause(watch.see(seen(5, 9, "a", 0))), Some((5, BreakCause::Idle, 40_000)));
        assert_eq!(cause(watch.see(seen(6, 10, "a", 100_000))), None);
        assert_eq!(cause(watch.see(seen(7, 11, "a", 97_000))), None, "too small a share");
        assert_eq!(cause(watch.see(seen(8, 30, "b", 0))), Some((8, BreakCause::Model, 97_000)));
        assert_eq!(cause(watch.see(seen(9, 31, "b", 60_000))), None);
        watch.announce();
        assert_eq!(cause(watch.see(seen(10, 32, "b", 20_000))), None, "announced");
        assert_eq!(cause(watch.see(seen(11, 33, "b", 0))), Some((11, BreakCause::Prefix, 20_000)));
    }
}
