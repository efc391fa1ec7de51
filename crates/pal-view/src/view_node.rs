//! Nodes: entries of the view with their blocks cleaned for the wire, computed once.

use pal_model::{Content, DecisionKind, EntryBody, EntryId, LogEntry, MessageOrigin, ResponseId, Role};
use smol_str::SmolStr;

use crate::token_category::Category;
use crate::wire_block::{BlockCleaner, TextAuthority, WireBlock, WireBlockKind};

/// Speaker of a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum NodeSpeaker {
    Model(Option<ResponseId>),
    User(MessageOrigin),
    /// The program, in a sentence of its own.
    Notice,
    /// The program, by an attachment that quotes another source.
    System,
    /// A summary that stands for earlier messages.
    Summary,
    /// No speaker: a cache edit, which stays where it was sent.
    Cache,
}

/// Message content of an entry, ready to be sent.
#[derive(Clone, Debug)]
pub(crate) struct ViewNode {
    /// Id of the source entry.
    pub(crate) entry: EntryId,
    /// Position of the entry in the branch.
    pub(crate) position: u32,
    pub(crate) speaker: NodeSpeaker,
    pub(crate) clean: Vec<WireBlock>,
}

impl ViewNode {
    /// Builds the node of an entry; `None` if the entry is no message.
    pub(crate) fn of_entry(entry: &LogEntry, position: u32, cleaner: BlockCleaner<'_>) -> Option<ViewNode> {
        if let Some(DecisionKind::CacheEdit { tool_use_ids }) = entry.decision() {
            let clean = vec![cleaner.edits(tool_use_ids)];
            let is_able = cleaner.card.can.cache_edits && !tool_use_ids.is_empty();
            return is_able.then_some(ViewNode {
                entry: entry.id,
                position,
                speaker: NodeSpeaker::Cache,
                clean,
            });
        }
        let (speaker, content) = match &entry.body {
            EntryBody::User(user) => (NodeSpeaker::User(user.origin), &user.content),
            EntryBody::Attachment(attachment) => {
                (NodeSpeaker::of_attachment(&attachment.what), &attachment.content)
            }
            EntryBody::Assistant(assistant) => {
                (NodeSpeaker::Model(assistant.response.clone()), &assistant.content)
            }
            EntryBody::Boundary(boundary) => (NodeSpeaker::Summary, &boundary.summary),
            _ => return None,
        };
        let mut node = ViewNode::new(entry.id, position, speaker, content, cleaner);
        if let EntryBody::Assistant(assistant) = &entry.body
            && assistant.model.as_ref().is_some_and(|model| !is_same_model(model, &cleaner.card.model))
        {
            // Thinking of another model is of no use to this one.
            node.clean.retain(|clean| clean.part != WireBlockKind::Thinking);
        }
        Some(node)
    }

    pub(crate) fn new(
        entry: EntryId,
        position: u32,
        speaker: NodeSpeaker,
        content: &Content,
        cleaner: BlockCleaner<'_>,
    ) -> ViewNode {
        let authority = speaker.text_authority();
        let clean =
            content.blocks().iter().filter_map(|block| cleaner.encode_block(block, authority)).collect();
        ViewNode { entry, position, speaker, clean }
    }
}

/// Kinds of attachments that the program writes in its own name. Anything they quote is framed and escaped.
///
/// All others quote a file, a hook, a server or another agent, imported ones included: they may remind the
/// model on the user's side, but are no message of the system. A kind that is not on this list is one of
/// those.
const NOTICES: [&str; 5] = ["announcement", "changed", "date_change", "note", "reminder"];

impl NodeSpeaker {
    /// Speaker of an attachment of this kind.
    fn of_attachment(what: &str) -> NodeSpeaker {
        if NOTICES.contains(&what) { NodeSpeaker::Notice } else { NodeSpeaker::System }
    }

    /// Returns true for both program speakers.
    pub(crate) fn is_system(&self) -> bool {
        matches!(self, NodeSpeaker::Notice | NodeSpeaker::System)
    }

    /// Authority of the speaker's text. A summary quotes its sources, so it is content as well.
    fn text_authority(&self) -> TextAuthority {
        match self {
            NodeSpeaker::Model(_) => TextAuthority::Own(Role::Assistant),
            NodeSpeaker::User(MessageOrigin::Person) => TextAuthority::Own(Role::User),
            NodeSpeaker::Notice | NodeSpeaker::System => TextAuthority::System,
            NodeSpeaker::User(_) | NodeSpeaker::Summary | NodeSpeaker::Cache => TextAuthority::Content,
        }
    }

    /// Token category of a block of this speaker.
    pub(crate) fn category(&self, part: &WireBlockKind) -> Category {
        match (self, part) {
            (_, WireBlockKind::Thinking) => Category::Thinking,
            (_, WireBlockKind::Call(_) | WireBlockKind::ServerCall(..)) => Category::ToolCalls,
            (_, WireBlockKind::Result(_) | WireBlockKind::ServerResult(..)) => Category::ToolResults,
            (NodeSpeaker::Model(_), _) => Category::AssistantText,
            (NodeSpeaker::User(MessageOrigin::Person), _) => Category::UserText,
            (
                NodeSpeaker::User(MessageOrigin::Tool | MessageOrigin::Synthetic),
                WireBlockKind::Text | WireBlockKind::Media(_),
            ) => Category::ToolResults,
            (NodeSpeaker::User(_) | NodeSpeaker::Notice | NodeSpeaker::System | NodeSpeaker::Cache, _) => {
                Category::Attachments
            }
            (NodeSpeaker::Summary, _) => Category::Summaries,
        }
    }
}

/// Returns true if two names mean one model: equal, or equal up to a date suffix.
pub(crate) fn is_same_model(one: &SmolStr, other: &SmolStr) -> bool {
    undated(one) == undated(other)
}

fn undated(model: &str) -> &str {
    match model.rsplit_once('-') {
        Some((name, date)) if date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => model,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn date_suffix_does_not_change_the_model() {
        let same = |one: &str, other: &str| is_same_model(&SmolStr::new(one), &SmolStr::new(other));
        assert!(same("claude-opus-4-5-20251101", "claude-opus-4-5"));
        assert!(!same("claude-opus-4-5", "claude-opus-4-6"));
        assert!(!same("claude-opus-5", "claude-opus-5-5"));
    }
}
