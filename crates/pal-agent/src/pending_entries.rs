//! Entries that wait for the next request of a session.

use pal_engine::{EngineError, Session};
use pal_model::{EntryDraft, MessageOrigin, ResponseRecord, Timestamp};

use crate::todo_reminder::TodoReminder;

/// Everything to add to the log before the next request.
pub(crate) struct PendingEntries {
    /// Attachments for the model: kind and text.
    pub(crate) attachments: Vec<(&'static str, String)>,
    /// Contents for the model that are no instructions, each a JSON list of blocks.
    pub(crate) contents: Vec<String>,
    /// Usage of subagents and forks that is not in the log yet.
    pub(crate) usage: Vec<ResponseRecord>,
    /// A compaction that the model asked for, with its instructions.
    pub(crate) compaction: Option<Option<String>>,
    pub(crate) todo_reminder: TodoReminder,
}

impl PendingEntries {
    /// Adds attachments of one kind.
    pub(crate) fn attach(&mut self, kind: &'static str, texts: impl IntoIterator<Item = String>) {
        self.attachments.extend(texts.into_iter().map(|text| (kind, text)));
    }

    /// Appends all attachments to the log.
    pub(crate) fn append_attachments(
        &mut self,
        session: &mut Session,
        now: Timestamp,
    ) -> Result<(), EngineError> {
        for (kind, text) in std::mem::take(&mut self.attachments) {
            session.attach(kind, &text, now)?;
        }
        for content in std::mem::take(&mut self.contents) {
            session.append(EntryDraft::user(MessageOrigin::Agent, &content), now)?;
        }
        Ok(())
    }

    /// Appends the usage of subagents and forks to the log.
    pub(crate) fn append_usage(&mut self, session: &mut Session, now: Timestamp) -> Result<(), EngineError> {
        for response in std::mem::take(&mut self.usage) {
            session.append(EntryDraft::response(&response), now)?;
        }
        Ok(())
    }
}
