//! Sessions that the retention settings no longer keep.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use pal_model::Timestamp;
use pal_model::text::count_noun;
use pal_report::stored_sessions;
use pal_settings::SessionRetention;
use pal_store::{TrashedSession, delete_trashed, list_trash, remove_session};

use crate::failure::Failure;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Sessions to move to the trash, and sessions in the trash to delete.
pub(super) struct OldSessions {
    inactive: Vec<PathBuf>,
    expired: Vec<TrashedSession>,
}

/// What was done, by session id.
#[derive(Default)]
pub(super) struct RetentionResult {
    pub(super) trashed: Vec<String>,
    pub(super) deleted: Vec<String>,
    /// Sessions that were left as they are, with the reason.
    pub(super) failed: Vec<String>,
}

impl OldSessions {
    pub(super) fn find(home: &Path, retention: SessionRetention, now: Timestamp) -> OldSessions {
        let is_older =
            |at: Timestamp, days: u64| at.after(DAY.saturating_mul(days.min(1 << 20) as u32)) <= now;
        let expired = list_trash(home);
        let expired =
            expired.into_iter().filter(|trashed| is_older(trashed.removed, retention.trash_days)).collect();
        let Some(days) = retention.inactive_days else {
            return OldSessions { inactive: Vec::new(), expired };
        };
        let sessions = stored_sessions::list_sessions(home).into_iter();
        let inactive = sessions.filter(|stored| written(&stored.log).is_some_and(|at| is_older(at, days)));
        let inactive = inactive.filter_map(|stored| stored.log.parent().map(Path::to_owned)).collect();
        OldSessions { inactive, expired }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.inactive.is_empty() && self.expired.is_empty()
    }

    /// Ids of inactive sessions, and of those in the trash.
    pub(super) fn ids(&self) -> (Vec<String>, Vec<String>) {
        (
            self.inactive.iter().map(|session| id_of(session)).collect(),
            self.expired.iter().map(|trashed| trashed.id.clone()).collect(),
        )
    }

    pub(super) fn write_plan(&self, retention: SessionRetention, out: &mut dyn Write) -> Result<(), Failure> {
        if !self.inactive.is_empty() {
            let days = retention.inactive_days.unwrap_or(0);
            let sessions = count_noun(self.inactive.len(), "session");
            writeln!(out, "This moves {sessions} without activity for {days} days to the trash.")?;
        }
        if !self.expired.is_empty() {
            let sessions = count_noun(self.expired.len(), "session");
            writeln!(
                out,
                "This deletes {sessions} in the trash for {} days for good.",
                retention.trash_days
            )?;
        }
        Ok(())
    }

    pub(super) fn remove(self, home: &Path, now: Timestamp) -> RetentionResult {
        let mut result = RetentionResult::default();
        for session in &self.inactive {
            match remove_session(home, session, now) {
                Ok(trashed) => result.trashed.push(trashed.id),
                Err(error) => result.failed.push(format!("{}: {error}", id_of(session))),
            }
        }
        for trashed in &self.expired {
            match delete_trashed(trashed) {
                Ok(()) => result.deleted.push(trashed.id.clone()),
                Err(error) => result.failed.push(format!("{}: {error}", trashed.id)),
            }
        }
        result
    }
}

impl RetentionResult {
    pub(super) fn write_result(&self, out: &mut dyn Write) -> Result<(), Failure> {
        if !self.trashed.is_empty() {
            let sessions = count_noun(self.trashed.len(), "session");
            writeln!(out, "Moved {sessions} to the trash; `pal rm --undo ID` restores one.")?;
        }
        if !self.deleted.is_empty() {
            writeln!(out, "Deleted {} for good.", count_noun(self.deleted.len(), "session"))?;
        }
        for failed in &self.failed {
            writeln!(out, "Kept {failed}")?;
        }
        Ok(())
    }
}

fn id_of(session: &Path) -> String {
    session.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Time of the last write to a log.
fn written(log: &Path) -> Option<Timestamp> {
    let modified = log.metadata().and_then(|metadata| metadata.modified()).ok()?;
    let since = modified.duration_since(UNIX_EPOCH).ok()?;
    Some(Timestamp::from_milliseconds(i64::try_from(since.as_millis()).ok()?))
}
