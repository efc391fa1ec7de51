//! What was ever said in the sessions of a project, found word for word.
//!
//! A [`Recall`] is the full-text index over all sessions in the folder of a project: what people, models and tools said, the logs
//! of agents that a session sent, and what was too long for a log and went to a file of its own. It stands in one file beside the
//! sessions and is brought up to date by reading what the logs have grown by, and nothing else. Many processes may use it at
//! once. It is never the only place of anything: it says where something stands, and the text itself is read there. So a passage
//! is exact, and an index that is spoilt is made anew.
//!
//! No log, however broken, keeps the others from being found: lines that are no entries are passed over, and a last line
//! that is torn, or just being written, is looked at again the next time.
//!
//! ```
//! use pal_model::{Draft, IdSource, Origin, Timestamp};
//! use pal_recall::{Recall, Wanted};
//!
//! let project = tempfile::tempdir().unwrap();
//! let session = project.path().join("sessions/one");
//! std::fs::create_dir_all(&session).unwrap();
//! let now = Timestamp::from_milliseconds(1_800_000_000_000);
//! let mut log = pal_store::Log::create(&pal_store::log_path(&session), IdSource::seeded(1)).unwrap();
//! log.append(Draft::user(Origin::Person, "\"The port is 4010.\""), now).unwrap();
//!
//! let mut recall = Recall::of_project(project.path());
//! recall.update(&mut |_| true).unwrap();
//! let found = recall.search(&Wanted { query: "which port", session: None, most: 5, around: 2, now }).unwrap();
//! assert_eq!(found.places[0].passage.text, "The port is 4010.");
//! ```

mod about;
mod chunks;
mod finding;
mod passage;
mod places;
mod said;
mod telling;
mod unindexed;
mod updating;

pub use about::About;
pub use finding::{Entries, Found, Place, Shown, Wanted};
pub use passage::Passage;
pub use places::{project_and_session, sessions_folder};
pub use said::{Said, Who, said};
pub use telling::{Asked, Scope, answer};
pub use updating::{Progress, Updated};

pub use pal_search::SearchError;

use std::path::{Path, PathBuf};

use pal_search::Index;
use places::Only;

/// The file of the index in the folder of a project.
const INDEX: &str = "recall.db";

/// The fields of the index: what was said, and what was returned, quoted or put in.
const FIELDS: usize = 2;

/// The index over the sessions of a project.
pub struct Recall {
    /// The folder with a folder for each session.
    sessions: PathBuf,
    /// The only one of them that counts.
    only: Option<Only>,
    /// Where the index is kept; none if it cannot be, or is not to be.
    kept: Option<PathBuf>,
    index: Option<Index>,
}

impl Recall {
    /// All sessions of a project, by its folder under our home. Nothing is read or made yet.
    pub fn of_project(folder: &Path) -> Recall {
        Recall { sessions: sessions_folder(folder), only: None, kept: Some(folder.join(INDEX)), index: None }
    }

    /// One session by its log, wherever that is: the index is made for this process alone.
    pub fn of_log(log: &Path) -> Recall {
        let folder = log.parent().unwrap_or(log);
        let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
        let only = name(folder).zip(name(log)).map(|(session, log)| Only { session, log });
        Recall { sessions: folder.parent().unwrap_or(folder).to_owned(), only, kept: None, index: None }
    }

    /// Does something with the index. One that is found to be spoilt while it is used is made anew, and it is done again.
    fn with_index<T>(
        &mut self,
        mut work: impl FnMut(&mut Index, &Path) -> Result<T, SearchError>,
    ) -> Result<T, SearchError> {
        match self.opened().and_then(|(index, sessions)| work(index, sessions)) {
            Err(error) if error.is_spoilt() => {
                self.index = None;
                if let Some(kept) = &self.kept {
                    Index::discard(kept);
                }
                self.opened().and_then(|(index, sessions)| work(index, sessions))
            }
            done => done,
        }
    }

    fn opened(&mut self) -> Result<(&mut Index, &Path), SearchError> {
        let index = match self.index.take() {
            Some(index) => index,
            None => match &self.kept {
                // A folder that cannot be written to is no reason to find nothing.
                Some(path) if path.parent().is_some_and(Path::is_dir) => match Index::open(path, FIELDS) {
                    Ok(index) => index,
                    Err(error) if error.is_busy() => return Err(error),
                    Err(_) => Index::in_memory(FIELDS)?,
                },
                _ => Index::in_memory(FIELDS)?,
            },
        };
        Ok((self.index.insert(index), &self.sessions))
    }
}
