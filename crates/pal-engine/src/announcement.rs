//! Announcements of tools, skills and agents (§6.5): the text is appended first, then the decision that marks
//! it as announced.

use pal_model::{Content, Decision, EntryDraft, LogEntry, MessageOrigin, Timestamp, escape_into};

use crate::{EngineError, Session};

/// Attachment kind of an announcement in the log.
const ANNOUNCEMENT: &str = "announcement";

/// An announcement, and the decisions that mark it as made.
#[derive(Clone, PartialEq, Debug)]
pub struct PendingAnnouncement {
    /// Text written by this program.
    pub text: String,
    /// Descriptions written by third parties: content that never speaks for the system.
    pub descriptions: Option<String>,
    /// Decisions that mark it as announced.
    pub decisions: Vec<Decision>,
}

impl Session {
    /// Appends an attachment of kind `what`.
    pub fn attach(&mut self, what: &str, text: &str, now: Timestamp) -> Result<LogEntry, EngineError> {
        let mut content = String::with_capacity(text.len() + 2);
        escape_into(&mut content, text);
        self.append(EntryDraft::attachment(what, &content), now)
    }

    /// Appends an attachment with the content of a file.
    pub fn attach_file(
        &mut self,
        what: &str,
        file: &str,
        text: &str,
        now: Timestamp,
    ) -> Result<LogEntry, EngineError> {
        let mut content = String::with_capacity(text.len() + 2);
        escape_into(&mut content, text);
        self.append(EntryDraft::file_attachment(what, file, &content), now)
    }

    /// Announces what the model can use, then marks it as announced. If the program is killed in between, the
    /// announcement repeats on resume and is never missed.
    ///
    /// The caller derives the content from `view().state().announced` and what is available now.
    pub fn announce(
        &mut self,
        announced: &PendingAnnouncement,
        now: Timestamp,
    ) -> Result<LogEntry, EngineError> {
        if announced.text.trim().is_empty() {
            return Err(EngineError::NotPossible(String::from(
                "there is nothing to announce: the text is empty",
            )));
        }
        let told = self.attach(ANNOUNCEMENT, &announced.text, now)?;
        if let Some(descriptions) = &announced.descriptions {
            self.append(
                EntryDraft::user(MessageOrigin::Agent, &Content::from_text(descriptions).to_json()),
                now,
            )?;
        }
        for decision in &announced.decisions {
            self.decide(decision, now)?;
        }
        Ok(told)
    }
}
