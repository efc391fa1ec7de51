//! The audit of a summary (§4.13): appends missing items that must survive, and flags invented paths and
//! invented words of the user.
//!
//! The guarantees depend on the facts and the budgets alone, never on the summary: the newest user words that
//! fit, the last error, the open tasks and the newest written files that fit. So an audited summary passes
//! its own audit, and a poor one costs no more than a good one.

mod attributed_words;
mod audited_items;
mod named_paths;
mod user_words;

use pal_extract::{ConversationFacts, RESTORED_HEADING};
use pal_model::{PriorUserMessages, SummaryAudit};

/// Input of an audit.
#[derive(Clone, Copy)]
pub struct AuditInput<'a> {
    /// Facts of the summarized stretch; kept messages may be part of it.
    pub facts: &'a ConversationFacts,
    /// User messages that the previous boundary carried.
    pub carried: &'a PriorUserMessages,
    /// The summary.
    pub summary: &'a str,
    /// Texts of the kept messages.
    pub kept: &'a [&'a str],
    /// Budgets for appended items.
    pub budgets: AuditBudgets,
    /// Token estimate of a text.
    pub estimate: &'a dyn Fn(&str) -> u64,
    /// Location of the log, as told to the model.
    pub transcript: &'a str,
    /// Returns true if the session contains a text.
    pub seen: &'a dyn Fn(&str) -> bool,
    /// Returns true if a successful tool result or a restored file contains a text.
    pub confirmed: &'a dyn Fn(&str) -> bool,
    /// Audit of the previous summary, if it is still part of the session. Its own words do not confirm what it
    /// invented.
    pub previous: Option<&'a SummaryAudit>,
}

/// Token budgets for appended items, scaled to the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AuditBudgets {
    /// For the user's words.
    pub user_tokens: u64,
    /// For everything else.
    pub repair_tokens: u64,
}

/// Outcome of an audit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuditOutcome {
    /// Text to append to the summary after a blank line; empty if nothing is missing.
    pub repairs: String,
    /// Figures for the boundary.
    pub audit: SummaryAudit,
    /// User messages that the next audit needs.
    pub carried: PriorUserMessages,
}

/// Audits a summary.
pub fn audit(input: &AuditInput<'_>) -> AuditOutcome {
    let invented = named_paths::invented(input);
    let invented_words = attributed_words::invented(input);
    let words = user_words::check(input);
    let items = audited_items::check(input, &invented, &invented_words);
    let mut repairs = String::new();
    if !words.repairs.is_empty() || !items.repairs.is_empty() {
        if !input.summary.contains(RESTORED_HEADING) {
            repairs.push_str(RESTORED_HEADING);
            repairs.push('\n');
        }
        repairs.push_str(&items.repairs);
        repairs.push_str(&words.repairs);
    }
    let audit = SummaryAudit {
        user_messages: words.all,
        user_messages_verbatim: words.verbatim,
        user_messages_repaired: words.repaired,
        user_messages_by_pointer: words.by_pointer,
        paths: items.paths.all,
        paths_kept: items.paths.kept,
        paths_repaired: items.paths.repaired,
        todos: items.todos.all,
        todos_kept: items.todos.kept,
        todos_repaired: items.todos.repaired,
        error_kept: items.error_kept,
        invented,
        invented_words,
    };
    AuditOutcome { repairs, audit, carried: words.carried }
}

/// Normalizes a text for comparison: lower case, single spaces, no final stop.
fn plain(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").trim_end_matches(['.', ':', ';']).to_lowercase()
}

#[cfg(test)]
mod tests;
