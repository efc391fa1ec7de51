//! How a file tells that it changed, without being read.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pal_model::Timestamp;
use rustix::fs::Stat;
use serde::{Deserialize, Serialize};

/// A file that was changed so shortly before it was read may change again without its times telling.
const SETTLED: Duration = Duration::from_millis(50);

/// What changes when a file does: its times, its size and which file it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(crate) struct Stamp(i64, i64, u64, u64);

impl Stamp {
    pub(super) fn of(stat: &Stat) -> Stamp {
        let nanoseconds =
            |seconds: i64, part: u64| seconds.saturating_mul(1_000_000_000).saturating_add(part as i64);
        Stamp(
            nanoseconds(stat.st_mtime, stat.st_mtime_nsec),
            nanoseconds(stat.st_ctime, stat.st_ctime_nsec),
            stat.st_size as u64,
            stat.st_ino,
        )
    }

    /// When the file was changed last.
    pub(crate) fn modified(self) -> Timestamp {
        Timestamp::from_milliseconds(self.0 / 1_000_000)
    }

    /// Its size.
    pub(crate) fn bytes(self) -> u64 {
        self.2
    }

    /// Whether a file that is read now cannot change later without another stamp.
    pub(crate) fn is_settled(self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let settled = now.saturating_sub(SETTLED).as_nanos();
        let last = u128::try_from(self.0.max(self.1)).unwrap_or(u128::MAX);
        last < settled
    }
}
