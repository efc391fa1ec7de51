//! Change detection for files without reading them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pal_model::Timestamp;
use rustix::fs::Stat;
use serde::{Deserialize, Serialize};

/// A file modified this recently may change again without a new time stamp.
const SETTLE_TIME: Duration = Duration::from_millis(50);

/// Modification and change time in nanoseconds, size and inode.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(crate) struct FileStamp(i64, i64, u64, u64);

impl FileStamp {
    pub(super) fn of(stat: &Stat) -> FileStamp {
        let nanoseconds =
            |seconds: i64, part: u64| seconds.saturating_mul(1_000_000_000).saturating_add(part as i64);
        FileStamp(
            nanoseconds(stat.st_mtime, stat.st_mtime_nsec),
            nanoseconds(stat.st_ctime, stat.st_ctime_nsec),
            stat.st_size as u64,
            stat.st_ino,
        )
    }

    /// Modification time.
    pub(crate) fn modified(self) -> Timestamp {
        Timestamp::from_milliseconds(self.0 / 1_000_000)
    }

    /// Size in bytes.
    pub(crate) fn bytes(self) -> u64 {
        self.2
    }

    /// Reports whether any later change is sure to give another stamp.
    pub(crate) fn is_settled(self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let settled = now.saturating_sub(SETTLE_TIME).as_nanos();
        let last = u128::try_from(self.0.max(self.1)).unwrap_or(u128::MAX);
        last < settled
    }
}
