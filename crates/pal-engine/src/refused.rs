//! Media that the provider refuses (§1.9): taken out of the message that brought them, for good, so that one picture that is
//! too large does not end a session.

use pal_model::{Block, BlockType, Body, Content, Decision, DecisionKind, Entry, EntryId, Timestamp};

use crate::{EngineError, Session};

impl Session {
    /// The entries with media that no request has carried yet: one that was carried before was not refused then.
    pub(crate) fn unsent_media(&self) -> Vec<EntryId> {
        let unsent = self.view.unsent().into_iter().filter(|entry| !self.view.is_stripped(entry.id));
        unsent.filter(|entry| content(entry).is_some_and(has_media)).map(|entry| entry.id).collect()
    }

    /// Takes the media of entries out of the view, because the provider said why.
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

fn content(entry: &Entry) -> Option<&Content> {
    match &entry.body {
        Body::User(user) => Some(&user.content),
        Body::Attachment(attachment) => Some(&attachment.content),
        _ => None,
    }
}

fn has_media(content: &Content) -> bool {
    let is_media = |block: &Block| match block.kind() {
        BlockType::Image | BlockType::Document => true,
        BlockType::ToolResult => has_media(&block.content()),
        _ => false,
    };
    content.blocks().iter().any(is_media)
}
