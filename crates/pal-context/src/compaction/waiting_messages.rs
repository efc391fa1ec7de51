//! Messages that the model has not answered yet: a compaction keeps them (§4.9), and what does not fit is spilled with
//! a preview before it (§3.1).

use pal_model::{EntryBody, LogEntry};
use pal_view::{View, WindowLimits};

use super::conversation_cut::CuttableConversation;
use super::summary_budgets::{OUTPUT, REPAIRS, USER_WORDS};
use crate::WindowBudgets;

/// Share of the threshold that these messages may always have, however large the prefix is.
const SHARE_MIN: u64 = 10;

/// Messages that wait for an answer, and the room that a compaction has for them.
pub(crate) struct WaitingMessages<'a> {
    /// Entries of users, tools and the agent behind the last response, as the model sees them.
    pub(crate) entries: Vec<&'a LogEntry>,
    /// Estimated tokens of these messages, with the calls that they answer.
    pub(crate) tokens: f64,
    /// Maximum tokens that a compaction keeps.
    pub(crate) room: f64,
}

impl<'a> WaitingMessages<'a> {
    pub(crate) fn of(view: &'a View, limits: &WindowLimits) -> WaitingMessages<'a> {
        let conversation = CuttableConversation::of(view);
        let at = conversation.first_waiting();
        let cut = conversation.whole(f64::INFINITY).at.min(at);
        let is_new = conversation.shown[..cut].iter().all(|shown| is_boundary(shown.entry));
        let shown = conversation.shown[at..].iter().filter(|shown| !is_boundary(shown.entry));
        WaitingMessages {
            entries: shown.map(|shown| shown.entry).collect(),
            tokens: view.measured_estimator().scale() * conversation.tokens_from(cut),
            room: waiting_room(view, limits, is_new && view.boundary().is_none()),
        }
    }
}

fn is_boundary(entry: &LogEntry) -> bool {
    matches!(entry.body, EntryBody::Boundary(_))
}

/// Maximum tokens of waiting messages: what the prefix and a summary with its repairs leave of the threshold. Without
/// earlier messages (`is_new`) there is nothing to summarize.
pub(crate) fn waiting_room(view: &View, limits: &WindowLimits, is_new: bool) -> f64 {
    let threshold = limits.auto_compact.unwrap_or(limits.effective);
    let summary = match is_new {
        true => 0,
        false => WindowBudgets::new(limits).scale(OUTPUT + USER_WORDS + REPAIRS),
    };
    let fixed = view.fixed_tokens_by(&view.measured_estimator());
    (threshold.saturating_sub(summary) as f64 - fixed).max((threshold / SHARE_MIN) as f64)
}
