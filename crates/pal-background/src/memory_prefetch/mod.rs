//! Memory inside of a session: its index in the prompt, writes, and matching memories prefetched for the user's
//! messages (§6.6, §7.3). The files belong to `pal-memory`.

mod memory_keeper;
mod memory_lookup;
mod prompt_index;

use std::path::{Path, PathBuf};

use pal_engine::{EngineError, Session};
use pal_memory::MemoryLocation;
use pal_model::{EntryBody, LogEntry, MessageOrigin, Timestamp};
use pal_prompt::render_memory_note;
use pal_tools::Workspace;

pub use memory_keeper::{MemoryKeeper, WriteOrigin};
use memory_lookup::{MemoryLookup, MemoryMatch};
pub use prompt_index::memory_index;

/// Attachment kind of a memory.
const MEMORY: &str = "memory";

/// Maximum number of memories attached at once.
const FILES_MAX: usize = 5;

/// Maximum bytes of one memory.
const FILE_BYTES_MAX: usize = 8_000;

/// Memory prefetch of a session.
pub struct MemoryPrefetch {
    /// Memory location.
    pub place: MemoryLocation,
    /// Response that memory writes come from.
    writing: WriteOrigin,
    prefetch: MemoryLookup,
    /// Maximum bytes of attached memories between two compactions.
    bytes_max: u64,
    session: String,
    /// User message that has not been searched for yet.
    said: Option<String>,
    /// Whether tools ran since the last user message.
    tools_ran: bool,
}

impl MemoryPrefetch {
    /// Creates the prefetch of a session.
    pub fn new(place: MemoryLocation, writing: WriteOrigin, bytes_max: u64, session: &str) -> MemoryPrefetch {
        let prefetch = MemoryLookup::new(place.clone());
        let session = session.to_owned();
        MemoryPrefetch { place, writing, prefetch, bytes_max, session, said: None, tools_ran: false }
    }

    /// Handles a new message of the log.
    pub fn heard(&mut self, entry: &LogEntry) {
        let EntryBody::User(user) = &entry.body else { return };
        match user.origin {
            MessageOrigin::Person => {
                let texts = user.content.blocks().iter().filter_map(|block| block.string("text"));
                self.said = Some(texts.collect::<Vec<_>>().join("\n"));
                self.tools_ran = false;
            }
            MessageOrigin::Tool => self.tools_ran = true,
            _ => {}
        }
    }

    /// Sets the origin of memory writes to a new response.
    pub fn answered(&self, entry: &LogEntry) {
        self.writing.comes_from(entry.id);
    }

    /// Drops the running search.
    pub fn give_up(&mut self) {
        self.said = None;
        self.prefetch.give_up();
    }

    /// Starts a search for a new user message; once tools ran, attaches the results, once per user message.
    pub fn before_request(
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
        found: Vec<MemoryMatch>,
        session: &mut Session,
        workspace: &Workspace,
        now: Timestamp,
    ) -> Result<(), EngineError> {
        self.prefetch.give_up();
        let mut used = Vec::new();
        for fitting in found {
            let path = fitting.path.display().to_string();
            let handed = &session.view().state().prefetched;
            let is_known = handed.contains_key(&path) || workspace.seen_file(&fitting.path).is_some();
            let left = self.bytes_max.saturating_sub(handed.values().sum());
            let text = fitting.note();
            if is_known || text.len() as u64 > left {
                continue;
            }
            session.attach_file(MEMORY, &path, &text, now)?;
            used.push(fitting);
            if used.len() == FILES_MAX {
                break;
            }
        }
        self.prefetch.book(used, &self.session, now);
        Ok(())
    }

    /// Attaches a memory that the user has just saved.
    pub fn deliver_new(
        &mut self,
        session: &mut Session,
        file: &Path,
        now: Timestamp,
    ) -> Result<(), EngineError> {
        let Ok(file) = file.canonicalize() else { return Ok(()) };
        let Ok(text) = std::fs::read_to_string(&file) else { return Ok(()) };
        let path = file.display().to_string();
        let text = render_memory_note(
            &path,
            "The user has just kept this memory. It counts from now on.",
            &text,
            "",
        );
        session.attach_file(MEMORY, &path, &text, now).map(|_| ())
    }

    /// Waits until the use of memories is recorded.
    pub fn end(&mut self) {
        self.prefetch.end();
    }
}

impl MemoryMatch {
    /// Text of a memory for the model.
    fn note(&self) -> String {
        let path = self.path.display().to_string();
        let day: String = self.changed.to_string().chars().take(10).collect();
        let why = format!(
            "From what is remembered of earlier sessions, last changed {day}; it may or may not matter now. Check what it says \
             before you rely on it."
        );
        let mut end = self.text.len().min(FILE_BYTES_MAX);
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        let rest = if end < self.text.len() { "Cut here. Read the file for the rest." } else { "" };
        render_memory_note(&path, &why, &self.text[..end], rest)
    }
}
