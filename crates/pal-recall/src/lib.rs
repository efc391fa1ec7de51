//! Full-text search over everything said in the sessions of a project.
//!
//! A [`Recall`] indexes all sessions in a project's directory: messages of users, models and tools, the logs of
//! subagents, and texts too long for a log. The index is one file beside the sessions; an update reads only what the
//! logs have grown by, and several processes may use it at once. It stores positions, and passages are read from their
//! source, so they are exact and a corrupt index can be rebuilt.
//!
//! A damaged log does not affect the others: lines that are not entries are skipped, and a torn last line, or one that
//! is still being written, is read again by the next update.
//!
//! ```
//! use pal_model::{EntryDraft, IdSource, MessageOrigin, Timestamp};
//! use pal_recall::{Recall, RecallQuery};
//!
//! let project = tempfile::tempdir().unwrap();
//! let session = project.path().join("sessions/one");
//! std::fs::create_dir_all(&session).unwrap();
//! let now = Timestamp::from_milliseconds(1_800_000_000_000);
//! let mut log = pal_store::Log::create(&pal_store::log_path(&session), IdSource::seeded(1)).unwrap();
//! log.append(EntryDraft::user(MessageOrigin::Person, "\"The port is 4010.\""), now).unwrap();
//!
//! let mut recall = Recall::of_project(project.path());
//! recall.update(&mut |_| true).unwrap();
//! let query =
//!     RecallQuery { query: "which port", session: None, limit: 5, context_lines: 2, now, caller: None };
//! let found = recall.search(&query).unwrap();
//! assert_eq!(found.passages[0].passage.text, "The port is 4010.");
//! ```

mod entry_parts;
mod index_update;
mod passage;
mod passage_search;
mod query_dates;
mod quoted_phrases;
mod recall_answer;
mod session_description;
mod session_files;
mod source_files;
mod text_chunks;
mod unindexed_search;

pub use entry_parts::{EntryPart, PartSpeaker, entry_parts};
pub use index_update::{IndexProgress, IndexUpdate};
pub use passage::Passage;
pub use passage_search::{
    EntryWindow, NearbyText, NearbyTexts, PassageHit, RecallCaller, RecallQuery, RecallResults,
    RecalledEntry, search_all,
};
pub use recall_answer::{RecallRequest, RecallScope, answer_request};
pub use session_description::SessionDescription;
pub use session_files::project_and_session;

pub use pal_search::SearchError;

use std::path::{Path, PathBuf};

use pal_search::WindowIndex;
use session_files::{SessionFilter, sessions_folder};

/// Index file in the project's directory.
const INDEX: &str = "recall.db";

/// Full-text index over the sessions of a project.
pub struct Recall {
    /// Directory that contains the session directories.
    sessions: PathBuf,
    /// Restriction to one session.
    filter: Option<SessionFilter>,
    /// Path of the index; none for an index in memory.
    kept: Option<PathBuf>,
    index: Option<WindowIndex>,
}

impl Recall {
    /// Covers all sessions of a project, by its directory under the home of pal. Reads and creates nothing
    /// yet.
    pub fn of_project(folder: &Path) -> Recall {
        Recall {
            sessions: sessions_folder(folder),
            filter: None,
            kept: Some(folder.join(INDEX)),
            index: None,
        }
    }

    /// Covers one session by the path of its log; the index is kept in memory.
    pub fn of_log(log: &Path) -> Recall {
        let folder = log.parent().unwrap_or(log);
        let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
        let only = name(folder).zip(name(log)).map(|(session, log)| SessionFilter { session, log });
        Recall {
            sessions: folder.parent().unwrap_or(folder).to_owned(),
            filter: only,
            kept: None,
            index: None,
        }
    }

    /// Runs `work` on the index. If the index turns out to be corrupt, rebuilds it and runs `work` again.
    fn with_index<T>(
        &mut self,
        mut work: impl FnMut(&mut WindowIndex, &Path) -> Result<T, SearchError>,
    ) -> Result<T, SearchError> {
        match self.opened().and_then(|(index, sessions)| work(index, sessions)) {
            Err(error) if error.is_corrupt() => {
                self.index = None;
                if let Some(kept) = &self.kept {
                    WindowIndex::discard(kept);
                }
                self.opened().and_then(|(index, sessions)| work(index, sessions))
            }
            done => done,
        }
    }

    fn opened(&mut self) -> Result<(&mut WindowIndex, &Path), SearchError> {
        let index = match self.index.take() {
            Some(index) => index,
            None => match &self.kept {
                // In a read-only directory, search with an index in memory.
                Some(path) if path.parent().is_some_and(Path::is_dir) => match WindowIndex::open(path) {
                    Ok(index) => index,
                    Err(error) if error.is_busy() => return Err(error),
                    Err(_) => WindowIndex::in_memory()?,
                },
                _ => WindowIndex::in_memory()?,
            },
        };
        Ok((self.index.insert(index), &self.sessions))
    }
}
