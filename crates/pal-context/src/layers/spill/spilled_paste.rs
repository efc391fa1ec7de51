//! Long texts of people and of the agent, with a preview in their place.

use pal_model::{DecisionKind, EntryBody, EntryId, LogEntry, MessageOrigin};

use super::unsent_results::{describe_excess, weigh};
use super::{FOLDER, spill_text};
use crate::{LayerContext, SpillFile};

/// Preview bytes of a spilled text, on a full window.
const PREVIEW_OF_USER: u64 = 8_000;

/// A user text, typed by a person or written by the agent, that is spilled.
pub(super) struct SpilledPaste {
    pub(super) entry: EntryId,
    pub(super) decision: DecisionKind,
    pub(super) reason: String,
    pub(super) file: SpillFile,
    /// Estimated tokens that this saves.
    pub(super) saved_tokens: f64,
}

impl SpilledPaste {
    /// Spills a text that is over the budget of user texts.
    pub(super) fn of_long(context: &LayerContext<'_>, entry: &LogEntry) -> Option<SpilledPaste> {
        let most = context.budgets().scale(context.policy.spill_characters_of_user);
        // A character has at least one byte, and a byte is at most one token.
        if !context.policy.spill || 2 * entry.line.len() as u64 <= most {
            return None;
        }
        let (who, whole) = text_of(context, entry)?;
        let (characters, weight) = (whole.chars().count(), weigh(context, &whole));
        if weight <= most {
            return None;
        }
        let reason = format!("{who} of {}", describe_excess(characters, weight, most));
        SpilledPaste::new(context, entry, whole, reason)
    }

    /// Spills a text because a compaction could not keep it whole.
    pub(super) fn of_waiting(
        context: &LayerContext<'_>,
        entry: &LogEntry,
        reason: &str,
    ) -> Option<SpilledPaste> {
        let (who, whole) = text_of(context, entry)?;
        SpilledPaste::new(context, entry, whole, format!("{who}: {reason}"))
    }

    fn new(
        context: &LayerContext<'_>,
        entry: &LogEntry,
        whole: String,
        reason: String,
    ) -> Option<SpilledPaste> {
        let path = format!("{FOLDER}/user-{}.txt", entry.id);
        let preview = context.budgets().scale(PREVIEW_OF_USER) as usize;
        let text = spill_text::of_paste(&whole, &format!("{}/{path}", context.paths.directory), preview);
        if text.len() >= whole.len() {
            return None;
        }
        let estimator = context.view.estimator();
        let saved_tokens = estimator.text(&whole) - estimator.text(&text);
        let file = SpillFile { path: path.clone(), text: whole };
        let decision = DecisionKind::Spill { tool_use_id: None, entry: Some(entry.id), path, text };
        Some(SpilledPaste { entry: entry.id, decision, reason, file, saved_tokens })
    }
}

/// Text of a message that may be spilled, and what to call it.
fn text_of(context: &LayerContext<'_>, entry: &LogEntry) -> Option<(&'static str, String)> {
    let EntryBody::User(user) = &entry.body else { return None };
    let who = match user.origin {
        MessageOrigin::Person => "text of the user",
        MessageOrigin::Agent => "message",
        _ => return None,
    };
    let whole = spill_text::of_blocks(user.content.blocks());
    (!context.view.is_spilled(entry.id) && !whole.is_empty()).then_some((who, whole))
}
