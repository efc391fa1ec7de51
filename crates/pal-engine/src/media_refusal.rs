//! Rejected media (§1.9): an image or document that the provider rejects is removed from its message for good,
//! so that it does not end the session.

use pal_model::{
    BlockType, Content, ContentBlock, Decision, DecisionKind, EntryBody, EntryId, LogEntry, Timestamp,
};

use crate::{EngineError, Session};

impl Session {
    /// Entries with media that no request has carried yet; earlier ones were accepted.
    pub(crate) fn unsent_media(&self) -> Vec<EntryId> {
        let unsent = self.view.unsent_entries().into_iter().filter(|entry| !self.view.is_stripped(entry.id));
        unsent.filter(|entry| content(entry).is_some_and(has_media)).map(|entry| entry.id).collect()
    }

    /// Removes the media of entries from the view, with the provider's reason.
    pub(crate) fn strip(
        &mut self,
        entries: &[EntryId],
        why: &str,
        now: Timestamp,
    ) -> Result<(), EngineError> {
        for entry in entries {
            let kind = DecisionKind::Strip {
                entry: *entry,
                text: format!("[A picture or document stood here. The provider refused it: {why}]"),
            };
            let reason = format!("the provider refused what it carries: {why}");
            self.decide(&Decision { kind, reason, cost: Default::default() }, now)?;
        }
        Ok(())
    }
}

fn content(entry: &LogEntry) -> Option<&Content> {
    match &entry.body {
        EntryBody::User(user) => Some(&user.content),
        EntryBody::Attachment(attachment) => Some(&attachment.content),
        _ => None,
    }
}

fn has_media(content: &Content) -> bool {
    let is_media = |block: &ContentBlock| match block.kind() {
        BlockType::Image | BlockType::Document => true,
        BlockType::ToolResult => has_media(&block.content()),
        _ => false,
    };
    content.blocks().iter().any(is_media)
}
