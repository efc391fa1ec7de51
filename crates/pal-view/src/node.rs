//! Nodes: entries of the view with their blocks made fit for the wire, computed once.

use pal_model::{Body, Content, DecisionKind, Entry, EntryId, Origin, ResponseId, Role};
use smol_str::SmolStr;

use crate::clean::{Clean, Cleaner, Part, Voice};
use crate::ledger::Category;

/// Who speaks in a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Speaker {
    Model(Option<ResponseId>),
    User(Origin),
    /// The system, in a sentence of its own.
    Notice,
    /// The system, by an attachment that hands on what others wrote.
    System,
    /// A summary that stands for earlier messages.
    Summary,
    /// Nobody: a decision about the provider's cache, which stays where it was sent.
    Cache,
}

/// Something said, ready to be sent.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// The entry that it comes from.
    pub(crate) entry: EntryId,
    /// Where the entry stands in the branch.
    pub(crate) position: u32,
    pub(crate) speaker: Speaker,
    pub(crate) clean: Vec<Clean>,
}

impl Node {
    /// The node of an entry that was said.
    pub(crate) fn of_entry(entry: &Entry, position: u32, cleaner: Cleaner<'_>) -> Option<Node> {
        if let Some(DecisionKind::CacheEdit { tool_use_ids }) = entry.decision() {
            let clean = vec![cleaner.edits(tool_use_ids)];
            let is_able = cleaner.card.can.cache_edits && !tool_use_ids.is_empty();
            return is_able.then_some(Node { entry: entry.id, position, speaker: Speaker::Cache, clean });
        }
        let (speaker, content) = match &entry.body {
            Body::User(user) => (Speaker::User(user.origin), &user.content),
            Body::Attachment(attachment) => (Speaker::of_attachment(&attachment.what), &attachment.content),
            Body::Assistant(assistant) => (Speaker::Model(assistant.response.clone()), &assistant.content),
            Body::Boundary(boundary) => (Speaker::Summary, &boundary.summary),
            _ => return None,
        };
        let mut node = Node::new(entry.id, position, speaker, content, cleaner);
        if let Body::Assistant(assistant) = &entry.body
            && assistant.model.as_ref().is_some_and(|model| !is_same_model(model, &cleaner.card.model))
        {
            // Another model's thinking means nothing to this one.
            node.clean.retain(|clean| clean.part != Part::Thinking);
        }
        Some(node)
    }

    pub(crate) fn new(
        entry: EntryId,
        position: u32,
        speaker: Speaker,
        content: &Content,
        cleaner: Cleaner<'_>,
    ) -> Node {
        let voice = speaker.voice();
        let clean = content.blocks().iter().filter_map(|block| cleaner.heard(block, voice)).collect();
        Node { entry, position, speaker, clean }
    }
}

/// What attachments are called that the program writes in its own name. Whatever they quote is framed and defused.
///
/// All others hand on what a file, a hook, a server or another agent wrote, imported ones among them: they may remind
/// the model on the user's side, but are no message of the system. So a sort that is not on this list is one of those.
const NOTICES: [&str; 5] = ["announcement", "changed", "date_change", "note", "reminder"];

impl Speaker {
    /// Who speaks in an attachment of this sort.
    fn of_attachment(what: &str) -> Speaker {
        if NOTICES.contains(&what) { Speaker::Notice } else { Speaker::System }
    }

    /// Whether it is the system, in whichever way.
    pub(crate) fn is_system(&self) -> bool {
        matches!(self, Speaker::Notice | Speaker::System)
    }

    /// Whose words these are. A summary quotes whatever it sums up, so it is content as well.
    fn voice(&self) -> Voice {
        match self {
            Speaker::Model(_) => Voice::Own(Role::Assistant),
            Speaker::User(Origin::Person) => Voice::Own(Role::User),
            Speaker::Notice | Speaker::System => Voice::System,
            Speaker::User(_) | Speaker::Summary | Speaker::Cache => Voice::Content,
        }
    }

    /// What a block of this speaker counts as.
    pub(crate) fn category(&self, part: &Part) -> Category {
        match (self, part) {
            (_, Part::Thinking) => Category::Thinking,
            (_, Part::Call(_) | Part::ServerCall(..)) => Category::ToolCalls,
            (_, Part::Result(_) | Part::ServerResult(..)) => Category::ToolResults,
            (Speaker::Model(_), _) => Category::AssistantText,
            (Speaker::User(Origin::Person), _) => Category::UserText,
            (Speaker::User(Origin::Tool | Origin::Synthetic), Part::Text | Part::Media) => {
                Category::ToolResults
            }
            (Speaker::User(_) | Speaker::Notice | Speaker::System | Speaker::Cache, _) => {
                Category::Attachments
            }
            (Speaker::Summary, _) => Category::Summaries,
        }
    }
}

/// Whether two names mean one model: equal, or equal up to a date.
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
    fn dates_do_not_make_another_model() {
        let same = |one: &str, other: &str| is_same_model(&SmolStr::new(one), &SmolStr::new(other));
        assert!(same("claude-opus-4-5-20251101", "claude-opus-4-5"));
        assert!(!same("claude-opus-4-5", "claude-opus-4-6"));
        assert!(!same("claude-opus-5", "claude-opus-5-5"));
    }
}
