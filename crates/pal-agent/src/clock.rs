//! The time and chance of this process: the one place of the agent that asks for them.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pal_model::{IdSource, Timestamp};

/// A clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Clock {
    /// How much it is ahead of the machine's, for whoever wants to see what happens after a pause without making one.
    pub ahead: Duration,
}

impl Clock {
    /// The time.
    pub fn now(self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() + self.ahead;
        Timestamp::from_milliseconds(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

/// Ids that no other process makes.
pub(crate) fn ids() -> IdSource {
    IdSource::seeded(RandomState::new().hash_one(std::process::id()))
}
