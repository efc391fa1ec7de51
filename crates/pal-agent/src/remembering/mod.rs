//! Memory inside of a session: its index at the beginning, what is written to it, and what of it fits as the session goes on
//! (§6.6, §7.3). What is on disk, and how it is kept, is `pal-memory`'s.

mod index;
mod keeper;
mod prefetch;

use std::path::{Path, PathBuf};

use pal_engine::{EngineError, Session};
use pal_memory::Place;
use pal_model::{Body, Entry, Origin, Timestamp};
use pal_prompt::memory_note;
use pal_tools::Workspace;

pub use index::memory_index;
pub(crate) use keeper::{MemoryKeeper, Writing};
use prefetch::{Fitting, Prefetch};

/// What attachments are called that hand over a memory.
const MEMORY: &str = "memory";

/// Most memories that are handed over at once.
const FILES_MOST: usize = 5;

/// Most bytes of one.
const FILE_BYTES_MOST: usize = 8_000;

/// What a session remembers.
pub(crate) struct Remembering {
    /// Where it is kept.
    pub(crate) place: Place,
    /// Which answer of the model memories that are written come from.
    writing: Writing,
    prefetch: Prefetch,
    /// Most bytes of memories that are handed over until a compaction.
    bytes_max: u64,
    session: String,
    /// What the user said and nobody has looked up yet.
    said: Option<String>,
    /// Whether tools ran since the user said something.
    tools_ran: bool,
}

impl Remembering {
    pub(crate) fn new(place: Place, writing: Writing, bytes_max: u64, session: &str) -> Remembering {
        let prefetch = Prefetch::new(place.clone());
        let session = session.to_owned();
        Remembering { place, writing, prefetch, bytes_max, session, said: None, tools_ran: false }
    }

    /// A message is in the log.
    pub(crate) fn heard(&mut self, entry: &Entry) {
        let Body::User(user) = &entry.body else { return };
        match user.origin {
            Origin::Person => {
                let texts = user.content.blocks().iter().filter_map(|block| block.string("text"));
                self.said = Some(texts.collect::<Vec<_>>().join("\n"));
                self.tools_ran = false;
            }
            Origin::Tool => self.tools_ran = true,
            _ => {}
        }
    }

    /// An answer of the model is in the log: what its calls write comes from it.
    pub(crate) fn answered(&self, entry: &Entry) {
        self.writing.comes_from(entry.id);
    }

    /// Nobody wants what is being looked up any more.
    pub(crate) fn give_up(&mut self) {
        self.said = None;
        self.prefetch.give_up();
    }

    /// The model is about to be asked: what the user said is looked up while it answers, and what was found is handed over
    /// once tools ran, if it was found by then. Once for everything that the user says.
    pub(crate) fn before_request(
        &mut self,
        session: &mut Session,
        workspace: &Workspace,
        now: Timestamp,
    ) -> Result<(), EngineError> {
        if let Some(words) = self.said.take() {
            let known = session.view().state().prefetched.keys().map(PathBuf::from).collect();
            self.prefetch.begin(words, known, now);
            return Ok(());
        }
        match self.tools_ran.then(|| self.prefetch.found()).flatten() {
            Some(found) => self.hand_over(found, session, workspace, now),
            None => Ok(()),
        }
    }

    fn hand_over(
        &mut self,
        found: Vec<Fitting>,
        session: &mut Session,
        workspace: &Workspace,
        now: Timestamp,
    ) -> Result<(), EngineError> {
        self.prefetch.give_up();
        let mut used = Vec::new();
        for fitting in found {
            let path = fitting.path.display().to_string();
            let handed = &session.view().state().prefetched;
            let is_known = handed.contains_key(&path) || workspace.seen(&fitting.path).is_some();
            let left = self.bytes_max.saturating_sub(handed.values().sum());
            let text = fitting.note();
            if is_known || text.len() as u64 > left {
                continue;
            }
            session.attach_file(MEMORY, &path, &text, now)?;
            used.push(fitting);
            if used.len() == FILES_MOST {
                break;
            }
        }
        self.prefetch.book(used, &self.session, now);
        Ok(())
    }

    /// Hands over a memory that the user has just kept themselves.
    pub(crate) fn hand_over_new(
        &mut self,
        session: &mut Session,
        file: &Path,
        now: Timestamp,
    ) -> Result<(), EngineError> {
        let Ok(file) = file.canonicalize() else { return Ok(()) };
        let Ok(text) = std::fs::read_to_string(&file) else { return Ok(()) };
        let path = file.display().to_string();
        let text =
            memory_note(&path, "The user has just kept this memory. It counts from now on.", &text, "");
        session.attach_file(MEMORY, &path, &text, now).map(|_| ())
    }

    /// Waits until what was used is in the books.
    pub(crate) fn end(&mut self) {
        self.prefetch.end();
    }
}

impl Fitting {
    /// What the model reads of it.
    fn note(&self) -> String {
        let path = self.path.display().to_string();
        let day: String = self.changed.to_string().chars().take(10).collect();
        let why = format!(
            "From what is remembered of earlier sessions, last changed {day}; it may or may not matter now. Check what it says \
             before you rely on it."
        );
        let mut end = self.text.len().min(FILE_BYTES_MOST);
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        let rest = if end < self.text.len() { "Cut here. Read the file for the rest." } else { "" };
        memory_note(&path, &why, &self.text[..end], rest)
    }
}
