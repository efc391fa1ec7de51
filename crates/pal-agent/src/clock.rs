//! The time and chance of this process: the one place of the agent that asks for them.

use std::hash::{BuildHasher, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

use pal_model::{IdSource, Timestamp};

/// The time.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_milliseconds(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Ids that no other process makes.
pub(crate) fn ids() -> IdSource {
    IdSource::seeded(RandomState::new().hash_one(std::process::id()))
}
