//! Timestamps: milliseconds since the epoch, written as RFC 3339 in UTC. This crate reads no clock.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A point in time with millisecond precision, UTC.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Timestamp(i64);

/// Error of parsing text that is not an RFC 3339 time.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not an RFC 3339 time")]
pub struct TimeError(String);

impl Timestamp {
    /// Creates a timestamp from milliseconds since 1970-01-01T00:00:00Z, clamped to the years 1 to 9999.
    pub fn from_milliseconds(milliseconds: i64) -> Timestamp {
        const YEAR_1: i64 = -62_135_596_800_000;
        const YEAR_9999: i64 = 253_370_764_800_000;
        Timestamp(milliseconds.clamp(YEAR_1, YEAR_9999))
    }

    /// Adds a duration, saturating at the end of year 9999.
    #[must_use]
    pub fn after(self, by: Duration) -> Timestamp {
        let by = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        Timestamp::from_milliseconds(self.0.saturating_add(by))
    }

    /// Returns the milliseconds since 1970-01-01T00:00:00Z.
    pub fn milliseconds(self) -> i64 {
        self.0
    }
}

impl FromStr for Timestamp {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Timestamp, TimeError> {
        let time: jiff::Timestamp = text.parse().map_err(|_| TimeError(text.chars().take(40).collect()))?;
        Ok(Timestamp::from_milliseconds(time.as_millisecond()))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = jiff::Timestamp::from_millisecond(self.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        write!(formatter, "{time:.3}")
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_milliseconds() {
        let time: Timestamp = "2026-11-15T09:00:00.123Z".parse().unwrap();
        assert_eq!(time.to_string(), "2026-11-15T09:00:00.123Z");
        let time: Timestamp = "2026-11-15T10:00:00+01:00".parse().unwrap();
        assert_eq!(time.to_string(), "2026-11-15T09:00:00.000Z");
        assert!("yesterday".parse::<Timestamp>().is_err());
        for extreme in [i64::MIN, i64::MAX] {
            let time = Timestamp::from_milliseconds(extreme);
            assert_eq!(time.to_string().parse::<Timestamp>().unwrap(), time);
            assert!(time.after(Duration::MAX) >= time);
        }
    }
}
