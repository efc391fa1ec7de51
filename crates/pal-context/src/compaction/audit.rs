//! The audit of a summary (§4.13): appends missing items that must survive, and flags invented paths.
//!
//! The guarantees depend on the facts and the budgets alone, never on the summary: the newest user words that
//! fit, the last error, the open tasks and the newest written files that fit. So an audited summary passes
//! its own audit, and a poor one costs no more than a good one.

mod audited_items;
mod user_words;

use pal_extract::{ConversationFacts, RESTORED_HEADING, find_paths};
use pal_model::{PriorUserMessages, SummaryAudit, escape_into};

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
    let invented = invented(input);
    let words = user_words::check(input);
    let items = audited_items::check(input, &invented);
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
    };
    AuditOutcome { repairs, audit, carried: words.carried }
}

/// Paths in the summary that never occurred in the session, in order.
fn invented(input: &AuditInput<'_>) -> Vec<String> {
    let named = find_paths(input.summary);
    named.into_iter().filter(|path| !was_seen(input, path)).map(str::to_owned).collect()
}

/// Returns true if a path from the summary occurred in the session: whole, without leading directories, or as
/// a name and its parent directory, since listings name files without their directories.
fn was_seen(input: &AuditInput<'_>, path: &str) -> bool {
    let seen = |text: &str| {
        input.facts.mentions(text)
            || input.carried.messages.iter().any(|words| words.text.contains(text))
            || input.transcript.contains(text)
            || (input.seen)(text)
            || escaped(text).iter().any(|spelled| (input.seen)(spelled))
    };
    let path = path.trim_start_matches("./").trim_start_matches("~/").trim_start_matches("../");
    if seen(path) {
        return true;
    }
    let Some((folder, name)) = path.rsplit_once('/') else { return false };
    let mut rest = path;
    while let Some((_, shorter)) = rest.split_once('/').filter(|(_, shorter)| shorter.contains('/')) {
        if seen(shorter) {
            return true;
        }
        rest = shorter;
    }
    let parent = folder.rsplit('/').next().unwrap_or_default();
    seen(name) && (parent.is_empty() || seen(parent))
}

/// Other JSON spellings of a text, since logs are searched as raw JSON: with escapes, with non-ASCII letters
/// as numbers, and each with escaped slashes.
fn escaped(text: &str) -> Vec<String> {
    let mut quoted = String::new();
    escape_into(&mut quoted, text);
    let needed = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default();
    let numbered = |spell: fn(u16) -> String| {
        let mut out = String::new();
        for letter in needed.chars() {
            if letter.is_ascii() {
                out.push(letter);
            } else {
                letter.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&spell(*unit)));
            }
        }
        out
    };
    let lower = numbered(|unit| format!("\\u{unit:04x}"));
    let upper = numbered(|unit| format!("\\u{unit:04X}"));
    let mut spellings = vec![needed.to_owned(), lower, upper];
    spellings.extend(spellings.clone().iter().map(|spelled| spelled.replace('/', "\\/")));
    spellings.sort_unstable();
    spellings.dedup();
    spellings.retain(|spelled| spelled != text);
    spellings
}

#[cfg(test)]
mod tests;
