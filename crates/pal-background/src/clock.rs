//! Time and randomness: the only module of the agent and its background work that reads them.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pal_model::{IdSource, Timestamp};

/// A clock with an offset.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Clock {
    /// Offset to the machine's clock, to simulate pauses.
    pub ahead: Duration,
}

impl Clock {
    /// The time.
    pub fn now(self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() + self.ahead;
        Timestamp::from_milliseconds(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

/// Returns a source of ids that are unique among processes.
pub fn random_ids() -> IdSource {
    IdSource::seeded(RandomState::new().hash_one(std::process::id()))
}
