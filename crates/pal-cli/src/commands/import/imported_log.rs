//! Storing an imported session: a new log, or more of a log that an earlier import wrote.

use std::path::{Path, PathBuf};

use pal_model::{EntryBody, EntryId, LogEntry, SharedText};

use crate::failure::Failure;
use crate::loaded_session::import_copy;
use crate::settings::Settings;

/// Outcome of storing an import.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum StoredImport {
    /// A new log.
    New(PathBuf),
    /// The log has all of the session already.
    Unchanged(PathBuf),
    /// The session has grown: this many entries were added.
    Extended { log: PathBuf, entries: usize },
    /// The earlier log differs or was continued in pal, so the session was stored beside it.
    Beside { log: PathBuf, earlier: PathBuf },
    /// Nothing was stored (`--dry-run`).
    Nothing,
}

impl StoredImport {
    /// Path of the log.
    pub(super) fn log(&self) -> Option<&Path> {
        match self {
            StoredImport::New(log)
            | StoredImport::Unchanged(log)
            | StoredImport::Extended { log, .. }
            | StoredImport::Beside { log, .. } => Some(log),
            StoredImport::Nothing => None,
        }
    }

    /// Returns true if something was written.
    pub(super) fn is_written(&self) -> bool {
        !matches!(self, StoredImport::Unchanged(_) | StoredImport::Nothing)
    }
}

/// A session to store: its file, the bytes of it, its log and the directory it worked in.
pub(super) struct ImportToStore<'a> {
    pub(super) file: &'a Path,
    pub(super) source: &'a [u8],
    pub(super) log: &'a SharedText,
    pub(super) entries: &'a [LogEntry],
    pub(super) project: &'a Path,
}

impl ImportToStore<'_> {
    pub(super) fn store(&self, settings: &Settings) -> Result<StoredImport, Failure> {
        let path = self.log_path(first_id(self.entries), settings)?;
        if !path.exists() {
            write_new(&path, self.log)?;
            return Ok(StoredImport::New(path));
        }
        let earlier = std::fs::read_to_string(&path).map_err(|error| Failure::of_file(&path, &error))?;
        if earlier.starts_with(&**self.log) {
            return Ok(StoredImport::Unchanged(path));
        }
        match relate(&earlier, self.entries) {
            LogRelation::Older { entries } => {
                pal_store::extend_log(&path, self.log).map_err(|error| {
                    Failure::with_hint(error.to_string(), "close that session, then import the file again")
                })?;
                Ok(StoredImport::Extended { log: path, entries: self.entries.len().saturating_sub(entries) })
            }
            LogRelation::Newer => Ok(StoredImport::Unchanged(path)),
            LogRelation::Other => self.store_beside(path, settings),
        }
    }

    /// Stores the session as a copy with ids of its own.
    fn store_beside(&self, earlier: PathBuf, settings: &Settings) -> Result<StoredImport, Failure> {
        let copy = import_copy(self.file, self.source, settings)?;
        let first = copy.log.lines().next().and_then(|line| LogEntry::parse(SharedText::from(line)).ok());
        let log = self.log_path(first.map_or(EntryId::from_bits(0), |entry| entry.id), settings)?;
        if log.exists() {
            return Ok(StoredImport::Unchanged(log));
        }
        write_new(&log, &copy.log)?;
        Ok(StoredImport::Beside { log, earlier })
    }

    fn log_path(&self, session: EntryId, settings: &Settings) -> Result<PathBuf, Failure> {
        let home = settings.home.as_ref().ok_or_else(|| {
            Failure::with_hint(
                "no home directory is known to store sessions in",
                "set PAL_HOME, or use --dry-run",
            )
        })?;
        Ok(pal_store::log_path(&pal_store::session_directory(home, self.project, session)))
    }
}

fn first_id(entries: &[LogEntry]) -> EntryId {
    entries.first().map_or(EntryId::from_bits(0), |entry| entry.id)
}

fn write_new(path: &Path, log: &str) -> Result<(), Failure> {
    let failed = |error: pal_store::FileError| Failure::new(error.to_string());
    pal_store::create_private_directory(path.parent().unwrap_or(path)).map_err(failed)?;
    pal_store::write_new_log(path, log).map_err(failed)
}

/// Relation of an earlier log to a new import of the same session.
#[derive(PartialEq, Eq, Debug)]
enum LogRelation {
    /// It has the start of the messages, and nothing else.
    Older { entries: usize },
    /// It has all messages, and more.
    Newer,
    /// It differs, or it was continued in pal.
    Other,
}

/// Compares what was said, not ids: the tools and the title before it change while a session grows.
fn relate(earlier: &str, entries: &[LogEntry]) -> LogRelation {
    let mut old = Vec::new();
    let mut is_own = false;
    for line in earlier.lines() {
        // Only pal itself writes checksums; an import has none.
        is_own |=
            line.ends_with("\"}") && line.rfind(",\"checksum\":\"").is_some_and(|at| line.len() - at == 31);
        match LogEntry::parse(SharedText::from(line)) {
            Ok(entry) => old.push(entry),
            Err(_) => return LogRelation::Other,
        }
    }
    let (before, now) = (said(&old), said(entries));
    if now.starts_with(&before) && !is_own {
        LogRelation::Older { entries: old.len() }
    } else if before.starts_with(&now) {
        LogRelation::Newer
    } else {
        LogRelation::Other
    }
}

/// Raw content of all messages, in order.
fn said(entries: &[LogEntry]) -> Vec<&str> {
    let content = |entry: &'_ LogEntry| matches!(&entry.body, EntryBody::User(_) | EntryBody::Assistant(_));
    let raw = |entry: &LogEntry| -> Option<(usize, usize)> {
        let at = entry.line.find("\"content\":")?;
        Some((at, entry.line.len()))
    };
    entries
        .iter()
        .filter(|entry| content(entry))
        .filter_map(|entry| raw(entry).map(|(from, to)| &entry.line[from..to]))
        .collect()
}
